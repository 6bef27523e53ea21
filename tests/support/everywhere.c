/* SPDX-License-Identifier: MIT */
#include "everywhere.h"

#include <weft.h>

#include "rt.h"
#include "test.h"

void test_run_everywhere(int (*function)(void *arg), void *arg)
{
    CHECK_EQ(function(arg), 0);
    /* Sanitizers look for what goes wrong between workers, and are slow. */
    unsigned first = test_is_sanitized() ? 2 : 1;
    unsigned factor = test_is_sanitized() ? 4 : 2;
    for (unsigned workers = first; workers <= 8; workers *= factor) {
        weft_runtime *rt = test_start(workers);
        CHECK_EQ(test_run(rt, function, arg), 0);
        CHECK_EQ(weft_par_run(rt, function, arg), 0);
        weft_runtime_destroy(rt);
    }
}
