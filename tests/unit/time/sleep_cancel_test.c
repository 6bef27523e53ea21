/* SPDX-License-Identifier: MIT */
/*
 * sleep_cancel_test.c - canceling sleeps.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <weft.h>

#include "base/atomic.h"
#include "base/rng.h"
#include "nap.h"
#include "rt.h"
#include "test.h"
#include "timing.h"
#include "virtual.h"

static void cancel_ends_sleep_immediately(void)
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

static int sleep_when_canceled(void *arg)
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

static void canceled_task_does_not_fall_asleep(void)
{
    (void)virtual_begin();
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_join(virtual_go(rt, sleep_when_canceled, NULL)), 3);
    weft_task *job;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, sleep_when_canceled, NULL), 0);
    CHECK_EQ(test_join(job), 3);
    weft_runtime_destroy(rt);
    virtual_end();
}

static void shield_defers_cancellation_of_sleep(void)
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

static void shutdown_cancels_all_sleepers(void)
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
    weft_task *task; /* NULL: the race is over */
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
 * Goal:   a cancellation that races with the deadline ends the sleep once, with either result,
 *         and leaves nothing behind.
 * Method: a second thread cancels at about the time when this one advances the clock past the
 *         deadline. Sanitizers report leftovers.
 */
static void cancel_racing_deadline_ends_sleep_once(void)
{
    static struct shot shot;
    shot = (struct shot){ .round = 0 };
    (void)virtual_begin();
    weft_runtime *rt = test_start(2);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, cancel_each_round, &shot), 0);
    uint64_t count = test_scale(6000);
    struct test_rounds rounds = test_rounds_begin();
    for (uint64_t round = 1; round <= count || test_rounds_next(&rounds); round++) {
        struct nap nap = { .deadline = weft_after(WEFT_MS) };
        nap_start(&nap, rt, (enum place)(round % CANCELLABLE));
        test_wait_for(&nap.begun, 1);
        shot.task = weft_task_retain(nap.task);
        atomic_store(&shot.round, round);
        weft_clock_advance(WEFT_MS);
        nap_join(&nap);
        CHECK(nap.result == 0 || nap.result == WEFT_ECANCELED);
        test_rounds_count(&rounds, nap.result == 0);
        test_wait_for(&shot.done, round);
    }
    shot.task = NULL;
    atomic_fetch_add(&shot.round, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    weft_runtime_destroy(rt);
    virtual_end();
}

TEST_MAIN({
    TEST(cancel_ends_sleep_immediately),
    TEST(canceled_task_does_not_fall_asleep),
    TEST(shield_defers_cancellation_of_sleep),
    TEST(shutdown_cancels_all_sleepers),
    TEST(cancel_racing_deadline_ends_sleep_once),
})
