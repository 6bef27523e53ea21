/* SPDX-License-Identifier: MIT */
/*
 * loan.c - join handoff: a fiber hands its worker to the task that it joins.
 *
 * A fiber that joins a fiber which its worker would run next need not wait in the usual way. It
 * switches to the stack of the joined fiber, which switches back when it has ended. No lock, no
 * wake-up, no queue. The joiner (lender in the code) stays RUNNING all the time, as if it had
 * called a function.
 *
 *   Joiner A, worker W                      Joined fiber B, on W
 *   N1  take B out of W's queue             E1  complete B; no JOIN_INTEREST: switch
 *   N2  B->lender = A                           back to A. Else lock: switch back, if
 *   N3  switch to B; on arrival there           B still has a lender
 *       store A->lent_to = B [O1]           E2  to leave before its end, cut: lock;
 *   N4  (back) A->lent_to = NULL                clear the lender and enqueue it as the
 *                                               joiner of B; unlock; make it IDLE
 *   Canceler of A
 *   C1  B = A->lent_to [O1]; lock B's join lock
 *   C2  set JOIN_INTEREST of B, unless complete; A->lent_to is still B [O1]
 *   C3  clear the lender and enqueue it, as in E2; unlock; schedule A
 *
 * The join lock is B's. A thread that ends A's handoff does so under that lock, after B has got
 * JOIN_INTEREST, which it keeps. So a completion without the flag (E1) comes before any such
 * thread, and B may switch back to A. A completion with the flag finds out behind the lock.
 *
 * C1 may be late: B may have ended, and its slot may be another task by now, since slots stay
 * tasks forever (heap.h). Then C2 may set the flag of an unrelated task, which costs that
 * task's completer a look behind the lock. But if A->lent_to is B after the flag was set, A has
 * handed its worker to exactly this B, which cannot end before the lock is free.
 *
 * A canceler that comes before N3 finds no handoff. It has left its mark in A's state, which is
 * seen when B leaves or ends.
 *
 * B may itself be the joiner in another handoff. When a task leaves, every joiner below it
 * leaves, too. Each becomes IDLE after its own handoff was cut, because from then on it may
 * resume elsewhere.
 *
 * Edges.
 * [O1] N3's store releases, C1 and C2 acquire: B's slot is a task, A's context is saved, and
 *      what A has written for C3 is visible.
 *
 * Checked by tests/model/loan_model.c.
 */
#include "sched/loan.h"

#include "base/assert.h"
#include "sched/fiber.h"
#include "sched/heap.h"
#include "sched/join.h"
#include "sched/sched.h"
#include "sched/worker.h"

bool wf_loan_make(struct wf_fiber *self, struct wf_worker *worker, struct wf_join *join)
{
    struct wf_fiber *borrower = wf_fiber_of(join->task);
    if (borrower == NULL || wf_heap_is_large(join->task) ||
        !wf_worker_take_direct(worker, join->task)) {
        return false;
    }
    self->join = join;
    /* relaxed: only this worker reads it before [O1]. */
    wf_store_relaxed(&borrower->lender, self);
    if (!wf_fiber_lend(self, worker, borrower)) {
        /* relaxed: as above, only this worker reads it. */
        wf_store_relaxed(&borrower->lender, (struct wf_fiber *)NULL);
        wf_worker_push(worker, join->task);
        return false;
    }
    /* relaxed: a canceler that misses this finds the joined task complete. */
    wf_store_relaxed(&self->lent_to, (struct wf_task *)NULL);
    return true;
}

/* Under the join lock: ends the handoff. The joiner waits in the usual way, or is refused. */
static void enlist(struct wf_fiber *borrower, struct wf_fiber *lender)
{
    /* relaxed: under the lock; and see E1 above. */
    wf_store_relaxed(&borrower->lender, (struct wf_fiber *)NULL);
    wf_store_relaxed(&lender->lent_to, (struct wf_task *)NULL);
    lender->join->refused = borrower->task.joiner != NULL;
    if (!lender->join->refused) {
        wf_join_enlist(lender->join, &lender->task);
    }
}

/* Makes a joiner whose handoff has ended IDLE, or queues it. It may resume elsewhere after this. */
static void let_go(struct wf_fiber *lender)
{
    struct wf_task *task = &lender->task;
    if (lender->join->refused || wf_state_pend(&task->state) == WF_STEP_SCHEDULE) {
        wf_task_mark_queued(task);
        wf_sched_schedule(task);
    }
}

/* Ends the handoff to this fiber. Returns its joiner, or NULL if there is none (any more). */
static struct wf_fiber *take_lender(struct wf_fiber *borrower)
{
    /* relaxed: it is cleared only under the lock. */
    if (wf_load_relaxed(&borrower->lender) == NULL) {
        return NULL;
    }
    struct wf_lock *lock = wf_heap_join_lock(borrower->task.heap, &borrower->task);
    wf_lock(lock);
    /* relaxed: under the lock. */
    struct wf_fiber *lender = wf_load_relaxed(&borrower->lender);
    if (lender != NULL) {
        bool alive = wf_state_join_register(&borrower->task.state);
        WF_ASSERT(alive);
        enlist(borrower, lender);
    }
    wf_unlock(lock);
    return lender;
}

void wf_loan_cut(struct wf_fiber *borrower)
{
    struct wf_fiber *lender = take_lender(borrower);
    while (lender != NULL) {
        struct wf_fiber *below = take_lender(lender);
        let_go(lender);
        lender = below;
    }
}

struct wf_fiber *wf_loan_complete(struct wf_fiber *borrower, int result)
{
    struct wf_task *task = &borrower->task;
    /* relaxed: if another thread has cleared it, the flag is set. */
    struct wf_fiber *lender = wf_load_relaxed(&borrower->lender);
    task->result = result;
    if ((wf_state_complete(&task->state) & WF_STATE_JOIN_INTEREST) == 0) {
        return lender;
    }
    struct wf_lock *lock = wf_heap_join_lock(task->heap, task);
    wf_lock(lock);
    /* relaxed: under the lock. */
    lender = wf_load_relaxed(&borrower->lender);
    if (lender != NULL) {
        lender->join->refused = task->joiner != NULL;
    }
    wf_unlock(lock);
    wf_join_answer(task);
    wf_task_release(task);
    return lender;
}

/* C2, under the join lock of the task: returns whether the joiner has handed its worker to this
 * task, which has not ended. */
static bool is_lent_to(struct wf_fiber *lender, struct wf_task *task)
{
    if (!wf_state_join_register(&task->state)) {
        return false;
    }
    /* acquire [O1]: what the lender has written is seen. */
    return wf_load_acquire(&lender->lent_to) == task;
}

void wf_loan_cancelled(struct wf_fiber *lender)
{
    /* acquire [O1]: the slot is a task. */
    struct wf_task *task = wf_load_acquire(&lender->lent_to);
    if (task == NULL) {
        return;
    }
    struct wf_lock *lock = wf_heap_join_lock(lender->task.heap, task);
    wf_lock(lock);
    bool lent = is_lent_to(lender, task);
    if (lent) {
        struct wf_fiber *borrower = wf_fiber_of(task);
        WF_ASSERT(borrower != NULL);
        enlist(borrower, lender);
    }
    wf_unlock(lock);
    if (lent) {
        let_go(lender);
    }
}
