/* SPDX-License-Identifier: MIT */
#include "sched/guest.h"

#include <pthread.h>
#include <stdatomic.h>

#include <weft.h>

#include "forks.h"
#include "rt.h"
#include "test.h"

WEFT_PARALLEL(uint64_t, fib, unsigned, n)
{
    if (n < 2) {
        return n;
    }
    uint64_t first;
    uint64_t second;
    fib_both(&first, n - 1, &second, n - 2);
    return first + second;
}

static int compute(void *arg)
{
    (void)arg;
    CHECK_EQ(fib(16), 987);
    return 5;
}

static void external_thread_gets_result(void)
{
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        weft_runtime *rt = test_start(workers);
        for (uint64_t i = 0; i < test_scale(200); i++) {
            CHECK_EQ(weft_par_run(rt, compute, NULL), 5);
        }
        weft_runtime_destroy(rt);
    }
}

static _Atomic(uint64_t) kept;
static _Atomic(uint64_t) enough;

static int keep_worker(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_store(&kept, 1);
    test_wait_for(&enough, 1);
    return 0;
}

static _Atomic(uint64_t) halves;
static _Atomic(pthread_t) other_half;

static void first_half(void *arg)
{
    (void)arg;
    atomic_fetch_add(&halves, 1);
    test_wait_for(&halves, 2);
}

static void second_half(void *arg)
{
    (void)arg;
    atomic_store(&other_half, pthread_self());
    atomic_fetch_add(&halves, 1);
    test_wait_for(&halves, 2);
}

static void run_halves(void *arg)
{
    (void)arg;
    weft_join2(first_half, NULL, second_half, NULL);
}

static void wait_for_first_half(void *arg)
{
    (void)arg;
    test_wait_for(&halves, 1);
}

static int fork_halves(void *arg)
{
    (void)arg;
    weft_join2(wait_for_first_half, NULL, run_halves, NULL);
    return 0;
}

/*
 * Goal:   an external thread helps with the fork that it waits for.
 * Method: one worker has the fork, which forks two halves that must run at the same time. The
 *         other worker is busy, so only the external thread can run the second half.
 */
static void external_thread_helps_with_its_own_fork(void)
{
    weft_runtime *rt = test_start(2);
    for (unsigned i = 0; i < 20; i++) {
        atomic_store(&kept, 0);
        atomic_store(&enough, 0);
        atomic_store(&halves, 0);
        weft_task *busy = test_spawn(rt, keep_worker, NULL);
        test_wait_for(&kept, 1);
        CHECK_EQ(weft_par_run(rt, fork_halves, NULL), 0);
        CHECK(pthread_equal(atomic_load(&other_half), pthread_self()));
        atomic_store(&enough, 1);
        CHECK_EQ(test_join_soon(busy), 0);
    }
    weft_runtime_destroy(rt);
}

/* --- Help from workers ------------------------------------------------------------------ */

static int meet_at_once(void *arg)
{
    (void)arg;
    test_meet();
    return 0;
}

/*
 * Goal:   a long computation is shared, although all threads sleep when it starts and it reaches
 *         no fork or join for a long time.
 * Method: each of two functions waits for the other. From time to time all is quiet for so long
 *         that the monitor sleeps as well.
 */
static void two_computations_run_concurrently(void)
{
    weft_runtime *rt = test_start(1);
    for (unsigned i = 0; i < 20; i++) {
        CHECK_EQ(weft_par_run(rt, meet_at_once, NULL), 0);
        if (i % 5 == 0) {
            CHECK_EQ(weft_sleep(30 * WEFT_MS), 0);
        }
    }
    weft_runtime_destroy(rt);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

static int fork_little(void *arg)
{
    (void)arg;
    weft_join2(do_nothing, NULL, do_nothing, NULL);
    return 0;
}

/* A call that was interrupted may look like a long one. */
static void small_call_wakes_no_worker(void)
{
    enum {
        CALLS = 2000
    };
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_join_soon(test_spawn(rt, test_return_7, NULL)), 7);
    uint64_t before = test_wakes(rt);
    for (unsigned i = 0; i < CALLS; i++) {
        CHECK_EQ(weft_par_run(rt, fork_little, NULL), 0);
    }
    CHECK_LE(test_wakes(rt) - before, CALLS / 10);
    weft_runtime_destroy(rt);
}

/* --- Many external threads -------------------------------------------------------------- */

static void *compute_as_external_thread(void *arg)
{
    for (uint64_t i = 0; i < test_scale(100); i++) {
        CHECK_EQ(weft_par_run(arg, compute, NULL), 5);
    }
    return NULL;
}

static void external_threads_may_exceed_slots(void)
{
    enum {
        THREADS = WF_GUESTS_MAX + 4
    };
    weft_runtime *rt = test_start(2);
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, compute_as_external_thread, rt), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    weft_runtime_destroy(rt);
}

static weft_runtime *other;

static int compute_in_both(void *arg)
{
    weft_forked forked;
    weft_fork(&forked, do_nothing, NULL);
    CHECK_EQ(weft_par_run(other, compute, NULL), 5);
    CHECK_EQ(weft_par_run(arg, compute, NULL), 5);
    weft_fork_join(&forked);
    return compute(NULL);
}

static int compute_on_worker(void *arg)
{
    return weft_par_run(arg, compute, NULL);
}

static void external_thread_may_use_two_runtimes(void)
{
    weft_runtime *rt = test_start(2);
    other = test_start(2);
    for (uint64_t i = 0; i < test_scale(100); i++) {
        CHECK_EQ(weft_par_run(rt, compute_in_both, rt), 5);
        CHECK_EQ(test_run(rt, compute_on_worker, rt), 5);
    }
    weft_runtime_destroy(other);
    weft_runtime_destroy(rt);
}

static int descend_far(void *arg)
{
    (void)arg;
    test_descend(test_scale(200000));
    return 0;
}

static void *descend_as_external_thread(void *arg)
{
    CHECK_EQ(weft_par_run(arg, descend_far, NULL), 0);
    return NULL;
}

static void recursion_exceeds_stack_of_external_thread(void)
{
    weft_runtime *rt = test_start(1);
    pthread_t thread;
    pthread_attr_t attributes;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
    CHECK_EQ(pthread_create(&thread, &attributes, descend_as_external_thread, rt), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(pthread_attr_destroy(&attributes), 0);
    weft_runtime_destroy(rt);
}

static int forget_to_join(void *arg)
{
    (void)arg;
    weft_forked forked;
    weft_fork(&forked, do_nothing, NULL);
    return 0;
}

static void leave_without_join(void)
{
    (void)weft_par_run(test_start(1), forget_to_join, NULL);
}

static void missing_join_aborts_with_message(void)
{
    CHECK_ABORTS(leave_without_join,
                 "weft_par_run: the function (#0) returned with 1 forks that were not joined");
}

static int end_thread(void *arg)
{
    (void)arg;
    pthread_exit(NULL);
}

static int fork_and_end_thread(void *arg)
{
    weft_join2(do_nothing, NULL, do_nothing, NULL);
    return end_thread(arg);
}

static int (*ends_thread)(void *arg);

static void *run_and_end(void *arg)
{
    (void)weft_par_run(arg, ends_thread, NULL);
    return NULL;
}

static void run_on_thread(int (*function)(void *arg))
{
    weft_runtime *rt = test_start(1);
    pthread_t thread;
    ends_thread = function;
    CHECK_EQ(pthread_create(&thread, NULL, run_and_end, rt), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    weft_runtime_destroy(rt);
}

static void end_before_fork(void)
{
    run_on_thread(end_thread);
}

static void end_after_fork(void)
{
    run_on_thread(fork_and_end_thread);
}

static void thread_that_exits_in_run_aborts_with_message(void)
{
    static const char message[] = "weft_par_run: the function ended its thread";
    CHECK_ABORTS(end_before_fork, message);
    CHECK_ABORTS(end_after_fork, message);
}

TEST_MAIN({
    TEST(thread_that_exits_in_run_aborts_with_message),
    TEST(missing_join_aborts_with_message),
    TEST(external_thread_gets_result),
    TEST(two_computations_run_concurrently),
    TEST(external_thread_helps_with_its_own_fork),
    TEST(small_call_wakes_no_worker),
    TEST(external_threads_may_exceed_slots),
    TEST(external_thread_may_use_two_runtimes),
    TEST(recursion_exceeds_stack_of_external_thread),
})
