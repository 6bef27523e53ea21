/* SPDX-License-Identifier: MIT */
/*
 * segment.c - stack segments: a call that continues on a fresh stack of the same thread.
 *
 * Segments belong to the process, since threads outside of any runtime use them, too. A released
 * segment keeps its memory if no other free segment does, so that recursion that oscillates
 * across the end of a segment makes no system calls.
 */
#include "fiber/segment.h"

#include <pthread.h>
#include <stddef.h>

#include "base/alloc.h"
#include "fiber/context.h"
#include "fiber/stack.h"

enum {
    CLASS = WF_STACK_CLASSES - 1,
};

WF_TLS_DEFINE(struct wf_stack *, wf_tls_segment);

static struct wf_stacks segments;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_segments(void)
{
    wf_stacks_init(&segments, &wf_alloc_default, NULL, NULL);
}

struct call {
    void (*function)(void *arg);
    void *arg;
    struct wf_context caller;
    struct wf_context segment;
};

/* The first frame on a segment. */
WF_NO_TSAN static void segment_main(void *carried)
{
    struct call *call = carried;
    wf_sanitizer_arrive_from(&call->segment.sanitizer, &call->caller.sanitizer);
    call->function(call->arg);
    wf_context_leave(&call->caller, NULL);
}

WF_NO_TSAN static void switch_to_segment(struct call *call)
{
    (void)wf_context_switch(&call->caller, &call->segment, call);
}

bool wf_segment_call(void (*function)(void *arg), void *arg)
{
    (void)pthread_once(&once, init_segments);
    struct wf_stack *stack = wf_stack_take_outside(&segments, CLASS);
    if (stack == NULL) {
        return false;
    }
    struct wf_stack *outer = wf_segment_current();
    struct call call = { .function = function, .arg = arg };
    wf_context_init_thread(&call.caller);
    wf_context_init(&call.segment, stack->low, wf_stack_size(stack), wf_stack_top(stack),
                    segment_main, wf_fp_control_read());
    WF_TLS_STORE(wf_tls_segment, stack);
    switch_to_segment(&call);
    WF_TLS_STORE(wf_tls_segment, outer);
    wf_context_fini(&call.segment);
    wf_stack_give_outside(&segments, stack);
    return true;
}
