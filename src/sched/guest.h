/* SPDX-License-Identifier: MIT */
/*
 * guest.h - external threads: plain threads that fork. The protocol is in guest.c.
 */
#ifndef WF_SCHED_GUEST_H
#define WF_SCHED_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

struct wf_sched;
struct wf_strand;
struct wf_thread;

enum {
    WF_GUESTS_MAX = 16, /* that fork at the same time; others run their forks themselves */
};

/* The external threads of a scheduler. */
struct wf_guests {
    _Alignas(WF_CACHE_LINE) _Atomic(uint32_t) count;    /* external threads that have forked */
    _Atomic(struct wf_strand *) strands[WF_GUESTS_MAX]; /* external threads set and clear them */
};

/* On a plain thread: calls the function as an external thread. Returns the function's result. */
int wf_guest_run(struct wf_sched *sched, int (*function)(void *arg), void *arg);

/* Any thread: returns whether it is in wf_guest_run() for this scheduler. */
bool wf_guest_is_of(const struct wf_sched *sched);

/* On a plain thread that forks for the first time: returns its fork context, or NULL. */
struct wf_strand *wf_guest_attach(void);

/* Any thread: return whether an external thread forks, and whether one has public forks. Hints. */
static inline bool wf_guests_are_there(const struct wf_guests *guests)
{
    /* relaxed: a hint; or behind the fence [V1]. */
    return wf_load_relaxed(&guests->count) > 0;
}
bool wf_guests_have_public(const struct wf_guests *guests);

#endif
