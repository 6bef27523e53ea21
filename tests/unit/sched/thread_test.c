/* SPDX-License-Identifier: MIT */
#include "sched/thread.h"

#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft.h>

#include "base/clock.h"
#include "base/rng.h"
#include "gate.h"
#include "rt.h"
#include "sched/task.h"
#include "test.h"
#include "timing.h"

/* A deadline that has passed. */
#define PAST ((weft_time)1)

static void run_in_thread(void *(*main_fn)(void *arg), void *arg)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, main_fn, arg), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* --- Waiting ------------------------------------------------------------------ */

static void ready_future_is_not_waited_for(void)
{
    struct gate gate = gate_make(CANCEL_AT_ONCE);
    gate_open(&gate, 42);
    CHECK_EQ(weft_await(&gate.future, PAST), 42);
    CHECK_EQ(gate.polls, 1);
    CHECK_EQ(gate.cancels, 0);
}

static void *open_when_polled(void *arg)
{
    struct gate *gate = arg;
    test_wait_for(&gate->polls, 1);
    gate_open(gate, 5);
    return NULL;
}

static void second_thread_completes_awaited_future(void)
{
    struct gate gate = gate_make(CANCEL_AT_ONCE);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, open_when_polled, &gate), 0);
    CHECK_EQ(weft_await(&gate.future, WEFT_NEVER), 5);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(gate.polls, 2);
    CHECK_EQ(gate.cancels, 0);
}

static void future_is_canceled_after_deadline(void)
{
    struct gate gate = gate_make(CANCEL_AT_ONCE);
    CHECK_EQ(weft_await(&gate.future, PAST), WEFT_ETIMEDOUT);
    CHECK_EQ(gate.cancels, 1);
    CHECK_EQ(gate.polls, 2);
    gate_fini(&gate);

    gate = gate_make(CANCEL_AT_ONCE);
    weft_time deadline = weft_now() + 2 * WEFT_MS;
    CHECK_EQ(weft_await(&gate.future, deadline), WEFT_ETIMEDOUT);
    CHECK_GE(weft_now(), deadline);
    gate_fini(&gate);
}

static void *open_when_canceled(void *arg)
{
    struct gate *gate = arg;
    test_wait_for(&gate->cancels, 1);
    gate_open(gate, WEFT_ECANCELED);
    return NULL;
}

static void await_waits_for_slow_cancel(void)
{
    struct gate gate = gate_make(CANCEL_LATER);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, open_when_canceled, &gate), 0);
    CHECK_EQ(weft_await(&gate.future, PAST), WEFT_ETIMEDOUT);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(gate.polls, 2); /* Not polled while the cancel is in progress. */
    CHECK_GE(gate.cancels, 1);
    CHECK_LE(gate.cancels, 2);
    gate_fini(&gate);
}

static void *nudge_then_open(void *arg)
{
    struct gate *gate = arg;
    for (uint64_t i = 1; i <= 10; i++) {
        test_wait_for(&gate->cancels, i);
        weft_waker *waker = atomic_exchange(&gate->waker, NULL);
        if (waker != NULL) {
            weft_waker_fire(waker); /* Spuriously. */
        }
    }
    gate_open(gate, WEFT_ECANCELED);
    return NULL;
}

static void cancel_is_repeated_after_each_wake_until_done(void)
{
    struct gate gate = gate_make(CANCEL_LATER);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, nudge_then_open, &gate), 0);
    CHECK_EQ(weft_await(&gate.future, PAST), WEFT_ETIMEDOUT);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(gate.polls, 2);
    CHECK_GE(gate.cancels, 10);
    gate_fini(&gate);
}

static void *open_with_result_when_canceled(void *arg)
{
    struct gate *gate = arg;
    test_wait_for(&gate->cancels, 1);
    gate_open(gate, 77);
    return NULL;
}

static void result_that_beats_cancel_wins(void)
{
    struct gate gate = gate_make(CANCEL_LATER);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, open_with_result_when_canceled, &gate), 0);
    CHECK_EQ(weft_await(&gate.future, PAST), 77);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    gate_fini(&gate);
}

static void cancellation_of_future_itself_is_not_timeout(void)
{
    struct gate gate = gate_make(CANCEL_AT_ONCE);
    gate_open(&gate, WEFT_ECANCELED);
    CHECK_EQ(weft_await(&gate.future, WEFT_NEVER), WEFT_ECANCELED);
}

static void *wake_for_nothing(void *arg)
{
    struct gate *gate = arg;
    for (uint64_t i = 1; i <= 100; i++) {
        test_wait_for(&gate->polls, i);
        weft_waker *waker = atomic_exchange(&gate->waker, NULL);
        CHECK(waker != NULL);
        weft_waker_fire(waker);
    }
    test_wait_for(&gate->polls, 101);
    gate_open(gate, 1);
    return NULL;
}

static void spurious_wake_causes_one_more_poll(void)
{
    struct gate gate = gate_make(CANCEL_AT_ONCE);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, wake_for_nothing, &gate), 0);
    CHECK_EQ(weft_await(&gate.future, WEFT_NEVER), 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(gate.polls, 102);
}

/* Woken once, after a plain write. */
struct letter {
    weft_future future;
    _Atomic(weft_waker *) waker;
    int text; /* plain: the wake makes it visible */
    int polls;
};

static int letter_poll(weft_future *future)
{
    struct letter *letter = (struct letter *)future;
    if (letter->polls++ == 0) {
        atomic_store(&letter->waker, weft_waker_current());
        return WEFT_PENDING;
    }
    return letter->text;
}

static const weft_future_ops letter_ops = { .poll = letter_poll };

static void *write_letter(void *arg)
{
    struct letter *letter = arg;
    weft_waker *waker;
    while ((waker = atomic_load(&letter->waker)) == NULL) {
        (void)sched_yield();
    }
    letter->text = 61;
    weft_waker_fire(waker);
    return NULL;
}

/*
 * Goal:   the poll after a wake sees what the waker wrote before it.
 * Method: only the wake orders the two; the sanitizer would report a race.
 */
static void poll_after_wake_sees_writes_before_wake(void)
{
    for (int i = 0; i < 100; i++) {
        struct letter letter = { .future.ops = &letter_ops };
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, write_letter, &letter), 0);
        CHECK_EQ(weft_await(&letter.future, WEFT_NEVER), 61);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
}

struct slow_wake {
    struct gate gate;
    weft_time deadline;
    _Atomic(struct wf_task *) waiter;
    int result;
};

static void *await_until_deadline(void *arg)
{
    struct slow_wake *slow = arg;
    slow->deadline = weft_now() + 5 * WEFT_MS;
    atomic_store(&slow->waiter, wf_thread_self()->waiter);
    slow->result = weft_await(&slow->gate.future, slow->deadline);
    return NULL;
}

/*
 * Goal:   a thread whose deadline passes between the two halves of a wake waits for the second
 *         half.
 * Method: the test is the waker. It makes the transition of the state word, lets the deadline
 *         pass, and only then schedules. A thread that continued early would get the second half
 *         in its next wait, which the transitions do not allow.
 */
static void deadline_in_middle_of_wake_waits_for_its_end(void)
{
    for (int caught = 0; caught < 3;) {
        struct slow_wake slow = { .result = 1234 };
        slow.gate = gate_make(CANCEL_LATER);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, await_until_deadline, &slow), 0);
        test_wait_for(&slow.gate.polls, 1);
        struct wf_task *waiter = atomic_load(&slow.waiter);
        while (wf_state_lifecycle(wf_task_state(waiter)) == WF_STATE_RUNNING &&
               weft_now() < slow.deadline) {
            (void)sched_yield();
        }
        bool first_half = wf_state_wake(&waiter->state, 0) == WF_STEP_SCHEDULE;
        bool in_time = weft_now() < slow.deadline; /* otherwise it may have continued already */
        while (weft_now() < slow.deadline + 2 * WEFT_MS) {
            (void)sched_yield();
        }
        if (first_half && in_time) {
            CHECK_EQ(slow.gate.cancels, 0);
            caught++;
        }
        if (first_half) {
            waiter->ops->schedule(waiter);
        }
        test_wait_for(&slow.gate.cancels, 1);
        gate_open(&slow.gate, WEFT_ECANCELED);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(slow.result, WEFT_ETIMEDOUT);
    }
}

/* --- The thread's record ------------------------------------------------------ */

static void *check_record(void *arg)
{
    (void)arg;
    CHECK(wf_thread_known() == NULL);
    CHECK(wf_thread_running() == NULL);
    CHECK(wf_thread_known() == NULL);
    struct wf_thread *self = wf_thread_self();
    CHECK(self != NULL);
    CHECK(wf_thread_self() == self);
    CHECK(wf_thread_known() == self);
    CHECK(self->running == NULL);
    CHECK(self->runtime == NULL);
    CHECK_EQ(self->waits, 0);
    uint64_t state = wf_task_state(self->waiter);
    CHECK_EQ(wf_state_lifecycle(state), WF_STATE_RUNNING);
    CHECK_EQ(wf_state_refs(state), 1);
    return NULL;
}

static void thread_record_is_created_at_first_call(void)
{
    run_in_thread(check_record, NULL);
    run_in_thread(check_record, NULL);
}

/* A future that gives its waker away and completes at the second poll. */
struct leaky {
    weft_future future;
    weft_waker *waker;
    int polls;
};

static int leaky_poll(weft_future *future)
{
    struct leaky *leaky = (struct leaky *)future;
    if (leaky->polls++ == 0) {
        leaky->waker = weft_waker_current();
        weft_waker_wake(leaky->waker);
        return WEFT_PENDING;
    }
    return 0;
}

static const weft_future_ops leaky_ops = { .poll = leaky_poll };

static void *await_leaky(void *arg)
{
    struct leaky *leaky = arg;
    CHECK_EQ(weft_await(&leaky->future, WEFT_NEVER), 0);
    return NULL;
}

static void waker_may_be_used_after_its_thread_has_ended(void)
{
    struct leaky leaky = { .future.ops = &leaky_ops };
    run_in_thread(await_leaky, &leaky);
    CHECK_EQ(leaky.polls, 2);
    weft_waker_wake(leaky.waker);
    weft_waker *clone = weft_waker_clone(leaky.waker);
    weft_waker_fire(leaky.waker);
    weft_waker_drop(clone);
}

static void stale_waker_does_not_end_later_wait(void)
{
    struct leaky leaky = { .future.ops = &leaky_ops };
    CHECK_EQ(weft_await(&leaky.future, WEFT_NEVER), 0);
    weft_waker_wake(leaky.waker);
    struct gate gate = gate_make(CANCEL_AT_ONCE);
    CHECK_EQ(weft_await(&gate.future, PAST), WEFT_ETIMEDOUT);
    weft_waker_wake(leaky.waker);
    struct gate open = gate_make(CANCEL_AT_ONCE);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, open_when_polled, &open), 0);
    CHECK_EQ(weft_await(&open.future, WEFT_NEVER), 5);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    weft_waker_fire(leaky.waker);
    gate_fini(&gate);
}

/* --- Waits in the wrong context ----------------------------------------------- */

static int nested_poll(weft_future *future)
{
    struct gate gate;
    (void)future;
    gate = gate_make(CANCEL_AT_ONCE);
    return weft_await(&gate.future, WEFT_NEVER);
}

static void await_in_poll(void)
{
    weft_future future = { &(const weft_future_ops){ .poll = nested_poll } };
    CHECK_EQ(weft_await(&future, WEFT_NEVER), 0);
}

static int await_body(weft_co *co, void *state)
{
    struct gate gate;
    (void)co;
    (void)state;
    gate = gate_make(CANCEL_AT_ONCE);
    return weft_await(&gate.future, WEFT_NEVER);
}

static int join_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return weft_join(weft_task_current(), NULL, WEFT_NEVER);
}

static void run_body(weft_body_fn body)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    weft_runtime *rt;
    weft_task *task;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    CHECK_EQ(weft_runtime_spawn(rt, &task, &(weft_spec){ .body = body }), 0);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
}

static void await_on_worker(void)
{
    run_body(await_body);
}

static void join_on_worker(void)
{
    run_body(join_body);
}

static void take_waker_where_nothing_waits(void)
{
    weft_waker_drop(weft_waker_current());
}

static void wait_in_wrong_context_aborts_with_advice(void)
{
    CHECK_ABORTS(await_on_worker, "weft_await: called on a worker");
    CHECK_ABORTS(await_on_worker, "use WEFT_AWAIT() in a body");
    CHECK_ABORTS(join_on_worker, "weft_join: called on a worker");
    CHECK_ABORTS(join_on_worker, "await a weft_join_future");
    CHECK_ABORTS(await_in_poll, "weft_await: called from the poll of a future");
    CHECK_ABORTS(take_waker_where_nothing_waits, "where nothing waits");
}

/* --- Starting threads ---------------------------------------------------------- */

struct started {
    _Atomic(uint64_t) steps;
    const char *prefix;
    const char *name;
    sigset_t blocked;
};

static void *started_main(void *arg)
{
    struct started *started = arg;
    wf_thread_set_name(started->prefix, started->name);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &started->blocked), 0);
    (void)atomic_fetch_add(&started->steps, 1);
    test_wait_for(&started->steps, 2);
    return NULL;
}

static void started_thread_has_name_and_receives_only_faults(void)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
    static const int others[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE };
    sigset_t before;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    struct started started = { .steps = 0, .prefix = "pre", .name = "w12" };
    pthread_t thread;
    CHECK_EQ(wf_thread_start(&thread, started_main, &started), 0);
    test_wait_for(&started.steps, 1);
    char name[16];
    CHECK_EQ(pthread_getname_np(thread, name, sizeof name), 0);
    CHECK(strcmp(name, "pre-w12") == 0);
    (void)atomic_fetch_add(&started.steps, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);

    sigset_t after;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    for (int i = 0; i < 7; i++) {
        CHECK_EQ(sigismember(&started.blocked, faults[i]), 0);
        CHECK_EQ(sigismember(&started.blocked, others[i]), 1);
        CHECK_EQ(sigismember(&after, others[i]), sigismember(&before, others[i]));
    }
}

static void long_thread_name_is_truncated(void)
{
    struct started started = { .steps = 1, .prefix = "12345678", .name = "abcdefghijk" };
    pthread_t thread;
    CHECK_EQ(wf_thread_start(&thread, started_main, &started), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* --- Signals ------------------------------------------------------------------------ */

extern char **environ;

static char *const print_mask[] = { (char[]){ "grep" }, (char[]){ "SigBlk" },
                                    (char[]){ "/proc/self/status" }, NULL };

static pid_t start_by_fork(int output)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(output, STDOUT_FILENO);
        (void)execvp(print_mask[0], print_mask);
        _exit(1);
    }
    return pid;
}

static pid_t start_by_spawn(int output)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    CHECK_EQ(posix_spawn_file_actions_init(&actions), 0);
    CHECK_EQ(posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO), 0);
    CHECK_EQ(posix_spawnp(&pid, print_mask[0], &actions, NULL, print_mask, environ), 0);
    CHECK_EQ(posix_spawn_file_actions_destroy(&actions), 0);
    return pid;
}

/* popen() and system() use posix_spawn(). A shell may change its mask. */
static pid_t (*const ways_to_start[])(int output) = { start_by_fork, start_by_spawn };

/* Returns the signal mask of a child process started by the calling thread. */
static unsigned long long mask_of_child(pid_t (*start)(int output))
{
    int ends[2];
    int status;
    char text[128] = "";
    CHECK_EQ(pipe(ends), 0);
    pid_t pid = start(ends[1]);
    CHECK_GE(pid, 1);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_GE(read(ends[0], text, sizeof text - 1), 1);
    CHECK_EQ(close(ends[0]), 0);
    CHECK_EQ(close(ends[1]), 0);
    CHECK_HAS(text, "SigBlk:");
    return strtoull(text + strlen("SigBlk:"), NULL, 16);
}

static unsigned long long bit_of(int number)
{
    return 1ULL << (number - 1);
}

static int start_all_ways(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof ways_to_start / sizeof ways_to_start[0]; i++) {
        CHECK_EQ(mask_of_child(ways_to_start[i]), bit_of(SIGUSR2));
    }
    return 0;
}

static int start_in_place(void *arg)
{
    return weft_block_in_place(start_all_ways, arg, WEFT_NEVER);
}

static int start_on_worker(void *arg)
{
    (void)arg;
    CHECK_EQ(mask_of_child(start_by_fork), bit_of(SIGUSR2));
    /* A mask that the program has chosen is left alone. */
    sigset_t own;
    sigset_t before;
    CHECK_EQ(sigemptyset(&own), 0);
    CHECK_EQ(sigaddset(&own, SIGHUP), 0);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &own, &before), 0);
    CHECK_EQ(mask_of_child(start_by_fork), bit_of(SIGHUP));
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    CHECK_EQ(sigismember(&before, SIGTERM), 1); /* The worker's own mask is unchanged. */
    return 0;
}

static int start_on_stackless_task(weft_co *co, void *state)
{
    (void)co;
    return start_on_worker(state);
}

static int destroy_runtime(void *arg)
{
    weft_runtime_destroy(arg);
    return 0;
}

static int start_in_runtime_of_fiber(void *arg)
{
    weft_runtime *inner = test_start(1);
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn_blocking(inner, &task, start_all_ways, arg), 0);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    return weft_block_in_place(destroy_runtime, inner, WEFT_NEVER);
}

static void child_process_inherits_mask_of_creator(void)
{
    sigset_t mine;
    sigset_t before;
    CHECK_EQ(sigemptyset(&mine), 0);
    CHECK_EQ(sigaddset(&mine, SIGUSR2), 0);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &mine, &before), 0);
    weft_runtime *rt = test_start(2);
    weft_task *job;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, start_all_ways, NULL), 0);
    CHECK_EQ(test_join(job), 0);
    CHECK_EQ(test_run(rt, start_in_place, NULL), 0);
    CHECK_EQ(test_run(rt, start_on_worker, NULL), 0);
    CHECK_EQ(test_join(test_spawn(rt, start_on_stackless_task, NULL)), 0);
    CHECK_EQ(test_run(rt, start_in_runtime_of_fiber, NULL), 0);
    weft_runtime_destroy(rt);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static _Atomic(uint64_t) handled;

static void count_signal(int number)
{
    (void)number;
    (void)atomic_fetch_add(&handled, 1);
}

static int signal_self(void *arg)
{
    uint64_t before = atomic_load(&handled);
    CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
    *(uint64_t *)arg = atomic_load(&handled) - before;
    return 0;
}

static void signal_handlers_run_on_pool_threads(void)
{
    struct sigaction action = { .sa_handler = count_signal };
    struct sigaction before;
    CHECK_EQ(sigaction(SIGUSR1, &action, &before), 0);
    weft_runtime *rt = test_start(1);
    weft_task *job;
    uint64_t seen = 0;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, signal_self, &seen), 0);
    CHECK_EQ(test_join(job), 0);
    CHECK_EQ(seen, 1);
    CHECK_EQ(test_run(rt, signal_self, &seen), 0);
    CHECK_EQ(seen, 0); /* A worker blocks it. */
    weft_runtime_destroy(rt);
    CHECK_EQ(sigaction(SIGUSR1, &before, NULL), 0);
}

/* --- Threads that end early ------------------------------------------------------- */

static int exit_thread(void *arg)
{
    (void)arg;
    pthread_exit(NULL);
}

static int exit_in_place(void *arg)
{
    return weft_block_in_place(exit_thread, arg, WEFT_NEVER);
}

static int exit_in_body(weft_co *co, void *state)
{
    (void)co;
    return exit_thread(state);
}

static void exit_in_timer(void *arg)
{
    (void)exit_thread(arg);
}

static int start_timer(void *arg)
{
    static weft_timer timer;
    (void)arg;
    weft_timer_start(&timer, weft_now(), 0, exit_in_timer, NULL);
    return weft_sleep_until(WEFT_NEVER);
}

static int cancel_thread(void *arg)
{
    (void)arg;
    (void)pthread_cancel(pthread_self());
    pthread_testcancel();
    return 0;
}

static void run_named(const weft_fiber_spec *spec)
{
    weft_runtime *rt = test_start(2);
    weft_task *task;
    CHECK_EQ(weft_runtime_go(rt, &task, spec), 0);
    (void)test_join(task);
    weft_runtime_destroy(rt);
}

static void exit_on_fiber(void)
{
    run_named(&(weft_fiber_spec){ .function = exit_thread, .name = "leaver" });
}

static void exit_on_fiber_in_place(void)
{
    run_named(&(weft_fiber_spec){ .function = exit_in_place, .name = "leaver" });
}

static void exit_on_stackless_task(void)
{
    weft_runtime *rt = test_start(2);
    (void)test_join(test_spawn(rt, exit_in_body, NULL));
    weft_runtime_destroy(rt);
}

static void exit_in_blocking_job(void)
{
    weft_runtime *rt = test_start(2);
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, exit_thread, NULL), 0);
    (void)test_join(task);
    weft_runtime_destroy(rt);
}

static void exit_in_timer_callback(void)
{
    run_named(&(weft_fiber_spec){ .function = start_timer });
}

static void cancel_on_fiber(void)
{
    run_named(&(weft_fiber_spec){ .function = cancel_thread, .name = "canceler" });
}

static int exit_in_poll(weft_future *future)
{
    return exit_thread(future);
}

static bool never_cancel(weft_future *future)
{
    (void)future;
    return true;
}

static void *await_exit(void *arg)
{
    static const weft_future_ops ops = { .poll = exit_in_poll, .cancel = never_cancel };
    weft_future future = { .ops = &ops };
    CHECK_EQ(weft_await(&future, WEFT_NEVER), 0);
    return arg;
}

static void exit_in_await(void)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, await_exit, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void plain_thread_that_exits_in_await_aborts(void)
{
    CHECK_ABORTS(exit_in_await, "weft_await: the function ended its thread");
}

static void runtime_thread_that_exits_early_aborts(void)
{
    static const char advice[] = "return from the function instead";
    CHECK_ABORTS(exit_on_stackless_task, "task '' (#");
    CHECK_ABORTS(exit_in_blocking_job, "blocking job '' (#");
    CHECK_ABORTS(exit_in_timer_callback, "a thread of the runtime ended in a callback");
#if defined(WF_TSAN)
    test_skip("ThreadSanitizer itself aborts when a fiber ends its thread");
    return;
#endif
    CHECK_ABORTS(exit_on_fiber, "fiber 'leaver' (#");
    CHECK_ABORTS(exit_on_fiber, "it called pthread_exit(), or the thread was canceled");
    CHECK_ABORTS(exit_on_fiber, advice);
    CHECK_ABORTS(exit_on_fiber_in_place, "fiber 'leaver' (#");
    CHECK_ABORTS(cancel_on_fiber, "fiber 'canceler' (#");
}

/* --- Races ---------------------------------------------------------------------- */

struct duel {
    struct gate gate;
    _Atomic(uint32_t) stop;
    _Atomic(uint64_t) round;
    _Atomic(uint64_t) opened;
};

static void *open_each_round(void *arg)
{
    struct duel *duel = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 1);
    for (uint64_t round = 1;; round++) {
        test_spin_for(&duel->round, round);
        if (atomic_load(&duel->stop) != 0) {
            return NULL;
        }
        for (uint32_t i = wf_rng_below(&rng, 1u << wf_rng_below(&rng, 10)); i > 0; i--) {
            wf_cpu_relax();
        }
        gate_open(&duel->gate, (int)round);
        atomic_store(&duel->opened, round);
    }
}

/*
 * Goal:   no wake is lost between a waiting and a completing thread.
 * Method: the gate opens while the thread polls it, pends or sleeps. The wait has no deadline, so
 *         a lost wake ends in the timeout of the test.
 */
static void wake_at_any_moment_ends_wait(void)
{
    static struct duel duel;
    duel = (struct duel){ .stop = 0 };
    struct test_rounds rounds = test_rounds_begin();
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, open_each_round, &duel), 0);
    for (uint64_t round = 1; test_rounds_next(&rounds); round++) {
        duel.gate = gate_make(CANCEL_LATER);
        atomic_store(&duel.round, round);
        CHECK_EQ(weft_await(&duel.gate.future, WEFT_NEVER), round);
        test_spin_for(&duel.opened, round);
    }
    atomic_store(&duel.stop, 1);
    atomic_store(&duel.round, UINT64_MAX);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/*
 * Goal:   a wake that races with the deadline is neither lost nor left over.
 * Method: the gate opens at about the time of the deadline, which has often passed already. Its
 *         cancel takes time, so each round ends with the result, in either order, and the
 *         thread's task is back in its initial state.
 */
static void wake_that_races_with_deadline_is_not_lost(void)
{
    static struct duel duel;
    duel = (struct duel){ .stop = 0 };
    struct test_rounds rounds = test_rounds_begin();
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    const struct wf_task *waiter = wf_thread_self()->waiter;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, open_each_round, &duel), 0);
    for (uint64_t round = 1; test_rounds_next(&rounds); round++) {
        duel.gate = gate_make(CANCEL_LATER);
        atomic_store(&duel.round, round);
        weft_time deadline = round % 8 != 0 ? PAST : weft_now() + wf_rng_below(&rng, 20000);
        CHECK_EQ(weft_await(&duel.gate.future, deadline), round);
        test_spin_for(&duel.opened, round);
        uint64_t state = wf_task_state(waiter);
        CHECK_EQ(wf_state_lifecycle(state), WF_STATE_RUNNING);
        CHECK_EQ(wf_state_refs(state), 1);
    }
    atomic_store(&duel.stop, 1);
    atomic_store(&duel.round, UINT64_MAX);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST_MAIN({
    TEST(ready_future_is_not_waited_for),
    TEST(second_thread_completes_awaited_future),
    TEST(future_is_canceled_after_deadline),
    TEST(await_waits_for_slow_cancel),
    TEST(cancel_is_repeated_after_each_wake_until_done),
    TEST(result_that_beats_cancel_wins),
    TEST(cancellation_of_future_itself_is_not_timeout),
    TEST(spurious_wake_causes_one_more_poll),
    TEST(poll_after_wake_sees_writes_before_wake),
    TEST(deadline_in_middle_of_wake_waits_for_its_end),
    TEST(thread_record_is_created_at_first_call),
    TEST(waker_may_be_used_after_its_thread_has_ended),
    TEST(stale_waker_does_not_end_later_wait),
    TEST(wait_in_wrong_context_aborts_with_advice),
    TEST(started_thread_has_name_and_receives_only_faults),
    TEST(long_thread_name_is_truncated),
    TEST_NATIVE(child_process_inherits_mask_of_creator, "keeps some signals for itself"),
    TEST_NATIVE(signal_handlers_run_on_pool_threads, "keeps some signals for itself"),
    TEST(plain_thread_that_exits_in_await_aborts),
    TEST(runtime_thread_that_exits_early_aborts),
    TEST(wake_at_any_moment_ends_wait),
    TEST(wake_that_races_with_deadline_is_not_lost),
})
