/* SPDX-License-Identifier: MIT */
/*
 * pause.h - safe points of the algorithms.
 *
 * Every algorithm counts steps while it works: one for its own call, one for each call of a
 * user's function, which may be slow, and one for about ten nanoseconds of other work. The count
 * carries over from one call to the next. After enough steps, wf_pause() runs a safe point
 * (sched/job.c). So a task that waits for this worker waits for about a millisecond at most,
 * behind one long call as well as behind a loop of short ones.
 *
 * A loop over elements pauses at least every WF_PAUSE_ELEMENTS elements, every WF_PAUSE_CALLS
 * calls of a user's function, and every WF_PAUSE_BYTES bytes. A single element may be larger
 * than that, so elements are copied with wf_pause_element().
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
    WF_PAUSE_STEP_BYTES = 128, /* copied per step */
};

/* Slow paths of wf_pause(), of wf_pause_attach() and wf_pause_at() without a fork context, and of
 * wf_pause_element(). */
void wf_pause_now(size_t steps);
bool wf_pause_attach_now(int64_t now);
bool wf_pause_detached_at(int64_t now);
void wf_pause_large(void *to, const void *from, size_t size);

/* Counts steps. After enough of them, runs a safe point: other tasks of this worker may run. */
static inline void wf_pause(size_t steps)
{
    weft_jobs *jobs = weft_jobs_here();
    if (wf_unlikely(jobs->head == NULL) || (jobs->steps_left -= (ptrdiff_t)steps) <= 0) {
        wf_pause_now(steps);
    }
}

/*
 * Gives the caller a fork context if it has none, and runs a safe point in that case. Returns
 * false if the caller still has none, because it cannot have one or memory is exhausted. After a
 * failure, a thread does not retry for a millisecond.
 */
static inline bool wf_pause_attach(int64_t now)
{
    return wf_likely(weft_jobs_here()->head != NULL) || wf_pause_attach_now(now);
}

/* Runs a safe point for a caller that has read the clock. Returns true if that may have taken
 * time, so that now is out of date. */
static inline bool wf_pause_at(int64_t now)
{
    return wf_likely(weft_jobs_here()->head != NULL) ? wf_job_safe_point_at(now)
                                                     : wf_pause_detached_at(now);
}

/* Counts the call of an algorithm, regardless of its outcome. */
static inline void wf_pause_call(void)
{
    wf_pause(1);
}

/* Returns the number of steps for calling a function for, reading or copying count elements of
 * this size. */
static inline size_t wf_pause_steps(size_t count, size_t size)
{
    return count + count * size / WF_PAUSE_STEP_BYTES;
}

/* Returns how many elements of this size a loop may copy between two pauses: at most most, and
 * at most WF_PAUSE_BYTES in total unless a single element is larger. */
static inline size_t wf_pause_most(size_t most, size_t size)
{
    if (wf_likely(size <= WF_PAUSE_BYTES / most)) {
        return most;
    }
    return size < WF_PAUSE_BYTES ? WF_PAUSE_BYTES / size : 1;
}

/* Returns the end of the next batch of a loop from first to end. */
static inline size_t wf_pause_next(size_t first, size_t end, size_t most)
{
    return end - first > most ? first + most : end;
}

/* Pauses after copying count elements of this size. */
static inline void wf_pause_copied(size_t count, size_t size)
{
    wf_pause(wf_pause_steps(count, size));
}

/* Copies like memcpy(), with safe points. */
static inline void wf_pause_copy(void *to, const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t next = wf_pause_next(at, bytes, WF_PAUSE_BYTES);
        memcpy((char *)to + at, (const char *)from + at, next - at);
        wf_pause((next - at) / WF_PAUSE_STEP_BYTES);
        at = next;
    }
}

/* Copies one element, with safe points if it is large. Does not count a smaller one. */
static inline void wf_pause_element(void *to, const void *from, size_t size)
{
    if (wf_likely(size <= WF_PAUSE_BYTES)) {
        memcpy(to, from, size);
    } else {
        wf_pause_large(to, from, size);
    }
}

/* Clears memory like memset(), with safe points. */
static inline void wf_pause_clear(void *to, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t next = wf_pause_next(at, bytes, WF_PAUSE_BYTES);
        memset((char *)to + at, 0, next - at);
        wf_pause((next - at) / WF_PAUSE_STEP_BYTES);
        at = next;
    }
}

/* Returns whether two blocks of memory are equal, with safe points if they are large. */
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
