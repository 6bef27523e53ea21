/* SPDX-License-Identifier: MIT */
/*
 * inplace.c - a fiber that blocks: it goes on on a thread of the blocking pool, and
 * comes back. A worker never changes its thread.
 *
 *   Fiber, on a worker                      Host, a job of the pool
 *   B1  spawn a job; wait for its thread    H1  claim the fiber's wait, wake it
 *   B2  leave the worker for good           H2  wait until the fiber has left [Z1]
 *       (wf_fiber_move()); who              H3  switch to the fiber
 *       settles that says so [Z1]
 *   B3  call the function; switch back      H4  put it into the queue of the
 *   B4  on a worker again                       runtime; the job ends
 *
 * B1 is a wait like any other, with a deadline and cancellation; a fiber that gives
 * up cancels the job and waits for its end, since the job looks into its frame. From
 * B2 to H4 the fiber is RUNNING. After H4 its frame may be gone: the host uses only
 * its own.
 *
 * Edges.
 * [Z1] the settling of B2 releases the word, H2 acquires it: the fiber's context is
 *      whole, and nobody is on its stack.
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
#include "sched/thread.h"
#include "sched/waitq.h"
#include "sched/worker.h"

/* In the frame of the fiber. */
struct host {
    weft_future future; /* ready when a thread is there */
    struct wf_fiber *fiber;
    struct wf_task *job; /* NULL: not spawned */
    bool dropped;        /* before DONE: the pool is closed, and nobody will come */
    struct wf_wait wait;
    struct wf_wait_node node;
    _Atomic(uint32_t) left;  /* the settling worker sets it, the host waits for it */
    struct wf_seat seat;     /* the thread's */
    struct wf_context *loop; /* the thread's: where to switch back to */
};

static int host_main(void *arg);
static void host_dropped(void *arg);

/* The job is spawned by the first poll: an await that is refused, because the fiber
 * is cancelled, polls nothing. */
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

/* Tells whom to wake when the fiber is cancelled; NULL: nobody. */
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

/* H3: runs the fiber on this thread until it comes back. */
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
    (void)wf_context_switch(&loop, &fiber->context, NULL);
    wf_seat_take(&seat, &own);
    if (self != NULL) {
        set_hosting(fiber, NULL);
        self->running = job;
    }
}

/* The job. */
static int host_main(void *arg)
{
    struct host *host = arg;
    struct wf_fiber *fiber = host->fiber;
    if (!wf_wait_claim(&host->node)) {
        return 0; /* It has given up. */
    }
    wf_task_wake(wf_wait_finish(&host->wait));
    /* acquire [Z1]: the fiber's context is whole. */
    while (wf_load_acquire(&host->left) == 0) {
        (void)wf_futex_wait(&host->left, 0, WF_NEVER);
    }
    run_fiber(host);
    wf_task_mark_queued(&fiber->task);
    wf_sched_schedule(&fiber->task);
    return 0;
}

/* The job ends without a thread: the runtime shuts down, or the fiber has given up. */
static void host_dropped(void *arg)
{
    struct host *host = arg;
    if (wf_wait_claim(&host->node)) {
        host->dropped = true;
        wf_task_wake(wf_wait_finish(&host->wait));
    }
}

/* B2, on the worker: nobody is on the stack of the fiber any more. */
static void fiber_has_left(void *arg)
{
    struct host *host = arg;
    /* release [Z1]: the fiber's context is whole. The host may be gone after this;
     * its address alone is harmless. */
    wf_store_release(&host->left, 1u);
    wf_futex_wake(&host->left, 1);
}

/* B3: back to the host's own stack. Returns on a worker. */
WF_NO_TSAN static void go_back(struct wf_fiber *self, struct host *host)
{
    wf_fiber_must_hold_no_lock(self, &host->seat);
    wf_seat_leave(&host->seat, &self->own);
    wf_fiber_arrive(self, wf_context_switch(&self->context, host->loop, NULL));
}

/* Nobody came in time: takes the job back. */
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
