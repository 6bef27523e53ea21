/* SPDX-License-Identifier: MIT */
/*
 * fiber_moves.c - thousands of fibers that wait for each other, sleep and yield on several
 * workers.
 *
 * No wake-up is lost, and wherever a fiber resumes it finds its frame and its errno.
 * WEFT_TEST_SECONDS sets the duration, test_scale() the number of fibers.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

#include "base/atomic.h"
#include "base/rng.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

/* Mailbox of one fiber. */
struct mail {
    weft_future future;
    _Atomic(weft_waker *) waker;
    _Atomic(uint64_t) posted;
    uint64_t taken;
};

struct wanderer {
    struct mail mail;
    struct wanderer *partner;
    uint64_t id;
    _Atomic(bool) partner_is_gone;
    uint64_t rounds;
    uint64_t moves;
};

enum {
    MOVES_MIN = 100,
};

static weft_time end;
static _Atomic(uint64_t) all_moves;
static uint64_t moves_wanted;

/* Returns whether the test is over. It runs until some fibers have moved, however busy the
 * machine is. */
static bool is_over(void)
{
    return weft_now() >= end && atomic_load(&all_moves) >= moves_wanted;
}

static int mail_poll(weft_future *future)
{
    struct mail *mail = (struct mail *)future;
    if (atomic_load(&mail->posted) == mail->taken) {
        weft_waker_drop(atomic_exchange(&mail->waker, weft_waker_current()));
        wf_fence_full();
        if (atomic_load(&mail->posted) == mail->taken) {
            return WEFT_PENDING;
        }
    }
    mail->taken++;
    return 0;
}

static bool mail_cancel(weft_future *future)
{
    (void)future;
    return true;
}

static const weft_future_ops mail_ops = { .poll = mail_poll, .cancel = mail_cancel };

static void post(struct mail *mail)
{
    atomic_fetch_add(&mail->posted, 1);
    wf_fence_full();
    weft_waker *waker = atomic_exchange(&mail->waker, NULL);
    if (waker != NULL) {
        weft_waker_fire(waker);
    }
}

/* Sends a letter to the partner and waits for one from it. */
static void exchange(struct wanderer *self)
{
    post(&self->partner->mail);
    CHECK_EQ(weft_await(&self->mail.future, test_deadline()), 0);
}

static void wait_in_random_way(struct wanderer *self, struct wf_rng *rng)
{
    uint32_t how = wf_rng_below(rng, 64);
    if (how == 0) {
        CHECK_EQ(weft_sleep(wf_rng_below(rng, 3) * WEFT_MS), 0);
    } else if (how < 16) {
        CHECK_EQ(weft_yield(), 0);
    } else {
        exchange(self);
    }
}

static int wander(void *arg)
{
    struct wanderer *self = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), self->id);
    uint64_t frame[4] = { self->id, ~self->id, 0, 0 };
    double real = (double)self->id;
    while (!atomic_load(&self->partner_is_gone) && !is_over()) {
        int worker = weft_worker_current();
        int mark = (int)(self->id * 31 + self->rounds) & 0xffff;
        frame[2] = self->rounds;
        errno = mark;
        wait_in_random_way(self, &rng);
        CHECK_EQ(errno, mark);
        CHECK_EQ(frame[0], self->id);
        CHECK_EQ(frame[1], ~self->id);
        CHECK_EQ(frame[2], self->rounds);
        CHECK(real == (double)self->id + (double)self->rounds * 0.5);
        real += 0.5;
        self->rounds++;
        if (weft_worker_current() != worker) {
            self->moves++;
            atomic_fetch_add(&all_moves, 1);
        }
    }
    atomic_store(&self->partner->partner_is_gone, true);
    post(&self->partner->mail);
    return 0;
}

static weft_time duration(void)
{
    const char *seconds = getenv("WEFT_TEST_SECONDS");
    return seconds != NULL ? strtoll(seconds, NULL, 10) * WEFT_S : 500 * WEFT_MS;
}

static void moving_fibers_keep_frame_and_errno_and_lose_no_wakeup(void)
{
    unsigned workers = test_workers(8);
    uint64_t count = test_scale(2000) & ~(uint64_t)1;
    weft_runtime *rt = test_start(workers);
    struct wanderer *all = calloc(count, sizeof *all);
    weft_task **tasks = calloc(count, sizeof(weft_task *));
    CHECK(all != NULL && tasks != NULL);
    end = weft_now() + duration();
    atomic_store(&all_moves, 0);
    moves_wanted = workers > 1 ? MOVES_MIN : 0;
    for (uint64_t i = 0; i < count; i++) {
        all[i].id = i + 1;
        all[i].mail.future.ops = &mail_ops;
        all[i].partner = &all[i ^ 1];
    }
    for (uint64_t i = 0; i < count; i++) {
        tasks[i] = test_go(rt, wander, &all[i]);
    }
    uint64_t rounds = 0;
    uint64_t moves = 0;
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQ(test_join(tasks[i]), 0);
        rounds += all[i].rounds;
        moves += all[i].moves;
    }
    printf("%llu fibers, %u workers: %llu waits, %llu on another worker after it\n",
           (unsigned long long)count, workers, (unsigned long long)rounds,
           (unsigned long long)moves);
    CHECK_GE(rounds, count);
    if (workers == 1) {
        CHECK_EQ(moves, 0);
    } else {
        CHECK_GE(moves, MOVES_MIN);
    }
    for (uint64_t i = 0; i < count; i++) {
        weft_waker_drop(all[i].mail.waker);
    }
    weft_runtime_destroy(rt);
    free(tasks);
    free(all);
}

TEST_MAIN({ TEST(moving_fibers_keep_frame_and_errno_and_lose_no_wakeup) })
