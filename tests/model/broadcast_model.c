/* SPDX-License-Identifier: MIT */
/*
 * broadcast_model.c - src/chan/broadcast.c and src/chan/watch.c, with plain threads: nobody who
 * waits is passed over, and the last value or every message arrives, with what was done
 * before; the last handle frees all.
 */
#include <weft/broadcast.h>
#include <weft/watch.h>

#include "base/atomic.h"
#include "sync_rig.h"

WEFT_WATCH(level, int)
WEFT_BROADCAST(news, int)

static int written[4]; /* plain: before the value is sent */

/* --- A watch ---------------------------------------------------------------------------------- */

static level_sender *set;
static level_receiver *seen[2];

static void watch_begin(unsigned receivers)
{
    mc_assert(level_make(&set, &seen[0], 0) == 0);
    if (receivers == 2) {
        mc_assert(level_subscribe(set, &seen[1]) == 0);
    }
}

static void set_1_and_2(void *arg)
{
    (void)arg;
    for (int value = 1; value <= 2; value++) {
        written[value] = 1;
        mc_assert(level_send(set, value) == 0);
    }
    level_sender_drop(set);
}

/* Sees values that grow, and the last one, until it is closed or the deadline. */
static void see_all(level_receiver *receiver, weft_time deadline)
{
    int last = 0;
    int value = 0;
    int err;
    while ((err = level_recv(receiver, &value, deadline)) == 0) {
        mc_assert(value > last && written[value] == 1);
        last = value;
    }
    mc_assert(err == WEFT_ECLOSED ? last == 2 : deadline == DEADLINE);
    mc_note(err == WEFT_ECLOSED ? 1 : 2);
    level_receiver_drop(receiver);
}

static void see_all_0(void *arg)
{
    (void)arg;
    see_all(seen[0], WEFT_NEVER);
}

static void see_all_1(void *arg)
{
    (void)arg;
    see_all(seen[1], WEFT_NEVER);
}

static void see_some_1(void *arg)
{
    (void)arg;
    see_all(seen[1], DEADLINE);
}

static void one_watches(void)
{
    watch_begin(1);
    RIG_RUN(set_1_and_2, see_all_0);
}

static void two_watch(void)
{
    watch_begin(2);
    RIG_RUN(set_1_and_2, see_all_0, see_all_1);
}

static void one_who_watches_gives_up(void)
{
    watch_begin(2);
    RIG_RUN(set_1_and_2, see_all_0, see_some_1);
}

/*
 * Goal:   who waits for a value gets it, even if the next one comes at once.
 * Method: it waits for 1, and 2 follows; if it comes too late, the end.
 */
static bool is_1(const void *value, void *arg)
{
    (void)arg;
    return *(const int *)value == 1;
}

static void wait_for_1(void *arg)
{
    (void)arg;
    int value = 0;
    int err = weft_watch_wait_for(level_from(seen[0]), is_1, NULL, &value, WEFT_NEVER);
    mc_assert(err == 0 ? value == 1 && written[1] == 1 : err == WEFT_ECLOSED);
    mc_note(err == 0 ? 1 : 2);
    level_receiver_drop(seen[0]);
}

static void one_waits_for_a_value(void)
{
    watch_begin(1);
    RIG_RUN(set_1_and_2, wait_for_1);
}

/* --- A broadcast ------------------------------------------------------------------------------ */

static news_sender *to;
static news_receiver *from[2];

static void broadcast_begin(size_t capacity, unsigned receivers)
{
    mc_assert(news_make(&to, &from[0], capacity) == 0);
    if (receivers == 2) {
        mc_assert(news_subscribe(to, &from[1]) == 0);
    }
}

static void send_1_to_3(void *arg)
{
    (void)arg;
    for (int message = 1; message <= 3; message++) {
        written[message] = 1;
        mc_assert(news_send(to, message) == 0);
    }
    news_sender_drop(to);
}

/* Every message, or how many were missed. */
static void receive_all(news_receiver *receiver, weft_time deadline)
{
    int next = 1;
    int message = 0;
    uint64_t missed = 0;
    int err;
    while ((err = news_recv(receiver, &message, &missed, deadline)) == 0) {
        next += (int)missed;
        mc_note(missed == 0 ? 3 : 4);
        mc_assert(message == next && written[message] == 1);
        next++;
    }
    mc_assert(err == WEFT_ECLOSED ? next == 4 : deadline == DEADLINE);
    mc_note(err == WEFT_ECLOSED ? 1 : 2);
    news_receiver_drop(receiver);
}

static void receive_all_0(void *arg)
{
    (void)arg;
    receive_all(from[0], WEFT_NEVER);
}

static void receive_all_1(void *arg)
{
    (void)arg;
    receive_all(from[1], WEFT_NEVER);
}

static void receive_some_1(void *arg)
{
    (void)arg;
    receive_all(from[1], DEADLINE);
}

static void one_receives(void)
{
    broadcast_begin(1, 1);
    RIG_RUN(send_1_to_3, receive_all_0);
}

static void two_receive(void)
{
    broadcast_begin(2, 2);
    RIG_RUN(send_1_to_3, receive_all_0, receive_all_1);
}

static void one_who_receives_gives_up(void)
{
    broadcast_begin(2, 2);
    RIG_RUN(send_1_to_3, receive_all_0, receive_some_1);
}

#define SAMPLED .mode = MC_PCT, .runs = 20000, .leaks = true

static const struct mc_test tests[] = {
    { .name = "one_watches", .run = one_watches, SAMPLED, .seen = MC_OUTCOMES(1) },
    { .name = "two_watch", .run = two_watch, SAMPLED, .seen = MC_OUTCOMES(1) },
    { .name = "one_who_watches_gives_up",
      .run = one_who_watches_gives_up,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2),
      SAMPLED },
    { .name = "one_waits_for_a_value",
      .run = one_waits_for_a_value,
      .seen = MC_OUTCOMES(1, 2),
      SAMPLED },
    { .name = "one_receives", .run = one_receives, .seen = MC_OUTCOMES(1, 3, 4), SAMPLED },
    { .name = "two_receive", .run = two_receive, .seen = MC_OUTCOMES(1, 3, 4), SAMPLED },
    { .name = "one_who_receives_gives_up",
      .run = one_who_receives_gives_up,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2, 3),
      SAMPLED },
};

MC_MAIN(tests)
