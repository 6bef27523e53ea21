/* SPDX-License-Identifier: MIT */
#include "chan/message.h"

#include <stdlib.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

/* No byte beyond the size is written. */
static void copy_copies_exactly_size_bytes(void)
{
    enum {
        SIZE_MAX_TRIED = 40,
        MARGIN = 8,
    };
    for (size_t size = 0; size <= SIZE_MAX_TRIED; size++) {
        unsigned char from[SIZE_MAX_TRIED + MARGIN];
        unsigned char to[SIZE_MAX_TRIED + MARGIN];
        for (size_t i = 0; i < sizeof from; i++) {
            from[i] = (unsigned char)(i + 1);
            to[i] = 0;
        }
        wf_message_copy(to, from, size);
        for (size_t i = 0; i < sizeof to; i++) {
            CHECK_EQ(to[i], i < size ? i + 1 : 0);
        }
    }
}

/* --- Messages of size 0 ---------------------------------------------------------------------- */

enum {
    EVENTS = 40,
};

static void *nothing; /* passed as message in all calls below: NULL, or the end of a block */

static void check_length(weft_receiver *receiver, size_t length)
{
    CHECK_EQ(weft_receiver_info(receiver).length, length);
}

static void pass_through_ring(weft_sender *sender, weft_receiver *receiver, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(weft_try_send(sender, nothing), 0);
    }
    check_length(receiver, count);
    CHECK_EQ(weft_recv(receiver, nothing, WEFT_NEVER), 0);
    CHECK_EQ(weft_try_reserve(sender), 0);
    weft_send_reserved(sender, nothing);
    check_length(receiver, count);
    CHECK_EQ(weft_recv_many(receiver, nothing, count + 1, WEFT_NEVER), (int64_t)count);
    CHECK_EQ(weft_try_recv(receiver, nothing), -EAGAIN);
}

static int receive_event(void *arg)
{
    return weft_recv(arg, nothing, WEFT_NEVER);
}

static int send_event(void *arg)
{
    return weft_send(arg, nothing, WEFT_NEVER);
}

static void channels(void)
{
    static const size_t capacities[] = { 0, 1, 3, WEFT_UNBOUNDED };
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        weft_sender *sender;
        weft_receiver *receiver;
        weft_task *task;
        CHECK_EQ(weft_channel_make(&sender, &receiver, 0, capacities[i]), 0);
        if (capacities[i] > 0) {
            pass_through_ring(sender, receiver, capacities[i] < EVENTS ? capacities[i] : EVENTS);
        }
        /* From a waiting sender, and to a waiting receiver. */
        CHECK_EQ(weft_go(&task, send_event, sender), 0);
        CHECK_EQ(weft_recv(receiver, nothing, WEFT_NEVER), 0);
        CHECK_EQ(test_join(task), 0);
        CHECK_EQ(weft_go(&task, receive_event, receiver), 0);
        CHECK_EQ(weft_send(sender, nothing, WEFT_NEVER), 0);
        CHECK_EQ(test_join(task), 0);
        weft_sender_drop(sender);
        CHECK_EQ(weft_try_recv(receiver, nothing), WEFT_ECLOSED);
        weft_receiver_drop(receiver);
    }
}

static int receive_oneshot(void *arg)
{
    return weft_oneshot_recv(arg, nothing, nothing, 0, WEFT_NEVER);
}

static void oneshots(void)
{
    weft_oneshot oneshot = { { 0 } };
    CHECK_EQ(weft_oneshot_send(&oneshot, nothing, nothing, 0), 0);
    CHECK_EQ(weft_oneshot_try_recv(&oneshot, nothing, nothing, 0), 0);
    oneshot = (weft_oneshot){ { 0 } };
    CHECK_EQ(weft_oneshot_send(&oneshot, nothing, nothing, 0), 0);
    weft_op op;
    weft_oneshot_recv_init(&op, &oneshot, nothing, nothing, 0);
    CHECK_EQ(weft_await(&op.future, WEFT_NEVER), 0);
    oneshot = (weft_oneshot){ { 0 } };
    weft_task *task;
    CHECK_EQ(weft_go(&task, receive_oneshot, &oneshot), 0);
    CHECK_EQ(weft_yield(), 0);
    CHECK_EQ(weft_oneshot_send(&oneshot, nothing, nothing, 0), 0);
    CHECK_EQ(test_join(task), 0);
}

static void watches(void)
{
    weft_watch_sender *sender;
    weft_watch_receiver *receiver;
    CHECK_EQ(weft_watch_make(&sender, &receiver, 0, nothing), 0);
    CHECK_EQ(weft_watch_send(sender, nothing), 0);
    CHECK_EQ(weft_watch_recv(receiver, nothing, WEFT_NEVER), 0);
    weft_watch_get(receiver, nothing);
    weft_watch_sender_drop(sender);
    weft_watch_receiver_drop(receiver);
}

static void broadcasts(void)
{
    weft_broadcast_sender *sender;
    weft_broadcast_receiver *receiver;
    CHECK_EQ(weft_broadcast_make(&sender, &receiver, 0, 3), 0);
    for (unsigned i = 0; i < 5; i++) {
        CHECK_EQ(weft_broadcast_send(sender, nothing), 0);
    }
    uint64_t missed;
    CHECK_EQ(weft_broadcast_recv(receiver, nothing, &missed, WEFT_NEVER), 0);
    CHECK_EQ(missed, 2);
    CHECK_EQ(weft_broadcast_try_recv_many(receiver, nothing, 5, &missed), 2);
    weft_broadcast_sender_drop(sender);
    weft_broadcast_receiver_drop(receiver);
}

static int generate_events(weft_generator *to, void *arg)
{
    (void)arg;
    int err = 0;
    for (unsigned i = 0; i < EVENTS && err == 0; i++) {
        err = weft_give(to, nothing);
    }
    return err;
}

static int map_event(const void *from, void *to, void *arg)
{
    (void)from;
    (void)to;
    (void)arg;
    return 0;
}

static int zip_events(const void *one, const void *two, void *to, void *arg)
{
    (void)two;
    return map_event(one, to, arg);
}

static bool keep_event(const void *item, void *arg)
{
    (void)item;
    (void)arg;
    return true;
}

static weft_sequence *events(void)
{
    return weft_sequence_of_array(nothing, EVENTS, 0);
}

static void sequences(void)
{
    weft_sequence *both = weft_sequence_zip(events(), events(), 0, zip_events, NULL);
    weft_sequence *mapped = weft_sequence_map(both, 0, map_event, NULL);
    weft_sequence *merged = weft_sequence_merge(mapped, weft_generate(0, generate_events, NULL));
    weft_sequence *kept = weft_sequence_filter(weft_sequence_buffered(merged, 4), keep_event, NULL);
    CHECK_EQ(weft_sequence_collect(weft_sequence_skip(kept, 3), nothing, SIZE_MAX), 2 * EVENTS - 3);

    weft_sequence *chunks = weft_sequence_chunks(events(), EVENTS / 2);
    weft_chunk chunk;
    CHECK_EQ(weft_sequence_next(chunks, &chunk, WEFT_NEVER), 1);
    CHECK_EQ(chunk.count, EVENTS / 2);
    weft_sequence_drop(chunks);

    weft_sender *sender;
    weft_receiver *receiver;
    CHECK_EQ(weft_channel_make(&sender, &receiver, 0, WEFT_UNBOUNDED), 0);
    CHECK_EQ(weft_sequence_send_to(events(), sender), 0);
    weft_sender_drop(sender);
    CHECK_EQ(weft_sequence_collect(weft_sequence_of_channel(receiver, 0), nothing, SIZE_MAX),
             EVENTS);
}

static void tasks(void)
{
    weft_task *task;
    weft_spec spec = { .body = test_return_7, .state = nothing, .state_size = 0 };
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    CHECK_EQ(test_join(task), 7);
}

static void (*const kinds[])(void) = { channels, oneshots, watches, broadcasts, sequences, tasks };

static int run_kind(void *arg)
{
    kinds[(uintptr_t)arg]();
    return 0;
}

/*
 * Goal:   a message of size 0 is an event. Its pointer may be NULL and is never dereferenced.
 * Method: every kind of channel, with NULL and with the end of a heap block, where a sanitizer
 *         reports an access of even one byte.
 */
static void messages_of_size_0_are_not_accessed(void)
{
    char *block = malloc(16);
    weft_runtime *rt = test_start(1);
    void *const places[] = { NULL, block + 16 };
    for (size_t i = 0; i < 2; i++) {
        nothing = places[i];
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            CHECK_EQ(test_run(rt, run_kind, (void *)(uintptr_t)k), 0);
        }
    }
    weft_runtime_destroy(rt);
    free(block);
}

TEST_MAIN({
    TEST(copy_copies_exactly_size_bytes),
    TEST(messages_of_size_0_are_not_accessed),
})
