/* SPDX-License-Identifier: MIT */
/*
 * fiber_model.c - src/sched/fiber.c, await.c and inplace.c: fibers that wait, are
 * woken, change their worker, pass it on and end.
 *
 * A scheduler with everything but the watch. Contexts and stacks are the checker's
 * memory like any other: a worker that goes on with a fiber while another is still
 * on its way out of it is a data race on the context, or on what lives in a frame.
 */
#include <weft/fiber.h>
#include <weft/task.h>

#include "mc.h"
#include "sched/fiber.h"
#include "sched/heap.h"
#include "sched/park.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/thread.h"
#include "sched/worker.h"
#include "fiber_rig.h"

enum {
    ANSWER = 42,
};

static struct wf_sched *sched;

static void begin(unsigned workers)
{
    sched = fiber_rig_start(workers);
}

static void end(void)
{
    wf_sched_drain(sched);
    wf_sched_stop(sched);
    wf_sched_fini(sched);
}

static weft_task *go(int (*function)(void *arg), void *arg, uint32_t pinned)
{
    struct wf_task *task;
    weft_fiber_spec spec = { .function = function, .arg = arg, .pinned = pinned };
    mc_assert(wf_fiber_spawn(sched, &task, &spec) == 0);
    return (weft_task *)task;
}

static void join(weft_task *task, int expected)
{
    int result = 0;
    mc_assert(weft_join(task, &result, WEFT_NEVER) == 0);
    mc_assert(result == expected);
}

/* A flag that a fiber waits for, and another thread raises. */
struct flag {
    weft_future future;
    _Atomic(weft_waker *) waker;
    _Atomic(uint32_t) up;
    bool cancelled;
};

static int flag_poll(weft_future *future)
{
    struct flag *flag = (struct flag *)future;
    if (flag->cancelled) {
        return WEFT_ECANCELED;
    }
    if (wf_load_acquire(&flag->up) != 0) {
        return 0;
    }
    weft_waker_drop(wf_xchg_acq_rel(&flag->waker, weft_waker_current()));
    wf_fence_full();
    return wf_load_acquire(&flag->up) != 0 ? 0 : WEFT_PENDING;
}

static bool flag_cancel(weft_future *future)
{
    ((struct flag *)future)->cancelled = true;
    return true;
}

static const weft_future_ops flag_ops = { .poll = flag_poll, .cancel = flag_cancel };

static struct flag flag;

static void raise_flag(void *arg)
{
    (void)arg;
    wf_store_release(&flag.up, 1u);
    wf_fence_full();
    weft_waker *waker = wf_xchg_acq_rel(&flag.waker, (weft_waker *)NULL);
    if (waker != NULL) {
        weft_waker_fire(waker);
    }
}

/* Something in a frame that the compiler cannot keep in registers. */
static __attribute__((noinline)) void fill(int *array, int value)
{
    array[0] = value;
    array[1] = value + 1;
}

static __attribute__((noinline)) int sum(const int *array)
{
    return array[0] + array[1];
}

static int wait_for_flag(void *arg)
{
    (void)arg;
    int array[2];
    fill(array, 20);
    mc_assert(weft_await(&flag.future, WEFT_NEVER) == 0);
    mc_assert(sum(array) == 41);
    return ANSWER;
}

/*
 * Goal:   a wake that meets a fiber on its way out is not lost, and nobody goes on
 *         with the fiber before it has left.
 * Method: two workers; a thread wakes it, at any time.
 */
static void wake_against_suspend(void)
{
    flag.future.ops = &flag_ops;
    begin(2);
    weft_task *task = go(wait_for_flag, NULL, 0);
    mc_go(raise_flag, NULL);
    join(task, ANSWER);
    mc_join();
    weft_waker_drop(flag.waker);
    end();
}

static void cancel_task(void *task)
{
    weft_cancel(task);
}

static int wait_or_cancel(void *arg)
{
    (void)arg;
    int array[2];
    fill(array, 20);
    int err = weft_await(&flag.future, WEFT_NEVER);
    mc_assert(err == 0 || err == WEFT_ECANCELED);
    mc_assert(sum(array) == 41);
    mc_note(err == 0);
    return ANSWER;
}

/* The same for a cancellation. */
static void cancel_against_suspend(void)
{
    flag.future.ops = &flag_ops;
    begin(2);
    weft_task *task = go(wait_or_cancel, NULL, 0);
    mc_go(cancel_task, task);
    if (mc_choose(2) == 1) {
        mc_go(raise_flag, NULL);
    }
    mc_join();
    join(task, ANSWER);
    weft_waker_drop(flag.waker);
    end();
}

static int yield_twice(void *arg)
{
    int array[2];
    fill(array, *(int *)arg);
    for (int i = 0; i < 2; i++) {
        mc_assert(weft_yield() == 0);
    }
    return sum(array);
}

/*
 * Goal:   a fiber that yields to another is queued when it has left, not before: the
 *         other worker steals it at once.
 */
static void yield_against_steal(void)
{
    begin(2);
    int values[2] = { 1, 2 };
    weft_task *first = go(yield_twice, &values[0], 0);
    weft_task *second = go(yield_twice, &values[1], 0);
    join(first, 3);
    join(second, 5);
    end();
}

static int answer(void *arg)
{
    (void)arg;
    return ANSWER;
}

static int spawn_and_join(void *arg)
{
    (void)arg;
    int array[2];
    fill(array, 20);
    join(go(answer, NULL, 0), ANSWER);
    mc_assert(sum(array) == 41);
    return ANSWER;
}

/*
 * Goal:   a join passes the worker on to the child, and its end passes it back; or
 *         the other worker has taken the one or the other.
 */
static void hand_over(void)
{
    begin(2);
    join(go(spawn_and_join, NULL, 0), ANSWER);
    end();
}

/* Joins one that may wait, or gives up when it is cancelled. */
static int lend(void *arg)
{
    int array[2];
    fill(array, 20);
    weft_task *child = go(arg != NULL ? wait_or_cancel : answer, NULL, 0);
    int err = weft_join(child, NULL, WEFT_NEVER);
    mc_assert(err == 0 || err == WEFT_ECANCELED);
    mc_assert(sum(array) == 41);
    if (err != 0) {
        weft_detach(child);
        raise_flag(NULL); /* Not before: the child alone would wait for ever. */
    }
    mc_note(err == 0);
    return ANSWER;
}

/*
 * Goal:   a lender that is cancelled goes on once, after it has left its stack.
 * Method: it is cancelled at any time; its borrower ends, or waits first.
 */
static void cancel_against_loan(void)
{
    static int waits;
    flag.future.ops = &flag_ops;
    begin(2);
    weft_task *task = go(lend, mc_choose(2) == 1 ? &waits : NULL, 0);
    mc_go(cancel_task, task);
    mc_join();
    join(task, ANSWER);
    end();
    weft_waker_drop(flag.waker);
}

/*
 * Goal:   the stack of a fiber that has ended is not used before it was left.
 * Method: fibers begin and end on two workers that share their stacks.
 */
static void end_against_begin(void)
{
    begin(2);
    weft_task *tasks[3];
    int values[3] = { 1, 2, 3 };
    for (int i = 0; i < 3; i++) {
        tasks[i] = go(yield_twice, &values[i], 0);
    }
    for (int i = 0; i < 3; i++) {
        join(tasks[i], 2 * values[i] + 1);
    }
    end();
}

/* Fibers that only the shutdown ends. */
static int wait_for_ever(void *arg)
{
    (void)arg;
    int array[2];
    fill(array, 20);
    struct flag never = { .future.ops = &flag_ops };
    mc_assert(weft_await(&never.future, WEFT_NEVER) == WEFT_ECANCELED);
    weft_waker_drop(never.waker);
    return sum(array);
}

static void stop_against_suspend(void)
{
    begin(2);
    weft_task *task = go(wait_for_ever, NULL, 0);
    wf_sched_drain(sched);
    wf_sched_stop(sched);
    int result;
    mc_assert(weft_try_join(task, &result) == 0);
    mc_assert(result == 41);
    wf_sched_fini(sched);
}

/* A stackless task. */
static int answer_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return ANSWER;
}

static int spawn_body_and_yield(void *arg)
{
    struct wf_task **out = arg;
    weft_spec spec = { .body = answer_body };
    mc_assert(wf_spawn(sched, out, &spec) == 0);
    mc_assert(weft_yield() == 0);
    return ANSWER;
}

/* Goal: a task that a fiber has found, and that is none, is run by the loop. */
static void yield_to_a_stackless_task(void)
{
    begin(1);
    struct wf_task *task;
    join(go(spawn_body_and_yield, &task, 0), ANSWER);
    join((weft_task *)task, ANSWER);
    end();
}

static struct wf_park ended; /* the first of the two */

static int wait_for_the_first(void *arg)
{
    (void)arg;
    (void)wf_park_sleep(&ended, INT64_MAX); /* The whole worker waits. */
    return ANSWER;
}

static int yield_to_one_that_blocks(void *arg)
{
    weft_task **other = arg;
    *other = go(wait_for_the_first, NULL, 0);
    mc_assert(weft_yield() == 0);
    wf_park_wake(&ended);
    return ANSWER;
}

/* Goal: a fiber that has yielded to one that blocks is taken by the other worker. */
static void yield_is_announced(void)
{
    begin(2);
    weft_task *other;
    join(go(yield_to_one_that_blocks, &other, 0), ANSWER);
    join(other, ANSWER);
    end();
}

/* --- In place ---------------------------------------------------------------- */

static int called; /* on the thread of the pool, read by the fiber before and after */

static int blocking(void *arg)
{
    int *array = arg;
    mc_assert(wf_worker_current() == NULL);
    mc_assert(sum(array) == 41);
    called++;
    fill(array, 30);
    return ANSWER;
}

static int block(void *arg)
{
    (void)arg;
    int array[2];
    fill(array, 20);
    called = 1;
    int result = weft_block_in_place(blocking, array, WEFT_NEVER);
    mc_assert(wf_worker_current() != NULL);
    if (result == ANSWER) {
        mc_assert(sum(array) == 61);
        mc_assert(called == 2);
    } else {
        mc_assert(result == WEFT_ECANCELED || result == WEFT_ESHUTDOWN);
        mc_assert(sum(array) == 41);
        mc_assert(called == 1);
    }
    mc_note(result == ANSWER);
    return result;
}

/*
 * Goal:   a fiber goes to a thread of the pool and comes back, with its frame; the
 *         worker is free meanwhile.
 */
static void block_in_place(void)
{
    begin(1);
    weft_task *task = go(block, NULL, 0);
    weft_task *other = go(answer, NULL, 0);
    join(other, ANSWER);
    join(task, ANSWER);
    end();
}

/* Goal: the same while the fiber is cancelled: it was called and says so, or not. */
static void cancel_against_block(void)
{
    begin(1);
    weft_task *task = go(block, NULL, 0);
    mc_go(cancel_task, task);
    mc_join();
    int result;
    mc_assert(weft_join(task, &result, WEFT_NEVER) == 0);
    end();
}

/* Goal: the same while the scheduler stops. */
static void stop_against_block(void)
{
    begin(1);
    weft_task *task = go(block, NULL, 0);
    wf_sched_drain(sched);
    wf_sched_stop(sched);
    int result;
    mc_assert(weft_try_join(task, &result) == 0);
    wf_sched_fini(sched);
}

#define TEST(function, count)                                                                      \
    {                                                                                              \
        .name = #function, .run = (function), .mode = MC_PCT, .runs = (count), .steps_max = 20000, \
        .leaks = true                                                                              \
    }

/* With outcomes that must come up. */
#define TEST_SEEN(function, count, ...)                                                            \
    {                                                                                              \
        .name = #function, .run = (function), .mode = MC_PCT, .runs = (count), .steps_max = 20000, \
        .leaks = true, .seen = MC_OUTCOMES(__VA_ARGS__)                                            \
    }

static const struct mc_test tests[] = {
    TEST(wake_against_suspend, 1000),
    TEST_SEEN(cancel_against_suspend, 1000, 0, 1),
    TEST(yield_against_steal, 1000),
    TEST(hand_over, 1000),
    TEST(end_against_begin, 1000),
    TEST(stop_against_suspend, 1000),
    TEST(yield_to_a_stackless_task, 500),
    TEST(yield_is_announced, 1000),
    TEST_SEEN(block_in_place, 1000, 1),
    TEST_SEEN(cancel_against_block, 1000, 0, 1),
    TEST_SEEN(stop_against_block, 1000, 0, 1),
    TEST_SEEN(cancel_against_loan, 3000, 0, 1),
};

MC_MAIN(tests)
