/* SPDX-License-Identifier: MIT */
/*
 * guest.h - plain threads that fork: guests of a scheduler. How is in guest.c.
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

/* Of a scheduler. */
struct wf_guests {
    _Alignas(WF_CACHE_LINE) _Atomic(uint32_t) count;    /* guests that have forked write it */
    _Atomic(struct wf_strand *) strands[WF_GUESTS_MAX]; /* guests fill and clear them */
};

/* On a plain thread: calls the function as a guest; returns its result. */
int wf_guest_run(struct wf_sched *sched, int (*function)(void *arg), void *arg);

/* Any thread: is it in wf_guest_run() for this scheduler? */
bool wf_guest_is_of(const struct wf_sched *sched);

/* On a plain thread that forks for the first time: its strand, or NULL. */
struct wf_strand *wf_guest_attach(void);

/* Any thread: is there a guest that forks; and one whose forks can be taken? Looks. */
static inline bool wf_guests_are_there(const struct wf_guests *guests)
{
    /* relaxed: a look; or behind the fence [V1]. */
    return wf_load_relaxed(&guests->count) > 0;
}
bool wf_guests_have_public(const struct wf_guests *guests);

#endif
