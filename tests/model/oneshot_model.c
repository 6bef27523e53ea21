/* SPDX-License-Identifier: MIT */
/*
 * oneshot_model.c - src/chan/oneshot.c, with plain threads: one value arrives, once, with what
 * was done before; who waits is let go; who has received it may free the place.
 */
#include <weft/oneshot.h>

#include <stdlib.h>

#include "base/atomic.h"
#include "sync_rig.h"

WEFT_ONESHOT(place, int)

static place spot;
static int written[3]; /* plain: before the value is sent */
static _Atomic(int) sent;
static _Atomic(int) received;

static void send_value(int value)
{
    written[value] = 1;
    int err = place_send(&spot, value);
    mc_assert(err == 0 || err == -EEXIST || err == WEFT_ECLOSED);
    if (err == 0) {
        mc_assert(wf_fetch_add_relaxed(&sent, value) == 0);
    }
    mc_note(err == 0 ? 1 : err == -EEXIST ? 2 : 3);
}

static void receive_until(weft_time deadline)
{
    int value = 0;
    int err = place_recv(&spot, &value, deadline);
    mc_assert(err == 0 || err == WEFT_ECLOSED || deadline == DEADLINE);
    if (err == 0) {
        mc_assert(written[value] == 1);
        mc_assert(wf_fetch_add_relaxed(&received, value) == 0);
    }
    mc_note(err == 0 ? 4 : err == WEFT_ECLOSED ? 5 : 6);
}

static void send_1(void *arg)
{
    (void)arg;
    send_value(1);
}

static void send_2(void *arg)
{
    (void)arg;
    send_value(2);
}

static void receive(void *arg)
{
    (void)arg;
    receive_until(WEFT_NEVER);
}

static void receive_in_time(void *arg)
{
    (void)arg;
    receive_until(DEADLINE);
}

static void close_it(void *arg)
{
    (void)arg;
    place_close(&spot);
}

/* What was sent was received, or is still there. */
static void end(void)
{
    int rest = 0;
    if (place_try_recv(&spot, &rest) == 0) {
        mc_assert(wf_fetch_add_relaxed(&received, rest) == 0);
    }
    mc_assert(wf_load_relaxed(&sent) == wf_load_relaxed(&received));
}

static void one_to_one(void)
{
    RIG_RUN(send_1, receive);
    end();
}

/* Who tries once may be too early; else it sees what was done before, too. */
static void receive_if_there(void *arg)
{
    (void)arg;
    int value = 0;
    int err = place_try_recv(&spot, &value);
    mc_assert(err == 0 || err == -EAGAIN);
    if (err == 0) {
        mc_assert(written[value] == 1);
        mc_assert(wf_fetch_add_relaxed(&received, value) == 0);
    }
    mc_note(err == 0 ? 4 : 7);
}

static void one_tries(void)
{
    RIG_RUN(send_1, receive_if_there);
    end();
}

static void two_send(void)
{
    RIG_RUN(send_1, send_2, receive);
    end();
}

static void two_receive(void)
{
    RIG_RUN(send_1, receive, receive);
    end();
}

static void one_gives_up(void)
{
    RIG_RUN(send_1, receive_in_time);
    end();
}

static void closed_meanwhile(void)
{
    RIG_RUN(send_1, close_it, receive);
    end();
}

/*
 * Goal:   who has received the value may free the place.
 * Method: it does, and the sender may still be in its call.
 */
static place *own;

static void send_to_own(void *arg)
{
    (void)arg;
    mc_assert(place_send(own, 1) == 0);
}

static void who_receives_frees_it(void)
{
    own = calloc(1, sizeof *own);
    mc_assert(own != NULL);
    mc_go(send_to_own, NULL);
    int value = 0;
    mc_assert(place_recv(own, &value, WEFT_NEVER) == 0);
    mc_assert(value == 1);
    free(own);
    mc_join();
}

#define SAMPLED .mode = MC_PCT, .runs = 20000, .leaks = true

static const struct mc_test tests[] = {
    { .name = "one_to_one", .run = one_to_one, SAMPLED, .seen = MC_OUTCOMES(1, 4) },
    { .name = "one_tries", .run = one_tries, .seen = MC_OUTCOMES(1, 4, 7) },
    { .name = "two_send", .run = two_send, .seen = MC_OUTCOMES(1, 2, 4), SAMPLED },
    { .name = "two_receive", .run = two_receive, .seen = MC_OUTCOMES(1, 4, 5), SAMPLED },
    { .name = "one_gives_up",
      .run = one_gives_up,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 4, 6),
      SAMPLED },
    { .name = "closed_meanwhile",
      .run = closed_meanwhile,
      .seen = MC_OUTCOMES(1, 3, 4, 5),
      SAMPLED },
    { .name = "who_receives_frees_it", .run = who_receives_frees_it, SAMPLED },
};

MC_MAIN(tests)
