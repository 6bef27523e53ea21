/* SPDX-License-Identifier: MIT */
/*
 * par_lock.c - lock held across a fork-join.
 */
#include <stdatomic.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

enum {
    CONTENDERS = 20,
    ROUNDS = 50,
};

static _Atomic(bool) is_locked;
static _Atomic(uint64_t) waiting;
static _Atomic(uint64_t) locked_times;

/* Suspends: the worker runs other tasks meanwhile. */
static void take_lock(void)
{
    while (atomic_exchange(&is_locked, true)) {
        CHECK_EQ(weft_yield(), 0);
    }
    atomic_fetch_add(&locked_times, 1);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

/* Lasts until all contenders want the lock. */
static void wait_for_contenders(void *arg)
{
    (void)arg;
    while (atomic_load(&waiting) < CONTENDERS) {
        CHECK_EQ(weft_yield(), 0);
    }
}

static void hold_lock_across_join(void *arg)
{
    (void)arg;
    take_lock();
    weft_join2(do_nothing, NULL, wait_for_contenders, NULL);
    atomic_store(&is_locked, false);
}

static void want_lock(void *arg)
{
    (void)arg;
    while (atomic_load(&locked_times) == 0) {
        CHECK_EQ(weft_yield(), 0);
    }
    atomic_fetch_add(&waiting, 1);
    take_lock();
    atomic_store(&is_locked, false);
}

static void contend(void *arg)
{
    weft_call calls[CONTENDERS];
    (void)arg;
    for (unsigned i = 0; i < CONTENDERS; i++) {
        calls[i] = (weft_call){ want_lock, NULL };
    }
    weft_join_n(calls, CONTENDERS);
}

static int contend_for_lock(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        atomic_store(&waiting, 0);
        atomic_store(&locked_times, 0);
        weft_join2(hold_lock_across_join, NULL, contend, NULL);
        CHECK_EQ(locked_times, CONTENDERS + 1);
        CHECK(!is_locked);
    }
    return 0;
}

/*
 * Goal:   a lock may be held across a join. A worker whose fiber waits in a join runs other tasks,
 *         also some that want the lock, but not on top of the fiber's stack: the fiber continues
 *         when its fork is done, regardless of the other waiters.
 * Method: the fork does not end before all contenders have started and want the lock.
 */
static void lock_held_across_join_is_released(void)
{
    weft_runtime *rt = test_start(test_workers(2));
    CHECK_EQ(test_run(rt, contend_for_lock, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(lock_held_across_join_is_released),
})
