/* SPDX-License-Identifier: MIT */
/*
 * io.c - public query for a runtime's I/O driver.
 */
#include <weft/io.h>

#include "io/io.h"
#include "rt/runtime.h"
#include "sched/sched.h"

int weft_runtime_io(weft_runtime *rt, weft_io_info *info)
{
    wf_runtime_check(rt, "weft_runtime_io");
    return wf_io_info(rt->sched->io, info);
}
