/* SPDX-License-Identifier: MIT */
#include "base/tls.h"

#include <pthread.h>

#include "test.h"

WF_TLS_DECLARE(uintptr_t, tls_test_number);
WF_TLS_DECLARE(const char *, tls_test_text);
WF_TLS_DEFINE(uintptr_t, tls_test_number);
WF_TLS_DEFINE(const char *, tls_test_text);

static void new_value_is_zero(void)
{
    CHECK_EQ(WF_TLS_LOAD(tls_test_number), 0);
    CHECK(WF_TLS_LOAD(tls_test_text) == NULL);
}

/* No calls and no checks in between: only the load and store macros themselves keep the
 * compiler from moving or dropping an access. */
static void load_after_each_store_reads_new_value(void)
{
    WF_TLS_STORE(tls_test_number, 1);
    uintptr_t first = WF_TLS_LOAD(tls_test_number);
    WF_TLS_STORE(tls_test_number, 2);
    uintptr_t second = WF_TLS_LOAD(tls_test_number);
    WF_TLS_STORE(tls_test_number, UINTPTR_MAX);
    uintptr_t third = WF_TLS_LOAD(tls_test_number);
    WF_TLS_STORE(tls_test_number, 0);
    uintptr_t last = WF_TLS_LOAD(tls_test_number);
    CHECK_EQ(first, 1);
    CHECK_EQ(second, 2);
    CHECK(third == UINTPTR_MAX);
    CHECK_EQ(last, 0);
}

static void load_has_type_of_variable(void)
{
    WF_TLS_STORE(tls_test_text, "text");
    const char *text = WF_TLS_LOAD(tls_test_text);
    CHECK_HAS(text, "text");
    CHECK_EQ(WF_TLS_LOAD(tls_test_text)[1], 'e');
    WF_TLS_STORE(tls_test_text, NULL);
}

static void two_variables_do_not_mix(void)
{
    WF_TLS_STORE(tls_test_number, 17);
    WF_TLS_STORE(tls_test_text, "text");
    CHECK_EQ(WF_TLS_LOAD(tls_test_number), 17);
    CHECK_HAS(WF_TLS_LOAD(tls_test_text), "text");
    WF_TLS_STORE(tls_test_number, 0);
    WF_TLS_STORE(tls_test_text, NULL);
}

static void *set_own_value(void *arg)
{
    pthread_barrier_t *barrier = arg;
    CHECK_EQ(WF_TLS_LOAD(tls_test_number), 0);
    WF_TLS_STORE(tls_test_number, (uintptr_t)&barrier);
    (void)pthread_barrier_wait(barrier); /* All threads have stored theirs. */
    CHECK_EQ(WF_TLS_LOAD(tls_test_number), (uintptr_t)&barrier);
    return NULL;
}

/*
 * Goal:   each thread has its own value, initially zero.
 * Method: each thread stores an address on its own stack. Once all have done so, each still
 *         reads its own.
 */
static void each_thread_has_its_own_value(void)
{
    enum {
        THREADS = 4
    };
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    WF_TLS_STORE(tls_test_number, 99);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, set_own_value, &barrier), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(WF_TLS_LOAD(tls_test_number), 99);
    CHECK_EQ(pthread_barrier_destroy(&barrier), 0);
    WF_TLS_STORE(tls_test_number, 0);
}

TEST_MAIN({ TEST(new_value_is_zero), TEST(load_after_each_store_reads_new_value),
            TEST(load_has_type_of_variable), TEST(two_variables_do_not_mix),
            TEST(each_thread_has_its_own_value) })
