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

/* No call and no check in between: nothing but the load and the store themselves
 * keeps the compiler from moving or dropping one of them. */
static void load_reads_the_current_value_after_each_change(void)
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

static void load_has_the_type_of_the_variable(void)
{
    WF_TLS_STORE(tls_test_text, "text");
    const char *text = WF_TLS_LOAD(tls_test_text);
    CHECK_HAS(text, "text");
    CHECK_EQ(WF_TLS_LOAD(tls_test_text)[1], 'e');
    WF_TLS_STORE(tls_test_text, NULL);
}

static void loads_of_two_variables_do_not_mix(void)
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
    (void)pthread_barrier_wait(barrier); /* All threads have set theirs. */
    CHECK_EQ(WF_TLS_LOAD(tls_test_number), (uintptr_t)&barrier);
    return NULL;
}

/*
 * Goal:   each thread has a value of its own, which begins as zero.
 * Method: threads set theirs to an address on their stack; when all have done
 *         so, each still reads its own.
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

TEST_MAIN({ TEST(new_value_is_zero), TEST(load_reads_the_current_value_after_each_change),
            TEST(load_has_the_type_of_the_variable), TEST(loads_of_two_variables_do_not_mix),
            TEST(each_thread_has_its_own_value) })
