/* SPDX-License-Identifier: MIT */
/*
 * rt.h - a runtime to test on, and tasks on it. Each call checks that it succeeds.
 */
#ifndef TEST_RT_H
#define TEST_RT_H

#include <weft.h>

/* A runtime with so many workers, or as configured. */
weft_runtime *test_start(unsigned workers);
weft_runtime *test_start_with(const weft_config *config);

/* Spawns a body whose state is the pointer arg; test_arg() gives it to the body. */
weft_task *test_spawn(weft_runtime *rt, weft_body_fn body, void *arg);
void *test_arg(void *state);

/* Starts a fiber; and waits for its result. */
weft_task *test_go(weft_runtime *rt, int (*function)(void *arg), void *arg);
int test_run(weft_runtime *rt, int (*function)(void *arg), void *arg);

/* With one worker: returns when all that was runnable has run, and now waits or has ended. */
void test_settle(weft_runtime *rt);

/* Both: several of these come in their order. */
weft_task *test_go_first(weft_runtime *rt, int (*function)(void *arg), void *arg);

/* On a fiber: when it returns, the fiber is on another worker, which must have become
 * free. One at a time: who moves keeps its worker busy until it has left. */
void test_move(void);

/* The result of the task, once it has ended: waits without a deadline; for a minute;
 * for so long. The test fails when that is over. */
int test_join(weft_task *task);
int test_join_soon(weft_task *task);
int test_join_within(weft_task *task, int64_t timeout_ns);

/* Returns when all workers have begun, and sleep. */
void test_wait_until_asleep(const weft_runtime *rt);

/* How often its workers have been woken, all of them together. */
uint64_t test_wakes(weft_runtime *rt);

/* A body that ends at once, with 7. */
int test_return_7(weft_co *co, void *state);

#endif
