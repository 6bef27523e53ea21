/* SPDX-License-Identifier: MIT */
#include "base/latch.h"

#include <pthread.h>

#include "test.h"

enum {
    ONE = 1 << WF_LATCH_SHIFT,
    THREADS = 4,
};

static _Atomic(uint32_t) word;
static uint64_t guarded; /* not atomic: the latch guards it */

static void lock_returns_bits_and_unlock_stores_them(void)
{
    wf_store_relaxed(&word, 5u * ONE);
    CHECK_EQ(wf_latch_lock(&word), 5u * ONE);
    CHECK(!wf_latch_is_open(wf_load_relaxed(&word)));
    wf_latch_unlock(&word, 7u * ONE);
    CHECK_EQ(wf_load_relaxed(&word), 7u * ONE);
    CHECK(wf_latch_is_open(7u * ONE));
}

static void *increment_under_latch(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < test_scale(20000); i++) {
        uint32_t bits = wf_latch_lock(&word);
        guarded++;
        wf_latch_unlock(&word, (bits + ONE) % (1000 * ONE));
    }
    return NULL;
}

static void threads_exclude_each_other(void)
{
    pthread_t threads[THREADS];
    wf_store_relaxed(&word, 0u);
    guarded = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, increment_under_latch, NULL), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(guarded, THREADS * test_scale(20000));
    CHECK_EQ(wf_load_relaxed(&word), guarded % 1000 * ONE);
}

static void *lock_once(void *arg)
{
    (void)arg;
    uint32_t bits = wf_latch_lock(&word);
    wf_latch_unlock(&word, bits + ONE);
    return NULL;
}

/* Each sleeper that gets the latch wakes the next one. */
static void unlock_wakes_sleepers_one_after_another(void)
{
    pthread_t threads[THREADS];
    wf_store_relaxed(&word, 0u);
    uint32_t bits = wf_latch_lock(&word);
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, lock_once, NULL), 0);
    }
    while ((wf_load_relaxed(&word) & WF_LATCH_CONTENDED) == 0) {
    }
    wf_latch_unlock(&word, bits);
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(wf_load_relaxed(&word), THREADS * ONE);
}

TEST_MAIN({
    TEST(lock_returns_bits_and_unlock_stores_them),
    TEST(threads_exclude_each_other),
    TEST(unlock_wakes_sleepers_one_after_another),
})
