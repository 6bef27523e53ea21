/* SPDX-License-Identifier: MIT */
#include "everywhere.h"

#include <weft.h>

#include "base/atomic.h"
#include "rt.h"
#include "test.h"

enum {
#ifdef WF_TSAN /* which looks for what goes wrong between workers, and is slow */
    FIRST = 2,
    FACTOR = 4,
#else
    FIRST = 1,
    FACTOR = 2,
#endif
};

void test_run_everywhere(int (*function)(void *arg), void *arg)
{
    CHECK_EQ(function(arg), 0);
    for (unsigned workers = FIRST; workers <= 8; workers *= FACTOR) {
        weft_runtime *rt = test_start(workers);
        CHECK_EQ(test_run(rt, function, arg), 0);
        CHECK_EQ(weft_par_run(rt, function, arg), 0);
        weft_runtime_destroy(rt);
    }
}
