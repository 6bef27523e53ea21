/* SPDX-License-Identifier: MIT */
/*
 * join.h - waiting for the end of a task. The protocol is in join.c.
 */
#ifndef WF_SCHED_JOIN_H
#define WF_SCHED_JOIN_H

struct wf_task;

/* Completer, once, if the state had JOIN_INTEREST: wakes the joiner. */
void wf_join_answer(struct wf_task *task);

#endif
