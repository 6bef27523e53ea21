/* SPDX-License-Identifier: MIT */
/*
 * driver.h - interface of the scheduler to the layers above it: I/O driver and timers.
 *
 * A worker without a driver parks on a futex. A worker with one parks in the driver, and so
 * wakes on every event that the driver waits for. The runtime installs drivers before the
 * workers start. Each belongs to one worker and lives as long as the scheduler's memory: a late
 * waker may still call reach.
 */
#ifndef WF_SCHED_DRIVER_H
#define WF_SCHED_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

struct wf_driver;
struct wf_sched;
struct wf_task;

enum {
    WF_ALARM_BYTES = 96
};

struct wf_driver_ops {
    /* Its worker: parks until a wake-up (park.h), an event or the deadline (program's time,
     * WF_NEVER for none). Keeps events for poll. Returns false if the deadline ended it. */
    bool (*park)(struct wf_driver *driver, int64_t deadline);
    /* Any thread: unparks the worker, which is parked in the driver, not in its wf_park. Ends
     * that park, or the next one. */
    void (*reach)(struct wf_driver *driver);
    /* Its worker: handles events without blocking, that is, wakes their tasks. Fetches at most
     * room new ones. */
    void (*poll)(struct wf_driver *driver, unsigned room);
    /* Any thread, for all drivers of the runtime, while some worker is stalled in one poll.
     * is_left returns whether there may be unpolled events that no worker handles meanwhile.
     * help polls them on behalf of that worker, and returns true if some events can be fetched
     * only by workers that poll. */
    bool (*is_left)(struct wf_driver *driver);
    bool (*help)(struct wf_driver *driver);
};

struct wf_driver {
    const struct wf_driver_ops *ops;
};

/* A deadline of a waiting fiber, in its frame. Its content is private to time/timer.c. */
struct wf_alarm {
    _Alignas(8) unsigned char opaque[WF_ALARM_BYTES];
};

struct wf_timer_ops {
    /* A fiber: makes the alarm wake the task, its own, at the deadline. */
    void (*arm)(struct wf_sched *sched, struct wf_alarm *alarm, struct wf_task *task,
                int64_t deadline);
    /* The same fiber, after a wake-up: returns whether the alarm has fired. */
    bool (*has_fired)(const struct wf_alarm *alarm);
    /* The same fiber: disarms the alarm. After this no other thread touches it. */
    void (*disarm)(struct wf_alarm *alarm);
    /* Any thread: fires the timers that are due in the wheel of that worker, and sets its
     * next_deadline. */
    void (*fire)(struct wf_sched *sched, unsigned worker, int64_t now);
};

#endif
