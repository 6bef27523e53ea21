/* SPDX-License-Identifier: MIT */
/*
 * stop.h - why a parallel computation ends early: an error of its own, or a request.
 */
#ifndef WF_PAR_STOP_H
#define WF_PAR_STOP_H

#include <stdbool.h>

#include <weft/loop.h>

#include "base/atomic.h"

struct wf_stopper {
    const weft_stop *stop; /* constant: the request, or NULL */
    _Atomic(int) error;    /* of the first part that failed; any part sets it */
};

/* Has somebody asked for a stop? Nobody has, if there is no way to: NULL. */
bool wf_stop_is_set(const weft_stop *stop);

/* The one of these options, or NULL. */
static inline const weft_stop *wf_stop_of(const weft_par_options *options)
{
    return options != NULL ? options->stop : NULL;
}

/* Must no further part begin? */
static inline bool wf_stopper_is_set(const struct wf_stopper *stopper)
{
    /* relaxed: a part too many does no harm. */
    return wf_load_relaxed(&stopper->error) != 0 || wf_stop_is_set(stopper->stop);
}

/* A part has failed. */
static inline void wf_stopper_fail(struct wf_stopper *stopper, int error)
{
    int none = 0;
    /* relaxed: nothing comes with it; joins bring what parts have done. */
    (void)wf_cas_relaxed(&stopper->error, &none, error);
}

/* When all parts are over: 0, the first error, or WEFT_ECANCELED. */
static inline int wf_stopper_result(const struct wf_stopper *stopper)
{
    /* relaxed: all parts have been joined. */
    int error = wf_load_relaxed(&stopper->error);
    if (error == 0 && wf_stop_is_set(stopper->stop)) {
        error = WEFT_ECANCELED;
    }
    return error;
}

#endif
