/* SPDX-License-Identifier: MIT */
#include "time/timer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft.h>

#include "../base/asleep.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/rng.h"
#include "gate.h"
#include "bell.h"
#include "rt.h"
#include "test.h"
#include "virtual.h"

/* Runs a function where timers can be started: on a fiber, or in a blocking job. */
static void run_and_join(weft_runtime *rt, bool worker, int (*function)(void *arg), void *arg)
{
    weft_task *task;
    if (worker) {
        task = virtual_go(rt, function, arg);
    } else {
        CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, function, arg), 0);
    }
    CHECK_EQ(test_join(task), 0);
}

/* --- Calls -------------------------------------------------------------------------- */

static void timer_fires_once_at_deadline_on_worker(void)
{
    for (int i = 0; i < 8; i++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(i & 4 ? 3 : 1);
        struct bell bell = { .deadline = start + 5 * WEFT_MS, .flags = i & 2 ? WEFT_PRECISE : 0 };
        run_and_join(rt, i & 1, bell_start, &bell);
        virtual_go_to(rt, bell.deadline - 1);
        CHECK_EQ(bell.calls, 0);
        virtual_go_to(rt, bell.deadline);
        CHECK_EQ(bell.calls, 1);
        CHECK_EQ(bell.called_at, bell.deadline);
        CHECK_GE(bell.worker, 0);
        virtual_go_to(rt, start + VIRTUAL_HOUR);
        CHECK_EQ(bell.calls, 1);
        CHECK(!weft_timer_stop(&bell.timer));
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static void past_deadline_fires_immediately(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(2);
    const weft_time deadlines[] = { start, start - 1, start - VIRTUAL_HOUR, 0, -1, INT64_MIN };
    for (int i = 0; i < 24; i++) {
        struct bell bell = { .deadline = deadlines[i / 4], .flags = i & 2 ? WEFT_PRECISE : 0 };
        run_and_join(rt, i & 1, bell_start, &bell);
        test_wait_for(&bell.calls, 1);
        CHECK(!weft_timer_stop(&bell.timer));
        CHECK_EQ(bell.calls, 1);
        CHECK_EQ(bell.called_at, start);
    }
    weft_runtime_destroy(rt);
    virtual_end();
}

static void precise_timer_is_exact_to_nanosecond(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(2);
    for (int i = 1; i <= 8; i++) {
        struct bell bell = { .deadline = weft_after(i), .flags = WEFT_PRECISE };
        run_and_join(rt, i & 1, bell_start, &bell);
        virtual_go_to(rt, bell.deadline - 1);
        CHECK_EQ(bell.calls, 0);
        virtual_go_to(rt, bell.deadline);
        CHECK_EQ(bell.calls, 1);
    }
    CHECK_EQ(weft_now(), start + 36);
    weft_runtime_destroy(rt);
    virtual_end();
}

/* --- Stops -------------------------------------------------------------------------- */

static void timer_never_started_can_be_stopped(void)
{
    static weft_timer zero;
    weft_timer timer;
    memset(&timer, 0, sizeof timer);
    CHECK(!weft_timer_stop(&timer));
    CHECK(!weft_timer_stop(&timer));
    CHECK(!weft_timer_stop(&zero));
}

static void timer_stopped_before_deadline_never_fires(void)
{
    for (int i = 0; i < 8; i++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(2);
        struct bell bell = { .deadline = i & 4 ? WEFT_NEVER : start + 5 * WEFT_MS,
                             .flags = i & 2 ? WEFT_PRECISE : 0 };
        run_and_join(rt, i & 1, bell_start, &bell);
        virtual_go_to(rt, start + 5 * WEFT_MS - 1);
        CHECK(weft_timer_stop(&bell.timer));
        CHECK(!weft_timer_stop(&bell.timer));
        virtual_go_to(rt, start + VIRTUAL_HOUR);
        CHECK_EQ(bell.calls, 0);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static void stopped_timer_may_be_freed(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(2);
    struct bell *bells[20];
    for (int i = 0; i < 20; i++) {
        bells[i] = calloc(1, sizeof *bells[i]);
        CHECK(bells[i] != NULL);
        bells[i]->deadline = start + (i % 3 + 1) * WEFT_MS;
        bells[i]->flags = i & 2 ? WEFT_PRECISE : 0;
        run_and_join(rt, i & 1, bell_start, bells[i]);
    }
    for (int i = 0; i < 20; i++) {
        CHECK(weft_timer_stop(&bells[i]->timer));
        free(bells[i]);
    }
    virtual_go_to(rt, start + 10 * WEFT_MS);
    weft_runtime_destroy(rt);
    virtual_end();
}

/* --- Started again ------------------------------------------------------------------ */

/* Two bells that share the timer of the first. */
struct two_bells {
    struct bell first;
    struct bell second;
};

static int restart_for_second(void *arg)
{
    struct two_bells *two = arg;
    const struct bell *second = &two->second;
    weft_timer_start(&two->first.timer, second->deadline, second->flags, bell_call, &two->second);
    return 0;
}

static void second_start_replaces_first(void)
{
    for (int i = 0; i < 16; i++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(2);
        bool later = i & 4;
        struct two_bells two = { .first.flags = i & 2 ? WEFT_PRECISE : 0,
                                 .second.flags = i & 8 ? WEFT_PRECISE : 0 };
        two.first.deadline = start + (later ? 10 : 20) * WEFT_MS;
        two.second.deadline = start + (later ? 20 : 10) * WEFT_MS;
        run_and_join(rt, i & 1, bell_start, &two.first);
        run_and_join(rt, !(i & 1), restart_for_second, &two);
        virtual_go_to(rt, two.second.deadline - 1);
        CHECK_EQ(two.second.calls, 0);
        virtual_go_to(rt, start + 30 * WEFT_MS);
        CHECK_EQ(two.first.calls, 0);
        CHECK_EQ(two.second.calls, 1);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

/* A timer that restarts itself until it has fired calls_max times. */
struct ticker {
    weft_timer timer;
    weft_time next;
    uint64_t calls_max;
    _Atomic(uint64_t) calls;
    unsigned flags;
};

static void tick(void *arg)
{
    struct ticker *ticker = arg;
    CHECK_EQ(weft_now(), ticker->next);
    CHECK_GE(weft_worker_current(), 0);
    ticker->next += WEFT_MS;
    if (atomic_fetch_add(&ticker->calls, 1) + 1 < ticker->calls_max) {
        weft_timer_start(&ticker->timer, ticker->next, ticker->flags, tick, ticker);
    }
}

static int ticker_start(void *arg)
{
    struct ticker *ticker = arg;
    weft_timer_start(&ticker->timer, ticker->next, ticker->flags, tick, ticker);
    return 0;
}

static void timer_may_be_restarted_by_its_callback(void)
{
    for (int i = 0; i < 4; i++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(2);
        struct ticker ticker = { .next = start + WEFT_MS,
                                 .calls_max = 100,
                                 .flags = i & 2 ? WEFT_PRECISE : 0 };
        run_and_join(rt, i & 1, ticker_start, &ticker);
        for (uint64_t calls = 1; calls <= 110; calls++) {
            virtual_go_to(rt, start + (weft_time)calls * WEFT_MS);
            CHECK_EQ(ticker.calls, calls < 100 ? calls : 100);
        }
        CHECK(!weft_timer_stop(&ticker.timer));
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static _Atomic(uint64_t) freed;

static void free_own_timer(void *arg)
{
    memset(arg, 0xa5, sizeof(weft_timer));
    free(arg);
    (void)atomic_fetch_add(&freed, 1);
}

static int start_self_freeing_timers(void *arg)
{
    const weft_time *deadline = arg;
    for (unsigned flags = 0; flags <= WEFT_PRECISE; flags++) {
        weft_timer *timer = calloc(1, sizeof *timer);
        CHECK(timer != NULL);
        weft_timer_start(timer, *deadline, flags, free_own_timer, timer);
    }
    return 0;
}

static void timer_may_be_freed_by_its_callback(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(2);
    atomic_store(&freed, 0);
    for (int i = 1; i <= 50; i++) {
        weft_time deadline = start + i / 10 * WEFT_MS;
        run_and_join(rt, i & 1, start_self_freeing_timers, &deadline);
    }
    weft_clock_advance(5 * WEFT_MS);
    test_wait_for(&freed, 100);
    weft_runtime_destroy(rt);
    CHECK_EQ(freed, 100);
    virtual_end();
}

/* --- Stop during the callback --------------------------------------------------------- */

struct slow {
    weft_timer timer;
    _Atomic(uint64_t) called;
    _Atomic(uint64_t) stopping;
    int returned; /* plain; the stop makes it visible */
    bool result;
};

static void slow_call(void *arg)
{
    struct slow *slow = arg;
    atomic_store(&slow->called, 1);
    test_wait_for(&slow->stopping, 1);
    for (int64_t until = wf_clock_real() + WEFT_MS; wf_clock_real() < until;) {
    }
    slow->returned = 1;
}

static int slow_start(void *arg)
{
    struct slow *slow = arg;
    weft_timer_start(&slow->timer, 0, 0, slow_call, slow);
    return 0;
}

static void *slow_stop(void *arg)
{
    struct slow *slow = arg;
    atomic_store(&slow->stopping, 1);
    slow->result = weft_timer_stop(&slow->timer);
    CHECK_EQ(slow->returned, 1);
    return NULL;
}

static int slow_stop_in_blocking_job(void *arg)
{
    (void)slow_stop(arg);
    return 0;
}

/*
 * Goal:   a stop from another thread returns only after the callback has returned.
 * Method: the callback continues for a while after it has seen that a stop is in progress.
 */
static void stop_waits_for_callback_on_other_thread(void)
{
    weft_runtime *rt = test_start(2);
    for (int i = 0; i < 12; i++) {
        struct slow slow = { .returned = 0 };
        run_and_join(rt, i & 1, slow_start, &slow);
        test_wait_for(&slow.called, 1);
        if (i % 4 < 2) {
            (void)slow_stop(&slow);
        } else {
            run_and_join(rt, false, slow_stop_in_blocking_job, &slow);
        }
        CHECK(!slow.result);
        CHECK_EQ(slow.returned, 1);
    }
    weft_runtime_destroy(rt);
}

/* A timer that always restarts itself. */
struct restless {
    weft_timer timer;
    _Atomic(uint64_t) calls;
    unsigned flags;
};

static void restless_call(void *arg)
{
    struct restless *self = arg;
    (void)atomic_fetch_add(&self->calls, 1);
    weft_timer_start(&self->timer, 0, self->flags, restless_call, self);
}

static int restless_start(void *arg)
{
    struct restless *self = arg;
    weft_timer_start(&self->timer, 0, self->flags, restless_call, self);
    return 0;
}

/*
 * Goal:   a stop holds even if a callback that runs at the same time restarts the timer.
 * Method: the timer is always due, so most stops meet a running callback. The timer is freed
 *         once it is stopped, so a sanitizer reports a later call.
 */
static void stop_prevents_self_restarting_timer_from_firing(void)
{
    weft_runtime *rt = test_start(2);
    for (uint64_t i = 0; i < 10 + test_scale(500); i++) {
        struct restless *self = calloc(1, sizeof *self);
        CHECK(self != NULL);
        self->flags = i & 2 ? WEFT_PRECISE : 0;
        run_and_join(rt, i & 1, restless_start, self);
        test_wait_for(&self->calls, i % 5);
        (void)weft_timer_stop(&self->timer);
        uint64_t calls = atomic_load(&self->calls);
        CHECK(!weft_timer_stop(&self->timer));
        CHECK_EQ(atomic_load(&self->calls), calls);
        memset(self, 0xa5, sizeof *self);
        free(self);
    }
    weft_runtime_destroy(rt);
}

struct suicidal {
    weft_timer timer;
    _Atomic(uint64_t) calls;
    bool restarts;
};

static void stop_own_timer(void *arg)
{
    struct suicidal *self = arg;
    CHECK(!weft_timer_stop(&self->timer));
    if (self->restarts) {
        weft_timer_start(&self->timer, WEFT_NEVER, 0, stop_own_timer, self);
        CHECK(weft_timer_stop(&self->timer));
        CHECK(!weft_timer_stop(&self->timer));
    }
    (void)atomic_fetch_add(&self->calls, 1);
}

static int suicidal_start(void *arg)
{
    struct suicidal *self = arg;
    weft_timer_start(&self->timer, 0, 0, stop_own_timer, self);
    return 0;
}

static void stop_in_own_callback_returns_immediately(void)
{
    weft_runtime *rt = test_start(2);
    for (int i = 0; i < 8; i++) {
        struct suicidal self = { .restarts = i & 2 };
        run_and_join(rt, i & 1, suicidal_start, &self);
        test_wait_for(&self.calls, 1);
        CHECK(!weft_timer_stop(&self.timer));
        CHECK_EQ(self.calls, 1);
    }
    weft_runtime_destroy(rt);
}

static int race_stops(void *arg)
{
    struct wf_rng rng;
    uint64_t stopped = 0;
    (void)arg;
    wf_rng_seed(&rng, test_seed(), 0);
    for (uint64_t i = 0; i < test_scale(20000); i++) {
        struct bell bell = { .deadline = 0, .flags = i & 1 ? WEFT_PRECISE : 0 };
        (void)bell_start(&bell);
        for (uint32_t n = wf_rng_below(&rng, 1u << wf_rng_below(&rng, 14)); n > 0; n--) {
            wf_cpu_relax();
        }
        bool before = weft_timer_stop(&bell.timer);
        CHECK_EQ(bell.calls, before ? 0 : 1);
        stopped += before;
    }
    CHECK_LT(0, stopped);
    return 0;
}

/*
 * Goal:   a timer is either stopped or has fired, never both and never neither.
 * Method: timers that are due immediately are stopped after a random delay. After stop returns,
 *         nothing may touch the timer, which is on the stack.
 */
static void stop_racing_call_reports_which_won(void)
{
    weft_runtime *rt = test_start(2);
    run_and_join(rt, false, race_stops, NULL);
    run_and_join(rt, true, race_stops, NULL);
    weft_runtime_destroy(rt);
}

/* --- Callbacks that stop each other ------------------------------------------------------- */

/* Two callbacks that are both running before each stops the other. */
struct duel {
    weft_timer timers[2];
    weft_token token;
    weft_on_cancel on_cancel;
    bool has_token; /* the second callback belongs to the token */
    _Atomic(uint64_t) began;
    _Atomic(uint64_t) returned;
};

static void wait_for_other_callback(struct duel *duel)
{
    (void)atomic_fetch_add(&duel->began, 1);
    test_wait_for(&duel->began, 2);
}

static void stop_second(void *arg)
{
    struct duel *duel = arg;
    wait_for_other_callback(duel);
    CHECK(!(duel->has_token ? weft_on_cancel_remove(&duel->on_cancel)
                            : weft_timer_stop(&duel->timers[1])));
    (void)atomic_fetch_add(&duel->returned, 1);
}

static void stop_first(void *arg)
{
    struct duel *duel = arg;
    wait_for_other_callback(duel);
    CHECK(!weft_timer_stop(&duel->timers[0]));
    (void)atomic_fetch_add(&duel->returned, 1);
}

static int start_one(void *arg)
{
    struct duel *duel = arg;
    weft_timer_start(&duel->timers[0], 0, 0, stop_second, duel);
    return 0;
}

static int start_two(void *arg)
{
    struct duel *duel = arg;
    if (duel->has_token) {
        weft_on_cancel_add(&duel->on_cancel, &duel->token, stop_first, duel);
        weft_token_cancel(&duel->token);
    } else {
        weft_timer_start(&duel->timers[1], 0, 0, stop_first, duel);
    }
    return 0;
}

static void duel_once(weft_runtime *rt, bool has_token)
{
    struct duel duel = { .has_token = has_token };
    weft_task *tasks[2];
    for (unsigned i = 0; i < 2; i++) {
        weft_fiber_spec spec = { .function = i == 0 ? start_one : start_two,
                                 .arg = &duel,
                                 .pinned = WEFT_PINNED_TO(i) };
        CHECK_EQ(weft_runtime_go(rt, &tasks[i], &spec), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(test_join(tasks[i]), 0);
    }
    test_wait_for(&duel.began, 2);
    /* On a thread that no callback waits for, a stop waits as usual. */
    CHECK(!weft_timer_stop(&duel.timers[0]));
    CHECK(!weft_timer_stop(&duel.timers[1]));
    CHECK(!weft_on_cancel_remove(&duel.on_cancel));
    CHECK_EQ(atomic_load(&duel.returned), 2);
}

static void callbacks_stopping_each_other_both_return(void)
{
    weft_runtime *rt = test_start(2);
    for (unsigned i = 0; i < 50; i++) {
        duel_once(rt, false);
    }
    weft_runtime_destroy(rt);
}

static void timer_and_token_callback_stopping_each_other_return(void)
{
    weft_runtime *rt = test_start(2);
    for (unsigned i = 0; i < 50; i++) {
        duel_once(rt, true);
    }
    weft_runtime_destroy(rt);
}

/* --- What a callback may do ------------------------------------------------------------- */

struct busy {
    weft_timer timer;
    struct bell stopped;
    struct bell started;
    struct gate gate;
    weft_task *waiter;
    weft_task *spawned;
    _Atomic(uint64_t) calls;
};

static void busy_call(void *arg)
{
    struct busy *busy = arg;
    CHECK(weft_timer_stop(&busy->stopped.timer));
    CHECK_EQ(bell_start(&busy->started), 0);
    gate_open(&busy->gate, 5);
    weft_spec spec = { .body = test_return_7 };
    CHECK_EQ(weft_spawn(&busy->spawned, &spec), 0);
    CHECK(weft_task_current() == NULL);
    (void)atomic_fetch_add(&busy->calls, 1);
}

static int busy_start(void *arg)
{
    struct busy *busy = arg;
    (void)bell_start(&busy->stopped);
    weft_timer_start(&busy->timer, busy->stopped.deadline - WEFT_MS, 0, busy_call, busy);
    return weft_await(&busy->gate.future, WEFT_NEVER);
}

static void callback_may_spawn_wake_start_and_stop(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(2);
    struct busy busy = { .gate = gate_make(CANCEL_AT_ONCE) };
    busy.stopped.deadline = start + 5 * WEFT_MS;
    busy.started.deadline = start + 7 * WEFT_MS;
    weft_task *waiter = virtual_go(rt, busy_start, &busy);
    virtual_settle(rt);
    weft_clock_advance(4 * WEFT_MS);
    CHECK_EQ(test_join(waiter), 5);
    test_wait_for(&busy.calls, 1);
    CHECK_EQ(test_join(busy.spawned), 7);
    virtual_go_to(rt, start + 10 * WEFT_MS);
    CHECK_EQ(busy.stopped.calls, 0);
    CHECK_EQ(busy.started.calls, 1);
    weft_runtime_destroy(rt);
    virtual_end();
}

/* --- Runtime destroy -------------------------------------------------------------------- */

static void runtime_destroy_stops_its_timers(void)
{
    enum {
        BELLS = 32
    };
    static struct bell bells[BELLS];
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(3);
    for (int i = 0; i < BELLS; i++) {
        bells[i] = (struct bell){ .flags = i & 2 ? WEFT_PRECISE : 0 };
        bells[i].deadline = i & 4 ? WEFT_NEVER : start + 1 + ((weft_time)1 << i) * WEFT_MS;
        run_and_join(rt, i & 1, bell_start, &bells[i]);
    }
    weft_runtime_destroy(rt);
    weft_clock_advance(VIRTUAL_HOUR);
    for (int i = 0; i < BELLS; i++) {
        CHECK(!weft_timer_stop(&bells[i].timer));
        CHECK_EQ(bells[i].calls, 0);
    }
    /* They may be started in another runtime. */
    rt = test_start(1);
    for (int i = 0; i < BELLS; i++) {
        bells[i].deadline = weft_now();
        run_and_join(rt, i & 1, bell_start, &bells[i]);
        test_wait_for(&bells[i].calls, 1);
        CHECK(!weft_timer_stop(&bells[i].timer));
    }
    weft_runtime_destroy(rt);
    virtual_end();
}

/*
 * Goal:   a timer outlives the runtime in which it fired or was stopped.
 * Method: the timer's record of the runtime now refers to freed memory, or to that of the next
 *         runtime, which has a different number of workers. A sanitizer reports an access.
 */
static void timer_outlives_runtime_that_fired_it(void)
{
    static struct bell called;
    static struct bell stopped;
    called = (struct bell){ .deadline = 0 };
    stopped = (struct bell){ .deadline = WEFT_NEVER };
    (void)virtual_begin();
    for (unsigned i = 0; i < 12; i++) {
        weft_runtime *rt = test_start(i * 7 % 5 + 1);
        CHECK(!weft_timer_stop(&called.timer));
        CHECK(!weft_timer_stop(&stopped.timer));
        run_and_join(rt, i & 1, bell_start, &called);
        run_and_join(rt, i & 1, bell_start, &stopped);
        test_wait_for(&called.calls, i + 1);
        CHECK(weft_timer_stop(&stopped.timer));
        weft_runtime_destroy(rt);
        CHECK(!weft_timer_stop(&called.timer));
        CHECK(!weft_timer_stop(&stopped.timer));
    }
    CHECK_EQ(stopped.calls, 0);
    virtual_end();
}

/* A callback that runs until a plain thread waits for it in weft_timer_stop(). */
struct last_call {
    weft_timer timer;
    _Atomic(uint64_t) called;
    _Atomic(uint64_t) stopper;
    bool returned;
};

static void last_call(void *arg)
{
    struct last_call *self = arg;
    atomic_store(&self->called, 1);
    test_wait_for(&self->stopper, 1);
    wait_until_asleep(atomic_load(&self->stopper));
    self->returned = true;
}

static int last_call_start(void *arg)
{
    struct last_call *self = arg;
    weft_timer_start(&self->timer, 0, 0, last_call, self);
    return 0;
}

static void *stop_last_call(void *arg)
{
    struct last_call *self = arg;
    atomic_store(&self->stopper, own_tid());
    CHECK(!weft_timer_stop(&self->timer));
    CHECK(self->returned);
    memset(self, 0xa5, sizeof *self);
    free(self);
    return NULL;
}

/*
 * Goal:   a stop that waits for a callback on the last worker survives its runtime.
 * Method: the stop is asleep before the callback returns, and so before the destroy can end. A
 *         sanitizer reports a use-after-free.
 */
static void waiting_stop_survives_runtime_destroy(void)
{
    for (unsigned i = 0; i < 30; i++) {
        weft_runtime *rt = test_start(1);
        struct last_call *self = calloc(1, sizeof *self);
        pthread_t stopper;
        CHECK(self != NULL);
        run_and_join(rt, i & 1, last_call_start, self);
        test_wait_for(&self->called, 1);
        CHECK_EQ(pthread_create(&stopper, NULL, stop_last_call, self), 0);
        weft_runtime_destroy(rt);
        CHECK_EQ(pthread_join(stopper, NULL), 0);
    }
}

static void *stop_and_free(void *arg)
{
    struct bell **bells = arg;
    for (unsigned i = 0; bells[i] != NULL; i++) {
        (void)weft_timer_stop(&bells[i]->timer);
        CHECK_EQ(bells[i]->calls, 0);
        memset(bells[i], 0xa5, sizeof *bells[i]);
        free(bells[i]);
    }
    return NULL;
}

/* Goal: timers may be freed once stopped, also while their runtime is being destroyed. */
static void stop_of_armed_timers_survives_runtime_destroy(void)
{
    for (unsigned round = 0; round < 30; round++) {
        weft_runtime *rt = test_start(2);
        struct bell *bells[65] = { NULL };
        pthread_t stopper;
        for (unsigned i = 0; i < 64; i++) {
            bells[i] = calloc(1, sizeof *bells[i]);
            CHECK(bells[i] != NULL);
            bells[i]->deadline = weft_after(VIRTUAL_HOUR);
            bells[i]->flags = i & 1 ? WEFT_PRECISE : 0;
            run_and_join(rt, i & 2, bell_start, bells[i]);
        }
        CHECK_EQ(pthread_create(&stopper, NULL, stop_and_free, bells), 0);
        weft_runtime_destroy(rt);
        CHECK_EQ(pthread_join(stopper, NULL), 0);
    }
}

/* A timer that restarts itself immediately until the reader has its byte. */
struct flood {
    weft_timer timer;
    int write_fd;
    uint64_t calls;
    uint64_t calls_at_read; /* 0: the byte was not read yet */
};

enum {
    FLOOD_WRITES_AT = 10000,
    FLOOD_CALLS_MAX = 512,
};

static void flood_call(void *arg)
{
    struct flood *flood = arg;
    if (++flood->calls == FLOOD_WRITES_AT) {
        CHECK_EQ(write(flood->write_fd, "x", 1), 1);
    }
    if (flood->calls_at_read == 0) {
        weft_timer_start(&flood->timer, 0, 0, flood_call, flood);
    }
}

static int read_during_flood(void *arg)
{
    (void)arg;
    int fds[2];
    char byte;
    CHECK_EQ(pipe(fds), 0);
    weft_stream *reader;
    CHECK_EQ(weft_stream_adopt(&reader, fds[0]), 0);
    struct flood flood = { .write_fd = fds[1] };
    weft_timer_start(&flood.timer, 0, 0, flood_call, &flood);
    CHECK_EQ(weft_read(reader, &byte, 1, WEFT_NEVER), 1);
    flood.calls_at_read = flood.calls;
    CHECK_GE(flood.calls, FLOOD_WRITES_AT);
    CHECK_LT(flood.calls - FLOOD_WRITES_AT, FLOOD_CALLS_MAX);
    (void)weft_timer_stop(&flood.timer);
    weft_stream_close(reader);
    CHECK_EQ(close(fds[1]), 0);
    return 0;
}

/*
 * Goal:   a timer that restarts itself with a past deadline does not keep its worker from I/O.
 * Method: the callback makes a pipe readable, and counts its calls until a fiber has read.
 */
static void self_restarting_timer_lets_worker_poll_driver(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, read_during_flood, NULL), 0);
    weft_runtime_destroy(rt);
}

static void start_without_runtime(void)
{
    struct bell bell = { .deadline = 0 };
    (void)bell_start(&bell);
}

static void start_outside_runtime_aborts_with_advice(void)
{
    CHECK_ABORTS(start_without_runtime, "weft_timer_start: this thread belongs to no runtime");
    CHECK_ABORTS(start_without_runtime, "call it from a task");
}

TEST_MAIN({
    TEST(start_outside_runtime_aborts_with_advice),
    TEST(timer_fires_once_at_deadline_on_worker),
    TEST(past_deadline_fires_immediately),
    TEST(precise_timer_is_exact_to_nanosecond),
    TEST(timer_never_started_can_be_stopped),
    TEST(timer_stopped_before_deadline_never_fires),
    TEST(stopped_timer_may_be_freed),
    TEST(second_start_replaces_first),
    TEST(timer_may_be_restarted_by_its_callback),
    TEST(timer_may_be_freed_by_its_callback),
    TEST(stop_waits_for_callback_on_other_thread),
    TEST(stop_prevents_self_restarting_timer_from_firing),
    TEST(self_restarting_timer_lets_worker_poll_driver),
    TEST(stop_in_own_callback_returns_immediately),
    TEST(stop_racing_call_reports_which_won),
    TEST(callback_may_spawn_wake_start_and_stop),
    TEST(runtime_destroy_stops_its_timers),
    TEST(timer_outlives_runtime_that_fired_it),
    TEST(callbacks_stopping_each_other_both_return),
    TEST(timer_and_token_callback_stopping_each_other_return),
    TEST(waiting_stop_survives_runtime_destroy),
    TEST(stop_of_armed_timers_survives_runtime_destroy),
})
