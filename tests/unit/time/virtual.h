/* SPDX-License-Identifier: MIT */
/*
 * virtual.h - tests on a paused clock that they advance themselves.
 *
 * Timers of tasks have millisecond resolution. So the clock starts at a whole millisecond, and
 * a deadline of whole milliseconds is due exactly when the clock shows it.
 */
#ifndef VIRTUAL_H
#define VIRTUAL_H

#include <sched.h>
#include <stdatomic.h>

#include <weft.h>

#include "rt.h"
#include "rt/runtime.h"
#include "sched/sched.h"
#include "test.h"

#define VIRTUAL_HOUR (3600 * WEFT_S)

/* Pauses the clock at a time where the lowest level of the wheels starts a round of 64 ms, and
 * returns that time. Call it before the runtime is created. */
static inline weft_time virtual_begin(void)
{
    weft_clock_pause();
    weft_clock_advance(64 * WEFT_MS - weft_now() % (64 * WEFT_MS));
    return weft_now();
}

static inline void virtual_end(void)
{
    weft_clock_resume();
}

/*
 * Waits until the workers have done everything that is due at this time. A worker that was
 * woken for a timer still counts as parked for a moment, so each worker is given a task, and it
 * fires due timers before it runs the task.
 */
static inline void virtual_settle(weft_runtime *rt)
{
    for (unsigned i = 0; i < weft_runtime_workers(rt); i++) {
        weft_task *task;
        weft_spec spec = { .body = test_return_7, .pinned = WEFT_PINNED_TO(i) };
        CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
        CHECK_EQ(test_join(task), 7);
    }
    weft_stats stats;
    for (;;) {
        weft_runtime_stats(rt, &stats);
        if (stats.parked == stats.workers) {
            return;
        }
        (void)sched_yield();
    }
}

/* Same as virtual_settle(), and also waits until the monitor is asleep. */
static inline void virtual_settle_all(weft_runtime *rt)
{
    virtual_settle(rt);
    while (atomic_load(&rt->sched->watch.asleep) == 0) {
        (void)sched_yield();
    }
}

/* Advances the clock to the given time and waits until the workers are idle again. */
static inline void virtual_go_to(weft_runtime *rt, weft_time time)
{
    weft_clock_advance(time - weft_now());
    virtual_settle(rt);
}

/* Starts a fiber with the given argument. */
static inline weft_task *virtual_go(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    weft_task *task;
    weft_fiber_spec spec = { .function = function, .arg = arg };
    CHECK_EQ(weft_runtime_go(rt, &task, &spec), 0);
    return task;
}

#endif
