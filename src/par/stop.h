/* SPDX-License-Identifier: MIT */
/*
 * stop.h - early end of a parallel algorithm: its first error, or a cancel flag.
 */
#ifndef WF_PAR_STOP_H
#define WF_PAR_STOP_H

#include <stdbool.h>

#include <weft/loop.h>

#include "base/atomic.h"

struct wf_stopper {
    const weft_stop *stop; /* constant: the cancel flag, or NULL */
    _Atomic(int) error;    /* of the first part that failed; any part sets it */
};

/* Returns whether the flag is set. Returns false for NULL. */
bool wf_stop_is_set(const weft_stop *stop);

/* Returns the cancel flag of the options, or NULL. */
static inline const weft_stop *wf_stop_of(const weft_par_options *options)
{
    return options != NULL ? options->stop : NULL;
}

/* Returns whether no further part must start. */
static inline bool wf_stopper_is_set(const struct wf_stopper *stopper)
{
    /* relaxed: an unnecessary part does no harm. */
    return wf_load_relaxed(&stopper->error) != 0 || wf_stop_is_set(stopper->stop);
}

/* Records the error of a part, unless there is one already. */
static inline void wf_stopper_fail(struct wf_stopper *stopper, int error)
{
    int none = 0;
    /* relaxed: publishes no data. The joins make the parts' work visible. */
    (void)wf_cas_relaxed(&stopper->error, &none, error);
}

/* Returns 0, the first error, or WEFT_ECANCELED. Called when all parts have finished. */
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
