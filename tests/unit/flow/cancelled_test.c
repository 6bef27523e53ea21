/* SPDX-License-Identifier: MIT */
/*
 * cancelled_test.c - calls of scope.h, join_set.h, gather.h and shutdown.h in canceled tasks.
 * Every call that starts a child or awaits runs in a task that is already canceled, behind a
 * shield, and in a scope whose deadline has passed.
 */
#include <weft.h>

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "rt.h"
#include "test.h"

static atomic_uint calls; /* of the functions passed to the calls */
static weft_runtime *rt;

static int count_call(void *arg)
{
    (void)arg;
    (void)atomic_fetch_add(&calls, 1);
    return 0;
}

static int count_task(weft_co *co, void *state)
{
    (void)co;
    return count_call(state);
}

static int count_index(size_t index, void *arg)
{
    (void)index;
    return count_call(arg);
}

/* --- The calls -------------------------------------------------------------------------------- */

static int scope_go(weft_scope *scope)
{
    return weft_scope_go(scope, count_call, NULL);
}

static int scope_go_with(weft_scope *scope)
{
    weft_fiber_spec spec = { .function = count_call };
    return weft_scope_go_with(scope, &spec);
}

static int scope_try_go(weft_scope *scope)
{
    return weft_scope_try_go(scope, count_call, NULL);
}

static int scope_spawn(weft_scope *scope)
{
    return weft_scope_spawn(scope, count_task, NULL);
}

typedef int (*start_fn)(weft_scope *scope);

static const struct {
    const char *name;
    start_fn start;
} starts[] = {
    { "weft_scope_go", scope_go },
    { "weft_scope_go_with", scope_go_with },
    { "weft_scope_try_go", scope_try_go },
    { "weft_scope_spawn", scope_spawn },
};

enum {
    STARTS = sizeof starts / sizeof starts[0]
};

/* Starts a child in a new scope, which this function does not cancel. */
static int start_in_scope(start_fn start)
{
    weft_scope scope;
    weft_scope_options options = { .runtime = rt };
    weft_scope_begin(&scope, &options);
    int result = start(&scope);
    if (result != 0) {
        CHECK_EQ(weft_scope_children(&scope), 0);
    }
    int end = weft_scope_end(&scope);
    return result != 0 ? result : end;
}

static int go_in_scope(void)
{
    return start_in_scope(scope_go);
}

static int go_with_in_scope(void)
{
    return start_in_scope(scope_go_with);
}

static int try_go_in_scope(void)
{
    return start_in_scope(scope_try_go);
}

static int spawn_in_scope(void)
{
    return start_in_scope(scope_spawn);
}

static int end_scope(void)
{
    weft_scope scope;
    weft_scope_begin(&scope, NULL);
    return weft_scope_end(&scope);
}

static int drain_scope(void)
{
    weft_scope scope;
    weft_scope_begin(&scope, NULL);
    return weft_scope_drain(&scope, 0);
}

static int run_scope(void)
{
    int err = 0;
    WEFT_SCOPE(scope, NULL, &err)
    {
        err = weft_scope_go(scope, count_call, NULL);
    }
    return err;
}

static int go_in_set(void)
{
    weft_join_set set;
    weft_scope_options options = { .runtime = rt };
    CHECK_EQ(weft_join_set_begin(&set, &options), 0);
    int result = weft_join_set_go(&set, count_call, NULL);
    CHECK_EQ(weft_join_set_count(&set), result == 0 ? 1 : 0);
    int end = weft_join_set_end(&set);
    return result != 0 ? result : end;
}

/* Objects that are ready before the call: a set with a result, two finished tasks, a trigger. */
static weft_join_set ready_set;
static weft_task *ready_tasks[2];
static weft_shutdown triggered;

static int next_of_ready_set(void)
{
    weft_joined joined;
    return weft_join_set_next(&ready_set, &joined, 0);
}

static int next_of_empty_set(void)
{
    weft_join_set set;
    weft_joined joined;
    CHECK_EQ(weft_join_set_begin(&set, NULL), 0);
    int result = weft_join_set_next(&set, &joined, 0);
    CHECK_EQ(weft_join_set_end(&set), result == WEFT_ECANCELED ? WEFT_ECANCELED : 0);
    return result;
}

static int end_set(void)
{
    weft_join_set set;
    CHECK_EQ(weft_join_set_begin(&set, NULL), 0);
    return weft_join_set_end(&set);
}

static int join_all(void)
{
    return weft_join_all(ready_tasks, 2, NULL, 0);
}

static int join_none(void)
{
    return weft_join_all(NULL, 0, NULL, 0);
}

static int try_join_all(void)
{
    return weft_try_join_all(ready_tasks, 2, NULL, 0);
}

static int race(void)
{
    return weft_race(ready_tasks, 2, NULL, 0);
}

static int race_of_none(void)
{
    return weft_race(NULL, 0, NULL, 0);
}

static int first_success(void)
{
    return weft_first_success(ready_tasks, 2, NULL, 0);
}

static int go_each(void)
{
    return weft_go_each(1, 0, count_index, NULL, WEFT_NEVER);
}

static int go_each_of_none(void)
{
    return weft_go_each(0, 0, count_index, NULL, WEFT_NEVER);
}

static int call_until(void)
{
    return weft_call_until(count_call, NULL, WEFT_NEVER);
}

static int shutdown_wait(void)
{
    return weft_shutdown_wait(&triggered, 0);
}

static int shutdown_drain(void)
{
    return weft_shutdown_drain(&triggered, 0);
}

static const struct row {
    const char *name;
    int (*call)(void);
    int cancelled;      /* the result in a canceled task */
    int otherwise;      /* the result behind a shield */
    unsigned calls;     /* function calls behind a shield */
    bool on_fiber_only; /* not in a blocking job */
} rows[] = {
    { "weft_scope_go", go_in_scope, WEFT_ECANCELED, 0, 1, false },
    { "weft_scope_go_with", go_with_in_scope, WEFT_ECANCELED, 0, 1, false },
    { "weft_scope_try_go", try_go_in_scope, WEFT_ECANCELED, 0, 1, false },
    { "weft_scope_spawn", spawn_in_scope, WEFT_ECANCELED, 0, 1, false },
    { "WEFT_SCOPE", run_scope, WEFT_ECANCELED, 0, 1, false },
    { "weft_scope_end", end_scope, WEFT_ECANCELED, 0, 0, false },
    { "weft_scope_drain", drain_scope, WEFT_ECANCELED, 0, 0, false },
    { "weft_join_set_go", go_in_set, WEFT_ECANCELED, 0, 1, false },
    { "weft_join_set_next", next_of_ready_set, WEFT_ECANCELED, 0, 0, false },
    { "weft_join_set_next of none", next_of_empty_set, WEFT_ECANCELED, -ENOENT, 0, false },
    { "weft_join_set_end", end_set, WEFT_ECANCELED, 0, 0, false },
    { "weft_join_all", join_all, WEFT_ECANCELED, 0, 0, false },
    { "weft_join_all of none", join_none, WEFT_ECANCELED, 0, 0, false },
    { "weft_try_join_all", try_join_all, WEFT_ECANCELED, 0, 0, false },
    { "weft_race", race, WEFT_ECANCELED, 0, 0, false },
    { "weft_race of none", race_of_none, WEFT_ECANCELED, -EINVAL, 0, false },
    { "weft_first_success", first_success, WEFT_ECANCELED, 0, 0, false },
    { "weft_go_each", go_each, WEFT_ECANCELED, 0, 1, true },
    { "weft_go_each of none", go_each_of_none, WEFT_ECANCELED, 0, 0, true },
    { "weft_call_until", call_until, WEFT_ECANCELED, 0, 1, true },
    { "weft_shutdown_wait", shutdown_wait, WEFT_ECANCELED, 0, 0, false },
    { "weft_shutdown_drain", shutdown_drain, WEFT_ECANCELED, 0, 0, false },
};

enum {
    ROWS = sizeof rows / sizeof rows[0]
};

/* --- Already canceled ------------------------------------------------------------------------- */

static int call_canceled(void *arg)
{
    const struct row *row = arg;
    weft_cancel(weft_task_current());
    return row->call();
}

static int call_shielded(void *arg)
{
    const struct row *row = arg;
    weft_cancel(weft_task_current());
    weft_shield_enter();
    int result = row->call();
    weft_shield_leave();
    return result;
}

static int return_0(void *arg)
{
    (void)arg;
    return 0;
}

static void begin_row(void)
{
    weft_scope_options options = { .runtime = rt };
    memset(&triggered, 0, sizeof triggered);
    weft_shutdown_trigger(&triggered);
    CHECK_EQ(weft_join_set_begin(&ready_set, &options), 0);
    CHECK_EQ(weft_join_set_go(&ready_set, return_0, NULL), 0);
    while (weft_scope_children(&ready_set.scope) > 0) {
        (void)sched_yield();
    }
    for (unsigned i = 0; i < 2; i++) {
        ready_tasks[i] = test_go(rt, return_0, NULL);
        while (!weft_task_is_done(ready_tasks[i])) {
            (void)sched_yield();
        }
    }
    atomic_store(&calls, 0);
}

static void end_row(void)
{
    CHECK_EQ(weft_join_set_end(&ready_set), 0);
    for (unsigned i = 0; i < 2; i++) {
        if (ready_tasks[i] != NULL) {
            CHECK_EQ(test_join(ready_tasks[i]), 0);
        }
    }
}

static int run_row(const struct row *row, int (*function)(void *arg), bool in_job)
{
    weft_task *task;
    if (!in_job) {
        return test_run(rt, function, (void *)(uintptr_t)row);
    }
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, function, (void *)(uintptr_t)row), 0);
    return test_join(task);
}

static void check_result(const struct row *row, const char *where, int result, int wanted,
                         unsigned calls_wanted)
{
    unsigned count = atomic_load(&calls);
    if (result != wanted || count != calls_wanted) {
        test_fail(__FILE__, __LINE__, "%s in a %s: %d and %u calls, wanted %d and %u", row->name,
                  where, result, count, wanted, calls_wanted);
    }
}

static void check_row(const struct row *row, bool in_job)
{
    begin_row();
    int result = run_row(row, call_canceled, in_job);
    check_result(row, in_job ? "cancelled job" : "cancelled fiber", result, row->cancelled, 0);
    result = run_row(row, call_shielded, in_job);
    check_result(row, in_job ? "shielded job" : "shielded fiber", result, row->otherwise,
                 row->calls);
    end_row();
}

static void canceled_task_gets_ecanceled_from_every_call(void)
{
    rt = test_start(2);
    for (unsigned i = 0; i < ROWS; i++) {
        check_row(&rows[i], false);
        if (!rows[i].on_fiber_only) {
            check_row(&rows[i], true);
        }
    }
    weft_runtime_destroy(rt);
}

/* --- Deadline in the past --------------------------------------------------------------------- */

static int start_too_late(void *arg)
{
    const start_fn *start = arg;
    weft_scope scope;
    weft_scope_options options = { .runtime = rt, .deadline = weft_now() };
    weft_scope_begin(&scope, &options);
    CHECK_EQ((*start)(&scope), WEFT_ECANCELED);
    CHECK_EQ(weft_scope_children(&scope), 0);
    CHECK_EQ(weft_scope_end(&scope), WEFT_ETIMEDOUT);
    return 0;
}

static void scope_past_deadline_starts_no_child(void)
{
    rt = test_start(1);
    atomic_store(&calls, 0);
    for (unsigned i = 0; i < STARTS; i++) {
        weft_task *job;
        start_fn start = starts[i].start;
        CHECK_EQ(start_too_late(&start), 0); /* On a plain thread. */
        CHECK_EQ(test_run(rt, start_too_late, &start), 0);
        CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, start_too_late, &start), 0);
        CHECK_EQ(test_join(job), 0);
        if (atomic_load(&calls) != 0) {
            test_fail(__FILE__, __LINE__, "%s has started a child", starts[i].name);
        }
    }
    weft_runtime_destroy(rt);
}

static int call_too_late(void *arg)
{
    (void)arg;
    CHECK_EQ(weft_go_each(1, 0, count_index, NULL, weft_now()), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_call_until(count_call, NULL, weft_now()), WEFT_ETIMEDOUT);
    return 0;
}

static void call_after_deadline_calls_no_function(void)
{
    rt = test_start(1);
    atomic_store(&calls, 0);
    CHECK_EQ(test_run(rt, call_too_late, NULL), 0);
    CHECK_EQ(atomic_load(&calls), 0);
    weft_runtime_destroy(rt);
}

static int wait_for_cancel(void *arg)
{
    (void)arg;
    CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ECANCELED);
    return WEFT_ECANCELED;
}

/*
 * Goal:   a start that waits for capacity ends at the scope's deadline, also on a plain thread,
 *         where the scope has no timer.
 * Method: the only child ends when it is canceled, and only the deadline cancels it.
 */
static int start_beyond_limit(void *arg)
{
    (void)arg;
    weft_scope scope;
    weft_scope_options options = { .runtime = rt,
                                   .limit = 1,
                                   .deadline = weft_after(20 * WEFT_MS) };
    weft_scope_begin(&scope, &options);
    if (weft_scope_go(&scope, wait_for_cancel, NULL) == 0) { /* Fails only on a slow machine. */
        CHECK_EQ(weft_scope_go(&scope, count_call, NULL), WEFT_ECANCELED);
    }
    CHECK_EQ(weft_scope_end(&scope), WEFT_ETIMEDOUT);
    return 0;
}

static void deadline_ends_wait_for_capacity(void)
{
    rt = test_start(1);
    atomic_store(&calls, 0);
    CHECK_EQ(start_beyond_limit(NULL), 0);
    CHECK_EQ(test_run(rt, start_beyond_limit, NULL), 0);
    CHECK_EQ(atomic_load(&calls), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(canceled_task_gets_ecanceled_from_every_call),
    TEST(scope_past_deadline_starts_no_child),
    TEST(call_after_deadline_calls_no_function),
    TEST(deadline_ends_wait_for_capacity),
})
