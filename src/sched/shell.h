/* SPDX-License-Identifier: MIT */
/*
 * shell.h - polls that wait for a fork: the loop that polls suspends, and its worker goes
 * on with a spare one. The protocol is in shell.c.
 */
#ifndef WF_SCHED_SHELL_H
#define WF_SCHED_SHELL_H

#include "fiber/context.h"
#include "fiber/stack.h"

struct wf_fiber;
struct wf_worker;

enum {
    WF_LOOPS_KEPT = 2, /* that a worker keeps for later, besides the first one */
};

/* A loop of a worker, on a stack of its own. */
struct wf_loop {
    struct wf_stack *stack;    /* constant */
    struct wf_context context; /* while it is spare */
    struct wf_loop *next;      /* while it is spare */
};

/* The loops of a worker; owner only. */
struct wf_loops {
    struct wf_loop home; /* the first one, on the stack of the thread */
    struct wf_stack home_stack;
    struct wf_loop *running; /* the one whose context is worker->loop */
    struct wf_loop *spare;   /* list */
    unsigned spares;         /* in it, besides the first one */
};

/* On the worker's thread, before its loop; and after it. */
void wf_loops_init(struct wf_worker *worker);
void wf_loops_fini(struct wf_worker *worker);

/* In a poll without a stack: its shell, made now if it has none. NULL: no memory. */
struct wf_fiber *wf_shell_get(struct wf_worker *worker);

/* In a poll that has a shell: lets the worker go on with others, until the shell is woken;
 * and the same, queued at once. */
void wf_shell_suspend(struct wf_worker *worker);
void wf_shell_yield(struct wf_worker *worker);

/* After a poll that has made a shell. */
void wf_shell_end(struct wf_worker *worker);

#endif
