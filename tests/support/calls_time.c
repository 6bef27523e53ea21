/* SPDX-License-Identifier: MIT */
/*
 * calls_time.c - awaiting calls of tasks and time: weft/time.h, fiber.h, task.h, future.h.
 */
#include "calls.h"
#include "test.h"

enum {
    RESULT = 7,
};

/* --- weft/time.h -------------------------------------------------------------------------- */

struct sleep_state {
    weft_time until;
    weft_interval interval;
    weft_sleep_future sleep;
    weft_timeout_future timeout;
    weft_event event;
    weft_op op;
};
CALL_STATE(struct sleep_state);

static void sleep_setup(void *state)
{
    struct sleep_state *self = state;
    self->until = WEFT_NEVER;
    weft_interval_init(&self->interval, WEFT_NEVER, WEFT_S, WEFT_INTERVAL_BURST);
}

static void sleep_ready(void *state)
{
    struct sleep_state *self = state;
    self->until = 0;
    weft_interval_init(&self->interval, weft_now() - 1, WEFT_S, WEFT_INTERVAL_BURST);
}

static int64_t sleep_call(void *state, weft_time deadline)
{
    struct sleep_state *self = state;
    (void)deadline;
    return weft_sleep(self->until == 0 ? 0 : WEFT_NEVER);
}

static int64_t sleep_until_call(void *state, weft_time deadline)
{
    (void)deadline;
    return weft_sleep_until(((struct sleep_state *)state)->until);
}

static weft_future *sleep_prep(void *state)
{
    struct sleep_state *self = state;
    weft_sleep_init(&self->sleep, self->until, 0);
    return &self->sleep.future;
}

static int64_t tick_call(void *state, weft_time deadline)
{
    (void)deadline;
    return weft_interval_tick(&((struct sleep_state *)state)->interval);
}

static void timeout_ready(void *state)
{
    weft_event_set(&((struct sleep_state *)state)->event);
}

static weft_future *timeout_prep(void *state)
{
    struct sleep_state *self = state;
    weft_event_wait_init(&self->op, &self->event);
    weft_timeout_init(&self->timeout, &self->op.future, WEFT_NEVER);
    return &self->timeout.future;
}

/* --- weft/fiber.h, weft/future.h ---------------------------------------------------------- */

struct task_state {
    weft_event event;
    weft_op op;
    weft_task *task;
    weft_join_future join;
    weft_co_future co;
    int result;
};
CALL_STATE(struct task_state);

static void no_setup(void *state)
{
    (void)state;
}

static int64_t yield_call(void *state, weft_time deadline)
{
    (void)state;
    (void)deadline;
    return weft_yield();
}

static int return_result(void *arg)
{
    (void)arg;
    return RESULT;
}

static int64_t in_place_call(void *state, weft_time deadline)
{
    (void)state;
    return weft_block_in_place(return_result, NULL, deadline);
}

static void event_ready(void *state)
{
    weft_event_set(&((struct task_state *)state)->event);
}

static int64_t await_call(void *state, weft_time deadline)
{
    struct task_state *self = state;
    weft_event_wait_init(&self->op, &self->event);
    return weft_await(&self->op.future, deadline);
}

static int await_event(weft_co *co, void *state)
{
    struct task_state *self = state;
    int err;
    WEFT_BEGIN(co);
    weft_event_wait_init(&self->op, &self->event);
    WEFT_AWAIT(co, err, &self->op.future);
    WEFT_END(co, err);
}

/* A stackless task as a future: awaited by another task or by a thread. */
static weft_future *await_prep(void *state)
{
    struct task_state *self = state;
    weft_co_init(&self->co, await_event, self);
    return &self->co.future;
}

static void event_undo(void *state)
{
    weft_event_reset(&((struct task_state *)state)->event);
}

/* --- weft/task.h -------------------------------------------------------------------------- */

static int wait_for_event(void *state)
{
    struct task_state *self = state;
    int err = weft_event_wait(&self->event, WEFT_NEVER);
    return err == 0 ? RESULT : err;
}

static void join_setup(void *state)
{
    struct task_state *self = state;
    self->task = calls_go(wait_for_event, state);
}

static void join_ready(void *state)
{
    struct task_state *self = state;
    weft_task *task = weft_task_retain(self->task);
    weft_event_set(&self->event);
    calls_wait_until(weft_task_is_done(task));
    weft_detach(task);
}

static int64_t join_call(void *state, weft_time deadline)
{
    struct task_state *self = state;
    return weft_join(self->task, &self->result, deadline);
}

static weft_future *join_prep(void *state)
{
    struct task_state *self = state;
    weft_join_init(&self->join, self->task, &self->result);
    return &self->join.future;
}

static void join_undo(void *state)
{
    struct task_state *self = state;
    CHECK(self->result == RESULT || self->result == WEFT_ECANCELED); /* By a shutdown. */
    self->task = NULL;
}

static void join_teardown(void *state)
{
    struct task_state *self = state;
    weft_event_set(&self->event);
    weft_detach(self->task);
}

static const struct call table[] = {
    { .name = "weft_sleep",
      .flags = CALL_PREPARED_ANEW | CALL_NO_DEADLINE | CALL_READY_BEFORE,
      .setup = sleep_setup,
      .make_ready = sleep_ready,
      .call = sleep_call,
      .prep = sleep_prep },
    { .name = "weft_sleep_until",
      .flags = CALL_NO_DEADLINE | CALL_READY_BEFORE,
      .setup = sleep_setup,
      .make_ready = sleep_ready,
      .call = sleep_until_call },
    { .name = "weft_interval_tick",
      .flags = CALL_NO_DEADLINE | CALL_READY_BEFORE,
      .ready = 1,
      .setup = sleep_setup,
      .make_ready = sleep_ready,
      .call = tick_call },
    { .name = "weft_timeout",
      .flags = CALL_PREPARED_ANEW,
      .make_ready = timeout_ready,
      .prep = timeout_prep },
    { .name = "weft_yield",
      .flags = CALL_NO_DEADLINE | CALL_NEVER_WAITS,
      .setup = no_setup,
      .make_ready = no_setup,
      .call = yield_call },
    { .name = "weft_block_in_place",
      .flags = CALL_NEVER_WAITS | CALL_WAITS_FOR_THREAD,
      .ready = RESULT,
      .setup = no_setup,
      .make_ready = no_setup,
      .call = in_place_call },
    { .name = "weft_await",
      .flags = CALL_PREPARED_ANEW,
      .make_ready = event_ready,
      .call = await_call,
      .prep = await_prep,
      .undo = event_undo },
    { .name = "weft_join",
      .flags = CALL_PREPARED_ANEW,
      .setup = join_setup,
      .make_ready = join_ready,
      .call = join_call,
      .prep = join_prep,
      .undo = join_undo,
      .teardown = join_teardown },
};

CALL_GROUP(calls_time, table);
