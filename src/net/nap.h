/* SPDX-License-Identifier: MIT */
/*
 * nap.h - retry with backoff, for conditions without a readiness event: descriptors, memory, room
 * in a backlog. Each nap of a transfer is twice as long as the one before, up to 100 ms.
 */
#ifndef WF_NET_NAP_H
#define WF_NET_NAP_H

struct wf_sched;
struct wf_transfer;

/* In an attempt: prepares a nap, the first of 2 ms, and returns what the attempt returns. Uses
 * room[0] of the transfer. */
int wf_nap(struct wf_transfer *self, struct wf_sched *sched);

/* The same, the first of 50 us: for what another process or task is busy with. */
int wf_nap_briefly(struct wf_transfer *self, struct wf_sched *sched);

#endif
