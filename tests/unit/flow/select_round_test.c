/* SPDX-License-Identifier: MIT */
/*
 * select_round_test.c - steps of a select between a grant or a cancel and its end. There is one
 * worker: a fiber's steps up to its next suspension all happen before the select runs again.
 */
#include <weft/select.h>

#include <string.h>

#include <weft.h>

#include "rt.h"
#include "sched/op.h"
#include "test.h"

/* An object whose operations complete when the test wants them to. */
static struct desk {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters;
    unsigned takes;
    unsigned ready_at; /* number of the take that has a result and wakes all waiters; 0: none */
    unsigned left;
} desk;

static int ask_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)op;
    desk.takes++;
    if (desk.takes != desk.ready_at) {
        return WEFT_PENDING;
    }
    wf_turn_claim_all(turn, &desk.waiters, 22);
    return 21;
}

static void ask_leave(struct wf_op *op, struct wf_turn *turn)
{
    (void)op;
    (void)turn;
    desk.left++;
}

static const struct wf_op_ops ask_ops = { .future = WF_OP_FUTURE,
                                          .take = ask_take,
                                          .queue = offsetof(struct desk, waiters),
                                          .leave = ask_leave };

static weft_op asking;

static weft_runtime *begin(void)
{
    desk = (struct desk){ 0 };
    (void)wf_op_init(&asking, &ask_ops, &desk);
    return test_start(1);
}

/* Claims the first waiter. The caller holds the desk's latch until wf_turn_end(). */
static struct wf_op *claim(struct wf_turn *turn)
{
    wf_turn_begin(turn, &desk);
    struct wf_op *op = wf_turn_claim(turn, &desk.waiters);
    CHECK(op != NULL);
    return op;
}

static void answer(int result)
{
    struct wf_turn turn;
    claim(&turn)->result = result;
    wf_turn_end(&turn);
}

static int ask(void *arg)
{
    (void)arg;
    weft_op op;
    (void)wf_op_init(&op, &ask_ops, &desk);
    return weft_await(&op.future, WEFT_NEVER);
}

/* Selects from one branch and returns its result. */
static int select_one(void *arg)
{
    weft_branch branches[1] = { { .future = arg } };
    int winner = weft_select(branches, 1, 0, WEFT_NEVER);
    return winner == 0 ? branches[0].result : winner;
}

/* --- Grants ----------------------------------------------------------------------------------- */

static void result_at_second_look_wins(void)
{
    weft_runtime *rt = begin();
    desk.ready_at = 3; /* Take 1: the other task. Take 2: the select, without the latches. */
    weft_task *other = test_go_first(rt, ask, NULL);
    CHECK_EQ(test_run(rt, select_one, &asking.future), 21);
    CHECK_EQ(test_join_soon(other), 22);
    weft_runtime_destroy(rt);
}

static void grant_without_result_does_not_reuse_old_result(void)
{
    weft_runtime *rt = begin();
    weft_task *task = test_go_first(rt, select_one, &asking.future);
    answer(5);
    CHECK_EQ(test_join_soon(task), 5);
    task = test_go_first(rt, select_one, &asking.future);
    struct wf_turn turn;
    (void)claim(&turn);
    wf_turn_end(&turn);
    CHECK_EQ(test_join_soon(task), 0);
    weft_runtime_destroy(rt);
}

static int answer_and_cancel(void *task)
{
    answer(9);
    weft_cancel(task);
    return 0;
}

static void grant_before_cancel_wins(void)
{
    weft_runtime *rt = begin();
    weft_task *task = test_go_first(rt, select_one, &asking.future);
    CHECK_EQ(test_run(rt, answer_and_cancel, task), 0);
    CHECK_EQ(test_join_soon(task), 9);
    weft_runtime_destroy(rt);
}

/* The cancel arrives while the granter still holds the latch. */
static void cancel_waits_for_grant_in_progress(void)
{
    weft_runtime *rt = begin();
    struct wf_turn turn;
    weft_task *task = test_go_first(rt, select_one, &asking.future);
    struct wf_op *op = claim(&turn);
    weft_cancel(task);
    test_settle(rt);
    CHECK_EQ(weft_try_join(task, NULL), -EAGAIN);
    op->result = 7;
    wf_turn_end(&turn);
    CHECK_EQ(test_join_soon(task), 7);
    weft_runtime_destroy(rt);
}

/* The select is decided by its event, but its operation has not left the desk's queue yet. */
static weft_event happened;

static int ask_or_wait(void *arg)
{
    (void)arg;
    weft_op waiting;
    weft_event_wait_init(&waiting, &happened);
    weft_branch branches[2] = { { .future = &asking.future }, { .future = &waiting.future } };
    return weft_select(branches, 2, 0, WEFT_NEVER);
}

static int set_event_and_answer(void *arg)
{
    (void)arg;
    weft_event_set(&happened);
    answer(6);
    return 0;
}

static void grant_skips_decided_select(void)
{
    weft_runtime *rt = begin();
    weft_task *task = test_go_first(rt, ask_or_wait, NULL);
    weft_task *behind = test_go_first(rt, ask, NULL);
    CHECK_EQ(test_run(rt, set_event_and_answer, NULL), 0);
    CHECK_EQ(test_join_soon(task), 1);
    CHECK_EQ(test_join_soon(behind), 6);
    CHECK_EQ(desk.left, 0); /* It was no longer in the queue. */
    weft_event_reset(&happened);

    task = test_go_first(rt, ask_or_wait, NULL);
    weft_event_set(&happened);
    CHECK_EQ(test_join_soon(task), 1);
    CHECK_EQ(desk.left, 1);
    weft_event_reset(&happened);
    weft_runtime_destroy(rt);
}

/* --- Grants without a result ------------------------------------------------------------------ */

static weft_mutex mutex;
static weft_op locking;

/* Makes the wait look as if it had just begun, whenever it is looked at, so the mutex is not
 * handed over to it. */
static void pretend_wait_just_began(struct wf_op *op)
{
    op->time = INT64_MAX;
}

static weft_task *wait_for_lock(weft_runtime *rt)
{
    mutex = (weft_mutex){ { 0 } };
    CHECK(weft_mutex_try_lock(&mutex));
    weft_mutex_lock_init(&locking, &mutex);
    weft_task *task = test_go_first(rt, select_one, &locking.future);
    pretend_wait_just_began((struct wf_op *)&locking);
    return task;
}

/* The waiter that is woken to lock the mutex finds it locked again. */
static int unlock_and_relock(void *task)
{
    weft_mutex_unlock(&mutex);
    CHECK(weft_mutex_try_lock(&mutex));
    if (task != NULL) {
        weft_cancel(task);
    }
    return 0;
}

static void select_that_loses_lock_to_barger_waits_again(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *task = wait_for_lock(rt);
    CHECK_EQ(test_run(rt, unlock_and_relock, NULL), 0);
    test_settle(rt);
    CHECK_EQ(weft_try_join(task, NULL), -EAGAIN);
    weft_mutex_unlock(&mutex);
    CHECK_EQ(test_join_soon(task), 0);
    CHECK(weft_mutex_is_locked(&mutex));
    weft_runtime_destroy(rt);
}

static void canceled_select_does_not_wait_again(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *task = wait_for_lock(rt);
    CHECK_EQ(test_run(rt, unlock_and_relock, task), 0);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    weft_mutex_unlock(&mutex);
    CHECK_EQ(mutex.opaque[0], 0);
    weft_runtime_destroy(rt);
}

/* --- Losers ----------------------------------------------------------------------------------- */

/* A future that ends once both it and the other one have been canceled. */
struct late {
    weft_future future;
    const struct late *other; /* NULL: it ends at its own cancel */
    int result;
    unsigned polls;
    unsigned cancels;
};

static int late_poll(weft_future *future)
{
    struct late *self = (struct late *)future;
    self->polls++;
    return self->cancels > 0 ? self->result : WEFT_PENDING;
}

static bool late_cancel(weft_future *future)
{
    struct late *self = (struct late *)future;
    self->cancels++;
    if (self->other == NULL || self->other->cancels > 0) {
        return true;
    }
    weft_waker_fire(weft_waker_current());
    return false;
}

static const weft_future_ops late_ops = { .poll = late_poll, .cancel = late_cancel };

static int win_against_two(void *arg)
{
    (void)arg;
    weft_event event = { { 0 } };
    weft_op set;
    struct late two = { .future.ops = &late_ops };
    struct late one = { .future.ops = &late_ops, .other = &two };
    weft_event_set(&event);
    weft_event_wait_init(&set, &event);
    weft_branch branches[3] = { { .future = &one.future },
                                { .future = &two.future },
                                { .future = &set.future } };
    CHECK_EQ(weft_select(branches, 3, WEFT_SELECT_ORDERED, WEFT_NEVER), 2);
    CHECK_EQ(one.cancels, 2);
    CHECK_EQ(two.cancels, 1);
    CHECK_EQ(one.polls, 1); /* Not polled after the cancel: its result is not consumed. */
    CHECK_EQ(two.polls, 1);
    return 0;
}

/* The branches hold garbage before the select. */
static int win_before_poll_of_other(void *arg)
{
    (void)arg;
    weft_event event = { { 0 } };
    weft_op set;
    struct late other = { .future.ops = &late_ops };
    weft_branch branches[2];
    memset(branches, 0xff, sizeof branches);
    weft_event_set(&event);
    weft_event_wait_init(&set, &event);
    branches[0].future = &set.future;
    branches[1].future = &other.future;
    CHECK_EQ(weft_select(branches, 2, WEFT_SELECT_ORDERED, WEFT_NEVER), 0);
    CHECK_EQ(other.polls, 0);
    CHECK_EQ(other.cancels, 0);
    return 0;
}

static void branch_that_was_not_polled_is_not_canceled(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, win_before_poll_of_other, NULL), 0);
    weft_runtime_destroy(rt);
}

static void all_losers_are_canceled_before_any_is_awaited(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, win_against_two, NULL), 0);
    weft_runtime_destroy(rt);
}

static void future_with_result_at_cancel_wins(void)
{
    weft_runtime *rt = test_start(1);
    struct late late = { .future.ops = &late_ops, .result = 17 };
    weft_task *task = test_go_first(rt, select_one, &late.future);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 17);
    CHECK_EQ(late.cancels, 1);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(result_at_second_look_wins),
    TEST(grant_without_result_does_not_reuse_old_result),
    TEST(grant_before_cancel_wins),
    TEST(cancel_waits_for_grant_in_progress),
    TEST(grant_skips_decided_select),
    TEST(select_that_loses_lock_to_barger_waits_again),
    TEST(canceled_select_does_not_wait_again),
    TEST(branch_that_was_not_polled_is_not_canceled),
    TEST(all_losers_are_canceled_before_any_is_awaited),
    TEST(future_with_result_at_cancel_wins),
})
