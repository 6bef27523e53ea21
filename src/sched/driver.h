/* SPDX-License-Identifier: MIT */
/*
 * driver.h - what the scheduler needs of the layers above it: I/O and time.
 *
 * A worker without a driver sleeps on a futex. A worker with one sleeps in it, and so
 * wakes on whatever the driver waits for. The runtime plugs drivers in before the workers
 * start; each belongs to one worker, and lives as long as the scheduler's memory: a late
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
    /* Its worker: sleeps until a wake (park.h), an event or the deadline (program's time,
     * WF_NEVER for none). Events are kept for poll. Returns false if the deadline ended
     * it. */
    bool (*park)(struct wf_driver *driver, int64_t deadline);
    /* Any thread: its worker sleeps elsewhere than in its park; ends that sleep, or the next
     * one. */
    void (*reach)(struct wf_driver *driver);
    /* Its worker: handles events without sleeping: wakes their tasks. New ones only as many
     * as there is room for. */
    void (*poll)(struct wf_driver *driver, unsigned room);
    /* Any thread, of all drivers of the runtime: some worker is long in one poll. May there be
     * events that nobody handles meanwhile? And: handles them; true if some come only to workers
     * that poll. */
    bool (*is_left)(struct wf_driver *driver);
    bool (*help)(struct wf_driver *driver);
};

struct wf_driver {
    const struct wf_driver_ops *ops;
};

/* A deadline of a fiber that waits, in its frame. time/timer.c knows what is in
 * it. */
struct wf_alarm {
    _Alignas(8) unsigned char opaque[WF_ALARM_BYTES];
};

struct wf_timer_ops {
    /* A fiber: the task, its own, is to be woken at the deadline. */
    void (*arm)(struct wf_sched *sched, struct wf_alarm *alarm, struct wf_task *task,
                int64_t deadline);
    /* The same fiber, after a wake. */
    bool (*has_fired)(const struct wf_alarm *alarm);
    /* The same fiber: after this nobody touches the alarm. */
    void (*disarm)(struct wf_alarm *alarm);
    /* Any thread: fires what is due in the wheel of that worker, and sets its
     * next_deadline. */
    void (*fire)(struct wf_sched *sched, unsigned worker, int64_t now);
};

#endif
