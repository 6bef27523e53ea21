/* SPDX-License-Identifier: MIT */
#include "rt/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weft.h>

#include "../fiber/child.h"
#include "base/alloc.h"
#include "rt.h"
#include "sched/idle.h"
#include "sched/sched.h"
#include "test.h"
#include "timing.h"

/* What a stackless task sees of the runtime that it runs on. */
struct view {
    weft_runtime *rt;
    int worker;
};

static int view_task(weft_co *co, void *state)
{
    (void)co;
    struct view *view = *(struct view **)state;
    view->rt = weft_runtime_current();
    view->worker = weft_worker_current();
    return 0;
}

static struct view look(weft_runtime *rt, uint32_t pinned)
{
    struct view view = { 0 };
    struct view *state = &view;
    weft_spec spec = {
        .body = view_task, .state = &state, .state_size = sizeof state, .pinned = pinned
    };
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(test_join_soon(task), 0);
    return view;
}

static void runtimes_are_independent(void)
{
    enum {
        COUNT = 5
    };
    weft_runtime *runtimes[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        runtimes[i] = test_start(i + 1);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK_EQ(weft_runtime_workers(runtimes[i]), i + 1);
        for (unsigned worker = 0; worker <= i; worker++) {
            struct view view = look(runtimes[i], WEFT_PINNED_TO(worker));
            CHECK(view.rt == runtimes[i]);
            CHECK_EQ(view.worker, worker);
        }
    }
    /* Destroying one runtime does not affect the others. */
    weft_runtime_destroy(runtimes[2]);
    for (unsigned i = 0; i < COUNT; i++) {
        if (i != 2) {
            CHECK(look(runtimes[i], 0).rt == runtimes[i]);
            weft_runtime_destroy(runtimes[i]);
        }
    }
}

static void runtime_has_configured_number_of_workers(void)
{
    static const unsigned counts[] = { 1, 2, 7, 64, 65, 200 };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        weft_runtime *rt = test_start(counts[i]);
        CHECK_EQ(weft_runtime_workers(rt), counts[i]);
        CHECK_EQ(look(rt, WEFT_PINNED_TO(counts[i] - 1)).worker, counts[i] - 1);
        weft_runtime_destroy(rt);
    }
}

static void plain_thread_has_no_current_runtime_or_worker(void)
{
    weft_runtime *rt = test_start(1);
    CHECK(weft_runtime_current() == NULL);
    CHECK_EQ(weft_worker_current(), -1);
    weft_runtime_destroy(rt);
}

static void destroy_accepts_null(void)
{
    weft_runtime_destroy(NULL);
}

static _Atomic(uint64_t) ended;

static int count_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&ended, 1);
    return 0;
}

static int spawning_main(void *arg)
{
    CHECK(weft_runtime_current() != NULL);
    CHECK_GE(weft_worker_current(), 0);
    CHECK_EQ(strcmp(weft_task_name(weft_task_current()), "main"), 0);
    weft_spec spec = { .body = count_task };
    weft_task *task;
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    CHECK_EQ(test_join_soon(task), 0);
    return *(int *)arg;
}

static void run_returns_result_of_main(void)
{
    static const int results[] = { 0, 1, -1, 12345, INT_MAX };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        int argument = results[i];
        CHECK_EQ(weft_run(NULL, spawning_main, &argument), results[i]);
        CHECK(weft_runtime_current() == NULL);
    }
}

static int leaving_main(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 100; i++) {
        weft_spec spec = { .body = count_task };
        CHECK_EQ(weft_spawn(NULL, &spec), 0);
    }
    return 3;
}

static void run_waits_for_every_task(void)
{
    atomic_store(&ended, 0);
    CHECK_EQ(weft_run(NULL, leaving_main, NULL), 3);
    CHECK_EQ(atomic_load(&ended), 100);
}

static void ignore_message(void *ctx, const char *text)
{
    (void)text;
    ++*(unsigned *)ctx;
}

static int unreachable_main(void *arg)
{
    (void)arg;
    CHECK(false);
    return 0;
}

static void run_with_bad_config_does_not_call_main(void)
{
    unsigned messages = 0;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = WEFT_WORKERS_MAX + 1;
    config.on_message = ignore_message;
    config.message_ctx = &messages;
    CHECK_EQ(weft_run(&config, unreachable_main, NULL), -EINVAL);
    CHECK_EQ(messages, 1);
}

static int run_function(void *arg);

/* Each level checks that the inner run restores its runtime. */
static int nested_main(void *arg)
{
    int depth = *(int *)arg;
    weft_runtime *mine = weft_runtime_current();
    CHECK(mine != NULL);
    int sum = 1;
    if (depth > 1) {
        int inner = depth - 1;
        weft_task *task;
        CHECK_EQ(weft_spawn_blocking(&task, run_function, &inner), 0);
        sum += test_join_soon(task);
    }
    CHECK(weft_runtime_current() == mine);
    weft_spec spec = { .body = count_task };
    CHECK_EQ(weft_spawn(NULL, &spec), 0);
    weft_stats stats;
    weft_runtime_stats(mine, &stats);
    CHECK_EQ(stats.tasks_spawned, depth > 1 ? 3 : 2);
    return sum;
}

static int run_function(void *arg)
{
    weft_runtime *outer = weft_runtime_current();
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    int result = weft_run(&config, nested_main, arg);
    CHECK(weft_runtime_current() == outer);
    return result;
}

static void run_nests_in_blocking_job(void)
{
    int depth = 4;
    atomic_store(&ended, 0);
    CHECK_EQ(weft_run(NULL, nested_main, &depth), 4);
    CHECK_EQ(atomic_load(&ended), 4);
    CHECK(weft_runtime_current() == NULL);
}

/* Counts allocations that have not been freed. */
static _Atomic(int64_t) bytes_out;
static _Atomic(int64_t) blocks_out;

static void *counting_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    atomic_fetch_add(&bytes_out, (int64_t)size);
    atomic_fetch_add(&blocks_out, 1);
    return wf_alloc_default.alloc(NULL, size, align);
}

static void counting_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    atomic_fetch_sub(&bytes_out, (int64_t)size);
    atomic_fetch_sub(&blocks_out, 1);
    wf_alloc_default.free(NULL, ptr, size, align);
}

static int sum_function(void *arg)
{
    return *(int *)arg + 1;
}

/* Reads a line of a thread's status into value. Returns false if the thread is gone. */
static bool read_status(const char *thread, const char *key, char *value, size_t size)
{
    char path[300];
    char line[256];
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    FILE *file = fopen(path, "r");
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        found = strncmp(line, key, strlen(key)) == 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    if (found) {
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(value, size, "%s", line + strlen(key) + 1);
    }
    return found;
}

/* Calls visit for each thread whose name begins with the prefix. Returns the number of such
 * threads. */
static unsigned visit_threads(const char *prefix, void (*visit)(const char *thread))
{
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder != NULL);
    unsigned count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char name[64];
        if (entry->d_name[0] != '.' && read_status(entry->d_name, "Name:", name, sizeof name) &&
            strncmp(name, prefix, strlen(prefix)) == 0) {
            count++;
            if (visit != NULL) {
                visit(entry->d_name);
            }
        }
    }
    (void)closedir(folder);
    return count;
}

static void check_no_thread(const char *prefix)
{
    weft_time deadline = test_deadline();
    while (visit_threads(prefix, NULL) > 0) {
        CHECK_LT(weft_now(), deadline);
        test_wait_ns(100 * WEFT_US);
    }
}

static unsigned count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder != NULL);
    unsigned count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(folder);
    return count;
}

/* A joined thread may still be listed for a moment. */
static void check_threads(unsigned expected)
{
    weft_time deadline = test_deadline();
    while (count_threads() > expected && weft_now() < deadline) {
        test_wait_ns(100 * WEFT_US);
    }
    CHECK_EQ(count_threads(), expected);
}

/*
 * Goal:   a destroyed runtime leaves no memory and no thread behind.
 * Method: 200 runtimes, each with tasks of several sizes and a blocking job.
 */
static void destroyed_runtimes_leave_no_memory_or_thread(void)
{
    weft_allocator allocator = { .alloc = counting_alloc, .free = counting_free };
    check_no_thread("weft-");
    unsigned threads = count_threads();
    size_t rss = 0;
    unsigned rounds = test_is_sanitized() ? 20 : 200;
    for (unsigned i = 0; i < rounds; i++) {
        weft_config config = WEFT_CONFIG_INIT;
        config.workers = 1 + i % 4;
        config.allocator = &allocator;
        weft_runtime *rt;
        CHECK_EQ(weft_runtime_create(&rt, &config), 0);
        for (unsigned at = 0; at < 20; at++) {
            weft_spec spec = { .body = count_task, .state_size = at * 100 };
            CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        }
        weft_task *task;
        int argument = (int)i;
        CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, sum_function, &argument), 0);
        CHECK_EQ(test_join_soon(task), i + 1);
        weft_runtime_destroy(rt);
        CHECK_EQ(atomic_load(&bytes_out), 0);
        CHECK_EQ(atomic_load(&blocks_out), 0);
        if (i == rounds / 2) {
            rss = test_rss_bytes();
        }
    }
    check_threads(threads);
    CHECK_LE(test_rss_bytes(), rss + 4 * 1024 * 1024);
}

static void handle_keeps_only_memory_after_destroy(void)
{
    weft_allocator allocator = { .alloc = counting_alloc, .free = counting_free };
    check_no_thread("weft-");
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.allocator = &allocator;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    weft_task *task;
    weft_spec spec = { .body = count_task, .name = "last" };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    unsigned threads = count_threads();
    weft_runtime_destroy(rt);
    check_threads(threads - 3); /* Two workers and the monitor. */
    CHECK(atomic_load(&bytes_out) > 0);
    CHECK(weft_task_is_done(task));
    CHECK_EQ(strcmp(weft_task_name(task), "last"), 0);
    CHECK_EQ(test_join_soon(task), 0);
    CHECK_EQ(atomic_load(&bytes_out), 0);
}

enum {
    HOOK_WORKERS = 3
};

static struct {
    _Atomic(uint64_t) started[HOOK_WORKERS];
    _Atomic(uint64_t) stopped[HOOK_WORKERS];
    _Atomic(uint64_t) parked[HOOK_WORKERS];
    _Atomic(uint64_t) unparked[HOOK_WORKERS];
    _Atomic(uint64_t) asleep; /* workers that are parked now */
} hooks;

static void record_start(void *ctx, unsigned worker)
{
    CHECK(ctx == &hooks);
    CHECK_EQ(weft_worker_current(), worker);
    atomic_fetch_add(&hooks.started[worker], 1);
}

static void record_stop(void *ctx, unsigned worker)
{
    CHECK(ctx == &hooks);
    CHECK_EQ(atomic_load(&hooks.started[worker]), 1);
    CHECK_EQ(atomic_load(&hooks.parked[worker]), atomic_load(&hooks.unparked[worker]));
    atomic_fetch_add(&hooks.stopped[worker], 1);
}

static void record_park(void *ctx, unsigned worker)
{
    CHECK(ctx == &hooks);
    CHECK_EQ(atomic_load(&hooks.started[worker]), 1);
    CHECK_EQ(atomic_load(&hooks.stopped[worker]), 0);
    CHECK_EQ(atomic_load(&hooks.parked[worker]), atomic_load(&hooks.unparked[worker]));
    atomic_fetch_add(&hooks.parked[worker], 1);
    atomic_fetch_add(&hooks.asleep, 1);
}

static void record_unpark(void *ctx, unsigned worker)
{
    CHECK(ctx == &hooks);
    atomic_fetch_add(&hooks.unparked[worker], 1);
    CHECK_EQ(atomic_load(&hooks.parked[worker]), atomic_load(&hooks.unparked[worker]));
    atomic_fetch_sub(&hooks.asleep, 1);
}

/*
 * Goal:   each hook is called on its worker's thread: start first and stop last, once each, and
 *         each sleep is between a park and an unpark.
 * Method: run tasks one by one, with all workers asleep in between.
 */
static void start_and_stop_hooks_run_once_park_hooks_in_pairs(void)
{
    memset(&hooks, 0, sizeof hooks);
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = HOOK_WORKERS;
    config.on_start = record_start;
    config.on_stop = record_stop;
    config.on_park = record_park;
    config.on_unpark = record_unpark;
    config.hook_ctx = &hooks;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    for (unsigned i = 0; i < 50; i++) {
        test_wait_for(&hooks.asleep, HOOK_WORKERS);
        CHECK_EQ(look(rt, WEFT_PINNED_TO(i % HOOK_WORKERS)).worker, i % HOOK_WORKERS);
    }
    test_wait_for(&hooks.asleep, HOOK_WORKERS);
    weft_runtime_shutdown(rt);
    for (unsigned i = 0; i < HOOK_WORKERS; i++) {
        weft_worker_stats stats;
        CHECK_EQ(weft_worker_stats_read(rt, i, &stats), 0);
        CHECK_EQ(atomic_load(&hooks.started[i]), 1);
        CHECK_EQ(atomic_load(&hooks.stopped[i]), 1);
        CHECK_EQ(atomic_load(&hooks.parked[i]), stats.parks);
        CHECK_EQ(atomic_load(&hooks.unparked[i]), stats.parks);
        CHECK_GE(stats.parks, 50 / HOOK_WORKERS);
        CHECK_EQ(stats.state, WEFT_WORKER_STOPPED);
    }
    weft_runtime_destroy(rt);
}

static _Atomic(uint64_t) job_runs;
static _Atomic(uint64_t) job_may_end;

static int waiting_function(void *arg)
{
    (void)arg;
    atomic_fetch_add(&job_runs, 1);
    test_wait_for(&job_may_end, 1);
    return 0;
}

/* A runtime with two workers, a monitor and a blocking-pool thread. */
static weft_runtime *create_named(const char *name)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.thread_name = name;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    atomic_store(&job_runs, 0);
    atomic_store(&job_may_end, 0);
    CHECK_EQ(weft_runtime_spawn_blocking(rt, NULL, waiting_function, NULL), 0);
    test_wait_for(&job_runs, 1);
    return rt;
}

static void destroy_named(weft_runtime *rt)
{
    atomic_store(&job_may_end, 1);
    weft_runtime_destroy(rt);
}

/* A thread that has just started may not have set its name yet. */
static void check_named(const char *prefix, unsigned expected)
{
    weft_time deadline = test_deadline();
    while (visit_threads(prefix, NULL) != expected && weft_now() < deadline) {
        test_wait_ns(100 * WEFT_US);
    }
    CHECK_EQ(visit_threads(prefix, NULL), expected);
}

static void threads_have_configured_name(void)
{
    check_no_thread("weft-");
    weft_runtime *rt = create_named("12345678");
    weft_runtime *plain = test_start(11);
    check_named("12345678-", 4);
    check_named("12345678-w0", 1);
    check_named("12345678-w1", 1);
    check_named("12345678-watch", 1);
    check_named("12345678-block", 1);
    check_named("weft-w", 12);
    check_named("weft-w10", 1);
    weft_runtime_destroy(plain);
    check_no_thread("weft-");
    destroy_named(rt);
    check_no_thread("12345678-");
}

static bool is_blocked(unsigned long long mask, int number)
{
    return (mask >> (number - 1) & 1) != 0;
}

static unsigned long long signals_blocked_by(const char *thread)
{
    char text[64];
    CHECK(read_status(thread, "SigBlk:", text, sizeof text));
    return strtoull(text, NULL, 16);
}

static void check_signals(const char *thread)
{
    static const int asynchronous[] = { SIGTERM, SIGINT,  SIGHUP,  SIGCHLD,
                                        SIGALRM, SIGUSR1, SIGPIPE, SIGPROF };
    static const int synchronous[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
    /* A thread that has not reached its function yet blocks all signals. */
    weft_time deadline = test_deadline();
    while (is_blocked(signals_blocked_by(thread), SIGSEGV)) {
        CHECK_LT(weft_now(), deadline);
        test_wait_ns(100 * WEFT_US);
    }
    unsigned long long mask = signals_blocked_by(thread);
    for (size_t i = 0; i < sizeof asynchronous / sizeof asynchronous[0]; i++) {
        CHECK(is_blocked(mask, asynchronous[i]));
    }
    for (size_t i = 0; i < sizeof synchronous / sizeof synchronous[0]; i++) {
        CHECK(!is_blocked(mask, synchronous[i]));
    }
}

static void workers_block_asynchronous_signals(void)
{
    sigset_t mine;
    sigset_t before;
    CHECK_EQ(sigemptyset(&mine), 0);
    CHECK_EQ(sigaddset(&mine, SIGUSR2), 0);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &mine, &before), 0);
    weft_runtime *rt = create_named("signals");
    check_named("signals-", 4);
    CHECK_EQ(visit_threads("signals-w", check_signals), 3); /* two workers and the monitor */
    /* The creator's signal mask is unchanged. */
    sigset_t after;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, &after), 0);
    for (int i = 1; i < SIGRTMAX; i++) {
        CHECK_EQ(sigismember(&after, i) == 1, i == SIGUSR2);
    }
    destroy_named(rt);
}

static void *destroy_main(void *arg)
{
    weft_runtime_destroy(arg);
    return NULL;
}

static void other_thread_may_destroy_runtime(void)
{
    for (unsigned i = 0; i < 10; i++) {
        weft_runtime *rt = test_start(2);
        weft_spec spec = { .body = count_task };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, destroy_main, rt), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
}

static int succeed(void *arg)
{
    (void)arg;
    return 5;
}

/* In a child: 60 MiB for the stacks of four threads and of the first fiber. */
static void run_in_little_address_space(void *arg)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    (void)arg;
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%lu", &pages), 1);
    (void)fclose(file);
    size_t bytes = pages * (size_t)sysconf(_SC_PAGESIZE) + (60 << 20);
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){ bytes, bytes }), 0);
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    CHECK_EQ(weft_run(&config, succeed, NULL), 5);
}

static void run_needs_little_address_space(void)
{
    if (test_is_sanitized()) {
        test_skip("a sanitizer needs the address space");
        return;
    }
    child_must_succeed(run_in_little_address_space, NULL);
}

/* Misuse. Each case runs in its own child process. */

static weft_runtime *forked;

static void spawn_in_child(void)
{
    weft_spec spec = { .body = count_task };
    CHECK_EQ(weft_runtime_spawn(forked, NULL, &spec), 0);
}

static void spawn_wait_in_child(void)
{
    weft_spec spec = { .body = count_task };
    CHECK_EQ(weft_runtime_spawn_wait(forked, NULL, &spec, WEFT_NEVER), 0);
}

static void spawn_blocking_in_child(void)
{
    CHECK_EQ(weft_runtime_spawn_blocking(forked, NULL, waiting_function, NULL), 0);
}

static void shut_down_in_child(void)
{
    weft_runtime_shutdown(forked);
}

static void destroy_in_child(void)
{
    weft_runtime_destroy(forked);
}

static void calls_in_forked_child_abort_with_message(void)
{
    forked = test_start(2);
    while (wf_idle_unparked(&forked->sched->idle) != 0) {
        test_wait_ns(100 * 1000);
    }
    CHECK_ABORTS(spawn_in_child, "weft_runtime_spawn: this process is a fork");
    CHECK_ABORTS(spawn_wait_in_child, "weft_runtime_spawn_wait: this process is a fork");
    CHECK_ABORTS(spawn_blocking_in_child, "weft_runtime_spawn_blocking: this process is a fork");
    CHECK_ABORTS(shut_down_in_child, "weft_runtime_shutdown: this process is a fork");
    CHECK_ABORTS(destroy_in_child,
                 "call exec, or fork on a plain thread and create a runtime after fork");
    /* The parent continues. */
    CHECK(look(forked, 0).rt == forked);
    weft_runtime_destroy(forked);
}

static int return_3(void *arg)
{
    (void)arg;
    return 3;
}

static int fork_and_run(void *arg)
{
    (void)arg;
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(weft_run(NULL, return_3, NULL), 3);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    abort();
}

static void run_after_fork_in_fiber(void)
{
    (void)test_run(test_start(1), fork_and_run, NULL);
}

static void run_in_child_forked_by_fiber_aborts_with_message(void)
{
    CHECK_ABORTS(run_after_fork_in_fiber, "weft_run: this process is a fork of the one that made "
                                          "the runtime");
}

/* Aborts on its own if everything works. */
static void create_in_child(void)
{
    weft_runtime *rt = test_start(2);
    CHECK(look(rt, 0).rt == rt);
    weft_runtime_destroy(rt);
    (void)fprintf(stderr, "all is well\n");
    abort();
}

static void forked_child_may_create_runtime(void)
{
    weft_runtime_destroy(test_start(1));
    CHECK_ABORTS(create_in_child, "all is well");
}

static void spawn_without_runtime(void)
{
    weft_spec spec = { .body = count_task };
    CHECK_EQ(weft_spawn(NULL, &spec), 0);
}

static void spawn_blocking_without_runtime(void)
{
    CHECK_EQ(weft_spawn_blocking(NULL, waiting_function, NULL), 0);
}

static int run_task(weft_co *co, void *state)
{
    (void)co;
    int argument = 0;
    (void)state;
    return weft_run(NULL, spawning_main, &argument);
}

static int shutdown_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_runtime_shutdown(weft_runtime_current());
    return 0;
}

static int destroy_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_runtime_destroy(weft_runtime_current());
    return 0;
}

static void run_on_worker(weft_body_fn body)
{
    weft_task *task;
    weft_spec spec = { .body = body };
    CHECK_EQ(weft_runtime_spawn(test_start(1), &task, &spec), 0);
    (void)test_join_soon(task);
}

static void weft_run_on_worker(void)
{
    run_on_worker(run_task);
}

static void shut_down_on_worker(void)
{
    run_on_worker(shutdown_task);
}

static void destroy_on_worker(void)
{
    run_on_worker(destroy_task);
}

static void call_in_wrong_context_aborts_with_message(void)
{
    CHECK_ABORTS(spawn_without_runtime,
                 "weft_spawn: this thread belongs to no runtime; call weft_runtime_spawn with");
    CHECK_ABORTS(spawn_blocking_without_runtime, "call weft_runtime_spawn_blocking with");
    CHECK_ABORTS(weft_run_on_worker, "weft_run: called on a worker");
    CHECK_ABORTS(shut_down_on_worker, "weft_runtime_shutdown: called on a thread of this runtime");
    CHECK_ABORTS(destroy_on_worker, "called on a thread of this runtime");
}

/* --- Remaining handles ------------------------------------------------------------------------ */

static char held_text[1000];
static unsigned held_messages;

static void record_message(void *ctx, const char *text)
{
    CHECK(ctx == &held_messages);
    held_messages++;
    (void)snprintf(held_text, sizeof held_text, "%s", text);
}

static weft_runtime *start_recording_messages(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.on_message = record_message;
    config.message_ctx = &held_messages;
    held_messages = 0;
    return test_start_with(&config);
}

static void destroy_names_tasks_with_remaining_handles(void)
{
    weft_runtime *rt = start_recording_messages();
    weft_task *tasks[3];
    weft_fiber_spec fiber = { .function = return_3, .name = "forgotten" };
    weft_spec body = { .body = test_return_7 };
    char wanted[100];
    CHECK_EQ(weft_runtime_go(rt, &tasks[0], &fiber), 0);
    CHECK_EQ(weft_runtime_spawn(rt, &tasks[1], &body), 0);
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &tasks[2], return_3, NULL), 0);
    uint64_t id = weft_task_id(tasks[1]);
    weft_runtime_destroy(rt);
    CHECK_EQ(held_messages, 1);
    CHECK_HAS(held_text, "weft_runtime_destroy: 3 tasks have a handle that was neither joined nor");
    CHECK_HAS(held_text, "fiber 'forgotten' (#");
    (void)snprintf(wanted, sizeof wanted, "task #%llu (function %p)", (unsigned long long)id,
                   (void *)(uintptr_t)test_return_7);
    CHECK_HAS(held_text, wanted);
    CHECK_HAS(held_text, "blocking");
    int result = 0;
    CHECK_EQ(weft_join(tasks[0], &result, WEFT_NEVER), 0);
    CHECK_EQ(result, 3);
    weft_detach(tasks[1]);
    weft_detach(tasks[2]);
}

static void destroy_names_only_task_with_remaining_handle(void)
{
    weft_runtime *rt = start_recording_messages();
    weft_task *task = test_go(rt, return_3, NULL);
    weft_runtime_destroy(rt);
    CHECK_EQ(held_messages, 1);
    CHECK_HAS(held_text, "weft_runtime_destroy: 1 task has a handle that was neither joined nor");
    weft_detach(task);
}

/* --- From another runtime ----------------------------------------------------------------- */

static int destroy_it(void *rt)
{
    weft_runtime_destroy(rt);
    return 0;
}

static int shut_it_down(void *rt)
{
    weft_runtime_shutdown(rt);
    return 0;
}

static int destroy_in_place(void *rt)
{
    return weft_block_in_place(destroy_it, rt, WEFT_NEVER);
}

static void destroy_on_other_worker(void)
{
    (void)test_run(test_start(1), destroy_it, test_start(1));
}

static void shut_down_on_other_worker(void)
{
    (void)test_run(test_start(1), shut_it_down, test_start(1));
}

static void destroy_on_worker_of_other_runtime_aborts(void)
{
    CHECK_ABORTS(destroy_on_other_worker,
                 "weft_runtime_destroy: called on a worker of another runtime");
    CHECK_ABORTS(shut_down_on_other_worker,
                 "weft_runtime_shutdown: called on a worker of another runtime");
}

static void destroy_off_workers_of_other_runtime_succeeds(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *job;
    CHECK_EQ(test_run(rt, destroy_in_place, test_start(1)), 0);
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, destroy_it, test_start(1)), 0);
    CHECK_EQ(test_join(job), 0);
    weft_runtime_destroy(rt);
}

static void destroy_names_first_of_many_tasks(void)
{
    enum {
        TASKS = 20,
    };
    weft_runtime *rt = start_recording_messages();
    weft_task *tasks[TASKS];
    for (unsigned i = 0; i < TASKS; i++) {
        tasks[i] = test_go(rt, return_3, NULL);
    }
    weft_runtime_destroy(rt);
    CHECK_EQ(held_messages, 1);
    CHECK_HAS(held_text, "20 tasks have a handle");
    CHECK_HAS(held_text, ", ...; the memory of the runtime stays until they end");
    for (unsigned i = 0; i < TASKS; i++) {
        weft_detach(tasks[i]);
    }
}

/* All handles have been joined or detached, so none is left. */
static void destroy_without_remaining_handles_reports_nothing(void)
{
    weft_runtime *rt = start_recording_messages();
    CHECK_EQ(test_run(rt, return_3, NULL), 3);
    weft_task *task = test_go(rt, return_3, NULL);
    weft_task *other = weft_task_retain(task);
    weft_detach(task);
    CHECK_EQ(test_join(other), 3);
    weft_task *job;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, return_3, NULL), 0);
    CHECK_EQ(test_join(job), 3);
    weft_runtime_destroy(rt);
    CHECK_EQ(held_messages, 0);
}

TEST_MAIN({
    TEST(destroy_names_tasks_with_remaining_handles),
    TEST(destroy_names_first_of_many_tasks),
    TEST(destroy_without_remaining_handles_reports_nothing),
    TEST(run_needs_little_address_space),
    TEST(call_in_wrong_context_aborts_with_message),
    TEST(calls_in_forked_child_abort_with_message),
    TEST(run_in_child_forked_by_fiber_aborts_with_message),
    TEST(destroy_on_worker_of_other_runtime_aborts),
    TEST(destroy_off_workers_of_other_runtime_succeeds),
    TEST(destroy_names_only_task_with_remaining_handle),
    TEST(forked_child_may_create_runtime),
    TEST(runtimes_are_independent),
    TEST(runtime_has_configured_number_of_workers),
    TEST(plain_thread_has_no_current_runtime_or_worker),
    TEST(destroy_accepts_null),
    TEST(run_returns_result_of_main),
    TEST(run_waits_for_every_task),
    TEST(run_with_bad_config_does_not_call_main),
    TEST(run_nests_in_blocking_job),
    TEST_NATIVE(destroyed_runtimes_leave_no_memory_or_thread, "takes memory itself"),
    TEST(handle_keeps_only_memory_after_destroy),
    TEST(start_and_stop_hooks_run_once_park_hooks_in_pairs),
    TEST(threads_have_configured_name),
    TEST(workers_block_asynchronous_signals),
    TEST(other_thread_may_destroy_runtime),
})
