/* SPDX-License-Identifier: MIT */
/*
 * io_model.c - src/io/io.c and epoll.c, with idle.c and park.c: a worker goes to sleep while a
 * source is watched, an event comes, or it is woken; on the seat, or beside it.
 *
 * The kernel is port/kernel.c, the workers are io_rig.h's.
 */
#include <string.h>

#include "io/proxy.h"
#include "io_rig.h"

/* Each source has a descriptor of its own. */
int wf_proxy_duplicate(struct wf_source *source)
{
    (void)source;
    mc_assert(false);
    return -1;
}

void wf_proxy_close(struct wf_source *source, unsigned direction)
{
    mc_assert(source->proxies[direction] == 0);
}

void wf_proxy_close_all(struct wf_io *io)
{
    mc_assert(io == sched.io);
}

void wf_source_fire(struct wf_io *io, uint64_t tag, unsigned events)
{
    mc_assert(io == sched.io);
    mc_assert(tag < RIG_SOURCES);
    note_event((unsigned)tag, events);
}

static void ask_and_watch(void *arg)
{
    (void)arg;
    weft_io_info info;
    mc_assert(wf_io_info(sched.io, &info) == 0);
    mc_assert(strcmp(info.backend, "epoll") == 0);
    watch(1);
}

static void help(void *arg)
{
    mc_note(help_once(arg));
}

/*
 * Goal:   a worker that goes to sleep when there is no source yet handles the events of the
 *         first one.
 * Method: the source is watched by a thread that is not a worker.
 */
static void first_source_and_a_sleeper(void)
{
    rig_begin(1, WEFT_IO_EPOLL);
    rig_start();
    watch(0);
    comes(0);
    await_event(0);
    rig_end();
}

/*
 * Goal:   who finds the backend open finds it whole, and there is one.
 * Method: two threads want it at once.
 */
static void two_first_sources(void)
{
    rig_begin(1, WEFT_IO_EPOLL);
    mc_go(ask_and_watch, NULL);
    watch(0);
    mc_join();
    mc_assert(kernel_open_count() == 2);
    wf_io_destroy(&sched);
    mc_assert(kernel_open_count() == 0);
}

/*
 * Goal:   a worker on the seat is woken for what it is asked for, and the event is handled.
 */
static void event_and_request(void)
{
    rig_begin(1, WEFT_IO_EPOLL);
    watch(0);
    rig_start();
    mc_go(ask_first, NULL);
    comes(0);
    await_event(0);
    await_answers(1);
    rig_end();
}

/*
 * Goal:   a wake that somebody else has fetched is not lost.
 * Method: a helper finds the seat free, and fetches when its worker sits there.
 */
static void wake_is_fetched_by_a_helper(void)
{
    rig_begin(1, WEFT_IO_EPOLL);
    watch(0);
    rig_start();
    mc_go(help, workers[0].driver);
    ask(0, ASKED);
    await_answers(1);
    rig_end();
}

/*
 * Goal:   one is on the seat whatever the others do, and all are woken.
 * Method: two workers; each is asked for something, and there is an event.
 */
static void two_workers_and_a_seat(void)
{
    rig_begin(2, WEFT_IO_EPOLL);
    watch(0);
    rig_start();
    mc_go(ask_first, NULL);
    mc_go(ask_second, NULL);
    comes(0);
    await_event(0);
    await_answers(2);
    rig_end();
}

#define BOUNDED .preemptions = 2, .deep_preemptions = 3, .seconds_max = 600

static const struct mc_test tests[] = {
    { .name = "first_source_and_a_sleeper", .run = first_source_and_a_sleeper, .leaks = true },
    { .name = "two_first_sources", .run = two_first_sources, .leaks = true },
    { .name = "event_and_request", .run = event_and_request, .leaks = true, BOUNDED },
    { .name = "wake_is_fetched_by_a_helper",
      .run = wake_is_fetched_by_a_helper,
      .leaks = true,
      BOUNDED,
      .seen = MC_OUTCOMES(0, 1) },
    { .name = "two_workers_and_a_seat",
      .run = two_workers_and_a_seat,
      .leaks = true,
      .mode = MC_PCT,
      .runs = 8000 },
};

MC_MAIN(tests)
