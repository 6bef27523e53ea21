/* SPDX-License-Identifier: MIT */
/*
 * loan.h - a fiber lends its worker to the one that it joins. See loan.c.
 */
#ifndef WF_SCHED_LOAN_H
#define WF_SCHED_LOAN_H

#include <stdbool.h>

#include "sched/fiber.h"

/*
 * On this fiber, which joins a task: if the worker would run that one next, does so
 * now, and returns true when this fiber goes on. It has then been enlisted as a joiner
 * (wf_join_is_enlisted()), or the task has ended, or join->refused says that somebody
 * else has joined it.
 */
bool wf_loan_make(struct wf_fiber *self, struct wf_worker *worker, struct wf_join *join);

/* Whoever arrives on the stack of the borrower: the lender has left its own. */
static inline void wf_loan_publish(struct wf_fiber *lender, struct wf_task *borrower)
{
    /* release [O1]: its context is saved, its join is whole. */
    wf_store_release(&lender->lent_to, borrower);
}

/* On this fiber, which has a lender and is about to leave: the lender waits as others
 * do from now on. */
void wf_loan_cut(struct wf_fiber *borrower);

/* On this fiber, which has a lender: completes it. Returns the fiber to go back to, or
 * NULL if that one does not wait any more. */
struct wf_fiber *wf_loan_complete(struct wf_fiber *borrower, int result);

/* Any thread: the fiber has been cancelled. */
void wf_loan_cancelled(struct wf_fiber *lender);

#endif
