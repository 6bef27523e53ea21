/* SPDX-License-Identifier: MIT */
/*
 * hooks.h - hooks that exist only in a debug library.
 */
#ifndef TEST_HOOKS_H
#define TEST_HOOKS_H

#include "sched/await.h"
#include "test.h"

/* Sets wf_await_hook, or removes it with NULL. For tests that are listed with TEST_DEBUG(). */
static inline void hook_await(void (*hook)(weft_time *deadline))
{
    test_must_have_debug();
#ifdef WF_DEBUG
    wf_await_hook = hook;
#else
    (void)hook;
#endif
}

#endif
