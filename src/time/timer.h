/* SPDX-License-Identifier: MIT */
/*
 * timer.h - timers: wake a task or call a function at a deadline.
 *
 * A timer is in the shard of one worker, but any thread may arm, disarm and fire it. It is
 * embedded in the waiter's frame, future or object.
 */
#ifndef WF_TIME_TIMER_H
#define WF_TIME_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include <weft/time.h>

#include "base/lock.h"
#include "time/precise.h"
#include "time/wheel.h"

struct wf_sched;
struct wf_task;
struct wf_timer;
struct wf_worker;

enum wf_timer_state {
    WF_TIMER_IDLE, /* zeroed, never armed, or removed */
    WF_TIMER_ARMED,
    WF_TIMER_FIRED,
};

/* The timers of one worker. */
struct wf_timer_shard {
    _Alignas(WF_CACHE_LINE) struct wf_lock lock; /* guards the fields below, and their entries */
    struct wf_wheel wheel;
    struct wf_precise precise;
    unsigned coarse_streak;   /* coarse timers in a row while a precise one was due */
    int64_t fired_at;         /* the latest time for which it was fired */
    struct wf_list calls;     /* running functions */
    struct wf_worker *worker; /* constant; its next_deadline is written under the lock */
    uint64_t deferred_at;     /* worker only: polls when the ring had no space; 0: it had space */
    uint32_t queued;          /* worker only: mark in its ring behind the tasks that it queued */
};

struct wf_timer {
    union {
        struct wf_wheel_entry coarse;
        struct wf_precise_entry precise;
    } entry;
    struct wf_timer_shard *home; /* set when first armed; may be freed if the timer is not armed */
    _Atomic(uint32_t) state;     /* see timer.c */
    bool is_precise;
    /* A task to wake (constant), or a function to call (under the home's lock). */
    struct wf_task *task;
    void (*function)(void *arg);
    void *arg;
};

/* Creates the timers of a scheduler and installs them. Returns 0 or -ENOMEM. */
int wf_timers_create(struct wf_sched *sched);

/* Frees them after the last stop that uses them has returned. Armed timers never fire. */
void wf_timers_destroy(struct wf_sched *sched);

/*
 * Any thread. Arms a timer that is not armed and has its task or function set. On a worker of
 * the scheduler it goes to the shard of that worker, otherwise to any shard.
 */
void wf_timer_arm(struct wf_sched *sched, struct wf_timer *timer, int64_t deadline);

/*
 * Any thread, but one at a time for each timer. Removes the timer if it is armed. Returns true
 * if so: it will never fire. Returns false if it has fired or was not armed. When this returns,
 * no thread touches the timer and its function does not run, except as described at
 * weft_timer_stop().
 */
bool wf_timer_disarm(struct wf_timer *timer);

/* Same as weft_timer_start(), on any thread, with a timer of this scheduler. */
void wf_timer_start(struct wf_sched *sched, weft_timer *timer, weft_time deadline, unsigned flags,
                    void (*function)(void *arg), void *arg);

/* Sleeps like weft_sleep_until(). call is the name of the public call, for messages. */
int wf_sleep_until(weft_time deadline, const char *call);

/* For the waiter. Returns whether the timer has fired. */
static inline bool wf_timer_has_fired(const struct wf_timer *timer)
{
    /* acquire [A1]: the thread that fired the timer is done with it. */
    return wf_load_acquire(&timer->state) == WF_TIMER_FIRED;
}

#endif
