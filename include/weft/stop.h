/* SPDX-License-Identifier: MIT */
/*
 * weft/stop.h - cancel flag, polled by parallel loops and algorithms.
 */
#ifndef WEFT_STOP_H
#define WEFT_STOP_H

#include "base.h"

WEFT_EXTERN_C_BEGIN

/* A cancel flag for parallel loops. Zero until weft_stop_set(). Each cancel token
 * (weft/token.h) has one. */
typedef struct weft_stop {
    uint32_t set;
} weft_stop;

/*
 * Requests that the loops that use this flag stop. They return WEFT_ECANCELED as soon as the
 * chunks that have started are finished.
 *
 * Context: any thread.
 */
WEFT_API void weft_stop_set(weft_stop *stop);

WEFT_EXTERN_C_END

#endif
