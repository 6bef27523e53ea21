/* SPDX-License-Identifier: MIT */
/*
 * assert.c - fatal errors and failed assertions.
 */
#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void wf_fatal(const char *format, ...)
{
    /* One write, so that the messages of two aborting threads do not interleave. */
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)fprintf(stderr, "weft: %s\n", text);
    abort();
}

_Noreturn void wf_assert_failed(const char *file, int line, const char *expression)
{
    wf_fatal("%s:%d: '%s' does not hold; this is a bug in weft, or memory was overwritten", file,
             line, expression);
}
