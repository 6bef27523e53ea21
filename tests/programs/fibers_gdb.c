/* SPDX-License-Identifier: MIT */
/*
 * fibers_gdb.c - fibers in every state, held still for a debugger.
 *
 * When each fiber is in the state that its name says, the fiber "last" calls
 * everything_in_place(), where the debugger sets its breakpoint. Then all fibers are canceled,
 * and the program exits with 0.
 *
 * Worker 0 runs "busy", which never yields. So "fresh", which is spawned later, does not start,
 * and "yielder" stays queued. The others wait on worker 1. "last" is pinned there, too, so
 * fibers that it has seen announced are also suspended.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

#define NOINLINE __attribute__((noinline))

static atomic_bool stop;
static atomic_int busy_count, yield_count, waiting_count;

/* Never ready. Its poll announces that the fiber is about to wait. */
struct never {
    weft_future future;
    bool cancelled;
};

static int never_poll(weft_future *future)
{
    if (((struct never *)future)->cancelled) {
        return WEFT_ECANCELED;
    }
    atomic_fetch_add(&waiting_count, 1);
    return WEFT_PENDING;
}

static bool never_cancel(weft_future *future)
{
    ((struct never *)future)->cancelled = true;
    return true;
}

static const weft_future_ops never_ops = { .poll = never_poll, .cancel = never_cancel };

/* The values of the arguments are used after the wait, so a debugger can find them in the
 * registers that the frames below have saved. */
NOINLINE int level_two(int depth, const char *label);
NOINLINE int level_one(int depth);
void everything_in_place(void);

int level_two(int depth, const char *label)
{
    struct never never = { .future.ops = &never_ops };
    int err = weft_await(&never.future, WEFT_NEVER); /* level_two waits here */
    return err == WEFT_ECANCELED && label[0] == 's' ? depth : -1;
}

int level_one(int depth)
{
    int below = level_two(depth + 1, depth == 6 ? "seven" : "some"); /* level_one calls here */
    return below == depth + 1 ? depth : -1;
}

static int nested(void *arg)
{
    int depth = *(int *)arg;
    return level_one(depth) == depth ? 0 : 1;
}

static int napper(void *arg)
{
    (void)arg;
    atomic_fetch_add(&waiting_count, 1);
    int err = weft_sleep(3600 * WEFT_S); /* napper sleeps here */
    return err == WEFT_ECANCELED ? 0 : 1;
}

static int yielder(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop)) {
        atomic_fetch_add(&yield_count, 1);
        (void)weft_yield(); /* yielder yields here */
    }
    return 0;
}

static int busy(void *arg)
{
    (void)arg;
    atomic_fetch_add(&busy_count, 1);
    while (!atomic_load(&stop)) {
    }
    return 0;
}

static int fresh(void *arg)
{
    (void)arg;
    return 0;
}

/* A stackless task, for "weft tasks". */
static int stackless(weft_co *co, void *state)
{
    struct never *never = state;
    int err;
    WEFT_BEGIN(co);
    never->future.ops = &never_ops;
    WEFT_AWAIT(co, err, &never->future); /* stackless waits here */
    WEFT_END(co, err == WEFT_ECANCELED ? 0 : 1);
}

NOINLINE void everything_in_place(void)
{
    __asm__ volatile("");
}

static int last(void *arg)
{
    while (atomic_load(&waiting_count) < *(int *)arg) {
        (void)weft_yield();
    }
    everything_in_place();
    atomic_store(&stop, true);
    return 0;
}

static void must(int err)
{
    if (err != 0) {
        (void)fprintf(stderr, "fibers_gdb: %s\n", weft_strerror(err));
        _Exit(1);
    }
}

static void spin_until(atomic_int *count)
{
    while (atomic_load(count) == 0) {
        (void)sched_yield();
    }
}

static weft_runtime *create(unsigned workers)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = workers;
    weft_runtime *rt;
    must(weft_runtime_create(&rt, &config));
    return rt;
}

static weft_task *go(weft_runtime *rt, int (*function)(void *arg), int *arg, const char *name,
                     unsigned worker)
{
    weft_task *task;
    weft_fiber_spec spec = {
        .function = function,
        .arg = arg,
        .name = name,
        .pinned = WEFT_PINNED_TO(worker),
    };
    must(weft_runtime_go(rt, &task, &spec));
    return task;
}

/* A fiber on a small stack, with an argument that does not fit into a slab. */
static weft_task *go_large(weft_runtime *rt)
{
    struct {
        int depth;
        char rest[4000];
    } arg = { .depth = 60 };
    weft_task *task;
    weft_fiber_spec spec = {
        .function = nested,
        .arg = &arg,
        .arg_size = sizeof arg,
        .stack_size = 16384,
        .name = "large",
        .pinned = WEFT_PINNED_TO(1),
    };
    must(weft_runtime_go(rt, &task, &spec));
    return task;
}

static weft_task *spawn_stackless(weft_runtime *rt)
{
    weft_task *task;
    weft_spec spec = {
        .body = stackless,
        .state_size = sizeof(struct never),
        .name = "stackless",
        .pinned = WEFT_PINNED_TO(1),
    };
    must(weft_runtime_spawn(rt, &task, &spec));
    return task;
}

static void join(weft_task *task)
{
    int result;
    must(weft_join(task, &result, WEFT_NEVER));
    must(result);
}

int main(void)
{
    weft_runtime *rt = create(2), *second = create(1);
    int six = 6, forty = 40, all_waiting = 5;
    weft_task *tasks[9];

    /* Its worker starts another fiber only after this one has suspended. */
    tasks[0] = go(second, nested, &forty, "elsewhere", 0);
    spin_until(&waiting_count);
    tasks[8] = go(second, fresh, NULL, "ended", 0);
    while (!weft_task_is_done(tasks[8])) {
        (void)sched_yield();
    }

    tasks[1] = go(rt, yielder, NULL, "yielder", 0);
    spin_until(&yield_count);
    tasks[2] = go(rt, busy, NULL, "busy", 0);
    spin_until(&busy_count);
    tasks[3] = go(rt, fresh, NULL, "fresh", 0);

    tasks[4] = go(rt, nested, &six, "nested", 1);
    tasks[5] = go(rt, napper, NULL, NULL, 1);
    tasks[6] = go_large(rt);
    tasks[7] = spawn_stackless(rt);
    join(go(rt, last, &all_waiting, "last", 1));

    for (int i = 0; i < 9; i++) {
        weft_cancel(tasks[i]); /* main cancels here */
        join(tasks[i]);
    }
    weft_runtime_destroy(second);
    weft_runtime_destroy(rt);
    return 0;
}
