/* SPDX-License-Identifier: MIT */
/*
 * backend.c - conformance tests for I/O backends.
 */
#include "backend.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "io/source.h"
#include "links.h"
#include "quiet.h"
#include "rt.h"
#include "rt/runtime.h"
#include "sched/driver.h"
#include "sched/sched.h"
#include "sched/worker.h"
#include "test.h"
#include "timing.h"

static weft_runtime *start(weft_io_backend backend, unsigned workers)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = workers;
    config.io = backend;
    return test_start_with(&config);
}

static int read_until_it_ends(void *arg)
{
    char buffer[64];
    ssize_t n;
    int sum = 0;
    while ((n = weft_read(arg, buffer, sizeof buffer, WEFT_NEVER)) > 0) {
        sum += (int)n;
    }
    return n == 0 ? sum : (int)n;
}

/* --- Idle ------------------------------------------------------------------------------- */

enum {
    LINKS = 20,
};

static struct link links[LINKS];
static weft_task *readers[LINKS];

static int open_links(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < LINKS; i++) {
        links[i] = link_open((enum link_kind)(i % LINK_KINDS));
        CHECK_EQ(weft_go(&readers[i], read_until_it_ends, links[i].far), 0);
    }
    return 0;
}

static int end_links(void *arg)
{
    int sum = 0;
    (void)arg;
    for (unsigned i = 0; i < LINKS; i++) {
        int result;
        weft_stream_close(links[i].near);
        CHECK_EQ(weft_join(readers[i], &result, WEFT_NEVER), 0);
        CHECK_GE(result, 0);
        sum += result;
        weft_stream_close(links[i].far);
    }
    return sum;
}

void backend_is_idle(weft_io_backend backend)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = start(backend, workers[i]);
        CHECK_EQ(test_run(rt, open_links, NULL), 0);
        quiet_must_come(200 * WEFT_MS);
        CHECK_EQ(test_run(rt, end_links, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

/* --- One of two directions -------------------------------------------------------------- */

static struct link half;  /* near is half-closed and does not read */
static struct link whole; /* far belongs to a library and is writable */
static weft_fd *foreign;
static weft_task *waiters[2];

static int write_until_it_ends(void *arg)
{
    static const char zeros[64 * 1024];
    int err;
    while ((err = weft_write_all(arg, zeros, sizeof zeros, WEFT_NEVER)) == 0) {
    }
    return err;
}

static int wait_for_data(void *arg)
{
    return weft_fd_wait(arg, WEFT_READABLE, WEFT_NEVER);
}

static int begin_to_wait(void *kind)
{
    half = link_open((enum link_kind)(uintptr_t)kind);
    whole = link_open((enum link_kind)(uintptr_t)kind);
    CHECK_EQ(weft_stream_shutdown(half.near, WEFT_WRITE_SIDE), 0);
    CHECK_EQ(weft_fd_open(&foreign, weft_stream_fd(whole.far)), 0);
    CHECK_EQ(weft_go(&waiters[0], write_until_it_ends, half.far), 0);
    CHECK_EQ(weft_go(&waiters[1], wait_for_data, foreign), 0);
    return 0;
}

static int end_waits(void *arg)
{
    int result;
    (void)arg;
    CHECK_EQ(weft_write_all(whole.near, "x", 1, WEFT_NEVER), 0);
    CHECK_EQ(weft_join(waiters[1], &result, WEFT_NEVER), 0);
    CHECK_EQ(result, WEFT_READABLE);
    weft_fd_close(foreign);
    link_close(&whole);
    weft_stream_close(half.near);
    CHECK_EQ(weft_join(waiters[0], &result, WEFT_NEVER), 0);
    CHECK(result == -EPIPE || result == -ECONNRESET);
    weft_stream_close(half.far);
    return 0;
}

void backend_waits_for_what_was_asked(weft_io_backend backend)
{
    for (uintptr_t kind = LINK_TCP; kind <= LINK_LOCAL; kind++) {
        weft_runtime *rt = start(backend, 2);
        CHECK_EQ(test_run(rt, begin_to_wait, (void *)kind), 0);
        quiet_must_come(200 * WEFT_MS);
        CHECK_EQ(test_run(rt, end_waits, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

void backend_asks_again(weft_io_backend backend, void (*interfere)(weft_runtime *rt))
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = start(backend, workers[i]);
        CHECK_EQ(test_run(rt, open_links, NULL), 0);
        CHECK_EQ(test_run(rt, begin_to_wait, (void *)LINK_TCP), 0);
        for (unsigned round = 0; round < 20; round++) {
            test_wait_ns(round % 4 * WEFT_MS);
            interfere(rt);
            for (unsigned j = 0; j < LINKS; j++) {
                CHECK_EQ(weft_try_join(readers[j], NULL), -EAGAIN);
                CHECK_EQ(weft_try_write(links[j].near, "x", 1), 1);
            }
        }
        for (unsigned j = 0; j < 2; j++) {
            CHECK_EQ(weft_try_join(waiters[j], NULL), -EAGAIN);
        }
        CHECK_EQ(test_run(rt, end_waits, NULL), 0);
        CHECK_EQ(test_run(rt, end_links, NULL), 20 * LINKS);
        weft_runtime_destroy(rt);
    }
}

static void lose_events(weft_runtime *rt)
{
    wf_source_fire_all(rt->sched->io);
}

void backend_starts_anew(weft_io_backend backend)
{
    backend_asks_again(backend, lose_events);
}

/* --- Wakes ------------------------------------------------------------------------------ */

static int count_sleeps(void *arg)
{
    _Atomic(bool) *is_over = arg;
    int sleeps = 0;
    while (!atomic_load(is_over)) {
        CHECK_EQ(weft_sleep(WEFT_MS), 0);
        sleeps++;
    }
    return sleeps;
}

static int return_1(void *arg)
{
    (void)arg;
    return 1;
}

void backend_wakes_for_everything(weft_io_backend backend)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = start(backend, workers[i]);
        _Atomic(bool) is_over = false;
        CHECK_EQ(test_run(rt, open_links, NULL), 0);
        weft_task *sleeper = test_go(rt, count_sleeps, &is_over);
        uint64_t rounds = test_scale(2000) + 50;
        for (uint64_t round = 0; round < rounds; round++) {
            CHECK_EQ(weft_try_write(links[round % LINKS].near, "x", 1), 1);
            CHECK_EQ(test_join_soon(test_go(rt, return_1, NULL)), 1);
            if (round % 10 == 0) {
                test_wait_ns(100 * WEFT_US); /* All workers fall asleep. */
            }
        }
        atomic_store(&is_over, true);
        CHECK_GE(test_join_soon(sleeper), 1);
        CHECK_EQ(test_run(rt, end_links, NULL), (int)rounds);
        weft_runtime_destroy(rt);
    }
}

/* --- Paused time ------------------------------------------------------------------------ */

static int sleep_an_hour(void *arg)
{
    (void)arg;
    return weft_sleep(3600 * WEFT_S);
}

void backend_knows_paused_time(weft_io_backend backend)
{
    static const unsigned workers[] = { 1, 2 };
    for (unsigned i = 0; i < 2; i++) {
        weft_runtime *rt = start(backend, workers[i]);
        CHECK_EQ(test_run(rt, open_links, NULL), 0);
        weft_clock_pause();
        for (unsigned round = 0; round < 5; round++) {
            weft_task *sleeper = test_go(rt, sleep_an_hour, NULL);
            CHECK_EQ(weft_try_write(links[0].near, "x", 1), 1);
            while (weft_try_join(sleeper, NULL) == -EAGAIN) {
                weft_clock_advance(600 * WEFT_S);
            }
        }
        weft_clock_resume();
        CHECK_EQ(test_run(rt, end_links, NULL), 5);
        weft_runtime_destroy(rt);
    }
}

/* --- Busy workers ----------------------------------------------------------------------- */

static _Atomic(uint64_t) answers;

static int answer(void *arg)
{
    struct link *link = arg;
    char byte;
    while (weft_read(link->far, &byte, 1, WEFT_NEVER) == 1) {
        atomic_fetch_add(&answers, 1);
    }
    return 0;
}

enum {
    QUESTIONS = 5,
};

/* Sends a request, and occupies its worker until there is an answer. */
static int ask_and_compute(void *arg)
{
    struct link *link = arg;
    for (uint64_t i = 1; i <= QUESTIONS; i++) {
        CHECK_EQ(weft_try_write(link->near, "?", 1), 1);
        test_wait_for(&answers, i);
    }
    return 0;
}

static void fork_nothing(void *arg)
{
    (void)arg;
}

/* Same as ask_and_compute(), with forks in between. */
static int ask_and_fork(void *arg)
{
    struct link *link = arg;
    for (uint64_t i = 1; i <= QUESTIONS; i++) {
        CHECK_EQ(weft_try_write(link->near, "?", 1), 1);
        while (atomic_load(&answers) < i) {
            weft_join2(fork_nothing, NULL, fork_nothing, NULL);
        }
    }
    return 0;
}

static int (*busy_function)(void *arg);

static int be_busy(void *arg)
{
    struct link link = link_open((enum link_kind)(uintptr_t)arg);
    weft_task *answerer;
    atomic_store(&answers, 0);
    CHECK_EQ(weft_go(&answerer, answer, &link), 0);
    CHECK_EQ(weft_sleep(WEFT_MS), 0); /* The answerer waits now, through this worker or another. */
    CHECK_EQ(busy_function(&link), 0);
    weft_stream_close(link.near);
    CHECK_EQ(weft_join(answerer, NULL, WEFT_NEVER), 0);
    weft_stream_close(link.far);
    return 0;
}

void backend_does_not_freeze(weft_io_backend backend)
{
    static const struct {
        unsigned workers;
        int (*function)(void *arg);
    } runs[] = { { 2, ask_and_compute }, { 8, ask_and_compute }, { 1, ask_and_fork } };
    for (unsigned i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        weft_runtime *rt = start(backend, runs[i].workers);
        busy_function = runs[i].function;
        for (uintptr_t kind = 0; kind < LINK_KINDS; kind++) {
            CHECK_EQ(test_run(rt, be_busy, (void *)kind), 0);
        }
        weft_runtime_destroy(rt);
    }
}

/* --- Fairness --------------------------------------------------------------------------- */

static int count_turns(void *arg)
{
    _Atomic(bool) *is_over = arg;
    int turns = 0;
    while (!atomic_load(is_over)) {
        CHECK_EQ(weft_yield(), 0);
        turns++;
    }
    return turns;
}

static int flood(void *arg)
{
    _Atomic(bool) is_over = false;
    weft_task *counter;
    int turns;
    int all = (int)test_scale(2000);
    (void)arg;
    CHECK_EQ(weft_go(&counter, count_turns, &is_over), 0);
    for (int round = 0; round < all; round++) {
        for (unsigned i = 0; i < LINKS; i++) {
            CHECK_EQ(weft_write(links[i].near, "x", 1, WEFT_NEVER), 1);
        }
        CHECK_EQ(weft_yield(), 0);
    }
    atomic_store(&is_over, true);
    CHECK_EQ(weft_join(counter, &turns, WEFT_NEVER), 0);
    CHECK_GE(turns, all / 2);
    return all * LINKS;
}

void backend_takes_turns(weft_io_backend backend)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.io = backend;
    config.max_io_completions = 1; /* One event, and then tasks. */
    weft_runtime *rt = test_start_with(&config);
    CHECK_EQ(test_run(rt, open_links, NULL), 0);
    int all = test_run(rt, flood, NULL);
    CHECK_EQ(test_run(rt, end_links, NULL), all);
    weft_runtime_destroy(rt);
}

/* --- Plain threads ---------------------------------------------------------------------- */

struct visit {
    struct link link;
    _Atomic(uint64_t) has_waited; /* the thread, briefly */
    _Atomic(uint64_t) may_end;    /* computes until then */
};

static void *visit(void *arg)
{
    struct visit *self = arg;
    char byte;
    CHECK_EQ(weft_read(self->link.far, &byte, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    atomic_store(&self->has_waited, 1);
    while (atomic_load(&self->may_end) == 0) {
    }
    return NULL;
}

static int read_byte(void *arg)
{
    char byte;
    return (int)weft_read(arg, &byte, 1, WEFT_NEVER);
}

static int write_to_reader(void *arg)
{
    struct visit *self = arg;
    weft_task *reader;
    CHECK_EQ(weft_go(&reader, read_byte, self->link.far), 0);
    link_wait_for_calls(self->link.far, 1);
    CHECK_EQ(weft_write_all(self->link.near, "x", 1, WEFT_NEVER), 0);
    return test_join_soon(reader);
}

static int open_visited(void *arg)
{
    ((struct visit *)arg)->link = link_open(LINK_LOCAL);
    return 0;
}

static int close_visited(void *arg)
{
    link_close(&((struct visit *)arg)->link);
    return 0;
}

/* Writes while the thread computes, or after it has ended. */
static void be_visited(weft_runtime *rt, bool ends)
{
    struct visit self = { 0 };
    pthread_t thread;
    CHECK_EQ(test_run(rt, open_visited, &self), 0);
    CHECK_EQ(pthread_create(&thread, NULL, visit, &self), 0);
    test_wait_for(&self.has_waited, 1);
    if (ends) {
        atomic_store(&self.may_end, 1);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    CHECK_EQ(test_run(rt, write_to_reader, &self), 1);
    if (!ends) {
        atomic_store(&self.may_end, 1);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    CHECK_EQ(test_run(rt, close_visited, &self), 0);
}

void backend_outlives_threads(weft_io_backend backend)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = start(backend, workers[i]);
        for (unsigned round = 0; round < 10; round++) {
            be_visited(rt, round % 2 == 0);
        }
        weft_runtime_destroy(rt);
    }
}

/* --- Polls on behalf of another worker -------------------------------------------------- */

struct help {
    weft_runtime *rt;
    _Atomic(uint64_t) may_end;
};

/* Acts as a monitor that always looks at the wrong moment. */
static void *help_all_the_time(void *arg)
{
    struct help *self = arg;
    const struct wf_sched *sched = self->rt->sched;
    while (atomic_load(&self->may_end) == 0) {
        for (unsigned i = 0; i < sched->options.workers; i++) {
            struct wf_driver *driver = sched->workers[i].driver;
            (void)driver->ops->help(driver); /* The events found before may be gone by now. */
        }
        test_wait_ns(20 * WEFT_US); /* Takes the core from the running thread. */
    }
    return NULL;
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* All on one core: there the helper preempts a worker that is about to sleep. */
static void use_one_core(cpu_set_t *before)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CHECK_EQ(sched_getaffinity(0, sizeof *before, before), 0);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, before)) {
            CPU_SET(i, &one);
        }
    }
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

void backend_keeps_wakes(weft_io_backend backend)
{
    static const unsigned workers[] = { 1, 2 };
    cpu_set_t before;
    use_one_core(&before);
    for (unsigned i = 0; i < 2; i++) {
        struct help self = { .rt = start(backend, workers[i]) };
        pthread_t thread;
        CHECK_EQ(test_run(self.rt, open_links, NULL), 0); /* Something to wait for. */
        CHECK_EQ(pthread_create(&thread, NULL, help_all_the_time, &self), 0);
        for (uint64_t round = 0; round < test_scale(4000); round++) {
            weft_time until = weft_now() + (int64_t)(round % 100) * WEFT_US;
            CHECK_EQ(test_run(self.rt, do_nothing, NULL), 0);
            while (weft_now() < until) { /* Until the worker is about to sleep, or sleeps. */
            }
        }
        atomic_store(&self.may_end, 1);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(test_run(self.rt, end_links, NULL), 0);
        weft_runtime_destroy(self.rt);
    }
    CHECK_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}
