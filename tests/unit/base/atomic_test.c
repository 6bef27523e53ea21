/* SPDX-License-Identifier: MIT */
#include "base/atomic.h"

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "test.h"

static void load_returns_stored_value(void)
{
    _Atomic(uint64_t) word = 1;
    CHECK_EQ(wf_load_relaxed(&word), 1);
    wf_store_relaxed(&word, 2u);
    CHECK_EQ(wf_load_acquire(&word), 2);
    wf_store_release(&word, UINT64_C(0x123456789ABCDEF0));
    CHECK_EQ(wf_load_relaxed(&word), 0x123456789ABCDEF0);
}

static void exchange_returns_old_and_stores_new_value(void)
{
    _Atomic(uint32_t) word = 1;
    CHECK_EQ(wf_xchg_relaxed(&word, 2u), 1);
    CHECK_EQ(wf_xchg_acquire(&word, 3u), 2);
    CHECK_EQ(wf_xchg_release(&word, 4u), 3);
    CHECK_EQ(wf_xchg_acq_rel(&word, 5u), 4);
    CHECK_EQ(wf_load_relaxed(&word), 5);
}

/* The words differ only in their upper half, so comparing half a word is not enough. */
#define FOUND  UINT64_C(0x700000001)
#define WANTED UINT64_C(0x800000001)

/* A successful CAS stores and leaves expected alone. A failed one does the reverse. */
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

static void failed_cas_updates_expected(void)
{
    CHECK_CAS(wf_cas_relaxed);
    CHECK_CAS(wf_cas_acquire);
    CHECK_CAS(wf_cas_release);
    CHECK_CAS(wf_cas_acq_rel);
}

static void failed_weak_cas_updates_expected(void)
{
    CHECK_CAS(wf_cas_weak_relaxed);
    CHECK_CAS(wf_cas_weak_acquire);
    CHECK_CAS(wf_cas_weak_release);
    CHECK_CAS(wf_cas_weak_acq_rel);
}

static void strong_cas_never_fails_spuriously(void)
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

static void cas_works_on_pointers(void)
{
    int targets[2];
    _Atomic(int *) word = NULL;
    int *expected = &targets[0];
    CHECK(!wf_cas_acq_rel(&word, &expected, &targets[1]));
    CHECK(expected == NULL);
    CHECK(wf_cas_acq_rel(&word, &expected, &targets[1]));
    CHECK(wf_load_relaxed(&word) == &targets[1]);
}

static void fetch_op_returns_previous_value(void)
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

static void fetch_add_and_sub_wrap_around(void)
{
    _Atomic(uint32_t) word = UINT32_MAX;
    CHECK_EQ(wf_fetch_add_relaxed(&word, 2u), UINT32_MAX);
    CHECK_EQ(wf_fetch_sub_relaxed(&word, 2u), 1);
    CHECK_EQ(wf_load_relaxed(&word), UINT32_MAX);
}

/* Two threads that run the rounds of a test side by side. Each field has its own cache line: a
 * shared one would keep the threads in step by itself. */
struct duel {
    _Alignas(WF_CACHE_LINE) _Atomic(uint64_t) round[2]; /* each thread writes its own element */
    _Alignas(WF_CACHE_LINE) _Atomic(uint32_t) x;
    _Alignas(WF_CACHE_LINE) _Atomic(uint32_t) y;
    _Alignas(WF_CACHE_LINE) uint32_t seen[2]; /* each thread writes its own element */
    uint64_t rounds;                          /* constant */
    int64_t deadline; /* constant; on a busy machine each round can cost a time slice */
    bool is_over;     /* written by the first thread */
};

static struct duel duel;

/* Waits until both threads have reached this point. */
static void wait_for_peer(int self, uint64_t point)
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

static void store_then_load(_Atomic(uint32_t) *mine, _Atomic(uint32_t) *theirs, int self)
{
    wf_store_relaxed(mine, 1u);
    wf_fence_full();
    duel.seen[self] = wf_load_relaxed(theirs);
}

static void *fence_second(void *arg)
{
    for (uint64_t i = 0; !duel.is_over; i++) {
        wait_for_peer(1, 3 * i + 1);
        store_then_load(&duel.y, &duel.x, 1);
        wait_for_peer(1, 3 * i + 2);
        wait_for_peer(1, 3 * i + 3);
    }
    return arg;
}

static void *fence_first(void *arg)
{
    for (uint64_t i = 0; !duel.is_over; i++) {
        wait_for_peer(0, 3 * i + 1);
        store_then_load(&duel.x, &duel.y, 0);
        wait_for_peer(0, 3 * i + 2);
        CHECK(duel.seen[0] == 1 || duel.seen[1] == 1);
        wf_store_relaxed(&duel.x, 0u);
        wf_store_relaxed(&duel.y, 0u);
        duel.is_over = i + 1 == duel.rounds || wf_clock_now() > duel.deadline;
        wait_for_peer(0, 3 * i + 3);
    }
    return arg;
}

/*
 * Goal:   the full fence orders a store before a later load.
 * Method: store buffering. Each thread stores to its own word, then reads the other's. Without
 *         a fence both may read zero. With it, at least one reads 1.
 */
static void full_fence_orders_store_before_load(void)
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
 * Goal:   writes before a release store are visible after the matching acquire load.
 * Method: message passing. The sender writes a number, then releases the same number as the
 *         flag. The receiver never reads a number older than the flag.
 */
static void acquire_load_sees_writes_before_release(void)
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
 * Method: two threads add, subtract and CAS the same words. The sums are exact.
 */
static void concurrent_read_modify_writes_lose_no_update(void)
{
    run_duel(add_and_subtract, add_and_subtract, test_scale(500000));
    CHECK_EQ(wf_load_relaxed(&duel.x), 4 * duel.rounds);
    CHECK_EQ(wf_load_relaxed(&duel.y), 2 * duel.rounds);
}

TEST_MAIN({ TEST(load_returns_stored_value), TEST(exchange_returns_old_and_stores_new_value),
            TEST(failed_cas_updates_expected), TEST(failed_weak_cas_updates_expected),
            TEST(strong_cas_never_fails_spuriously), TEST(cas_works_on_pointers),
            TEST(fetch_op_returns_previous_value), TEST(fetch_add_and_sub_wrap_around),
            TEST(full_fence_orders_store_before_load),
            TEST(acquire_load_sees_writes_before_release),
            TEST(concurrent_read_modify_writes_lose_no_update) })
