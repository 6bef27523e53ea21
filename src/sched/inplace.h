/* SPDX-License-Identifier: MIT */
/*
 * inplace.h - a fiber that blocks: it goes on on a thread of the blocking pool.
 */
#ifndef WF_SCHED_INPLACE_H
#define WF_SCHED_INPLACE_H

struct wf_task;

/* A fiber was cancelled while it runs: wakes it if it waits on a pool thread. */
void wf_inplace_cancelled(struct wf_task *task);

#endif
