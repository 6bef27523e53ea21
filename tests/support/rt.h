/* SPDX-License-Identifier: MIT */
/*
 * rt.h - runtimes for tests, and tasks on them. Each call checks that it succeeds.
 */
#ifndef TEST_RT_H
#define TEST_RT_H

#include <weft.h>

/* Starts a runtime with the given number of workers, or as configured. */
weft_runtime *test_start(unsigned workers);
weft_runtime *test_start_with(const weft_config *config);

/* Spawns a stackless task whose state is the pointer arg; test_arg() returns it to the task. */
weft_task *test_spawn(weft_runtime *rt, weft_body_fn body, void *arg);
void *test_arg(void *state);

/* Starts a fiber; test_run() also waits for its result. */
weft_task *test_go(weft_runtime *rt, int (*function)(void *arg), void *arg);
int test_run(weft_runtime *rt, int (*function)(void *arg), void *arg);

/* With one worker: returns when every runnable task has run, and now waits or has ended. */
void test_settle(weft_runtime *rt);

/* test_go() and test_settle(): several of these run in order. */
weft_task *test_go_first(weft_runtime *rt, int (*function)(void *arg), void *arg);

/* On a fiber: returns when the fiber is on another worker, which must become free. One at a
 * time: the moving fiber keeps its worker busy until it has left. */
void test_move(void);

/* Return the result of the task once it has ended: without a deadline, or before
 * test_deadline(). The test fails if the time is over. */
int test_join(weft_task *task);
int test_join_soon(weft_task *task);

/* Returns when all workers have started and are parked. */
void test_wait_until_asleep(const weft_runtime *rt);

/* Returns the number of wakes of all workers. */
uint64_t test_wakes(weft_runtime *rt);

/* A stackless task that ends immediately, with 7. */
int test_return_7(weft_co *co, void *state);

#endif
