/* SPDX-License-Identifier: MIT */
#include <weft/select.h>

#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "crowd.h"
#include "rt.h"
#include "test.h"

WEFT_CHANNEL(numbers, uint64_t)

static weft_event done_event = { { 0 } };

static int run(int (*function)(void *arg), void *arg)
{
    weft_runtime *rt = test_start(2);
    int result = test_run(rt, function, arg);
    weft_runtime_destroy(rt);
    return result;
}

/* Two channels of the given capacity, and a branch that receives from each. */
struct pair {
    numbers_sender *to[2];
    numbers_receiver *from[2];
    uint64_t message[2];
    weft_op ops[2];
    weft_branch branches[2];
};

static void pair_make(struct pair *pair, size_t capacity)
{
    memset(pair, 0, sizeof *pair);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(numbers_make(&pair->to[i], &pair->from[i], capacity), 0);
        numbers_recv_init(&pair->ops[i], pair->from[i], &pair->message[i]);
        pair->branches[i].future = &pair->ops[i].future;
    }
}

static void pair_drop(struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        numbers_sender_drop(pair->to[i]);
        numbers_receiver_drop(pair->from[i]);
    }
}

static int select_ready_branch(void *arg)
{
    (void)arg;
    struct pair pair;
    pair_make(&pair, 4);
    CHECK_EQ(numbers_try_send(pair.to[1], 17), 0);
    CHECK_EQ(weft_select(pair.branches, 2, 0, WEFT_NEVER), 1);
    CHECK_EQ(pair.branches[1].result, 0);
    CHECK_EQ(pair.message[1], 17);
    CHECK_EQ(numbers_try_send(pair.to[0], 18), 0);
    CHECK_EQ(weft_select(pair.branches, 2, 0, WEFT_NEVER), 0);
    CHECK_EQ(pair.message[0], 18);
    pair_drop(&pair);
    return 0;
}

static void ready_branch_wins(void)
{
    CHECK_EQ(run(select_ready_branch, NULL), 0);
    CHECK_EQ(select_ready_branch(NULL), 0);
}

static int try_without_ready_branch(void *arg)
{
    (void)arg;
    struct pair pair;
    pair_make(&pair, 4);
    CHECK_EQ(weft_select(pair.branches, 2, WEFT_SELECT_TRY, WEFT_NEVER), -EAGAIN);
    CHECK_EQ(weft_select(pair.branches, 2, 0, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_select(NULL, 0, WEFT_SELECT_TRY, WEFT_NEVER), -EAGAIN);
    CHECK_EQ(weft_select(NULL, 0, 0, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(numbers_try_send(pair.to[0], 5), 0);
    CHECK_EQ(weft_select(pair.branches, 2, WEFT_SELECT_TRY, WEFT_NEVER), 0);
    CHECK_EQ(pair.message[0], 5);
    pair_drop(&pair);
    return 0;
}

static void try_without_ready_branch_returns_eagain(void)
{
    CHECK_EQ(run(try_without_ready_branch, NULL), 0);
    CHECK_EQ(try_without_ready_branch(NULL), 0);
}

static int count_winners(void *arg)
{
    const unsigned *flags = arg;
    enum {
        ROUNDS = 4000
    };
    weft_event events[4] = { 0 };
    weft_op ops[4];
    weft_branch branches[4] = { { 0 } };
    unsigned won[4] = { 0 };
    for (unsigned i = 0; i < 4; i++) {
        weft_event_wait_init(&ops[i], &events[i]);
        branches[i].future = &ops[i].future;
    }
    /* Adjacent branches: a select that only randomized its starting point would favor the
     * first. */
    weft_event_set(&events[1]);
    weft_event_set(&events[2]);
    for (unsigned i = 0; i < ROUNDS; i++) {
        int winner = weft_select(branches, 4, *flags, WEFT_NEVER);
        CHECK(winner == 1 || winner == 2);
        won[winner]++;
    }
    if ((*flags & WEFT_SELECT_ORDERED) != 0) {
        CHECK_EQ(won[1], ROUNDS);
    } else {
        CHECK(won[1] > ROUNDS * 45 / 100);
        CHECK(won[2] > ROUNDS * 45 / 100);
    }
    return 0;
}

static void ready_branches_win_uniformly_or_in_order(void)
{
    unsigned flags = 0;
    CHECK_EQ(run(count_winners, &flags), 0);
    CHECK_EQ(count_winners(&flags), 0);
    flags = WEFT_SELECT_ORDERED;
    CHECK_EQ(run(count_winners, &flags), 0);
}

/* Several branches wait for each event, in mixed order. */
static int select_from_shared_events(void *arg)
{
    (void)arg;
    enum {
        BRANCHES = 40,
        EVENTS = 7
    };
    weft_event events[EVENTS] = { 0 };
    weft_sleep_future sleep;
    weft_op ops[BRANCHES];
    weft_branch branches[BRANCHES + 1] = { 0 };
    for (unsigned i = 0; i < BRANCHES; i++) {
        weft_event_wait_init(&ops[i], &events[i * 3 % EVENTS]);
        branches[i].future = &ops[i].future;
    }
    branches[BRANCHES].future = &sleep.future;
    weft_sleep_init(&sleep, weft_after(3600 * WEFT_S), 0);
    weft_event_set(&events[5]);
    CHECK_EQ(weft_select(branches, BRANCHES + 1, 0, WEFT_NEVER) * 3 % EVENTS, 5);
    weft_event_reset(&events[5]);
    weft_sleep_init(&sleep, weft_after(WEFT_MS), 0);
    CHECK_EQ(weft_select(branches, BRANCHES + 1, 0, WEFT_NEVER), BRANCHES);
    return 0;
}

static void branches_can_share_object(void)
{
    CHECK_EQ(run(select_from_shared_events, NULL), 0);
}

/* --- Losing branches ------------------------------------------------------------------------- */

static int select_pair(void *arg)
{
    struct pair *pair = arg;
    return weft_select(pair->branches, 2, 0, WEFT_NEVER);
}

static void losing_branch_consumes_nothing(void)
{
    weft_runtime *rt = test_start(1);
    struct pair pair;
    pair_make(&pair, 1);
    weft_task *task = test_go_first(rt, select_pair, &pair);
    test_settle(rt);
    CHECK_EQ(numbers_try_send(pair.to[0], 1), 0);
    CHECK_EQ(numbers_try_send(pair.to[1], 2), 0); /* Before the select runs again. */
    CHECK_EQ(test_join_soon(task), 0);
    CHECK_EQ(pair.message[0], 1);
    CHECK_EQ(pair.message[1], 0);
    CHECK_EQ(numbers_try_recv(pair.from[1], &pair.message[1]), 0);
    CHECK_EQ(pair.message[1], 2);
    CHECK_EQ(numbers_try_recv(pair.from[0], &pair.message[0]), -EAGAIN);
    pair_drop(&pair);
    weft_runtime_destroy(rt);
}

static void canceled_select_consumes_nothing(void)
{
    weft_runtime *rt = test_start(1);
    struct pair pair;
    pair_make(&pair, 1);
    weft_task *task = test_go_first(rt, select_pair, &pair);
    test_settle(rt);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(numbers_try_send(pair.to[i], 3), 0);
        CHECK_EQ(numbers_try_recv(pair.from[i], &pair.message[i]), 0);
    }
    pair_drop(&pair);
    weft_runtime_destroy(rt);
}

/* Permits that are too few for the select go to the waiter behind it. */
static int select_many_or_event(void *arg)
{
    weft_semaphore *semaphore = arg;
    weft_op ops[2];
    weft_semaphore_acquire_init(&ops[0], semaphore, 5);
    weft_event_wait_init(&ops[1], &done_event);
    weft_branch branches[2] = { { .future = &ops[0].future }, { .future = &ops[1].future } };
    return weft_select(branches, 2, 0, WEFT_NEVER);
}

static int acquire_one(void *arg)
{
    return weft_semaphore_acquire(arg, 1, WEFT_NEVER);
}

static void waiter_behind_losing_branch_proceeds(void)
{
    weft_runtime *rt = test_start(1);
    weft_semaphore semaphore = WEFT_SEMAPHORE_INIT(3);
    weft_task *large = test_go_first(rt, select_many_or_event, &semaphore);
    weft_task *small = test_go_first(rt, acquire_one, &semaphore);
    test_settle(rt);
    CHECK_EQ(weft_try_join(small, NULL), -EAGAIN);
    weft_event_set(&done_event);
    CHECK_EQ(test_join_soon(large), 1);
    CHECK_EQ(test_join_soon(small), 0);
    CHECK_EQ(weft_semaphore_available(&semaphore), 2);
    weft_event_reset(&done_event);
    weft_runtime_destroy(rt);
}

/* --- Other futures --------------------------------------------------------------------------- */

static int sleep_or_join(void *arg)
{
    (void)arg;
    struct pair pair;
    weft_sleep_future sleep;
    weft_join_future join;
    weft_task *task = NULL;
    int result = 0;
    pair_make(&pair, 0);
    CHECK_EQ(weft_go(&task, select_pair, &pair), 0);

    weft_sleep_init(&sleep, weft_after(2 * WEFT_MS), 0);
    weft_join_init(&join, task, &result);
    weft_op other;
    weft_event_wait_init(&other, &done_event);
    weft_branch branches[4] = {
        { .future = &join.future }, { .future = &sleep.future }, { .future = &other.future }, { 0 }
    };
    CHECK_EQ(weft_select(branches, 4, 0, WEFT_NEVER), 1);
    CHECK_EQ(branches[1].result, 0);

    /* The losing join has left the handle intact. */
    CHECK_EQ(numbers_send(pair.to[1], 9, WEFT_NEVER), 0);
    weft_sleep_init(&sleep, weft_after(3600 * WEFT_S), 0);
    weft_join_init(&join, task, &result);
    CHECK_EQ(weft_select(branches, 4, 0, WEFT_NEVER), 0);
    CHECK_EQ(result, 1);
    CHECK_EQ(pair.message[1], 9);

    /* An operation wins while a sleep is pending. */
    weft_sleep_init(&sleep, weft_after(3600 * WEFT_S), 0);
    branches[0].future = NULL;
    weft_event_set(&done_event);
    CHECK_EQ(weft_select(branches, 4, 0, WEFT_NEVER), 2);
    weft_event_reset(&done_event);
    pair_drop(&pair);
    return 0;
}

static void sleeps_and_joins_can_be_branches(void)
{
    CHECK_EQ(run(sleep_or_join, NULL), 0);
}

static int select_from_sleeps(void *arg)
{
    (void)arg;
    weft_sleep_future sleeps[2];
    weft_sleep_init(&sleeps[0], weft_after(3600 * WEFT_S), 0);
    weft_sleep_init(&sleeps[1], weft_after(WEFT_MS), 0);
    weft_branch branches[2] = { { .future = &sleeps[0].future }, { .future = &sleeps[1].future } };
    return weft_select(branches, 2, 0, WEFT_NEVER);
}

static void select_of_sleeps_only(void)
{
    CHECK_EQ(run(select_from_sleeps, NULL), 1);
}

/* A future whose cancel takes several polls. */
struct slow {
    weft_future future;
    unsigned cancels;
    bool ended;
};

static int slow_poll(weft_future *future)
{
    return ((struct slow *)future)->ended ? WEFT_ECANCELED : WEFT_PENDING;
}

static bool slow_cancel(weft_future *future)
{
    struct slow *self = (struct slow *)future;
    if (++self->cancels < 3) {
        weft_waker_fire(weft_waker_current());
        return false;
    }
    self->ended = true;
    return true;
}

static const weft_future_ops slow_ops = { .poll = slow_poll, .cancel = slow_cancel };

static int win_against_slow(void *arg)
{
    (void)arg;
    struct slow slow = { .future.ops = &slow_ops };
    weft_op event;
    weft_event_wait_init(&event, &done_event);
    weft_branch branches[2] = { { .future = &slow.future }, { .future = &event.future } };
    weft_event_set(&done_event);
    CHECK_EQ(weft_select(branches, 2, WEFT_SELECT_ORDERED, WEFT_NEVER), 1);
    weft_event_reset(&done_event);
    CHECK(slow.ended);
    CHECK_EQ(slow.cancels, 3);
    return 0;
}

static void select_waits_until_slow_loser_is_canceled(void)
{
    CHECK_EQ(run(win_against_slow, NULL), 0);
}

/* The loser is a select with a slow branch. */
static int win_against_select(void *arg)
{
    (void)arg;
    struct slow slow = { .future.ops = &slow_ops };
    weft_op event;
    weft_select_future inner;
    weft_branch slow_branch = { .future = &slow.future };
    weft_event_wait_init(&event, &done_event);
    weft_select_init(&inner, &slow_branch, 1, 0);
    weft_branch branches[2] = { { .future = &inner.future }, { .future = &event.future } };
    weft_event_set(&done_event);
    CHECK_EQ(weft_select(branches, 2, WEFT_SELECT_ORDERED, WEFT_NEVER), 1);
    weft_event_reset(&done_event);
    CHECK(slow.ended);
    return 0;
}

static void select_can_be_branch(void)
{
    CHECK_EQ(run(win_against_select, NULL), 0);
}

static struct slow cancelled_slow;

static int wait_with_slow(void *arg)
{
    (void)arg;
    weft_op event;
    weft_event_wait_init(&event, &done_event);
    weft_branch branches[2] = { { .future = &cancelled_slow.future }, { .future = &event.future } };
    return weft_select(branches, 2, 0, WEFT_NEVER);
}

static void canceled_select_waits_for_its_branches(void)
{
    weft_runtime *rt = test_start(1);
    cancelled_slow = (struct slow){ .future.ops = &slow_ops };
    weft_task *task = test_go_first(rt, wait_with_slow, NULL);
    test_settle(rt);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    CHECK(cancelled_slow.ended);
    weft_event_set(&done_event);
    weft_event_reset(&done_event);
    weft_runtime_destroy(rt);
}

/* --- Rendezvous ------------------------------------------------------------------------------ */

/* Each member offers a message on one channel and receives from the other, and swaps the two
 * channels every round, so selects are matched with selects. */
static struct pair square;
static atomic_uint_fast64_t given;
static atomic_uint_fast64_t taken;

enum {
    MEMBERS = 6,
};

static void square_begin(void)
{
    pair_make(&square, 0);
    atomic_store(&given, 0);
    atomic_store(&taken, 0);
}

static int send_or_receive(void *arg)
{
    unsigned index = *(unsigned *)arg;
    for (uint64_t i = 0; i < crowd_rounds(); i++) {
        uint64_t mine = index * 1000000 + i + 1;
        uint64_t theirs = 0;
        weft_op ops[3];
        unsigned way = (index + (unsigned)i) & 1u;
        numbers_send_init(&ops[0], square.to[way], &mine);
        numbers_recv_init(&ops[1], square.from[1 - way], &theirs);
        weft_event_wait_init(&ops[2], &done_event);
        weft_branch branches[3] = { { .future = &ops[0].future },
                                    { .future = &ops[1].future },
                                    { .future = &ops[2].future } };
        int winner = weft_select(branches, 3, 0, WEFT_NEVER);
        CHECK(winner >= 0);
        CHECK_EQ(branches[winner].result, 0);
        if (winner == 0) {
            CHECK_EQ(theirs, 0);
            atomic_fetch_add(&given, mine);
        } else if (winner == 1) {
            atomic_fetch_add(&taken, theirs);
        } else {
            break;
        }
    }
    weft_event_set(&done_event); /* The others may have no partner left. */
    return 0;
}

static void selects_meet_selects(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned w = 0; w < 3; w++) {
        weft_runtime *rt = test_start(workers[w]);
        weft_task *tasks[MEMBERS];
        unsigned indices[MEMBERS];
        square_begin();
        for (unsigned i = 0; i < MEMBERS; i++) {
            indices[i] = i;
            tasks[i] = test_go(rt, send_or_receive, &indices[i]);
        }
        for (unsigned i = 0; i < MEMBERS; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        CHECK_EQ(atomic_load(&given), atomic_load(&taken));
        CHECK(atomic_load(&given) > 0);
        weft_event_reset(&done_event);
        pair_drop(&square);
        weft_runtime_destroy(rt);
    }
}

/* --- Concurrent senders and selects ---------------------------------------------------------- */

/* The first members send to both channels, the others select from both. Runs with every kind of
 * member. */
enum {
    SENDERS = 4,
    RECEIVERS = 4,
};

static struct pair lines;
static atomic_uint_fast64_t received;

struct receiver {
    weft_select_future select;
    weft_branch branches[2];
    uint64_t messages[2];
};

static struct receiver receivers[RECEIVERS];

static numbers_sender *line_senders[SENDERS][2];

static void lines_begin(void)
{
    pair_make(&lines, 2);
    line_senders[0][0] = lines.to[0];
    line_senders[0][1] = lines.to[1];
    for (unsigned i = 1; i < SENDERS; i++) {
        for (unsigned k = 0; k < 2; k++) {
            line_senders[i][k] = numbers_sender_clone(lines.to[k]);
            CHECK(line_senders[i][k] != NULL);
        }
    }
    atomic_store(&received, 0);
}

static int send_or_select(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    struct receiver *mine = &receivers[self->index % RECEIVERS];
    WEFT_BEGIN(co);
    for (; self->index < SENDERS && self->round < crowd_rounds(); self->round++) {
        self->sum = self->round + 1;
        numbers_send_init(&self->ops[0], line_senders[self->index][(self->round + self->index) & 1],
                          &self->sum);
        WEFT_AWAIT(co, self->err, &self->ops[0].future);
        CHECK_EQ(self->err, 0);
    }
    if (self->index < SENDERS) {
        self->sum = crowd_rounds() * (crowd_rounds() + 1) / 2;
        numbers_sender_drop(line_senders[self->index][0]);
        numbers_sender_drop(line_senders[self->index][1]);
        return 0;
    }
    for (unsigned i = 0; i < 2; i++) {
        numbers_recv_init(&self->ops[i], lines.from[i], &mine->messages[i]);
        mine->branches[i] = (weft_branch){ .future = &self->ops[i].future };
    }
    while (mine->branches[0].future != NULL || mine->branches[1].future != NULL) {
        weft_select_init(&mine->select, mine->branches, 2, 0);
        WEFT_AWAIT(co, self->err, &mine->select.future);
        CHECK(self->err == 0 || self->err == 1);
        if (mine->branches[self->err].result == 0) {
            atomic_fetch_add(&received, mine->messages[self->err]);
        } else {
            CHECK_EQ(mine->branches[self->err].result, WEFT_ECLOSED);
            mine->branches[self->err].future = NULL;
        }
    }
    WEFT_END(co, 0);
}

static void lines_check(uint64_t sum)
{
    CHECK_EQ(atomic_load(&received), sum);
    numbers_receiver_drop(lines.from[0]);
    numbers_receiver_drop(lines.from[1]);
}

static void no_message_is_lost_or_duplicated(void)
{
    crowd_run_all(SENDERS + RECEIVERS, send_or_select, NULL, lines_begin, lines_check);
}

/* --- Misuse ---------------------------------------------------------------------------------- */

static int select_same_operation_twice(void *arg)
{
    (void)arg;
    weft_op op;
    weft_event_wait_init(&op, &done_event);
    weft_branch branches[2] = { { .future = &op.future }, { .future = &op.future } };
    return weft_select(branches, 2, 0, WEFT_NEVER);
}

static void operation_in_two_branches(void)
{
    (void)run(select_same_operation_twice, NULL);
}

static void barrier_as_branch(void)
{
    weft_barrier barrier = WEFT_BARRIER_INIT(2);
    weft_op op;
    weft_barrier_wait_init(&op, &barrier);
    weft_branch branches[1] = { { .future = &op.future } };
    CHECK_EQ(weft_select(branches, 1, WEFT_SELECT_TRY, WEFT_NEVER), -EAGAIN);
}

static void too_many_branches(void)
{
    weft_select_future select;
    weft_select_init(&select, NULL, ((size_t)1 << 24) + 1, 0);
}

static int select_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return weft_select(NULL, 0, WEFT_SELECT_TRY, WEFT_NEVER);
}

static void select_in_stackless_task(void)
{
    (void)test_join(test_spawn(test_start(1), select_task, NULL));
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(too_many_branches, "weft_select: 16777217 branches; 16777216 are the most");
    CHECK_ABORTS(select_in_stackless_task, "weft_select: called on a worker outside of a fiber");
    CHECK_ABORTS(operation_in_two_branches, "weft_select: the operation of branch");
    CHECK_ABORTS(barrier_as_branch, "weft_select: branch 0 waits at a barrier");
}

TEST_MAIN({
    TEST(ready_branch_wins),
    TEST(try_without_ready_branch_returns_eagain),
    TEST(ready_branches_win_uniformly_or_in_order),
    TEST(branches_can_share_object),
    TEST(losing_branch_consumes_nothing),
    TEST(canceled_select_consumes_nothing),
    TEST(waiter_behind_losing_branch_proceeds),
    TEST(sleeps_and_joins_can_be_branches),
    TEST(select_of_sleeps_only),
    TEST(select_waits_until_slow_loser_is_canceled),
    TEST(select_can_be_branch),
    TEST(canceled_select_waits_for_its_branches),
    TEST(selects_meet_selects),
    TEST(no_message_is_lost_or_duplicated),
    TEST(misuse_aborts_with_message),
})
