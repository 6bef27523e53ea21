/* SPDX-License-Identifier: MIT */
/*
 * io_rig.h - workers that do nothing but sleep in their drivers, and handle events.
 *
 * A worker does what park() of src/sched/search.c does, in the same order. Sources are only told
 * of: an event is counted. Whoever waits for one, or for a worker that was asked for something,
 * waits for ever if it is not told or woken, and the checker sees a deadlock.
 */
#ifndef MODEL_IO_RIG_H
#define MODEL_IO_RIG_H

#include "base/alloc.h"
#include "base/clock.h"
#include "io/io.h"
#include "io/table.h"
#include "kernel.h"
#include "mc.h"
#include "sched/idle.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    RIG_WORKERS_MAX = 2,
    RIG_SOURCES = 2,
    /* What a worker is asked for. */
    ASKED = 1,
    STOP = 2,
};

static struct wf_sched sched;
static struct wf_worker workers[RIG_WORKERS_MAX];
static struct wf_source sources[RIG_SOURCES];
static _Atomic(uint32_t) requests[RIG_WORKERS_MAX];
static _Atomic(uint32_t) answered;           /* how often a worker has seen to one */
static _Atomic(uint32_t) fired[RIG_SOURCES]; /* events */
static int news[RIG_SOURCES];                /* plain: what an event tells of */

/* --- What is not there ------------------------------------------------------------------ */

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

struct wf_sched *wf_thread_must_sched(const char *call)
{
    (void)call;
    return &sched;
}

/* As in worker.c. */
void wf_worker_wake(struct wf_worker *worker)
{
    if (wf_park_wake(&worker->park)) {
        worker->driver->ops->reach(worker->driver);
    }
}

int *weft_errno_location(void)
{
    static _Thread_local int value;
    return &value;
}

const char *weft_strerror(int error)
{
    (void)error;
    return "";
}

/* No source is opened here. */
void wf_source_close_all(struct wf_io *io)
{
    (void)io;
}

void wf_table_give_back(struct wf_source *blocks)
{
    mc_assert(blocks == NULL);
}

/* --- Workers ---------------------------------------------------------------------------- */

/* Sees to what it was asked for. */
static bool goes_on(const struct wf_worker *worker)
{
    uint32_t request = wf_xchg_relaxed(&requests[worker->index], 0u);
    (void)wf_fetch_add_relaxed(&answered, request & ASKED);
    return (request & STOP) == 0;
}

static void go_to_sleep(struct wf_worker *worker)
{
    wf_idle_park(&sched.idle, worker->index, false);
    if (wf_load_relaxed(&requests[worker->index]) == 0) {
        kernel_thread_sleeps(true);
        (void)worker->driver->ops->park(worker->driver, WF_NEVER);
        kernel_thread_sleeps(false);
    }
    (void)wf_idle_unpark(&sched.idle, worker->index);
    worker->driver->ops->poll(worker->driver, RIG_SOURCES);
}

static void run_worker(void *arg)
{
    struct wf_worker *worker = arg;
    WF_TLS_STORE(wf_tls_worker, worker);
    do {
        go_to_sleep(worker);
    } while (goes_on(worker));
    WF_TLS_STORE(wf_tls_worker, (struct wf_worker *)NULL);
}

/* As wf_sched_deliver(). */
static void ask(uint32_t index, uint32_t what)
{
    (void)wf_fetch_or_relaxed(&requests[index], what);
    wf_fence_full();
    if (wf_idle_is_parked(&sched.idle, index)) {
        wf_worker_wake(&workers[index]);
    }
}

static void ask_first(void *arg)
{
    (void)arg;
    ask(0, ASKED);
}

static void ask_second(void *arg)
{
    (void)arg;
    ask(1, ASKED);
}

/* As the watch does for a worker that is long in one poll. Was there anything? */
static bool help_once(struct wf_driver *driver)
{
    bool is_left = driver->ops->is_left(driver);
    if (is_left) {
        (void)driver->ops->help(driver);
    }
    return is_left;
}

/* --- Tests ------------------------------------------------------------------------------ */

/* As wf_source_open() and watch() in source.c. */
static void watch(unsigned index)
{
    struct wf_io *io = sched.io;
    mc_assert(wf_io_open(io) == 0);
    wf_io_count_watched(io);
    mc_assert(io->backend->watch(io, &sources[index], WF_SOURCE_READABLE) == 0);
}

/* What is asked for ahead makes no difference here. */
void wf_source_fetch(struct wf_io *io, uint64_t tag)
{
    (void)io;
    (void)tag;
}

void wf_source_fetch_waiter(struct wf_io *io, uint64_t tag)
{
    (void)io;
    (void)tag;
}

/* The part of wf_source_fire() that is about the event. */
static void note_event(unsigned index, unsigned events)
{
    mc_assert((events & WF_EVENT_READ) != 0);
    mc_assert(news[index] == 1);
    (void)wf_fetch_add_relaxed(&fired[index], 1);
}

static void comes(unsigned index)
{
    news[index] = 1;
    kernel_readable(sources[index].fd);
}

static inline void await_event(unsigned index)
{
    mc_await_exchange(&fired[index], 1, 1);
}

static inline void await_answers(unsigned count)
{
    mc_await_exchange(&answered, count, count);
}

static void rig_begin(unsigned count, weft_io_backend backend)
{
    sched.options.workers = count;
    sched.options.allocator = wf_alloc_default;
    sched.options.io_backend = backend;
    sched.options.io_events_max = RIG_SOURCES;
    sched.workers = workers;
    wf_idle_init(&sched.idle, count);
    for (unsigned i = 0; i < count; i++) {
        workers[i].sched = &sched;
        workers[i].index = i;
    }
    for (unsigned i = 0; i < RIG_SOURCES; i++) {
        sources[i].fd = KERNEL_FIRST_FD + (int)i;
        sources[i].index = i;
    }
    mc_assert(wf_io_create(&sched) == 0);
    mc_name(&sched.idle.counts, sizeof sched.idle.counts, "counts");
    mc_name(&sched.idle.parked, sizeof sched.idle.parked, "parked");
    mc_name(requests, sizeof requests, "requests");
    mc_name(&sched.io->watched, sizeof sched.io->watched, "watched");
    mc_name(&sched.io->is_open, sizeof sched.io->is_open, "is_open");
}

static void rig_start(void)
{
    for (unsigned i = 0; i < sched.options.workers; i++) {
        mc_name(&workers[i].park, sizeof workers[i].park, "park");
        mc_go(run_worker, &workers[i]);
    }
}

static void rig_end(void)
{
    for (unsigned i = 0; i < sched.options.workers; i++) {
        ask(i, STOP);
    }
    mc_join();
    wf_io_destroy(&sched);
    mc_assert(kernel_open_count() == 0);
}

#endif
