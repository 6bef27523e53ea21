/* SPDX-License-Identifier: MIT */
/*
 * shell.h - poll fibers: stackless polls that wait for a fork. The loop that polls suspends,
 * and its worker continues with a spare loop. The protocol is in shell.c.
 */
#ifndef WF_SCHED_SHELL_H
#define WF_SCHED_SHELL_H

#include "fiber/context.h"
#include "fiber/stack.h"

struct wf_fiber;
struct wf_worker;

enum {
    WF_LOOPS_KEPT = 2, /* spare loops that a worker keeps, besides the first one */
};

/* A worker loop, on a stack of its own. */
struct wf_loop {
    struct wf_stack *stack;    /* constant */
    struct wf_context context; /* while it is spare */
    struct wf_loop *next;      /* while it is spare */
};

/* The loops of a worker; owner only. */
struct wf_loops {
    struct wf_loop home; /* the first one, on the thread's stack */
    struct wf_stack home_stack;
    struct wf_loop *running; /* the one whose context is worker->loop */
    struct wf_loop *spare;   /* list */
    unsigned spares;         /* in the list, besides the first one */
};

/* On the worker's thread, before and after its loop. */
void wf_loops_init(struct wf_worker *worker);
void wf_loops_fini(struct wf_worker *worker);

/* In a stackless poll: returns its poll fiber, which is made now if there is none. NULL if
 * there is no memory. */
struct wf_fiber *wf_shell_get(struct wf_worker *worker);

/* In a poll that has a poll fiber: lets the worker run other tasks until the poll fiber is
 * woken. wf_shell_yield() queues it immediately. */
void wf_shell_suspend(struct wf_worker *worker);
void wf_shell_yield(struct wf_worker *worker);

/* Ends the poll fiber after a poll that has made one. */
void wf_shell_end(struct wf_worker *worker);

#endif
