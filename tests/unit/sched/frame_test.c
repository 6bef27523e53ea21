/* SPDX-License-Identifier: MIT */
/*
 * frame_test.c - open scopes and join sets of a task that returns.
 *
 * Goal:   a task that returns with an open scope or join set in its frame or its state aborts
 *         with a message. Objects elsewhere may outlive the task that began them.
 * Method: tasks of each kind leave one open, in a child process.
 */
#include "sched/frame.h"

#include <setjmp.h>
#include <stdatomic.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

static _Atomic(bool) has_begun;

static int wait_for_cancel(void *arg)
{
    (void)arg;
    atomic_store(&has_begun, true);
    return weft_sleep(60 * WEFT_S);
}

/* Waits until the child has begun: it uses the scope, whose frame is about to end. */
static int await_child(int err)
{
    while (err == 0 && !atomic_load(&has_begun)) {
        err = weft_yield();
    }
    return err;
}

/*
 * Returns whether a sanitizer keeps local variables off the stack, so that the library does not
 * recognize them as the task's.
 */
static bool has_fake_stack(void)
{
    volatile char local = 0;
    uintptr_t distance = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)&local;
    return distance > 1 << 16;
}

/* --- Misuse -------------------------------------------------------------------------------- */

static int leave_scope(void *arg)
{
    weft_scope scope;
    (void)arg;
    weft_scope_begin(&scope, NULL);
    return await_child(weft_scope_go(&scope, wait_for_cancel, NULL));
}

static int leave_empty_scope(void *arg)
{
    weft_scope scope;
    (void)arg;
    weft_scope_begin(&scope, NULL);
    return 0;
}

static int leave_set(void *arg)
{
    weft_join_set set;
    (void)arg;
    CHECK_EQ(weft_join_set_begin(&set, NULL), 0);
    return await_child(weft_join_set_go(&set, wait_for_cancel, NULL));
}

static int jump_out_of_block(void *arg)
{
    static _Thread_local jmp_buf out;
    int err = 0;
    (void)arg;
    if (setjmp(out) == 0) {
        WEFT_SCOPE(scope, NULL, &err)
        {
            longjmp(out, 1);
        }
    }
    return err;
}

static int leave_in_place(void *arg)
{
    return weft_block_in_place(leave_empty_scope, arg, WEFT_NEVER);
}

static void leave_in_parallel(void *arg)
{
    (void)leave_empty_scope(arg);
}

static int leave_in_fork(void *arg)
{
    weft_join2(leave_in_parallel, arg, leave_in_parallel, arg);
    return 0;
}

struct body_state {
    weft_scope scope;
    char more[600]; /* more than a slab slot */
};

static int leave_in_state(weft_co *co, void *state)
{
    (void)co;
    weft_scope_begin(&((struct body_state *)state)->scope, NULL);
    return 0;
}

static int (*mistake)(void *arg);

static void make_mistake(void)
{
    CHECK_EQ(weft_run(NULL, mistake, NULL), 0);
}

static void make_mistake_in_child(void)
{
    (void)test_join(test_go(test_start(2), mistake, NULL));
}

static void make_mistake_in_job(void)
{
    weft_task *task;
    weft_runtime *rt = test_start(1);
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, mistake, NULL), 0);
    (void)test_join(task);
}

static size_t state_size;

static void make_mistake_in_body(void)
{
    weft_task *task;
    weft_spec spec = { .body = leave_in_state, .name = "leaver", .state_size = state_size };
    CHECK_EQ(weft_runtime_spawn(test_start(1), &task, &spec), 0);
    (void)test_join(task);
}

static void fiber_that_returns_with_open_scope_aborts(void)
{
    if (has_fake_stack()) {
        test_skip("local variables are not on the stack");
        return;
    }
    static int (*const mistakes[])(void *arg) = { leave_scope,    leave_empty_scope,
                                                  leave_set,      jump_out_of_block,
                                                  leave_in_place, leave_in_fork };
    for (unsigned i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        mistake = mistakes[i];
        CHECK_ABORTS(make_mistake, "returned with a scope or a join set that was not ended; call "
                                   "weft_scope_end() or weft_join_set_end()");
        CHECK_ABORTS(make_mistake_in_child, "fiber '' (#");
    }
}

static void blocking_job_that_returns_with_open_scope_aborts(void)
{
    if (has_fake_stack()) {
        test_skip("local variables are not on the stack");
        return;
    }
    mistake = leave_scope;
    CHECK_ABORTS(make_mistake_in_job, "blocking job '' (#");
    mistake = leave_set;
    CHECK_ABORTS(make_mistake_in_job, "returned with a scope or a join set that was not ended");
}

static void stackless_task_that_returns_with_open_scope_aborts(void)
{
    state_size = sizeof(weft_scope);
    CHECK_ABORTS(make_mistake_in_body, "task 'leaver' (#");
    state_size = sizeof(struct body_state);
    CHECK_ABORTS(make_mistake_in_body, "returned with a scope or a join set that was not ended");
}

/* --- Allowed uses -------------------------------------------------------------------------- */

static weft_scope elsewhere;

static int begin_elsewhere(void *arg)
{
    (void)arg;
    weft_scope_begin(&elsewhere, NULL);
    return weft_scope_go(&elsewhere, wait_for_cancel, NULL);
}

static int end_elsewhere(void *arg)
{
    (void)arg;
    weft_scope_cancel(&elsewhere);
    CHECK_EQ(weft_scope_end(&elsewhere), WEFT_ECANCELED);
    return 0;
}

static int begin_elsewhere_in_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_scope_begin(&elsewhere, NULL);
    return 0;
}

static void scope_elsewhere_may_outlive_task(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, begin_elsewhere, NULL), 0);
    CHECK_EQ(test_run(rt, end_elsewhere, NULL), 0);
    CHECK_EQ(test_join(test_spawn(rt, begin_elsewhere_in_body, NULL)), 0);
    CHECK_EQ(test_run(rt, end_elsewhere, NULL), 0);
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, begin_elsewhere, NULL), 0);
    CHECK_EQ(test_join(task), 0);
    CHECK_EQ(test_run(rt, end_elsewhere, NULL), 0);
    weft_runtime_destroy(rt);
}

static int end_of_another(void *scope)
{
    return weft_scope_end(scope);
}

/* Meanwhile the owner begins and ends other scopes. */
static int let_another_end(void *arg)
{
    weft_scope scope;
    weft_task *task;
    (void)arg;
    weft_scope_begin(&scope, NULL);
    CHECK_EQ(weft_go(&task, end_of_another, &scope), 0);
    for (unsigned i = 0; i < 100; i++) {
        weft_scope other;
        weft_scope_begin(&other, NULL);
        CHECK_EQ(weft_scope_end(&other), 0);
    }
    return test_join(task);
}

static void scope_may_be_ended_by_another_fiber(void)
{
    weft_runtime *rt = test_start(2);
    for (unsigned i = 0; i < (unsigned)test_scale(50); i++) {
        CHECK_EQ(test_run(rt, let_another_end, NULL), 0);
    }
    weft_runtime_destroy(rt);
}

static int end_in_job(void *arg)
{
    weft_scope scope;
    weft_join_set set;
    (void)arg;
    for (unsigned i = 0; i < 3; i++) {
        weft_scope_begin(&scope, NULL);
        CHECK_EQ(weft_join_set_begin(&set, NULL), 0);
        CHECK_EQ(weft_join_set_end(&set), 0);
        CHECK_EQ(weft_scope_end(&scope), 0);
    }
    return 0;
}

static int end_in_place(void *arg)
{
    return weft_block_in_place(end_in_job, arg, WEFT_NEVER);
}

static int end_in_state(weft_co *co, void *state)
{
    struct {
        weft_scope scope;
        weft_scope_future end;
        int round;
    } *self = state;
    int result;
    WEFT_BEGIN(co);
    for (self->round = 0; self->round < 3; self->round++) {
        weft_scope_begin(&self->scope, NULL);
        weft_scope_end_init(&self->end, &self->scope);
        WEFT_AWAIT(co, result, &self->end.future);
        CHECK_EQ(result, 0);
    }
    WEFT_END(co, 0);
}

static void ended_scopes_do_not_count(void)
{
    weft_task *task;
    weft_runtime *rt = test_start(2);
    weft_spec spec = { .body = end_in_state, .state_size = 1000 };
    CHECK_EQ(test_run(rt, end_in_job, NULL), 0);
    CHECK_EQ(test_run(rt, end_in_place, NULL), 0);
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, end_in_job, NULL), 0);
    CHECK_EQ(test_join(task), 0);
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(test_join(task), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(fiber_that_returns_with_open_scope_aborts),
    TEST(blocking_job_that_returns_with_open_scope_aborts),
    TEST(stackless_task_that_returns_with_open_scope_aborts),
    TEST(scope_elsewhere_may_outlive_task),
    TEST(scope_may_be_ended_by_another_fiber),
    TEST(ended_scopes_do_not_count),
})
