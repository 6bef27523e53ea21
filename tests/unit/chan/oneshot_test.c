/* SPDX-License-Identifier: MIT */
#include <weft/oneshot.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "rt.h"
#include "test.h"

struct reply {
    uint64_t number;
    uint64_t check;
};

WEFT_ONESHOT(reply_place, struct reply)
WEFT_ONESHOT(number_place, int)

/* --- Concurrent pairs ------------------------------------------------------------------------ */

enum {
    MEMBERS = 12, /* each even member receives from the odd one after it */
};

static reply_place places[MEMBERS][2];
static struct reply replies[MEMBERS];

static void reset(void)
{
    memset(places, 0, sizeof places);
}

/* The receiver clears the slot for the round after next as soon as it has the reply of this
 * round: the sender is done with the slot by then. */
static int ask_or_answer(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    unsigned pair = self->index / 2;
    WEFT_BEGIN(co);
    for (; self->round < crowd_rounds(); self->round++) {
        if (self->index % 2 == 0) {
            reply_place_recv_init(&self->ops[0], &places[pair][self->round % 2], &replies[pair]);
            WEFT_AWAIT(co, self->err, &self->ops[0].future);
            CHECK_EQ(self->err, 0);
            CHECK_EQ(replies[pair].number, self->round);
            CHECK_EQ(replies[pair].check, self->round * 31 + pair);
            self->sum++;
            memset(&places[pair][self->round % 2], 0, sizeof(reply_place));
            weft_semaphore_release(self->shared, 1);
        } else {
            struct reply reply = { self->round, self->round * 31 + pair };
            CHECK_EQ(reply_place_send(&places[pair][self->round % 2], reply), 0);
            weft_semaphore_acquire_init(&self->ops[0], self->shared, 1);
            WEFT_AWAIT(co, self->err, &self->ops[0].future);
            CHECK_EQ(self->err, 0);
        }
    }
    WEFT_END(co, 0);
}

static void check_sum(uint64_t sum)
{
    CHECK_EQ(sum, crowd_rounds());
}

static void each_value_arrives_once(void)
{
    weft_semaphore answered = WEFT_SEMAPHORE_INIT(0);
    crowd_run_all(2, ask_or_answer, &answered, reset, check_sum);
}

/* --- One thread ------------------------------------------------------------------------------ */

static void value_is_sent_and_received_once(void)
{
    number_place place = { 0 };
    int value = 0;
    CHECK_EQ(number_place_try_recv(&place, &value), -EAGAIN);
    CHECK_EQ(number_place_recv(&place, &value, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK(!number_place_is_closed(&place));
    CHECK_EQ(number_place_send(&place, 7), 0);
    CHECK(!number_place_is_closed(&place));
    CHECK_EQ(number_place_send(&place, 8), -EEXIST);
    CHECK_EQ(number_place_try_recv(&place, &value), 0);
    CHECK_EQ(value, 7);
    CHECK(number_place_is_closed(&place));
    CHECK_EQ(number_place_try_recv(&place, &value), WEFT_ECLOSED);
    CHECK_EQ(number_place_recv(&place, &value, WEFT_NEVER), WEFT_ECLOSED);
    CHECK_EQ(number_place_send(&place, 9), -EEXIST);
}

static void send_to_closed_oneshot_returns_eclosed(void)
{
    number_place place = { 0 };
    int value = 5;
    number_place_close(&place);
    CHECK(number_place_is_closed(&place));
    CHECK_EQ(number_place_send(&place, 7), WEFT_ECLOSED);
    CHECK_EQ(number_place_recv(&place, &value, WEFT_NEVER), WEFT_ECLOSED);
    CHECK_EQ(value, 5);

    place = (number_place){ 0 };
    CHECK_EQ(number_place_send(&place, 7), 0);
    number_place_close(&place);
    CHECK_EQ(number_place_send(&place, 8), -EEXIST);
    CHECK_EQ(number_place_recv(&place, &value, WEFT_NEVER), 0);
    CHECK_EQ(value, 7);
    CHECK_EQ(number_place_recv(&place, &value, WEFT_NEVER), WEFT_ECLOSED);
}

static number_place waited;

static int receive(void *arg)
{
    (void)arg;
    int value = 0;
    int err = number_place_recv(&waited, &value, WEFT_NEVER);
    return err == 0 ? value : err;
}

static void send_and_close_wake_waiters(void)
{
    weft_runtime *rt = test_start(1);
    memset(&waited, 0, sizeof waited);
    weft_task *first = test_go_first(rt, receive, NULL);
    weft_task *second = test_go_first(rt, receive, NULL);
    test_settle(rt);
    CHECK_EQ(number_place_send(&waited, 3), 0);
    CHECK_EQ(test_join_soon(first), 3);
    CHECK_EQ(test_join_soon(second), WEFT_ECLOSED);
    int value = 0;
    CHECK_EQ(number_place_try_recv(&waited, &value), WEFT_ECLOSED);
    CHECK(number_place_is_closed(&waited));

    memset(&waited, 0, sizeof waited);
    first = test_go_first(rt, receive, NULL);
    test_settle(rt);
    number_place_close(&waited);
    CHECK_EQ(test_join_soon(first), WEFT_ECLOSED);
    weft_runtime_destroy(rt);
}

static void canceled_receive_leaves_value_for_others(void)
{
    weft_runtime *rt = test_start(1);
    int value = 0;
    memset(&waited, 0, sizeof waited);
    weft_task *task = test_go_first(rt, receive, NULL);
    test_settle(rt);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    CHECK_EQ(number_place_send(&waited, 3), 0);
    CHECK_EQ(number_place_try_recv(&waited, &value), 0);
    CHECK_EQ(value, 3);
    weft_runtime_destroy(rt);
}

/* A receive from a closed oneshot does not suspend. It must let other tasks run all the same. */
static _Atomic(bool) other_ran;

static int record_that_other_ran(void *arg)
{
    (void)arg;
    atomic_store(&other_ran, true);
    return 0;
}

static int receive_closed(void *arg)
{
    while (!atomic_load(&other_ran)) {
        CHECK_EQ(receive(arg), WEFT_ECLOSED);
    }
    return 0;
}

static void receive_from_closed_oneshot_lets_others_run(void)
{
    weft_runtime *rt = test_start(1);
    memset(&waited, 0, sizeof waited);
    number_place_close(&waited);
    weft_task *busy = test_go(rt, receive_closed, NULL);
    CHECK_EQ(test_run(rt, record_that_other_ran, NULL), 0);
    CHECK_EQ(test_join_soon(busy), 0);
    weft_runtime_destroy(rt);
}

/* The receiver frees the oneshot while the sender may still be in its call. */
static int send_1(void *arg)
{
    CHECK_EQ(number_place_send(arg, 1), 0);
    return 0;
}

static int receive_and_free(void *arg)
{
    weft_runtime *rt = arg;
    for (uint64_t i = 0; i < crowd_rounds(); i++) {
        number_place *place = calloc(1, sizeof *place);
        int value = 0;
        CHECK(place != NULL);
        weft_task *sender = test_go(rt, send_1, place);
        CHECK_EQ(number_place_recv(place, &value, WEFT_NEVER), 0);
        memset(place, 0xff, sizeof *place);
        free(place);
        CHECK_EQ(test_join(sender), 0);
    }
    return 0;
}

static void receiver_may_free_oneshot(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, receive_and_free, rt), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(each_value_arrives_once),
    TEST(value_is_sent_and_received_once),
    TEST(send_to_closed_oneshot_returns_eclosed),
    TEST(send_and_close_wake_waiters),
    TEST(canceled_receive_leaves_value_for_others),
    TEST(receive_from_closed_oneshot_lets_others_run),
    TEST(receiver_may_free_oneshot),
})
