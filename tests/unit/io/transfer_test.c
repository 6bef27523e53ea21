/* SPDX-License-Identifier: MIT */
/*
 * transfer_test.c - operations that try, and wait until they may retry.
 */
#include "io/transfer.h"

#include <stdatomic.h>

#include <weft.h>

#include "gate.h"
#include "rt.h"
#include "test.h"

/* The behavior of a transfer. */
struct script {
    int enter_result;
    int parts;         /* number of attempts that report more to do */
    struct gate *gate; /* then it waits for this, unless it is NULL */
    int entered;
    int left;
    int attempts;
};

static int script_enter(struct wf_transfer *self)
{
    struct script *script = self->object;
    script->entered++;
    return script->enter_result;
}

static void script_leave(struct wf_transfer *self)
{
    ((struct script *)self->object)->left++;
}

static int script_attempt(struct wf_transfer *self)
{
    struct script *script = self->object;
    script->attempts++;
    if (script->parts > 0) {
        script->parts--;
        return WF_TRANSFER_MORE;
    }
    if (script->gate != NULL) {
        self->waits_for = &script->gate->future;
        script->gate = NULL;
        return WEFT_PENDING;
    }
    return 42;
}

static const struct wf_transfer_ops script_ops = { script_enter, script_leave, script_attempt };

static int run_script(struct script *script, weft_time deadline)
{
    weft_io io;
    (void)wf_transfer_init(&io, &script_ops, script);
    return wf_transfer_await(&io, deadline, "test");
}

static int run_simple(void *arg)
{
    (void)arg;
    struct script script = { 0 };
    CHECK_EQ(run_script(&script, WEFT_NEVER), 42);
    CHECK_EQ(script.attempts, 1);
    CHECK_EQ(script.left, 1);
    script = (struct script){ .enter_result = -EBADF };
    CHECK_EQ(run_script(&script, WEFT_NEVER), -EBADF);
    CHECK_EQ(script.attempts, 0);
    CHECK_EQ(script.left, 0);
    return 0;
}

static void on_one_worker(int (*function)(void *arg), void *arg)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, function, arg), 0);
    weft_runtime_destroy(rt);
}

static void transfer_enters_tries_and_leaves_once(void)
{
    on_one_worker(run_simple, NULL);
}

static int count_turns(void *arg)
{
    _Atomic(bool) *is_over = arg;
    int turns = 0;
    while (!atomic_load(is_over)) {
        turns++;
        CHECK_EQ(weft_yield(), 0);
    }
    return turns;
}

static int run_many_parts(void *arg)
{
    (void)arg;
    _Atomic(bool) is_over = false;
    weft_task *other;
    int turns;
    CHECK_EQ(weft_go(&other, count_turns, &is_over), 0);
    struct script script = { .parts = 1000 };
    CHECK_EQ(run_script(&script, WEFT_NEVER), 42);
    atomic_store(&is_over, true);
    CHECK_EQ(weft_join(other, &turns, WEFT_NEVER), 0);
    CHECK_EQ(script.attempts, 1001);
    CHECK_GE(turns, 1000 / 32);
    return 0;
}

/*
 * Goal:   other tasks run while there is always more to do.
 * Method: a task on the same worker counts its polls.
 */
static void transfer_of_many_parts_lets_others_run(void)
{
    on_one_worker(run_many_parts, NULL);
}

static int open_gate(void *arg)
{
    gate_open(arg, 0);
    return 0;
}

static int wait_and_go_on(void *arg)
{
    (void)arg;
    struct gate gate = gate_make(CANCEL_AT_ONCE);
    struct script script = { .gate = &gate, .parts = 3 };
    weft_task *opener;
    CHECK_EQ(weft_go(&opener, open_gate, &gate), 0);
    CHECK_EQ(run_script(&script, WEFT_NEVER), 42);
    CHECK_EQ(script.attempts, 5);
    CHECK_EQ(script.left, 1);
    CHECK_EQ(weft_join(opener, NULL, WEFT_NEVER), 0);
    gate_fini(&gate);
    return 0;
}

static int wait_and_fail(void *arg)
{
    (void)arg;
    struct gate gate = gate_make(CANCEL_AT_ONCE);
    struct script script = { .gate = &gate };
    gate_open(&gate, -EIO);
    CHECK_EQ(run_script(&script, WEFT_NEVER), -EIO);
    CHECK_EQ(script.attempts, 1);
    CHECK_EQ(script.left, 1);
    gate_fini(&gate);
    return 0;
}

static void awaited_future_allows_retry_or_ends_transfer(void)
{
    on_one_worker(wait_and_go_on, NULL);
    on_one_worker(wait_and_fail, NULL);
}

static int run_out_of_time(void *arg)
{
    (void)arg;
    struct gate gate = gate_make(CANCEL_AT_ONCE);
    struct script script = { .gate = &gate };
    CHECK_EQ(run_script(&script, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(script.attempts, 1);
    CHECK_EQ(script.left, 1);
    gate_fini(&gate);
    return 0;
}

static int lose_select(void *arg)
{
    (void)arg;
    struct gate gate = gate_make(CANCEL_AT_ONCE);
    struct script script = { .gate = &gate };
    weft_io io;
    weft_sleep_future sleep;
    (void)wf_transfer_init(&io, &script_ops, &script);
    weft_sleep_init(&sleep, weft_after(WEFT_MS), 0);
    weft_branch branches[] = { { .future = &io.future }, { .future = &sleep.future } };
    CHECK_EQ(weft_select(branches, 2, 0, WEFT_NEVER), 1);
    CHECK_EQ(script.entered, 1);
    CHECK_EQ(script.left, 1);
    CHECK_EQ(script.attempts, 1);
    CHECK_EQ(atomic_load(&gate.cancels), 1);
    gate_fini(&gate);
    return 0;
}

static void canceled_transfer_holds_nothing(void)
{
    on_one_worker(run_out_of_time, NULL);
    on_one_worker(lose_select, NULL);
}

static int cancel_between_parts(void *arg)
{
    (void)arg;
    struct script script = { .parts = 1000000000 };
    int result = run_script(&script, weft_after(5 * WEFT_MS));
    CHECK_EQ(result, WEFT_ETIMEDOUT);
    CHECK_EQ(script.left, 1);
    return 0;
}

static void deadline_ends_transfer_that_always_has_more(void)
{
    on_one_worker(cancel_between_parts, NULL);
}

TEST_MAIN({
    TEST(transfer_enters_tries_and_leaves_once),
    TEST(transfer_of_many_parts_lets_others_run),
    TEST(awaited_future_allows_retry_or_ends_transfer),
    TEST(canceled_transfer_holds_nothing),
    TEST(deadline_ends_transfer_that_always_has_more),
})
