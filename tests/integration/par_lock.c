/* SPDX-License-Identifier: MIT */
/*
 * par_lock.c - a lock that is held across a join.
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

/* Suspends: others run on this worker meanwhile. */
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

/* Lasts until all others want the lock. */
static void wait_for_contenders(void *arg)
{
    (void)arg;
    while (atomic_load(&waiting) < CONTENDERS) {
        CHECK_EQ(weft_yield(), 0);
    }
}

static void hold_lock_across_a_join(void *arg)
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

static int contend_for_a_lock(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        atomic_store(&waiting, 0);
        atomic_store(&locked_times, 0);
        weft_join2(hold_lock_across_a_join, NULL, contend, NULL);
        CHECK_EQ(locked_times, CONTENDERS + 1);
        CHECK(!is_locked);
    }
    return 0;
}

/*
 * Goal:   a lock may be held across a join. A worker whose fiber waits there runs others,
 *         also some who want the lock, but not on top of the fiber's stack: it goes on when
 *         its fork is over, whoever waits for it.
 * Method: the fork is not over before everybody else wants the lock, and has begun.
 */
static void a_lock_is_held_across_a_join(void)
{
    weft_runtime *rt = test_start(test_workers(2));
    CHECK_EQ(test_run(rt, contend_for_a_lock, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(a_lock_is_held_across_a_join),
})
