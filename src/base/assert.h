/* SPDX-License-Identifier: MIT */
/*
 * assert.h - assertions for every build, and debug-only assertions.
 */
#ifndef WF_BASE_ASSERT_H
#define WF_BASE_ASSERT_H

#include <stdbool.h>

/* Prints "weft: <message>" to stderr and aborts. The message names the call and says what the
 * caller must change. */
_Noreturn void wf_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

_Noreturn void wf_assert_failed(const char *file, int line, const char *expression)
    __attribute__((cold));

#define wf_likely(x)   __builtin_expect(!!(x), 1)
#define wf_unlikely(x) __builtin_expect(!!(x), 0)

/* Checked in release builds too: each assertion is one predicted branch. */
#define WF_ASSERT(expression)                                                                      \
    (wf_likely(expression) ? (void)0 : wf_assert_failed(__FILE__, __LINE__, #expression))

/* For hot paths, and for checks of the calling thread: active only with WF_DEBUG. In other
 * builds the expression is compiled but not evaluated. */
#ifdef WF_DEBUG
#define WF_DEBUG_ASSERT(expression) WF_ASSERT(expression)
#else
#define WF_DEBUG_ASSERT(expression) ((void)sizeof((expression) ? 1 : 0))
#endif

#endif
