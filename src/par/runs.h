/* SPDX-License-Identifier: MIT */
/*
 * runs.h - parallel search for runs of equal keys in a sorted array.
 */
#ifndef WF_PAR_RUNS_H
#define WF_PAR_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include <weft/loop.h>

/* Sorted keys: the first one, and the distance to the next. */
struct wf_runs_keys {
    const uint64_t *first;
    size_t stride; /* in bytes */
    size_t count;
};

static inline uint64_t wf_runs_key(const struct wf_runs_keys *keys, size_t index)
{
    const char *at = (const char *)keys->first + index * keys->stride;
    return *(const uint64_t *)(const void *)at;
}

/*
 * Writes where each run of equal keys begins, followed by the number of keys. begins has space
 * for count + 1 entries. Sets *runs to the number of runs. Returns 0, -ENOMEM, or
 * WEFT_ECANCELED.
 */
int wf_runs_find(const struct wf_runs_keys *keys, size_t *begins, size_t *runs,
                 const weft_stop *stop);

#endif
