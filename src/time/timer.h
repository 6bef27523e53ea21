/* SPDX-License-Identifier: MIT */
/*
 * timer.h - what happens at a time: a task is woken, or a function is called.
 *
 * A timer is in the wheel of one worker, but any thread may put it there, take it
 * out, and fire it. It lives in the frame, future or object of whoever waits.
 */
#ifndef WF_TIME_TIMER_H
#define WF_TIME_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include <weft/clock.h>

#include "base/lock.h"
#include "time/precise.h"
#include "time/wheel.h"

struct wf_sched;
struct wf_task;
struct wf_timer;
struct wf_worker;

enum wf_timer_state {
    WF_TIMER_IDLE, /* zeroed, never armed, or taken out */
    WF_TIMER_ARMED,
    WF_TIMER_FIRED,
};

/* The timers of one worker. */
struct wf_timer_shard {
    _Alignas(WF_CACHE_LINE) struct wf_lock lock; /* guards the following, and the entries in it */
    struct wf_wheel wheel;
    struct wf_precise precise;
    unsigned coarse_streak;   /* coarse ones in a row while a precise one was due */
    int64_t fired_at;         /* the latest time it was fired for */
    struct wf_list calls;     /* functions that run */
    struct wf_worker *worker; /* constant; its next_deadline is written under the lock */
    uint64_t deferred_at;     /* the worker's: polls when it had no room; 0: it had room */
    uint32_t queued;          /* the worker's: a mark in its ring behind what it has queued */
};

struct wf_timer {
    union {
        struct wf_wheel_entry coarse;
        struct wf_precise_entry precise;
    } entry;
    struct wf_timer_shard *home; /* set when it is first armed; may be gone if it is not armed */
    _Atomic(uint32_t) state;     /* see timer.c */
    bool is_precise;
    /* A task to wake, constant; or, under the home's lock, a function to call. */
    struct wf_task *task;
    void (*function)(void *arg);
    void *arg;
};

/* Makes the timers of a scheduler and plugs them in. 0 or -ENOMEM. */
int wf_timers_create(struct wf_sched *sched);

/* Frees them, when the last stop that uses them has returned. Armed timers never fire. */
void wf_timers_destroy(struct wf_sched *sched);

/*
 * Any thread: arms a timer that is not armed, with task or function set. On a
 * worker of the scheduler in the wheel of that one, else in some.
 */
void wf_timer_arm(struct wf_sched *sched, struct wf_timer *timer, int64_t deadline);

/*
 * Any thread, but one at a time for a timer: takes it out if it has not fired.
 * True if so: it never will. False if it has, or was not armed. When this returns,
 * no thread touches the timer and its function does not run, except as weft_timer_stop()
 * says.
 */
bool wf_timer_disarm(struct wf_timer *timer);

/* weft_sleep_until(), in the call of that name. */
int wf_sleep_until(weft_time deadline, const char *call);

/* Whoever waits for the timer. */
static inline bool wf_timer_has_fired(const struct wf_timer *timer)
{
    /* acquire [A1]: whoever fired it is done with it. */
    return wf_load_acquire(&timer->state) == WF_TIMER_FIRED;
}

#endif
