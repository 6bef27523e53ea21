/* SPDX-License-Identifier: MIT */
/*
 * fiber.h - fibers: tasks with a stack of their own.
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
struct wf_runners;
struct wf_sched;

/* The fields that a switch needs are in two cache lines, up to the saved exception state in own. */
struct wf_fiber {
    struct wf_task task;
    struct wf_context context;         /* valid while it is suspended */
    struct wf_stack *stack;            /* NULL before it first runs and after it has ended */
    _Atomic(struct wf_fiber *) lender; /* its joiner; others clear it under the join lock */
    uint8_t class;                     /* constant: stack size class */
    bool polling;                      /* a future's poll is in progress */
    bool follows;                      /* constant: part of another task, which cancels it */
    uint16_t scopes;                   /* open parallel scopes */
    _Atomic(uint32_t) open;            /* open objects on its stack: frame.h */
    struct wf_belongings own;          /* saved thread state while it is suspended */
    int (*function)(void *arg);        /* constant */
    union {
        void *arg;            /* until it runs */
        struct wf_join *join; /* during a join handoff, see loan.c: what it waits for */
    };
    void **locals;                     /* see local.c; NULL if it has none */
    const struct wf_job *runs;         /* the fork that it runs, or NULL */
    struct wf_runners *runners;        /* that it belongs to, if it runs a fork */
    struct wf_task *hosting;           /* under the pool's lock: waits for it, see inplace.c */
    _Atomic(struct wf_task *) lent_to; /* handed its worker to; both write, cancelers read */
    _Alignas(16) unsigned char copy[];
};

/* Any thread: spawns a fiber. Same as wf_spawn(), and returns -ENOMEM if there is no stack. */
int wf_fiber_spawn(struct wf_sched *sched, struct wf_task **out, const weft_fiber_spec *spec);

/* On an external thread: spawns a fiber that runs a fork. */
int wf_fiber_spawn_runner(struct wf_sched *sched, size_t stack_size, int (*function)(void *arg),
                          void *arg, struct wf_runners *runners);

/* On a worker: spawns a fiber with default options. */
int wf_fiber_go(struct wf_worker *worker, struct wf_task **out, int (*function)(void *arg),
                void *arg);

/* On a fiber or in a blocking job: same as wf_fiber_go(), for a part of the caller's own work. A
 * shutdown does not cancel it; the caller does, when it is canceled itself. Aborts, naming the
 * call, on a thread that belongs to no runtime. */
int wf_fiber_go_along(struct wf_task **out, int (*function)(void *arg), void *arg,
                      const char *call);

/*
 * On a worker: makes a detached fiber that is in no queue, to run a fork, in two steps.
 * wf_fiber_reserve() allocates all that it needs, or returns NULL if there is no memory. Then
 * either wf_fiber_make() or wf_fiber_unreserve() follows. This works during a shutdown, too,
 * since a task that has not ended needs it.
 */
struct wf_task *wf_fiber_reserve(struct wf_worker *worker, size_t stack_size);
void wf_fiber_unreserve(struct wf_worker *worker, struct wf_task *task, size_t stack_size);
void wf_fiber_make(struct wf_worker *worker, struct wf_task *task, size_t stack_size,
                   int (*function)(void *arg), void *arg, struct wf_runners *runners);

/* On a worker: makes a poll fiber, see shell.c: detached, pinned, in no queue and RUNNING, on
 * the current stack. Returns NULL if there is no memory. Works during a shutdown, as above. */
struct wf_fiber *wf_fiber_make_shell(struct wf_worker *worker, const struct wf_task *polled,
                                     struct wf_stack *stack);

extern const struct wf_task_ops wf_fiber_ops;

/* Returns the task as a fiber; NULL if it is not a fiber, or is NULL. */
static inline struct wf_fiber *wf_fiber_of(struct wf_task *task)
{
    /* Tasks are aligned to 64 (heap.h), more than a header needs. */
    return task != NULL && task->ops == &wf_fiber_ops ? (struct wf_fiber *)(void *)task : NULL;
}

/* Returns the fiber that runs on this worker, or NULL. */
static inline struct wf_fiber *wf_fiber_current(void)
{
    struct wf_worker *worker = wf_worker_current();
    return worker != NULL ? wf_fiber_of(worker->current) : NULL;
}

/* On this fiber: suspends it until the task is woken. Its worker runs other tasks meanwhile. */
void wf_fiber_suspend(struct wf_fiber *self, struct wf_worker *worker);

/* On this fiber: yields. It is queued immediately, behind all other tasks. */
void wf_fiber_yield(struct wf_fiber *self, struct wf_worker *worker);

/*
 * On this fiber: leaves its worker, and stays RUNNING. When no code runs on its stack any more,
 * moved(arg) is called on the worker. From then on another thread may resume its context, and
 * there this function returns.
 */
void wf_fiber_move(struct wf_fiber *self, void (*moved)(void *arg), void *arg);

/*
 * On this fiber, the joiner of a task that is in no queue (loan.c): switches to that task.
 * Returns true when this fiber is resumed. Returns false if there is no stack for the task.
 */
bool wf_fiber_lend(struct wf_fiber *self, struct wf_worker *worker, struct wf_fiber *borrower);

/* On this fiber, before it leaves this thread, in debug builds: aborts if it holds a
 * thread-owned lock. Another fiber on the thread would wait for the lock forever, and this
 * fiber might unlock it on another thread. */
void wf_fiber_must_hold_no_lock(const struct wf_fiber *self, const struct wf_seat *seat);

/* On this fiber, after a switch that carried the worker: the fiber is now on that worker. */
void wf_fiber_arrive(struct wf_fiber *self, struct wf_worker *worker);

/* On a loop, after a switch to it: the fiber that ran here has left. */
void wf_fiber_arrive_at_loop(struct wf_worker *worker);

#endif
