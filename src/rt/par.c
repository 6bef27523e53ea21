/* SPDX-License-Identifier: MIT */
/*
 * par.c - the public calls about parallel computation that name a runtime.
 */
#include <weft/par.h>

#include "rt/runtime.h"
#include "sched/guest.h"
#include "sched/worker.h"

int weft_par_run(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    wf_runtime_check_fork(rt, "weft_par_run");
    return wf_worker_current() != NULL ? function(arg) : wf_guest_run(rt->sched, function, arg);
}
