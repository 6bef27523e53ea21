/* SPDX-License-Identifier: MIT */
/*
 * segment.c - fiber/segment.h in the model: there is none, and no recursion that needs one.
 */
#include "fiber/segment.h"

#include <stddef.h>

WF_TLS_DEFINE(struct wf_stack *, wf_tls_segment);

bool wf_segment_call(void (*function)(void *arg), void *arg)
{
    (void)function;
    (void)arg;
    return false;
}
