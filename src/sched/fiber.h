/* SPDX-License-Identifier: MIT */
/*
 * fiber.h - tasks with a stack of their own.
 */
#ifndef WF_SCHED_FIBER_H
#define WF_SCHED_FIBER_H

#include <weft/fiber.h>

#include "fiber/context.h"
#include "fiber/stack.h"
#include "sched/task.h"
#include "sched/thread.h"
#include "sched/worker.h"

struct wf_job;
struct wf_join;
struct wf_sched;

/* What a switch needs is in two lines of the cache, up to the exceptions of its own. */
struct wf_fiber {
    struct wf_task task;
    struct wf_context context;         /* valid while it is suspended */
    struct wf_stack *stack;            /* NULL before it first runs and after its end */
    _Atomic(struct wf_fiber *) lender; /* its own; others take it out under the join lock */
    uint8_t class;                     /* constant: of its stack */
    bool polling;                      /* a future's poll is under way */
    uint16_t scopes;                   /* parallel scopes that it has begun and not ended */
    _Atomic(uint32_t) open;            /* objects on its stack that were not ended: frame.h */
    struct wf_belongings own;          /* while it is suspended: its seat's */
    int (*function)(void *arg);        /* constant */
    union {
        void *arg;            /* until it runs */
        struct wf_join *join; /* while it is lent, see loan.c: what it waits for */
    };
    void **locals;                     /* see local.c; NULL if it has none */
    const struct wf_job *runs;         /* the fork that this is, or NULL */
    struct wf_task *hosting;           /* under the pool's lock: waits for it, see inplace.c */
    _Atomic(struct wf_task *) lent_to; /* its own and its borrower's; cancellers read it */
    _Alignas(16) unsigned char copy[];
};

/* Any thread: spawns a fiber. As wf_spawn(), and -ENOMEM if there is no stack. */
int wf_fiber_spawn(struct wf_sched *sched, struct wf_task **out, const weft_fiber_spec *spec);

/* On a worker: the same for a fiber like most. */
int wf_fiber_go(struct wf_worker *worker, struct wf_task **out, int (*function)(void *arg),
                void *arg);

/*
 * On a worker: a fiber that is detached and in no queue, for the caller to run, in two
 * steps. Reserve gets all that it needs, NULL if there is no memory; then make or
 * unreserve it. In a shutdown, too, since a task that has not ended needs it; it is
 * cancelled then, like all others.
 */
struct wf_task *wf_fiber_reserve(struct wf_worker *worker, size_t stack_size);
void wf_fiber_unreserve(struct wf_worker *worker, struct wf_task *task, size_t stack_size);
void wf_fiber_make(struct wf_worker *worker, struct wf_task *task, size_t stack_size,
                   int (*function)(void *arg), void *arg);

/* On a worker: a fiber that is detached, pinned, in no queue and RUNNING, on the stack that
 * this is; see shell.c. NULL: no memory. In a shutdown as above. */
struct wf_fiber *wf_fiber_make_shell(struct wf_worker *worker, const struct wf_task *polled,
                                     struct wf_stack *stack);

extern const struct wf_task_ops wf_fiber_ops;

/* The task as a fiber; NULL if it is none, or NULL. */
static inline struct wf_fiber *wf_fiber_of(struct wf_task *task)
{
    /* Tasks are aligned to 64 (heap.h), more than a header needs. */
    return task != NULL && task->ops == &wf_fiber_ops ? (struct wf_fiber *)(void *)task : NULL;
}

/* The fiber that this worker runs, or NULL. */
static inline struct wf_fiber *wf_fiber_current(void)
{
    struct wf_worker *worker = wf_worker_current();
    return worker != NULL ? wf_fiber_of(worker->current) : NULL;
}

/* On this fiber: lets its worker go on with others until the task is woken. */
void wf_fiber_suspend(struct wf_fiber *self, struct wf_worker *worker);

/* On this fiber: the same, but it is queued at once, behind everybody else. */
void wf_fiber_yield(struct wf_fiber *self, struct wf_worker *worker);

/*
 * On this fiber: leaves its worker, and stays RUNNING. When nobody is on its stack any
 * more, moved(arg) is called on the worker; from then on another thread may go on with
 * its context, and that is where this returns.
 */
void wf_fiber_move(struct wf_fiber *self, void (*moved)(void *arg), void *arg);

/*
 * On this fiber, the lender of a borrower that is in no queue (loan.c): goes on there,
 * and returns true when somebody goes on here. False if there is no stack for it.
 */
bool wf_fiber_lend(struct wf_fiber *self, struct wf_worker *worker, struct wf_fiber *borrower);

/* On this fiber, before it leaves this thread, in debug builds: aborts if it holds a
 * lock of the thread's. Another one there would wait for it for ever, and this one
 * might unlock it on another thread. */
void wf_fiber_must_hold_no_lock(const struct wf_fiber *self, const struct wf_seat *seat);

/* On this fiber, after a switch that carried the worker: it is on that one now. */
void wf_fiber_arrive(struct wf_fiber *self, struct wf_worker *worker);

/* On a loop, after a switch to it: the fiber that was here has left. */
void wf_fiber_arrive_at_loop(struct wf_worker *worker);

#endif
