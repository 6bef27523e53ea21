/* SPDX-License-Identifier: MIT */
/*
 * loan.h - join handoff: a fiber hands its worker to the task that it joins. See loan.c.
 */
#ifndef WF_SCHED_LOAN_H
#define WF_SCHED_LOAN_H

#include <stdbool.h>

#include "sched/fiber.h"

/*
 * On this fiber, which joins a task: if the worker would run that task next, runs it now, and
 * returns true when this fiber resumes. Then either it has become a regular joiner
 * (wf_wait_is_started() of the join's wait), or the task has ended, or join->refused says that
 * the task has another joiner.
 */
bool wf_loan_make(struct wf_fiber *self, struct wf_worker *worker, struct wf_join *join);

/* Called on arrival on the stack of the joined task: the joiner has left its own stack. */
static inline void wf_loan_publish(struct wf_fiber *lender, struct wf_task *borrower)
{
    /* release [O1]: its context is saved, its join is initialized. */
    wf_store_release(&lender->lent_to, borrower);
}

/* On this fiber, which got its worker by a handoff and is about to leave: makes its joiner wait
 * like any other from now on. */
void wf_loan_cut(struct wf_fiber *borrower);

/* On this fiber, which got its worker by a handoff: completes it. Returns the joiner to switch
 * back to, or NULL if that one has resumed elsewhere. */
struct wf_fiber *wf_loan_complete(struct wf_fiber *borrower, int result);

/* Any thread: handles a cancellation of the joiner. */
void wf_loan_cancelled(struct wf_fiber *lender);

#endif
