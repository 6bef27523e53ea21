/* SPDX-License-Identifier: MIT */
/*
 * await.h - who may wait.
 */
#ifndef WF_SCHED_AWAIT_H
#define WF_SCHED_AWAIT_H

/* Aborts where nothing can be suspended: on a worker outside of a fiber. */
void wf_await_must_suspend(const char *call, const char *instead);

#endif
