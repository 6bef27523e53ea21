/* SPDX-License-Identifier: MIT */
/*
 * runners.h - the fibers that run the stolen forks of one task, and are canceled with it. The
 * protocol is in runners.c.
 */
#ifndef WF_SCHED_RUNNERS_H
#define WF_SCHED_RUNNERS_H

#include <stdbool.h>

#include "base/list.h"
#include "base/lock.h"

struct wf_task;

/* One for the forks of a fork context that are joined, one for each parallel scope. */
struct wf_runners {
    struct wf_task *owner; /* constant while forks run: the task that waits; NULL: a plain thread */
    struct wf_lock lock;   /* guards the rest */
    struct wf_list list;   /* struct wf_runner */
};

/* A fiber in the list; in its frame. */
struct wf_runner {
    struct wf_list link;
    struct wf_task *task;
    bool canceled; /* under the lock */
};

/* Initializes an empty list of the task that runs here. */
void wf_runners_init(struct wf_runners *runners);

/* On the fiber that runs a stolen fork, before and after it. After wf_runners_remove() the owner
 * may be told that the fork is done; not before. */
void wf_runners_add(struct wf_runners *runners, struct wf_runner *self);
void wf_runners_remove(struct wf_runners *runners, struct wf_runner *self);

/* Owner, while it waits for a fork, each time it wakes up: cancels the runners if the owner is
 * canceled and not shielded. */
void wf_runners_follow(struct wf_runners *runners);

#endif
