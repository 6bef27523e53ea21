/* SPDX-License-Identifier: MIT */
#include <weft/mutex.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/latch.h"
#include "crowd.h"
#include "latched.h"
#include "rt.h"
#include "sched/op.h"
#include "test.h"
#include "timing.h"

static weft_mutex mutex;
static uint64_t guarded; /* plain; ThreadSanitizer reports a race if two tasks own the mutex */

static void reset(void)
{
    memset(&mutex, 0, sizeof mutex);
    guarded = 0;
}

/* --- Mutual exclusion --------------------------------------------------------------------- */

/* Every tenth round it yields with the mutex locked. */
static int lock_and_add(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    for (; self->round < crowd_rounds(); self->round++) {
        weft_mutex_lock_init(&self->ops[0], &mutex);
        WEFT_AWAIT(co, self->err, &self->ops[0].future);
        CHECK_EQ(self->err, 0);
        guarded++;
        if (self->round % 10 == self->index % 10) {
            WEFT_YIELD(co, self->err);
        }
        self->sum++;
        weft_mutex_unlock(&mutex);
    }
    WEFT_END(co, 0);
}

static void check_sum(uint64_t sum)
{
    CHECK_EQ(guarded, sum);
    CHECK(!weft_mutex_is_locked(&mutex));
}

static void mutex_has_one_owner_at_a_time(void)
{
    crowd_run_all(12, lock_and_add, NULL, reset, check_sum);
}

/* --- Fibers and threads --------------------------------------------------------------------- */

static int lock_in_all_ways(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < crowd_rounds(); i++) {
        switch (i % 3) {
        case 0:
            CHECK_EQ(weft_mutex_lock(&mutex, WEFT_NEVER), 0);
            guarded++;
            weft_mutex_unlock(&mutex);
            break;
        case 1:
            WEFT_LOCKED(&mutex)
            {
                guarded++;
                CHECK_EQ(weft_yield(), 0);
            }
            break;
        default:
            weft_mutex_hold(&mutex);
            guarded++;
            weft_mutex_unlock(&mutex);
        }
    }
    return 0;
}

static void *lock_on_thread(void *arg)
{
    CHECK_EQ(lock_in_all_ways(arg), 0);
    return NULL;
}

static void fibers_and_threads_share_mutex(void)
{
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        weft_runtime *rt = test_start(workers);
        reset();
        pthread_t threads[3];
        weft_task *tasks[5];
        for (unsigned i = 0; i < 3; i++) {
            CHECK_EQ(pthread_create(&threads[i], NULL, lock_on_thread, NULL), 0);
        }
        for (unsigned i = 0; i < 5; i++) {
            tasks[i] = test_go(rt, lock_in_all_ways, NULL);
        }
        for (unsigned i = 0; i < 5; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        for (unsigned i = 0; i < 3; i++) {
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        }
        CHECK_EQ(guarded, 8 * crowd_rounds());
        CHECK(!weft_mutex_is_locked(&mutex));
        weft_runtime_destroy(rt);
    }
}

static int leave_early(bool by_return)
{
    int turns = 0;
    WEFT_LOCKED(&mutex)
    {
        CHECK(weft_mutex_is_locked(&mutex));
        turns++;
        if (by_return) {
            return turns;
        }
        break;
    }
    return turns;
}

static void leaving_locked_block_early_unlocks(void)
{
    reset();
    CHECK_EQ(leave_early(false), 1);
    CHECK(!weft_mutex_is_locked(&mutex));
    CHECK_EQ(leave_early(true), 1);
    CHECK(!weft_mutex_is_locked(&mutex));
}

static void try_lock_succeeds_only_if_free(void)
{
    reset();
    CHECK(weft_mutex_try_lock(&mutex));
    CHECK(!weft_mutex_try_lock(&mutex));
    weft_mutex_unlock(&mutex);
    CHECK(weft_mutex_try_lock(&mutex));
    weft_mutex_unlock(&mutex);
}

static bool had_it_at_once;

static void try_lock(void)
{
    had_it_at_once = weft_mutex_try_lock(&mutex);
}

static void try_lock_waits_for_latch(void)
{
    reset();
    test_call_latched(&mutex, try_lock);
    CHECK(had_it_at_once);
    test_call_latched(&mutex, try_lock);
    CHECK(!had_it_at_once);
    weft_mutex_unlock(&mutex);
    CHECK_EQ(mutex.opaque[0], 0);
}

/* --- Timeout and cancellation --------------------------------------------------------------- */

static int lock_until(void *arg)
{
    weft_time deadline = *(weft_time *)arg;
    int err = weft_mutex_lock(&mutex, deadline);
    if (err == 0) {
        weft_mutex_unlock(&mutex);
    }
    return err;
}

/* Returns whether the WAITING bit of the word is set. */
static bool has_waiter(void)
{
    return (__atomic_load_n((uint32_t *)&mutex, __ATOMIC_RELAXED) >> WF_LATCH_SHIFT & 2) != 0;
}

static void deadline_ends_wait(void)
{
    reset();
    weft_runtime *rt = test_start(2);
    CHECK(weft_mutex_try_lock(&mutex));
    weft_time deadline = weft_after(5 * WEFT_MS);
    CHECK_EQ(lock_until(&deadline), WEFT_ETIMEDOUT);
    CHECK(!has_waiter());
    deadline = weft_after(5 * WEFT_MS);
    CHECK_EQ(test_run(rt, lock_until, &deadline), WEFT_ETIMEDOUT);
    deadline = 1;
    CHECK_EQ(test_run(rt, lock_until, &deadline), WEFT_ETIMEDOUT);
    weft_mutex_unlock(&mutex);
    CHECK_EQ(mutex.opaque[0], 0);
    CHECK_EQ(test_run(rt, lock_until, &deadline), 0);
    weft_runtime_destroy(rt);
}

static void canceled_waiter_gives_up_and_others_continue(void)
{
    static weft_time never = WEFT_NEVER;
    for (unsigned workers = 1; workers <= 2; workers++) {
        reset();
        weft_runtime *rt = test_start(workers);
        CHECK(weft_mutex_try_lock(&mutex));
        weft_task *tasks[3];
        for (unsigned i = 0; i < 3; i++) {
            tasks[i] = test_go(rt, lock_until, &never);
        }
        test_wait_ns(WEFT_MS);
        weft_cancel(tasks[0]);
        weft_cancel(tasks[2]);
        CHECK_EQ(test_join_soon(tasks[0]), WEFT_ECANCELED);
        CHECK_EQ(test_join_soon(tasks[2]), WEFT_ECANCELED);
        weft_mutex_unlock(&mutex);
        CHECK_EQ(test_join_soon(tasks[1]), 0);
        CHECK_EQ(mutex.opaque[0], 0);
        weft_runtime_destroy(rt);
    }
}

static int hold_although_canceled(void *arg)
{
    (void)arg;
    weft_mutex_hold(&mutex);
    guarded++;
    weft_mutex_unlock(&mutex);
    return weft_cancelled() ? 1 : 0;
}

static void hold_ignores_cancellation(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    CHECK(weft_mutex_try_lock(&mutex));
    weft_task *task = test_go_first(rt, hold_although_canceled, NULL);
    weft_cancel(task);
    test_settle(rt);
    CHECK_EQ(guarded, 0);
    weft_mutex_unlock(&mutex);
    CHECK_EQ(test_join_soon(task), 1);
    CHECK_EQ(guarded, 1);
    weft_runtime_destroy(rt);
}

static void hold_in_blocking_job_ignores_cancellation(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    CHECK(weft_mutex_try_lock(&mutex));
    weft_task *job;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, hold_although_canceled, NULL), 0);
    while (!has_waiter()) {
        CHECK_EQ(weft_yield(), 0);
    }
    weft_cancel(job);
    for (unsigned i = 0; i < 100; i++) {
        CHECK(has_waiter()); /* It keeps waiting and does not poll. */
        CHECK_EQ(weft_yield(), 0);
    }
    weft_mutex_unlock(&mutex);
    CHECK_EQ(test_join_soon(job), 1);
    CHECK_EQ(guarded, 1);
    weft_runtime_destroy(rt);
}

/* Nested blocks. The build warns about shadowed names, so the macro must not create any. */
static void nested_locked_blocks_hold_both_mutexes(void)
{
    static weft_mutex other;
    reset();
    WEFT_LOCKED(&mutex)
    {
        WEFT_LOCKED(&other)
        {
            CHECK(weft_mutex_is_locked(&mutex));
            CHECK(weft_mutex_is_locked(&other));
        }
        CHECK(!weft_mutex_is_locked(&other));
    }
    CHECK(!weft_mutex_is_locked(&mutex));
}

/* --- Fairness ------------------------------------------------------------------------------- */

static _Atomic(bool) had_it;

static int lock_once(void *arg)
{
    (void)arg;
    CHECK_EQ(weft_mutex_lock(&mutex, WEFT_NEVER), 0);
    atomic_store(&had_it, true);
    weft_mutex_unlock(&mutex);
    return 0;
}

/* Other tasks run only while it holds the mutex, so a waiter that is woken always finds it
 * locked again. */
static int lock_until_other_had_it(void *arg)
{
    (void)arg;
    weft_time deadline = test_deadline();
    while (!atomic_load(&had_it)) {
        CHECK_LT(weft_now(), deadline);
        CHECK_EQ(weft_mutex_lock(&mutex, WEFT_NEVER), 0);
        CHECK_EQ(weft_yield(), 0);
        weft_mutex_unlock(&mutex);
    }
    return 0;
}

static void frequent_relocker_does_not_starve_waiter(void)
{
    reset();
    atomic_store(&had_it, false);
    weft_runtime *rt = test_start(1);
    weft_task *hogging = test_go(rt, lock_until_other_had_it, NULL);
    weft_task *wanting = test_go(rt, lock_once, NULL);
    CHECK_EQ(test_join_soon(wanting), 0);
    CHECK_EQ(test_join_soon(hogging), 0);
    weft_runtime_destroy(rt);
}

/* Two waiters whose wait started at the time that the test sets. Each keeps the mutex. */
static weft_op wanting[2];

static struct wf_op *internal_op(weft_op *op)
{
    return (struct wf_op *)op;
}

static int lock_and_keep(void *arg)
{
    weft_op *op = arg;
    weft_mutex_lock_init(op, &mutex);
    return weft_await(&op->future, WEFT_NEVER);
}

static void begin_waiting(weft_runtime *rt, weft_task **tasks, int64_t since)
{
    reset();
    CHECK(weft_mutex_try_lock(&mutex));
    for (unsigned i = 0; i < 2; i++) {
        tasks[i] = test_go_first(rt, lock_and_keep, &wanting[i]);
        internal_op(&wanting[i])->time = since;
    }
}

/* There is one worker, so no other task runs meanwhile. */
static int unlock_and_check(void *arg)
{
    bool is_free = *(bool *)arg;
    weft_mutex_unlock(&mutex);
    CHECK_EQ(weft_mutex_is_locked(&mutex), !is_free);
    CHECK_EQ(weft_mutex_try_lock(&mutex), is_free);
    return 0;
}

static void woken_waiter_that_loses_race_stays_first(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *tasks[2];
    bool is_free = true;
    int64_t not_long_ago = INT64_MAX;
    begin_waiting(rt, tasks, not_long_ago);
    CHECK_EQ(test_run(rt, unlock_and_check, &is_free), 0);
    test_settle(rt);
    CHECK_EQ(weft_try_join(tasks[0], NULL), -EAGAIN);
    CHECK_EQ(internal_op(&wanting[0])->time, not_long_ago);
    for (unsigned i = 0; i < 2; i++) {
        weft_mutex_unlock(&mutex);
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    weft_mutex_unlock(&mutex);
    CHECK_EQ(mutex.opaque[0], 0);
    weft_runtime_destroy(rt);
}

static void mutex_is_handed_over_to_long_waiter(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *tasks[2];
    bool is_free = false;
    begin_waiting(rt, tasks, 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(test_run(rt, unlock_and_check, &is_free), 0);
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    weft_mutex_unlock(&mutex);
    CHECK_EQ(mutex.opaque[0], 0);
    weft_runtime_destroy(rt);
}

/* --- Misuse --------------------------------------------------------------------------------- */

static void unlock_free_mutex(void)
{
    reset();
    weft_mutex_unlock(&mutex);
}

static int lock_task(weft_co *co, void *state)
{
    (void)state;
    WEFT_BEGIN(co);
    CHECK_EQ(weft_mutex_lock(&mutex, WEFT_NEVER), 0);
    WEFT_END(co, 0);
}

static void wait_in_stackless_task(void)
{
    reset();
    CHECK(weft_mutex_try_lock(&mutex));
    weft_runtime *rt = test_start(1);
    (void)test_join(test_spawn(rt, lock_task, NULL));
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(unlock_free_mutex, "weft_mutex_unlock: the mutex is not locked");
    CHECK_ABORTS(wait_in_stackless_task, "weft_mutex_lock: called on a worker outside of a fiber");
}

TEST_MAIN({
    TEST(mutex_has_one_owner_at_a_time),
    TEST(fibers_and_threads_share_mutex),
    TEST(leaving_locked_block_early_unlocks),
    TEST(try_lock_succeeds_only_if_free),
    TEST(try_lock_waits_for_latch),
    TEST(deadline_ends_wait),
    TEST(canceled_waiter_gives_up_and_others_continue),
    TEST(hold_ignores_cancellation),
    TEST(hold_in_blocking_job_ignores_cancellation),
    TEST(nested_locked_blocks_hold_both_mutexes),
    TEST(frequent_relocker_does_not_starve_waiter),
    TEST(woken_waiter_that_loses_race_stays_first),
    TEST(mutex_is_handed_over_to_long_waiter),
    TEST(misuse_aborts_with_message),
})
