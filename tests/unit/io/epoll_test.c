/* SPDX-License-Identifier: MIT */
/*
 * epoll_test.c - epoll backend: requirements that every backend must meet.
 */
#include "io/io.h"

#include <stdlib.h>

#include "backend.h"
#include "rt.h"
#include "test.h"

static void idle_backend_uses_no_cpu(void)
{
    backend_is_idle(WEFT_IO_EPOLL);
}

static void waiter_is_woken_only_by_requested_event(void)
{
    backend_waits_for_what_was_asked(WEFT_IO_EPOLL);
}

static void events_tasks_and_timers_wake_workers(void)
{
    backend_wakes_for_everything(WEFT_IO_EPOLL);
}

static void parked_worker_respects_paused_clock(void)
{
    backend_knows_paused_time(WEFT_IO_EPOLL);
}

static void busy_worker_does_not_freeze_backend(void)
{
    backend_does_not_freeze(WEFT_IO_EPOLL);
}

static void events_and_tasks_alternate(void)
{
    backend_takes_turns(WEFT_IO_EPOLL);
}

static void lost_events_rearm_all_polls(void)
{
    backend_starts_anew(WEFT_IO_EPOLL);
}

static void thread_that_has_waited_leaks_nothing(void)
{
    backend_outlives_threads(WEFT_IO_EPOLL);
}

static void remote_poll_does_not_consume_wakes(void)
{
    backend_keeps_wakes(WEFT_IO_EPOLL);
}

TEST_MAIN({
    TEST(idle_backend_uses_no_cpu),
    TEST(waiter_is_woken_only_by_requested_event),
    TEST(lost_events_rearm_all_polls),
    TEST(events_tasks_and_timers_wake_workers),
    TEST(parked_worker_respects_paused_clock),
    TEST(busy_worker_does_not_freeze_backend),
    TEST(events_and_tasks_alternate),
    TEST(thread_that_has_waited_leaks_nothing),
    TEST(remote_poll_does_not_consume_wakes),
})
