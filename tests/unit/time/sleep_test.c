/* SPDX-License-Identifier: MIT */
/*
 * Sleeping, wherever one can: on a fiber, on a plain thread, in a blocking job, and as
 * a future in the body of a task.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <weft.h>

#include "../base/asleep.h"
#include "base/atomic.h"
#include "base/rng.h"
#include "rt.h"
#include "test.h"
#include "virtual.h"

enum place {
    ON_FIBER,
    IN_JOB,
    IN_BODY,
    ON_THREAD, /* the last: cannot be cancelled */
    PLACES,
    CANCELLABLE = ON_THREAD,
};

/* One sleep, and what came of it. */
struct nap {
    weft_time deadline;
    unsigned flags; /* of a future */
    bool shielded;  /* and then a second sleep, without the shield */
    int result;     /* of the first sleep */
    int afterwards; /* of the second */
    weft_time woke;
    weft_sleep_future future;
    weft_task *task;
    pthread_t thread;
    enum place place;
    _Atomic(uint64_t) tid;
    _Atomic(uint64_t) begun;
    _Atomic(uint64_t) ended;
};

static void nap_ended(struct nap *nap, int result)
{
    nap->result = result;
    nap->woke = weft_now();
    (void)atomic_fetch_add(&nap->ended, 1);
}

static int nap_function(void *arg)
{
    struct nap *nap = arg;
    atomic_store(&nap->tid, own_tid());
    if (nap->shielded) {
        weft_shield_enter();
    }
    (void)atomic_fetch_add(&nap->begun, 1);
    nap_ended(nap, weft_sleep_until(nap->deadline));
    if (nap->shielded) {
        weft_shield_leave();
        nap->afterwards = weft_sleep(VIRTUAL_HOUR);
    }
    return nap->result;
}

static void *nap_main(void *arg)
{
    (void)nap_function(arg);
    return NULL;
}

static int nap_body(weft_co *co, void *state)
{
    struct nap *nap = test_arg(state);
    int err = 0;
    WEFT_BEGIN(co);
    if (nap->shielded) {
        weft_shield_enter();
    }
    (void)atomic_fetch_add(&nap->begun, 1);
    weft_sleep_init(&nap->future, nap->deadline, nap->flags);
    WEFT_AWAIT(co, err, &nap->future.future);
    nap_ended(nap, err);
    if (nap->shielded) {
        weft_shield_leave();
        weft_sleep_init(&nap->future, weft_after(VIRTUAL_HOUR), nap->flags);
        WEFT_AWAIT(co, err, &nap->future.future);
        nap->afterwards = err;
    }
    WEFT_END(co, nap->result);
}

static void nap_start(struct nap *nap, weft_runtime *rt, enum place place)
{
    nap->place = place;
    nap->result = 1234;
    nap->afterwards = 1234;
    if (place == ON_FIBER) {
        nap->task = virtual_go(rt, nap_function, nap);
    } else if (place == IN_JOB) {
        CHECK_EQ(weft_runtime_spawn_blocking(rt, &nap->task, nap_function, nap), 0);
    } else if (place == IN_BODY) {
        nap->task = test_spawn(rt, nap_body, nap);
    } else {
        CHECK_EQ(pthread_create(&nap->thread, NULL, nap_main, nap), 0);
    }
}

/* Waits until it sleeps. */
static void nap_wait_asleep(struct nap *nap, weft_runtime *rt)
{
    test_wait_for(&nap->begun, 1);
    virtual_settle(rt);
    if (nap->place == ON_THREAD || nap->place == IN_JOB) {
        wait_until_asleep(atomic_load(&nap->tid));
    }
    CHECK_EQ(atomic_load(&nap->ended), 0);
}

static void nap_join(struct nap *nap)
{
    if (nap->place == ON_THREAD) {
        CHECK_EQ(pthread_join(nap->thread, NULL), 0);
    } else {
        CHECK_EQ(test_join(nap->task), nap->result);
    }
    CHECK_EQ(atomic_load(&nap->ended), 1);
}

/* --- How long ---------------------------------------------------------------------- */

static void a_sleep_ends_at_its_time_and_not_before(void)
{
    for (int place = 0; place < PLACES; place++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(2);
        struct nap nap = { .deadline = start + 5 * WEFT_MS };
        nap_start(&nap, rt, (enum place)place);
        nap_wait_asleep(&nap, rt);
        weft_clock_advance(5 * WEFT_MS - 1);
        nap_wait_asleep(&nap, rt);
        weft_clock_advance(1);
        nap_join(&nap);
        CHECK_EQ(nap.result, 0);
        CHECK_EQ(nap.woke, nap.deadline);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static void a_sleep_until_a_time_that_is_over_returns_at_once(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(1);
    const weft_time deadlines[] = { start, start - 1, start - VIRTUAL_HOUR, 1, 0, -1, INT64_MIN };
    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++) {
        for (int place = 0; place < PLACES; place++) {
            struct nap nap = { .deadline = deadlines[i] };
            nap_start(&nap, rt, (enum place)place);
            nap_join(&nap);
            CHECK_EQ(nap.result, 0);
            CHECK_EQ(nap.woke, start);
        }
    }
    weft_runtime_destroy(rt);
    virtual_end();
}

static int sleep_for_no_time(void *arg)
{
    (void)arg;
    const weft_time durations[] = { 0, -1, -WEFT_S, -VIRTUAL_HOUR, INT64_MIN, INT64_MIN + 1 };
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        CHECK_EQ(weft_sleep(durations[i]), 0);
    }
    return 0;
}

static void a_sleep_of_no_time_or_less_returns_at_once(void)
{
    (void)virtual_begin();
    CHECK_EQ(sleep_for_no_time(NULL), 0);
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_join(virtual_go(rt, sleep_for_no_time, NULL)), 0);
    weft_task *job;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, sleep_for_no_time, NULL), 0);
    CHECK_EQ(test_join(job), 0);
    weft_runtime_destroy(rt);
    virtual_end();
}

/*
 * A thread is woken to the nanosecond, and so is a future that asks for it. Others have
 * to wait for the end of the millisecond.
 */
static void a_sleep_of_one_nanosecond_is_a_sleep(void)
{
    for (int place = 0; place <= PLACES; place++) {
        bool precise = place == PLACES;
        bool exact = precise || place == ON_THREAD || place == IN_JOB;
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(1);
        struct nap nap = { .deadline = start + 1, .flags = precise ? WEFT_PRECISE : 0 };
        nap_start(&nap, rt, precise ? IN_BODY : (enum place)place);
        nap_wait_asleep(&nap, rt);
        weft_clock_advance(1);
        if (!exact) {
            nap_wait_asleep(&nap, rt);
            weft_clock_advance(WEFT_MS - 1);
        }
        nap_join(&nap);
        CHECK_EQ(nap.result, 0);
        CHECK_EQ(nap.woke, exact ? start + 1 : start + WEFT_MS);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

/*
 * Goal:   a long sleep is not cut short by what the wheel does on the way.
 * Method: steps of all sizes towards a deadline six weeks away, so that the timer goes
 *         down through the levels of the wheel.
 */
static void a_sleep_of_weeks_ends_at_its_time(void)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    for (int place = 0; place < PLACES; place++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(1);
        struct nap nap = { .deadline = start + 1000 * VIRTUAL_HOUR + 321 * WEFT_MS };
        nap_start(&nap, rt, (enum place)place);
        nap_wait_asleep(&nap, rt);
        for (weft_time left; (left = nap.deadline - weft_now()) > 1;) {
            weft_time most = left < (1 << 20) ? left - 1 : left / 8;
            weft_clock_advance(1 + (weft_time)((uint64_t)most * wf_rng_below(&rng, 1024) / 1024));
            nap_wait_asleep(&nap, rt);
        }
        weft_clock_advance(1);
        nap_join(&nap);
        CHECK_EQ(nap.result, 0);
        CHECK_EQ(nap.woke, nap.deadline);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static int sleep_often(void *arg)
{
    weft_time *late_max = arg;
    for (int i = 0; i < 20; i++) {
        weft_time deadline = weft_after(WEFT_MS);
        CHECK_EQ(weft_sleep_until(deadline), 0);
        weft_time late = weft_now() - deadline;
        CHECK_GE(late, 0);
        *late_max = late > *late_max ? late : *late_max;
    }
    return 0;
}

/* By the machine's clock. What is asserted is that it is not early; how late it may
 * be is the machine's business. */
static void a_sleep_by_the_machines_clock_is_never_early(void)
{
    weft_runtime *rt = test_start(2);
    weft_time fiber = 0;
    weft_time job = 0;
    weft_time thread = 0;
    CHECK_EQ(test_join(virtual_go(rt, sleep_often, &fiber)), 0);
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, sleep_often, &job), 0);
    CHECK_EQ(test_join(task), 0);
    CHECK_EQ(sleep_often(&thread), 0);
    (void)printf("late by at most: fiber %lld us, job %lld us, thread %lld us\n",
                 (long long)(fiber / WEFT_US), (long long)(job / WEFT_US),
                 (long long)(thread / WEFT_US));
    weft_runtime_destroy(rt);
}

/* --- Futures ------------------------------------------------------------------------- */

static int await_sleeps(void *arg)
{
    weft_sleep_future sleep;
    (void)arg;
    weft_sleep_init(&sleep, weft_after(VIRTUAL_HOUR), 0);
    CHECK_EQ(weft_await(&sleep.future, weft_after(2 * WEFT_MS)), WEFT_ETIMEDOUT);
    /* Once more with the same one, now the faster. */
    weft_sleep_init(&sleep, weft_after(2 * WEFT_MS), 0);
    CHECK_EQ(weft_await(&sleep.future, weft_after(VIRTUAL_HOUR)), 0);
    weft_sleep_init(&sleep, weft_after(2 * WEFT_MS), WEFT_PRECISE);
    CHECK_EQ(weft_await(&sleep.future, WEFT_NEVER), 0);
    weft_sleep_init(&sleep, WEFT_NEVER, WEFT_PRECISE);
    CHECK_EQ(weft_await(&sleep.future, weft_after(2 * WEFT_MS)), WEFT_ETIMEDOUT);
    weft_sleep_init(&sleep, weft_now(), 0);
    CHECK_EQ(weft_await(&sleep.future, weft_now()), 0);
    return 0;
}

static void a_sleep_can_be_awaited_where_there_is_a_stack(void)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        (void)virtual_begin();
        weft_runtime *rt = test_start(2);
        weft_task *task;
        if (blocking) {
            CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, await_sleeps, NULL), 0);
        } else {
            task = virtual_go(rt, await_sleeps, NULL);
        }
        while (!weft_task_is_done(task)) {
            weft_clock_advance(WEFT_MS);
        }
        CHECK_EQ(test_join(task), 0);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static _Atomic(uint64_t) flag;

static int set_flag_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_store(&flag, 1);
    return 0;
}

static int sleep_until_flag(void *arg)
{
    (void)arg;
    int sleeps = 0;
    for (; atomic_load(&flag) == 0; sleeps++) {
        CHECK_EQ(weft_sleep(0), 0);
    }
    return sleeps;
}

static int sleep_until_flag_body(weft_co *co, void *state)
{
    weft_sleep_future *sleep = state;
    int err = 0;
    WEFT_BEGIN(co);
    while (atomic_load(&flag) == 0) {
        weft_sleep_init(sleep, weft_now(), 0);
        WEFT_AWAIT(co, err, &sleep->future);
        CHECK_EQ(err, 0);
    }
    WEFT_END(co, 0);
}

/*
 * Goal:   who sleeps for no time again and again does not keep others from running.
 * Method: one worker, and a second task for whom the first one waits that way.
 */
static void sleeps_of_no_time_let_others_run(void)
{
    weft_runtime *rt = test_start(1);
    weft_spec setter = { .body = set_flag_body };
    weft_spec waiter = { .body = sleep_until_flag_body, .state_size = sizeof(weft_sleep_future) };
    for (int i = 0; i < 10; i++) {
        atomic_store(&flag, 0);
        weft_task *task = virtual_go(rt, sleep_until_flag, NULL);
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &setter), 0);
        CHECK_GE(test_join(task), 0);

        atomic_store(&flag, 0);
        CHECK_EQ(weft_runtime_spawn(rt, &task, &waiter), 0);
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &setter), 0);
        CHECK_EQ(test_join(task), 0);
    }
    weft_runtime_destroy(rt);
}

/* --- Cancellation ---------------------------------------------------------------------- */

static void a_cancelled_sleep_ends_at_once(void)
{
    for (int never = 0; never < 2; never++) {
        for (int place = 0; place < CANCELLABLE; place++) {
            weft_time start = virtual_begin();
            weft_runtime *rt = test_start(2);
            struct nap nap = { .deadline = never ? WEFT_NEVER : start + VIRTUAL_HOUR };
            nap_start(&nap, rt, (enum place)place);
            nap_wait_asleep(&nap, rt);
            weft_clock_advance(never ? 10 * 365 * 24 * VIRTUAL_HOUR : VIRTUAL_HOUR / 2);
            nap_wait_asleep(&nap, rt);
            weft_time now = weft_now();
            weft_cancel(nap.task);
            nap_join(&nap);
            CHECK_EQ(nap.result, WEFT_ECANCELED);
            CHECK_EQ(nap.woke, now);
            weft_clock_advance(VIRTUAL_HOUR); /* Its timer is gone. */
            virtual_settle(rt);
            weft_runtime_destroy(rt);
            virtual_end();
        }
    }
}

static int sleep_when_cancelled(void *arg)
{
    (void)arg;
    weft_cancel(weft_task_current());
    CHECK_EQ(weft_sleep(0), WEFT_ECANCELED);
    CHECK_EQ(weft_sleep(VIRTUAL_HOUR), WEFT_ECANCELED);
    CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ECANCELED);
    weft_sleep_future sleep;
    weft_sleep_init(&sleep, weft_after(VIRTUAL_HOUR), 0);
    CHECK_EQ(weft_await(&sleep.future, WEFT_NEVER), WEFT_ECANCELED);
    return 3;
}

static void whoever_is_cancelled_does_not_fall_asleep(void)
{
    (void)virtual_begin();
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_join(virtual_go(rt, sleep_when_cancelled, NULL)), 3);
    weft_task *job;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, sleep_when_cancelled, NULL), 0);
    CHECK_EQ(test_join(job), 3);
    weft_runtime_destroy(rt);
    virtual_end();
}

static void a_shield_defers_the_cancellation_of_a_sleep(void)
{
    for (int place = 0; place < CANCELLABLE; place++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(2);
        struct nap nap = { .deadline = start + 5 * WEFT_MS, .shielded = true };
        nap_start(&nap, rt, (enum place)place);
        nap_wait_asleep(&nap, rt);
        weft_cancel(nap.task);
        nap_wait_asleep(&nap, rt);
        weft_clock_advance(5 * WEFT_MS);
        nap_join(&nap);
        CHECK_EQ(nap.result, 0);
        CHECK_EQ(nap.woke, nap.deadline);
        CHECK_EQ(nap.afterwards, WEFT_ECANCELED);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static void the_shutdown_cancels_all_who_sleep(void)
{
    enum {
        NAPS = 12
    };
    static struct nap naps[CANCELLABLE][NAPS];
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(2);
    for (int place = 0; place < CANCELLABLE; place++) {
        for (int i = 0; i < NAPS; i++) {
            weft_time deadline = i % 3 == 0 ? WEFT_NEVER : start + i * VIRTUAL_HOUR;
            naps[place][i] = (struct nap){ .deadline = deadline };
            nap_start(&naps[place][i], rt, (enum place)place);
        }
    }
    for (int place = 0; place < CANCELLABLE; place++) {
        for (int i = 0; i < NAPS; i++) {
            nap_wait_asleep(&naps[place][i], rt);
        }
    }
    weft_runtime_shutdown(rt);
    for (int place = 0; place < CANCELLABLE; place++) {
        for (int i = 0; i < NAPS; i++) {
            nap_join(&naps[place][i]);
            CHECK_EQ(naps[place][i].result, WEFT_ECANCELED);
        }
    }
    weft_runtime_destroy(rt);
    virtual_end();
}

struct shot {
    weft_task *task; /* NULL: it is over */
    _Atomic(uint64_t) round;
    _Atomic(uint64_t) done;
};

static void *cancel_each_round(void *arg)
{
    struct shot *shot = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 1);
    for (uint64_t round = 1;; round++) {
        test_wait_for(&shot->round, round);
        if (shot->task == NULL) {
            return NULL;
        }
        for (uint32_t i = wf_rng_below(&rng, 1u << wf_rng_below(&rng, 12)); i > 0; i--) {
            wf_cpu_relax();
        }
        weft_cancel(shot->task);
        weft_detach(shot->task);
        atomic_store(&shot->done, round);
    }
}

/*
 * Goal:   a cancellation that meets the end of the sleep ends it once, one way or the
 *         other, and leaves nothing behind.
 * Method: a second thread cancels at about the time when this one moves the clock past
 *         the deadline. What is left behind would be found by a sanitizer.
 */
static void a_cancellation_that_meets_the_deadline_ends_the_sleep_once(void)
{
    static struct shot shot;
    shot = (struct shot){ .round = 0 };
    (void)virtual_begin();
    weft_runtime *rt = test_start(2);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, cancel_each_round, &shot), 0);
    uint64_t ends[2] = { 0 };
    for (uint64_t round = 1; round <= test_scale(6000); round++) {
        struct nap nap = { .deadline = weft_after(WEFT_MS) };
        nap_start(&nap, rt, (enum place)(round % CANCELLABLE));
        test_wait_for(&nap.begun, 1);
        shot.task = weft_task_retain(nap.task);
        atomic_store(&shot.round, round);
        weft_clock_advance(WEFT_MS);
        nap_join(&nap);
        CHECK(nap.result == 0 || nap.result == WEFT_ECANCELED);
        ends[nap.result == 0]++;
        test_wait_for(&shot.done, round);
    }
    shot.task = NULL;
    atomic_fetch_add(&shot.round, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    (void)printf("%llu cancelled, %llu slept\n", (unsigned long long)ends[0],
                 (unsigned long long)ends[1]);
    weft_runtime_destroy(rt);
    virtual_end();
}

/* --- Workers that sleep ------------------------------------------------------------------ */

static _Atomic(uint64_t) unparks[2];

static void count_unpark(void *ctx, unsigned worker)
{
    (void)ctx;
    (void)atomic_fetch_add(&unparks[worker], 1);
}

/*
 * Goal:   the clock wakes a worker whose timer is due, and nobody before.
 * Method: one task sleeps on each, pinned to it. Both deadlines are in the lowest level
 *         of the wheel, so nobody has to get up to move timers down. The watch sleeps,
 *         too: it might wake workers to help each other.
 */
static void advance_wakes_a_worker_when_its_time_has_come(void)
{
    weft_time start = virtual_begin();
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.on_unpark = count_unpark;
    weft_runtime *rt = test_start_with(&config);
    struct nap naps[2] = { { .deadline = start + 20 * WEFT_MS },
                           { .deadline = start + 40 * WEFT_MS } };
    for (unsigned i = 0; i < 2; i++) {
        struct nap *nap = &naps[i];
        weft_spec spec = {
            .body = nap_body, .state = &nap, .state_size = sizeof nap, .pinned = WEFT_PINNED_TO(i)
        };
        CHECK_EQ(weft_runtime_spawn(rt, &nap->task, &spec), 0);
        nap->place = IN_BODY;
        nap_wait_asleep(nap, rt);
    }
    for (unsigned i = 0; i < 2; i++) {
        virtual_settle_all(rt);
        uint64_t before[2] = { atomic_load(&unparks[0]), atomic_load(&unparks[1]) };
        weft_clock_advance(19 * WEFT_MS);
        CHECK_EQ(atomic_load(&unparks[0]), before[0]);
        CHECK_EQ(atomic_load(&unparks[1]), before[1]);
        weft_clock_advance(WEFT_MS);
        nap_join(&naps[i]);
        CHECK_EQ(naps[i].woke, naps[i].deadline);
        CHECK_LT(before[i], atomic_load(&unparks[i]));
    }
    weft_runtime_destroy(rt);
    virtual_end();
}

/* --- Mistakes. Each runs in a child of its own. --------------------------------------------- */

static int sleep_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return weft_sleep(1);
}

static void sleep_in_a_body(void)
{
    (void)test_join(test_spawn(test_start(1), sleep_body, NULL));
}

static void sleep_at_a_time(void *arg)
{
    (void)arg;
    (void)weft_sleep_until(0);
}

static int start_sleeping_timer(void *arg)
{
    weft_timer timer = { { 0 } };
    (void)arg;
    weft_timer_start(&timer, 0, 0, sleep_at_a_time, NULL);
    return weft_sleep(WEFT_S);
}

static void sleep_in_a_timer(void)
{
    CHECK_EQ(weft_run(NULL, start_sleeping_timer, NULL), 0);
}

static int sleep_poll(weft_future *future)
{
    (void)future;
    return weft_sleep(1);
}

static int await_what_sleeps(void *arg)
{
    (void)arg;
    weft_future future = { &(const weft_future_ops){ .poll = sleep_poll } };
    return weft_await(&future, WEFT_NEVER);
}

static void sleep_in_a_poll(void)
{
    CHECK_EQ(weft_run(NULL, await_what_sleeps, NULL), 0);
}

static void sleep_in_a_poll_on_a_thread(void)
{
    (void)await_what_sleeps(NULL);
}

static void await_a_sleep_without_a_runtime(void)
{
    weft_sleep_future sleep;
    weft_sleep_init(&sleep, weft_after(WEFT_S), 0);
    CHECK_EQ(weft_await(&sleep.future, WEFT_NEVER), 0);
}

static void a_sleep_in_the_wrong_place_aborts_with_advice(void)
{
    CHECK_ABORTS(sleep_in_a_body, "weft_sleep: called on a worker");
    CHECK_ABORTS(sleep_in_a_body, "await a weft_sleep_future in a body");
    CHECK_ABORTS(sleep_in_a_timer, "weft_sleep: called on a worker");
    CHECK_ABORTS(sleep_in_a_poll, "called from the poll of a future");
    CHECK_ABORTS(sleep_in_a_poll_on_a_thread, "called from the poll of a future");
    CHECK_ABORTS(await_a_sleep_without_a_runtime, "weft_sleep_init: this thread belongs to no");
}

TEST_MAIN({
    TEST(a_sleep_in_the_wrong_place_aborts_with_advice),
    TEST(a_sleep_ends_at_its_time_and_not_before),
    TEST(a_sleep_until_a_time_that_is_over_returns_at_once),
    TEST(a_sleep_of_no_time_or_less_returns_at_once),
    TEST(a_sleep_of_one_nanosecond_is_a_sleep),
    TEST(a_sleep_of_weeks_ends_at_its_time),
    TEST(a_sleep_by_the_machines_clock_is_never_early),
    TEST(a_sleep_can_be_awaited_where_there_is_a_stack),
    TEST(sleeps_of_no_time_let_others_run),
    TEST(a_cancelled_sleep_ends_at_once),
    TEST(whoever_is_cancelled_does_not_fall_asleep),
    TEST(a_shield_defers_the_cancellation_of_a_sleep),
    TEST(the_shutdown_cancels_all_who_sleep),
    TEST(a_cancellation_that_meets_the_deadline_ends_the_sleep_once),
    TEST(advance_wakes_a_worker_when_its_time_has_come),
})
