/* SPDX-License-Identifier: MIT */
/*
 * channel_model.c - src/chan/channel.c, with plain threads: each message is received once, or
 * its sender is told; what was done before it was sent is seen; nobody waits for a channel
 * that is closed, or could be used.
 */
#include <weft/channel.h>

#include "base/atomic.h"
#include "sync_rig.h"

/* Messages of one word take another path. */
#ifdef MODEL_WORDS
typedef int64_t number_t;
#else
typedef int number_t;
#endif

WEFT_CHANNEL(numbers, number_t)

enum {
    SIDE_MAX = 2,
};

static numbers_sender *to[SIDE_MAX];     /* each thread that sends has its own */
static numbers_receiver *from[SIDE_MAX]; /* and each that receives */
static int written[4];                   /* plain: before the message with this number is sent */
static _Atomic(int) sent;
static _Atomic(int) received;
static _Atomic(int) dropped; /* unread */

static void drop_unread(void *message, void *arg)
{
    int number = (int)*(const number_t *)message;
    (void)arg;
    mc_assert(written[number] == 1);
    (void)wf_fetch_add_relaxed(&dropped, number);
}

static void begin(size_t capacity, unsigned senders, unsigned receivers)
{
    weft_channel_options options = { .capacity = capacity, .drop = drop_unread };
    mc_assert(numbers_create(&to[0], &from[0], &options) == 0);
    for (unsigned i = 1; i < senders; i++) {
        to[i] = numbers_sender_clone(to[0]);
        mc_assert(to[i] != NULL);
    }
    for (unsigned i = 1; i < receivers; i++) {
        from[i] = numbers_receiver_clone(from[0]);
        mc_assert(from[i] != NULL);
    }
}

static void send_until(unsigned side, int number, weft_time deadline)
{
    written[number] = 1;
    int err = numbers_send(to[side], number, deadline);
    mc_assert(err == 0 || err == WEFT_ECLOSED || (err == WEFT_ETIMEDOUT && deadline == DEADLINE));
    if (err == 0) {
        (void)wf_fetch_add_relaxed(&sent, number);
    }
    mc_note(err == 0 ? 1 : err == WEFT_ECLOSED ? 2 : 3);
}

static void send_1(void *arg)
{
    (void)arg;
    send_until(0, 1, WEFT_NEVER);
    numbers_sender_drop(to[0]);
}

static void send_2(void *arg)
{
    (void)arg;
    send_until(1, 2, WEFT_NEVER);
    numbers_sender_drop(to[1]);
}

static void send_1_and_3(void *arg)
{
    send_until(0, 1, WEFT_NEVER);
    send_until(0, 3, WEFT_NEVER);
    numbers_sender_drop(to[0]);
    (void)arg;
}

static void send_1_in_time(void *arg)
{
    (void)arg;
    send_until(0, 1, DEADLINE);
    numbers_sender_drop(to[0]);
}

/* Receives so many at most, until it is closed. */
static void receive(unsigned side, int most, weft_time deadline)
{
    int last = 0;
    for (int i = 0; i < most; i++) {
        number_t number = 0;
        int err = numbers_recv(from[side], &number, deadline);
        if (err != 0) {
            mc_assert(err == WEFT_ECLOSED || deadline == DEADLINE);
            mc_note(err == WEFT_ECLOSED ? 4 : 5);
            break;
        }
        mc_assert(written[number] == 1);
        mc_assert(number != 3 || last != 3);
        (void)wf_fetch_add_relaxed(&received, (int)number);
        last = (int)number;
    }
    numbers_receiver_drop(from[side]);
}

static void receive_all(void *arg)
{
    (void)arg;
    receive(0, 9, WEFT_NEVER);
}

static void receive_all_too(void *arg)
{
    (void)arg;
    receive(1, 9, WEFT_NEVER);
}

static void receive_one(void *arg)
{
    (void)arg;
    receive(0, 1, WEFT_NEVER);
}

static void receive_in_time(void *arg)
{
    (void)arg;
    receive(1, 9, DEADLINE);
}

/* Each message was received, or dropped once if the receivers have left it. */
static void end(bool all)
{
    mc_assert(!all || wf_load_relaxed(&dropped) == 0);
    mc_assert(wf_load_relaxed(&sent) == wf_load_relaxed(&received) + wf_load_relaxed(&dropped));
    mc_note(wf_load_relaxed(&dropped) == 0 ? 6 : 7);
}

static void from_hand_to_hand(void)
{
    begin(0, 1, 1);
    RIG_RUN(send_1, receive_all);
    end(true);
}

static void through_a_slot(void)
{
    begin(1, 1, 1);
    RIG_RUN(send_1_and_3, receive_all);
    end(true);
}

static void without_a_limit(void)
{
    begin(WEFT_UNBOUNDED, 1, 1);
    RIG_RUN(send_1_and_3, receive_all);
    end(true);
}

static void two_senders(void)
{
    begin(*(const size_t *)mc_arg(), 2, 1);
    RIG_RUN(send_1, send_2, receive_all);
    end(true);
}

static void two_receivers(void)
{
    begin(*(const size_t *)mc_arg(), 1, 2);
    RIG_RUN(send_1_and_3, receive_all, receive_all_too);
    end(true);
}

/*
 * Goal:   who gives up has sent nothing, or received nothing; and takes nothing with it.
 * Method: a sender or a receiver gives up at any time.
 */
static void a_sender_gives_up(void)
{
    begin(0, 1, 1);
    RIG_RUN(send_1_in_time, receive_all);
    end(true);
}

static void a_receiver_gives_up(void)
{
    begin(0, 1, 2);
    RIG_RUN(send_1, receive_in_time, receive_all);
    end(true);
}

/*
 * Goal:   when the last receiver goes, senders are told, also those who wait.
 * Method: it takes one message, and there are two.
 */
static void the_receiver_goes(void)
{
    begin(*(const size_t *)mc_arg(), 1, 1);
    RIG_RUN(send_1_and_3, receive_one);
    end(false);
}

/*
 * Goal:   who closes it lets nobody wait for ever.
 * Method: one closes it, while others send and receive.
 */
static void close_and_drop(void *arg)
{
    (void)arg;
    weft_sender_close(numbers_to(to[1]));
    numbers_sender_drop(to[1]);
}

static void closed_meanwhile(void)
{
    begin(*(const size_t *)mc_arg(), 2, 1);
    RIG_RUN(send_1, close_and_drop, receive_all);
    end(true);
}

/*
 * Goal:   room that is reserved is used or given back, and somebody may be waiting for it.
 * Method: one reserves the only slot, and sends into it; another one sends.
 */
static void reserve_and_send(void *arg)
{
    (void)arg;
    mc_assert(weft_reserve(numbers_to(to[1]), WEFT_NEVER) == 0);
    written[2] = 1;
    (void)wf_fetch_add_relaxed(&sent, 2);
    numbers_send_reserved(to[1], 2);
    numbers_sender_drop(to[1]);
}

static void use_room_and_drop(void *arg)
{
    (void)arg;
    written[2] = 1;
    (void)wf_fetch_add_relaxed(&sent, 2);
    numbers_send_reserved(to[1], 2);
    numbers_sender_drop(to[1]);
}

static void reserve_and_give_back(void *arg)
{
    (void)arg;
    mc_assert(weft_reserve(numbers_to(to[1]), WEFT_NEVER) == 0);
    weft_unreserve(numbers_to(to[1]));
    numbers_sender_drop(to[1]);
}

static void room_that_is_used(void)
{
    begin(1, 2, 1);
    RIG_RUN(reserve_and_send, send_1, receive_all);
    end(true);
}

static void room_that_is_given_back(void)
{
    begin(1, 2, 1);
    RIG_RUN(reserve_and_give_back, send_1, receive_all);
    end(true);
}

/* Nobody receives before the other one has sent. */
static void room_that_somebody_waits_for(void)
{
    begin(1, 2, 1);
    mc_assert(weft_try_reserve(numbers_to(to[1])) == 0);
    mc_go(send_1, NULL);
    weft_unreserve(numbers_to(to[1]));
    mc_join();
    numbers_sender_drop(to[1]);
    receive_all(NULL);
    end(true);
}

/*
 * Goal:   the room of a sender that is dropped goes to a sender that waits for it.
 * Method: one reserves the only slot and drops its handle; another one sends.
 */
static void reserve_and_drop(void *arg)
{
    (void)arg;
    mc_assert(weft_reserve(numbers_to(to[1]), WEFT_NEVER) == 0);
    numbers_sender_drop(to[1]);
}

static void room_of_a_dropped_sender(void)
{
    begin(1, 2, 1);
    RIG_RUN(reserve_and_drop, send_1, receive_all);
    end(true);
}

/* As above, and no receiver makes room. */
static void room_of_a_dropped_sender_without_receivers(void)
{
    begin(1, 2, 1);
    mc_assert(weft_try_reserve(numbers_to(to[1])) == 0);
    mc_go(send_1, NULL);
    numbers_sender_drop(to[1]);
    mc_join();
    receive_all(NULL);
    end(true);
}

/*
 * Goal:   a message that is sent into reserved room is received or dropped when the last receiver
 *         goes.
 * Method: the receiver takes one message, or goes while there is none; two are sent.
 */
static void the_receiver_goes_before_room_is_used(void)
{
    begin(2, 2, 1);
    mc_assert(weft_try_reserve(numbers_to(to[1])) == 0);
    RIG_RUN(use_room_and_drop, send_1, receive_one);
    end(false);
}

static const size_t none = 0;
static const size_t one = 1;

#define SAMPLED .mode = MC_PCT, .runs = 20000, .leaks = true

static const struct mc_test tests[] = {
    { .name = "from_hand_to_hand",
      .run = from_hand_to_hand,
      SAMPLED,
      .seen = MC_OUTCOMES(1, 4, 6) },
    { .name = "through_a_slot", .run = through_a_slot, SAMPLED, .seen = MC_OUTCOMES(1, 4, 6) },
    { .name = "without_a_limit", .run = without_a_limit, SAMPLED, .seen = MC_OUTCOMES(1, 4, 6) },
    { .name = "two_senders_from_hand_to_hand",
      .run = two_senders,
      .arg = &none,
      SAMPLED,
      .seen = MC_OUTCOMES(1, 4, 6) },
    { .name = "two_senders_through_a_slot",
      .run = two_senders,
      .arg = &one,
      SAMPLED,
      .seen = MC_OUTCOMES(1, 4, 6) },
    { .name = "two_receivers_from_hand_to_hand",
      .run = two_receivers,
      .arg = &none,
      SAMPLED,
      .seen = MC_OUTCOMES(1, 4, 6) },
    { .name = "two_receivers_through_a_slot",
      .run = two_receivers,
      .arg = &one,
      SAMPLED,
      .seen = MC_OUTCOMES(1, 4, 6) },
    { .name = "a_sender_gives_up",
      .run = a_sender_gives_up,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 3),
      SAMPLED },
    { .name = "a_receiver_gives_up",
      .run = a_receiver_gives_up,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 5),
      SAMPLED },
    { .name = "the_receiver_goes_from_hand_to_hand",
      .run = the_receiver_goes,
      .arg = &none,
      .seen = MC_OUTCOMES(1, 2),
      SAMPLED },
    { .name = "the_receiver_goes_from_a_slot",
      .run = the_receiver_goes,
      .arg = &one,
      .seen = MC_OUTCOMES(1, 2),
      SAMPLED },
    { .name = "closed_meanwhile_from_hand_to_hand",
      .run = closed_meanwhile,
      .arg = &none,
      .seen = MC_OUTCOMES(1, 2, 4),
      SAMPLED },
    { .name = "closed_meanwhile_with_a_slot",
      .run = closed_meanwhile,
      .arg = &one,
      .seen = MC_OUTCOMES(1, 2, 4),
      SAMPLED },
    { .name = "room_that_is_used",
      .run = room_that_is_used,
      SAMPLED,
      .seen = MC_OUTCOMES(1, 4, 6) },
    { .name = "room_that_is_given_back",
      .run = room_that_is_given_back,
      SAMPLED,
      .seen = MC_OUTCOMES(1, 4, 6) },
    { .name = "room_that_somebody_waits_for",
      .run = room_that_somebody_waits_for,
      SAMPLED,
      .seen = MC_OUTCOMES(1, 4, 6) },
    { .name = "the_receiver_goes_before_room_is_used",
      .run = the_receiver_goes_before_room_is_used,
      .seen = MC_OUTCOMES(1, 2, 6, 7),
      SAMPLED },
    { .name = "room_of_a_dropped_sender",
      .run = room_of_a_dropped_sender,
      SAMPLED,
      .seen = MC_OUTCOMES(1, 4, 6) },
    { .name = "room_of_a_dropped_sender_without_receivers",
      .run = room_of_a_dropped_sender_without_receivers,
      SAMPLED,
      .seen = MC_OUTCOMES(1, 4, 6) },
};

MC_MAIN(tests)
