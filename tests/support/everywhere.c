/* SPDX-License-Identifier: MIT */
#include "everywhere.h"

#include <weft.h>

#include "base/atomic.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

#ifdef WF_TSAN
/* ThreadSanitizer looks for races between threads, and is slow. */
void test_run_everywhere(int (*function)(void *arg), void *arg)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(weft_par_run(rt, function, arg), 0);
    weft_runtime_destroy(rt);
    rt = test_start(8);
    CHECK_EQ(test_run(rt, function, arg), 0);
    weft_runtime_destroy(rt);
}
#else
void test_run_everywhere(int (*function)(void *arg), void *arg)
{
    CHECK_EQ(function(arg), 0);
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        weft_runtime *rt = test_start(workers);
        CHECK_EQ(test_run(rt, function, arg), 0);
        CHECK_EQ(weft_par_run(rt, function, arg), 0);
        weft_runtime_destroy(rt);
    }
}
#endif

struct runs {
    int (*function)(void *arg);
    void *arg;
    uint64_t interrupted;
};

enum {
    RUNS = 50,
};

static int run_and_rest(void *arg)
{
    struct runs *runs = arg;
    for (unsigned i = 0; i < RUNS; i++) {
        test_wait_ns(WEFT_MS / 2); /* Other workers fall asleep, and no timer wakes them. */
        weft_time start = weft_now();
        CHECK_EQ(runs->function(runs->arg), 0);
        runs->interrupted += weft_now() - start > 10 * WEFT_US;
    }
    return 0;
}

void test_wakes_nobody(int (*function)(void *arg), void *arg)
{
    struct runs runs = { function, arg, 0 };
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, run_and_rest, &runs), 0);
    CHECK_EQ(weft_par_run(rt, run_and_rest, &runs), 0);
    CHECK_LE(test_wakes(rt), RUNS / 4 + runs.interrupted);
    weft_runtime_destroy(rt);
}
