/* SPDX-License-Identifier: MIT */
/*
 * overflow.c - sched/overflow.h in the model: faults are the checker's.
 */
#include "sched/overflow.h"

#include <stddef.h>

void wf_overflow_watch(void)
{
}

void wf_overflow_unwatch(void)
{
}

void wf_signal_stack_init(struct wf_signal_stack *stack)
{
    stack->map = NULL;
}

void wf_signal_stack_fini(struct wf_signal_stack *stack)
{
    (void)stack;
}
