/* SPDX-License-Identifier: MIT */
/*
 * A scheduler whose workers sleep in a driver instead of on a futex.
 */
#include "sched/driver.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <weft/task.h>

#include "base/clock.h"
#include "rt/config.h"
#include "sched/spawn.h"
#include "sched/worker.h"
#include "scheduler.h"
#include "test.h"

enum {
    WORKERS = 3
};

/* Sleeps like a futex, and counts what it is asked to do. */
struct fake_driver {
    struct wf_driver driver;
    struct wf_park park;
    _Atomic(uint64_t) parks;
    _Atomic(uint64_t) wakes;
    _Atomic(uint64_t) polls;
};

static bool fake_park(struct wf_driver *driver, int64_t deadline)
{
    struct fake_driver *self = (struct fake_driver *)driver;
    atomic_fetch_add(&self->parks, 1);
    CHECK(deadline == WF_NEVER);
    return wf_park_sleep(&self->park, deadline);
}

static void fake_wake(struct wf_driver *driver)
{
    struct fake_driver *self = (struct fake_driver *)driver;
    atomic_fetch_add(&self->wakes, 1);
    wf_park_wake(&self->park);
}

static void fake_poll(struct wf_driver *driver)
{
    atomic_fetch_add(&((struct fake_driver *)driver)->polls, 1);
}

static const struct wf_driver_ops fake_ops = { fake_park, fake_wake, fake_poll };

static struct wf_sched *start(struct fake_driver *drivers)
{
    struct wf_sched_options options;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = WORKERS;
    config.seed = test_seed();
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    struct wf_sched *sched = test_sched_create(&options);
    for (unsigned i = 0; i < WORKERS; i++) {
        drivers[i] = (struct fake_driver){ .driver = { &fake_ops } };
        sched->workers[i].driver = &drivers[i].driver;
    }
    CHECK_EQ(wf_sched_start(sched), 0);
    return sched;
}

static int yield_often(weft_co *co, void *state)
{
    int *i = state;
    int err;
    WEFT_BEGIN(co);
    for (*i = 0; *i < 1000; (*i)++) {
        WEFT_YIELD(co, err);
        CHECK_EQ(err, 0);
    }
    WEFT_END(co, 0);
}

/*
 * Goal:   a worker with a driver sleeps in it, is woken through it, and polls it
 *         between ticks; no task is lost.
 * Method: tasks one after the other from outside, to any worker and to a given
 *         one, with time for all to go to sleep in between.
 */
static void a_worker_sleeps_in_its_driver(void)
{
    struct fake_driver drivers[WORKERS];
    struct wf_sched *sched = start(drivers);
    for (unsigned i = 0; i < 60; i++) {
        struct wf_task *task;
        weft_spec spec = { .body = yield_often,
                           .state_size = sizeof(int),
                           .pinned = i % 2 == 0 ? 0 : WEFT_PINNED_TO(i % WORKERS) };
        while (wf_idle_unparked(&sched->idle) > 0) {
        }
        CHECK_EQ(wf_spawn(sched, &task, &spec), 0);
        CHECK_EQ(weft_join((weft_task *)task, NULL, WEFT_NEVER), 0);
    }
    wf_sched_stop(sched);
    uint64_t polls = 0;
    for (unsigned i = 0; i < WORKERS; i++) {
        CHECK_GE(atomic_load(&drivers[i].parks), 1);
        CHECK_GE(atomic_load(&drivers[i].wakes), 1);
        polls += atomic_load(&drivers[i].polls);
    }
    CHECK_GE(polls, 60);
    wf_sched_fini(sched);
}

TEST_MAIN({ TEST(a_worker_sleeps_in_its_driver) })
