/* SPDX-License-Identifier: MIT */
/*
 * select_model.c - src/flow/select.c over two channels, with plain threads: one branch wins,
 * and the others have taken nothing; who could meet does not wait.
 */
#include <weft/select.h>

#include <weft/channel.h>
#include <weft/semaphore.h>

#include "base/atomic.h"
#include "sync_rig.h"

WEFT_CHANNEL(numbers, int)

static numbers_sender *to[2];
static numbers_receiver *from[2];
static weft_semaphore permits;
static int written[5]; /* plain: before the message with this number is sent */
static _Atomic(int) sent;
static _Atomic(int) received;

static void begin(size_t capacity)
{
    for (unsigned i = 0; i < 2; i++) {
        mc_assert(numbers_make(&to[i], &from[i], capacity) == 0);
    }
}

static void end(void)
{
    for (unsigned i = 0; i < 2; i++) {
        int rest;
        while (numbers_try_recv(from[i], &rest) == 0) {
            (void)wf_fetch_add_relaxed(&received, rest);
        }
        numbers_sender_drop(to[i]);
        numbers_receiver_drop(from[i]);
    }
    mc_assert(wf_load_relaxed(&sent) == wf_load_relaxed(&received));
}

static void send_to(unsigned channel, int number)
{
    written[number] = 1;
    mc_assert(numbers_send(to[channel], number, WEFT_NEVER) == 0);
    (void)wf_fetch_add_relaxed(&sent, number);
}

static void receive_from(unsigned channel)
{
    int number = 0;
    mc_assert(numbers_recv(from[channel], &number, WEFT_NEVER) == 0);
    mc_assert(written[number] == 1);
    (void)wf_fetch_add_relaxed(&received, number);
}

/* Receives from one of both. */
static int select_both(weft_time deadline)
{
    int numbers[2] = { 0, 0 };
    weft_op ops[2];
    weft_branch branches[2];
    for (unsigned i = 0; i < 2; i++) {
        numbers_recv_init(&ops[i], from[i], &numbers[i]);
        branches[i] = (weft_branch){ .future = &ops[i].future };
    }
    int winner = weft_select(branches, 2, WEFT_SELECT_ORDERED, deadline);
    mc_note(winner >= 0 ? winner : 2);
    if (winner < 0) {
        mc_assert(winner == WEFT_ETIMEDOUT && numbers[0] == 0 && numbers[1] == 0);
        return winner;
    }
    mc_assert(branches[winner].result == 0);
    mc_assert(written[numbers[winner]] == 1);
    mc_assert(numbers[1 - winner] == 0);
    (void)wf_fetch_add_relaxed(&received, numbers[winner]);
    return winner;
}

static void send_1_to_0(void *arg)
{
    (void)arg;
    send_to(0, 1);
}

static void send_2_to_1(void *arg)
{
    (void)arg;
    send_to(1, 2);
}

static void select_once(void *arg)
{
    (void)arg;
    (void)select_both(WEFT_NEVER);
}

static void select_twice(void *arg)
{
    (void)select_both(WEFT_NEVER);
    select_once(arg);
}

static void select_in_time(void *arg)
{
    (void)arg;
    (void)select_both(DEADLINE);
}

/* Each message is taken once; who lost leaves its own to the next. */
static void two_senders(void)
{
    begin(*(const size_t *)mc_arg());
    RIG_RUN(send_1_to_0, send_2_to_1, select_twice);
    end();
}

static void one_sender(void)
{
    begin(*(const size_t *)mc_arg());
    RIG_RUN(send_2_to_1, select_once);
    end();
}

static void it_gives_up(void)
{
    begin(1);
    RIG_RUN(send_2_to_1, select_in_time);
    end();
}

/*
 * Goal:   selects that could meet each other do.
 * Method: one would send to 0 or receive from 1, the other one receive from 0 or send to 1.
 */
static void send_or_receive(unsigned way, int number)
{
    int theirs = 0;
    weft_op ops[2];
    written[number] = 1;
    numbers_send_init(&ops[0], to[way], &number);
    numbers_recv_init(&ops[1], from[1 - way], &theirs);
    weft_branch branches[2] = { { .future = &ops[0].future }, { .future = &ops[1].future } };
    int winner = weft_select(branches, 2, WEFT_SELECT_ORDERED, WEFT_NEVER);
    mc_note((int)way * 2 + winner);
    mc_assert(winner >= 0 && branches[winner].result == 0);
    if (winner == 0) {
        mc_assert(theirs == 0);
        (void)wf_fetch_add_relaxed(&sent, number);
    } else {
        mc_assert(written[theirs] == 1);
        (void)wf_fetch_add_relaxed(&received, theirs);
    }
}

static void meet_one_way(void *arg)
{
    (void)arg;
    send_or_receive(0, 1);
}

static void meet_other_way(void *arg)
{
    (void)arg;
    send_or_receive(1, 2);
}

static void selects_meet(void)
{
    begin(0);
    RIG_RUN(meet_one_way, meet_other_way);
    end();
}

/*
 * Goal:   of two who could meet the same select, one does, and the other one waits for the next.
 * Method: two senders and a select; a receiver for the one that is left.
 */
static void receive_rest(void *arg)
{
    (void)arg;
    receive_from((unsigned)select_both(WEFT_NEVER) ^ 1u);
}

static void the_other_one_waits(void)
{
    begin(0);
    RIG_RUN(send_1_to_0, send_2_to_1, receive_rest);
    end();
}

/*
 * Goal:   a loser does not hold up who stands behind it.
 * Method: a select wants 2 permits, or a message; another one wants 1 permit, and there is 1.
 */
static void select_permits(void *arg)
{
    (void)arg;
    int number = 0;
    weft_op ops[2];
    weft_semaphore_acquire_init(&ops[0], &permits, 2);
    numbers_recv_init(&ops[1], from[1], &number);
    weft_branch branches[2] = { { .future = &ops[0].future }, { .future = &ops[1].future } };
    mc_assert(weft_select(branches, 2, WEFT_SELECT_ORDERED, WEFT_NEVER) == 1);
    (void)wf_fetch_add_relaxed(&received, number);
}

static void acquire_one(void *arg)
{
    (void)arg;
    mc_assert(weft_semaphore_acquire(&permits, 1, WEFT_NEVER) == 0);
}

static void one_stands_behind_it(void)
{
    begin(1);
    weft_semaphore_init(&permits, 1);
    RIG_RUN(select_permits, acquire_one, send_2_to_1);
    end();
}

static const size_t none = 0;
static const size_t one = 1;

#define SAMPLED .mode = MC_PCT, .runs = 20000, .leaks = true

static const struct mc_test tests[] = {
    { .name = "one_sender_from_hand_to_hand",
      .run = one_sender,
      .arg = &none,
      SAMPLED,
      .seen = MC_OUTCOMES(1) },
    { .name = "one_sender_through_a_slot",
      .run = one_sender,
      .arg = &one,
      SAMPLED,
      .seen = MC_OUTCOMES(1) },
    { .name = "two_senders_from_hand_to_hand",
      .run = two_senders,
      .arg = &none,
      .seen = MC_OUTCOMES(0, 1),
      SAMPLED },
    { .name = "two_senders_through_a_slot",
      .run = two_senders,
      .arg = &one,
      .seen = MC_OUTCOMES(0, 1),
      SAMPLED },
    { .name = "it_gives_up",
      .run = it_gives_up,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2),
      SAMPLED },
    { .name = "selects_meet", .run = selects_meet, .seen = MC_OUTCOMES(0, 1, 2, 3), SAMPLED },
    { .name = "the_other_one_waits",
      .run = the_other_one_waits,
      .seen = MC_OUTCOMES(0, 1),
      SAMPLED },
    { .name = "one_stands_behind_it", .run = one_stands_behind_it, SAMPLED },
};

MC_MAIN(tests)
