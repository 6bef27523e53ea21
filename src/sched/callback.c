/* SPDX-License-Identifier: MIT */
/*
 * callback.c - running callbacks, and waiting for their return.
 *
 * Unregistering a callback waits until it has returned, so that its data may be freed. The wait
 * blocks a thread; callbacks are short and do not suspend.
 *
 *   Caller of the callback                 Waiter
 *   R1  owner's lock: publish it           W1  owner's lock: it is published
 *   R2  call it                            W2  graph's lock: link the wait
 *   R3  owner's lock: unpublish it         W3  unlock both; sleep until it is over [CB1]
 *   R4  if it is awaited: graph's lock,
 *       unlink its waits, end them [CB1]
 *
 * W2 marks the callback as awaited under the owner's lock. R3 takes that lock, so R4 sees the
 * mark of each waiter that has found the callback. The record is in the frame of the caller,
 * which does not leave it before R4 has unlinked every wait that points to it.
 *
 * Cycles. Callbacks may unregister each other, across threads and across kinds. Each wait is an
 * edge from the waiting context, a task or a thread, to the one that runs the callback. A
 * context waits for one callback at a time, so the edges from a context form a path. W2 follows
 * it from the runner of the callback. If it leads to the waiter, the wait would never end and
 * is refused. A callback that unregisters itself is a path of length 0. All edges are linked
 * and unlinked under one lock, so two waiters cannot close a cycle together, and a callback
 * that has returned leaves no edge behind.
 *
 * A waiter that is refused returns while the other callback still runs: that callback, in turn,
 * waits for the callback of the refused waiter.
 *
 * A callback that is run by a task may suspend the task, although it should not; a parallel
 * loop does that, too. If the waiter would then block the only thread that can resume it, the
 * program cannot continue, and aborts with an explanation.
 *
 * Rejected. Never waiting inside a callback: then a callback that stops a timer could not free
 * the timer's data, even if no other callback stops this one.
 *
 * Edges.
 * [CB1] the end of a wait is released, the waiter acquires it: the waiter sees what the
 *       callback did.
 *
 * Checked by tests/model/timer_model.c and token_model.c.
 */
#include "sched/callback.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/lock.h"
#include "sched/thread.h"
#include "sched/worker.h"

static struct wf_list waits = { &waits, &waits };
static struct wf_lock graph_lock = WF_LOCK_INIT(WF_RANK_CALLBACK); /* guards waits */

static struct wf_callback_context own_context(void)
{
    return (struct wf_callback_context){ .task = wf_thread_running(), .thread = pthread_self() };
}

static bool is_same(const struct wf_callback_context *a, const struct wf_callback_context *b)
{
    if (a->task != NULL || b->task != NULL) {
        return a->task == b->task;
    }
    return pthread_equal(a->thread, b->thread);
}

void wf_callback_begin(struct wf_callback *callback)
{
    *callback = (struct wf_callback){ .runner = own_context() };
}

/* Under the graph's lock: returns the wait of a context, or NULL. */
static const struct wf_callback_wait *wait_of(const struct wf_callback_context *context)
{
    for (struct wf_list *link = waits.next; link != &waits; link = link->next) {
        const struct wf_callback_wait *wait = wf_container_of(link, struct wf_callback_wait, link);
        if (is_same(&wait->waiter, context)) {
            return wait;
        }
    }
    return NULL;
}

/* Under the graph's lock: returns whether this context runs the callback, or the callback waits
 * for it. */
static bool waits_for(const struct wf_callback *callback, const struct wf_callback_context *self)
{
    while (!is_same(&callback->runner, self)) {
        const struct wf_callback_wait *wait = wait_of(&callback->runner);
        if (wait == NULL) {
            return false;
        }
        callback = wait->callback;
    }
    return true;
}

/* Aborts if only this thread could resume the callback. It began on this thread, in another
 * context, so it has been suspended. */
static void must_resume_elsewhere(const struct wf_callback *callback, const char *call)
{
    const struct wf_worker *worker = wf_worker_current();
    bool is_held = worker != NULL && (callback->runner.task->pin != 0 || !worker->shares);
    if (wf_unlikely(is_held)) {
        wf_fatal("%s: the callback of a timer or a token has waited, and cannot go on while this "
                 "task waits for its return; such a callback must not wait, but may wake or "
                 "spawn a task that does",
                 call);
    }
}

bool wf_callback_expect(struct wf_callback *callback, struct wf_callback_wait *wait,
                        const char *call)
{
    struct wf_callback_context self = own_context();
    if (is_same(&callback->runner, &self)) {
        return false;
    }
    if (pthread_equal(callback->runner.thread, self.thread)) {
        if (callback->runner.task == NULL) {
            return false; /* The thread's own: below this call on its stacks. */
        }
        must_resume_elsewhere(callback, call);
    }
    wf_lock(&graph_lock);
    bool is_cycle = waits_for(callback, &self);
    if (!is_cycle) {
        callback->is_awaited = true;
        wait->callback = callback;
        wait->waiter = self;
        /* relaxed: published by the lock. */
        wf_store_relaxed(&wait->is_over, 0u);
        wf_list_push_back(&waits, &wait->link);
    }
    wf_unlock(&graph_lock);
    return !is_cycle;
}

void wf_callback_await(struct wf_callback_wait *wait)
{
    /* acquire [CB1]: what the callback did. */
    while (wf_load_acquire(&wait->is_over) == 0) {
        (void)wf_futex_wait(&wait->is_over, 0, WF_NEVER);
    }
}

void wf_callback_end(struct wf_callback *callback)
{
    if (wf_likely(!callback->is_awaited)) {
        return;
    }
    wf_lock(&graph_lock);
    struct wf_list *link = waits.next;
    while (link != &waits) {
        struct wf_callback_wait *wait = wf_container_of(link, struct wf_callback_wait, link);
        link = link->next;
        if (wait->callback == callback) {
            wf_list_remove(&wait->link);
            /* release [CB1]: what the callback did. The waiter's frame may be gone after this;
             * using only the address is harmless. */
            wf_store_release(&wait->is_over, 1u);
            wf_futex_wake(&wait->is_over, 1);
        }
    }
    wf_unlock(&graph_lock);
}
