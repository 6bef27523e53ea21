/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>

#include <weft.h>

#include "everywhere.h"
#include "rt.h"
#include "test.h"

static _Atomic(uint64_t) runs;

static int count(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    return 0;
}

static int spawn_many(void *arg)
{
    (void)arg;
    for (uint64_t n = 0; n < test_scale(20000); n = n * 5 + 1) {
        weft_par_scope scope;
        atomic_store(&runs, 0);
        weft_par_scope_begin(&scope, NULL);
        for (uint64_t i = 0; i < n; i++) {
            weft_par_spawn(&scope, count, NULL);
        }
        CHECK_EQ(weft_par_scope_end(&scope), 0);
        CHECK_EQ(atomic_load(&runs), n);
    }
    return 0;
}

static void each_spawn_runs_once(void)
{
    test_run_everywhere(spawn_many, NULL);
}

/* A tree in which each node spawns its children into the same scope. */
static weft_par_scope *forest;

static int grow(void *arg)
{
    uintptr_t depth = (uintptr_t)arg;
    atomic_fetch_add(&runs, 1);
    for (int i = 0; depth > 0 && i < 3; i++) {
        weft_par_spawn(forest, grow, (void *)(depth - 1));
    }
    return 0;
}

static int grow_forest(void *arg)
{
    (void)arg;
    weft_par_scope scope;
    forest = &scope;
    atomic_store(&runs, 0);
    weft_par_scope_begin(&scope, NULL);
    weft_par_spawn(&scope, grow, (void *)7);
    CHECK_EQ(weft_par_scope_end(&scope), 0);
    CHECK_EQ(atomic_load(&runs), (2187 * 3 - 1) / 2);
    return 0;
}

static void spawned_function_can_spawn(void)
{
    test_run_everywhere(grow_forest, NULL);
}

static int nest(void *arg)
{
    uintptr_t depth = (uintptr_t)arg;
    weft_par_scope scope;
    weft_par_scope_begin(&scope, NULL);
    for (int i = 0; depth > 0 && i < 3; i++) {
        weft_par_spawn(&scope, nest, (void *)(depth - 1));
    }
    weft_par_spawn(&scope, count, NULL);
    return weft_par_scope_end(&scope);
}

static int nest_scopes(void *arg)
{
    (void)arg;
    atomic_store(&runs, 0);
    CHECK_EQ(nest((void *)5), 0);
    CHECK_EQ(atomic_load(&runs), (243 * 3 - 1) / 2);
    return 0;
}

static void scopes_nest(void)
{
    test_run_everywhere(nest_scopes, NULL);
}

static int wait_and_count(void *arg)
{
    CHECK_EQ(weft_sleep(10 * WEFT_US), 0);
    return count(arg);
}

/* The spawner waits in between, and so do the spawned functions. */
static int spawn_and_wait(void *arg)
{
    (void)arg;
    weft_par_scope scope;
    atomic_store(&runs, 0);
    weft_par_scope_begin(&scope, NULL);
    for (int i = 0; i < 50; i++) {
        weft_par_spawn(&scope, wait_and_count, NULL);
        weft_par_spawn(&scope, count, NULL);
        if (i % 10 == 9) {
            CHECK_EQ(weft_sleep(10 * WEFT_US), 0);
        }
    }
    CHECK_EQ(weft_par_scope_end(&scope), 0);
    CHECK_EQ(atomic_load(&runs), 100);
    return 0;
}

static void spawner_and_spawned_functions_may_wait(void)
{
    test_run_everywhere(spawn_and_wait, NULL);
}

static int fail(void *arg)
{
    (void)arg;
    return -33;
}

static weft_stop stop;

static int end_early(void *arg)
{
    (void)arg;
    weft_par_scope scope;
    weft_par_scope_begin(&scope, NULL);
    weft_par_spawn(&scope, count, NULL);
    weft_par_spawn(&scope, fail, NULL);
    weft_par_spawn(&scope, count, NULL);
    CHECK_EQ(weft_par_scope_end(&scope), -33);
    atomic_store(&runs, 0);
    weft_par_scope_begin(&scope, &stop);
    for (int i = 0; i < 10; i++) {
        weft_par_spawn(&scope, count, NULL);
    }
    CHECK_EQ(weft_par_scope_end(&scope), WEFT_ECANCELED);
    CHECK_EQ(atomic_load(&runs), 0);
    return 0;
}

static void errors_and_cancels_end_call(void)
{
    weft_stop_set(&stop);
    test_run_everywhere(end_early, NULL);
}

static _Atomic(uint64_t) begun;

static int meet(void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    test_wait_for(&begun, 2);
    return 0;
}

static int meet_concurrently(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20; i++) {
        weft_par_scope scope;
        atomic_store(&begun, 0);
        weft_par_scope_begin(&scope, NULL);
        weft_par_spawn(&scope, meet, NULL);
        weft_par_spawn(&scope, meet, NULL);
        CHECK_EQ(weft_par_scope_end(&scope), 0);
    }
    return 0;
}

/* Goal: a spawn wakes a parked worker. Method: each of two spawns waits for the other one. */
static void spawns_run_concurrently(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, meet_concurrently, NULL), 0);
    CHECK_EQ(weft_par_run(rt, meet_concurrently, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(each_spawn_runs_once),
    TEST(spawned_function_can_spawn),
    TEST(scopes_nest),
    TEST(spawner_and_spawned_functions_may_wait),
    TEST(errors_and_cancels_end_call),
    TEST(spawns_run_concurrently),
})
