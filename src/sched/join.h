/* SPDX-License-Identifier: MIT */
/*
 * join.h - joining a task: waiting for its end. The protocol is in join.c.
 */
#ifndef WF_SCHED_JOIN_H
#define WF_SCHED_JOIN_H

#include <stdbool.h>

#include <weft/task.h>

#include "sched/waitq.h"

/* Layout of a weft_join_future. */
struct wf_join {
    weft_future future;
    struct wf_task *task;
    int *result;
    struct wf_wait wait;
    struct wf_wait_node node;
    bool refused; /* see loan.c: the task already has another joiner */
};

/* Under the join lock of the task, which has JOIN_INTEREST and no joiner: starts the wait and
 * registers the joiner. */
void wf_join_enlist(struct wf_join *join, struct wf_task *waiter);

/* Completer, once, if the state had JOIN_INTEREST: wakes the joiner. */
void wf_join_answer(struct wf_task *task);

#endif
