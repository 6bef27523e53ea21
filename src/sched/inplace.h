/* SPDX-License-Identifier: MIT */
/*
 * inplace.h - blocking in place: a fiber that blocks continues on a blocking-pool thread.
 */
#ifndef WF_SCHED_INPLACE_H
#define WF_SCHED_INPLACE_H

struct wf_task;

/* Handles a cancellation of a running fiber: wakes it if it waits on a pool thread. */
void wf_inplace_cancelled(struct wf_task *task);

#endif
