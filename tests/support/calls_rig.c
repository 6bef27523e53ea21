/* SPDX-License-Identifier: MIT */
#include "calls.h"

#include "test.h"

weft_runtime *calls_runtime;

weft_task *calls_go(int (*function)(void *arg), void *arg)
{
    weft_task *task;
    weft_fiber_spec spec = { .function = function, .arg = arg };
    CHECK_EQ(weft_runtime_go(calls_runtime, &task, &spec), 0);
    return task;
}
