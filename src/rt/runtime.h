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
    struct wf_list link;      /* under the lock of all runtimes: for debuggers */
    struct wf_sched *sched;   /* constant; gone when is_destroyed */
    struct wf_lock stop_lock; /* guards stopping */
    bool stopping;
    _Atomic(uint32_t) stopped;      /* a futex: 1 when the shutdown is over */
    _Atomic(uint32_t) users;        /* a futex: see runtime.c */
    _Atomic(uint32_t) is_destroyed; /* the destroyer sets it; any thread looks at it */
};

/* Aborts, naming the call, if the runtime was destroyed, or belongs to the parent of this
 * process. Best effort: a call that races with the destroy is not noticed. */
void wf_runtime_check(const weft_runtime *rt, const char *call);

/* The same, and keeps the runtime until wf_runtime_leave(): for a call that blocks in it. */
void wf_runtime_enter(weft_runtime *rt, const char *call);
void wf_runtime_leave(weft_runtime *rt);

/* The current runtime; aborts with a sentence if there is none. */
weft_runtime *wf_runtime_must_current(const char *call);

#endif
