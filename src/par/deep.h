/* SPDX-License-Identifier: MIT */
/*
 * deep.h - deep recursion through the algorithms.
 *
 * The callback of an algorithm may call an algorithm again, and so on, deeper than one stack
 * allows. Every algorithm with a callback therefore enters the part that calls back through one
 * of these functions, which continue on a fresh stack if the current one is nearly used up. They
 * cost a comparison. Most algorithms are built on weft_for(), weft_reduce(), wf_range_each() or
 * wf_sample_sort(), which do so for them.
 */
#ifndef WF_PAR_DEEP_H
#define WF_PAR_DEEP_H

#include <weft/fork.h>

#include "base/assert.h"
#include "sched/job.h"

/* Calls function(arg), on a fresh stack if needed. */
static inline void wf_deep_run(void (*function)(void *arg), void *arg)
{
    if (wf_likely(!weft_jobs_stack_is_low(weft_jobs_here()))) {
        function(arg);
    } else {
        wf_job_call_deep(function, arg);
    }
}

struct wf_deep_call {
    int (*function)(void *arg);
    void *arg;
    int result;
};

static inline void wf_deep_call_elsewhere(void *arg)
{
    struct wf_deep_call *call = arg;
    call->result = call->function(call->arg);
}

/* Returns the result of function(arg), called on a fresh stack if needed. */
static inline int wf_deep_call(int (*function)(void *arg), void *arg)
{
    if (wf_likely(!weft_jobs_stack_is_low(weft_jobs_here()))) {
        return function(arg);
    }
    struct wf_deep_call call = { .function = function, .arg = arg };
    wf_job_call_deep(wf_deep_call_elsewhere, &call);
    return call.result;
}

#endif
