/* SPDX-License-Identifier: MIT */
/*
 * idle.h - which workers sleep, and who wakes them. The protocol is in idle.c.
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
    _Atomic(uint32_t) last; /* 0, or 1 + the one that is woken only if no other sleeps */
    /* The worker sets its bit; who clears it has the worker. */
    _Alignas(WF_CACHE_LINE) _Atomic(uint64_t) parked[WF_IDLE_WORDS];
};

#define WF_IDLE_NOBODY UINT32_MAX

void wf_idle_init(struct wf_idle *idle, uint32_t workers);

/*
 * Submitter, after publishing work, any thread: if nobody searches and somebody
 * sleeps, takes one sleeper, counted as searching, and returns its index; the
 * caller wakes it. Else returns WF_IDLE_NOBODY. has_work(arg) tells whether some
 * stealable queue has work.
 */
uint32_t wf_idle_notify(struct wf_idle *idle, bool (*has_work)(void *arg), void *arg);

/* Worker: may it search? At most half of them at once. */
bool wf_idle_try_search(struct wf_idle *idle);

/* Worker: searches in any case: it has seen work. */
void wf_idle_search(struct wf_idle *idle);

/* Worker: has found work and stops searching. Returns true if it was the last
 * searcher: the caller then looks once more and notifies if there is more. */
bool wf_idle_found(struct wf_idle *idle);

/* Worker: goes to sleep. The caller then looks at every queue once more, behind
 * the fence that this ends with. */
void wf_idle_park(struct wf_idle *idle, uint32_t worker, bool searching);

/* Worker: does not sleep any more. Returns true if it was taken by a submitter,
 * and so is counted as searching. */
bool wf_idle_unpark(struct wf_idle *idle, uint32_t worker);

/* Any thread: this worker, which waits for I/O for all of them, or WF_IDLE_NOBODY, is to be
 * woken last. A hint. */
void wf_idle_wake_last(struct wf_idle *idle, uint32_t worker);

/* Any thread, behind a full fence of its own. */
bool wf_idle_is_parked(const struct wf_idle *idle, uint32_t worker);

/* Any thread; snapshots. */
uint32_t wf_idle_searching(const struct wf_idle *idle);
uint32_t wf_idle_unparked(const struct wf_idle *idle);

#endif
