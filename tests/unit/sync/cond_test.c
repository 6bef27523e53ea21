/* SPDX-License-Identifier: MIT */
#include <weft/cond.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <weft/event.h>
#include <weft/select.h>
#include <weft/semaphore.h>
#include <weft/time.h>

#include "base/latch.h"
#include "crowd.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

enum {
    MEMBERS = 12,
    ROOM = 3,
};

static weft_mutex mutex;
static weft_cond not_full;
static weft_cond not_empty;
static uint64_t items; /* plain; the mutex guards it and the next field */
static uint64_t taken;

static void reset(void)
{
    memset(&mutex, 0, sizeof mutex);
    memset(&not_full, 0, sizeof not_full);
    memset(&not_empty, 0, sizeof not_empty);
    items = 0;
    taken = 0;
}

/* A small queue: half of the members fill it, the others empty it. */
static int fill_or_empty(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    for (; self->round < crowd_rounds(); self->round++) {
        weft_mutex_lock_init(&self->ops[0], &mutex);
        WEFT_AWAIT(co, self->err, &self->ops[0].future);
        CHECK_EQ(self->err, 0);
        if (self->index % 2 == 0) {
            while (items == ROOM) {
                weft_cond_wait_init(&self->cond, &not_full, &mutex);
                WEFT_AWAIT(co, self->err, &self->cond.future);
                CHECK_EQ(self->err, 0);
            }
            items++;
            weft_cond_signal(&not_empty);
        } else {
            while (items == 0) {
                weft_cond_wait_init(&self->cond, &not_empty, &mutex);
                WEFT_AWAIT(co, self->err, &self->cond.future);
                CHECK_EQ(self->err, 0);
            }
            items--;
            taken++;
            weft_cond_signal(&not_full);
        }
        weft_mutex_unlock(&mutex);
    }
    WEFT_END(co, 0);
}

static void check_taken(uint64_t sum)
{
    (void)sum;
    CHECK_EQ(items, 0);
    CHECK_EQ(taken, MEMBERS / 2 * crowd_rounds());
    CHECK_EQ(mutex.opaque[0], 0);
}

static void no_signal_is_lost(void)
{
    crowd_run_all(MEMBERS, fill_or_empty, NULL, reset, check_taken);
}

static int wait_for_item(void *arg)
{
    weft_time deadline = arg != NULL ? *(weft_time *)arg : WEFT_NEVER;
    int err = 0;
    WEFT_LOCKED(&mutex)
    {
        while (items == 0 && err == 0) {
            err = weft_cond_wait(&not_empty, &mutex, deadline);
            CHECK(weft_mutex_is_locked(&mutex));
        }
        if (err == 0) {
            items--;
        }
    }
    return err;
}

static void put(uint64_t count)
{
    WEFT_LOCKED(&mutex)
    {
        items += count;
    }
}

static void wait_relocks_mutex_however_it_ends(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    weft_time soon = weft_after(2 * WEFT_MS);
    CHECK_EQ(wait_for_item(&soon), WEFT_ETIMEDOUT);
    CHECK_EQ(test_run(rt, wait_for_item, &soon), WEFT_ETIMEDOUT);
    weft_task *tasks[3];
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = test_go_first(rt, wait_for_item, NULL);
    }
    test_settle(rt);
    /* Canceled while another thread holds the mutex: the wait ends once it can lock the mutex. */
    CHECK(weft_mutex_try_lock(&mutex));
    weft_cancel(tasks[0]);
    test_settle(rt);
    CHECK_EQ(weft_try_join(tasks[0], NULL), -EAGAIN);
    weft_mutex_unlock(&mutex);
    CHECK_EQ(test_join_soon(tasks[0]), WEFT_ECANCELED);
    put(1);
    weft_cond_signal(&not_empty);
    CHECK_EQ(test_join_soon(tasks[1]), 0);
    test_settle(rt);
    CHECK_EQ(weft_try_join(tasks[2], NULL), -EAGAIN);
    put(1);
    weft_cond_broadcast(&not_empty);
    CHECK_EQ(test_join_soon(tasks[2]), 0);
    CHECK_EQ(mutex.opaque[0], 0);
    weft_cond_signal(&not_empty);
    weft_runtime_destroy(rt);
}

static int wait_once(void *arg)
{
    (void)arg;
    weft_mutex_hold(&mutex);
    int err = weft_cond_wait(&not_empty, &mutex, WEFT_NEVER);
    CHECK(weft_mutex_is_locked(&mutex));
    weft_mutex_unlock(&mutex);
    return err;
}

static void *wait_on_thread(void *arg)
{
    CHECK_EQ(wait_once(arg), 0);
    return NULL;
}

/*
 * Goal:   no signal can come between the unlock of the mutex and the start of the wait.
 * Method: the test holds the latch of the condition. A waiter that waits for the latch has not
 *         unlocked the mutex yet. Once the test holds the mutex, the waiter waits for a signal.
 */
static void unlock_and_wait_are_atomic_for_signal(void)
{
    reset();
    _Atomic(uint32_t) *word = (_Atomic(uint32_t) *)&not_empty;
    pthread_t thread;
    uint32_t bits = wf_latch_lock(word);
    CHECK_EQ(pthread_create(&thread, NULL, wait_on_thread, NULL), 0);
    while ((atomic_load(word) & WF_LATCH_CONTENDED) == 0) {
        sched_yield();
    }
    CHECK(weft_mutex_is_locked(&mutex));
    wf_latch_unlock(word, bits);
    weft_mutex_hold(&mutex);
    weft_cond_signal(&not_empty);
    weft_mutex_unlock(&mutex);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void signal_wakes_longest_waiter(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    weft_task *tasks[3];
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = test_go_first(rt, wait_once, NULL);
    }
    for (unsigned i = 0; i < 3; i++) {
        weft_cond_signal(&not_empty);
        CHECK_EQ(test_join_soon(tasks[i]), 0);
        test_settle(rt);
        CHECK(i == 2 || weft_try_join(tasks[i + 1], NULL) == -EAGAIN);
    }
    weft_runtime_destroy(rt);
}

/* The mutex is locked by the test. The waiter waits for it and does not give up. */
static void cancel_after_signal_returns_success(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    weft_task *task = test_go_first(rt, wait_once, NULL);
    CHECK(weft_mutex_try_lock(&mutex));
    weft_cond_signal(&not_empty);
    test_settle(rt);
    weft_cancel(task);
    test_settle(rt);
    CHECK_EQ(weft_try_join(task, NULL), -EAGAIN);
    weft_mutex_unlock(&mutex);
    CHECK_EQ(test_join_soon(task), 0);
    CHECK_EQ(mutex.opaque[0], 0);
    weft_runtime_destroy(rt);
}

static void broadcast_wakes_all_waiters(void)
{
    reset();
    weft_runtime *rt = test_start(2);
    weft_task *tasks[20];
    for (unsigned i = 0; i < 20; i++) {
        tasks[i] = test_go(rt, wait_for_item, NULL);
    }
    test_wait_ns(WEFT_MS);
    put(20);
    weft_cond_broadcast(&not_empty);
    for (unsigned i = 0; i < 20; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    CHECK_EQ(items, 0);
    weft_runtime_destroy(rt);
}

/* --- In a select ------------------------------------------------------------------------ */

static weft_semaphore permits;

static struct {
    weft_branch branches[2];
    weft_select_future future;
} selects[MEMBERS];

static void reset_with_permits(void)
{
    reset();
    permits = (weft_semaphore)WEFT_SEMAPHORE_INIT(0);
}

static void prepare_to_wait_or_acquire(struct crowd_member *self, weft_cond *cond)
{
    weft_branch *branches = selects[self->index].branches;
    weft_cond_wait_init(&self->cond, cond, &mutex);
    weft_semaphore_acquire_init(&self->ops[1], &permits, 1);
    branches[0].future = &self->cond.future;
    branches[1].future = &self->ops[1].future;
    weft_select_init(&selects[self->index].future, branches, 2, 0);
}

/* Like fill_or_empty(). A member that wins a permit looks at the queue again. */
static int fill_or_empty_in_selects(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    for (; self->round < crowd_rounds() / 4; self->round++) {
        weft_semaphore_release(&permits, self->index % 3 == 0);
        weft_mutex_lock_init(&self->ops[0], &mutex);
        WEFT_AWAIT(co, self->err, &self->ops[0].future);
        CHECK_EQ(self->err, 0);
        while (items == (self->index % 2 == 0 ? ROOM : 0)) {
            prepare_to_wait_or_acquire(self, self->index % 2 == 0 ? &not_full : &not_empty);
            WEFT_AWAIT(co, self->err, &selects[self->index].future.future);
            CHECK(self->err == 0 || self->err == 1);
            CHECK_EQ(selects[self->index].branches[self->err].result, 0);
        }
        items += self->index % 2 == 0 ? 1 : UINT64_MAX;
        taken += self->index % 2;
        weft_cond_signal(self->index % 2 == 0 ? &not_empty : &not_full);
        weft_mutex_unlock(&mutex);
    }
    WEFT_END(co, 0);
}

static void check_taken_in_selects(uint64_t sum)
{
    (void)sum;
    CHECK_EQ(taken, MEMBERS / 2 * (crowd_rounds() / 4));
    CHECK_EQ(mutex.opaque[0], 0);
}

static void select_loses_no_signal(void)
{
    crowd_run_all(MEMBERS, fill_or_empty_in_selects, NULL, reset_with_permits,
                  check_taken_in_selects);
}

static weft_event stop;

/* Returns the winner: 0 if the event is set, 1 if the condition is signaled. */
static int wait_or_stop(void *arg)
{
    weft_cond_future wait;
    weft_timeout_future timeout;
    weft_op stops;
    weft_cond_wait_init(&wait, &not_empty, &mutex);
    weft_timeout_init(&timeout, &wait.future, WEFT_NEVER);
    weft_event_wait_init(&stops, &stop);
    weft_branch branches[2] = { { .future = &stops.future },
                                { .future = arg != NULL ? &timeout.future : &wait.future } };
    weft_mutex_hold(&mutex);
    int winner = weft_select(branches, 2, WEFT_SELECT_ORDERED, WEFT_NEVER);
    CHECK(weft_mutex_is_locked(&mutex));
    weft_mutex_unlock(&mutex);
    return winner;
}

/* A waiter is signaled while the test holds the mutex that it needs, and then the event wins.
 * Returns the result of a wait of the test, which begins after that. */
static int wait_behind_loser(void (*signal)(weft_cond *cond), void *arg, weft_time deadline)
{
    reset();
    memset(&stop, 0, sizeof stop);
    weft_runtime *rt = test_start(1);
    weft_task *loser = test_go_first(rt, wait_or_stop, arg);
    CHECK(weft_mutex_try_lock(&mutex));
    signal(&not_empty);
    test_settle(rt);
    weft_event_set(&stop);
    test_settle(rt);
    CHECK_EQ(weft_try_join(loser, NULL), -EAGAIN);
    int result = weft_cond_wait(&not_empty, &mutex, deadline);
    weft_mutex_unlock(&mutex);
    CHECK_EQ(test_join_soon(loser), 0);
    CHECK_EQ(mutex.opaque[0], 0);
    weft_runtime_destroy(rt);
    return result;
}

static void wait_losing_select_passes_signal_on(void)
{
    CHECK_EQ(wait_behind_loser(weft_cond_signal, NULL, test_deadline()), 0);
    CHECK_EQ(wait_behind_loser(weft_cond_signal, &stop, test_deadline()), 0); /* with a timeout */
    CHECK_EQ(wait_behind_loser(weft_cond_broadcast, NULL, weft_after(20 * WEFT_MS)),
             WEFT_ETIMEDOUT);
}

static int wait_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return weft_cond_wait(&not_empty, &mutex, WEFT_NEVER);
}

static void wait_in_stackless_task(void)
{
    reset();
    CHECK(weft_mutex_try_lock(&mutex));
    (void)test_join(test_spawn(test_start(1), wait_task, NULL));
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(wait_in_stackless_task, "weft_cond_wait: called on a worker outside of a fiber");
}

TEST_MAIN({
    TEST(no_signal_is_lost),
    TEST(wait_relocks_mutex_however_it_ends),
    TEST(unlock_and_wait_are_atomic_for_signal),
    TEST(signal_wakes_longest_waiter),
    TEST(cancel_after_signal_returns_success),
    TEST(broadcast_wakes_all_waiters),
    TEST(select_loses_no_signal),
    TEST(wait_losing_select_passes_signal_on),
    TEST(misuse_aborts_with_message),
})
