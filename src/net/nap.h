/* SPDX-License-Identifier: MIT */
/*
 * nap.h - retry with backoff, for conditions without a readiness event: free descriptors,
 * memory, space in a backlog. Each interval of a transfer is twice as long as the one before,
 * up to 100 ms.
 */
#ifndef WF_NET_NAP_H
#define WF_NET_NAP_H

struct wf_sched;
struct wf_transfer;

/* Prepares a backoff in an attempt, of 2 ms at first, and returns the result of the attempt.
 * Uses room[0] of the transfer. */
int wf_nap(struct wf_transfer *self, struct wf_sched *sched);

/* Same as wf_nap(), but 50 us at first: for a condition that another process or task will soon
 * change. */
int wf_nap_briefly(struct wf_transfer *self, struct wf_sched *sched);

#endif
