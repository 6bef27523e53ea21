/* SPDX-License-Identifier: MIT */
#include "sched/op.h"

#include <weft.h>

#include "rt.h"
#include "test.h"

/* An object whose grants the test controls. */
static struct desk {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters;
    unsigned begun;
    unsigned ended;
    unsigned left;
    bool again; /* at the next end another caller was faster */
} desk;

static int ask_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)op;
    (void)turn;
    desk.begun++;
    return WEFT_PENDING;
}

static void ask_enqueue(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    if (op->is_back) {
        wf_op_enlist_first(op, &desk.waiters);
    } else {
        wf_op_enlist(op, &desk.waiters);
    }
}

static void ask_leave(struct wf_op *op, struct wf_turn *turn)
{
    (void)op;
    (void)turn;
    desk.left++;
}

static int ask_end(struct wf_op *op)
{
    desk.ended++;
    bool again = desk.again;
    desk.again = false;
    return again ? WEFT_PENDING : op->result;
}

static const struct wf_op_ops ask_ops = { .future = WF_OP_FUTURE,
                                          .take = ask_take,
                                          .enlist = ask_enqueue,
                                          .leave = ask_leave,
                                          .end = ask_end };

/* Grants up to most waiters. Returns the number granted. */
static unsigned answer(unsigned most, int result)
{
    struct wf_turn turn;
    unsigned count = 0;
    wf_turn_begin(&turn, &desk);
    while (count < most) {
        struct wf_op *op = wf_turn_claim(&turn, &desk.waiters);
        if (op == NULL) {
            break;
        }
        op->result = result;
        count++;
    }
    wf_turn_end(&turn);
    return count;
}

static int ask(void *arg)
{
    (void)arg;
    weft_op op;
    (void)wf_op_init(&op, &ask_ops, &desk);
    return wf_op_await(&op, WEFT_NEVER, "ask");
}

static weft_runtime *begin(void)
{
    desk = (struct desk){ 0 };
    return test_start(1);
}

static void grant_ends_wait_with_its_result(void)
{
    weft_runtime *rt = begin();
    weft_task *first = test_go_first(rt, ask, NULL);
    weft_task *second = test_go_first(rt, ask, NULL);
    test_settle(rt);
    CHECK_EQ(answer(1, 11), 1);
    CHECK_EQ(test_join_soon(first), 11);
    CHECK_EQ(weft_try_join(second, NULL), -EAGAIN);
    CHECK_EQ(answer(5, 12), 1);
    CHECK_EQ(test_join_soon(second), 12);
    CHECK_EQ(answer(5, 13), 0);
    CHECK_EQ(desk.begun, 2);
    CHECK_EQ(desk.ended, 2);
    CHECK_EQ(desk.left, 0);
    weft_runtime_destroy(rt);
}

static void waiter_that_lost_race_waits_again_as_first(void)
{
    weft_runtime *rt = begin();
    weft_task *first = test_go_first(rt, ask, NULL);
    weft_task *second = test_go_first(rt, ask, NULL);
    test_settle(rt);
    desk.again = true;
    CHECK_EQ(answer(1, 11), 1);
    test_settle(rt);
    CHECK_EQ(weft_try_join(first, NULL), -EAGAIN);
    CHECK_EQ(answer(1, 12), 1);
    CHECK_EQ(test_join_soon(first), 12);
    CHECK_EQ(answer(1, 13), 1);
    CHECK_EQ(test_join_soon(second), 13);
    weft_runtime_destroy(rt);
}

static void canceled_waiter_leaves_queue(void)
{
    weft_runtime *rt = begin();
    weft_task *tasks[3];
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = test_go_first(rt, ask, NULL);
    }
    test_settle(rt);
    weft_cancel(tasks[1]);
    CHECK_EQ(test_join_soon(tasks[1]), WEFT_ECANCELED);
    CHECK_EQ(desk.left, 1);
    CHECK_EQ(answer(9, 0), 2);
    CHECK_EQ(test_join_soon(tasks[0]), 0);
    CHECK_EQ(test_join_soon(tasks[2]), 0);
    weft_runtime_destroy(rt);
}

static int answer_and_cancel(void *arg)
{
    weft_task *task = arg;
    CHECK_EQ(answer(1, 21), 1);
    weft_cancel(task);
    return 0;
}

/* Canceled at the moment of the grant, before it has run again: it has succeeded. */
static void grant_that_beats_cancel_counts(void)
{
    weft_runtime *rt = begin();
    weft_task *task = test_go_first(rt, ask, NULL);
    test_settle(rt);
    CHECK_EQ(test_run(rt, answer_and_cancel, task), 0);
    CHECK_EQ(test_join_soon(task), 21);
    CHECK_EQ(desk.left, 0);
    weft_runtime_destroy(rt);
}

/* But it must not wait again. */
static int answer_again_and_cancel(void *arg)
{
    desk.again = true;
    return answer_and_cancel(arg);
}

static void canceled_waiter_does_not_wait_again(void)
{
    weft_runtime *rt = begin();
    weft_task *task = test_go_first(rt, ask, NULL);
    test_settle(rt);
    CHECK_EQ(test_run(rt, answer_again_and_cancel, task), 0);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    CHECK_EQ(desk.begun, 1);
    weft_runtime_destroy(rt);
}

/* --- A grant in progress ---------------------------------------------------------------------- */

static weft_op watched;

static int ask_watched(void *arg)
{
    (void)arg;
    (void)wf_op_init(&watched, &ask_ops, &desk);
    return weft_await(&watched.future, WEFT_NEVER);
}

/* The operation is claimed and the latch is released, but the waiter is not woken yet. */
static void cancel_waits_for_grant_in_progress(void)
{
    weft_runtime *rt = begin();
    struct wf_turn turn;
    weft_task *task = test_go_first(rt, ask_watched, NULL);
    wf_turn_begin(&turn, &desk);
    struct wf_op *op = wf_turn_claim(&turn, &desk.waiters);
    CHECK(op == (struct wf_op *)&watched);
    op->result = 31;
    wf_latch_unlock(turn.word, turn.bits);
    CHECK(!wf_op_cancel(&watched.future));
    weft_cancel(task);
    test_settle(rt);
    CHECK_EQ(weft_try_join(task, NULL), -EAGAIN);
    wf_turn_fire(&turn);
    CHECK_EQ(test_join_soon(task), 31);
    CHECK_EQ(desk.left, 0);
    weft_runtime_destroy(rt);
}

/* --- Without a wait --------------------------------------------------------------------------- */

static int take_until_refused(void *arg)
{
    bool *is_cancelled = arg;
    int count = 0;
    if (*is_cancelled) {
        weft_cancel(weft_task_current());
        CHECK(!wf_op_may_take());
        weft_shield_enter();
    }
    while (wf_op_may_take()) {
        count++;
    }
    if (*is_cancelled) {
        weft_shield_leave();
    }
    return count;
}

static int may_stackless_task_take(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return wf_op_may_take();
}

static void fast_path_is_limited_by_budget_and_cancel(void)
{
    weft_runtime *rt = test_start(1);
    bool is_cancelled = false;
    CHECK(wf_op_may_take());
    CHECK_EQ(test_run(rt, take_until_refused, &is_cancelled), 128);
    is_cancelled = true;
    CHECK_EQ(test_run(rt, take_until_refused, &is_cancelled), 128);
    CHECK_EQ(test_join_soon(test_spawn(rt, may_stackless_task_take, NULL)), 0);
    weft_runtime_destroy(rt);
}

/* --- As a branch ------------------------------------------------------------------------------ */

static int select_and_ask(void *arg)
{
    (void)arg;
    (void)wf_op_init(&watched, &ask_ops, &desk);
    weft_branch branch = { .future = &watched.future };
    CHECK_EQ(weft_select(&branch, 1, WEFT_SELECT_TRY, WEFT_NEVER), -EAGAIN);
    return weft_await(&watched.future, WEFT_NEVER);
}

static void operation_that_was_branch_can_be_awaited(void)
{
    weft_runtime *rt = begin();
    weft_task *task = test_go_first(rt, select_and_ask, NULL);
    CHECK_EQ(answer(1, 41), 1);
    CHECK_EQ(test_join_soon(task), 41);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(grant_ends_wait_with_its_result),
    TEST(waiter_that_lost_race_waits_again_as_first),
    TEST(canceled_waiter_leaves_queue),
    TEST(grant_that_beats_cancel_counts),
    TEST(canceled_waiter_does_not_wait_again),
    TEST(cancel_waits_for_grant_in_progress),
    TEST(fast_path_is_limited_by_budget_and_cancel),
    TEST(operation_that_was_branch_can_be_awaited),
})
