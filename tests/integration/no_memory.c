/* SPDX-License-Identifier: MIT */
/*
 * Programs in which one allocation fails, the first, then the second, and so on, including those
 * of the runtime itself: each reports it or does without the memory, and nothing is lost or
 * leaked.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "links.h"
#include "memory.h"
#include "test.h"

enum {
    ITEMS = 300,
    WORKERS_MAX = 32,
};

/* --- The sweep -------------------------------------------------------------------------------- */

static unsigned successes;

/* Each worker makes the same allocations; more workers would fail in the same way. */
static unsigned workers(void)
{
    unsigned count = test_workers(2);
    return count < WORKERS_MAX ? count : WORKERS_MAX;
}

static void *run_program(void *arg)
{
    int (*program)(void *arg) = *(int (**)(void *arg))arg;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = workers();
    int result = weft_run(&config, program, NULL);
    if (result != 0) {
        CHECK_EQ(result, -ENOMEM);
    } else {
        successes++;
    }
    return NULL;
}

/* Runs on a thread that has never waited, since the first wait needs memory, too. */
static void run_once(void *arg)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, run_program, arg), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Some allocations can be done without. In the last run nothing fails. */
static void sweep(int (*program)(void *arg))
{
    successes = 0;
    uint64_t count = memory_sweep(run_once, (void *)&program);
    CHECK(count > 2);
    CHECK(successes >= 1 && successes < count);
}

/* --- Channels --------------------------------------------------------------------------------- */

WEFT_CHANNEL(numbers, int)
WEFT_BROADCAST(news, int)
WEFT_WATCH(state, int)

/* Sent messages arrive in order, even if a send between them failed. */
static int fill_and_drain(size_t capacity)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    int err = numbers_make(&sender, &receiver, capacity);
    if (err != 0) {
        return err;
    }
    int sent = 0;
    for (int i = 0; i < ITEMS; i++) {
        int result = numbers_send(sender, i, 0);
        sent += result == 0;
        err = err == 0 ? result : err;
    }
    CHECK(sent >= ITEMS - 1);
    numbers_sender_drop(sender);
    int last = -1;
    int number;
    while (numbers_recv(receiver, &number, 0) == 0) {
        CHECK(number > last);
        last = number;
        sent--;
    }
    CHECK_EQ(sent, 0);
    numbers_receiver_drop(receiver);
    return err;
}

static int follow_both(void)
{
    news_sender *to;
    news_receiver *from[3] = { NULL, NULL, NULL };
    state_sender *set;
    state_receiver *get[3] = { NULL, NULL, NULL };
    int err = news_make(&to, &from[0], 4);
    if (err != 0) {
        return err;
    }
    err = state_make(&set, &get[0], 1);
    if (err == 0) {
        int failures[] = { news_subscribe(to, &from[1]), news_receiver_clone(from[0], &from[2]),
                           state_subscribe(set, &get[1]), state_receiver_clone(get[0], &get[2]) };
        CHECK_EQ(news_send(to, 7), 0);
        CHECK_EQ(state_send(set, 8), 0);
        for (unsigned i = 0; i < 4; i++) {
            err = err == 0 ? failures[i] : err;
        }
        for (unsigned i = 0; i < 3; i++) {
            CHECK(from[i] != NULL || err == -ENOMEM);
            CHECK(get[i] != NULL || err == -ENOMEM);
            CHECK_EQ(get[i] != NULL ? state_get(get[i]) : 8, 8);
            state_receiver_drop(get[i]);
        }
        state_sender_drop(set);
    }
    for (unsigned i = 0; i < 3; i++) {
        news_receiver_drop(from[i]);
    }
    news_sender_drop(to);
    return err;
}

static int use_channels(void *arg)
{
    (void)arg;
    int err = fill_and_drain(ITEMS);
    err = err == 0 ? fill_and_drain(WEFT_UNBOUNDED) : err;
    return err == 0 ? follow_both() : err;
}

static void channels_without_memory_return_enomem(void)
{
    sweep(use_channels);
}

/* --- Tasks ------------------------------------------------------------------------------------ */

static atomic_int ran;

static int count_it(void *arg)
{
    (void)arg;
    (void)weft_yield();
    atomic_fetch_add(&ran, 1);
    return 0;
}

static int count_each(size_t index, void *arg)
{
    (void)index;
    return count_it(arg);
}

/* All children that were started have ended. */
static int use_scope(void *arg)
{
    int started = 0;
    int err = 0;
    (void)arg;
    atomic_store(&ran, 0);
    WEFT_SCOPE(scope, NULL, &err)
    {
        for (int i = 0; i < ITEMS && err == 0; i++) {
            err = weft_scope_go(scope, count_it, NULL);
            started += err == 0;
        }
    }
    if (err == 0) {
        CHECK_EQ(atomic_load(&ran), started);
    }
    return err;
}

static int use_join_set(void *arg)
{
    weft_join_set set;
    weft_joined joined;
    int started = 0;
    (void)arg;
    int err = weft_join_set_begin(&set, NULL);
    if (err != 0) {
        return err;
    }
    for (int i = 0; i < ITEMS && err == 0; i++) {
        err = weft_join_set_go(&set, count_it, NULL);
        started += err == 0;
    }
    while (weft_join_set_next(&set, &joined, WEFT_NEVER) == 0) {
        CHECK_EQ(joined.result, 0);
        started--;
    }
    CHECK_EQ(started, 0);
    int end = weft_join_set_end(&set);
    return err == 0 ? end : err;
}

static int use_gather(void *arg)
{
    weft_task *tasks[8] = { NULL };
    int err = 0;
    for (unsigned i = 0; i < 8 && err == 0; i++) {
        err = weft_go(&tasks[i], count_it, NULL);
    }
    if (err == 0) {
        err = weft_join_all(tasks, 8, NULL, WEFT_NEVER);
    }
    for (unsigned i = 0; i < 8; i++) {
        if (tasks[i] != NULL) {
            CHECK_EQ(weft_join(tasks[i], NULL, WEFT_NEVER), 0);
        }
    }
    return err == 0 ? weft_go_each(ITEMS, 4, count_each, arg, WEFT_NEVER) : err;
}

static int use_tasks(void *arg)
{
    int err = use_scope(arg);
    err = err == 0 ? use_join_set(arg) : err;
    return err == 0 ? use_gather(arg) : err;
}

static void task_groups_without_memory_join_started_tasks(void)
{
    sweep(use_tasks);
}

/* --- Sequences ------------------------------------------------------------------------------ */

static int count_up(weft_generator *to, void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++) {
        int err = weft_give(to, &i);
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

static bool is_even(const void *item, void *arg)
{
    (void)arg;
    return *(const int *)item % 2 == 0;
}

static int add_both(const void *one, const void *two, void *to, void *arg)
{
    (void)arg;
    *(int *)to = *(const int *)one + *(const int *)two;
    return 0;
}

static void add(void *value, const void *item, void *arg)
{
    (void)arg;
    *(int *)value += *(const int *)item;
}

static int use_sequences(void *arg)
{
    const int numbers[] = { 1, 2, 3, 4, 5, 6 };
    int sum = 0;
    (void)arg;
    weft_sequence *even =
        weft_sequence_filter(weft_generate(sizeof(int), count_up, NULL), is_even, NULL);
    weft_sequence *all = weft_sequence_of_array(numbers, 6, sizeof(int));
    weft_sequence *sums = weft_sequence_zip(even, all, sizeof(int), add_both, NULL);
    weft_sequence *more = weft_sequence_of_array(numbers, 2, sizeof(int));
    weft_sequence *merged = weft_sequence_merge(weft_sequence_buffered(sums, 2), more);
    int err = weft_sequence_fold(merged, &sum, add, NULL);
    CHECK(err != 0 || sum == 0 + 2 + 4 + 6 + 8 + (1 + 2 + 3 + 4 + 5) + 3);
    return err;
}

static void sequences_without_memory_are_dropped(void)
{
    sweep(use_sequences);
}

/* --- Locals ----------------------------------------------------------------------------------- */

static weft_local key;

static void *same(void *value)
{
    return value;
}

static int read_it(void *arg)
{
    void *value = weft_local_get(key);
    CHECK(value == arg);
    return 0;
}

static int use_locals(void *arg)
{
    int value = 0;
    (void)arg;
    int err = weft_local_set(key, &value);
    if (err == 0) {
        weft_task *task;
        weft_fiber_spec spec = { .function = read_it, .arg = &value, .inherits = true };
        err = weft_go_with(&task, &spec);
        if (err == 0) {
            CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
        }
        CHECK_EQ(weft_local_set(key, NULL), 0);
    }
    return err;
}

static void task_without_memory_for_locals_does_not_start(void)
{
    CHECK_EQ(weft_local_create_inherited(&key, same, NULL), 0);
    sweep(use_locals);
}

/* --- I/O -------------------------------------------------------------------------------------- */

enum {
    STREAMS = 70, /* more than the first block of the source table holds */
};

static int echo_once(weft_stream *near, weft_stream *far)
{
    char byte = 0;
    int err = weft_write_all(near, "x", 1, WEFT_NEVER);
    ssize_t n = err == 0 ? weft_read(far, &byte, 1, WEFT_NEVER) : err;
    CHECK(n != 1 || byte == 'x');
    return n < 0 ? (int)n : 0;
}

/* If there is no memory for a connection, it is closed, and its peer reads the end. */
static int accept_and_echo(weft_listener *listener)
{
    char place[WEFT_ADDRESS_TEXT_MAX];
    weft_address address;
    weft_stream *near = NULL;
    weft_stream *far = NULL;
    CHECK_EQ(weft_listener_address(listener, &address), 0);
    CHECK_LT(weft_address_print(&address, place, sizeof place), sizeof place);
    int err = weft_connect(&near, place, NULL, WEFT_NEVER);
    if (err == 0) {
        err = weft_accept(listener, &far, WEFT_NEVER);
        err = err == 0 ? echo_once(near, far) : err;
    }
    weft_stream_close(far);
    weft_stream_close(near);
    return err;
}

static int connect_by_name(void)
{
    weft_listener *listener;
    int err = weft_listen(&listener, "tcp://localhost:0", NULL);
    if (err == 0) {
        err = accept_and_echo(listener);
        weft_listener_close(listener);
    }
    return err;
}

static int copy_through(weft_stream *from, weft_stream *to, weft_stream *reader)
{
    uint64_t copied = 0;
    int err = weft_write_all(from, "x", 1, WEFT_NEVER);
    err = err == 0 ? weft_stream_shutdown(from, WEFT_WRITE_SIDE) : err;
    err = err == 0 ? weft_copy(to, reader, &copied, WEFT_NEVER) : err;
    CHECK(err != 0 || copied == 1);
    return err;
}

static int copy_in_memory(void)
{
    weft_stream *ends[4] = { NULL, NULL, NULL, NULL };
    int err = weft_duplex(&ends[0], &ends[1], 16);
    if (err == 0) {
        err = weft_duplex(&ends[2], &ends[3], 16);
        err = err == 0 ? copy_through(ends[0], ends[1], ends[2]) : err;
        for (unsigned i = 0; i < 4; i++) {
            weft_stream_close(ends[i]);
        }
    }
    return err;
}

static int open_many(void)
{
    weft_stream *pipes[STREAMS][2] = { { NULL } };
    int err = 0;
    unsigned count = 0;
    while (err == 0 && count < STREAMS) {
        err = weft_pipe(&pipes[count][0], &pipes[count][1]);
        count += err == 0;
    }
    for (unsigned i = 0; i < count; i++) {
        int result = echo_once(pipes[i][1], pipes[i][0]);
        CHECK_EQ(result, 0);
        weft_stream_close(pipes[i][0]);
        weft_stream_close(pipes[i][1]);
    }
    return err;
}

static int use_io(void *arg)
{
    unsigned before = link_fds();
    (void)arg;
    int err = connect_by_name();
    err = err == 0 ? copy_in_memory() : err;
    err = err == 0 ? open_many() : err;
    /* The remaining descriptors belong to the runtime. */
    CHECK_LE(link_fds(), before + 2 * workers() + 2);
    return err;
}

static void streams_without_memory_leave_no_descriptor(void)
{
    unsigned before = link_fds();
    sweep(use_io);
    CHECK_EQ(link_fds(), before);
}

TEST_MAIN({
    TEST_DEBUG(channels_without_memory_return_enomem),
    TEST_DEBUG(task_groups_without_memory_join_started_tasks),
    TEST_DEBUG(sequences_without_memory_are_dropped),
    TEST_DEBUG(task_without_memory_for_locals_does_not_start),
    TEST_DEBUG(streams_without_memory_leave_no_descriptor),
})
