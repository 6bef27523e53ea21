/* SPDX-License-Identifier: MIT */
#include <weft/par.h>

#include "rt.h"
#include "test.h"

static int return_worker(void *arg)
{
    (void)arg;
    return weft_worker_current();
}

static int run_on_a_worker(void *arg)
{
    return weft_par_run(arg, return_worker, NULL);
}

static void the_function_runs_on_the_thread_of_its_caller(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(weft_par_run(rt, return_worker, NULL), -1);
    CHECK_EQ(test_run(rt, run_on_a_worker, rt), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({ TEST(the_function_runs_on_the_thread_of_its_caller) })
