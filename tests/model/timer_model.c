/* SPDX-License-Identifier: MIT */
/*
 * timer_model.c - src/time/timer.c: arming, firing and disarming against each other,
 * and an earlier deadline against a worker that goes to sleep.
 *
 * The task that is woken is one whose schedule function counts. A timer that was
 * disarmed, or has fired, is written over at once: whoever still touches it is a
 * data race. The worker that parks is written after park() in search.c.
 */
#include "time/timer.h"

#include <weft/time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "mc.h"
#include "sched/driver.h"
#include "sched/idle.h"
#include "sched/join.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    DEADLINE = 1000000,
};

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

static struct wf_sched sched;
static struct wf_worker worker;
static struct wf_task waiter;
static _Atomic(uint32_t) wakes;
static struct wf_timer timer;
_Static_assert(sizeof timer <= sizeof(weft_timer), "");

void wf_join_answer(struct wf_task *task)
{
    (void)task;
    mc_assert(!"nobody joins");
}

struct wf_sched *wf_thread_must_sched(const char *call)
{
    (void)call;
    return &sched;
}

struct wf_task *wf_thread_running(void)
{
    return NULL;
}

struct wf_thread *wf_thread_known(void)
{
    return NULL;
}

void wf_worker_be_watched(struct wf_worker *of)
{
    (void)of;
}

bool wf_watch_is_asleep(const struct wf_watch *watch)
{
    (void)watch;
    return false;
}

void wf_watch_wake(struct wf_watch *watch)
{
    (void)watch;
}

void wf_worker_wake(struct wf_worker *of)
{
    wf_park_wake(&of->park);
}

static void count_wake(struct wf_task *task)
{
    (void)task;
    (void)wf_fetch_add_relaxed(&wakes, 1);
}

static void never_destroyed(struct wf_task *task)
{
    (void)task;
    mc_assert(!"a reference too many was dropped");
}

static const struct wf_task_ops waiter_ops = {
    .kind = "waiter",
    .schedule = count_wake,
    .destroy = never_destroyed,
};

static void begin(void)
{
    sched.options.workers = 1;
    sched.options.allocator = wf_alloc_default;
    sched.workers = &worker;
    worker.sched = &sched;
    wf_store_relaxed(&worker.next_deadline, WF_NEVER);
    wf_idle_init(&sched.idle, 1);
    mc_assert(wf_timers_create(&sched) == 0);
    waiter.ops = &waiter_ops;
    wf_store_relaxed(&waiter.state, WF_STATE_IDLE | WF_STATE_REF);
    mc_name(&timer, sizeof timer, "timer");
    mc_name(&waiter, sizeof waiter, "waiter");
}

static void end(void)
{
    mc_assert(wf_state_refs(wf_task_state(&waiter)) == 1);
    wf_timers_destroy(&sched);
}

static void fire(void *arg)
{
    (void)arg;
    sched.timer_ops->fire(&sched, 0, DEADLINE);
}

/* The frame that the timer was in is used for something else. */
static void write_over(void)
{
    wf_store_relaxed(&timer.state, 77u);
    timer.task = NULL;
    timer.home = NULL;
    timer.function = NULL;
    timer.entry.coarse.deadline = -1;
}

/*
 * Goal:   a timer wakes its task once, or was taken out; after that nobody touches it.
 * Method: two threads fire while the waiter disarms.
 */
static void disarm_against_fire(void)
{
    begin();
    timer = (struct wf_timer){ .task = &waiter, .is_precise = mc_choose(2) == 1 };
    wf_timer_arm(&sched, &timer, DEADLINE);
    mc_go(fire, NULL);
    mc_go(fire, NULL);
    bool stopped = wf_timer_disarm(&timer);
    write_over();
    mc_join();
    mc_assert(wf_load_relaxed(&wakes) == (stopped ? 0 : 1));
    mc_note(stopped);
    end();
}

/* The same for a waiter that looks whether it has fired, and then is gone. */
static void look_against_fire(void)
{
    begin();
    timer = (struct wf_timer){ .task = &waiter };
    wf_timer_arm(&sched, &timer, DEADLINE);
    mc_go(fire, NULL);
    bool fired = wf_timer_has_fired(&timer);
    if (!fired) {
        fired = !wf_timer_disarm(&timer);
    }
    write_over();
    mc_join();
    mc_assert(wf_load_relaxed(&wakes) == (fired ? 1 : 0));
    mc_note(fired);
    end();
}

static void arm(void *arg)
{
    (void)arg;
    timer = (struct wf_timer){ .task = &waiter };
    wf_timer_arm(&sched, &timer, DEADLINE);
}

/* Goal: a timer that is armed while others fire fires then, or later. */
static void arm_against_fire(void)
{
    begin();
    mc_go(arm, NULL);
    mc_go(fire, NULL);
    mc_join();
    mc_note((int)wf_load_relaxed(&wakes));
    mc_assert(wf_load_relaxed(&wakes) == 1 || wf_load_relaxed(&worker.next_deadline) <= DEADLINE);
    fire(NULL);
    mc_assert(wf_load_relaxed(&wakes) == 1);
    end();
}

/*
 * Goal:   after some have fired, the worker knows of those that have not.
 * Method: a later one is armed before, and another while the first one fires.
 */
static struct wf_timer later[2];

static void arm_later(void *arg)
{
    struct wf_timer *of = arg;
    *of = (struct wf_timer){ .task = &waiter };
    wf_timer_arm(&sched, of, 2 * DEADLINE);
}

static void fire_keeps_the_rest(void)
{
    begin();
    arm(NULL);
    arm_later(&later[0]);
    mc_go(fire, NULL);
    arm_later(&later[1]);
    mc_join();
    mc_assert(wf_load_relaxed(&wakes) == 1);
    mc_assert(wf_load_relaxed(&worker.next_deadline) <= 2 * DEADLINE);
    mc_assert(wf_timer_disarm(&later[0]));
    mc_assert(wf_timer_disarm(&later[1]));
    end();
}

/* --- Functions ------------------------------------------------------------------ */

static int *data; /* the function's, until the timer is stopped */
static int calls;

static void use_data(void *arg)
{
    (void)arg;
    (*data)++;
    calls++;
}

/*
 * Goal:   when a stop returns, the function does not run and never will.
 * Method: what it uses is freed then.
 */
static void stop_against_call(void)
{
    begin();
    if (mc_choose(2) == 1) { /* It belongs to the runtime, or not. */
        WF_TLS_STORE(wf_tls_worker, &worker);
    }
    data = wf_alloc_zeroed(&wf_alloc_default, sizeof *data, _Alignof(int));
    timer = (struct wf_timer){ .function = use_data };
    wf_timer_arm(&sched, &timer, DEADLINE);
    mc_go(fire, NULL);
    bool stopped = wf_timer_disarm(&timer);
    wf_free(&wf_alloc_default, data, sizeof *data, _Alignof(int));
    write_over();
    mc_assert(calls == (stopped ? 0 : 1));
    mc_join();
    mc_note(stopped);
    end();
}

static void start_again(void *arg)
{
    (*data)++;
    calls++;
    if (calls == 1) {
        weft_timer_start(arg, DEADLINE, 0, start_again, arg);
    }
}

/* Goal: the same for a function that starts its own timer again. */
static void stop_against_one_that_goes_on(void)
{
    begin();
    data = wf_alloc_zeroed(&wf_alloc_default, sizeof *data, _Alignof(int));
    weft_timer *handle = (weft_timer *)&timer;
    weft_timer_start(handle, DEADLINE, 0, start_again, handle);
    mc_go(fire, NULL);
    (void)weft_timer_stop(handle); /* Before the first call, or between the two. */
    mc_join();
    (void)weft_timer_stop(handle);
    wf_free(&wf_alloc_default, data, sizeof *data, _Alignof(int));
    mc_assert(calls <= 2);
    mc_note(calls);
    end();
}

static weft_timer pair[2];
static int runs[2];
static bool returned[2];

static void stop_other(void *arg)
{
    size_t self = (size_t)arg;
    runs[self]++;
    (void)weft_timer_stop(&pair[1 - self]);
    returned[self] = true;
}

/*
 * Goal:   two functions that stop each other's timers return, on any threads.
 * Method: a wait that closes the cycle is a deadlock.
 */
static void two_functions_stop_each_other(void)
{
    begin();
    for (size_t i = 0; i < 2; i++) {
        weft_timer_start(&pair[i], DEADLINE, 0, stop_other, (void *)i);
    }
    mc_go(fire, NULL);
    fire(NULL);
    mc_join();
    for (size_t i = 0; i < 2; i++) {
        mc_assert(runs[i] <= 1 && returned[i] == (runs[i] == 1));
    }
    mc_note(runs[0] + runs[1]);
    end();
}

/* --- The end of the runtime --------------------------------------------------------- */

/* The worker ends with its last call, or before; then the timers are freed. */
static void end_of_runtime(void *arg)
{
    if (*(const bool *)arg) {
        fire(NULL);
    }
    wf_timers_destroy(&sched);
}

/*
 * Goal:   a plain thread may stop a timer while its runtime is destroyed.
 * Method: the timer, and the data of its function, are freed when the stop has
 *         returned; the shards are freed when the destroy has.
 */
static void stop_against_destroy(void)
{
    begin();
    bool fires = mc_choose(2) == 1;
    data = wf_alloc_zeroed(&wf_alloc_default, sizeof *data, _Alignof(int));
    weft_timer *handle = wf_alloc_zeroed(&wf_alloc_default, sizeof *handle, _Alignof(weft_timer));
    weft_timer_start(handle, DEADLINE, 0, use_data, NULL);
    mc_go(end_of_runtime, &fires);
    bool stopped = weft_timer_stop(handle);
    wf_free(&wf_alloc_default, data, sizeof *data, _Alignof(int));
    wf_free(&wf_alloc_default, handle, sizeof *handle, _Alignof(weft_timer));
    mc_assert(calls <= (stopped ? 0 : 1));
    mc_note(fires ? 2 + stopped : stopped);
    mc_join();
}

/* --- A worker that sleeps --------------------------------------------------------- */

/* As park() in search.c. A sleep until the deadline that it should know of ends. */
static void park(void *arg)
{
    (void)arg;
    wf_idle_park(&sched.idle, 0, false);
    bool knows = wf_load_relaxed(&worker.next_deadline) == DEADLINE;
    if (!knows) {
        (void)wf_park_sleep(&worker.park, WF_NEVER);
    }
    (void)wf_idle_unpark(&sched.idle, 0);
    mc_note(knows);
}

/*
 * Goal:   a worker that sleeps for a later deadline, or for none, is woken for an
 *         earlier one, or saw it before it slept.
 * Method: if it sleeps without having seen it, and nobody wakes it, that is a
 *         deadlock.
 */
static void earlier_against_park(void)
{
    begin();
    mc_go(park, NULL);
    arm(NULL);
    mc_join();
    fire(NULL);
    mc_assert(wf_load_relaxed(&wakes) == 1);
    end();
}

static const struct mc_test tests[] = {
    { .name = "disarm_against_fire",
      .run = disarm_against_fire,
      .seen = MC_OUTCOMES(0, 1),
      .leaks = true },
    { .name = "look_against_fire",
      .run = look_against_fire,
      .seen = MC_OUTCOMES(0, 1),
      .leaks = true },
    { .name = "arm_against_fire",
      .run = arm_against_fire,
      .seen = MC_OUTCOMES(0, 1),
      .leaks = true },
    { .name = "fire_keeps_the_rest", .run = fire_keeps_the_rest, .leaks = true },
    { .name = "stop_against_call",
      .run = stop_against_call,
      .seen = MC_OUTCOMES(0, 1),
      .leaks = true },
    { .name = "stop_against_one_that_goes_on",
      .run = stop_against_one_that_goes_on,
      .seen = MC_OUTCOMES(0, 1, 2),
      .leaks = true },
    { .name = "two_functions_stop_each_other",
      .run = two_functions_stop_each_other,
      .seen = MC_OUTCOMES(1, 2),
      .leaks = true },
    { .name = "stop_against_destroy",
      .run = stop_against_destroy,
      .seen = MC_OUTCOMES(0, 1, 2, 3),
      .leaks = true },
    { .name = "earlier_against_park",
      .run = earlier_against_park,
      .seen = MC_OUTCOMES(0, 1),
      .leaks = true },
};

MC_MAIN(tests)
