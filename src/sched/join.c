/* SPDX-License-Identifier: MIT */
/*
 * join.c - joining a task: waiting for its end.
 *
 * A task has one slot for a joiner, guarded by one of the heap's join locks, and the flag
 * JOIN_INTEREST, which says that the slot may be in use. The flag stays set when the joiner
 * gives up. A task that ends without the flag touches no lock.
 *
 *   Joiner, under the lock                 Completer
 *   J1  slot in use: refused               K1  RUNNING to COMPLETE; no flag: done
 *   J2  set the flag, unless COMPLETE      K2  lock; take the joiner out; claim
 *       (then there is nothing to wait         and finish its wait; unlock
 *       for)                               K3  wake it
 *   J3  fill the slot, unlock, suspend
 *
 * J2 and K1 are transitions of one word. Either the completer sees the flag, and then finds the
 * joiner behind the lock, or the joiner sees COMPLETE. A joiner that gives up takes its node
 * out under the lock (waitq.h, W2 and W3).
 *
 * A fiber has two shorter ways. If the task has ended, there is nothing to wait for. If its
 * worker would run the task next, it hands its worker to the task (loan.c).
 *
 * Checked by tests/model/join_model.c.
 */
#include "sched/join.h"

#include <errno.h>

#include <weft/task.h>

#include "base/assert.h"
#include "base/fork.h"
#include "sched/await.h"
#include "sched/heap.h"
#include "sched/loan.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/waitq.h"

_Static_assert(sizeof(struct wf_join) <= sizeof(weft_join_future), "weft_join_future is too small");
_Static_assert(offsetof(struct wf_join, task) == offsetof(weft_join_future, task), "");
_Static_assert(offsetof(struct wf_join, result) == offsetof(weft_join_future, result), "");

void wf_join_answer(struct wf_task *task)
{
    struct wf_lock *lock = wf_heap_join_lock(task->heap, task);
    struct wf_task *joiner = NULL;
    wf_lock(lock);
    struct wf_wait_node *node = task->joiner;
    task->joiner = NULL;
    if (node != NULL && wf_wait_claim(node)) {
        joiner = wf_wait_finish(node->wait);
    }
    wf_unlock(lock);
    if (joiner != NULL) {
        wf_task_wake(joiner);
    }
}

/* Takes the result of a task that has ended, and ends the handle. */
static int take_result(struct wf_join *join)
{
    struct wf_task *task = join->task;
    wf_task_check_handle(wf_task_state(task),
                         "weft_join"); /* It may have been detached meanwhile. */
    if (join->result != NULL) {
        *join->result = task->result;
    }
    join->task = NULL;
    wf_task_release(task);
    return 0;
}

void wf_join_enlist(struct wf_join *join, struct wf_task *waiter)
{
    wf_wait_start(&join->wait, waiter);
    wf_wait_node_init(&join->node, &join->wait, 0);
    join->task->joiner = &join->node;
}

static int join_start(struct wf_join *join)
{
    struct wf_task *task = join->task;
    struct wf_task *waiter = wf_thread_waiter();
    if (task == waiter || task == wf_thread_running()) {
        wf_fatal("weft_join: a task joins itself and would wait for ever");
    }
    uint64_t state = wf_task_state(task);
    wf_task_check_handle(state, "weft_join");
    if (wf_state_is_complete(state)) {
        return take_result(join);
    }
    wf_task_check_running(state, "weft_join");
    wf_fork_check(task->heap->sched->fork_number, "weft_join");

    struct wf_lock *lock = wf_heap_join_lock(task->heap, task);
    int result = WEFT_PENDING;
    wf_lock(lock);
    if (task->joiner != NULL) {
        result = WEFT_EJOINED;
    } else if (!wf_state_join_register(&task->state)) {
        result = 0;
    } else {
        wf_join_enlist(join, waiter);
    }
    wf_unlock(lock);
    return result == 0 ? take_result(join) : result;
}

static int join_poll(weft_future *future)
{
    struct wf_join *join = (struct wf_join *)future;
    if (wf_unlikely(join->task == NULL)) {
        wf_fatal("weft_join: this future has had its result, which ended the handle; prepare it "
                 "anew with weft_join_init()");
    }
    if (!wf_wait_is_started(&join->wait)) {
        return join_start(join);
    }
    int result = wf_wait_poll(&join->wait);
    if (result == WEFT_PENDING) {
        wf_thread_must_await(join->wait.task);
    }
    return result == 0 ? take_result(join) : result;
}

static bool join_cancel(weft_future *future)
{
    struct wf_join *join = (struct wf_join *)future;
    struct wf_task *task = join->task;
    if (!wf_wait_abandon(&join->wait, WF_WAIT_CANCELLED)) {
        return false;
    }
    struct wf_lock *lock = wf_heap_join_lock(task->heap, task);
    wf_lock(lock);
    if (task->joiner == &join->node) {
        task->joiner = NULL;
    }
    wf_unlock(lock);
    return true;
}

static const weft_future_ops join_ops = { .poll = join_poll, .cancel = join_cancel };

void weft_join_init(weft_join_future *future, weft_task *task, int *result)
{
    struct wf_join *join = (struct wf_join *)future;
    join->future.ops = &join_ops;
    join->task = (struct wf_task *)task;
    join->result = result;
    join->refused = false;
    wf_wait_init(&join->wait);
}

/* On a fiber: takes the result of a task that has ended, and ends the handle. */
static int take_ended(struct wf_worker *worker, struct wf_task *task, int *result)
{
    if (result != NULL) {
        *result = task->result;
    }
    if (wf_state_release_ended(&task->state)) {
        wf_heap_free_own(worker->heap, task, worker->index);
    }
    return 0;
}

/* On a fiber: ends a join after a join handoff. */
static int join_lent(struct wf_fiber *self, struct wf_join *join)
{
    if (join->refused) {
        return WEFT_EJOINED;
    }
    if (wf_wait_is_started(&join->wait)) {
        return wf_await_woken(self, &join->future);
    }
    return take_ended(wf_worker_current(), join->task, join->result);
}

static const char instead[] = "await a weft_join_future in a body";

static int fiber_join(struct wf_fiber *self, struct wf_worker *worker, struct wf_task *task,
                      int *result, weft_time deadline)
{
    wf_await_point(&deadline);
    uint64_t state = wf_task_state(task);
    wf_task_check_handle(state, "weft_join");
    bool direct = task->heap == worker->heap && wf_await_may_take(self, worker);
    if (direct && wf_state_is_complete(state)) {
        worker->budget--;
        return take_ended(worker, task, result);
    }
    wf_task_check_running(state, "weft_join");
    weft_join_future future;
    weft_join_init(&future, (weft_task *)task, result);
    struct wf_join *join = (struct wf_join *)&future;
    if (direct && deadline == WEFT_NEVER && (state & WF_STATE_JOIN_INTEREST) == 0 &&
        wf_loan_make(self, worker, join)) {
        return join_lent(self, join);
    }
    return wf_await(&future.future, deadline, "weft_join", instead);
}

int weft_join(weft_task *task, int *result, weft_time deadline)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        struct wf_fiber *self = wf_await_fiber(worker, "weft_join", instead);
        return fiber_join(self, worker, (struct wf_task *)task, result, deadline);
    }
    weft_join_future future;
    weft_join_init(&future, task, result);
    return wf_await(&future.future, deadline, "weft_join", instead);
}

int weft_try_join(weft_task *handle, int *result)
{
    struct wf_task *task = (struct wf_task *)handle;
    uint64_t state = wf_task_state(task);
    wf_task_check_handle(state, "weft_try_join");
    if (!wf_state_is_complete(state)) {
        wf_task_check_running(state, "weft_try_join");
        struct wf_lock *lock = wf_heap_join_lock(task->heap, task);
        wf_lock(lock);
        bool joined = task->joiner != NULL;
        wf_unlock(lock);
        return joined ? WEFT_EJOINED : -EAGAIN;
    }
    struct wf_join join = { .task = task, .result = result };
    return take_result(&join);
}

void weft_detach(weft_task *handle)
{
    struct wf_task *task = (struct wf_task *)handle;
    if (task != NULL) {
        uint64_t state = wf_task_state(task);
        wf_task_check_handle(state, "weft_detach");
        wf_task_check_running(state, "weft_detach");
        wf_task_release(task);
    }
}
