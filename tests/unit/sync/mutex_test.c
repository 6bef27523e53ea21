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
static uint64_t guarded; /* plain: under ThreadSanitizer, a race is a mutex that two have */

static void reset(void)
{
    memset(&mutex, 0, sizeof mutex);
    guarded = 0;
}

/* --- One at a time ------------------------------------------------------------------------ */

/* Every tenth time it yields with the mutex held. */
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

static void one_at_a_time_has_it(void)
{
    crowd_run_all(12, lock_and_add, NULL, reset, check_sum);
}

/* --- Where there is a stack ----------------------------------------------------------------- */

static int lock_in_place(void *arg)
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
    CHECK_EQ(lock_in_place(arg), 0);
    return NULL;
}

static void fibers_and_threads_share_one(void)
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
            tasks[i] = test_go(rt, lock_in_place, NULL);
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

static void a_block_that_is_left_early_unlocks_it(void)
{
    reset();
    CHECK_EQ(leave_early(false), 1);
    CHECK(!weft_mutex_is_locked(&mutex));
    CHECK_EQ(leave_early(true), 1);
    CHECK(!weft_mutex_is_locked(&mutex));
}

static void a_try_says_whether_somebody_has_it(void)
{
    reset();
    CHECK(weft_mutex_try_lock(&mutex));
    CHECK(!weft_mutex_try_lock(&mutex));
    weft_mutex_unlock(&mutex);
    CHECK(weft_mutex_try_lock(&mutex));
    weft_mutex_unlock(&mutex);
}

static bool had_it_at_once;

static void try_it(void)
{
    had_it_at_once = weft_mutex_try_lock(&mutex);
}

static void a_try_that_meets_another_says_so_too(void)
{
    reset();
    test_call_latched(&mutex, try_it);
    CHECK(had_it_at_once);
    test_call_latched(&mutex, try_it);
    CHECK(!had_it_at_once);
    weft_mutex_unlock(&mutex);
    CHECK_EQ(mutex.opaque[0], 0);
}

/* --- Giving up ------------------------------------------------------------------------------ */

static int lock_until(void *arg)
{
    weft_time deadline = *(weft_time *)arg;
    int err = weft_mutex_lock(&mutex, deadline);
    if (err == 0) {
        weft_mutex_unlock(&mutex);
    }
    return err;
}

/* Does somebody wait? The bit of the word that says so. */
static bool has_waiter(void)
{
    return (__atomic_load_n((uint32_t *)&mutex, __ATOMIC_RELAXED) >> WF_LATCH_SHIFT & 2) != 0;
}

static void a_deadline_ends_the_wait(void)
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

static void a_cancelled_task_gives_up_and_others_go_on(void)
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

static int hold_although_cancelled(void *arg)
{
    (void)arg;
    weft_mutex_hold(&mutex);
    guarded++;
    weft_mutex_unlock(&mutex);
    return weft_cancelled() ? 1 : 0;
}

static void who_holds_it_is_not_cancelled_meanwhile(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    CHECK(weft_mutex_try_lock(&mutex));
    weft_task *task = test_go_first(rt, hold_although_cancelled, NULL);
    weft_cancel(task);
    test_settle(rt);
    CHECK_EQ(guarded, 0);
    weft_mutex_unlock(&mutex);
    CHECK_EQ(test_join_soon(task), 1);
    CHECK_EQ(guarded, 1);
    weft_runtime_destroy(rt);
}

static void a_cancelled_blocking_job_holds_it_too(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    CHECK(weft_mutex_try_lock(&mutex));
    weft_task *job;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, hold_although_cancelled, NULL), 0);
    while (!has_waiter()) {
        CHECK_EQ(weft_yield(), 0);
    }
    weft_cancel(job);
    for (unsigned i = 0; i < 100; i++) {
        CHECK(has_waiter()); /* It waits on, and does not look again and again. */
        CHECK_EQ(weft_yield(), 0);
    }
    weft_mutex_unlock(&mutex);
    CHECK_EQ(test_join_soon(job), 1);
    CHECK_EQ(guarded, 1);
    weft_runtime_destroy(rt);
}

/* Blocks in each other, with warnings for names that hide others. */
static void two_are_held_at_once(void)
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

static int want_it_once(void *arg)
{
    (void)arg;
    CHECK_EQ(weft_mutex_lock(&mutex, WEFT_NEVER), 0);
    atomic_store(&had_it, true);
    weft_mutex_unlock(&mutex);
    return 0;
}

/* Others run only while it has the mutex: who was woken to take it finds it taken again. */
static int hog(void *arg)
{
    (void)arg;
    weft_time start = weft_now();
    while (!atomic_load(&had_it)) {
        CHECK(weft_now() - start < 5 * WEFT_S);
        CHECK_EQ(weft_mutex_lock(&mutex, WEFT_NEVER), 0);
        CHECK_EQ(weft_yield(), 0);
        weft_mutex_unlock(&mutex);
    }
    return 0;
}

static void one_who_comes_back_again_and_again_does_not_keep_others_out(void)
{
    reset();
    atomic_store(&had_it, false);
    weft_runtime *rt = test_start(1);
    weft_task *hogging = test_go(rt, hog, NULL);
    weft_task *wanting = test_go(rt, want_it_once, NULL);
    CHECK_EQ(test_join_soon(wanting), 0);
    CHECK_EQ(test_join_soon(hogging), 0);
    weft_runtime_destroy(rt);
}

/* Two who wait, as if since the time that the test says. Each keeps the mutex. */
static weft_op wanting[2];

static struct wf_op *inside(weft_op *op)
{
    return (struct wf_op *)op;
}

static int take_and_keep(void *arg)
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
        tasks[i] = test_go_first(rt, take_and_keep, &wanting[i]);
        inside(&wanting[i])->time = since;
    }
}

/* With one worker: nobody else runs meanwhile. */
static int unlock_and_look(void *arg)
{
    bool is_free = *(bool *)arg;
    weft_mutex_unlock(&mutex);
    CHECK_EQ(weft_mutex_is_locked(&mutex), !is_free);
    CHECK_EQ(weft_mutex_try_lock(&mutex), is_free);
    return 0;
}

static void who_finds_it_taken_is_still_the_first(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *tasks[2];
    bool is_free = true;
    int64_t not_long_ago = INT64_MAX;
    begin_waiting(rt, tasks, not_long_ago);
    CHECK_EQ(test_run(rt, unlock_and_look, &is_free), 0);
    test_settle(rt);
    CHECK_EQ(weft_try_join(tasks[0], NULL), -EAGAIN);
    CHECK_EQ(inside(&wanting[0])->time, not_long_ago);
    for (unsigned i = 0; i < 2; i++) {
        weft_mutex_unlock(&mutex);
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    weft_mutex_unlock(&mutex);
    CHECK_EQ(mutex.opaque[0], 0);
    weft_runtime_destroy(rt);
}

static void it_is_handed_to_one_that_waits_for_long(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *tasks[2];
    bool is_free = false;
    begin_waiting(rt, tasks, 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(test_run(rt, unlock_and_look, &is_free), 0);
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    weft_mutex_unlock(&mutex);
    CHECK_EQ(mutex.opaque[0], 0);
    weft_runtime_destroy(rt);
}

/* --- Misuse --------------------------------------------------------------------------------- */

static void unlock_a_free_one(void)
{
    reset();
    weft_mutex_unlock(&mutex);
}

static int lock_in_a_body(weft_co *co, void *state)
{
    (void)state;
    WEFT_BEGIN(co);
    CHECK_EQ(weft_mutex_lock(&mutex, WEFT_NEVER), 0);
    WEFT_END(co, 0);
}

static void wait_in_a_body(void)
{
    reset();
    CHECK(weft_mutex_try_lock(&mutex));
    weft_runtime *rt = test_start(1);
    (void)test_join(test_spawn(rt, lock_in_a_body, NULL));
}

static void misuse_aborts_with_a_sentence(void)
{
    CHECK_ABORTS(unlock_a_free_one, "weft_mutex_unlock: the mutex is not locked");
    CHECK_ABORTS(wait_in_a_body, "weft_mutex_lock: called on a worker outside of a fiber");
}

TEST_MAIN({
    TEST(one_at_a_time_has_it),
    TEST(fibers_and_threads_share_one),
    TEST(a_block_that_is_left_early_unlocks_it),
    TEST(a_try_says_whether_somebody_has_it),
    TEST(a_try_that_meets_another_says_so_too),
    TEST(a_deadline_ends_the_wait),
    TEST(a_cancelled_task_gives_up_and_others_go_on),
    TEST(who_holds_it_is_not_cancelled_meanwhile),
    TEST(a_cancelled_blocking_job_holds_it_too),
    TEST(two_are_held_at_once),
    TEST(one_who_comes_back_again_and_again_does_not_keep_others_out),
    TEST(who_finds_it_taken_is_still_the_first),
    TEST(it_is_handed_to_one_that_waits_for_long),
    TEST(misuse_aborts_with_a_sentence),
})
