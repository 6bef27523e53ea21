/* SPDX-License-Identifier: MIT */
/*
 * calls_flow.c - awaiting calls of structured concurrency: weft/select.h, token.h, scope.h,
 * join_set.h, gather.h, shutdown.h, sequence.h; and those of weft/task.h that start tasks.
 */
#include <string.h>

#include "calls.h"
#include "test.h"

enum {
    WANTED = 42,
};

static int wait_for(void *event)
{
    return weft_event_wait(event, WEFT_NEVER);
}

static void no_setup(void *state)
{
    (void)state;
}

/* --- weft/select.h, weft/token.h ---------------------------------------------------------- */

struct select_state {
    weft_event event;
    weft_event other;
    weft_op ops[2];
    weft_branch branches[2];
    weft_select_future select;
    weft_token token;
};
CALL_STATE(struct select_state);

static void prepare_branches(struct select_state *self)
{
    weft_event_wait_init(&self->ops[0], &self->other);
    weft_event_wait_init(&self->ops[1], &self->event);
    self->branches[0] = (weft_branch){ .future = &self->ops[0].future };
    self->branches[1] = (weft_branch){ .future = &self->ops[1].future };
}

static void select_ready(void *state)
{
    weft_event_set(&((struct select_state *)state)->event);
}

static int64_t select_call(void *state, weft_time deadline)
{
    struct select_state *self = state;
    prepare_branches(self);
    return weft_select(self->branches, 2, 0, deadline);
}

static weft_future *select_prep(void *state)
{
    struct select_state *self = state;
    prepare_branches(self);
    weft_select_init(&self->select, self->branches, 2, 0);
    return &self->select.future;
}

static void select_undo(void *state)
{
    weft_event_reset(&((struct select_state *)state)->event);
}

static void token_setup(void *state)
{
    weft_token_init(&((struct select_state *)state)->token, NULL);
}

static void token_cancel(void *state)
{
    weft_token_cancel(&((struct select_state *)state)->token);
}

static int64_t token_wait(void *state, weft_time deadline)
{
    return weft_token_wait(&((struct select_state *)state)->token, deadline);
}

static weft_future *token_prep(void *state)
{
    struct select_state *self = state;
    weft_token_wait_init(&self->ops[0], &self->token);
    return &self->ops[0].future;
}

static void token_undo(void *state)
{
    struct select_state *self = state;
    weft_token_fini(&self->token);
    weft_token_init(&self->token, NULL);
}

static int64_t token_await(void *state, weft_time deadline)
{
    struct select_state *self = state;
    weft_event_wait_init(&self->ops[0], &self->event);
    return weft_token_await(&self->token, &self->ops[0].future, deadline);
}

static void token_teardown(void *state)
{
    weft_token_fini(&((struct select_state *)state)->token);
}

/* --- weft/scope.h ------------------------------------------------------------------------- */

struct scope_state {
    weft_scope scope; /* has a limit of 1, and one child */
    weft_event event; /* ends the child */
    weft_op op;
    weft_scope_future future;
};
CALL_STATE(struct scope_state);

static void scope_setup(void *state)
{
    struct scope_state *self = state;
    weft_scope_options options = { .limit = 1, .runtime = calls_runtime };
    weft_scope_begin(&self->scope, &options);
    CHECK_EQ(weft_scope_go(&self->scope, wait_for, &self->event), 0);
}

static void scope_ready(void *state)
{
    struct scope_state *self = state;
    weft_event_set(&self->event);
    calls_wait_until(weft_scope_children(&self->scope) == 0);
}

static int64_t scope_go(void *state, weft_time deadline)
{
    struct scope_state *self = state;
    (void)deadline;
    return weft_scope_go(&self->scope, wait_for, &self->event);
}

static int64_t scope_go_with(void *state, weft_time deadline)
{
    struct scope_state *self = state;
    weft_fiber_spec spec = { .function = wait_for, .arg = &self->event };
    (void)deadline;
    return weft_scope_go_with(&self->scope, &spec);
}

static weft_future *scope_room_prep(void *state)
{
    struct scope_state *self = state;
    weft_scope_room_init(&self->op, &self->scope);
    return &self->op.future;
}

static int64_t scope_end(void *state, weft_time deadline)
{
    (void)deadline;
    return weft_scope_end(&((struct scope_state *)state)->scope);
}

static int64_t scope_drain(void *state, weft_time deadline)
{
    return weft_scope_drain(&((struct scope_state *)state)->scope, deadline);
}

static weft_future *scope_end_prep(void *state)
{
    struct scope_state *self = state;
    weft_scope_end_init(&self->future, &self->scope);
    return &self->future.future;
}

static void scope_teardown(void *state)
{
    struct scope_state *self = state;
    weft_event_set(&self->event);
    (void)weft_scope_end(&self->scope);
}

static int scope_body(weft_scope *scope, void *state)
{
    return weft_scope_go(scope, wait_for, &((struct scope_state *)state)->event);
}

static int64_t scope_run(void *state, weft_time deadline)
{
    weft_scope_options options = { .runtime = calls_runtime };
    (void)deadline;
    return weft_scope_run(scope_body, state, &options);
}

static void child_ready(void *state)
{
    weft_event_set(&((struct scope_state *)state)->event);
}

/* --- weft/join_set.h ---------------------------------------------------------------------- */

struct join_set_state {
    weft_join_set set; /* has a limit of 1, and one child */
    weft_event event;
    weft_joined joined;
};
CALL_STATE(struct join_set_state);

static void join_set_setup(void *state)
{
    struct join_set_state *self = state;
    weft_scope_options options = { .limit = 1, .runtime = calls_runtime };
    CHECK_EQ(weft_join_set_begin(&self->set, &options), 0);
    CHECK_EQ(weft_join_set_go(&self->set, wait_for, &self->event), 0);
}

static void join_set_ready(void *state)
{
    struct join_set_state *self = state;
    weft_event_set(&self->event);
    calls_wait_until(weft_scope_children(&self->set.scope) == 0);
}

static int64_t join_set_go(void *state, weft_time deadline)
{
    struct join_set_state *self = state;
    (void)deadline;
    return weft_join_set_go(&self->set, wait_for, &self->event);
}

static int64_t join_set_next(void *state, weft_time deadline)
{
    struct join_set_state *self = state;
    return weft_join_set_next(&self->set, &self->joined, deadline);
}

static void join_set_undo(void *state)
{
    struct join_set_state *self = state;
    CHECK(self->joined.arg == &self->event);
    CHECK(self->joined.result == 0 || self->joined.result == WEFT_ECANCELED); /* By a shutdown. */
}

static int64_t join_set_end(void *state, weft_time deadline)
{
    (void)deadline;
    return weft_join_set_end(&((struct join_set_state *)state)->set);
}

static void join_set_teardown(void *state)
{
    struct join_set_state *self = state;
    weft_event_set(&self->event);
    (void)weft_join_set_end(&self->set);
}

/* --- weft/gather.h ------------------------------------------------------------------------ */

struct gather_state {
    weft_event event;
    weft_task *tasks[2];
    int results[2];
    weft_gather_future future;
};
CALL_STATE(struct gather_state);

static void gather_setup(void *state)
{
    struct gather_state *self = state;
    self->tasks[0] = calls_go(wait_for, &self->event);
    self->tasks[1] = calls_go(wait_for, &self->event);
}

static void gather_ready(void *state)
{
    struct gather_state *self = state;
    weft_task *tasks[2] = { weft_task_retain(self->tasks[0]), weft_task_retain(self->tasks[1]) };
    weft_event_set(&self->event);
    for (unsigned i = 0; i < 2; i++) {
        calls_wait_until(weft_task_is_done(tasks[i]));
        weft_detach(tasks[i]);
    }
}

static int64_t join_all(void *state, weft_time deadline)
{
    struct gather_state *self = state;
    return weft_join_all(self->tasks, 2, self->results, deadline);
}

static int64_t try_join_all(void *state, weft_time deadline)
{
    struct gather_state *self = state;
    return weft_try_join_all(self->tasks, 2, self->results, deadline);
}

static int64_t race(void *state, weft_time deadline)
{
    struct gather_state *self = state;
    return weft_race(self->tasks, 2, self->results, deadline);
}

static int64_t first_success(void *state, weft_time deadline)
{
    struct gather_state *self = state;
    return weft_first_success(self->tasks, 2, self->results, deadline);
}

static weft_future *gather_prep(void *state)
{
    struct gather_state *self = state;
    weft_gather_init(&self->future, WEFT_GATHER_ALL, self->tasks, 2, self->results);
    return &self->future.future;
}

static void gather_undo(void *state)
{
    struct gather_state *self = state;
    CHECK(self->results[0] == 0 || self->results[0] == WEFT_ECANCELED); /* By a shutdown. */
    self->tasks[0] = NULL;
    self->tasks[1] = NULL;
}

static void gather_teardown(void *state)
{
    struct gather_state *self = state;
    weft_event_set(&self->event);
    weft_detach(self->tasks[0]);
    weft_detach(self->tasks[1]);
}

static int wait_for_each(size_t index, void *event)
{
    (void)index;
    return wait_for(event);
}

static int64_t go_each(void *state, weft_time deadline)
{
    return weft_go_each(2, 0, wait_for_each, &((struct gather_state *)state)->event, deadline);
}

static int64_t call_until(void *state, weft_time deadline)
{
    return weft_call_until(wait_for, &((struct gather_state *)state)->event, deadline);
}

static void each_ready(void *state)
{
    weft_event_set(&((struct gather_state *)state)->event);
}

static void each_undo(void *state)
{
    weft_event_reset(&((struct gather_state *)state)->event);
}

/* --- weft/shutdown.h ---------------------------------------------------------------------- */

struct shutdown_state {
    weft_shutdown shutdown;
    weft_op op;
    weft_on_cancel on_cancel;
};
CALL_STATE(struct shutdown_state);

static void shutdown_ready(void *state)
{
    weft_shutdown_trigger(&((struct shutdown_state *)state)->shutdown);
}

static int64_t shutdown_wait(void *state, weft_time deadline)
{
    return weft_shutdown_wait(&((struct shutdown_state *)state)->shutdown, deadline);
}

static weft_future *shutdown_prep(void *state)
{
    struct shutdown_state *self = state;
    weft_shutdown_wait_init(&self->op, &self->shutdown);
    return &self->op.future;
}

static void shutdown_undo(void *state)
{
    memset(&((struct shutdown_state *)state)->shutdown, 0, sizeof(weft_shutdown));
}

/* One unit of work, which ends when it is canceled. */
static void leave(void *shutdown)
{
    weft_shutdown_leave(shutdown);
}

static void drain_setup(void *state)
{
    struct shutdown_state *self = state;
    CHECK_EQ(weft_shutdown_enter(&self->shutdown), 0);
    weft_on_cancel_add(&self->on_cancel, weft_shutdown_token(&self->shutdown), leave,
                       &self->shutdown);
}

static void drain_ready(void *state)
{
    struct shutdown_state *self = state;
    if (weft_on_cancel_remove(&self->on_cancel)) {
        weft_shutdown_leave(&self->shutdown);
    }
}

static int64_t shutdown_drain(void *state, weft_time deadline)
{
    return weft_shutdown_drain(&((struct shutdown_state *)state)->shutdown, deadline);
}

/* --- weft/sequence.h ---------------------------------------------------------------------- */

struct sequence_state {
    weft_sequence *sequence;
    weft_sender *sender;
    weft_sender *to;
    weft_receiver *from;
    int item;
};
CALL_STATE(struct sequence_state);

static void sequence_setup(void *state)
{
    struct sequence_state *self = state;
    weft_receiver *receiver;
    CHECK_EQ(weft_channel_make(&self->sender, &receiver, sizeof(int), 4), 0);
    CHECK_EQ(weft_channel_make(&self->to, &self->from, sizeof(int), 4), 0);
    self->sequence = weft_sequence_of_channel(receiver, sizeof(int));
    CHECK(self->sequence != NULL);
}

static void sequence_ready(void *state)
{
    struct sequence_state *self = state;
    int item = WANTED;
    CHECK_EQ(weft_try_send(self->sender, &item), 0);
}

static int64_t sequence_next(void *state, weft_time deadline)
{
    struct sequence_state *self = state;
    return weft_sequence_next(self->sequence, &self->item, deadline);
}

static void sequence_undo(void *state)
{
    CHECK_EQ(((struct sequence_state *)state)->item, WANTED);
}

/* Calls that pull until the end are ready when an item and the end are available. */
static void sequence_end(void *state)
{
    sequence_ready(state);
    weft_sender_close(((struct sequence_state *)state)->sender);
}

static int keep_item(void *item, void *state)
{
    ((struct sequence_state *)state)->item = *(const int *)item;
    return 0;
}

static int64_t sequence_for_each(void *state, weft_time deadline)
{
    struct sequence_state *self = state;
    weft_sequence *sequence = self->sequence;
    (void)deadline;
    self->sequence = NULL;
    return weft_sequence_for_each(sequence, keep_item, state);
}

static void fold_item(void *value, const void *item, void *arg)
{
    (void)arg;
    *(int *)value += *(const int *)item;
}

static int64_t sequence_fold(void *state, weft_time deadline)
{
    struct sequence_state *self = state;
    weft_sequence *sequence = self->sequence;
    (void)deadline;
    self->sequence = NULL;
    return weft_sequence_fold(sequence, &self->item, fold_item, NULL);
}

static int64_t sequence_collect(void *state, weft_time deadline)
{
    struct sequence_state *self = state;
    weft_sequence *sequence = self->sequence;
    (void)deadline;
    self->sequence = NULL;
    return weft_sequence_collect(sequence, &self->item, 1);
}

static int64_t sequence_send_to(void *state, weft_time deadline)
{
    struct sequence_state *self = state;
    weft_sequence *sequence = self->sequence;
    (void)deadline;
    self->sequence = NULL;
    int result = weft_sequence_send_to(sequence, self->to);
    CHECK(result != 0 || weft_try_recv(self->from, &self->item) == 0);
    return result;
}

static void sequence_teardown(void *state)
{
    struct sequence_state *self = state;
    weft_sequence_drop(self->sequence);
    weft_sender_drop(self->sender);
    weft_sender_drop(self->to);
    weft_receiver_drop(self->from);
}

/* --- Starting tasks ----------------------------------------------------------------------- */

struct spawn_state {
    weft_task *task;
};
CALL_STATE(struct spawn_state);

static int end_at_once(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return 0;
}

static int64_t spawn_wait(void *state, weft_time deadline)
{
    struct spawn_state *self = state;
    weft_spec spec = { .body = end_at_once };
    return weft_runtime_spawn_wait(calls_runtime, &self->task, &spec, deadline);
}

static void spawn_undo(void *state)
{
    weft_detach(((struct spawn_state *)state)->task);
}

static const struct call table[] = {
    { .name = "weft_select",
      .flags = CALL_PREPARED_ANEW,
      .ready = 1,
      .make_ready = select_ready,
      .call = select_call,
      .prep = select_prep,
      .undo = select_undo },
    { .name = "weft_token_wait",
      .setup = token_setup,
      .make_ready = token_cancel,
      .call = token_wait,
      .prep = token_prep,
      .undo = token_undo,
      .teardown = token_teardown },
    { .name = "weft_token_await",
      .setup = token_setup,
      .make_ready = select_ready,
      .call = token_await,
      .undo = select_undo,
      .close = token_cancel,
      .closed = WEFT_ECANCELED,
      .teardown = token_teardown },
    { .name = "weft_scope_go",
      .flags = CALL_NO_DEADLINE,
      .setup = scope_setup,
      .make_ready = scope_ready,
      .call = scope_go,
      .teardown = scope_teardown },
    { .name = "weft_scope_go_with",
      .flags = CALL_NO_DEADLINE,
      .setup = scope_setup,
      .make_ready = scope_ready,
      .call = scope_go_with,
      .teardown = scope_teardown },
    { .name = "weft_scope_room",
      .setup = scope_setup,
      .make_ready = scope_ready,
      .prep = scope_room_prep,
      .teardown = scope_teardown },
    { .name = "weft_scope_end",
      .flags = CALL_PREPARED_ANEW | CALL_NO_DEADLINE | CALL_ENDS,
      .setup = scope_setup,
      .make_ready = scope_ready,
      .call = scope_end,
      .prep = scope_end_prep },
    { .name = "weft_scope_drain",
      .flags = CALL_ENDS,
      .setup = scope_setup,
      .make_ready = scope_ready,
      .call = scope_drain },
    { .name = "weft_scope_run",
      .flags = CALL_NO_DEADLINE | CALL_ENDS,
      .setup = no_setup,
      .make_ready = child_ready,
      .call = scope_run },
    { .name = "weft_join_set_go",
      .flags = CALL_NO_DEADLINE,
      .setup = join_set_setup,
      .make_ready = join_set_ready,
      .call = join_set_go,
      .teardown = join_set_teardown },
    { .name = "weft_join_set_next",
      .setup = join_set_setup,
      .make_ready = join_set_ready,
      .call = join_set_next,
      .undo = join_set_undo,
      .teardown = join_set_teardown },
    { .name = "weft_join_set_end",
      .flags = CALL_NO_DEADLINE | CALL_ENDS,
      .setup = join_set_setup,
      .make_ready = join_set_ready,
      .call = join_set_end },
    { .name = "weft_join_all",
      .flags = CALL_PREPARED_ANEW,
      .setup = gather_setup,
      .make_ready = gather_ready,
      .call = join_all,
      .prep = gather_prep,
      .undo = gather_undo,
      .teardown = gather_teardown },
    { .name = "weft_try_join_all",
      .setup = gather_setup,
      .make_ready = gather_ready,
      .call = try_join_all,
      .undo = gather_undo,
      .teardown = gather_teardown },
    { .name = "weft_race",
      .also = 1,
      .setup = gather_setup,
      .make_ready = gather_ready,
      .call = race,
      .undo = gather_undo,
      .teardown = gather_teardown },
    { .name = "weft_first_success",
      .also = 1,
      .setup = gather_setup,
      .make_ready = gather_ready,
      .call = first_success,
      .undo = gather_undo,
      .teardown = gather_teardown },
    { .name = "weft_go_each",
      .flags = CALL_STARTS_TASKS | CALL_TASKS_ONLY,
      .setup = no_setup,
      .make_ready = each_ready,
      .call = go_each,
      .undo = each_undo },
    { .name = "weft_call_until",
      .flags = CALL_STARTS_TASKS | CALL_TASKS_ONLY,
      .setup = no_setup,
      .make_ready = each_ready,
      .call = call_until,
      .undo = each_undo },
    { .name = "weft_shutdown_wait",
      .make_ready = shutdown_ready,
      .call = shutdown_wait,
      .prep = shutdown_prep,
      .undo = shutdown_undo },
    { .name = "weft_shutdown_drain",
      .flags = CALL_ENDS,
      .setup = drain_setup,
      .make_ready = drain_ready,
      .call = shutdown_drain },
    { .name = "weft_sequence_next",
      .ready = 1,
      .setup = sequence_setup,
      .make_ready = sequence_ready,
      .call = sequence_next,
      .undo = sequence_undo,
      .teardown = sequence_teardown },
    { .name = "weft_sequence_for_each",
      .flags = CALL_NO_DEADLINE | CALL_ENDS,
      .setup = sequence_setup,
      .make_ready = sequence_end,
      .call = sequence_for_each,
      .undo = sequence_undo,
      .teardown = sequence_teardown },
    { .name = "weft_sequence_fold",
      .flags = CALL_NO_DEADLINE | CALL_ENDS,
      .setup = sequence_setup,
      .make_ready = sequence_end,
      .call = sequence_fold,
      .undo = sequence_undo,
      .teardown = sequence_teardown },
    { .name = "weft_sequence_collect",
      .flags = CALL_NO_DEADLINE | CALL_ENDS,
      .ready = 1,
      .setup = sequence_setup,
      .make_ready = sequence_end,
      .call = sequence_collect,
      .undo = sequence_undo,
      .teardown = sequence_teardown },
    { .name = "weft_sequence_send_to",
      .flags = CALL_NO_DEADLINE | CALL_ENDS,
      .setup = sequence_setup,
      .make_ready = sequence_end,
      .call = sequence_send_to,
      .undo = sequence_undo,
      .teardown = sequence_teardown },
    { .name = "weft_runtime_spawn_wait",
      .flags = CALL_NEVER_WAITS,
      .setup = no_setup,
      .make_ready = no_setup,
      .call = spawn_wait,
      .undo = spawn_undo },
};

CALL_GROUP(calls_flow, table);
