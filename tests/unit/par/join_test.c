/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>

#include <weft.h>

#include "everywhere.h"
#include "rt.h"
#include "test.h"

enum {
    CALLS = 100,
};

static _Atomic(unsigned) runs[CALLS];

static void count(void *arg)
{
    atomic_fetch_add((_Atomic(unsigned) *)arg, 1);
}

static int join_some(void *arg)
{
    (void)arg;
    weft_call calls[CALLS];
    for (size_t n = 0; n <= CALLS; n = n * 2 + 1) {
        for (size_t i = 0; i < CALLS; i++) {
            calls[i] = (weft_call){ count, &runs[i] };
            atomic_store(&runs[i], 0);
        }
        weft_join_n(calls, n);
        for (size_t i = 0; i < CALLS; i++) {
            CHECK_EQ(atomic_load(&runs[i]), i < n);
        }
    }
    return 0;
}

static void each_call_runs_once(void)
{
    test_run_everywhere(join_some, NULL);
}

static _Atomic(uint64_t) begun;

static void meet(void *arg)
{
    atomic_fetch_add(&begun, 1);
    test_wait_for(&begun, *(uint64_t *)arg);
}

static int meet_concurrently(void *arg)
{
    static uint64_t all = 4;
    weft_call calls[4];
    (void)arg;
    for (unsigned i = 0; i < 4; i++) {
        calls[i] = (weft_call){ meet, &all };
    }
    for (unsigned i = 0; i < 20; i++) {
        atomic_store(&begun, 0);
        weft_join_n(calls, 4);
        CHECK_EQ(atomic_load(&begun), 4);
    }
    return 0;
}

/* Goal:   as many calls run concurrently as there are workers. Method: each waits for all
 *         others. */
static void calls_run_concurrently(void)
{
    weft_runtime *rt = test_start(4);
    CHECK_EQ(test_run(rt, meet_concurrently, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(each_call_runs_once),
    TEST(calls_run_concurrently),
})
