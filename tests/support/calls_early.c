/* SPDX-License-Identifier: MIT */
/*
 * calls_early.c - awaiting calls that return before they look at an object: invalid arguments,
 * empty scopes and sets, no bytes, numeric addresses. They keep the order of precedence and use
 * the poll budget like all others: otherwise a loop over them would starve its worker and could
 * not be canceled.
 */
#include "calls.h"
#include "test.h"

static void no_setup(void *state)
{
    (void)state;
}

static int return_0(void *arg)
{
    (void)arg;
    return 0;
}

/* --- Scopes and join sets ------------------------------------------------------------------ */

struct early_state {
    weft_scope scope;
    weft_join_set set;
    weft_scope_future future;
    weft_joined joined;
};
CALL_STATE(struct early_state);

static void scope_setup(void *state)
{
    weft_scope_options options = { .runtime = calls_runtime };
    weft_scope_begin(&((struct early_state *)state)->scope, &options);
}

static void scope_teardown(void *state)
{
    (void)weft_scope_end(&((struct early_state *)state)->scope);
}

static int64_t scope_go_nothing(void *state, weft_time deadline)
{
    (void)deadline;
    return weft_scope_go(&((struct early_state *)state)->scope, NULL, NULL);
}

static int64_t scope_go_copy(void *state, weft_time deadline)
{
    int arg = 0;
    weft_fiber_spec spec = { .function = return_0, .arg = &arg, .arg_size = sizeof arg };
    (void)deadline;
    return weft_scope_go_with(&((struct early_state *)state)->scope, &spec);
}

static int64_t scope_end(void *state, weft_time deadline)
{
    (void)deadline;
    return weft_scope_end(&((struct early_state *)state)->scope);
}

static weft_future *scope_end_prep(void *state)
{
    struct early_state *self = state;
    weft_scope_end_init(&self->future, &self->scope);
    return &self->future.future;
}

static int64_t scope_drain(void *state, weft_time deadline)
{
    return weft_scope_drain(&((struct early_state *)state)->scope, deadline);
}

static int empty_body(weft_scope *scope, void *arg)
{
    (void)scope;
    (void)arg;
    return 0;
}

static int64_t scope_run(void *state, weft_time deadline)
{
    (void)state;
    (void)deadline;
    return weft_scope_run(empty_body, NULL, NULL);
}

static void set_setup(void *state)
{
    weft_scope_options options = { .runtime = calls_runtime };
    CHECK_EQ(weft_join_set_begin(&((struct early_state *)state)->set, &options), 0);
}

static void set_teardown(void *state)
{
    (void)weft_join_set_end(&((struct early_state *)state)->set);
}

static int64_t set_next(void *state, weft_time deadline)
{
    struct early_state *self = state;
    return weft_join_set_next(&self->set, &self->joined, deadline);
}

static int64_t set_go_nothing(void *state, weft_time deadline)
{
    (void)deadline;
    return weft_join_set_go(&((struct early_state *)state)->set, NULL, NULL);
}

static int64_t set_end(void *state, weft_time deadline)
{
    (void)deadline;
    return weft_join_set_end(&((struct early_state *)state)->set);
}

/* --- No tasks, branches or items ----------------------------------------------------------- */

static int64_t join_none(void *state, weft_time deadline)
{
    (void)state;
    return weft_join_all(NULL, 0, NULL, deadline);
}

static int64_t race_none(void *state, weft_time deadline)
{
    (void)state;
    return weft_race(NULL, 0, NULL, deadline);
}

static int call_index(size_t index, void *arg)
{
    (void)index;
    (void)arg;
    return 0;
}

static int64_t go_each_none(void *state, weft_time deadline)
{
    (void)state;
    return weft_go_each(0, 0, call_index, NULL, deadline);
}

static int64_t select_try(void *state, weft_time deadline)
{
    weft_branch none = { .future = NULL };
    (void)state;
    return weft_select(&none, 1, WEFT_SELECT_TRY, deadline);
}

static int keep_nothing(void *item, void *arg)
{
    (void)item;
    (void)arg;
    return 0;
}

static int64_t for_each_of_nothing(void *state, weft_time deadline)
{
    (void)state;
    (void)deadline;
    return weft_sequence_for_each(NULL, keep_nothing, NULL);
}

static int64_t collect_none(void *state, weft_time deadline)
{
    (void)state;
    (void)deadline;
    return weft_sequence_collect(weft_sequence_of_array(NULL, 0, 1), NULL, 0);
}

/* --- Objects ------------------------------------------------------------------------------- */

struct object_state {
    weft_sender *sender;
    weft_receiver *receiver;
    weft_semaphore semaphore;
    weft_stream *streams[2];
    weft_reader reader;
    weft_writer writer;
    char buffers[2][8];
};
CALL_STATE(struct object_state);

static void channel_setup(void *state)
{
    struct object_state *self = state;
    CHECK_EQ(weft_channel_make(&self->sender, &self->receiver, 1, 1), 0);
}

static void channel_teardown(void *state)
{
    struct object_state *self = state;
    weft_sender_drop(self->sender);
    weft_receiver_drop(self->receiver);
}

static int64_t recv_none(void *state, weft_time deadline)
{
    struct object_state *self = state;
    return weft_recv_many(self->receiver, self->buffers[0], 0, deadline);
}

static int64_t acquire_none(void *state, weft_time deadline)
{
    return weft_semaphore_acquire(&((struct object_state *)state)->semaphore, 0, deadline);
}

static bool must_not_wait(void *arg)
{
    (void)arg;
    return false;
}

static int64_t park_not(void *state, weft_time deadline)
{
    return weft_park(state, must_not_wait, NULL, deadline);
}

static void stream_setup(void *state)
{
    struct object_state *self = state;
    CHECK_EQ(weft_stream_pair(&self->streams[0], &self->streams[1]), 0);
    weft_reader_init(&self->reader, self->streams[0], self->buffers[0], sizeof self->buffers[0]);
    weft_writer_init(&self->writer, self->streams[0], self->buffers[1], sizeof self->buffers[1]);
}

static void stream_teardown(void *state)
{
    struct object_state *self = state;
    weft_stream_close(self->streams[0]);
    weft_stream_close(self->streams[1]);
}

static int64_t read_none(void *state, weft_time deadline)
{
    struct object_state *self = state;
    return weft_read(self->streams[0], self->buffers[0], 0, deadline);
}

static int64_t read_exact_none(void *state, weft_time deadline)
{
    struct object_state *self = state;
    return weft_read_exact(self->streams[0], self->buffers[0], 0, deadline);
}

static int64_t write_none(void *state, weft_time deadline)
{
    return weft_write(((struct object_state *)state)->streams[0], "", 0, deadline);
}

static int64_t write_all_none(void *state, weft_time deadline)
{
    return weft_write_all(((struct object_state *)state)->streams[0], "", 0, deadline);
}

static int64_t reader_read_none(void *state, weft_time deadline)
{
    struct object_state *self = state;
    return weft_reader_read(&self->reader, self->buffers[1], 0, deadline);
}

static int64_t reader_peek_more(void *state, weft_time deadline)
{
    weft_text text;
    return weft_reader_peek(&((struct object_state *)state)->reader, 9, &text, deadline);
}

static int64_t read_frame_of_9(void *state, weft_time deadline)
{
    weft_text text;
    return weft_read_frame(&((struct object_state *)state)->reader, 9, &text, deadline);
}

static int64_t write_frame_of_9(void *state, weft_time deadline)
{
    return weft_write_frame(&((struct object_state *)state)->writer, 9, "", 0, deadline);
}

static int64_t flush_none(void *state, weft_time deadline)
{
    return weft_writer_flush(&((struct object_state *)state)->writer, deadline);
}

/* --- Endpoints ----------------------------------------------------------------------------- */

struct place_state {
    weft_listener *listener;
    weft_datagram *datagram;
    weft_stream *stream;
    weft_address address;
};
CALL_STATE(struct place_state);

static int64_t resolve_bad(void *state, weft_time deadline)
{
    return weft_resolve(&((struct place_state *)state)->address, 1, "127.0.0.1", deadline);
}

static int64_t resolve_into_none(void *state, weft_time deadline)
{
    return weft_resolve(&((struct place_state *)state)->address, 0, "127.0.0.1:1", deadline);
}

static int64_t connect_bad(void *state, weft_time deadline)
{
    return weft_connect(&((struct place_state *)state)->stream, "udp://127.0.0.1:1", NULL,
                        deadline);
}

static int64_t connect_without_port(void *state, weft_time deadline)
{
    return weft_connect(&((struct place_state *)state)->stream, "tcp://127.0.0.1", NULL, deadline);
}

static int64_t listen_bad(void *state, weft_time deadline)
{
    (void)deadline;
    return weft_listen(&((struct place_state *)state)->listener, "udp://127.0.0.1:0", NULL);
}

static int64_t listen_at_number(void *state, weft_time deadline)
{
    (void)deadline;
    return weft_listen(&((struct place_state *)state)->listener, "tcp://127.0.0.1:0", NULL);
}

static void listen_undo(void *state)
{
    weft_listener_close(((struct place_state *)state)->listener);
}

static int64_t open_bad(void *state, weft_time deadline)
{
    (void)deadline;
    return weft_datagram_open(&((struct place_state *)state)->datagram, "tcp://127.0.0.1:0", NULL);
}

static int64_t open_at_number(void *state, weft_time deadline)
{
    (void)deadline;
    return weft_datagram_open(&((struct place_state *)state)->datagram, "udp://127.0.0.1:0", NULL);
}

static void open_undo(void *state)
{
    weft_datagram_close(((struct place_state *)state)->datagram);
}

#define EARLY(call_name, call_fn, more, result)                                                    \
    .name = (call_name), .flags = CALL_NEVER_WAITS | (more), .ready = (result),                    \
    .make_ready = no_setup, .call = (call_fn)
#define ON_NOTHING .setup = no_setup
#define ON_SCOPE   .setup = scope_setup, .teardown = scope_teardown
#define ON_SET     .setup = set_setup, .teardown = set_teardown
#define ON_STREAM  .setup = stream_setup, .teardown = stream_teardown

enum {
    ENDS = CALL_ENDS | CALL_NO_DEADLINE,
    OPENS = CALL_TASKS_ONLY | CALL_NO_DEADLINE | CALL_ALSO_IN_BODY,
};

static const struct call table[] = {
    { EARLY("weft_scope_go", scope_go_nothing, CALL_NO_DEADLINE, -EINVAL), ON_SCOPE },
    { EARLY("weft_scope_go_with", scope_go_copy, CALL_NO_DEADLINE, -EINVAL), ON_SCOPE },
    { EARLY("weft_scope_end", scope_end, ENDS, 0), .setup = scope_setup, .prep = scope_end_prep },
    { EARLY("weft_scope_drain", scope_drain, CALL_ENDS, 0), .setup = scope_setup },
    { EARLY("weft_scope_run", scope_run, ENDS, 0), ON_NOTHING },
    { EARLY("weft_join_set_go", set_go_nothing, CALL_NO_DEADLINE, -EINVAL), ON_SET },
    { EARLY("weft_join_set_next", set_next, 0, -ENOENT), ON_SET },
    { EARLY("weft_join_set_end", set_end, ENDS, 0), .setup = set_setup },
    { EARLY("weft_join_all", join_none, 0, 0), ON_NOTHING },
    { EARLY("weft_race", race_none, 0, -EINVAL), ON_NOTHING },
    { EARLY("weft_go_each", go_each_none, CALL_TASKS_ONLY, 0), ON_NOTHING },
    { EARLY("weft_select", select_try, 0, -EAGAIN), ON_NOTHING },
    { EARLY("weft_sequence_for_each", for_each_of_nothing, CALL_NO_DEADLINE, -ENOMEM), ON_NOTHING },
    { EARLY("weft_sequence_collect", collect_none, CALL_NO_DEADLINE, 0), ON_NOTHING },
    { EARLY("weft_recv_many", recv_none, 0, -EINVAL), .setup = channel_setup,
      .teardown = channel_teardown },
    { EARLY("weft_semaphore_acquire", acquire_none, 0, 0), ON_NOTHING },
    { EARLY("weft_park", park_not, 0, -EAGAIN), ON_NOTHING },
    { EARLY("weft_read", read_none, 0, 0), ON_STREAM },
    { EARLY("weft_read_exact", read_exact_none, 0, 0), ON_STREAM },
    { EARLY("weft_write", write_none, 0, 0), ON_STREAM },
    { EARLY("weft_write_all", write_all_none, 0, 0), ON_STREAM },
    { EARLY("weft_reader_read", reader_read_none, 0, 0), ON_STREAM },
    { EARLY("weft_reader_peek", reader_peek_more, 0, -EMSGSIZE), ON_STREAM },
    { EARLY("weft_read_frame", read_frame_of_9, 0, -EINVAL), ON_STREAM },
    { EARLY("weft_write_frame", write_frame_of_9, 0, -EINVAL), ON_STREAM },
    { EARLY("weft_writer_flush", flush_none, 0, 0), ON_STREAM },
    { EARLY("weft_resolve", resolve_bad, 0, -EINVAL), ON_NOTHING },
    { EARLY("weft_resolve", resolve_into_none, 0, -EINVAL), ON_NOTHING },
    { EARLY("weft_connect", connect_bad, CALL_TASKS_ONLY, -EINVAL), ON_NOTHING },
    { EARLY("weft_connect", connect_without_port, CALL_TASKS_ONLY, -EINVAL), ON_NOTHING },
    { EARLY("weft_listen", listen_bad, OPENS, -EINVAL), ON_NOTHING },
    { EARLY("weft_listen", listen_at_number, OPENS, 0), ON_NOTHING, .undo = listen_undo },
    { EARLY("weft_datagram_open", open_bad, OPENS, -EINVAL), ON_NOTHING },
    { EARLY("weft_datagram_open", open_at_number, OPENS, 0), ON_NOTHING, .undo = open_undo },
};

CALL_GROUP(calls_early, table);
