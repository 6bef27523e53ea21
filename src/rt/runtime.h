/* SPDX-License-Identifier: MIT */
/*
 * runtime.h - the object behind a weft_runtime handle.
 */
#ifndef WF_RT_RUNTIME_H
#define WF_RT_RUNTIME_H

#include <weft/runtime.h>

#include "base/list.h"
#include "base/lock.h"

struct wf_sched;

struct weft_runtime {
    struct wf_list link;    /* under the lock of all runtimes: for debuggers */
    struct wf_sched *sched; /* constant */
    weft_allocator allocator;
    struct wf_lock stop_lock; /* guards stopping */
    bool stopping;
    _Atomic(uint32_t) stopped; /* a futex: 1 when the shutdown is over */
};

/* Aborts in a child of the process that made the runtime. */
void wf_runtime_check_fork(const weft_runtime *rt, const char *call);

/* The current runtime; aborts with a sentence if there is none. */
weft_runtime *wf_runtime_must_current(const char *call);

#endif
