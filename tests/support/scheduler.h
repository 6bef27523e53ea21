/* SPDX-License-Identifier: MIT */
/*
 * scheduler.h - a scheduler without a runtime around it. It was not started: the
 * test drives it by hand, as one worker after the other, or starts it itself.
 */
#ifndef TEST_SCHEDULER_H
#define TEST_SCHEDULER_H

#include "sched/sched.h"
#include "sched/worker.h"

/* Options to begin with. A search does not spin, and the queue of tasks from
 * outside is looked at as seldom as can be: what happens is what the test does. */
struct wf_sched_options test_sched_options(unsigned workers);

/* wf_sched_fini() frees it. */
struct wf_sched *test_sched_create(const struct wf_sched_options *options);

/* On a worker: its loop does not look at the clock for the next polls, so that fibers
 * pass it on however slow this build is. */
void test_postpone_clock(void);

/* Does somebody wait for the end of this task? */
bool test_has_joiner(const weft_task *task);

/* From now on this thread is that worker; NULL: none. */
void test_be_worker(struct wf_worker *worker);

#endif
