/* SPDX-License-Identifier: MIT */
/*
 * scheduler.h - scheduler without a runtime. It is not started: the test drives it by hand, as
 * one worker after another, or starts it itself.
 */
#ifndef TEST_SCHEDULER_H
#define TEST_SCHEDULER_H

#include "sched/sched.h"
#include "sched/worker.h"

/* Returns default options. A search does not spin, and the inject queue is polled as rarely as
 * possible: nothing happens but what the test does. */
struct wf_sched_options test_sched_options(unsigned workers);

/* wf_sched_fini() frees it. */
struct wf_sched *test_sched_create(const struct wf_sched_options *options);

/* On a worker: its loop does not check the clock for the next polls, so that fibers hand it over
 * however slow this build is. */
void test_postpone_clock(void);

/* Returns whether a joiner waits for the task. */
bool test_has_joiner(const weft_task *task);

/* Makes this thread the given worker; NULL: none. */
void test_be_worker(struct wf_worker *worker);

#endif
