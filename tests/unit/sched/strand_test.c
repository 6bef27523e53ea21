/* SPDX-License-Identifier: MIT */
#include "sched/strand.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <weft.h>

#include "../fiber/child.h"
#include "base/clock.h"
#include "rt.h"
#include "rt/runtime.h"
#include "sched/sched.h"
#include "test.h"

enum {
    FIBERS = 300,
    REFUSALS = 10000,
    FEW = 40, /* maximum of cached contexts and contexts in use */
};

static _Atomic(uint64_t) runs;

static uint32_t strands_made(weft_runtime *rt)
{
    return wf_strands_made(&rt->sched->strands);
}

static void count(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
}

static int fork_once(void *arg)
{
    (void)arg;
    weft_join2(count, NULL, count, NULL);
    return 0;
}

/* A fiber that ends leaves its fork context to others. */
static void consecutive_fibers_share_fork_contexts(void)
{
    for (unsigned workers = 1; workers <= 4; workers *= 4) {
        weft_runtime *rt = test_start(workers);
        for (unsigned i = 0; i < FIBERS; i++) {
            CHECK_EQ(test_run(rt, fork_once, NULL), 0);
        }
        CHECK_LE(strands_made(rt), FEW);
        weft_runtime_destroy(rt);
    }
}

static int fork_and_wait(void *arg)
{
    (void)fork_once(NULL);
    atomic_fetch_add((_Atomic(uint64_t) *)arg, 1);
    return weft_sleep_until(WEFT_NEVER);
}

static void waiting_fiber_without_forks_has_no_fork_context(void)
{
    weft_runtime *rt = test_start(2);
    _Atomic(uint64_t) waiting = 0;
    for (unsigned i = 0; i < FIBERS; i++) {
        weft_detach(test_go(rt, fork_and_wait, &waiting));
    }
    test_wait_for(&waiting, FIBERS);
    CHECK_LE(strands_made(rt), FEW);
    weft_runtime_destroy(rt);
}

static _Atomic(uint64_t) all_there;

static int wait_with_fork(void *arg)
{
    (void)arg;
    weft_forked forked;
    weft_fork(&forked, count, NULL);
    atomic_fetch_add(&all_there, 1);
    while (atomic_load(&all_there) < FIBERS) {
        CHECK_EQ(weft_yield(), 0);
    }
    weft_fork_join(&forked);
    return 0;
}

static void waiting_fibers_with_forks_have_one_context_each(void)
{
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        weft_runtime *rt = test_start(workers);
        weft_task *tasks[FIBERS];
        atomic_store(&runs, 0);
        atomic_store(&all_there, 0);
        for (unsigned i = 0; i < FIBERS; i++) {
            tasks[i] = test_go(rt, wait_with_fork, NULL);
        }
        for (unsigned i = 0; i < FIBERS; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        CHECK_EQ(atomic_load(&runs), FIBERS);
        weft_runtime_destroy(rt);
    }
}

static int fork_without_memory(void *arg)
{
    (void)arg;
    struct rlimit none = { .rlim_cur = 0, .rlim_max = RLIM_INFINITY };
    CHECK_EQ(setrlimit(RLIMIT_AS, &none), 0);
    return fork_once(NULL);
}

static void run_without_memory(void *arg)
{
    (void)arg;
    weft_runtime *rt = test_start(1);
    atomic_store(&runs, 0);
    CHECK_EQ(test_run(rt, fork_without_memory, NULL), 0);
    CHECK_EQ(atomic_load(&runs), 2);
    CHECK_EQ(strands_made(rt), 0);
    weft_runtime_destroy(rt);
}

static void forks_without_fork_context_run_at_their_joins(void)
{
    if (!test_is_sanitized()) { /* Sanitizers need memory at any time. */
        child_must_succeed(run_without_memory, NULL);
    }
}

/* Allocations that this thread has been refused; UINT64_MAX: it is refused none. */
static _Thread_local uint64_t refused = UINT64_MAX;

static void *refuse(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    if (refused != UINT64_MAX) {
        refused++;
        return NULL;
    }
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void give_back(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    free(ptr);
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int do_nothing_in_range(size_t first, size_t end, void *arg)
{
    (void)first;
    (void)end;
    return do_nothing(arg);
}

static int fork_refused(void *arg)
{
    (void)arg;
    int64_t start = wf_clock_real();
    refused = 0;
    for (unsigned i = 0; i < REFUSALS; i++) {
        weft_par_scope scope;
        CHECK_EQ(fork_once(NULL), 0);
        CHECK_EQ(weft_for(0, 1, do_nothing_in_range, NULL, NULL), 0);
        weft_par_scope_begin(&scope, NULL);
        weft_par_spawn(&scope, do_nothing, NULL);
        CHECK_EQ(weft_par_scope_end(&scope), 0);
    }
    uint64_t tries = refused;
    refused = UINT64_MAX;
    CHECK_GE(tries, 1);
    CHECK_LE(tries, 1 + (uint64_t)(wf_clock_real() - start) / WF_ATTACH_AGAIN_NS);
    return 0;
}

/* Every kind of call that wants a fork context, on a fiber and on an external thread. */
static void refused_fork_context_is_requested_once_per_millisecond(void)
{
    weft_allocator allocator = { .alloc = refuse, .free = give_back };
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.allocator = &allocator;
    weft_runtime *rt = test_start_with(&config);
    CHECK_EQ(test_run(rt, fork_refused, NULL), 0);
    CHECK_EQ(weft_par_run(rt, fork_refused, NULL), 0);
    weft_runtime_destroy(rt);
}

static void suspended_fork_list_is_initially_empty(void)
{
    struct wf_away away = { .count = 0 };
    wf_away_init(&away);
    CHECK(!wf_away_has_jobs(&away));
    CHECK(wf_away_steal(&away).job == NULL);
}

TEST_MAIN({
    TEST_NATIVE(forks_without_fork_context_run_at_their_joins, "has no limits of memory"),
    TEST(refused_fork_context_is_requested_once_per_millisecond),
    TEST(suspended_fork_list_is_initially_empty),
    TEST(consecutive_fibers_share_fork_contexts),
    TEST(waiting_fiber_without_forks_has_no_fork_context),
    TEST(waiting_fibers_with_forks_have_one_context_each),
})
