/* SPDX-License-Identifier: MIT */
/*
 * assert.c - base/assert.h in the model: a broken contract is a failed execution,
 * and its sentence is in the report.
 */
#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>

#include "mc.h"

_Noreturn void wf_fatal(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mc_fail(MC_ASSERTION, "%s", text);
}

_Noreturn void wf_assert_failed(const char *file, int line, const char *expression)
{
    mc_fail(MC_ASSERTION, "%s:%d: %s", file, line, expression);
}
