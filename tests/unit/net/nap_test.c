/* SPDX-License-Identifier: MIT */
/*
 * nap_test.c - retry with backoff: the duration of each sleep, and what ends it.
 *
 * Most tests pause the clock: a sleep ends when the test advances it.
 */
#include "net/nap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "crowd.h"
#include "io/transfer.h"
#include "rt.h"
#include "sched/thread.h"
#include "test.h"
#include "timing.h"

/* --- A transfer that retries with backoff -------------------------------------------- */

static struct {
    struct wf_sched *sched;
    uint64_t more;   /* attempts that request another one immediately, before the first sleep */
    uint64_t needed; /* attempts; the last one succeeds with 7 */
    int64_t deadline;
    bool is_brief;        /* use wf_nap_briefly() */
    uint64_t last;        /* duration of the last sleep */
    weft_task *cancelled; /* canceled by the last attempt before the first sleep */
    _Atomic(uint64_t) attempts;
    _Atomic(uint64_t) inside;
    _Atomic(uint64_t) left;
    weft_io io;
} backoff;

static int backoff_enter(struct wf_transfer *self)
{
    (void)self;
    atomic_fetch_add(&backoff.inside, 1);
    return 0;
}

static void backoff_leave(struct wf_transfer *self)
{
    (void)self;
    atomic_fetch_sub(&backoff.inside, 1);
    atomic_fetch_add(&backoff.left, 1);
}

static int backoff_attempt(struct wf_transfer *self)
{
    backoff.last = self->room[0];
    uint64_t count = atomic_fetch_add(&backoff.attempts, 1) + 1;
    if (count <= backoff.more) {
        return WF_TRANSFER_MORE;
    }
    if (count >= backoff.needed) {
        return 7;
    }
    if (backoff.cancelled != NULL) {
        weft_cancel(backoff.cancelled);
    }
    return backoff.is_brief ? wf_nap_briefly(self, backoff.sched) : wf_nap(self, backoff.sched);
}

static const struct wf_transfer_ops backoff_ops = { backoff_enter, backoff_leave, backoff_attempt };

static int find_sched(void *arg)
{
    (void)arg;
    backoff.sched = wf_thread_must_sched("nap_test");
    return 0;
}

static weft_runtime *start(unsigned workers, uint64_t needed)
{
    weft_runtime *rt = test_start(workers);
    CHECK_EQ(test_run(rt, find_sched, NULL), 0);
    backoff.more = 0;
    backoff.needed = needed;
    backoff.deadline = WEFT_NEVER;
    backoff.is_brief = false;
    backoff.cancelled = NULL;
    atomic_store(&backoff.attempts, 0);
    atomic_store(&backoff.left, 0);
    (void)wf_transfer_init(&backoff.io, &backoff_ops, &backoff);
    return rt;
}

/* With the clock paused. */
static weft_runtime *start_paused(uint64_t needed)
{
    weft_clock_pause();
    return start(1, needed);
}

static void stop(weft_runtime *rt)
{
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&backoff.inside), 0);
    CHECK_EQ(atomic_load(&backoff.left), 1);
}

static void stop_paused(weft_runtime *rt)
{
    stop(rt);
    weft_clock_resume();
}

static int await_backoff(void *arg)
{
    (void)arg;
    return weft_await(&backoff.io.future, backoff.deadline);
}

static int await_backoff_in_stackless_task(weft_co *co, void *state)
{
    static int result;
    (void)state;
    WEFT_BEGIN(co);
    WEFT_AWAIT(co, result, &backoff.io.future);
    WEFT_END(co, result);
}

/* --- Durations ----------------------------------------------------------------------- */

/* Timers are exact to the millisecond, and never early. */
static void check_durations(weft_runtime *rt)
{
    static const int64_t ms[] = { 2, 4, 8, 16, 32, 64, 100, 100, 100 };
    for (unsigned i = 0; i < sizeof ms / sizeof ms[0]; i++) {
        test_settle(rt);
        CHECK_EQ(atomic_load(&backoff.attempts), i + 1);
        weft_clock_advance(ms[i] * WEFT_MS - 1);
        test_settle(rt);
        CHECK_EQ(atomic_load(&backoff.attempts), i + 1);
        weft_clock_advance(WEFT_MS + 1);
        test_wait_for(&backoff.attempts, i + 2);
    }
}

static void backoff_grows_from_2_to_100_ms(void)
{
    weft_runtime *rt = start_paused(10);
    weft_task *task = test_go_first(rt, await_backoff, NULL);
    check_durations(rt);
    CHECK_EQ(test_join(task), 7);
    stop_paused(rt);
}

static void brief_backoff_starts_below_millisecond_and_grows(void)
{
    weft_runtime *rt = start_paused(5);
    backoff.is_brief = true;
    weft_task *task = test_go_first(rt, await_backoff, NULL);
    for (unsigned i = 0; i < 4; i++) { /* 50, 100, 200, 400 us */
        test_settle(rt);
        CHECK_EQ(atomic_load(&backoff.attempts), i + 1);
        weft_clock_advance(2 * WEFT_MS);
        test_wait_for(&backoff.attempts, i + 2);
    }
    CHECK_EQ(test_join(task), 7);
    CHECK_EQ(backoff.last, 400 * WEFT_US);
    stop_paused(rt);
}

static void stackless_task_backs_off_like_fiber(void)
{
    weft_runtime *rt = start_paused(10);
    weft_task *task = test_spawn(rt, await_backoff_in_stackless_task, NULL);
    check_durations(rt);
    CHECK_EQ(test_join(task), 7);
    stop_paused(rt);
}

static void each_transfer_starts_with_short_backoff(void)
{
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = start_paused(2);
        weft_task *task = test_go_first(rt, await_backoff, NULL);
        weft_clock_advance(3 * WEFT_MS);
        CHECK_EQ(test_join(task), 7);
        stop_paused(rt);
    }
}

static void *await_on_thread(void *arg)
{
    *(int *)arg = weft_await(&backoff.io.future, WEFT_NEVER);
    return NULL;
}

static void plain_thread_retries_with_backoff(void)
{
    weft_runtime *rt = start(2, 4);
    pthread_t thread;
    int result = 0;
    weft_time begin = weft_now();
    CHECK_EQ(pthread_create(&thread, NULL, await_on_thread, &result), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(result, 7);
    CHECK_GE(weft_now() - begin, (2 + 4 + 8) * WEFT_MS);
    stop(rt);
}

/* --- What ends a sleep --------------------------------------------------------------- */

static void nothing_follows(weft_runtime *rt, uint64_t attempts)
{
    weft_clock_advance(WEFT_S);
    test_settle(rt);
    CHECK_EQ(atomic_load(&backoff.attempts), attempts);
    CHECK_EQ(atomic_load(&backoff.inside), 0);
}

static void cancel_ends_backoff_immediately(void)
{
    weft_runtime *rt = start_paused(UINT64_MAX);
    weft_task *task = test_go_first(rt, await_backoff, NULL);
    weft_clock_advance(3 * WEFT_MS);
    test_wait_for(&backoff.attempts, 2);
    test_settle(rt);
    weft_cancel(task);
    CHECK_EQ(test_join(task), WEFT_ECANCELED);
    nothing_follows(rt, 2);
    stop_paused(rt);
}

static void cancel_ends_backoff_of_stackless_task_immediately(void)
{
    weft_runtime *rt = start_paused(UINT64_MAX);
    weft_task *task = test_spawn(rt, await_backoff_in_stackless_task, NULL);
    test_settle(rt);
    weft_cancel(task);
    CHECK_EQ(test_join(task), WEFT_ECANCELED);
    nothing_follows(rt, 1);
    stop_paused(rt);
}

static void deadline_ends_backoff(void)
{
    weft_runtime *rt = start_paused(UINT64_MAX);
    backoff.deadline = weft_after(21 * WEFT_MS);
    weft_task *task = test_go_first(rt, await_backoff, NULL);
    for (unsigned i = 1; i < 4; i++) {
        weft_clock_advance((1 << i) * WEFT_MS + WEFT_MS);
        test_wait_for(&backoff.attempts, i + 1);
        test_settle(rt);
    }
    /* 17 ms have passed, and a sleep of 16 ms has started. */
    weft_clock_advance(6 * WEFT_MS);
    CHECK_EQ(test_join(task), WEFT_ETIMEDOUT);
    nothing_follows(rt, 4);
    stop_paused(rt);
}

static void expired_deadline_allows_one_attempt(void)
{
    weft_runtime *rt = start_paused(UINT64_MAX);
    backoff.deadline = 0;
    CHECK_EQ(test_run(rt, await_backoff, NULL), WEFT_ETIMEDOUT);
    uint64_t attempts = atomic_load(&backoff.attempts);
    CHECK_LE(attempts, 1);
    nothing_follows(rt, attempts);
    weft_runtime_destroy(rt);
    weft_clock_resume();
}

static weft_event event;

static int lose_select(void *arg)
{
    weft_op wait;
    (void)arg;
    weft_event_wait_init(&wait, &event);
    weft_branch branches[] = { { .future = &backoff.io.future }, { .future = &wait.future } };
    return weft_select(branches, 2, 0, WEFT_NEVER);
}

static void backoff_that_loses_select_is_over(void)
{
    weft_runtime *rt = start_paused(UINT64_MAX);
    weft_event_reset(&event);
    weft_task *task = test_go_first(rt, lose_select, NULL);
    weft_event_set(&event);
    CHECK_EQ(test_join(task), 1);
    nothing_follows(rt, 1);
    stop_paused(rt);
}

static void backoff_may_win_select(void)
{
    weft_runtime *rt = start_paused(3);
    weft_event_reset(&event);
    weft_task *task = test_go_first(rt, lose_select, NULL);
    weft_clock_advance(3 * WEFT_MS);
    test_wait_for(&backoff.attempts, 2);
    test_settle(rt);
    weft_clock_advance(5 * WEFT_MS);
    CHECK_EQ(test_join(task), 0);
    stop_paused(rt);
}

static int await_backoff_after_event(void *arg)
{
    CHECK_EQ(weft_event_wait(&event, WEFT_NEVER), 0);
    return await_backoff(arg);
}

/*
 * Goal:   a sleep that was requested but not started does not start after the cancellation.
 * Method: a transfer makes up to 16 attempts in a row and then yields. The 16th requests a sleep
 *         and cancels the task. A timer that is left behind crashes on the overwritten memory.
 */
static void canceled_backoff_that_has_not_started_never_starts(void)
{
    weft_runtime *rt = start_paused(UINT64_MAX);
    for (backoff.more = 0; backoff.more < 40; backoff.more++) {
        (void)wf_transfer_init(&backoff.io, &backoff_ops, &backoff);
        atomic_store(&backoff.attempts, 0);
        atomic_store(&backoff.left, 0);
        weft_event_reset(&event);
        backoff.cancelled = test_go_first(rt, await_backoff_after_event, NULL);
        weft_event_set(&event);
        CHECK_EQ(test_join(backoff.cancelled), WEFT_ECANCELED);
        memset(&backoff.io, 0x55, sizeof backoff.io);
        nothing_follows(rt, backoff.more + 1);
    }
    stop_paused(rt);
}

/* --- Many at the same time ----------------------------------------------------------- */

enum {
    TRANSFERS = 24,
};

static weft_io ios[TRANSFERS];

/* Sleeps three times. */
static int backoff_attempt_thrice(struct wf_transfer *self)
{
    return self->count++ < 3 ? wf_nap(self, backoff.sched) : 7;
}

static const struct wf_transfer_ops thrice_ops = { backoff_enter, backoff_leave,
                                                   backoff_attempt_thrice };

static int backoff_with_others(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    (void)wf_transfer_init(&ios[self->index], &thrice_ops, &backoff);
    WEFT_AWAIT(co, self->err, &ios[self->index].future);
    CHECK_EQ(self->err, 7);
    self->sum++;
    WEFT_END(co, 0);
}

static void many_transfers_back_off_concurrently(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3 * CROWD_KINDS; i++) {
        weft_runtime *rt = start(workers[i % 3], 0);
        uint64_t sum =
            crowd_run(rt, (enum crowd_kind)(i / 3), TRANSFERS, backoff_with_others, NULL);
        CHECK_EQ(sum, TRANSFERS);
        CHECK_EQ(atomic_load(&backoff.left), TRANSFERS);
        CHECK_EQ(atomic_load(&backoff.inside), 0);
        weft_runtime_destroy(rt);
    }
}

static int backoff_forever(struct wf_transfer *self)
{
    return backoff.is_brief ? wf_nap_briefly(self, backoff.sched) : wf_nap(self, backoff.sched);
}

static const struct wf_transfer_ops ever_ops = { backoff_enter, backoff_leave, backoff_forever };

static int backoff_until_canceled(void *arg)
{
    weft_io io;
    uint64_t index = (uint64_t)(uintptr_t)arg;
    (void)wf_transfer_init(&io, &ever_ops, &backoff);
    /* Some have a deadline that coincides with the end of a sleep. */
    int err = weft_await(&io.future, index % 2 == 0 ? WEFT_NEVER : weft_after(2 * WEFT_MS));
    memset(&io, 0x55, sizeof io); /* It is no longer in use. */
    return err;
}

/*
 * Goal:   a sleep that ends at the same time as its task is canceled ends once.
 * Method: many, canceled after a time at which some are between two sleeps.
 */
static void backoff_that_ends_during_cancel_ends_once(void)
{
    weft_runtime *rt = start(8, 0);
    for (uint64_t round = test_scale(40); round > 0; round--) {
        weft_task *tasks[TRANSFERS];
        for (uintptr_t i = 0; i < TRANSFERS; i++) {
            tasks[i] = test_go(rt, backoff_until_canceled, (void *)i);
        }
        test_wait_ns((int64_t)(2 + round % 3) * WEFT_MS);
        for (unsigned i = 0; i < TRANSFERS; i++) {
            weft_cancel(tasks[i]);
        }
        for (unsigned i = 0; i < TRANSFERS; i++) {
            int result = test_join_soon(tasks[i]);
            CHECK(result == WEFT_ECANCELED || (i % 2 == 1 && result == WEFT_ETIMEDOUT));
        }
    }
    CHECK_EQ(atomic_load(&backoff.inside), 0);
    weft_runtime_destroy(rt);
}

/*
 * The tests that let the clock run come first: a test that advances the clock does not set it
 * back.
 */
TEST_MAIN({
    TEST(plain_thread_retries_with_backoff),
    TEST(many_transfers_back_off_concurrently),
    TEST(backoff_that_ends_during_cancel_ends_once),
    TEST(backoff_grows_from_2_to_100_ms),
    TEST(brief_backoff_starts_below_millisecond_and_grows),
    TEST(stackless_task_backs_off_like_fiber),
    TEST(each_transfer_starts_with_short_backoff),
    TEST(cancel_ends_backoff_immediately),
    TEST(cancel_ends_backoff_of_stackless_task_immediately),
    TEST(deadline_ends_backoff),
    TEST(expired_deadline_allows_one_attempt),
    TEST(backoff_that_loses_select_is_over),
    TEST(backoff_may_win_select),
    TEST(canceled_backoff_that_has_not_started_never_starts),
})
