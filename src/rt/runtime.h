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
    struct wf_list link;      /* under the lock of all runtimes; for debuggers */
    struct wf_sched *sched;   /* constant; invalid once is_destroyed is set */
    struct wf_lock stop_lock; /* guards stopping */
    bool stopping;
    _Atomic(uint32_t) stopped;      /* futex: 1 once the shutdown is complete */
    _Atomic(uint32_t) users;        /* futex: see runtime.c */
    _Atomic(uint32_t) is_destroyed; /* set by the destroyer; read by any thread */
};

/* Aborts with the name of the call if the runtime was destroyed, or belongs to the parent
 * process of a fork(). Best effort: does not detect a call that races with the destroy. */
void wf_runtime_check(const weft_runtime *rt, const char *call);

/* Same as wf_runtime_check(), and keeps the runtime alive until wf_runtime_leave(). For blocking
 * calls. */
void wf_runtime_enter(weft_runtime *rt, const char *call);
void wf_runtime_leave(weft_runtime *rt);

/* Returns the current runtime. Aborts with a message if the thread has none. */
weft_runtime *wf_runtime_must_current(const char *call);

#endif
