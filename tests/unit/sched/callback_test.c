/* SPDX-License-Identifier: MIT */
#include "sched/callback.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "../base/asleep.h"
#include "base/atomic.h"
#include "rt.h"
#include "test.h"

enum {
    RING = 5 /* callbacks that wait for each other in a ring */
};

/* A callback that runs on its own thread and waits for the next one in the ring. */
struct member {
    struct wf_callback callback; /* guarded by lock, like is_running */
    bool is_running;
    bool has_waited;
    pthread_t thread;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the owner's */
static struct member members[RING];
static unsigned ring;
static _Atomic(uint64_t) began;

/* Waits for a callback as a stop does. Returns whether it had to wait. */
static bool await_member(struct member *member)
{
    struct wf_callback_wait wait;
    (void)pthread_mutex_lock(&lock);
    bool must_wait = member->is_running && wf_callback_expect(&member->callback, &wait, "test");
    (void)pthread_mutex_unlock(&lock);
    if (must_wait) {
        wf_callback_await(&wait);
    }
    return must_wait;
}

static void *run_member(void *arg)
{
    struct member *self = arg;
    unsigned index = (unsigned)(self - members);
    (void)pthread_mutex_lock(&lock);
    wf_callback_begin(&self->callback);
    self->is_running = true;
    (void)pthread_mutex_unlock(&lock);
    (void)atomic_fetch_add(&began, 1);
    test_wait_for(&began, ring);
    self->has_waited = await_member(&members[(index + 1) % ring]);
    (void)pthread_mutex_lock(&lock);
    self->is_running = false;
    (void)pthread_mutex_unlock(&lock);
    wf_callback_end(&self->callback);
    return NULL;
}

/*
 * Goal:   callbacks that wait for each other all return, however many there are. Only the wait
 *         that would close the ring is refused, or finds a callback that has returned.
 * Method: all run before the first one waits. With one, the callback waits for itself.
 */
static void ring_of_waits_is_not_closed(void)
{
    for (unsigned round = 0; round < 200; round++) {
        ring = round % RING + 1;
        atomic_store(&began, 0);
        for (unsigned i = 0; i < ring; i++) {
            members[i] = (struct member){ .is_running = false };
            CHECK_EQ(pthread_create(&members[i].thread, NULL, run_member, &members[i]), 0);
        }
        unsigned waited = 0;
        for (unsigned i = 0; i < ring; i++) {
            CHECK_EQ(pthread_join(members[i].thread, NULL), 0);
            waited += members[i].has_waited;
        }
        CHECK_LT(waited, ring);
    }
}

static struct member slow;
static _Atomic(uint64_t) waiters;
static int written; /* plain: a thread that has waited sees it */

static void *wait_for_slow(void *arg)
{
    uint64_t *tid = arg;
    *tid = own_tid();
    (void)atomic_fetch_add(&waiters, 1);
    CHECK(await_member(&slow));
    CHECK_EQ(written, 1);
    return NULL;
}

static void end_of_callback_ends_all_its_waits(void)
{
    pthread_t threads[3];
    uint64_t tids[3];
    wf_callback_begin(&slow.callback);
    slow.is_running = true;
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, wait_for_slow, &tids[i]), 0);
    }
    test_wait_for(&waiters, 3);
    for (unsigned i = 0; i < 3; i++) {
        wait_until_asleep(tids[i]);
    }
    written = 1;
    (void)pthread_mutex_lock(&lock);
    slow.is_running = false;
    (void)pthread_mutex_unlock(&lock);
    wf_callback_end(&slow.callback);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

static void nested_callback_does_not_wait_for_outer_one(void)
{
    struct wf_callback outer;
    struct wf_callback inner;
    struct wf_callback_wait wait;
    wf_callback_begin(&outer);
    wf_callback_begin(&inner);
    CHECK(!wf_callback_expect(&outer, &wait, "test"));
    wf_callback_end(&inner);
    CHECK(!wf_callback_expect(&outer, &wait, "test"));
    wf_callback_end(&outer);
}

/* --- Callbacks that suspend ------------------------------------------------------------------ */

static weft_token token;
static weft_on_cancel on_cancel;
static weft_event is_in_callback;
static weft_event never;

static void wait_in_callback(void *arg)
{
    (void)arg;
    weft_event_set(&is_in_callback);
    CHECK_EQ(weft_event_wait(&never, WEFT_NEVER), WEFT_ECANCELED);
}

static int cancel_token(void *arg)
{
    (void)arg;
    weft_on_cancel_add(&on_cancel, &token, wait_in_callback, NULL);
    weft_token_cancel(&token);
    return 0;
}

static int remove_callback(void *arg)
{
    (void)arg;
    CHECK_EQ(weft_event_wait(&is_in_callback, WEFT_NEVER), 0);
    (void)weft_on_cancel_remove(&on_cancel);
    return 0;
}

static void remove_suspended_callback(void)
{
    weft_runtime *rt = test_start(1);
    (void)test_go(rt, cancel_token, NULL);
    (void)test_join(test_go(rt, remove_callback, NULL));
}

/* The remover blocks the only worker, which the callback needs to return. */
static void suspended_callback_aborts_instead_of_deadlock(void)
{
    CHECK_ABORTS(remove_suspended_callback,
                 "weft_on_cancel_remove: the callback of a timer or a token has waited");
}

enum {
    COMPUTATIONS = 100
};

static _Atomic(uint64_t) pieces;

static int count_piece(size_t first, size_t end, void *arg)
{
    (void)arg;
    (void)atomic_fetch_add(&pieces, end - first);
    for (unsigned i = 0; i < 1000; i++) {
        wf_cpu_relax();
    }
    return 0;
}

static void compute(void *arg)
{
    weft_par_options options = { .piece = 1 };
    CHECK_EQ(weft_for(0, 64, count_piece, NULL, &options), 0);
    (void)atomic_fetch_add((_Atomic(uint64_t) *)arg, 1);
}

static int compute_in_callbacks(void *arg)
{
    weft_token all = { { 0 }, 0, { 0 } };
    weft_on_cancel callbacks[COMPUTATIONS];
    weft_timer timers[COMPUTATIONS];
    _Atomic(uint64_t) count = 0;
    (void)arg;
    memset(timers, 0, sizeof timers);
    for (unsigned i = 0; i < COMPUTATIONS; i++) {
        weft_on_cancel_add(&callbacks[i], &all, compute, &count);
        weft_timer_start(&timers[i], 0, 0, compute, &count);
    }
    weft_token_cancel(&all);
    for (unsigned i = 0; i < COMPUTATIONS; i++) {
        CHECK(!weft_on_cancel_remove(&callbacks[i]));
        while (weft_timer_stop(&timers[i])) {
            (void)atomic_fetch_add(&count, 1); /* It was not called yet. */
        }
    }
    CHECK_EQ(atomic_load(&count), 2 * COMPUTATIONS);
    weft_token_fini(&all);
    return 0;
}

/*
 * Goal:   a callback may compute in parallel.
 * Method: four workers steal chunks, so that a callback that runs on a fiber is suspended at its
 *         joins and may resume on another worker.
 */
static void callback_may_change_workers(void)
{
    weft_runtime *rt = test_start(4);
    CHECK_EQ(test_run(rt, compute_in_callbacks, NULL), 0);
    CHECK_GE(atomic_load(&pieces), 64 * COMPUTATIONS);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(ring_of_waits_is_not_closed),
    TEST(end_of_callback_ends_all_its_waits),
    TEST(nested_callback_does_not_wait_for_outer_one),
    TEST(suspended_callback_aborts_instead_of_deadlock),
    TEST(callback_may_change_workers),
})
