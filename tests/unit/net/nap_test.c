/* SPDX-License-Identifier: MIT */
/*
 * Naps: how long each is, and what ends them.
 *
 * Most tests stop the clock: a nap ends when the test moves it on.
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

/* --- A transfer that naps ------------------------------------------------------------ */

static struct {
    struct wf_sched *sched;
    uint64_t more;   /* attempts that ask for another one at once, before the first nap */
    uint64_t needed; /* attempts; the last one succeeds with 7 */
    int64_t deadline;
    bool is_brief;        /* wf_nap_briefly() */
    uint64_t last;        /* how long the last one was */
    weft_task *cancelled; /* by the last attempt before the first nap */
    _Atomic(uint64_t) attempts;
    _Atomic(uint64_t) inside;
    _Atomic(uint64_t) left;
    weft_io io;
} nap;

static int nap_enter(struct wf_transfer *self)
{
    (void)self;
    atomic_fetch_add(&nap.inside, 1);
    return 0;
}

static void nap_leave(struct wf_transfer *self)
{
    (void)self;
    atomic_fetch_sub(&nap.inside, 1);
    atomic_fetch_add(&nap.left, 1);
}

static int nap_attempt(struct wf_transfer *self)
{
    nap.last = self->room[0];
    uint64_t count = atomic_fetch_add(&nap.attempts, 1) + 1;
    if (count <= nap.more) {
        return WF_TRANSFER_MORE;
    }
    if (count >= nap.needed) {
        return 7;
    }
    if (nap.cancelled != NULL) {
        weft_cancel(nap.cancelled);
    }
    return nap.is_brief ? wf_nap_briefly(self, nap.sched) : wf_nap(self, nap.sched);
}

static const struct wf_transfer_ops nap_ops = { nap_enter, nap_leave, nap_attempt };

static int find_sched(void *arg)
{
    (void)arg;
    nap.sched = wf_thread_must_sched("nap_test");
    return 0;
}

static weft_runtime *start(unsigned workers, uint64_t needed)
{
    weft_runtime *rt = test_start(workers);
    CHECK_EQ(test_run(rt, find_sched, NULL), 0);
    nap.more = 0;
    nap.needed = needed;
    nap.deadline = WEFT_NEVER;
    nap.is_brief = false;
    nap.cancelled = NULL;
    atomic_store(&nap.attempts, 0);
    atomic_store(&nap.left, 0);
    (void)wf_transfer_init(&nap.io, &nap_ops, &nap);
    return rt;
}

/* With a clock that stands still. */
static weft_runtime *start_paused(uint64_t needed)
{
    weft_clock_pause();
    return start(1, needed);
}

static void stop(weft_runtime *rt)
{
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&nap.inside), 0);
    CHECK_EQ(atomic_load(&nap.left), 1);
}

static void stop_paused(weft_runtime *rt)
{
    stop(rt);
    weft_clock_resume();
}

static int await_nap(void *arg)
{
    (void)arg;
    return weft_await(&nap.io.future, nap.deadline);
}

static int await_nap_in_a_body(weft_co *co, void *state)
{
    static int result;
    (void)state;
    WEFT_BEGIN(co);
    WEFT_AWAIT(co, result, &nap.io.future);
    WEFT_END(co, result);
}

/* --- How long ------------------------------------------------------------------------ */

/* Timers are exact to the millisecond, and never early. */
static void check_durations(weft_runtime *rt)
{
    static const int64_t ms[] = { 2, 4, 8, 16, 32, 64, 100, 100, 100 };
    for (unsigned i = 0; i < sizeof ms / sizeof ms[0]; i++) {
        test_settle(rt);
        CHECK_EQ(atomic_load(&nap.attempts), i + 1);
        weft_clock_advance(ms[i] * WEFT_MS - 1);
        test_settle(rt);
        CHECK_EQ(atomic_load(&nap.attempts), i + 1);
        weft_clock_advance(WEFT_MS + 1);
        test_wait_for(&nap.attempts, i + 2);
    }
}

static void naps_grow_from_2_to_100_ms(void)
{
    weft_runtime *rt = start_paused(10);
    weft_task *task = test_go_first(rt, await_nap, NULL);
    check_durations(rt);
    CHECK_EQ(test_join(task), 7);
    stop_paused(rt);
}

static void brief_naps_begin_below_a_millisecond_and_grow(void)
{
    weft_runtime *rt = start_paused(5);
    nap.is_brief = true;
    weft_task *task = test_go_first(rt, await_nap, NULL);
    for (unsigned i = 0; i < 4; i++) { /* 50, 100, 200, 400 us */
        test_settle(rt);
        CHECK_EQ(atomic_load(&nap.attempts), i + 1);
        weft_clock_advance(2 * WEFT_MS);
        test_wait_for(&nap.attempts, i + 2);
    }
    CHECK_EQ(test_join(task), 7);
    CHECK_EQ(nap.last, 400 * WEFT_US);
    stop_paused(rt);
}

static void bodies_nap_as_fibers_do(void)
{
    weft_runtime *rt = start_paused(10);
    weft_task *task = test_spawn(rt, await_nap_in_a_body, NULL);
    check_durations(rt);
    CHECK_EQ(test_join(task), 7);
    stop_paused(rt);
}

static void each_transfer_begins_with_a_short_nap(void)
{
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = start_paused(2);
        weft_task *task = test_go_first(rt, await_nap, NULL);
        weft_clock_advance(3 * WEFT_MS);
        CHECK_EQ(test_join(task), 7);
        stop_paused(rt);
    }
}

static void *await_on_thread(void *arg)
{
    *(int *)arg = weft_await(&nap.io.future, WEFT_NEVER);
    return NULL;
}

static void a_thread_naps(void)
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

/* --- What ends them ------------------------------------------------------------------ */

static void nothing_follows(weft_runtime *rt, uint64_t attempts)
{
    weft_clock_advance(WEFT_S);
    test_settle(rt);
    CHECK_EQ(atomic_load(&nap.attempts), attempts);
    CHECK_EQ(atomic_load(&nap.inside), 0);
}

static void a_cancelled_nap_ends_at_once(void)
{
    weft_runtime *rt = start_paused(UINT64_MAX);
    weft_task *task = test_go_first(rt, await_nap, NULL);
    weft_clock_advance(3 * WEFT_MS);
    test_wait_for(&nap.attempts, 2);
    test_settle(rt);
    weft_cancel(task);
    CHECK_EQ(test_join(task), WEFT_ECANCELED);
    nothing_follows(rt, 2);
    stop_paused(rt);
}

static void a_cancelled_nap_of_a_body_ends_at_once(void)
{
    weft_runtime *rt = start_paused(UINT64_MAX);
    weft_task *task = test_spawn(rt, await_nap_in_a_body, NULL);
    test_settle(rt);
    weft_cancel(task);
    CHECK_EQ(test_join(task), WEFT_ECANCELED);
    nothing_follows(rt, 1);
    stop_paused(rt);
}

static void a_deadline_ends_a_nap(void)
{
    weft_runtime *rt = start_paused(UINT64_MAX);
    nap.deadline = weft_after(21 * WEFT_MS);
    weft_task *task = test_go_first(rt, await_nap, NULL);
    for (unsigned i = 1; i < 4; i++) {
        weft_clock_advance((1 << i) * WEFT_MS + WEFT_MS);
        test_wait_for(&nap.attempts, i + 1);
        test_settle(rt);
    }
    /* 17 ms are over, and a nap of 16 ms has begun. */
    weft_clock_advance(6 * WEFT_MS);
    CHECK_EQ(test_join(task), WEFT_ETIMEDOUT);
    nothing_follows(rt, 4);
    stop_paused(rt);
}

static void a_deadline_that_is_over_allows_one_attempt(void)
{
    weft_runtime *rt = start_paused(UINT64_MAX);
    nap.deadline = 0;
    CHECK_EQ(test_run(rt, await_nap, NULL), WEFT_ETIMEDOUT);
    uint64_t attempts = atomic_load(&nap.attempts);
    CHECK_LE(attempts, 1);
    nothing_follows(rt, attempts);
    weft_runtime_destroy(rt);
    weft_clock_resume();
}

static weft_event event;

static int lose_a_select(void *arg)
{
    weft_op wait;
    (void)arg;
    weft_event_wait_init(&wait, &event);
    weft_branch branches[] = { { .future = &nap.io.future }, { .future = &wait.future } };
    return weft_select(branches, 2, 0, WEFT_NEVER);
}

static void a_nap_that_loses_a_select_is_over(void)
{
    weft_runtime *rt = start_paused(UINT64_MAX);
    weft_event_reset(&event);
    weft_task *task = test_go_first(rt, lose_a_select, NULL);
    weft_event_set(&event);
    CHECK_EQ(test_join(task), 1);
    nothing_follows(rt, 1);
    stop_paused(rt);
}

static void a_nap_may_win_a_select(void)
{
    weft_runtime *rt = start_paused(3);
    weft_event_reset(&event);
    weft_task *task = test_go_first(rt, lose_a_select, NULL);
    weft_clock_advance(3 * WEFT_MS);
    test_wait_for(&nap.attempts, 2);
    test_settle(rt);
    weft_clock_advance(5 * WEFT_MS);
    CHECK_EQ(test_join(task), 0);
    stop_paused(rt);
}

static int await_nap_after_event(void *arg)
{
    CHECK_EQ(weft_event_wait(&event, WEFT_NEVER), 0);
    return await_nap(arg);
}

/*
 * Goal:   a nap that was asked for, but has not begun, does not begin after it was cancelled.
 * Method: a transfer has its turn for 16 attempts, and yields then. The 16th asks for a nap and
 *         cancels the task. A timer that is left behind crashes in what was overwritten.
 */
static void a_nap_that_has_not_begun_is_never_begun(void)
{
    weft_runtime *rt = start_paused(UINT64_MAX);
    for (nap.more = 0; nap.more < 40; nap.more++) {
        (void)wf_transfer_init(&nap.io, &nap_ops, &nap);
        atomic_store(&nap.attempts, 0);
        atomic_store(&nap.left, 0);
        weft_event_reset(&event);
        nap.cancelled = test_go_first(rt, await_nap_after_event, NULL);
        weft_event_set(&event);
        CHECK_EQ(test_join(nap.cancelled), WEFT_ECANCELED);
        memset(&nap.io, 0x55, sizeof nap.io);
        nothing_follows(rt, nap.more + 1);
    }
    stop_paused(rt);
}

/* --- All at once --------------------------------------------------------------------- */

enum {
    NAPPERS = 24,
};

static weft_io ios[NAPPERS];

/* Naps a few times; some are late. */
static int nap_attempt_thrice(struct wf_transfer *self)
{
    return self->count++ < 3 ? wf_nap(self, nap.sched) : 7;
}

static const struct wf_transfer_ops thrice_ops = { nap_enter, nap_leave, nap_attempt_thrice };

static int nap_with_others(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    (void)wf_transfer_init(&ios[self->index], &thrice_ops, &nap);
    WEFT_AWAIT(co, self->err, &ios[self->index].future);
    CHECK_EQ(self->err, 7);
    self->sum++;
    WEFT_END(co, 0);
}

static void many_nap_at_once(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3 * CROWD_KINDS; i++) {
        weft_runtime *rt = start(workers[i % 3], 0);
        uint64_t sum = crowd_run(rt, (enum crowd_kind)(i / 3), NAPPERS, nap_with_others, NULL);
        CHECK_EQ(sum, NAPPERS);
        CHECK_EQ(atomic_load(&nap.left), NAPPERS);
        CHECK_EQ(atomic_load(&nap.inside), 0);
        weft_runtime_destroy(rt);
    }
}

static int nap_for_ever(struct wf_transfer *self)
{
    return nap.is_brief ? wf_nap_briefly(self, nap.sched) : wf_nap(self, nap.sched);
}

static const struct wf_transfer_ops ever_ops = { nap_enter, nap_leave, nap_for_ever };

static int nap_until_cancelled(void *arg)
{
    weft_io io;
    uint64_t index = (uint64_t)(uintptr_t)arg;
    (void)wf_transfer_init(&io, &ever_ops, &nap);
    /* Some have a deadline that comes together with the end of a nap. */
    int err = weft_await(&io.future, index % 2 == 0 ? WEFT_NEVER : weft_after(2 * WEFT_MS));
    memset(&io, 0x55, sizeof io); /* Nobody is at it any more. */
    return err;
}

/*
 * Goal:   a nap that ends by itself and by its task's cancellation at the same time ends once.
 * Method: many, cancelled after so long that some are between two naps.
 */
static void naps_are_cancelled_while_they_end(void)
{
    weft_runtime *rt = start(8, 0);
    for (uint64_t round = test_scale(40); round > 0; round--) {
        weft_task *tasks[NAPPERS];
        for (uintptr_t i = 0; i < NAPPERS; i++) {
            tasks[i] = test_go(rt, nap_until_cancelled, (void *)i);
        }
        test_wait_ns((int64_t)(2 + round % 3) * WEFT_MS);
        for (unsigned i = 0; i < NAPPERS; i++) {
            weft_cancel(tasks[i]);
        }
        for (unsigned i = 0; i < NAPPERS; i++) {
            int result = test_join_soon(tasks[i]);
            CHECK(result == WEFT_ECANCELED || (i % 2 == 1 && result == WEFT_ETIMEDOUT));
        }
    }
    CHECK_EQ(atomic_load(&nap.inside), 0);
    weft_runtime_destroy(rt);
}

/* Those that let the clock run come first: it is not where it was after a test has moved it. */
TEST_MAIN({
    TEST(a_thread_naps),
    TEST(many_nap_at_once),
    TEST(naps_are_cancelled_while_they_end),
    TEST(naps_grow_from_2_to_100_ms),
    TEST(brief_naps_begin_below_a_millisecond_and_grow),
    TEST(bodies_nap_as_fibers_do),
    TEST(each_transfer_begins_with_a_short_nap),
    TEST(a_cancelled_nap_ends_at_once),
    TEST(a_cancelled_nap_of_a_body_ends_at_once),
    TEST(a_deadline_ends_a_nap),
    TEST(a_deadline_that_is_over_allows_one_attempt),
    TEST(a_nap_that_loses_a_select_is_over),
    TEST(a_nap_may_win_a_select),
    TEST(a_nap_that_has_not_begun_is_never_begun),
})
