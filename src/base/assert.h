/* SPDX-License-Identifier: MIT */
/*
 * assert.h - contracts that are checked in every build, and debug-only ones.
 */
#ifndef WF_BASE_ASSERT_H
#define WF_BASE_ASSERT_H

#include <stdbool.h>

/* Prints "weft: <sentence>" on stderr and aborts. The sentence names the call
 * and what the caller must change. */
_Noreturn void wf_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

_Noreturn void wf_assert_failed(const char *file, int line, const char *expression)
    __attribute__((cold));

#define wf_likely(x)   __builtin_expect(!!(x), 1)
#define wf_unlikely(x) __builtin_expect(!!(x), 0)

/* Kept in release builds: each is one predicted branch. */
#define WF_ASSERT(expression)                                                                      \
    (wf_likely(expression) ? (void)0 : wf_assert_failed(__FILE__, __LINE__, #expression))

/* For hot paths and for who-may-call-this checks: only with WF_DEBUG. The
 * expression is compiled, not evaluated, in other builds. */
#ifdef WF_DEBUG
#define WF_DEBUG_ASSERT(expression) WF_ASSERT(expression)
#else
#define WF_DEBUG_ASSERT(expression) ((void)sizeof((expression) ? 1 : 0))
#endif

#endif
