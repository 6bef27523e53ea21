/* SPDX-License-Identifier: MIT */
/*
 * idle.h - set of parked workers, and the rule for waking one. The protocol is in idle.c.
 */
#ifndef WF_SCHED_IDLE_H
#define WF_SCHED_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

#define WF_IDLE_WORKERS_MAX 1024
#define WF_IDLE_WORDS       (WF_IDLE_WORKERS_MAX / 64)

struct wf_idle {
    uint32_t workers; /* constant */
    /* Any thread:  63 .. searching .. 32 | 31 .. unparked .. 0 */
    _Alignas(WF_CACHE_LINE) _Atomic(uint64_t) counts;
    _Atomic(uint32_t) last; /* 0, or 1 + the worker that is woken only if no other is parked */
    /* The worker sets its bit. The thread that clears the bit has claimed the worker. */
    _Alignas(WF_CACHE_LINE) _Atomic(uint64_t) parked[WF_IDLE_WORDS];
};

#define WF_IDLE_NOBODY UINT32_MAX

void wf_idle_init(struct wf_idle *idle, uint32_t workers);

/*
 * Submitter, after publishing work, any thread: if no worker searches and at least one is
 * parked, claims a parked worker, counts it as searching and returns its index. The caller then
 * wakes it. Otherwise returns WF_IDLE_NOBODY. has_work(arg) returns whether a stealable queue
 * has work.
 */
uint32_t wf_idle_notify(struct wf_idle *idle, bool (*has_work)(void *arg), void *arg);

/* Worker: starts searching unless half of the workers already do. Returns whether it does. */
bool wf_idle_try_search(struct wf_idle *idle);

/* Worker: starts searching regardless of the cap, because it has seen work. */
void wf_idle_search(struct wf_idle *idle);

/* Worker: stops searching, because it has found work. Returns true if it was the last searcher.
 * The caller then looks once more and notifies if there is more work. */
bool wf_idle_found(struct wf_idle *idle);

/* Worker: enters the parked state. This ends with a fence, behind which the caller looks at
 * every queue once more. */
void wf_idle_park(struct wf_idle *idle, uint32_t worker, bool searching);

/* Worker: leaves the parked state. Returns true if a submitter claimed the worker, which is
 * then counted as searching. */
bool wf_idle_unpark(struct wf_idle *idle, uint32_t worker);

/* Any thread: names the worker to wake last, because it waits for I/O on behalf of all workers;
 * WF_IDLE_NOBODY for none. A hint. */
void wf_idle_wake_last(struct wf_idle *idle, uint32_t worker);

/* Any thread, behind a full fence of its own: returns whether the worker is parked. */
bool wf_idle_is_parked(const struct wf_idle *idle, uint32_t worker);

/* Any thread: return a snapshot of the number of searching or unparked workers. */
uint32_t wf_idle_searching(const struct wf_idle *idle);
uint32_t wf_idle_unparked(const struct wf_idle *idle);

#endif
