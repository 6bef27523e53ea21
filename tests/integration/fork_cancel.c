/* SPDX-License-Identifier: MIT */
/*
 * fork_cancel.c - a fork is a part of the task that forked it: it is canceled with that task,
 * shielded with it, and a shutdown treats both the same, no matter which worker runs the fork.
 *
 * In each test a task runs two parts in parallel. Each part waits until the other has started,
 * so one of them is a stolen fork, on a fiber of its own.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

/* --- Parallel parts ---------------------------------------------------------------------- */

struct rig {
    weft_runtime *rt;
    void (*part)(struct rig *rig, unsigned index);
    void (*run)(struct rig *rig); /* runs part 0 and part 1 in parallel */
    int (*function)(void *rig);   /* of the task, which calls run */
    _Atomic(unsigned) started;
    weft_event both_started;
    weft_event gate;
    int results[2];
    weft_task *tasks[2]; /* that run the parts; for comparison only */
};

static void start_part(struct rig *rig, unsigned index)
{
    if (atomic_fetch_add(&rig->started, 1) == 1) {
        weft_event_set(&rig->both_started);
    }
    weft_shield_enter();
    CHECK_EQ(weft_event_wait(&rig->both_started, WEFT_NEVER), 0);
    weft_shield_leave();
    rig->tasks[index] = weft_task_current();
    rig->part(rig, index);
}

static void part_0(void *arg)
{
    start_part(arg, 0);
}

static void part_1(void *arg)
{
    start_part(arg, 1);
}

static void run_join2(struct rig *rig)
{
    weft_join2(part_0, rig, part_1, rig);
}

static void run_join_n(struct rig *rig)
{
    const weft_call calls[] = { { part_0, rig }, { part_1, rig } };
    weft_join_n(calls, 2);
}

static int spawned_0(void *arg)
{
    start_part(arg, 0);
    return 0;
}

static int spawned_1(void *arg)
{
    start_part(arg, 1);
    return 0;
}

static void run_scope(struct rig *rig)
{
    weft_par_scope scope;
    weft_par_scope_begin(&scope, NULL);
    weft_par_spawn(&scope, spawned_0, rig);
    weft_par_spawn(&scope, spawned_1, rig);
    CHECK_EQ(weft_par_scope_end(&scope), 0);
}

/* Recursion that has used up its stack continues like this. */
static void run_on_another_stack(struct rig *rig)
{
    weft_forked fork;
    weft_fork(&fork, part_0, rig);
    weft_jobs_call_elsewhere(part_1, rig);
    weft_fork_join(&fork);
}

/* A fork of a fork: the task that is canceled waits for one that waits. */
static void run_join2_void(void *arg)
{
    run_join2(arg);
}

static void wait_for_both(void *arg)
{
    struct rig *rig = arg;
    weft_shield_enter();
    CHECK_EQ(weft_event_wait(&rig->both_started, WEFT_NEVER), 0);
    weft_shield_leave();
}

static void run_nested(struct rig *rig)
{
    weft_join2(wait_for_both, rig, run_join2_void, rig);
}

static const struct {
    const char *name;
    void (*run)(struct rig *rig);
} ways[] = {
    { "weft_join2", run_join2 },        { "weft_join_n", run_join_n },
    { "weft_par_spawn", run_scope },    { "a call on another stack", run_on_another_stack },
    { "a fork of a fork", run_nested },
};

/* --- Tasks ----------------------------------------------------------------------------- */

static int call_function(void *arg)
{
    struct rig *rig = arg;
    return rig->function(rig);
}

static int call_as_guest(void *arg)
{
    struct rig *rig = arg;
    return weft_par_run(rig->rt, rig->function, rig);
}

static int call_in_place(void *arg)
{
    return weft_block_in_place(call_as_guest, arg, WEFT_NEVER);
}

static weft_task *start_job(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, function, arg), 0);
    return task;
}

/* Tasks that can have parallel parts. */
static const struct owner {
    const char *name;
    weft_task *(*start)(weft_runtime *rt, int (*function)(void *arg), void *arg);
    int (*call)(void *rig);
} owners[] = {
    { "fiber", test_go, call_function },
    { "blocking job in weft_par_run()", start_job, call_as_guest },
    { "weft_par_run() in weft_block_in_place()", test_go, call_in_place },
};

static weft_task *start(const struct owner *owner, struct rig *rig, int (*function)(void *rig))
{
    rig->function = function;
    return owner->start(rig->rt, owner->call, rig);
}

/* Runs the parts only. */
static int run_parts(void *arg)
{
    struct rig *rig = arg;
    rig->run(rig);
    return 0;
}

static struct rig make_rig(weft_runtime *rt, void (*run)(struct rig *rig),
                           void (*part)(struct rig *rig, unsigned index))
{
    struct rig rig = { .rt = rt, .run = run, .part = part, .results = { 1, 1 } };
    return rig;
}

/* Calls the test for each kind of task and each way to run parts. */
static void for_all(void (*test)(const struct owner *owner, void (*run)(struct rig *rig)))
{
    for (unsigned i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        for (unsigned j = 0; j < sizeof ways / sizeof ways[0]; j++) {
            (void)printf("# %s, %s\n", owners[i].name, ways[j].name);
            test(&owners[i], ways[j].run);
        }
    }
}

static void check_results(const struct rig *rig, int wanted)
{
    CHECK_EQ(rig->results[0], wanted);
    CHECK_EQ(rig->results[1], wanted);
    CHECK(rig->tasks[0] != rig->tasks[1]);
}

/* Each test starts many runtimes. */
static unsigned workers(unsigned least)
{
    unsigned count = test_workers(2);
    return count < least ? least : count > 16 ? 16 : count;
}

/* --- Canceled ----------------------------------------------------------------------------- */

static void sleep_for_long(struct rig *rig, unsigned index)
{
    rig->results[index] = weft_sleep(3600 * WEFT_S);
}

static void cancel_while_parts_wait(const struct owner *owner, void (*run)(struct rig *rig))
{
    weft_runtime *rt = test_start(workers(1));
    struct rig rig = make_rig(rt, run, sleep_for_long);
    weft_task *task = start(owner, &rig, run_parts);
    CHECK_EQ(weft_event_wait(&rig.both_started, WEFT_NEVER), 0);
    test_wait_until_asleep(rt);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 0);
    check_results(&rig, WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

static void cancellation_reaches_stolen_forks(void)
{
    for_all(cancel_while_parts_wait);
}

/* Waits without a call that cancellation ends. */
static void loop_until_canceled(struct rig *rig, unsigned index)
{
    while (!weft_cancelled()) {
        sched_yield();
    }
    rig->results[index] = weft_sleep(0);
}

static void cancel_while_parts_loop(const struct owner *owner, void (*run)(struct rig *rig))
{
    weft_runtime *rt = test_start(workers(4));
    struct rig rig = make_rig(rt, run, loop_until_canceled);
    weft_task *task = start(owner, &rig, run_parts);
    CHECK_EQ(weft_event_wait(&rig.both_started, WEFT_NEVER), 0);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 0);
    check_results(&rig, WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

static void stolen_fork_sees_that_it_is_canceled(void)
{
    for_all(cancel_while_parts_loop);
}

static int run_parts_when_canceled(void *arg)
{
    struct rig *rig = arg;
    weft_event_set(&rig->gate);
    CHECK_EQ(weft_sleep(3600 * WEFT_S), WEFT_ECANCELED);
    return run_parts(rig);
}

static void cancel_before_parts_start(const struct owner *owner, void (*run)(struct rig *rig))
{
    weft_runtime *rt = test_start(workers(1));
    struct rig rig = make_rig(rt, run, sleep_for_long);
    weft_task *task = start(owner, &rig, run_parts_when_canceled);
    CHECK_EQ(weft_event_wait(&rig.gate, WEFT_NEVER), 0);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 0);
    check_results(&rig, WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

static void forks_of_canceled_task_are_canceled(void)
{
    for_all(cancel_before_parts_start);
}

/* --- Shielded ----------------------------------------------------------------------------- */

static void wait_for_gate(struct rig *rig, unsigned index)
{
    CHECK(!weft_cancelled());
    rig->results[index] = weft_event_wait(&rig->gate, WEFT_NEVER);
    CHECK(!weft_cancelled());
}

static int run_in_shield(void *arg)
{
    struct rig *rig = arg;
    weft_shield_enter();
    rig->run(rig);
    weft_shield_leave();
    CHECK(weft_cancelled());
    return 0;
}

static weft_task *start_shielded(const struct owner *owner, struct rig *rig)
{
    weft_task *task = start(owner, rig, run_in_shield);
    CHECK_EQ(weft_event_wait(&rig->both_started, WEFT_NEVER), 0);
    test_wait_until_asleep(rig->rt);
    return task;
}

static void cancel_shielded(const struct owner *owner, void (*run)(struct rig *rig))
{
    weft_runtime *rt = test_start(workers(1));
    struct rig rig = make_rig(rt, run, wait_for_gate);
    weft_task *task = start_shielded(owner, &rig);
    weft_cancel(task);
    weft_event_set(&rig.gate);
    CHECK_EQ(test_join_soon(task), 0);
    check_results(&rig, 0);
    weft_runtime_destroy(rt);
}

static void shield_covers_stolen_forks(void)
{
    for_all(cancel_shielded);
}

/* The first parts are canceled. Then the task cleans up, with parts in a shield. */
static int clean_up_in_shield(void *arg)
{
    struct rig *rig = arg;
    rig->run(rig);
    check_results(rig, WEFT_ECANCELED);
    struct rig second = make_rig(rig->rt, rig->run, wait_for_gate);
    weft_event_set(&second.gate);
    weft_shield_enter();
    second.run(&second);
    weft_shield_leave();
    check_results(&second, 0);
    return 0;
}

static void cancel_and_clean_up(const struct owner *owner, void (*run)(struct rig *rig))
{
    weft_runtime *rt = test_start(workers(1));
    struct rig rig = make_rig(rt, run, sleep_for_long);
    weft_task *task = start(owner, &rig, clean_up_in_shield);
    CHECK_EQ(weft_event_wait(&rig.both_started, WEFT_NEVER), 0);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 0);
    weft_runtime_destroy(rt);
}

static void canceled_task_can_shield_later_forks(void)
{
    for_all(cancel_and_clean_up);
}

/* --- Shutdown ------------------------------------------------------------------------------ */

static void shut_down_while_parts_wait(const struct owner *owner, void (*run)(struct rig *rig))
{
    weft_runtime *rt = test_start(workers(1));
    struct rig rig = make_rig(rt, run, sleep_for_long);
    weft_task *task = start(owner, &rig, run_parts);
    CHECK_EQ(weft_event_wait(&rig.both_started, WEFT_NEVER), 0);
    weft_detach(task);
    weft_runtime_destroy(rt);
    check_results(&rig, WEFT_ECANCELED);
}

static void shutdown_cancels_stolen_forks(void)
{
    for_all(shut_down_while_parts_wait);
}

/* The shutdown cancels this task: then its shielded parts may go on. */
static int open_gate_when_canceled(void *arg)
{
    struct rig *rig = arg;
    CHECK_EQ(weft_sleep(3600 * WEFT_S), WEFT_ECANCELED);
    weft_event_set(&rig->gate);
    return 0;
}

static void shut_down_shielded(const struct owner *owner, void (*run)(struct rig *rig))
{
    weft_runtime *rt = test_start(workers(1));
    struct rig rig = make_rig(rt, run, wait_for_gate);
    weft_task *task = start_shielded(owner, &rig);
    weft_detach(test_go(rt, open_gate_when_canceled, &rig));
    weft_detach(task);
    weft_runtime_destroy(rt);
    check_results(&rig, 0);
}

static void shutdown_respects_shield_of_forks(void)
{
    for_all(shut_down_shielded);
}

TEST_MAIN({
    TEST(cancellation_reaches_stolen_forks),
    TEST(stolen_fork_sees_that_it_is_canceled),
    TEST(forks_of_canceled_task_are_canceled),
    TEST(shield_covers_stolen_forks),
    TEST(canceled_task_can_shield_later_forks),
    TEST(shutdown_cancels_stolen_forks),
    TEST(shutdown_respects_shield_of_forks),
})
