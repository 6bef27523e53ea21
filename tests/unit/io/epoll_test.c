/* SPDX-License-Identifier: MIT */
/*
 * Events by epoll: what every backend must do.
 */
#include "io/io.h"

#include <stdlib.h>

#include "backend.h"
#include "rt.h"
#include "test.h"

static void without_events_nobody_runs(void)
{
    backend_is_idle(WEFT_IO_EPOLL);
}

static void who_waits_for_one_thing_is_not_woken_by_another(void)
{
    backend_waits_for_what_was_asked(WEFT_IO_EPOLL);
}

static void events_tasks_and_timers_wake(void)
{
    backend_wakes_for_everything(WEFT_IO_EPOLL);
}

static void who_sleeps_in_it_knows_paused_time(void)
{
    backend_knows_paused_time(WEFT_IO_EPOLL);
}

static void a_busy_worker_does_not_freeze_it(void)
{
    backend_does_not_freeze(WEFT_IO_EPOLL);
}

static void events_and_tasks_take_turns(void)
{
    backend_takes_turns(WEFT_IO_EPOLL);
}

static void after_lost_events_all_is_waited_for_anew(void)
{
    backend_starts_anew(WEFT_IO_EPOLL);
}

static void a_thread_that_has_waited_keeps_nothing(void)
{
    backend_outlives_threads(WEFT_IO_EPOLL);
}

static void who_helps_takes_no_wake_away(void)
{
    backend_keeps_wakes(WEFT_IO_EPOLL);
}

TEST_MAIN({
    TEST(without_events_nobody_runs),
    TEST(who_waits_for_one_thing_is_not_woken_by_another),
    TEST(after_lost_events_all_is_waited_for_anew),
    TEST(events_tasks_and_timers_wake),
    TEST(who_sleeps_in_it_knows_paused_time),
    TEST(a_busy_worker_does_not_freeze_it),
    TEST(events_and_tasks_take_turns),
    TEST(a_thread_that_has_waited_keeps_nothing),
    TEST(who_helps_takes_no_wake_away),
})
