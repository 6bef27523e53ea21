/* SPDX-License-Identifier: MIT */
/*
 * inplace.c - blocking in place: a fiber that blocks continues on a blocking-pool thread, and
 * comes back. A worker never changes its thread.
 *
 *   Fiber, on a worker                      Host, a blocking job
 *   B1  spawn a job; wait for its thread    H1  claim the fiber's wait, wake it
 *   B2  leave the worker for good           H2  wait until the fiber has left [Z1]
 *       (wf_fiber_move()); finishing        H3  switch to the fiber
 *       the poll reports that [Z1]
 *   B3  call the function; switch back      H4  put it into the queue of the
 *   B4  on a worker again                       runtime; the job ends
 *
 * B1 is a wait like any other, with a deadline and cancellation. A fiber that gives up cancels
 * the job and waits for its end, since the job reads the fiber's frame. From B2 to H4 the fiber
 * is RUNNING. After H4 its frame may be gone, so the host uses only its own.
 *
 * Edges.
 * [Z1] finishing the poll in B2 releases the word, H2 acquires it: the fiber's context is
 *      saved, and no code runs on its stack.
 *
 * Checked by tests/model/fiber_model.c.
 */
#include "sched/inplace.h"

#include <weft/fiber.h>

#include "base/callout.h"
#include "base/clock.h"
#include "base/futex.h"
#include "sched/await.h"
#include "sched/blocking.h"
#include "sched/fiber.h"
#include "sched/heap.h"
#include "sched/sched.h"
#include "sched/strand.h"
#include "sched/thread.h"
#include "sched/waitq.h"
#include "sched/worker.h"

/* In the frame of the fiber. */
struct host {
    weft_future future; /* ready when a thread has arrived */
    struct wf_fiber *fiber;
    struct wf_task *job; /* NULL: not spawned */
    bool dropped;        /* set before DONE: the pool is closed, no thread will come */
    struct wf_wait wait;
    struct wf_wait_node node;
    _Atomic(uint32_t) left;  /* set by the worker that finishes the poll; the host waits for it */
    struct wf_seat seat;     /* state of the host's thread */
    struct wf_context *loop; /* context of the host's thread, to switch back to */
};

static int host_main(void *arg);
static void host_dropped(void *arg);

/* The first poll spawns the job: an await that is refused because the fiber is canceled polls
 * nothing. */
static int host_poll(weft_future *future)
{
    struct host *host = (struct host *)future;
    if (host->job != NULL) {
        int result = wf_wait_poll(&host->wait);
        return result == 0 && host->dropped ? WEFT_ESHUTDOWN : result;
    }
    wf_wait_start(&host->wait, &host->fiber->task);
    struct wf_pool_spec spec = { .function = host_main, .dropped = host_dropped, .arg = host };
    int err = wf_pool_spawn(host->fiber->task.heap->sched, &host->job, &spec);
    if (err != 0) {
        wf_wait_retract(&host->wait);
        return err;
    }
    return WEFT_PENDING;
}

static bool host_cancel(weft_future *future)
{
    struct host *host = (struct host *)future;
    return wf_wait_abandon(&host->wait, WF_WAIT_CANCELLED);
}

static const weft_future_ops host_ops = { .poll = host_poll, .cancel = host_cancel };

/* Sets the task to wake when the fiber is canceled; NULL for none. */
static void set_hosting(struct wf_fiber *fiber, struct wf_task *waiter)
{
    struct wf_pool *pool = &fiber->task.heap->sched->pool;
    wf_lock(&pool->lock);
    fiber->hosting = waiter;
    wf_unlock(&pool->lock);
}

void wf_inplace_cancelled(struct wf_task *task)
{
    struct wf_fiber *fiber = (void *)task;
    struct wf_pool *pool = &task->heap->sched->pool;
    wf_lock(&pool->lock);
    struct wf_task *waiter = fiber->hosting;
    if (waiter != NULL) {
        wf_task_retain(waiter);
    }
    wf_unlock(&pool->lock);
    if (waiter != NULL) {
        wf_task_wake(waiter);
    }
}

/* H3: runs the fiber on this thread until it switches back. */
WF_NO_TSAN static void run_fiber(struct host *host)
{
    struct wf_fiber *fiber = host->fiber;
    struct wf_thread *self = wf_thread_known();
    struct wf_task *job = self != NULL ? self->running : NULL;
    struct wf_context loop;
    wf_context_init_thread(&loop);
    host->loop = &loop;
    host->seat = wf_thread_seat();
    if (self != NULL) {
        self->running = &fiber->task;
        set_hosting(fiber, self->waiter);
    }
    struct wf_seat seat = host->seat;
    struct wf_belongings own; /* the thread's, for its next job */
    wf_seat_leave(&seat, &own);
    wf_strand_use(NULL); /* The thread's stack floor is not the fiber's. */
    (void)wf_context_switch(&loop, &fiber->context, NULL);
    wf_strand_use(NULL);
    wf_seat_take(&seat, &own);
    if (self != NULL) {
        set_hosting(fiber, NULL);
        self->running = job;
    }
}

/* Function of the host's blocking job. */
static int host_main(void *arg)
{
    struct host *host = arg;
    struct wf_fiber *fiber = host->fiber;
    if (!wf_wait_claim(&host->node)) {
        return 0; /* The fiber has given up. */
    }
    wf_task_wake(wf_wait_finish(&host->wait));
    /* acquire [Z1]: the fiber's context is saved. */
    while (wf_load_acquire(&host->left) == 0) {
        (void)wf_futex_wait(&host->left, 0, WF_NEVER);
    }
    run_fiber(host);
    wf_task_mark_queued(&fiber->task);
    wf_sched_schedule(&fiber->task);
    return 0;
}

/* Handles a job that ends without a thread: the runtime shuts down, or the fiber has given up. */
static void host_dropped(void *arg)
{
    struct host *host = arg;
    if (wf_wait_claim(&host->node)) {
        host->dropped = true;
        wf_task_wake(wf_wait_finish(&host->wait));
    }
}

/* B2, on the worker: reports that no code runs on the fiber's stack any more. */
static void fiber_has_left(void *arg)
{
    struct host *host = arg;
    /* release [Z1]: the fiber's context is saved. The host may be gone after this; using only
     * its address is harmless. */
    wf_store_release(&host->left, 1u);
    wf_futex_wake(&host->left, 1);
}

/* B3: switches back to the host's own stack. Returns on a worker. */
WF_NO_TSAN static void go_back(struct wf_fiber *self, struct host *host)
{
    wf_fiber_must_hold_no_lock(self, &host->seat);
    wf_seat_leave(&host->seat, &self->own);
    wf_fiber_arrive(self, wf_context_switch(&self->context, host->loop, NULL));
}

/* Takes the job back, because no thread came in time. */
static void take_back(weft_task *job)
{
    weft_cancel(job);
    weft_shield_enter();
    int err = weft_join(job, NULL, WEFT_NEVER);
    WF_ASSERT(err == 0);
    weft_shield_leave();
}

int weft_block_in_place(int (*function)(void *arg), void *arg, weft_time deadline)
{
    wf_await_must_suspend("weft_block_in_place", "use weft_spawn_blocking() in a body");
    struct wf_fiber *self = wf_fiber_current();
    if (self == NULL) { /* A plain thread may block. */
        int err = wf_await_enter(&deadline, "weft_block_in_place", "");
        return err != 0 ? err : wf_callout(function, arg);
    }
    struct host host = { .future.ops = &host_ops, .fiber = self };
    wf_wait_node_init(&host.node, &host.wait, 0);
    int err = wf_await(&host.future, deadline, "weft_block_in_place", "");
    if (err != 0) {
        if (host.job != NULL) {
            take_back((weft_task *)host.job);
        }
        return err;
    }
    wf_task_release(host.job);
    wf_fiber_move(self, fiber_has_left, &host);
    wf_seat_take(&host.seat, &self->own);
    int result = wf_callout(function, arg);
    go_back(self, &host);
    return result;
}
