/* SPDX-License-Identifier: MIT */
#include "sched/inplace.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "gate.h"
#include "ledger.h"
#include "rt.h"
#include "sched/fiber.h"
#include "base/futex.h"
#include "test.h"
#include "timing.h"

static weft_runtime *create(unsigned workers, unsigned threads)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = workers;
    config.blocking_threads = threads;
    return test_start_with(&config);
}

static weft_stats stats_of(weft_runtime *rt)
{
    weft_stats stats;
    weft_runtime_stats(rt, &stats);
    return stats;
}

static void wait_until_queued(weft_runtime *rt, uint64_t count)
{
    while (stats_of(rt).blocking_queued < count) {
        (void)sched_yield();
    }
}

/* The blocking job that hosted a fiber ends slightly later than the call. */
static void wait_until_none_alive(weft_runtime *rt)
{
    while (stats_of(rt).tasks_alive > 0) {
        (void)sched_yield();
    }
}

static _Atomic(uint64_t) begun; /* number of functions that wait for opened */
static _Atomic(uint64_t) opened;
static _Atomic(uint64_t) calls; /* of count_call() */

static void reset(void)
{
    atomic_store(&begun, 0);
    atomic_store(&opened, 0);
    atomic_store(&calls, 0);
}

static int wait_until_opened(void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    test_wait_for(&opened, 1);
    return 11;
}

static int count_call(void *arg)
{
    (void)arg;
    return 100 + (int)atomic_fetch_add(&calls, 1);
}

/* The fiber's function: only the call, with a deadline. */
static int block_until(void *arg)
{
    return weft_block_in_place(count_call, NULL, *(weft_time *)arg);
}

static int block(void *arg)
{
    (void)arg;
    return weft_block_in_place(count_call, NULL, WEFT_NEVER);
}

/* Occupies the pool's only thread until opened is set. */
static weft_task *occupy(weft_runtime *rt)
{
    reset();
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, wait_until_opened, NULL), 0);
    test_wait_for(&begun, 1);
    return task;
}

/* Lets the busy thread finish its job, and checks that the next call is served. */
static void check_pool_serves(weft_runtime *rt, weft_task *busy)
{
    CHECK_EQ(stats_of(rt).blocking_queued, 0);
    atomic_store(&opened, 1);
    CHECK_EQ(test_join_soon(busy), 11);
    CHECK_EQ(atomic_load(&calls), 0);
    CHECK_EQ(test_run(rt, block, NULL), 100);
    wait_until_none_alive(rt);
}

/* --- Arguments and results ---------------------------------------------------- */

static int change_errno(void *arg)
{
    CHECK_EQ(errno, EDOM);
    errno = ERANGE;
    return *(int *)arg;
}

static int check_errno(void *arg)
{
    errno = EDOM;
    CHECK_EQ(weft_block_in_place(change_errno, arg, WEFT_NEVER), *(int *)arg);
    CHECK_EQ(errno, ERANGE);
    return 0;
}

static void result_and_errno_are_returned(void)
{
    static const int values[] = { 0, 41, -5, INT_MAX, WEFT_ECANCELED, -EAGAIN };
    weft_runtime *rt = create(2, 2);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        int value = values[i];
        CHECK_EQ(test_run(rt, check_errno, &value), 0);
    }
    weft_runtime_destroy(rt);
}

struct place {
    weft_runtime *rt;
    weft_task *task;
    pthread_t thread;
    weft_local key;
    int in_frame;
};

static void check_on_own_stack(const void *address)
{
    const struct wf_fiber *fiber = wf_fiber_of((struct wf_task *)weft_task_current());
    CHECK(fiber != NULL);
    const char *low = fiber->stack->low;
    CHECK((const char *)address >= low);
    CHECK((const char *)address < low + wf_stack_size(fiber->stack));
}

static int look_around(void *arg)
{
    struct place *place = arg;
    CHECK_EQ(weft_worker_current(), -1);
    CHECK(!pthread_equal(pthread_self(), place->thread));
    CHECK(weft_task_current() == place->task);
    CHECK_EQ(strcmp(weft_task_name(weft_task_current()), "looker"), 0);
    CHECK(weft_runtime_current() == place->rt);
    check_on_own_stack(__builtin_frame_address(0));
    CHECK(weft_local_get(place->key) == place);
    CHECK_EQ(weft_local_set(place->key, &place->key), 0);
    place->in_frame++;
    return 0;
}

static int look_from_fiber(void *arg)
{
    struct place place = *(struct place *)arg;
    for (int i = 0; i < 10; i++) {
        place.task = weft_task_current();
        place.thread = pthread_self();
        CHECK_EQ(weft_local_set(place.key, &place), 0);
        CHECK_EQ(weft_block_in_place(look_around, &place, WEFT_NEVER), 0);
        CHECK_GE(weft_worker_current(), 0);
        CHECK(weft_task_current() == place.task);
        CHECK(weft_local_get(place.key) == &place.key);
        CHECK_EQ(place.in_frame, i + 1);
        check_on_own_stack(__builtin_frame_address(0));
    }
    return 0;
}

static void function_runs_as_fiber_on_another_thread(void)
{
    struct place place = { .rt = create(2, 2) };
    CHECK_EQ(weft_local_create(&place.key, NULL), 0);
    weft_task *task;
    weft_fiber_spec spec = { .function = look_from_fiber, .arg = &place, .name = "looker" };
    CHECK_EQ(weft_runtime_go(place.rt, &task, &spec), 0);
    CHECK_EQ(test_join_soon(task), 0);
    weft_runtime_destroy(place.rt);
}

static int block_until_opened(void *arg)
{
    (void)arg;
    return weft_block_in_place(wait_until_opened, NULL, WEFT_NEVER);
}

static int open_it(void *arg)
{
    (void)arg;
    CHECK_EQ(weft_yield(), 0);
    atomic_store(&opened, 1);
    return 0;
}

/*
 * Goal:   while the function blocks, the worker runs other tasks.
 * Method: one worker. The function waits for something that only another fiber on that worker
 *         does.
 */
static void worker_runs_other_tasks_meanwhile(void)
{
    weft_runtime *rt = create(1, 1);
    for (unsigned i = 0; i < test_scale(100); i++) {
        reset();
        weft_task *task = test_go(rt, block_until_opened, NULL);
        test_wait_for(&begun, 1);
        CHECK_EQ(test_run(rt, open_it, NULL), 0);
        CHECK_EQ(test_join_soon(task), 11);
    }
    weft_runtime_destroy(rt);
}

enum {
    GROUP = 4,
    CROWD = 100
};

static struct {
    _Atomic(uint64_t) arrived;
    _Atomic(uint64_t) inside;
    _Atomic(uint64_t) most;
} group;

/* Does not return before its group of four is complete. */
static int meet_group(void *arg)
{
    uint64_t inside = atomic_fetch_add(&group.inside, 1) + 1;
    uint64_t most = atomic_load(&group.most);
    while (inside > most && !atomic_compare_exchange_weak(&group.most, &most, inside)) {
    }
    uint64_t ticket = atomic_fetch_add(&group.arrived, 1);
    test_wait_for(&group.arrived, (ticket / GROUP + 1) * GROUP);
    atomic_fetch_sub(&group.inside, 1);
    return *(int *)arg + 1;
}

static int block_with_group(void *arg)
{
    return weft_block_in_place(meet_group, arg, WEFT_NEVER);
}

/*
 * Goal:   a hundred fibers share a pool of four threads.
 * Method: functions that wait for each other in groups of four. With fewer threads they would
 *         wait forever. A count of the functions that run shows that there are never more.
 */
static void hundred_concurrent_calls_share_four_threads(void)
{
    weft_runtime *rt = create(2, GROUP);
    for (unsigned round = 0; round < test_scale(20); round++) {
        memset(&group, 0, sizeof group);
        weft_task *tasks[CROWD];
        int numbers[CROWD];
        for (int i = 0; i < CROWD; i++) {
            numbers[i] = i;
            tasks[i] = test_go(rt, block_with_group, &numbers[i]);
        }
        for (int i = 0; i < CROWD; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), i + 1);
        }
        CHECK_EQ(atomic_load(&group.most), GROUP);
        CHECK_EQ(atomic_load(&group.arrived), CROWD);
    }
    weft_runtime_destroy(rt);
}

static int block_thrice_pinned(void *arg)
{
    int home = *(int *)arg;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weft_worker_current(), home);
        CHECK_GE(weft_block_in_place(count_call, NULL, WEFT_NEVER), 100);
        CHECK_EQ(weft_worker_current(), home);
    }
    return 0;
}

static void pinned_fiber_returns_to_its_worker(void)
{
    enum {
        WORKERS = 3,
        FIBERS = 30
    };
    weft_runtime *rt = create(WORKERS, 4);
    weft_task *tasks[FIBERS];
    int homes[FIBERS];
    for (int i = 0; i < FIBERS; i++) {
        homes[i] = i % WORKERS;
        weft_fiber_spec spec = { .function = block_thrice_pinned,
                                 .arg = &homes[i],
                                 .pinned = WEFT_PINNED_TO(homes[i]) };
        CHECK_EQ(weft_runtime_go(rt, &tasks[i], &spec), 0);
    }
    for (int i = 0; i < FIBERS; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    weft_runtime_destroy(rt);
}

/* --- Callers that do not run on a worker ------------------------------------- */

static int is_same_thread(void *arg)
{
    return pthread_equal(*(pthread_t *)arg, pthread_self()) != 0;
}

static int call_here(void *arg)
{
    (void)arg;
    pthread_t self = pthread_self();
    CHECK_EQ(weft_block_in_place(is_same_thread, &self, 0), 1);
    CHECK_EQ(weft_block_in_place(is_same_thread, &self, WEFT_NEVER), 1);
    return 5;
}

static int call_twice_inside(void *arg)
{
    return weft_block_in_place(call_here, arg, WEFT_NEVER);
}

static void call_outside_of_workers_runs_function_directly(void)
{
    CHECK_EQ(call_here(NULL), 5);
    weft_runtime *rt = create(1, 1);
    weft_task *job;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, call_here, NULL), 0);
    CHECK_EQ(test_join_soon(job), 5);
    CHECK_EQ(test_run(rt, call_twice_inside, NULL), 5);
    weft_runtime_destroy(rt);
}

static int blocking_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return weft_block_in_place(count_call, NULL, WEFT_NEVER);
}

static void block_in_stackless_task(void)
{
    weft_runtime *rt = create(1, 1);
    (void)test_join_soon(test_spawn(rt, blocking_body, NULL));
}

static int block_with_mutex(void *arg)
{
    static pthread_mutex_t mutex;
    pthread_mutexattr_t attributes;
    CHECK_EQ(pthread_mutexattr_init(&attributes), 0);
    CHECK_EQ(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), 0);
    CHECK_EQ(pthread_mutex_init(&mutex, &attributes), 0);
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    return weft_block_in_place(count_call, arg, WEFT_NEVER);
}

static void leave_with_mutex(void)
{
    (void)test_run(create(1, 1), block_with_mutex, NULL);
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(block_in_stackless_task,
                 "weft_block_in_place: called on a worker outside of a fiber");
    CHECK_ABORTS(block_in_stackless_task, "use weft_spawn_blocking() in a body");
}

static void leave_with_mutex_held_aborts(void)
{
    if (wf_futex_robust_list() == NULL) {
        test_skip("the emulator has no robust mutexes");
        return;
    }
    CHECK_ABORTS(leave_with_mutex, "holds a lock of this thread (pthread mutex)");
}

/* --- Not called: timed out, canceled, refused --------------------------------- */

static void function_is_not_called_after_deadline(void)
{
    weft_clock_pause();
    weft_runtime *rt = create(2, 1);
    for (unsigned round = 0; round < 10; round++) {
        weft_task *busy = occupy(rt);
        weft_time deadline = weft_after(10 * WEFT_MS);
        weft_task *late = test_go(rt, block_until, &deadline);
        wait_until_queued(rt, 1);
        CHECK(!weft_task_is_done(late));
        weft_clock_advance(12 * WEFT_MS);
        CHECK_EQ(test_join_soon(late), WEFT_ETIMEDOUT);
        weft_time over = weft_now();
        CHECK_EQ(test_run(rt, block_until, &over), WEFT_ETIMEDOUT);
        check_pool_serves(rt, busy);
    }
    weft_runtime_destroy(rt);
    weft_clock_resume();
}

static int open_after_deadline(void *arg)
{
    (void)arg;
    weft_clock_advance(WEFT_S);
    return 6;
}

static int block_past_deadline(void *arg)
{
    (void)arg;
    return weft_block_in_place(open_after_deadline, NULL, weft_after(WEFT_MS));
}

static void deadline_has_no_effect_once_function_is_called(void)
{
    weft_clock_pause();
    weft_runtime *rt = create(1, 1);
    CHECK_EQ(test_run(rt, block_past_deadline, NULL), 6);
    weft_runtime_destroy(rt);
    weft_clock_resume();
}

static void function_is_not_called_if_canceled_while_queued(void)
{
    weft_runtime *rt = create(2, 1);
    for (unsigned round = 0; round < test_scale(100); round++) {
        weft_task *busy = occupy(rt);
        weft_task *waiting = test_go(rt, block, NULL);
        wait_until_queued(rt, 1);
        weft_cancel(waiting);
        CHECK_EQ(test_join_soon(waiting), WEFT_ECANCELED);
        check_pool_serves(rt, busy);
    }
    weft_runtime_destroy(rt);
}

static int block_canceled(void *arg)
{
    while (!weft_cancelled()) {
        (void)weft_yield();
    }
    return block(arg);
}

/*
 * Goal:   a fiber that was already canceled is refused. A thread that came for it is released,
 *         and no reference to the fiber is leaked.
 * Method: many in a row, so that the thread is awake and fast. The ledger shows what is left
 *         after the runtime is destroyed.
 */
static void function_is_not_called_if_canceled_before(void)
{
    struct ledger ledger = { 0 };
    weft_allocator allocator = ledger_allocator(&ledger);
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.blocking_threads = 2;
    config.allocator = &allocator;
    weft_runtime *rt = test_start_with(&config);
    reset();
    for (unsigned round = 0; round < test_scale(5000); round++) {
        weft_task *task = test_go(rt, block_canceled, NULL);
        weft_cancel(task);
        CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    }
    CHECK_EQ(atomic_load(&calls), 0);
    wait_until_none_alive(rt);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&ledger.bytes), 0);
}

/* The runtime must not change errno. */
static int block_and_keep_errno(void *arg)
{
    errno = EDOM;
    int err = block(arg);
    CHECK_EQ(errno, EDOM);
    return err;
}

static void function_is_not_called_if_thread_creation_fails(void)
{
    size_t usual = 1024 * 1024;
    weft_runtime *rt = create(1, 2);
    reset();
    test_set_default_stack((size_t)1 << 46);
    CHECK_EQ(test_run(rt, block, NULL), -EAGAIN);
    CHECK_EQ(atomic_load(&calls), 0);
    CHECK_EQ(stats_of(rt).tasks_alive, 0);
    CHECK_EQ(test_run(rt, block_and_keep_errno, NULL), -EAGAIN);
    test_set_default_stack(usual);
    CHECK_EQ(test_run(rt, block, NULL), 100);
    weft_runtime_destroy(rt);
}

static struct ledger poor;

/* The allocation of the job fails once. */
static int block_without_memory(void *arg)
{
    poor.fail_at = atomic_load(&poor.calls) + 1;
    int err = block(arg);
    poor.fail_at = 0;
    CHECK_EQ(atomic_load(&calls), 0);
    CHECK_EQ(block(arg), 100);
    return err;
}

static void function_is_not_called_if_out_of_memory(void)
{
    weft_allocator allocator = ledger_allocator(&poor);
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.allocator = &allocator;
    weft_runtime *rt = test_start_with(&config);
    reset();
    CHECK_EQ(test_run(rt, block_without_memory, NULL), -ENOMEM);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&poor.bytes), 0);
}

/* --- Canceled while the function waits ---------------------------------------- */

static struct gate gate;

static int await_gate(void *arg)
{
    (void)arg;
    return weft_await(&gate.future, WEFT_NEVER);
}

static int await_inside(void *arg)
{
    int err = weft_block_in_place(await_gate, arg, WEFT_NEVER);
    CHECK(weft_cancelled());
    CHECK_EQ(weft_block_in_place(count_call, arg, WEFT_NEVER), WEFT_ECANCELED);
    return err;
}

static void cancel_ends_await_inside_function(void)
{
    weft_runtime *rt = create(1, 1);
    for (unsigned round = 0; round < test_scale(200); round++) {
        reset();
        bool later = round % 2 == 1;
        gate = gate_make(later ? CANCEL_LATER : CANCEL_AT_ONCE);
        weft_task *task = test_go(rt, await_inside, NULL);
        test_wait_for(&gate.polls, 1);
        weft_cancel(task);
        if (later) {
            test_wait_for(&gate.cancels, 1);
            CHECK(!weft_task_is_done(task));
            gate_open(&gate, WEFT_ECANCELED);
        }
        CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
        CHECK_EQ(atomic_load(&calls), 0);
        gate_fini(&gate);
    }
    weft_runtime_destroy(rt);
}

static int join_other(void *arg)
{
    atomic_fetch_add(&begun, 1);
    return weft_join(arg, NULL, WEFT_NEVER);
}

static int join_inside(void *arg)
{
    return weft_block_in_place(join_other, arg, WEFT_NEVER);
}

static int sleep_forever(void *arg)
{
    (void)arg;
    return weft_sleep_until(WEFT_NEVER);
}

/*
 * The cancellation arrives before the wait, during it and, rarely, after its start. The join that
 * it ends leaves the handle valid.
 */
static void cancel_ends_join_inside_function(void)
{
    weft_runtime *rt = create(2, 2);
    for (unsigned round = 0; round < test_scale(1000); round++) {
        reset();
        weft_task *other = test_go(rt, sleep_forever, NULL);
        weft_task *task = test_go(rt, join_inside, other);
        test_wait_for(&begun, 1);
        for (unsigned spins = 0; spins < round % 50 * 40; spins++) {
            wf_cpu_relax();
        }
        weft_cancel(task);
        CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
        CHECK(!weft_task_is_done(other));
        weft_cancel(other);
        CHECK_EQ(test_join_soon(other), WEFT_ECANCELED);
    }
    weft_runtime_destroy(rt);
}

static int await_shielded(void *arg)
{
    weft_shield_enter();
    CHECK_EQ(await_gate(arg), 8);
    CHECK(!weft_cancelled());
    weft_shield_leave();
    CHECK(weft_cancelled());
    struct gate next = gate_make(CANCEL_AT_ONCE);
    CHECK_EQ(weft_await(&next.future, WEFT_NEVER), WEFT_ECANCELED);
    CHECK_EQ(atomic_load(&next.polls), 0);
    return 9;
}

static int await_shielded_inside(void *arg)
{
    return weft_block_in_place(await_shielded, arg, WEFT_NEVER);
}

static void shield_inside_function_defers_cancel(void)
{
    weft_runtime *rt = create(1, 1);
    for (unsigned round = 0; round < test_scale(200); round++) {
        gate = gate_make(CANCEL_AT_ONCE);
        weft_task *task = test_go(rt, await_shielded_inside, NULL);
        test_wait_for(&gate.polls, 1);
        weft_cancel(task);
        gate_open(&gate, 8);
        CHECK_EQ(test_join_soon(task), 9);
        CHECK_EQ(atomic_load(&gate.cancels), 0);
        gate_fini(&gate);
    }
    weft_runtime_destroy(rt);
}

static int block_shielded(void *arg)
{
    weft_shield_enter();
    int result = block(arg);
    weft_shield_leave();
    return result;
}

static void shield_around_call_defers_cancel(void)
{
    weft_runtime *rt = create(2, 1);
    weft_task *busy = occupy(rt);
    weft_task *task = test_go(rt, block_shielded, NULL);
    wait_until_queued(rt, 1);
    weft_cancel(task);
    atomic_store(&opened, 1);
    CHECK_EQ(test_join_soon(busy), 11);
    CHECK_EQ(test_join_soon(task), 100);
    weft_runtime_destroy(rt);
}

/* --- Shutdown ------------------------------------------------------------------ */

static _Atomic(uint64_t) shut;

static void *shut_down(void *arg)
{
    weft_runtime_destroy(arg);
    atomic_store(&shut, 1);
    return NULL;
}

static int wait_for_cancel(void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    while (!weft_cancelled()) {
        (void)sched_yield();
    }
    return 0;
}

/* Shuts down: the fiber tries to block and is refused in time. */
static void check_refused_in_shutdown(weft_runtime *rt, weft_task *task, int other)
{
    atomic_store(&shut, 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, shut_down, rt), 0);
    int result = test_join_soon(task);
    CHECK(result == WEFT_ESHUTDOWN || result == other);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(atomic_load(&shut), 1);
    CHECK_EQ(atomic_load(&calls), 0);
}

static void function_is_not_called_during_shutdown(void)
{
    for (unsigned round = 0; round < test_scale(50); round++) {
        weft_runtime *rt = create(2, 1);
        reset();
        check_refused_in_shutdown(rt, test_go(rt, block_canceled, NULL), WEFT_ECANCELED);
    }
}

/*
 * Goal:   a fiber that waits for a thread when shutdown starts is woken. A shield hides the
 *         cancellation from it, but no thread will be available.
 * Method: the pool's only thread has a job that runs until it is canceled.
 */
static void wait_for_thread_until_shutdown(int (*function)(void *arg), int other)
{
    weft_runtime *rt = create(2, 1);
    reset();
    CHECK_EQ(weft_runtime_spawn_blocking(rt, NULL, wait_for_cancel, NULL), 0);
    test_wait_for(&begun, 1);
    weft_task *task = test_go(rt, function, NULL);
    wait_until_queued(rt, 1);
    check_refused_in_shutdown(rt, task, other);
}

static void shutdown_ends_wait_for_thread(void)
{
    for (unsigned round = 0; round < test_scale(50); round++) {
        wait_for_thread_until_shutdown(block, WEFT_ECANCELED);
    }
}

static void shutdown_ends_shielded_wait_for_thread(void)
{
    for (unsigned round = 0; round < test_scale(50); round++) {
        wait_for_thread_until_shutdown(block_shielded, WEFT_ECANCELED);
    }
}

TEST_MAIN({
    TEST(misuse_aborts_with_message),
    TEST_DEBUG(leave_with_mutex_held_aborts),
    TEST(result_and_errno_are_returned),
    TEST(function_runs_as_fiber_on_another_thread),
    TEST(worker_runs_other_tasks_meanwhile),
    TEST(hundred_concurrent_calls_share_four_threads),
    TEST(pinned_fiber_returns_to_its_worker),
    TEST(call_outside_of_workers_runs_function_directly),
    TEST(function_is_not_called_after_deadline),
    TEST(deadline_has_no_effect_once_function_is_called),
    TEST(function_is_not_called_if_canceled_while_queued),
    TEST(function_is_not_called_if_canceled_before),
    TEST_NATIVE(function_is_not_called_if_thread_creation_fails, "maps a stack of any size"),
    TEST(function_is_not_called_if_out_of_memory),
    TEST(cancel_ends_await_inside_function),
    TEST(cancel_ends_join_inside_function),
    TEST(shield_inside_function_defers_cancel),
    TEST(shield_around_call_defers_cancel),
    TEST(function_is_not_called_during_shutdown),
    TEST(shutdown_ends_wait_for_thread),
    TEST(shutdown_ends_shielded_wait_for_thread),
})
