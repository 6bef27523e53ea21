/* SPDX-License-Identifier: MIT */
/*
 * uring_model.c - src/io/uring.c, with io.c, idle.c and park.c: polls in the ring of a worker
 * that goes to sleep, is woken, or computes; others that put polls there, take them back, and
 * handle its events.
 *
 * The kernel is port/uring.c, the workers are io_rig.h's. A source is a latch, as in source.c, and
 * what belongs to the backend.
 */
#include "io/proxy.h"
#include "io_rig.h"

static _Atomic(uint32_t) latches[RIG_SOURCES];

static void lock_source(unsigned index)
{
    mc_await_exchange(&latches[index], 0, 1);
}

static void unlock_source(unsigned index)
{
    wf_store_release(&latches[index], 0u);
}

void wf_source_fire(struct wf_io *io, uint64_t tag, unsigned events)
{
    unsigned index = (uint32_t)tag;
    mc_assert(io == sched.io);
    mc_assert(index < RIG_SOURCES);
    struct wf_source *source = &sources[index];
    lock_source(index);
    if (wf_source_tag(source) == tag) {
        source->armed &= ~(events / WF_EVENT_READ_OVER) & WF_EVENT_BOTH;
        note_event(index, events);
    }
    unlock_source(index);
}

/* Of those for which something has come. */
void wf_source_fire_all(struct wf_io *io)
{
    for (unsigned index = 0; index < RIG_SOURCES; index++) {
        struct wf_source *source = &sources[index];
        lock_source(index);
        if (source->armed != 0) {
            io->backend->unwatch(io, source);
            wf_store_relaxed(&source->sequence, wf_load_relaxed(&source->sequence) + 1);
            note_event(index, WF_EVENT_READ);
        }
        unlock_source(index);
    }
}

/* The sources of the model are polled themselves. */
int wf_proxy_open(struct wf_source *source, unsigned direction, unsigned events)
{
    (void)direction;
    (void)events;
    return source->fd;
}

void wf_proxy_close(struct wf_source *source, unsigned direction)
{
    mc_assert(source->proxies[direction] == 0);
}

void wf_proxy_close_all(struct wf_io *io)
{
    mc_assert(io == sched.io);
}

static void watch_locked(unsigned index)
{
    lock_source(index);
    watch(index);
    unlock_source(index);
}

/* As wf_source_close(); the number may be another's at once. */
static void close_source(unsigned index)
{
    struct wf_source *source = &sources[index];
    lock_source(index);
    sched.io->backend->unwatch(sched.io, source);
    wf_io_uncount_watched(sched.io);
    wf_store_relaxed(&source->sequence, wf_load_relaxed(&source->sequence) + 1);
    unlock_source(index);
    kernel_close(source->fd);
}

/* --- Threads ---------------------------------------------------------------------------- */

static void comes_first(void *arg)
{
    (void)arg;
    comes(0);
}

/* As the watch, which sleeps between two looks. */
static void help(void *arg)
{
    kernel_thread_sleeps(true);
    mc_note(help_once(arg));
}

static void help_until_fired(void *arg)
{
    kernel_thread_sleeps(true);
    while (wf_load_acquire(&fired[0]) == 0) {
        (void)help_once(arg);
    }
}

/* A worker whose task waits for a source, and then computes until that has had an event. */
static void wait_and_compute(struct wf_worker *worker, bool hands_over)
{
    WF_TLS_STORE(wf_tls_worker, worker);
    watch_locked(0);
    if (hands_over) {
        worker->driver->ops->poll(worker->driver, RIG_SOURCES);
    }
    mc_await_exchange(&fired[0], 1, 1);
    WF_TLS_STORE(wf_tls_worker, (struct wf_worker *)NULL);
}

static void compute(void *worker)
{
    wait_and_compute(worker, false);
}

static void hand_over_and_compute(void *worker)
{
    wait_and_compute(worker, true);
}

/* --- Tests ------------------------------------------------------------------------------ */

static void begin(unsigned count)
{
    rig_begin(count, WEFT_IO_URING);
    mc_name(latches, sizeof latches, "latches");
}

/*
 * Goal:   a poll in the ring of a worker that goes to sleep is handed over.
 * Method: by a thread that is not a worker.
 */
static void poll_from_outside(void)
{
    begin(1);
    rig_start();
    watch_locked(0);
    comes(0);
    await_event(0);
    rig_end();
}

/*
 * Goal:   a worker that sleeps in its ring is woken for what it is asked for, and the event is
 *         handled.
 */
static void event_and_request(void)
{
    begin(1);
    watch_locked(0);
    rig_start();
    mc_go(comes_first, NULL);
    ask(0, ASKED);
    await_event(0);
    await_answers(1);
    rig_end();
}

/*
 * Goal:   the kernel lets go of a descriptor that is closed, and never polls another's.
 * Method: a thread from outside closes it; its poll was handed over, or not, or there is an event.
 */
static void closed_from_outside(void)
{
    begin(1);
    watch_locked(0);
    rig_start();
    close_source(0);
    kernel_await_let_go(sources[0].fd);
    rig_end();
}

static void closed_beside_an_event(void)
{
    begin(1);
    watch_locked(0);
    rig_start();
    mc_go(comes_first, NULL);
    close_source(0);
    kernel_await_let_go(sources[0].fd);
    mc_await_exchange(&sched.io->watched, 0, 0);
    rig_end();
}

/*
 * Goal:   the same, of the ring of another worker.
 */
static void close_as_second(void *arg)
{
    (void)arg;
    WF_TLS_STORE(wf_tls_worker, &workers[1]);
    close_source(0);
    WF_TLS_STORE(wf_tls_worker, (struct wf_worker *)NULL);
}

static void closed_by_another_worker(void)
{
    begin(2);
    watch_locked(0); /* In the first ring: it is the first one's turn. */
    mc_go(run_worker, &workers[0]);
    close_as_second(NULL);
    kernel_await_let_go(sources[0].fd);
    rig_end();
}

/*
 * Goal:   events of a worker that computes are handled by others.
 * Method: it has handed over its poll before, or not; the helper looks again and again.
 */
static void help_for_who_computes(void)
{
    begin(1);
    mc_go(mc_arg() == NULL ? compute : hand_over_and_compute, &workers[0]);
    mc_go(help_until_fired, &(sched.io->drivers[0].driver));
    comes(0);
    mc_join();
    rig_end();
}

/*
 * Goal:   a wake that a helper takes out of the ring is not lost.
 */
static void wake_is_taken_by_a_helper(void)
{
    begin(1);
    watch_locked(0);
    rig_start();
    mc_go(help, workers[0].driver);
    ask(0, ASKED);
    await_answers(1);
    rig_end();
}

/*
 * Goal:   the same, if it is taken out before the worker sleeps there.
 * Method: the worker was there before, until an event came; so there is a poll for wakes.
 */
static void early_wake_is_taken_by_a_helper(void)
{
    begin(1);
    watch_locked(0);
    watch_locked(1);
    comes(0);
    rig_start();
    mc_go(help, workers[0].driver);
    await_event(0);
    ask(0, ASKED);
    await_answers(1);
    rig_end();
}

/* This thread is the worker. It sleeps in its ring, where it waits for a wake, until an event
 * comes; another is waited for. */
static struct wf_driver *sleep_once(void)
{
    struct wf_driver *driver = workers[0].driver;
    WF_TLS_STORE(wf_tls_worker, &workers[0]);
    watch_locked(0);
    watch_locked(1);
    comes(0);
    mc_assert(driver->ops->park(driver, WF_NEVER));
    driver->ops->poll(driver, RIG_SOURCES);
    return driver;
}

/*
 * Goal:   a wake that comes when its worker is awake is taken out once.
 * Method: the worker has slept in its ring, where it waited for a wake, until an event came.
 */
static void late_wake_is_taken_out(void)
{
    begin(1);
    struct wf_driver *driver = sleep_once();
    driver->ops->reach(driver);
    mc_assert(help_once(driver));
    mc_assert(!help_once(driver));
    WF_TLS_STORE(wf_tls_worker, (struct wf_worker *)NULL);
    rig_end();
}

/*
 * Goal:   events that the kernel drops are told all the same, and a wake is not lost with them.
 * Method: the worker has slept in its ring, where it waited for a wake. Then its own wake and an
 *         event are dropped; it must be woken by the next one.
 */
static void dropped_events(void)
{
    begin(1);
    struct wf_driver *driver = sleep_once();
    kernel_drops(2);
    driver->ops->reach(driver);
    comes(1);
    driver->ops->poll(driver, RIG_SOURCES);
    mc_assert(wf_load_relaxed(&fired[1]) == 1);
    WF_TLS_STORE(wf_tls_worker, (struct wf_worker *)NULL);
    rig_start();
    ask(0, ASKED);
    await_answers(1);
    rig_end();
}

/*
 * Goal:   all of it with two workers, each with a ring.
 */
static void two_rings(void)
{
    begin(2);
    rig_start();
    mc_go(ask_first, NULL);
    mc_go(ask_second, NULL);
    watch_locked(0);
    watch_locked(1);
    comes(1);
    close_source(0);
    await_event(1);
    await_answers(2);
    kernel_await_let_go(sources[0].fd);
    rig_end();
}

#define BOUNDED .preemptions = 2, .deep_preemptions = 3, .seconds_max = 600

static const struct mc_test tests[] = {
    { .name = "poll_from_outside", .run = poll_from_outside, .leaks = true, BOUNDED },
    { .name = "event_and_request", .run = event_and_request, .leaks = true, BOUNDED },
    { .name = "closed_from_outside", .run = closed_from_outside, .leaks = true, BOUNDED },
    { .name = "closed_beside_an_event",
      .run = closed_beside_an_event,
      .leaks = true,
      .mode = MC_PCT,
      .runs = 4000 },
    { .name = "closed_by_another_worker", .run = closed_by_another_worker, .leaks = true, BOUNDED },
    { .name = "help_for_who_computes",
      .run = help_for_who_computes,
      .leaks = true,
      .mode = MC_PCT,
      .runs = 4000 },
    { .name = "help_for_who_has_handed_over",
      .run = help_for_who_computes,
      .arg = "handed over",
      .leaks = true,
      .mode = MC_PCT,
      .runs = 4000 },
    { .name = "wake_is_taken_by_a_helper",
      .run = wake_is_taken_by_a_helper,
      .leaks = true,
      .mode = MC_PCT,
      .runs = 4000,
      .seen = MC_OUTCOMES(0, 1) },
    { .name = "early_wake_is_taken_by_a_helper",
      .run = early_wake_is_taken_by_a_helper,
      .leaks = true,
      .mode = MC_PCT,
      .runs = 4000,
      .seen = MC_OUTCOMES(0, 1) },
    { .name = "late_wake_is_taken_out", .run = late_wake_is_taken_out, .leaks = true },
    { .name = "dropped_events", .run = dropped_events, .leaks = true, BOUNDED },
    { .name = "two_rings", .run = two_rings, .leaks = true, .mode = MC_PCT, .runs = 3000 },
};

MC_MAIN(tests)
