/* SPDX-License-Identifier: MIT */
/*
 * weft/time.h - points in time.
 */
#ifndef WEFT_TIME_H
#define WEFT_TIME_H

#include "base.h"

WEFT_EXTERN_C_BEGIN

/*
 * A point in time in nanoseconds of the monotonic clock. Every call that can
 * wait takes one as its deadline: weft_now() + 5 * WEFT_MS, or WEFT_NEVER.
 */
typedef int64_t weft_time;

#define WEFT_NEVER INT64_MAX
#define WEFT_US    INT64_C(1000)
#define WEFT_MS    INT64_C(1000000)
#define WEFT_S     INT64_C(1000000000)

/*
 * Returns the time now. It never goes back.
 *
 * Context: any thread.
 */
WEFT_API weft_time weft_now(void);

WEFT_EXTERN_C_END

#endif
