/* SPDX-License-Identifier: MIT */
#include "base/atomic.h"

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "test.h"

static void load_returns_what_was_stored(void)
{
    _Atomic(uint64_t) word = 1;
    CHECK_EQ(wf_load_relaxed(&word), 1);
    wf_store_relaxed(&word, 2u);
    CHECK_EQ(wf_load_acquire(&word), 2);
    wf_store_release(&word, UINT64_C(0x123456789ABCDEF0));
    CHECK_EQ(wf_load_relaxed(&word), 0x123456789ABCDEF0);
}

static void exchange_returns_the_old_and_stores_the_new(void)
{
    _Atomic(uint32_t) word = 1;
    CHECK_EQ(wf_xchg_relaxed(&word, 2u), 1);
    CHECK_EQ(wf_xchg_acquire(&word, 3u), 2);
    CHECK_EQ(wf_xchg_release(&word, 4u), 3);
    CHECK_EQ(wf_xchg_acq_rel(&word, 5u), 4);
    CHECK_EQ(wf_load_relaxed(&word), 5);
}

/* Two words that differ in their upper half only, so that a compare of half a
 * word is not enough. */
#define FOUND  UINT64_C(0x700000001)
#define WANTED UINT64_C(0x800000001)

/* A success stores and leaves expected alone; a failure does the reverse. */
#define CHECK_CAS(cas)                                                                             \
    do {                                                                                           \
        _Atomic(uint64_t) word = FOUND;                                                            \
        uint64_t expected = WANTED;                                                                \
        CHECK(!cas(&word, &expected, UINT64_C(9)));                                                \
        CHECK(expected == FOUND);                                                                  \
        CHECK(wf_load_relaxed(&word) == FOUND);                                                    \
        while (!cas(&word, &expected, UINT64_C(9))) {                                              \
            CHECK(expected == FOUND);                                                              \
        }                                                                                          \
        CHECK(expected == FOUND);                                                                  \
        CHECK_EQ(wf_load_relaxed(&word), 9);                                                       \
    } while (0)

static void failed_cas_stores_what_it_found(void)
{
    CHECK_CAS(wf_cas_relaxed);
    CHECK_CAS(wf_cas_acquire);
    CHECK_CAS(wf_cas_release);
    CHECK_CAS(wf_cas_acq_rel);
}

static void failed_weak_cas_stores_what_it_found(void)
{
    CHECK_CAS(wf_cas_weak_relaxed);
    CHECK_CAS(wf_cas_weak_acquire);
    CHECK_CAS(wf_cas_weak_release);
    CHECK_CAS(wf_cas_weak_acq_rel);
}

static void strong_cas_succeeds_at_once(void)
{
    _Atomic(uint32_t) word = 0;
    for (uint32_t i = 0; i < 10000; i += 4) {
        uint32_t expected = i;
        CHECK(wf_cas_relaxed(&word, &expected, i + 1));
        expected = i + 1;
        CHECK(wf_cas_acquire(&word, &expected, i + 2));
        expected = i + 2;
        CHECK(wf_cas_release(&word, &expected, i + 3));
        expected = i + 3;
        CHECK(wf_cas_acq_rel(&word, &expected, i + 4));
    }
}

static void cas_takes_pointers(void)
{
    int targets[2];
    _Atomic(int *) word = NULL;
    int *expected = &targets[0];
    CHECK(!wf_cas_acq_rel(&word, &expected, &targets[1]));
    CHECK(expected == NULL);
    CHECK(wf_cas_acq_rel(&word, &expected, &targets[1]));
    CHECK(wf_load_relaxed(&word) == &targets[1]);
}

static void fetch_returns_the_value_before(void)
{
    _Atomic(uint32_t) word = 10;
    CHECK_EQ(wf_fetch_add_relaxed(&word, 5u), 10);
    CHECK_EQ(wf_fetch_add_acquire(&word, 0u), 15);
    CHECK_EQ(wf_fetch_add_acq_rel(&word, 1u), 15);
    CHECK_EQ(wf_fetch_sub_relaxed(&word, 2u), 16);
    CHECK_EQ(wf_fetch_sub_release(&word, 3u), 14);
    CHECK_EQ(wf_fetch_sub_acq_rel(&word, 1u), 11);
    CHECK_EQ(wf_fetch_or_release(&word, 0xF0u), 10);
    CHECK_EQ(wf_fetch_and_acq_rel(&word, 0xF2u), 0xFA);
    CHECK_EQ(wf_load_relaxed(&word), 0xF2);
}

static void fetch_wraps_around(void)
{
    _Atomic(uint32_t) word = UINT32_MAX;
    CHECK_EQ(wf_fetch_add_relaxed(&word, 2u), UINT32_MAX);
    CHECK_EQ(wf_fetch_sub_relaxed(&word, 2u), 1);
    CHECK_EQ(wf_load_relaxed(&word), UINT32_MAX);
}

/* Two threads that run a test's rounds side by side. Each field has a line of
 * its own: a shared one would keep the threads in step by itself. */
struct duel {
    _Alignas(WF_CACHE_LINE) _Atomic(uint64_t) round[2]; /* each thread writes its own */
    _Alignas(WF_CACHE_LINE) _Atomic(uint32_t) x;
    _Alignas(WF_CACHE_LINE) _Atomic(uint32_t) y;
    _Alignas(WF_CACHE_LINE) uint32_t seen[2]; /* each thread writes its own */
    uint64_t rounds;                          /* constant */
    int64_t deadline; /* constant: on a busy machine, each meeting costs a time slice */
    bool is_over;     /* the first thread writes */
};

static struct duel duel;

/* Waits until both threads are at this point. */
static void meet(int self, uint64_t point)
{
    wf_store_release(&duel.round[self], point);
    for (int spins = 0; wf_load_acquire(&duel.round[1 - self]) < point; spins++) {
        if (spins < 1000) {
            wf_cpu_relax();
        } else {
            (void)sched_yield();
        }
    }
}

static void run_duel(void *(*second)(void *), void *(*first)(void *), uint64_t rounds)
{
    duel = (struct duel){ .rounds = rounds, .deadline = wf_clock_now() + 500000000 };
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, second, NULL), 0);
    (void)first(NULL);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void store_and_look(_Atomic(uint32_t) *mine, _Atomic(uint32_t) *theirs, int self)
{
    wf_store_relaxed(mine, 1u);
    wf_fence_full();
    duel.seen[self] = wf_load_relaxed(theirs);
}

static void *fence_second(void *arg)
{
    for (uint64_t i = 0; !duel.is_over; i++) {
        meet(1, 3 * i + 1);
        store_and_look(&duel.y, &duel.x, 1);
        meet(1, 3 * i + 2);
        meet(1, 3 * i + 3);
    }
    return arg;
}

static void *fence_first(void *arg)
{
    for (uint64_t i = 0; !duel.is_over; i++) {
        meet(0, 3 * i + 1);
        store_and_look(&duel.x, &duel.y, 0);
        meet(0, 3 * i + 2);
        CHECK(duel.seen[0] == 1 || duel.seen[1] == 1);
        wf_store_relaxed(&duel.x, 0u);
        wf_store_relaxed(&duel.y, 0u);
        duel.is_over = i + 1 == duel.rounds || wf_clock_now() > duel.deadline;
        meet(0, 3 * i + 3);
    }
    return arg;
}

/*
 * Goal:   the full fence keeps a store before a later load.
 * Method: store buffering. Each thread stores to its word, then reads the
 *         other's. Without a fence both may read zero; with it, never.
 */
static void full_fence_keeps_store_before_load(void)
{
    run_duel(fence_second, fence_first, test_scale(200000));
}

static void *message_sender(void *arg)
{
    for (uint32_t i = 1; i <= duel.rounds; i++) {
        wf_store_relaxed(&duel.x, i);
        wf_store_release(&duel.y, i);
    }
    return arg;
}

static void *message_receiver(void *arg)
{
    uint32_t flag = 0;
    for (uint32_t spins = 0; flag < duel.rounds; spins++) {
        flag = wf_load_acquire(&duel.y);
        CHECK_GE(wf_load_relaxed(&duel.x), flag);
        if (spins % 1000 == 0) {
            (void)sched_yield();
        }
    }
    return arg;
}

/*
 * Goal:   what is written before a release is seen after the acquire.
 * Method: message passing. The sender writes a number, then releases it as the
 *         flag; the receiver never finds a number older than the flag.
 */
static void acquire_sees_what_was_released(void)
{
    run_duel(message_sender, message_receiver, test_scale(2000000));
}

static void *add_and_subtract(void *arg)
{
    for (uint64_t i = 0; i < duel.rounds; i++) {
        (void)wf_fetch_add_relaxed(&duel.x, 3u);
        (void)wf_fetch_sub_relaxed(&duel.x, 1u);
        uint32_t seen = wf_load_relaxed(&duel.y);
        while (!wf_cas_weak_relaxed(&duel.y, &seen, seen + 1)) {
            wf_cpu_relax();
        }
    }
    return arg;
}

/*
 * Goal:   no read-modify-write is lost.
 * Method: two threads add, subtract and CAS the same words; the sums are exact.
 */
static void read_modify_writes_of_two_threads_all_count(void)
{
    run_duel(add_and_subtract, add_and_subtract, test_scale(500000));
    CHECK_EQ(wf_load_relaxed(&duel.x), 4 * duel.rounds);
    CHECK_EQ(wf_load_relaxed(&duel.y), 2 * duel.rounds);
}

TEST_MAIN({ TEST(load_returns_what_was_stored), TEST(exchange_returns_the_old_and_stores_the_new),
            TEST(failed_cas_stores_what_it_found), TEST(failed_weak_cas_stores_what_it_found),
            TEST(strong_cas_succeeds_at_once), TEST(cas_takes_pointers),
            TEST(fetch_returns_the_value_before), TEST(fetch_wraps_around),
            TEST(full_fence_keeps_store_before_load), TEST(acquire_sees_what_was_released),
            TEST(read_modify_writes_of_two_threads_all_count) })
