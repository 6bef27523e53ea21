/* SPDX-License-Identifier: MIT */
/*
 * segment.h - stack segments: a call that continues on a fresh stack of the same thread.
 *
 * For recursion that is deeper than the stack it started on, where nothing can be handed to
 * another thread. The caller is blocked until the function returns.
 */
#ifndef WF_FIBER_SEGMENT_H
#define WF_FIBER_SEGMENT_H

#include <stdbool.h>

#include "base/tls.h"

struct wf_stack;

WF_TLS_DECLARE(struct wf_stack *, wf_tls_segment);

/* Returns the segment that this thread runs on, or NULL. Async-signal-safe. */
static inline struct wf_stack *wf_segment_current(void)
{
    return WF_TLS_LOAD(wf_tls_segment);
}

/* Calls function(arg) on a fresh stack of 8 MiB. The function must return on the same thread, so
 * it must not run on a fiber that can move to another worker. Returns false if there is no
 * memory for a stack; the function was not called. */
bool wf_segment_call(void (*function)(void *arg), void *arg);

#endif
