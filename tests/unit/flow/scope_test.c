/* SPDX-License-Identifier: MIT */
#include <weft/scope.h>

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "crowd.h"
#include "hooks.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

static atomic_uint ended;
static atomic_uint cancelled;
static atomic_uint running;
static atomic_uint most;
static weft_event gate;

static void run(int (*function)(void *arg), void *arg, unsigned workers)
{
    weft_runtime *rt = test_start(workers);
    atomic_store(&ended, 0);
    atomic_store(&cancelled, 0);
    atomic_store(&running, 0);
    atomic_store(&most, 0);
    memset(&gate, 0, sizeof gate);
    CHECK_EQ(test_run(rt, function, arg), 0);
    weft_runtime_destroy(rt);
}

/* --- Children --------------------------------------------------------------------------------- */

static int sleep_briefly(void *arg)
{
    (void)arg;
    int err = weft_sleep(WEFT_MS);
    atomic_fetch_add(&ended, 1);
    return err;
}

static int yield_briefly(void *arg)
{
    (void)arg;
    return weft_yield();
}

static int wait_until_canceled(void *arg)
{
    (void)arg;
    int err = weft_sleep(3600 * WEFT_S);
    CHECK_EQ(err, WEFT_ECANCELED);
    atomic_fetch_add(&cancelled, 1);
    return err;
}

/* For tests on a paused clock: the deadline of the scope passes while this child runs. */
static int wait_past_deadline(void *arg)
{
    weft_clock_advance(5 * WEFT_MS);
    return wait_until_canceled(arg);
}

static int fail(void *arg)
{
    return *(int *)arg;
}

static int sleep_task(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    weft_sleep_init(&self->sleep, weft_after(WEFT_MS), 0);
    WEFT_AWAIT(co, self->err, &self->sleep.future);
    CHECK_EQ(self->err, 0);
    atomic_fetch_add(&ended, 1);
    WEFT_END(co, self->err);
}

static int long_sleep_task(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    weft_sleep_init(&self->sleep, weft_after(3600 * WEFT_S), 0);
    WEFT_AWAIT(co, self->err, &self->sleep.future);
    CHECK_EQ(self->err, WEFT_ECANCELED);
    atomic_fetch_add(&cancelled, 1);
    WEFT_END(co, self->err);
}

static int fail_task(weft_co *co, void *state)
{
    (void)co;
    return *(int *)state;
}

static int start_many(void *arg)
{
    (void)arg;
    int err = 0;
    struct crowd_member bodies[10];
    memset(bodies, 0, sizeof bodies);
    WEFT_SCOPE(scope, NULL, &err)
    {
        for (unsigned i = 0; i < 50; i++) {
            CHECK_EQ(weft_scope_go(scope, sleep_briefly, NULL), 0);
        }
        for (unsigned i = 0; i < 10; i++) {
            CHECK_EQ(weft_scope_spawn(scope, sleep_task, &bodies[i]), 0);
        }
        CHECK(weft_scope_children(scope) > 0);
    }
    CHECK_EQ(err, 0);
    CHECK_EQ(atomic_load(&ended), 60);
    return 0;
}

static void scope_block_waits_for_all_children(void)
{
    run(start_many, NULL, 1);
    run(start_many, NULL, 2);
    run(start_many, NULL, 8);
}

/* Starts more children in its own scope. */
static int start_more(void *arg)
{
    weft_scope *scope = arg;
    for (unsigned i = 0; i < 5; i++) {
        CHECK_EQ(weft_scope_go(scope, sleep_briefly, NULL), 0);
    }
    return 0;
}

static int start_tree(void *arg)
{
    (void)arg;
    int err = 0;
    WEFT_SCOPE(scope, NULL, &err)
    {
        for (unsigned i = 0; i < 5; i++) {
            CHECK_EQ(weft_scope_go(scope, start_more, scope), 0);
        }
    }
    CHECK_EQ(atomic_load(&ended), 25);
    return err;
}

static void child_can_start_more_children(void)
{
    run(start_tree, NULL, 2);
}

/* --- Errors ----------------------------------------------------------------------------------- */

static int fail_fast(void *arg)
{
    (void)arg;
    int err = 0;
    int bad = -EIO;
    struct crowd_member body;
    memset(&body, 0, sizeof body);
    WEFT_SCOPE(scope, NULL, &err)
    {
        CHECK_EQ(weft_scope_go(scope, wait_until_canceled, NULL), 0);
        CHECK_EQ(weft_scope_spawn(scope, long_sleep_task, &body), 0);
        CHECK_EQ(weft_scope_go(scope, wait_until_canceled, NULL), 0);
        CHECK_EQ(weft_scope_go(scope, fail, &bad), 0);
        CHECK_EQ(weft_token_wait(weft_scope_token(scope), WEFT_NEVER), 0);
        CHECK_EQ(weft_scope_go(scope, sleep_briefly, NULL), WEFT_ECANCELED);
        CHECK_EQ(weft_scope_spawn(scope, long_sleep_task, &body), WEFT_ECANCELED);
    }
    CHECK_EQ(err, -EIO);
    CHECK_EQ(atomic_load(&cancelled), 3);
    CHECK_EQ(atomic_load(&ended), 0);
    return 0;
}

/* A stackless child fails, or returns WEFT_ECANCELED although it was not canceled. */
static int fail_with_result(void *arg)
{
    int bad = *(int *)arg;
    int err = 0;
    WEFT_SCOPE(scope, NULL, &err)
    {
        CHECK_EQ(weft_scope_go(scope, wait_until_canceled, NULL), 0);
        CHECK_EQ(weft_scope_spawn(scope, fail_task, &bad), 0);
    }
    CHECK_EQ(err, bad);
    CHECK_EQ(atomic_load(&cancelled), 1);
    err = 0;
    WEFT_SCOPE(scope, NULL, &err)
    {
        CHECK_EQ(weft_scope_go(scope, wait_until_canceled, NULL), 0);
        CHECK_EQ(weft_scope_go(scope, fail, &bad), 0);
    }
    CHECK_EQ(err, bad);
    CHECK_EQ(atomic_load(&cancelled), 2);
    return 0;
}

static void first_child_error_cancels_other_children(void)
{
    int bad = -EIO;
    int gave_up = WEFT_ECANCELED;
    run(fail_fast, NULL, 1);
    run(fail_fast, NULL, 2);
    run(fail_with_result, &bad, 1);
    run(fail_with_result, &gave_up, 1);
}

static int supervise(void *arg)
{
    (void)arg;
    int err = 0;
    int bad = -EIO;
    int worse = -EPIPE;
    weft_scope_options options = { .is_supervised = true };
    WEFT_SCOPE(scope, &options, &err)
    {
        CHECK_EQ(weft_scope_go(scope, fail, &bad), 0);
        CHECK_EQ(weft_yield(), 0);
        for (unsigned i = 0; i < 5; i++) {
            CHECK_EQ(weft_scope_go(scope, sleep_briefly, NULL), 0);
        }
        CHECK_EQ(weft_sleep(2 * WEFT_MS), 0);
        CHECK_EQ(weft_scope_go(scope, fail, &worse), 0);
        CHECK(!weft_token_is_cancelled(weft_scope_token(scope)));
    }
    CHECK_EQ(err, -EIO);
    CHECK_EQ(atomic_load(&ended), 5);
    return 0;
}

static void supervised_scope_does_not_cancel_after_error(void)
{
    run(supervise, NULL, 1);
}

static int fail_in_block(void *arg)
{
    (void)arg;
    int err = 0;
    WEFT_SCOPE(scope, NULL, &err)
    {
        CHECK_EQ(weft_scope_go(scope, wait_until_canceled, NULL), 0);
        err = -EINVAL;
    }
    CHECK_EQ(err, -EINVAL);
    CHECK_EQ(atomic_load(&cancelled), 1);
    return 0;
}

static int fail_in_function(weft_scope *scope, void *arg)
{
    CHECK_EQ(weft_scope_go(scope, wait_until_canceled, NULL), 0);
    return *(int *)arg;
}

static int run_function(void *arg)
{
    CHECK_EQ(weft_scope_run(fail_in_function, arg, NULL), *(int *)arg);
    CHECK_EQ(atomic_load(&cancelled), 1);
    return 0;
}

/* The block sees WEFT_ECANCELED because a child failed. The scope reports the child's error. */
static int fail_because_child_failed(void *arg)
{
    (void)arg;
    int bad = -EIO;
    int err = 0;
    WEFT_SCOPE(scope, NULL, &err)
    {
        CHECK_EQ(weft_scope_go(scope, fail, &bad), 0);
        CHECK_EQ(weft_token_wait(weft_scope_token(scope), WEFT_NEVER), 0);
        err = weft_scope_go(scope, fail, &bad);
        CHECK_EQ(err, WEFT_ECANCELED);
    }
    CHECK_EQ(err, -EIO);
    return 0;
}

static void error_of_block_cancels_children(void)
{
    int bad = -EIO;
    run(fail_because_child_failed, NULL, 1);
    run(fail_in_block, NULL, 1);
    run(run_function, &bad, 1);
}

/* --- Leaving ---------------------------------------------------------------------------------- */

static int leave_early(unsigned way)
{
    int err = 0;
    WEFT_SCOPE(scope, NULL, &err)
    {
        CHECK_EQ(weft_scope_go(scope, sleep_briefly, NULL), 0);
        if (way == 1) {
            break;
        }
        if (way == 2) {
            return 7;
        }
        if (way == 3) {
            goto out;
        }
    }
out:
    return err;
}

static int leave_all_ways(void *arg)
{
    (void)arg;
    for (unsigned way = 0; way < 4; way++) {
        CHECK_EQ(leave_early(way), way == 2 ? 7 : 0);
        CHECK_EQ(atomic_load(&ended), way + 1);
    }
    return 0;
}

static void early_exit_from_block_waits_for_children(void)
{
    run(leave_all_ways, NULL, 2);
}

/* --- Limits, deadlines, cancel tokens --------------------------------------------------------- */

static int record_concurrency(void *arg)
{
    (void)arg;
    unsigned now = atomic_fetch_add(&running, 1) + 1;
    unsigned before = atomic_load(&most);
    while (now > before && !atomic_compare_exchange_weak(&most, &before, now)) {
    }
    CHECK_EQ(weft_yield(), 0);
    CHECK_EQ(weft_yield(), 0);
    atomic_fetch_sub(&running, 1);
    atomic_fetch_add(&ended, 1);
    return 0;
}

static int start_with_limit(void *arg)
{
    (void)arg;
    int err = 0;
    weft_scope_options options = { .limit = 3 };
    WEFT_SCOPE(scope, &options, &err)
    {
        for (unsigned i = 0; i < 200; i++) {
            CHECK_EQ(weft_scope_go(scope, record_concurrency, NULL), 0);
            CHECK_LE(weft_scope_children(scope), 3);
        }
    }
    CHECK_EQ(err, 0);
    CHECK_EQ(atomic_load(&ended), 200);
    CHECK_LE(atomic_load(&most), 3);
    return 0;
}

static void limit_bounds_number_of_running_children(void)
{
    run(start_with_limit, NULL, 1);
    run(start_with_limit, NULL, 2);
    run(start_with_limit, NULL, 8);
}

static int wait_at_gate(void *arg)
{
    (void)arg;
    return weft_event_wait(&gate, WEFT_NEVER);
}

static int try_with_limit(void *arg)
{
    (void)arg;
    int err = 0;
    weft_scope_options options = { .limit = 1 };
    WEFT_SCOPE(scope, &options, &err)
    {
        weft_op room;
        CHECK_EQ(weft_scope_try_go(scope, wait_at_gate, NULL), 0);
        CHECK_EQ(weft_scope_try_go(scope, wait_at_gate, NULL), -EAGAIN);
        CHECK_EQ(weft_scope_spawn(scope, sleep_task, NULL), -EAGAIN);
        CHECK_EQ(weft_scope_children(scope), 1);
        weft_scope_room_init(&room, scope);
        CHECK_EQ(weft_await(&room.future, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
        weft_event_set(&gate);
        weft_scope_room_init(&room, scope);
        CHECK_EQ(weft_await(&room.future, WEFT_NEVER), 0);
        CHECK_EQ(weft_scope_children(scope), 0);
        weft_scope_room_init(&room, scope);
        CHECK_EQ(weft_await(&room.future, WEFT_NEVER), 0);
        CHECK_EQ(weft_scope_children(scope), 0);
        CHECK_EQ(weft_scope_try_go(scope, wait_at_gate, NULL), 0);
    }
    return err;
}

static int try_in_function(weft_scope *scope, void *arg)
{
    for (size_t i = 0; i < *(size_t *)arg; i++) {
        CHECK_EQ(weft_scope_try_go(scope, wait_at_gate, NULL), 0);
        CHECK_EQ(weft_scope_children(scope), i + 1);
    }
    CHECK_EQ(weft_scope_try_go(scope, wait_at_gate, NULL), -EAGAIN);
    weft_event_set(&gate);
    return 0;
}

static int run_with_limit(void *arg)
{
    (void)arg;
    weft_scope_options options = { .limit = 4 };
    return weft_scope_run(try_in_function, &options.limit, &options);
}

static void nonblocking_start_in_full_scope_returns_eagain(void)
{
    run(try_with_limit, NULL, 1);
    run(run_with_limit, NULL, 1);
}

/* The scope is full at first. Its child ends just before the second start begins to wait. */
static _Atomic(weft_task *) awaits_room;
static weft_scope *awaited;

static void end_other_child(weft_time *deadline)
{
    weft_task *self = weft_task_current();
    if (deadline == NULL || self != atomic_load(&awaits_room)) {
        return;
    }
    atomic_store(&awaits_room, NULL);
    weft_event_set(&gate);
    while (weft_scope_children(awaited) > 0) {
        sched_yield();
    }
}

static int wait_for_second_gate(void *arg)
{
    return weft_event_wait(arg, WEFT_NEVER);
}

static int find_capacity_late(void *arg)
{
    (void)arg;
    int err = 0;
    weft_event second = { { 0 } };
    weft_scope_options options = { .limit = 1 };
    WEFT_SCOPE(scope, &options, &err)
    {
        CHECK_EQ(weft_scope_go(scope, wait_at_gate, NULL), 0);
        awaited = scope;
        atomic_store(&awaits_room, weft_task_current());
        CHECK_EQ(weft_scope_go(scope, wait_for_second_gate, &second), 0);
        CHECK(atomic_load(&awaits_room) == NULL);
        CHECK_EQ(weft_scope_children(scope), 1);
        weft_event_set(&second);
    }
    return err;
}

static void capacity_freed_before_wait_is_used(void)
{
    hook_await(end_other_child);
    run(find_capacity_late, NULL, 2);
    hook_await(NULL);
}

/* A task awaits capacity without starting a child when the scope is canceled. The scope's only
 * child is shielded and keeps its slot. */
static int wait_for_capacity(void *arg)
{
    weft_op room;
    weft_scope_room_init(&room, arg);
    return weft_await(&room.future, WEFT_NEVER);
}

static int stay_until_gate(void *arg)
{
    weft_shield_enter();
    int err = wait_at_gate(arg);
    weft_shield_leave();
    return err;
}

static int cancel_capacity_waiter(void *arg)
{
    (void)arg;
    int err = 0;
    weft_scope_options options = { .limit = 1 };
    WEFT_SCOPE(scope, &options, &err)
    {
        weft_task *looking = NULL;
        CHECK_EQ(weft_scope_go(scope, stay_until_gate, NULL), 0);
        CHECK_EQ(weft_go(&looking, wait_for_capacity, scope), 0);
        for (unsigned i = 0; i < 10; i++) {
            CHECK_EQ(weft_yield(), 0);
        }
        CHECK_EQ(weft_try_join(looking, NULL), -EAGAIN);
        weft_scope_cancel(scope);
        CHECK_EQ(test_join_soon(looking), 0);
        CHECK_EQ(weft_scope_children(scope), 1);
        CHECK_EQ(wait_for_capacity(scope), 0);
        CHECK_EQ(weft_scope_children(scope), 1);
        weft_event_set(&gate);
    }
    CHECK_EQ(err, WEFT_ECANCELED);
    return 0;
}

static void scope_cancel_wakes_capacity_waiter(void)
{
    run(cancel_capacity_waiter, NULL, 1);
}

/* A start waits for capacity when the deadline cancels the scope. */
static int deadline_during_start(void *arg)
{
    (void)arg;
    int err = 0;
    weft_scope_options options = { .limit = 1, .deadline = weft_after(5 * WEFT_MS) };
    WEFT_SCOPE(scope, &options, &err)
    {
        CHECK_EQ(weft_scope_go(scope, wait_past_deadline, NULL), 0);
        CHECK_EQ(weft_scope_go(scope, wait_until_canceled, NULL), WEFT_ECANCELED);
    }
    CHECK_EQ(err, WEFT_ETIMEDOUT);
    CHECK_EQ(atomic_load(&cancelled), 1);
    return 0;
}

static int fail_when_canceled(void *arg)
{
    CHECK_EQ(wait_past_deadline(NULL), WEFT_ECANCELED);
    return fail(arg);
}

/* A child's error takes precedence over WEFT_ETIMEDOUT. Then scopes with a deadline far in the
 * future: the deadline goes away with its scope. */
static int fail_late(void *arg)
{
    (void)arg;
    int bad = -EIO;
    int err = 0;
    weft_scope_options options = { .deadline = weft_after(5 * WEFT_MS) };
    WEFT_SCOPE(scope, &options, &err)
    {
        CHECK_EQ(weft_scope_go(scope, fail_when_canceled, &bad), 0);
    }
    CHECK_EQ(err, -EIO);
    for (unsigned i = 0; i < 3; i++) {
        err = 0;
        options.deadline = weft_after(3600 * WEFT_S);
        WEFT_SCOPE(scope, &options, &err)
        {
            CHECK_EQ(weft_scope_go(scope, yield_briefly, NULL), 0);
        }
        CHECK_EQ(err, 0);
    }
    return 0;
}

static void scope_deadline_cancels_children(void)
{
    weft_clock_pause();
    run(fail_late, NULL, 1);
    run(deadline_during_start, NULL, 1);
    run(deadline_during_start, NULL, 2);
    weft_clock_resume();
}

/* Stackless children, some of which have been polled more than once. */
static int yield_and_sleep_task(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    for (; self->round < self->index; self->round++) {
        WEFT_YIELD(co, self->err);
    }
    atomic_fetch_add(&running, 1);
    weft_sleep_init(&self->sleep, weft_after(3600 * WEFT_S), 0);
    WEFT_AWAIT(co, self->err, &self->sleep.future);
    atomic_fetch_add(&cancelled, 1);
    WEFT_END(co, self->err);
}

static int cancel_stackless_children(void *arg)
{
    (void)arg;
    int err = 0;
    struct crowd_member bodies[3];
    memset(bodies, 0, sizeof bodies);
    WEFT_SCOPE(scope, NULL, &err)
    {
        for (unsigned i = 0; i < 3; i++) {
            bodies[i].index = i;
            CHECK_EQ(weft_scope_spawn(scope, yield_and_sleep_task, &bodies[i]), 0);
        }
        while (atomic_load(&running) < 3) {
            CHECK_EQ(weft_yield(), 0);
        }
        weft_scope_cancel(scope);
    }
    CHECK_EQ(err, WEFT_ECANCELED);
    CHECK_EQ(atomic_load(&cancelled), 3);
    return 0;
}

static void scope_cancel_ends_waiting_stackless_children(void)
{
    run(cancel_stackless_children, NULL, 1);
    run(cancel_stackless_children, NULL, 2);
}

static int cancel_by_token(void *arg)
{
    weft_token *above = arg;
    int err = 0;
    weft_scope_options options = { .token = above };
    WEFT_SCOPE(scope, &options, &err)
    {
        for (unsigned i = 0; i < 100; i++) {
            CHECK_EQ(weft_scope_go(scope, wait_until_canceled, NULL), 0);
        }
        CHECK_EQ(weft_yield(), 0);
        weft_token_cancel(above);
    }
    CHECK_EQ(err, WEFT_ECANCELED);
    CHECK_EQ(atomic_load(&cancelled), 100);
    WEFT_SCOPE(scope, &options, &err)
    {
        CHECK_EQ(weft_scope_go(scope, sleep_briefly, NULL), WEFT_ECANCELED);
    }
    CHECK_EQ(err, WEFT_ECANCELED);
    return 0;
}

static void parent_token_cancels_children(void)
{
    weft_token above = { { 0 }, 0, { 0 } };
    run(cancel_by_token, &above, 2);
    weft_token_fini(&above);
}

/* --- Canceled owners -------------------------------------------------------------------------- */

static int own_scopes(void *arg)
{
    (void)arg;
    int err = 0;
    WEFT_SCOPE(outer, NULL, &err)
    {
        CHECK_EQ(weft_scope_go(outer, wait_until_canceled, NULL), 0);
        WEFT_SCOPE(inner, NULL, &err)
        {
            CHECK_EQ(weft_scope_go(inner, wait_until_canceled, NULL), 0);
        }
        CHECK_EQ(err, WEFT_ECANCELED);
    }
    CHECK_EQ(atomic_load(&cancelled), 2);
    CHECK_EQ(weft_sleep(3600 * WEFT_S), WEFT_ECANCELED); /* Like every wait from now on. */
    return err;
}

static void canceled_owner_cancels_children_and_waits(void)
{
    weft_runtime *rt = test_start(1);
    atomic_store(&cancelled, 0);
    weft_task *task = test_go_first(rt, own_scopes, NULL);
    test_settle(rt);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

struct owner {
    weft_scope scope;
    weft_scope_future end;
    struct crowd_member child;
    int err;
};

static struct owner owner;

static int own_scope_task(weft_co *co, void *state)
{
    (void)state;
    WEFT_BEGIN(co);
    weft_scope_begin(&owner.scope, NULL);
    CHECK_EQ(weft_scope_spawn(&owner.scope, long_sleep_task, &owner.child), 0);
    CHECK_EQ(weft_scope_try_go(&owner.scope, wait_until_canceled, NULL), 0);
    weft_scope_end_init(&owner.end, &owner.scope);
    WEFT_AWAIT(co, owner.err, &owner.end.future);
    CHECK_EQ(atomic_load(&cancelled), 2);
    WEFT_END(co, owner.err);
}

static void stackless_task_can_own_scope(void)
{
    weft_runtime *rt = test_start(1);
    atomic_store(&cancelled, 0);
    memset(&owner, 0, sizeof owner);
    weft_task *task = test_spawn(rt, own_scope_task, NULL);
    test_settle(rt);
    CHECK_EQ(weft_try_join(task, NULL), -EAGAIN);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

/* --- Plain threads and draining --------------------------------------------------------------- */

static void plain_thread_can_own_scope(void)
{
    weft_runtime *rt = test_start(2);
    int err = 0;
    atomic_store(&ended, 0);
    atomic_store(&cancelled, 0);
    weft_scope_options options = { .runtime = rt, .limit = 2 };
    WEFT_SCOPE(scope, &options, &err)
    {
        for (unsigned i = 0; i < 10; i++) {
            CHECK_EQ(weft_scope_go(scope, sleep_briefly, NULL), 0);
        }
    }
    CHECK_EQ(err, 0);
    CHECK_EQ(atomic_load(&ended), 10);
    struct crowd_member body;
    memset(&body, 0, sizeof body);
    WEFT_SCOPE(scope, &options, &err)
    {
        CHECK_EQ(weft_scope_spawn(scope, sleep_task, &body), 0);
    }
    CHECK_EQ(err, 0);
    CHECK_EQ(atomic_load(&ended), 11);
    weft_clock_pause();
    options.deadline = weft_after(5 * WEFT_MS);
    WEFT_SCOPE(scope, &options, &err)
    {
        CHECK_EQ(weft_scope_go(scope, wait_past_deadline, NULL), 0);
    }
    CHECK_EQ(err, WEFT_ETIMEDOUT);
    CHECK_EQ(atomic_load(&cancelled), 1);
    weft_clock_resume();
    weft_runtime_destroy(rt);
}

/* Begins a scope with a child that runs, on a plain thread, and lets its deadline pass. */
static void begin_and_be_late(weft_scope *scope, weft_runtime *rt)
{
    weft_scope_options options = { .runtime = rt, .limit = 1 };
    atomic_store(&cancelled, 0);
    options.deadline = weft_after(5 * WEFT_MS);
    weft_scope_begin(scope, &options);
    CHECK_EQ(weft_scope_go(scope, wait_until_canceled, NULL), 0);
    weft_clock_advance(5 * WEFT_MS);
}

/* No call by the thread that owns the scope is necessary, and every wait for the scope ends. */
static void deadline_of_thread_cancels_children_without_call(void)
{
    weft_runtime *rt = test_start(1);
    weft_scope scope;
    weft_clock_pause();
    begin_and_be_late(&scope, rt);
    while (weft_scope_children(&scope) > 0) {
        (void)sched_yield();
    }
    CHECK_EQ(atomic_load(&cancelled), 1);
    CHECK_EQ(weft_scope_go(&scope, sleep_briefly, NULL), WEFT_ECANCELED);
    CHECK_EQ(weft_scope_end(&scope), WEFT_ETIMEDOUT);

    begin_and_be_late(&scope, rt);
    CHECK_EQ(weft_scope_drain(&scope, WEFT_NEVER), WEFT_ETIMEDOUT);

    weft_op op;
    begin_and_be_late(&scope, rt);
    weft_scope_room_init(&op, &scope);
    CHECK_EQ(weft_await(&op.future, WEFT_NEVER), 0);
    CHECK_EQ(weft_scope_end(&scope), WEFT_ETIMEDOUT);

    weft_scope_future end;
    begin_and_be_late(&scope, rt);
    weft_scope_end_init(&end, &scope);
    CHECK_EQ(weft_await(&end.future, WEFT_NEVER), WEFT_ETIMEDOUT);
    weft_clock_resume();
    weft_runtime_destroy(rt);
}

/* The thread waits for capacity when the deadline passes, or starts a child after it. */
static void start_on_thread_after_deadline_returns_ecanceled(void)
{
    weft_runtime *rt = test_start(1);
    weft_scope_options options = { .runtime = rt, .limit = 1 };
    weft_scope scope;
    weft_clock_pause();
    options.deadline = weft_after(5 * WEFT_MS);
    weft_scope_begin(&scope, &options);
    CHECK_EQ(weft_scope_go(&scope, wait_past_deadline, NULL), 0);
    CHECK_EQ(weft_scope_go(&scope, sleep_briefly, NULL), WEFT_ECANCELED);
    CHECK_EQ(weft_scope_try_go(&scope, sleep_briefly, NULL), WEFT_ECANCELED);
    CHECK_EQ(weft_scope_end(&scope), WEFT_ETIMEDOUT);
    weft_clock_resume();
    weft_runtime_destroy(rt);
}

static int drain(void *arg)
{
    (void)arg;
    weft_scope scope;
    weft_scope_begin(&scope, NULL);
    CHECK_EQ(weft_scope_go(&scope, sleep_briefly, NULL), 0);
    CHECK_EQ(weft_scope_drain(&scope, test_deadline()), 0);
    CHECK_EQ(atomic_load(&ended), 1);

    weft_scope_begin(&scope, NULL);
    CHECK_EQ(weft_scope_go(&scope, sleep_briefly, NULL), 0);
    CHECK_EQ(weft_scope_go(&scope, wait_until_canceled, NULL), 0);
    CHECK_EQ(weft_scope_drain(&scope, weft_after(20 * WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(atomic_load(&ended), 2);
    CHECK_EQ(atomic_load(&cancelled), 1);
    return 0;
}

static void drain_deadline_cancels_remaining_children(void)
{
    run(drain, NULL, 1);
}

static int start_wrongly(void *arg)
{
    (void)arg;
    int err = 0;
    WEFT_SCOPE(scope, NULL, &err)
    {
        weft_fiber_spec spec = { .function = sleep_briefly, .arg_size = 1 };
        CHECK_EQ(weft_scope_go_with(scope, &spec), -EINVAL);
        CHECK_EQ(weft_scope_go(scope, NULL, NULL), -EINVAL);
        CHECK_EQ(weft_scope_try_go(scope, NULL, NULL), -EINVAL);
        CHECK_EQ(weft_scope_spawn(scope, NULL, NULL), -EINVAL);
        spec = (weft_fiber_spec){ .function = sleep_briefly, .stack_size = (size_t)1 << 40 };
        CHECK_EQ(weft_scope_go_with(scope, &spec), -EINVAL);
        CHECK_EQ(weft_scope_children(scope), 0);
    }
    return err;
}

static void failed_start_is_not_counted_as_child(void)
{
    run(start_wrongly, NULL, 1);

    weft_runtime *rt = test_start(1);
    weft_scope_options options = { .runtime = rt };
    int err = 0;
    weft_runtime_shutdown(rt);
    WEFT_SCOPE(scope, &options, &err)
    {
        CHECK_EQ(weft_scope_go(scope, sleep_briefly, NULL), WEFT_ESHUTDOWN);
        CHECK_EQ(weft_scope_spawn(scope, sleep_task, NULL), WEFT_ESHUTDOWN);
        CHECK_EQ(weft_scope_children(scope), 0);
    }
    CHECK_EQ(err, 0);
    weft_runtime_destroy(rt);
}

/* --- Stress ----------------------------------------------------------------------------------- */

/* Children that return, fail or wait, in scopes that are canceled at arbitrary times. */
static int random_child(void *arg)
{
    uint64_t number = (uint64_t)(uintptr_t)arg;
    for (unsigned i = 0; i < number % 4; i++) {
        if (weft_yield() != 0) {
            return WEFT_ECANCELED;
        }
    }
    if (number % 11 == 0) {
        return -EIO;
    }
    return number % 3 == 0 ? weft_sleep(3600 * WEFT_S) : 0;
}

static int cancel_soon(void *arg)
{
    int err = weft_yield();
    weft_scope_cancel(arg);
    return err;
}

static int random_scopes(void *arg)
{
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    for (uint64_t i = 0; i < crowd_rounds() / 4; i++) {
        int err = 0;
        weft_scope_options options = { .limit = i % 5, .is_supervised = i % 2 == 0 };
        WEFT_SCOPE(scope, &options, &err)
        {
            CHECK_EQ(weft_scope_go(scope, cancel_soon, scope), 0);
            for (uint64_t k = 0; k < 8; k++) {
                uint64_t number = (seed + i) * 31 + k * 7;
                int gone = weft_scope_go(scope, random_child, (void *)(uintptr_t)number);
                CHECK(gone == 0 || gone == WEFT_ECANCELED);
            }
        }
        CHECK(err == -EIO || err == WEFT_ECANCELED);
    }
    return 0;
}

static void scopes_end_despite_random_errors_and_cancels(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned w = 0; w < 3; w++) {
        weft_runtime *rt = test_start(workers[w]);
        weft_task *tasks[6];
        for (unsigned i = 0; i < 6; i++) {
            tasks[i] = test_go(rt, random_scopes, (void *)(uintptr_t)(i * 1000));
        }
        for (unsigned i = 0; i < 6; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        weft_runtime_destroy(rt);
    }
}

/* --- Empty scopes ----------------------------------------------------------------------------- */

struct empty {
    weft_scope scope;
    weft_scope_future end;
};

static int loop_over_empty_scopes(weft_co *co, void *state)
{
    struct empty *self = state;
    int result = 0;
    WEFT_BEGIN(co);
    while (result == 0) {
        weft_scope_begin(&self->scope, NULL);
        weft_scope_end_init(&self->end, &self->scope);
        WEFT_AWAIT(co, result, &self->end.future);
    }
    WEFT_END(co, result);
}

/* The timeout cancels the stackless loop, not the task that awaits it. */
static int loop_until_timeout(void *arg)
{
    struct empty empty;
    weft_co_future body;
    weft_timeout_future timeout;
    (void)arg;
    weft_co_init(&body, loop_over_empty_scopes, &empty);
    weft_timeout_init(&timeout, &body.future, weft_after(WEFT_MS));
    CHECK_EQ(weft_await(&timeout.future, WEFT_NEVER), WEFT_ETIMEDOUT);
    return 0;
}

static void loop_over_empty_scopes_ends_at_timeout(void)
{
    run(loop_until_timeout, NULL, 1);
}

static int loop_over_blocks(void *arg)
{
    int err = 0;
    (void)arg;
    while (err == 0) {
        WEFT_SCOPE(scope, NULL, &err)
        {
        }
    }
    return err;
}

static void loop_over_empty_blocks_ends_with_runtime(void)
{
    weft_runtime *rt = test_start(1);
    weft_detach(test_go(rt, loop_over_blocks, NULL));
    weft_task *body;
    weft_spec spec = { .body = loop_over_empty_scopes, .state_size = sizeof(struct empty) };
    CHECK_EQ(weft_runtime_spawn(rt, &body, &spec), 0);
    weft_detach(body);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(scope_block_waits_for_all_children),
    TEST(child_can_start_more_children),
    TEST(first_child_error_cancels_other_children),
    TEST(supervised_scope_does_not_cancel_after_error),
    TEST(error_of_block_cancels_children),
    TEST(early_exit_from_block_waits_for_children),
    TEST(limit_bounds_number_of_running_children),
    TEST(nonblocking_start_in_full_scope_returns_eagain),
    TEST_DEBUG(capacity_freed_before_wait_is_used),
    TEST(scope_cancel_wakes_capacity_waiter),
    TEST(scope_deadline_cancels_children),
    TEST(scope_cancel_ends_waiting_stackless_children),
    TEST(parent_token_cancels_children),
    TEST(canceled_owner_cancels_children_and_waits),
    TEST(stackless_task_can_own_scope),
    TEST(plain_thread_can_own_scope),
    TEST(deadline_of_thread_cancels_children_without_call),
    TEST(start_on_thread_after_deadline_returns_ecanceled),
    TEST(drain_deadline_cancels_remaining_children),
    TEST(failed_start_is_not_counted_as_child),
    TEST(scopes_end_despite_random_errors_and_cancels),
    TEST(loop_over_empty_scopes_ends_at_timeout),
    TEST(loop_over_empty_blocks_ends_with_runtime),
})
