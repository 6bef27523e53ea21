/* SPDX-License-Identifier: MIT */
/*
 * weft/stop.h - a request to stop, for who looks at it now and then.
 */
#ifndef WEFT_STOP_H
#define WEFT_STOP_H

#include "base.h"

WEFT_EXTERN_C_BEGIN

/* A request to stop, for loops: zero, until weft_stop_set(). Each token (weft/token.h) has
 * one. */
typedef struct weft_stop {
    uint32_t set;
} weft_stop;

/*
 * Asks the loops that were given it to stop: they end with WEFT_ECANCELED once the pieces
 * that have begun are over.
 *
 * Context: any thread.
 */
WEFT_API void weft_stop_set(weft_stop *stop);

WEFT_EXTERN_C_END

#endif
