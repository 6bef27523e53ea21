/* SPDX-License-Identifier: MIT */
/*
 * lock_model.c - src/base/lock.c and lock.h: the lock with its slow side.
 *
 * What catches what: two threads show that the lock excludes and hands over what
 * was written. That a sleeper is left behind takes three: one that holds, one that
 * sleeps, and one that takes the lock when it is free for a moment.
 */
#include "base/lock.h"

#include "mc.h"

static struct wf_lock lock;
static struct wf_lock higher;
static int guarded; /* plain: a race is a lock that two have */

static void begin(void)
{
    wf_lock_init(&lock, WF_RANK_ROOM);
    wf_lock_init(&higher, WF_RANK_INJECT);
    mc_name(&lock, sizeof lock, "lock");
    mc_name(&higher, sizeof higher, "higher");
}

static void add_one(void *arg)
{
    (void)arg;
    wf_lock(&lock);
    mc_assert(wf_lock_is_held(&lock));
    guarded++;
    wf_unlock(&lock);
}

static void add_two(void *arg)
{
    add_one(arg);
    add_one(arg);
}

static void end(int total)
{
    mc_assert(guarded == total);
    /* relaxed: everybody is done. */
    mc_assert(wf_load_relaxed(&lock.word) == WF_LOCK_FREE);
}

/*
 * Goal:   one at a time, and each sees what the last one wrote.
 * Method: two threads take it twice each.
 */
static void two_threads_twice(void)
{
    begin();
    mc_go(add_two, NULL);
    add_two(NULL);
    mc_join();
    end(4);
}

/*
 * Goal:   nobody sleeps on a free lock for ever.
 * Method: three threads: while one sleeps, another may take the lock by the fast
 *         way, and find HELD where it should find CONTENDED.
 */
static void three_threads(void)
{
    begin();
    mc_go(add_one, NULL);
    mc_go(add_one, NULL);
    add_one(NULL);
    mc_join();
    end(3);
}

static void add_one_higher(void *arg)
{
    (void)arg;
    wf_lock(&lock);
    wf_lock(&higher);
    guarded++;
    wf_unlock(&higher);
    wf_unlock(&lock);
}

/*
 * Goal:   two locks in rising rank are no deadlock, and not refused.
 * Method: one takes both, the other one after the other.
 */
static void two_locks_in_order(void)
{
    begin();
    mc_go(add_one_higher, NULL);
    wf_lock(&higher);
    wf_unlock(&higher);
    add_one(NULL);
    mc_join();
    end(2);
}

/*
 * Goal:   locks in falling rank are refused, even if nobody waits.
 * Method: one thread.
 */
static void wrong_order_is_refused(void)
{
    begin();
    wf_lock(&higher);
    wf_lock(&lock);
}

static void unlock_it(void *arg)
{
    (void)arg;
    wf_unlock(&lock);
}

/*
 * Goal:   a thread cannot release what another holds.
 * Method: the other does nothing but that.
 */
static void foreign_unlock_is_refused(void)
{
    begin();
    wf_lock(&lock);
    mc_go(unlock_it, NULL);
    mc_join();
}

static const struct mc_test tests[] = {
    { .name = "two_threads_twice", .run = two_threads_twice },
    { .name = "two_threads_and_spurious_wakes", .run = two_threads_twice, .spurious_wakes = 1 },
    { .name = "three_threads", .run = three_threads },
    { .name = "two_locks_in_order", .run = two_locks_in_order },
    { .name = "wrong_order_is_refused", .run = wrong_order_is_refused, .expect = MC_ASSERTION },
    { .name = "foreign_unlock_is_refused",
      .run = foreign_unlock_is_refused,
      .expect = MC_ASSERTION },
};

MC_MAIN(tests)
