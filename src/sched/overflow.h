/* SPDX-License-Identifier: MIT */
/*
 * overflow.h - stack overflow detection: names the fiber whose stack is used up.
 */
#ifndef WF_SCHED_OVERFLOW_H
#define WF_SCHED_OVERFLOW_H

#include <stdbool.h>

/* Any thread, for each runtime: catches faults from before its first fiber runs until after its
 * last one has ended. If the program has replaced the handlers since the last call, installs them
 * again, on top. The last runtime restores the handlers below. */
void wf_overflow_watch(void);
void wf_overflow_unwatch(void);

/* An alternate stack for signal handlers, for threads that run fibers. */
struct wf_signal_stack {
    void *map; /* NULL: none */
};

/* This thread: gives it a stack for signal handlers, unless it has one. Without memory it
 * continues without one. */
void wf_signal_stack_init(struct wf_signal_stack *stack);
void wf_signal_stack_fini(struct wf_signal_stack *stack);

#endif
