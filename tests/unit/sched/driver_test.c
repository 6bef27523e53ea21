/* SPDX-License-Identifier: MIT */
/*
 * driver_test.c - scheduler whose workers park in a driver instead of on a futex.
 */
#include "sched/driver.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <weft/par.h>
#include <weft/task.h>

#include "base/clock.h"
#include "rt/config.h"
#include "sched/fiber.h"
#include "sched/spawn.h"
#include "sched/worker.h"
#include "scheduler.h"
#include "test.h"

enum {
    WORKERS = 3
};

/* Parks on another futex, and counts the calls. */
struct fake_driver {
    struct wf_driver driver;
    struct wf_worker *worker;
    struct fake_driver *all; /* drivers of all workers */
    struct wf_park elsewhere;
    _Atomic(uint64_t) parks;
    _Atomic(uint64_t) reached;
    _Atomic(uint64_t) polls;
    _Atomic(uint64_t) helped;
    _Atomic(bool) is_left;
    _Atomic(bool) has_rest; /* events that other workers cannot poll */
    uint64_t wanted;        /* polls that its worker waits for */
};

static bool fake_park(struct wf_driver *driver, int64_t deadline)
{
    struct fake_driver *self = (struct fake_driver *)driver;
    atomic_fetch_add(&self->parks, 1);
    CHECK(deadline == WF_NEVER);
    if (!wf_park_leave(&self->worker->park)) {
        return true;
    }
    do {
        (void)wf_park_sleep(&self->elsewhere, deadline);
    } while (wf_park_is_away(&self->worker->park));
    return wf_park_come_back(&self->worker->park);
}

static void fake_reach(struct wf_driver *driver)
{
    struct fake_driver *self = (struct fake_driver *)driver;
    atomic_fetch_add(&self->reached, 1);
    CHECK(!wf_park_wake(&self->elsewhere));
}

static void fake_poll(struct wf_driver *driver, unsigned room)
{
    CHECK_LE(room, WF_RING_SLOTS);
    atomic_fetch_add(&((struct fake_driver *)driver)->polls, 1);
}

static bool fake_is_left(struct wf_driver *driver)
{
    struct fake_driver *all = ((struct fake_driver *)driver)->all;
    for (unsigned i = 0; i < WORKERS; i++) {
        if (atomic_load(&all[i].is_left)) {
            return true;
        }
    }
    return false;
}

static bool fake_help(struct wf_driver *driver)
{
    struct fake_driver *all = ((struct fake_driver *)driver)->all;
    bool has_rest = false;
    for (unsigned i = 0; i < WORKERS; i++) {
        if (atomic_load(&all[i].has_rest)) {
            has_rest = true;
        } else if (atomic_exchange(&all[i].is_left, false)) {
            atomic_fetch_add(&all[i].helped, 1);
        }
    }
    return has_rest;
}

static const struct wf_driver_ops fake_ops = { .park = fake_park,
                                               .reach = fake_reach,
                                               .poll = fake_poll,
                                               .is_left = fake_is_left,
                                               .help = fake_help };

static struct wf_sched *start(struct fake_driver *drivers)
{
    struct wf_sched_options options;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = WORKERS;
    config.seed = test_seed();
    CHECK_EQ(wf_config_resolve(&config, &options), 0);
    struct wf_sched *sched = test_sched_create(&options);
    for (unsigned i = 0; i < WORKERS; i++) {
        drivers[i] = (struct fake_driver){ .driver = { &fake_ops },
                                           .worker = &sched->workers[i],
                                           .all = drivers };
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
 * Goal:   a worker with a driver parks in it, is unparked through it, and polls it between ticks.
 *         No task is lost.
 * Method: tasks one after the other from outside, to any worker and to a given one, with time for
 *         all workers to park in between.
 */
static void worker_parks_in_its_driver(void)
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
    wf_sched_drain(sched);
    wf_sched_stop(sched);
    uint64_t polls = 0;
    for (unsigned i = 0; i < WORKERS; i++) {
        CHECK_GE(atomic_load(&drivers[i].parks), 1);
        CHECK_GE(atomic_load(&drivers[i].reached), 1);
        polls += atomic_load(&drivers[i].polls);
    }
    CHECK_GE(polls, 60);
    wf_sched_fini(sched);
}

/* Stays in one poll until other workers have polled on its behalf three times. */
static int compute(weft_co *co, void *state)
{
    struct fake_driver *drivers = *(struct fake_driver **)state;
    struct fake_driver *own = &drivers[weft_worker_current()];
    (void)co;
    for (uint64_t times = 1; times <= 3; times++) {
        atomic_store(&own->is_left, true);
        test_wait_for(&own->helped, times);
    }
    return 0;
}

static void compute_on(struct wf_sched *sched, struct fake_driver *drivers, unsigned count)
{
    struct wf_task *tasks[WORKERS];
    for (unsigned i = 0; i < count; i++) {
        weft_spec spec = { .body = compute,
                           .state = &drivers,
                           .state_size = sizeof drivers,
                           .pinned = WEFT_PINNED_TO(i) };
        CHECK_EQ(wf_spawn(sched, &tasks[i], &spec), 0);
    }
    for (unsigned i = 0; i < count; i++) {
        CHECK_EQ(weft_join((weft_task *)tasks[i], NULL, WEFT_NEVER), 0);
    }
}

/*
 * Goal:   another worker handles the events of a worker in a long poll: a parked worker, or the
 *         monitor if there is none.
 * Method: one task computes until that has happened, then one on each worker.
 */
static void other_worker_polls_on_behalf_of_busy_worker(void)
{
    struct fake_driver drivers[WORKERS];
    struct wf_sched *sched = start(drivers);
    compute_on(sched, drivers, 1);
    drivers[0].helped = 0;
    compute_on(sched, drivers, WORKERS);
    wf_sched_drain(sched);
    wf_sched_stop(sched);
    wf_sched_fini(sched);
}

static _Atomic(uint64_t) forking; /* number of fibers that have started to fork */
static _Atomic(uint64_t) done;

static void do_nothing(void *arg)
{
    (void)arg;
}

/*
 * Forks all the time, until all such fibers have what they wait for. No other worker steals a
 * fork.
 */
static void fork_until(bool (*is_done)(struct fake_driver *own), struct fake_driver *own)
{
    atomic_fetch_add(&forking, 1);
    test_wait_for(&forking, WORKERS);
    bool counted = false;
    while (atomic_load(&done) < WORKERS) {
        weft_join2(do_nothing, NULL, do_nothing, NULL);
        if (is_done(own) && !counted) {
            atomic_fetch_add(&done, 1);
            counted = true;
        }
    }
}

/* Runs such a fiber on each worker. */
static void fork_on_all(struct fake_driver *drivers, int (*function)(void *arg),
                        struct wf_sched *sched, struct wf_task **tasks)
{
    atomic_store(&forking, 0);
    atomic_store(&done, 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        weft_fiber_spec spec = { .function = function,
                                 .arg = &drivers[i],
                                 .pinned = WEFT_PINNED_TO(i) };
        CHECK_EQ(wf_fiber_spawn(sched, &tasks[i], &spec), 0);
    }
    test_wait_for(&forking, WORKERS);
}

static void end_all(struct wf_sched *sched, struct wf_task **tasks)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        CHECK_EQ(weft_join((weft_task *)tasks[i], NULL, WEFT_NEVER), 0);
    }
    wf_sched_drain(sched);
    wf_sched_stop(sched);
    wf_sched_fini(sched);
}

static bool has_polled(struct fake_driver *own)
{
    return atomic_load(&own->polls) >= own->wanted;
}

static int fork_and_poll(void *arg)
{
    struct fake_driver *own = arg;
    own->wanted = atomic_load(&own->polls) + 3;
    atomic_store(&own->has_rest, true);
    atomic_store(&own->is_left, true);
    fork_until(has_polled, own);
    atomic_store(&own->has_rest, false);
    return 0;
}

/*
 * Goal:   events that only a polling worker gets are delivered, although all workers fork all the
 *         time.
 * Method: a driver that other workers cannot poll.
 */
static void forking_worker_polls_on_request(void)
{
    struct fake_driver drivers[WORKERS];
    struct wf_task *tasks[WORKERS];
    struct wf_sched *sched = start(drivers);
    fork_on_all(drivers, fork_and_poll, sched, tasks);
    end_all(sched, tasks);
}

enum {
    SERVED = 50,
};

static _Atomic(uint64_t) served;

static int serve(weft_co *co, void *state)
{
    struct fake_driver *drivers = *(struct fake_driver **)state;
    struct fake_driver *own = &drivers[weft_worker_current()];
    (void)co;
    own->wanted = atomic_load(&own->polls) + 1;
    atomic_fetch_add(&served, 1);
    return 0;
}

static bool has_served(struct fake_driver *own)
{
    CHECK_GE(atomic_load(&own->polls), own->wanted);
    return atomic_load(&served) == SERVED;
}

static int fork_and_serve(void *arg)
{
    fork_until(has_served, arg);
    return 0;
}

/*
 * Goal: a forking worker that has let a task run polls before it continues: the task may now wait
 * for an event.
 */
static void forking_worker_polls_after_it_let_tasks_run(void)
{
    struct fake_driver drivers[WORKERS];
    struct wf_task *tasks[WORKERS];
    struct wf_sched *sched = start(drivers);
    atomic_store(&served, 0);
    fork_on_all(drivers, fork_and_serve, sched, tasks);
    for (uint64_t i = 0; i < SERVED; i++) {
        struct fake_driver *all = drivers;
        struct wf_task *task;
        weft_spec spec = { .body = serve, .state = &all, .state_size = sizeof all };
        CHECK_EQ(wf_spawn(sched, &task, &spec), 0);
        CHECK_EQ(weft_join((weft_task *)task, NULL, WEFT_NEVER), 0);
    }
    end_all(sched, tasks);
}

TEST_MAIN({
    TEST(worker_parks_in_its_driver),
    TEST(other_worker_polls_on_behalf_of_busy_worker),
    TEST(forking_worker_polls_on_request),
    TEST(forking_worker_polls_after_it_let_tasks_run),
})
