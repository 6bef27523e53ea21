/* SPDX-License-Identifier: MIT */
/*
 * nap.h - waiting for what no event tells of: descriptors, memory, room in a backlog. Each
 * nap of a transfer is longer than the one before, from 2 to 100 ms.
 */
#ifndef WF_NET_NAP_H
#define WF_NET_NAP_H

struct wf_sched;
struct wf_transfer;

/* In an attempt: what to return. Uses room[0] of the transfer. */
int wf_nap(struct wf_transfer *self, struct wf_sched *sched);

#endif
