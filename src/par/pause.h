/* SPDX-License-Identifier: MIT */
/*
 * pause.h - safe points of the algorithms.
 *
 * Every algorithm counts steps while it works: one for its call, one for each call of a function
 * that the user gave, since that may be slow, and one for about ten nanoseconds of other work. The
 * count carries over from one call to the next. After enough steps wf_pause() is a safe point
 * (sched/job.c). So a task that waits for this worker waits for about a millisecond at most, beside
 * one long run and beside a loop of short ones.
 *
 * A loop over elements pauses at least every WF_PAUSE_ELEMENTS elements, every WF_PAUSE_CALLS
 * calls of the user's function, and every WF_PAUSE_BYTES bytes: an element may be larger than
 * that, so elements are copied by wf_pause_element().
 */
#ifndef WF_PAR_PAUSE_H
#define WF_PAR_PAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weft/fork.h>

#include "base/assert.h"
#include "sched/job.h"

enum {
    WF_PAUSE_CALLS = 64,
    WF_PAUSE_ELEMENTS = 1024,
    WF_PAUSE_BYTES = 64 * 1024,
    WF_PAUSE_STEP_BYTES = 128, /* that are copied in one step */
};

/* The rest of wf_pause(), of wf_pause_attach() and wf_pause_at() without a strand, and of
 * wf_pause_element(). */
void wf_pause_now(size_t steps);
bool wf_pause_attach_now(int64_t now);
bool wf_pause_detached_at(int64_t now);
void wf_pause_large(void *to, const void *from, size_t size);

/* Counts steps. Enough of them are a safe point: other tasks of this worker may run. */
static inline void wf_pause(size_t steps)
{
    weft_jobs *jobs = weft_jobs_here();
    if (wf_unlikely(jobs->head == NULL) || (jobs->steps_left -= (ptrdiff_t)steps) <= 0) {
        wf_pause_now(steps);
    }
}

/*
 * Gets the caller a strand if it has none, and takes a safe point then. False: it has none, because
 * it cannot have one or memory is short. After a failure a thread does not try again for a
 * millisecond.
 */
static inline bool wf_pause_attach(int64_t now)
{
    return wf_likely(weft_jobs_here()->head != NULL) || wf_pause_attach_now(now);
}

/* A safe point of a caller that knows what time it is. True: it took a while, so it is later
 * now. */
static inline bool wf_pause_at(int64_t now)
{
    return wf_likely(weft_jobs_here()->head != NULL) ? wf_job_safe_point_at(now)
                                                     : wf_pause_detached_at(now);
}

/* Counts the call of an algorithm, whatever comes of it. */
static inline void wf_pause_call(void)
{
    wf_pause(1);
}

/* Returns the steps of work on count elements of this size, which are called for, read or
 * copied. */
static inline size_t wf_pause_steps(size_t count, size_t size)
{
    return count + count * size / WF_PAUSE_STEP_BYTES;
}

/* Returns how many elements of this size a loop may copy between two pauses: at most so many, and
 * no more than WF_PAUSE_BYTES unless one is larger. */
static inline size_t wf_pause_most(size_t most, size_t size)
{
    if (wf_likely(size <= WF_PAUSE_BYTES / most)) {
        return most;
    }
    return size < WF_PAUSE_BYTES ? WF_PAUSE_BYTES / size : 1;
}

/* Returns the end of the next piece of a loop from first to end. */
static inline size_t wf_pause_next(size_t first, size_t end, size_t most)
{
    return end - first > most ? first + most : end;
}

/* After copying count elements of this size. */
static inline void wf_pause_copied(size_t count, size_t size)
{
    wf_pause(wf_pause_steps(count, size));
}

/* memcpy() with safe points. */
static inline void wf_pause_copy(void *to, const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t next = wf_pause_next(at, bytes, WF_PAUSE_BYTES);
        memcpy((char *)to + at, (const char *)from + at, next - at);
        wf_pause((next - at) / WF_PAUSE_STEP_BYTES);
        at = next;
    }
}

/* Copies one element; with safe points if it is large, and else without counting it. */
static inline void wf_pause_element(void *to, const void *from, size_t size)
{
    if (wf_likely(size <= WF_PAUSE_BYTES)) {
        memcpy(to, from, size);
    } else {
        wf_pause_large(to, from, size);
    }
}

/* memset() to 0 with safe points. */
static inline void wf_pause_clear(void *to, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t next = wf_pause_next(at, bytes, WF_PAUSE_BYTES);
        memset((char *)to + at, 0, next - at);
        wf_pause((next - at) / WF_PAUSE_STEP_BYTES);
        at = next;
    }
}

/* memcmp() == 0, with safe points if there is much to compare. */
static inline bool wf_pause_equal(const void *a, const void *b, size_t bytes)
{
    const char *one = a;
    const char *other = b;
    for (; bytes > WF_PAUSE_BYTES; bytes -= WF_PAUSE_BYTES) {
        if (memcmp(one, other, WF_PAUSE_BYTES) != 0) {
            return false;
        }
        wf_pause(WF_PAUSE_BYTES / WF_PAUSE_STEP_BYTES);
        one += WF_PAUSE_BYTES;
        other += WF_PAUSE_BYTES;
    }
    return memcmp(one, other, bytes) == 0;
}

#endif
