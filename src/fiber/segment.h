/* SPDX-License-Identifier: MIT */
/*
 * segment.h - stack segments: a call that continues on a fresh stack of the same thread.
 *
 * For recursion that is deeper than the stack it began on, where nothing can be handed to
 * another thread. The caller stays where it is until the function returns.
 */
#ifndef WF_FIBER_SEGMENT_H
#define WF_FIBER_SEGMENT_H

#include <stdbool.h>

#include "base/tls.h"

struct wf_stack;

WF_TLS_DECLARE(struct wf_stack *, wf_tls_segment);

/* The segment that this thread runs on; NULL if it is on another stack. Async-signal-safe. */
static inline struct wf_stack *wf_segment_current(void)
{
    return WF_TLS_LOAD(wf_tls_segment);
}

/* Calls function(arg) on a fresh stack of 8 MiB. The function must return on this thread, so
 * it must not run on a fiber that can change its worker. False if there is no memory for a
 * stack: it was not called. */
bool wf_segment_call(void (*function)(void *arg), void *arg);

#endif
