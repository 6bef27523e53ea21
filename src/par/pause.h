/* SPDX-License-Identifier: MIT */
/*
 * pause.h - safe points in the serial loops of the algorithms.
 *
 * A loop over elements calls weft_jobs_pause() (weft/fork.h) at least every WF_PAUSE_ELEMENTS
 * elements, or every WF_PAUSE_CALLS calls of a user's function, which may be slow. So a task
 * that waits for this worker waits for about a millisecond at most.
 */
#ifndef WF_PAR_PAUSE_H
#define WF_PAR_PAUSE_H

#include <stddef.h>
#include <string.h>

#include <weft/fork.h>

enum {
    WF_PAUSE_CALLS = 64,
    WF_PAUSE_ELEMENTS = 1024,
    WF_PAUSE_BYTES = 64 * 1024,
    WF_PAUSE_STEP_BYTES = 128, /* copied per step */
};

/* Returns the end of the next batch of a loop from first to end. */
static inline size_t wf_pause_next(size_t first, size_t end, size_t most)
{
    return end - first > most ? first + most : end;
}

/* Pauses after copying count elements of this size. */
static inline void wf_pause_copied(size_t count, size_t size)
{
    weft_jobs_pause(count + count * size / WF_PAUSE_STEP_BYTES);
}

/* Copies like memcpy(), with safe points. */
static inline void wf_pause_copy(void *to, const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t next = wf_pause_next(at, bytes, WF_PAUSE_BYTES);
        memcpy((char *)to + at, (const char *)from + at, next - at);
        weft_jobs_pause((next - at) / WF_PAUSE_STEP_BYTES);
        at = next;
    }
}

/* Clears memory like memset(), with safe points. */
static inline void wf_pause_clear(void *to, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t next = wf_pause_next(at, bytes, WF_PAUSE_BYTES);
        memset((char *)to + at, 0, next - at);
        weft_jobs_pause((next - at) / WF_PAUSE_STEP_BYTES);
        at = next;
    }
}

#endif
