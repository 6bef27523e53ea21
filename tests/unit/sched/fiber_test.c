/* SPDX-License-Identifier: MIT */
#include "sched/fiber.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "base/futex.h"
#include "base/lock.h"
#include "gate.h"
#include "mess.h"
#include "rt.h"
#include "rt/runtime.h"
#include "sched/sched.h"
#include "sched/worker.h"
#include "scheduler.h"
#include "test.h"
#include "timing.h"

static _Atomic(uint64_t) runs;

static weft_worker_stats stats_of(weft_runtime *rt, unsigned worker)
{
    weft_worker_stats stats;
    CHECK_EQ(weft_worker_stats_read(rt, worker, &stats), 0);
    return stats;
}

static int add_one(void *arg)
{
    atomic_fetch_add(&runs, 1);
    return *(int *)arg + 1;
}

static void fiber_gets_argument_and_returns_result(void)
{
    weft_runtime *rt = test_start(2);
    static const int values[] = { 0, 41, -2, -4097, INT_MAX - 1, INT_MIN + 4 };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        int value = values[i];
        CHECK_EQ(test_run(rt, add_one, &value), values[i] + 1);
    }
    weft_runtime_destroy(rt);
}

static int sum_bytes(void *arg)
{
    const unsigned char *bytes = arg;
    CHECK_EQ((uintptr_t)arg % 16, 0);
    CHECK_EQ(weft_yield(), 0);
    int sum = 0;
    for (unsigned i = 0; i < 1000; i++) {
        sum += bytes[i];
    }
    return sum;
}

static void argument_with_size_is_copied(void)
{
    weft_runtime *rt = test_start(1);
    unsigned char bytes[1000];
    memset(bytes, 3, sizeof bytes);
    weft_fiber_spec spec = { .function = sum_bytes, .arg = bytes, .arg_size = sizeof bytes };
    weft_task *task;
    CHECK_EQ(weft_runtime_go(rt, &task, &spec), 0);
    memset(bytes, 0, sizeof bytes);
    CHECK_EQ(test_join_soon(task), 3000);
    weft_runtime_destroy(rt);
}

static void invalid_spec_is_refused(void)
{
    weft_runtime *rt = test_start(2);
    static const weft_fiber_spec specs[] = {
        { .function = NULL },
        { .function = add_one, .stack_size = (8 << 20) + 1 },
        { .function = add_one, .pinned = WEFT_PINNED_TO(2) },
        { .function = add_one, .arg_size = SIZE_MAX },
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        weft_task *task;
        CHECK_EQ(weft_runtime_go(rt, &task, &specs[i]), -EINVAL);
    }
    weft_runtime_destroy(rt);
}

/* Uses the given number of bytes of stack, in a way that the compiler cannot optimize out. */
static int use_stack(void *arg)
{
    size_t bytes = *(size_t *)arg;
    volatile unsigned char array[bytes];
    for (size_t i = 0; i < bytes; i += 4096) {
        array[i] = 1;
    }
    array[bytes - 1] = 2;
    return array[bytes - 1];
}

/* The same, and keeps its stack while other fibers need one. */
static int sleep_deep(void *arg)
{
    CHECK_EQ(use_stack(arg), 2);
    atomic_fetch_add(&runs, 1);
    return weft_sleep_until(WEFT_NEVER);
}

static void stack_has_requested_size(void)
{
    weft_runtime *rt = test_start(1);
    for (size_t size = 16 << 10; size <= 8 << 20; size *= 2) {
        size_t bytes = size - (8 << 10); /* The rest is for frames, with space for checks. */
        weft_fiber_spec spec = { .function = use_stack, .arg = &bytes, .stack_size = size };
        weft_task *task;
        CHECK_EQ(weft_runtime_go(rt, &task, &spec), 0);
        CHECK_EQ(test_join_soon(task), 2);
    }
    weft_runtime_destroy(rt);
}

/* Names of the fibers in the order in which they ran. */
static unsigned char order[64];
static unsigned order_count;

static int yield_in_turn(void *arg)
{
    for (unsigned i = 0; i < 3; i++) {
        order[order_count++] = *(unsigned char *)arg;
        CHECK_EQ(weft_yield(), 0);
    }
    return 0;
}

static int start_two(void *arg)
{
    (void)arg;
    static unsigned char names[] = "ab";
    weft_task *tasks[2];
    for (unsigned i = 0; i < 2; i++) {
        weft_fiber_spec spec = { .function = yield_in_turn,
                                 .arg = &names[i],
                                 .pinned = WEFT_PINNED_TO(0) };
        CHECK_EQ(weft_go_with(&tasks[i], &spec), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(test_join(tasks[i]), 0);
    }
    return 0;
}

static void yield_lets_others_run(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, start_two, NULL), 0);
    CHECK_EQ(order_count, 6);
    CHECK_EQ(memcmp(order, "ababab", 6), 0);
    weft_runtime_destroy(rt);
}

static int yield_alone(void *arg)
{
    (void)arg;
    struct wf_worker *worker = wf_worker_current();
    for (unsigned i = 0; i < 1000; i++) {
        worker->budget = 1;
        CHECK_EQ(weft_yield(), 0);
        CHECK_EQ(worker->budget, WF_WORKER_BUDGET);
    }
    return 0;
}

static void yield_without_others_starts_new_poll(void)
{
    weft_runtime *rt = test_start(1);
    uint64_t polls = stats_of(rt, 0).polls;
    CHECK_EQ(test_run(rt, yield_alone, NULL), 0);
    CHECK_GE(stats_of(rt, 0).polls - polls, 1001);
    weft_runtime_destroy(rt);
}

/*
 * Goal:   a joiner of the fiber that it has just started switches directly to it, and that fiber
 *         switches directly back.
 * Method: the runtime counts it. Now and then the worker loop runs first, for its other duties.
 */
static int spawn_and_join(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++) {
        weft_task *task;
        test_postpone_clock();
        CHECK_EQ(weft_go(&task, add_one, &i), 0);
        CHECK_EQ(test_join(task), i + 1);
    }
    return 0;
}

static void join_of_new_fiber_switches_directly(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    weft_runtime *rt = test_start_with(&config);
    CHECK_EQ(test_run(rt, spawn_and_join, NULL), 0);
    CHECK_GE(stats_of(rt, 0).handovers, 1000);
    weft_runtime_destroy(rt);
}

static int leave_a_mess(void *arg)
{
    (void)atomic_fetch_add(&runs, 1);
    return test_leave_a_mess(arg);
}

static int start_many_and_wait(void *arg)
{
    (void)arg;
    errno = 7;
    for (unsigned i = 0; i < 100; i++) {
        CHECK_EQ(weft_go(NULL, leave_a_mess, NULL), 0);
    }
    while (atomic_load(&runs) < 100) {
        CHECK_EQ(weft_yield(), 0);
    }
    CHECK_EQ(errno, 7);
    CHECK_EQ(wf_fp_control_read() & TEST_ROUNDING, 0);
    return 0;
}

/* Goal: a fiber that starts where another has ended sees none of its state. */
static void fiber_starts_without_state_of_others(void)
{
    weft_runtime *rt = test_start(1);
    atomic_store(&runs, 0);
    CHECK_EQ(test_run(rt, start_many_and_wait, NULL), 0);
    weft_runtime_destroy(rt);
}

/* Two fibers that wake each other and wait. */
struct side {
    struct side *other;
    _Atomic(weft_waker *) waker;
    _Atomic(uint64_t) turn;
    uint64_t rounds;
    bool lone_worker;
};

static int turn_poll(weft_future *future);
static const weft_future_ops turn_ops = { .poll = turn_poll };
struct turn {
    weft_future future;
    struct side *side;
    uint64_t wanted;
};

static int turn_poll(weft_future *future)
{
    struct turn *turn = (struct turn *)future;
    if (atomic_load(&turn->side->turn) >= turn->wanted) {
        return 0;
    }
    weft_waker_drop(atomic_exchange(&turn->side->waker, weft_waker_current()));
    return atomic_load(&turn->side->turn) >= turn->wanted ? 0 : WEFT_PENDING;
}

static int play(void *arg)
{
    struct side *self = arg;
    for (uint64_t i = 1; i <= self->rounds; i++) {
        atomic_store(&self->other->turn, i);
        weft_waker *waker = atomic_exchange(&self->other->waker, NULL);
        if (waker != NULL) {
            weft_waker_fire(waker);
        }
        if (self->lone_worker) {
            test_postpone_clock();
        }
        struct turn turn = { .future.ops = &turn_ops, .side = self, .wanted = i };
        CHECK_EQ(weft_await(&turn.future, WEFT_NEVER), 0);
    }
    return 0;
}

static void play_on(unsigned workers, uint64_t rounds)
{
    weft_runtime *rt = test_start(workers);
    struct side side = { .rounds = rounds, .lone_worker = workers == 1 };
    struct side sides[2] = { side, side };
    sides[0].other = &sides[1];
    sides[1].other = &sides[0];
    weft_task *first = test_go(rt, play, &sides[0]);
    weft_task *second = test_go(rt, play, &sides[1]);
    CHECK_EQ(test_join_soon(first), 0);
    CHECK_EQ(test_join_soon(second), 0);
    weft_waker_drop(sides[0].waker);
    weft_waker_drop(sides[1].waker);
    if (workers == 1) {
        CHECK_GE(stats_of(rt, 0).handovers, rounds / 2);
    }
    weft_runtime_destroy(rt);
}

static void wake_followed_by_wait_switches_directly(void)
{
    play_on(1, 1000);
    play_on(2, test_scale(20000));
    play_on(8, test_scale(20000));
}

static int gate_await(void *arg)
{
    struct gate *gate = arg;
    atomic_fetch_add(&runs, 1);
    return weft_await(&gate->future, WEFT_NEVER);
}

static void cancel_ends_wait_of_fiber(void)
{
    weft_runtime *rt = test_start(2);
    struct gate gate = gate_make(CANCEL_AT_ONCE);
    weft_task *task = test_go(rt, gate_await, &gate);
    test_wait_for(&gate.polls, 1);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    CHECK_EQ(atomic_load(&gate.cancels), 1);
    gate_fini(&gate);
    weft_runtime_destroy(rt);
}

static void canceled_wait_gets_time_to_cancel(void)
{
    weft_runtime *rt = test_start(2);
    struct gate gate = gate_make(CANCEL_LATER);
    weft_task *task = test_go(rt, gate_await, &gate);
    test_wait_for(&gate.polls, 1);
    weft_cancel(task);
    test_wait_for(&gate.cancels, 1);
    CHECK(!weft_task_is_done(task));
    gate_open(&gate, 5);
    CHECK_EQ(test_join_soon(task), 5);
    gate_fini(&gate);
    weft_runtime_destroy(rt);
}

static int await_twice(void *arg)
{
    struct gate *gates = arg;
    while (!weft_cancelled()) {
        CHECK(weft_yield() == 0 || weft_cancelled());
    }
    CHECK_EQ(weft_yield(), WEFT_ECANCELED);
    CHECK_EQ(weft_await(&gates[0].future, WEFT_NEVER), WEFT_ECANCELED);
    CHECK_EQ(atomic_load(&gates[0].polls), 0);
    weft_shield_enter();
    CHECK(!weft_cancelled());
    CHECK_EQ(weft_await(&gates[1].future, WEFT_NEVER), 9);
    weft_shield_leave();
    CHECK(weft_cancelled());
    return weft_await(&gates[0].future, WEFT_NEVER);
}

static void shield_lets_canceled_fiber_wait(void)
{
    weft_runtime *rt = test_start(2);
    struct gate gates[2] = { gate_make(CANCEL_AT_ONCE), gate_make(CANCEL_AT_ONCE) };
    weft_task *task = test_go(rt, await_twice, gates);
    weft_cancel(task);
    test_wait_for(&gates[1].polls, 1);
    gate_open(&gates[1], 9);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    CHECK_EQ(atomic_load(&gates[1].cancels), 0);
    gate_fini(&gates[0]);
    gate_fini(&gates[1]);
    weft_runtime_destroy(rt);
}

static int canceled_result(void *arg)
{
    (void)arg;
    return weft_cancelled() ? 1 : 0;
}

static int cancel_before_it_runs(void *arg)
{
    (void)arg;
    weft_task *task;
    CHECK_EQ(weft_go(&task, canceled_result, NULL), 0);
    weft_cancel(task);
    return test_join(task);
}

static void fiber_canceled_before_it_runs_still_runs(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, cancel_before_it_runs, NULL), 1);
    weft_runtime_destroy(rt);
}

static void shutdown_ends_every_fiber(void)
{
    enum {
        COUNT = 500
    };
    weft_runtime *rt = test_start(4);
    static struct gate gates[COUNT];
    atomic_store(&runs, 0);
    for (unsigned i = 0; i < COUNT; i++) {
        gates[i] = gate_make(CANCEL_AT_ONCE);
        weft_fiber_spec spec = { .function = gate_await, .arg = &gates[i] };
        CHECK_EQ(weft_runtime_go(rt, NULL, &spec), 0);
    }
    test_wait_for(&runs, COUNT / 2);
    weft_runtime_shutdown(rt);
    CHECK_EQ(atomic_load(&runs), COUNT);
    struct wf_stack_stats stacks;
    wf_stacks_read(&rt->sched->stacks, &stacks);
    weft_runtime_destroy(rt);
    for (unsigned i = 0; i < COUNT; i++) {
        gate_fini(&gates[i]);
    }
}

/*
 * Goal:   a fiber that resumes on another worker finds its frame, errno and floating-point
 *         control unchanged.
 * Method: more fibers than workers, with values in locals, that yield often; and one of them
 *         changes workers from time to time.
 */
static int wander(void *arg)
{
    uint64_t id = *(uint64_t *)arg;
    uint64_t numbers[8];
    double real = (double)id;
    uint64_t end = test_scale(20000);
    for (unsigned i = 0; i < 8; i++) {
        numbers[i] = id * 31 + i;
    }
    for (uint64_t round = 0; round < end; round++) {
        errno = (int)(id + round % 100);
        real += 0.5;
        if (id == 1 && round % 1000 == 0) {
            test_move();
        }
        CHECK_EQ(weft_yield(), 0);
        CHECK_EQ(errno, id + round % 100);
        CHECK(real == (double)id + 0.5 * (double)(round + 1));
        for (unsigned i = 0; i < 8; i++) {
            CHECK_EQ(numbers[i], id * 31 + i);
        }
    }
    return 0;
}

static void fiber_keeps_its_frame_when_it_changes_worker(void)
{
    enum {
        COUNT = 16
    };
    weft_runtime *rt = test_start(4);
    weft_task *tasks[COUNT];
    uint64_t ids[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        ids[i] = i + 1;
        tasks[i] = test_go(rt, wander, &ids[i]);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    weft_runtime_destroy(rt);
}

static int stay(void *arg)
{
    int home = *(int *)arg;
    for (unsigned i = 0; i < 2000; i++) {
        CHECK_EQ(weft_worker_current(), home);
        CHECK_EQ(weft_yield(), 0);
    }
    return 0;
}

static void pinned_fiber_stays_on_its_worker(void)
{
    weft_runtime *rt = test_start(4);
    weft_task *tasks[4];
    int homes[4];
    for (int i = 0; i < 4; i++) {
        homes[i] = i;
        weft_fiber_spec spec = { .function = stay, .arg = &homes[i], .pinned = WEFT_PINNED_TO(i) };
        CHECK_EQ(weft_runtime_go(rt, &tasks[i], &spec), 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    weft_runtime_destroy(rt);
}

/* Fibers that run one after the other reuse the memory of one stack. */
static int count_run(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    return 0;
}

static int start_many(void *arg)
{
    uint64_t count = *(uint64_t *)arg;
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQ(weft_go(NULL, count_run, NULL), 0);
    }
    return 0;
}

static void fibers_that_do_not_wait_share_stack(void)
{
    weft_runtime *rt = test_start(1);
    uint64_t count = test_scale(20000);
    atomic_store(&runs, 0);
    CHECK_EQ(test_run(rt, start_many, &count), 0);
    test_wait_for(&runs, count);
    size_t before = test_rss_bytes();
    atomic_store(&runs, 0);
    CHECK_EQ(test_run(rt, start_many, &count), 0);
    test_wait_for(&runs, count);
    if (!test_is_sanitized()) { /* A sanitizer's own memory use is arbitrary. */
        CHECK_LT(test_rss_bytes(), before + count * 1024);
    }
    weft_runtime_destroy(rt);
}

/* The runtime measures how deep a stack was used when it gives the stack back while idle. */
static int start_deep_ones(void *arg)
{
    (void)arg;
    static size_t bytes = 100 << 10;
    enum {
        COUNT = 200
    };
    weft_task *tasks[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK_EQ(weft_go(&tasks[i], sleep_deep, &bytes), 0);
    }
    while (atomic_load(&runs) < COUNT) {
        CHECK_EQ(weft_yield(), 0);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        weft_cancel(tasks[i]);
        CHECK_EQ(test_join(tasks[i]), WEFT_ECANCELED);
    }
    return 0;
}

static void idle_runtime_gives_stacks_back(void)
{
    weft_runtime *rt = test_start(2);
    atomic_store(&runs, 0);
    CHECK_EQ(test_run(rt, start_deep_ones, NULL), 0);
    weft_stats stats = { 0 };
    while (stats.fiber_stack_used_max < 100 << 10) { /* Otherwise the test times out. */
        weft_runtime_stats(rt, &stats);
        (void)sched_yield();
    }
    CHECK_LE(stats.fiber_stack_used_max, 256 << 10);
    CHECK_GE(stats.fiber_stacks, 200);
    CHECK_GE(stats.fiber_stack_bytes, 200 * (256 << 10));
    weft_runtime_destroy(rt);
}

/* --- Misuse, each in a child process --- */

static int return_pending(void *arg)
{
    (void)arg;
    return WEFT_PENDING;
}

static void end_with_pending(void)
{
    weft_runtime *rt = test_start(1);
    (void)test_run(rt, return_pending, NULL);
}

static int suspend_with_mutex(void *arg)
{
    (void)arg;
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    CHECK_EQ(pthread_mutexattr_init(&attributes), 0);
    CHECK_EQ(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), 0);
    CHECK_EQ(pthread_mutex_init(&mutex, &attributes), 0);
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    (void)weft_sleep(WEFT_MS);
    return 0;
}

static void wait_with_mutex(void)
{
    weft_runtime *rt = test_start(1);
    (void)test_run(rt, suspend_with_mutex, NULL);
}

static int suspend_with_lock(void *arg)
{
    (void)arg;
    struct wf_lock lock = WF_LOCK_INIT(WF_RANK_POOL);
    wf_lock(&lock);
    wf_fiber_suspend(wf_fiber_current(), wf_worker_current());
    return 0;
}

static void wait_with_lock(void)
{
    weft_runtime *rt = test_start(1);
    (void)test_run(rt, suspend_with_lock, NULL);
}

static void return_of_pending_aborts_with_message(void)
{
    CHECK_ABORTS(end_with_pending, "returned WEFT_PENDING or WEFT_YIELDED");
}

static void wait_with_lock_held_aborts(void)
{
    if (wf_futex_robust_list() != NULL) {
        CHECK_ABORTS(wait_with_mutex, "while it holds a lock of this thread (pthread mutex)");
    } else {
        test_skip("the emulator has no robust mutexes");
    }
    CHECK_ABORTS(wait_with_lock, "waits while it holds a lock of this thread (pool)");
}

TEST_MAIN({
    TEST(return_of_pending_aborts_with_message),
    TEST_DEBUG(wait_with_lock_held_aborts),
    TEST(fiber_gets_argument_and_returns_result),
    TEST(argument_with_size_is_copied),
    TEST(invalid_spec_is_refused),
    TEST(stack_has_requested_size),
    TEST(yield_lets_others_run),
    TEST(yield_without_others_starts_new_poll),
    TEST(join_of_new_fiber_switches_directly),
    TEST(fiber_starts_without_state_of_others),
    TEST(wake_followed_by_wait_switches_directly),
    TEST(cancel_ends_wait_of_fiber),
    TEST(canceled_wait_gets_time_to_cancel),
    TEST(shield_lets_canceled_fiber_wait),
    TEST(fiber_canceled_before_it_runs_still_runs),
    TEST(shutdown_ends_every_fiber),
    TEST(fiber_keeps_its_frame_when_it_changes_worker),
    TEST(pinned_fiber_stays_on_its_worker),
    TEST(fibers_that_do_not_wait_share_stack),
    TEST(idle_runtime_gives_stacks_back),
})
