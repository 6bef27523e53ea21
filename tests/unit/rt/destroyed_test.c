/* SPDX-License-Identifier: MIT */
/*
 * destroyed_test.c - calls from a plain thread while a runtime is destroyed, and afterwards.
 * Each call is safe or aborts with a message.
 */
#include <weft.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../base/asleep.h"
#include "base/atomic.h"
#include "gate.h"
#include "rt.h"
#include "test.h"

/* --- Calls with the runtime handle ------------------------------------------------------------ */

static weft_runtime *gone;

static void make_gone(void)
{
    gone = test_start(1);
    weft_runtime_destroy(gone);
}

static int return_0(void *arg)
{
    (void)arg;
    return 0;
}

static void spawn_late(void)
{
    weft_spec spec = { .body = test_return_7 };
    make_gone();
    (void)!weft_runtime_spawn(gone, NULL, &spec);
}

static void spawn_wait_late(void)
{
    weft_spec spec = { .body = test_return_7 };
    make_gone();
    (void)!weft_runtime_spawn_wait(gone, NULL, &spec, WEFT_NEVER);
}

static void go_late(void)
{
    weft_fiber_spec spec = { .function = return_0 };
    make_gone();
    (void)!weft_runtime_go(gone, NULL, &spec);
}

static void spawn_blocking_late(void)
{
    make_gone();
    (void)!weft_runtime_spawn_blocking(gone, NULL, return_0, NULL);
}

static void par_run_late(void)
{
    make_gone();
    (void)weft_par_run(gone, return_0, NULL);
}

static void par_broadcast_late(void)
{
    make_gone();
    (void)!weft_par_broadcast(gone, return_0, NULL);
}

static void io_late(void)
{
    weft_io_info info = { 0 };
    make_gone();
    (void)!weft_runtime_io(gone, &info);
}

static void stats_late(void)
{
    weft_stats stats;
    make_gone();
    weft_runtime_stats(gone, &stats);
}

static void worker_stats_late(void)
{
    weft_worker_stats stats;
    make_gone();
    (void)!weft_worker_stats_read(gone, 0, &stats);
}

static void workers_late(void)
{
    make_gone();
    (void)weft_runtime_workers(gone);
}

static void shutdown_late(void)
{
    make_gone();
    weft_runtime_shutdown(gone);
}

static void destroy_twice(void)
{
    make_gone();
    weft_runtime_destroy(gone);
}

static void scope_late(void)
{
    make_gone();
    weft_scope scope;
    weft_scope_options options = { .runtime = gone };
    weft_scope_begin(&scope, &options);
    (void)!weft_scope_go(&scope, return_0, NULL);
}

static void use_of_destroyed_runtime_aborts_with_message(void)
{
    static const struct {
        void (*use)(void);
        const char *sentence;
    } uses[] = {
        { spawn_late, "weft_runtime_spawn: the runtime was destroyed before" },
        { spawn_wait_late, "weft_runtime_spawn_wait: the runtime was destroyed before" },
        { go_late, "weft_runtime_go: the runtime was destroyed before" },
        { spawn_blocking_late, "weft_runtime_spawn_blocking: the runtime was destroyed before" },
        { par_run_late, "weft_par_run: the runtime was destroyed before" },
        { par_broadcast_late, "weft_par_broadcast: the runtime was destroyed before" },
        { io_late, "weft_runtime_io: the runtime was destroyed before" },
        { stats_late, "weft_runtime_stats: the runtime was destroyed before" },
        { worker_stats_late, "weft_worker_stats_read: the runtime was destroyed before" },
        { workers_late, "weft_runtime_workers: the runtime was destroyed before" },
        { shutdown_late, "weft_runtime_shutdown: the runtime was destroyed before" },
        { destroy_twice, "weft_runtime_destroy: the runtime was destroyed before" },
        { scope_late, "weft_runtime_go: the runtime was destroyed before" },
    };
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        CHECK_ABORTS(uses[i].use, uses[i].sentence);
    }
    CHECK_ABORTS(spawn_late, "call weft_runtime_shutdown() first");
}

static int destroy_inside(void *rt)
{
    weft_runtime_destroy(rt);
    return 0;
}

static void destroy_in_par_run(void)
{
    weft_runtime *rt = test_start(1);
    (void)weft_par_run(rt, destroy_inside, rt);
}

static void destroy_inside_par_run_aborts_with_message(void)
{
    CHECK_ABORTS(destroy_in_par_run, "weft_runtime_destroy: called on a thread of this runtime");
}

/* Handles of destroyed runtimes are kept for a while, but not forever. */
static void many_destroyed_runtimes_keep_little_memory(void)
{
    size_t before = 0;
    for (unsigned i = 0; i < 3000; i++) {
        weft_runtime *rt = test_start(1);
        weft_runtime_destroy(rt);
        if (i == 1500) {
            before = test_rss_bytes();
        }
    }
    CHECK_LT(test_rss_bytes(), before + (4u << 20) + (test_is_sanitized() ? before : 0));
}

/* --- Calls that block in the runtime ---------------------------------------------------------- */

static atomic_bool is_inside;
static _Atomic(uint64_t) insider;

static int sum_slowly(size_t first, size_t end, void *arg)
{
    uint64_t sum = 0;
    for (size_t i = first; i < end; i++) {
        sum += i * i;
    }
    (void)atomic_fetch_add((_Atomic(uint64_t) *)arg, sum);
    return 0;
}

static int compute(void *arg)
{
    weft_runtime *rt = arg;
    _Atomic(uint64_t) sum = 0;
    atomic_store(&is_inside, true);
    /* Continues until the runtime rejects tasks, and a little longer. */
    weft_fiber_spec spec = { .function = return_0 };
    while (weft_runtime_go(rt, NULL, &spec) != WEFT_ESHUTDOWN) {
        CHECK_EQ(weft_for(0, 10000, sum_slowly, &sum, NULL), 0);
    }
    for (unsigned i = 0; i < 20; i++) {
        CHECK_EQ(weft_for(0, 10000, sum_slowly, &sum, NULL), 0);
    }
    return 0;
}

static void *run_inside(void *rt)
{
    CHECK_EQ(weft_par_run(rt, compute, rt), 0);
    return NULL;
}

/* On a worker: waits until the shutdown. */
static int stay(void *arg)
{
    (void)arg;
    atomic_store(&is_inside, true);
    return weft_sleep(WEFT_NEVER);
}

static void *broadcast_inside(void *rt)
{
    CHECK_EQ(weft_par_broadcast(rt, stay, NULL), WEFT_ECANCELED);
    return NULL;
}

static void *spawn_wait_inside(void *rt)
{
    weft_spec spec = { .body = test_return_7 };
    atomic_store(&insider, own_tid());
    atomic_store(&is_inside, true);
    CHECK_EQ(weft_runtime_spawn_wait(rt, NULL, &spec, WEFT_NEVER), WEFT_ESHUTDOWN);
    return NULL;
}

static weft_runtime *start_with_inject_capacity_1(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.inject_capacity = 1;
    return test_start_with(&config);
}

/* Keeps the worker busy until it is canceled. */
static int hold_worker(weft_co *co, void *state)
{
    (void)co;
    atomic_store(*(atomic_bool **)state, true);
    while (!weft_cancelled()) {
        wf_cpu_relax();
    }
    return 0;
}

/* Keeps the worker busy and fills the inject queue. */
static void fill_inject_queue(weft_runtime *rt)
{
    static atomic_bool is_held;
    atomic_bool *held = &is_held;
    atomic_store(&is_held, false);
    weft_spec holder = { .body = hold_worker, .state = &held, .state_size = sizeof held };
    weft_spec spec = { .body = test_return_7 };
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &holder), 0);
    while (!atomic_load(&is_held)) {
        (void)sched_yield();
    }
    while (weft_runtime_spawn(rt, NULL, &spec) == 0) {
    }
}

/*
 * Goal:   a destroy waits for calls that other threads have begun and that block in the
 *         runtime.
 * Method: a sanitizer reports any use-after-free.
 */
static void destroy_waits_for_calls_in_progress(void)
{
    static void *(*const insiders[])(void *) = { run_inside, broadcast_inside, spawn_wait_inside };
    for (unsigned i = 0; i < 30; i++) {
        pthread_t thread;
        bool waits = insiders[i % 3] == spawn_wait_inside;
        weft_runtime *rt = waits ? start_with_inject_capacity_1() : test_start(2);
        if (waits) {
            fill_inject_queue(rt);
        }
        atomic_store(&is_inside, false);
        CHECK_EQ(pthread_create(&thread, NULL, insiders[i % 3], rt), 0);
        while (!atomic_load(&is_inside)) {
            (void)sched_yield();
        }
        if (waits) {
            wait_until_asleep(atomic_load(&insider));
        }
        weft_runtime_destroy(rt);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
}

/* --- Calls with handles of tasks, wakers and timers ------------------------------------------- */

/* Objects that outlive their runtime. */
struct rig {
    weft_task *task; /* waits for the gate until it is canceled */
    struct gate gate;
    weft_waker *waker;
    weft_timer timer;
    bool is_joined;
};

static void use_cancel(struct rig *rig)
{
    weft_cancel(rig->task);
}

static void use_look(struct rig *rig)
{
    (void)weft_task_is_done(rig->task);
    CHECK(weft_task_id(rig->task) != 0);
    CHECK_EQ(strcmp(weft_task_name(rig->task), "rig"), 0);
}

static void use_retain_and_detach(struct rig *rig)
{
    weft_detach(weft_task_retain(rig->task));
}

static void record_join(struct rig *rig, int err, int result)
{
    rig->is_joined = err == 0;
    CHECK(err == 0 ? result == WEFT_ECANCELED : err == -EAGAIN || err == WEFT_ETIMEDOUT);
}

static void use_join(struct rig *rig)
{
    int result = 0;
    if (!rig->is_joined) {
        int err = weft_join(rig->task, &result, WEFT_NEVER);
        record_join(rig, err, result);
    }
}

static void use_join_with_deadline(struct rig *rig)
{
    int result = 0;
    if (!rig->is_joined) {
        int err = weft_join(rig->task, &result, weft_after(100 * WEFT_US));
        record_join(rig, err, result);
    }
}

static void use_try_join(struct rig *rig)
{
    int result = 0;
    if (!rig->is_joined) {
        int err = weft_try_join(rig->task, &result);
        record_join(rig, err, result);
    }
}

static void use_join_all(struct rig *rig)
{
    int result = 0;
    weft_task *tasks[] = { rig->task };
    if (!rig->is_joined) {
        int err = weft_join_all(tasks, 1, &result, weft_after(100 * WEFT_US));
        rig->is_joined = tasks[0] == NULL;
        CHECK_EQ(err, rig->is_joined ? WEFT_ECANCELED : WEFT_ETIMEDOUT);
    }
}

static void use_waker(struct rig *rig)
{
    weft_waker_wake(rig->waker);
}

static void use_clones_of_waker(struct rig *rig)
{
    weft_waker_fire(weft_waker_clone(rig->waker));
    weft_waker_drop(weft_waker_clone(rig->waker));
}

static void use_token(struct rig *rig)
{
    weft_token token = { { 0 }, 0, { 0 } };
    weft_on_cancel on_cancel;
    weft_on_cancel_add_task(&on_cancel, &token, rig->task);
    weft_token_cancel(&token);
    CHECK(!weft_on_cancel_remove(&on_cancel));
    weft_token_fini(&token);
}

static void use_timer(struct rig *rig)
{
    (void)weft_timer_stop(&rig->timer);
}

static const struct row {
    const char *name;
    void (*use)(struct rig *rig);
} rows[] = {
    { "weft_cancel", use_cancel },
    { "weft_task_is_done, _id, _name", use_look },
    { "weft_task_retain, weft_detach", use_retain_and_detach },
    { "weft_join", use_join },
    { "weft_join with a deadline", use_join_with_deadline },
    { "weft_try_join", use_try_join },
    { "weft_join_all", use_join_all },
    { "weft_waker_wake", use_waker },
    { "weft_waker_clone, _fire, _drop", use_clones_of_waker },
    { "weft_on_cancel_add_task, weft_token_cancel", use_token },
    { "weft_timer_stop", use_timer },
};

enum {
    ROWS = sizeof rows / sizeof rows[0]
};

static void never_called(void *arg)
{
    (void)arg;
    CHECK(false);
}

static int rig_main(void *arg)
{
    struct rig *rig = arg;
    weft_timer_start(&rig->timer, weft_after(3600 * WEFT_S), 0, never_called, NULL);
    return weft_await(&rig->gate.future, WEFT_NEVER);
}

static void rig_begin(struct rig *rig, weft_runtime *rt)
{
    *rig = (struct rig){ .gate = gate_make(CANCEL_AT_ONCE) };
    weft_fiber_spec spec = { .function = rig_main, .arg = rig, .name = "rig" };
    CHECK_EQ(weft_runtime_go(rt, &rig->task, &spec), 0);
    test_wait_for(&rig->gate.polls, 1);
    while (rig->waker == NULL) {
        rig->waker = atomic_exchange(&rig->gate.waker, NULL);
    }
}

static void rig_end(struct rig *rig)
{
    if (!rig->is_joined) {
        weft_detach(rig->task);
    }
    weft_waker_drop(rig->waker);
    gate_fini(&rig->gate);
}

struct race {
    struct rig *rig;
    const struct row *row;
    atomic_bool is_over;
    atomic_bool has_begun;
};

static void *use_until_over(void *arg)
{
    struct race *race = arg;
    atomic_store(&race->has_begun, true);
    while (!atomic_load(&race->is_over)) {
        race->row->use(race->rig);
    }
    race->row->use(race->rig);
    return NULL;
}

/*
 * Goal:   handles of tasks, wakers and timers outlive their runtime.
 * Method: a plain thread uses them continuously while the runtime is destroyed, and afterwards.
 *         A sanitizer reports any use-after-free.
 */
static void handles_outlive_their_runtime(void)
{
    for (unsigned i = 0; i < ROWS * 6; i++) {
        weft_runtime *rt = test_start(i % 2 + 1);
        struct rig rig;
        struct race race = { .rig = &rig, .row = &rows[i % ROWS] };
        pthread_t thread;
        rig_begin(&rig, rt);
        CHECK_EQ(pthread_create(&thread, NULL, use_until_over, &race), 0);
        while (!atomic_load(&race.has_begun)) {
            (void)sched_yield();
        }
        weft_runtime_destroy(rt);
        atomic_store(&race.is_over, true);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK(rig.is_joined || weft_task_is_done(rig.task));
        rig_end(&rig);
    }
}

/* A plain thread ends a scope whose deadline has a timer in the destroyed runtime. */
static void scope_outlives_its_runtime(void)
{
    for (unsigned i = 0; i < 10; i++) {
        weft_runtime *rt = test_start(2);
        weft_scope_options options = { .runtime = rt, .deadline = weft_after(3600 * WEFT_S) };
        weft_scope scope;
        weft_scope_begin(&scope, &options);
        weft_runtime_destroy(rt);
        CHECK_EQ(weft_scope_end(&scope), 0);
    }
}

TEST_MAIN({
    TEST(use_of_destroyed_runtime_aborts_with_message),
    TEST(destroy_inside_par_run_aborts_with_message),
    TEST_NATIVE(many_destroyed_runtimes_keep_little_memory, "takes memory itself"),
    TEST(destroy_waits_for_calls_in_progress),
    TEST(handles_outlive_their_runtime),
    TEST(scope_outlives_its_runtime),
})
