/* SPDX-License-Identifier: MIT */
/*
 * join.h - waiting for the end of a task. The protocol is in join.c.
 */
#ifndef WF_SCHED_JOIN_H
#define WF_SCHED_JOIN_H

#include <stdbool.h>

#include <weft/task.h>

#include "sched/waitq.h"

/* What a weft_join_future is. */
struct wf_join {
    weft_future future;
    struct wf_task *task;
    int *result;
    struct wf_wait wait;
    struct wf_wait_node node;
    bool refused; /* see loan.c: somebody else has joined the task */
};

/* Under the join lock of the task, which has JOIN_INTEREST and no joiner: starts the
 * wait and takes the place. */
void wf_join_enlist(struct wf_join *join, struct wf_task *waiter);

/* Completer, once, if the state had JOIN_INTEREST: wakes the joiner. */
void wf_join_answer(struct wf_task *task);

#endif
