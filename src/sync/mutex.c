/* SPDX-License-Identifier: MIT */
/*
 * mutex.c - mutex for fibers, stackless tasks and threads.
 *
 * The word says whether the mutex is LOCKED, and whether a task is WAITING in the queue. The
 * queue is guarded by the latch in the same word (latch.h), which is held for a few
 * instructions.
 *
 *   Lock                                   Unlock
 *   A1  free: LOCKED, by CAS [MX1]         B1  LOCKED alone: free, by CAS [MX1]
 *   A2  spin for a moment                  B2  else take the latch; claim the first
 *   A3  take the latch; free: LOCKED;          waiter; release the latch, with
 *       else WAITING, and enqueue          B3  the word free; or, if it has waited
 *   A4  woken: it was handed over; or          long, LOCKED: handed over
 *       as A1; or as A3, at the front      B4  wake it
 *
 * No waiter is forgotten. WAITING is set under the latch when a waiter is enqueued, and cleared
 * under the latch when the queue is empty. So a holder that unlocks sees it, and wakes the
 * first waiter. A waiter that was woken with the word free may find that another task has
 * locked the mutex first. It waits again, or it gives up: in both cases that other task unlocks
 * later, and wakes the next waiter. If no other task was first, the waiter takes the lock, even
 * if it was canceled meanwhile.
 *
 * Why the word is free in B3. If the lock were always handed over, each change of the holder
 * would take as long as it takes a task to be scheduled: with a queue of waiters, the holder
 * would most of the time be a task that does not run. Why it is handed over after a
 * millisecond: otherwise a task that locks again and again could keep others out forever.
 *
 * Edges.
 * [MX1] unlock releases the word, lock acquires it: the holder sees what the last holder wrote.
 *       A waiter that the lock is handed over to sees it through the end of its wait (waitq.h,
 *       W1).
 *
 * Checked by tests/model/mutex_model.c.
 */
#include <weft/mutex.h>

#include <sched.h>

#include <weft/task.h>

#include "base/assert.h"
#include "base/clock.h"
#include "sched/op.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    LOCKED = 1 << WF_LATCH_SHIFT,
    WAITING = 2 << WF_LATCH_SHIFT,

    /* First pause between two attempts; each pause doubles. During a pause the holder may lock
     * again several times with everything in its cache. */
    PAUSE_MIN = 8,

#ifdef WF_MODEL
    PAUSE_MAX = PAUSE_MIN,
#else
    PAUSE_MAX = 128,
#endif
};

#define PATIENCE_NS INT64_C(1000000)

struct wf_mutex {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters; /* under the latch */
};

_Static_assert(sizeof(struct wf_mutex) <= sizeof(weft_mutex), "weft_mutex is too small");

/* A1: takes the mutex if it is free, regardless of waiters. */
static bool take(struct wf_mutex *mutex)
{
    uint32_t word = 0;
    /* acquire [MX1]: sees what the last holder wrote. */
    while (!wf_cas_acquire(&mutex->word, &word, word | LOCKED)) {
        if ((word & LOCKED) != 0 || !wf_latch_is_open(word)) {
            return false;
        }
    }
    return true;
}

/* A3. */
static int lock_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)op;
    bool is_free = (turn->bits & LOCKED) == 0;
    turn->bits |= LOCKED;
    return is_free ? 0 : WEFT_PENDING;
}

static void lock_enlist(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_mutex *mutex = op->object;
    turn->bits |= WAITING;
    if (op->is_back) {
        wf_op_enlist_first(op, &mutex->waiters);
    } else {
        op->time = wf_clock_real();
        op->flag = false;
        wf_op_enlist(op, &mutex->waiters);
    }
}

static void lock_leave(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_mutex *mutex = op->object;
    if (wf_waitq_is_empty(&mutex->waiters)) {
        turn->bits &= ~(uint32_t)WAITING;
    }
}

/* A4. flag: the mutex was handed over. */
static int lock_end(struct wf_op *op)
{
    return op->flag || take(op->object) ? 0 : WEFT_PENDING;
}

static const struct wf_op_ops lock_ops = { .future = WF_OP_FUTURE,
                                           .take = lock_take,
                                           .enlist = lock_enlist,
                                           .leave = lock_leave,
                                           .end = lock_end };

void weft_mutex_lock_init(weft_op *op, weft_mutex *mutex)
{
    (void)wf_op_init(op, &lock_ops, mutex);
}

bool weft_mutex_try_lock(weft_mutex *mutex)
{
    struct wf_mutex *self = (struct wf_mutex *)mutex;
    if (take(self)) {
        return true;
    }
    /* The mutex may have been free while another thread held the latch. */
    uint32_t bits = wf_latch_lock(&self->word);
    wf_latch_unlock(&self->word, bits | LOCKED);
    return (bits & LOCKED) == 0;
}

/* A2: spins for a moment, but not if others wait or the holder cannot run meanwhile. */
static bool take_soon(struct wf_mutex *mutex)
{
    const struct wf_worker *worker = wf_worker_current();
    if (worker != NULL && worker->sched->options.workers == 1) {
        return false;
    }
    for (unsigned pause = PAUSE_MIN; pause <= PAUSE_MAX; pause *= 2) {
        wf_cpu_pause(pause);
        /* relaxed: only a hint; taking the mutex acquires. */
        uint32_t word = wf_load_relaxed(&mutex->word);
        if ((word & LOCKED) == 0 && take(mutex)) {
            return true;
        }
        if ((word & WAITING) != 0) {
            break;
        }
    }
    return false;
}

/* Not inlined, so that the fast path saves no registers. */
static __attribute__((noinline)) int lock_slowly(weft_mutex *mutex, weft_time deadline,
                                                 bool is_entered)
{
    struct wf_mutex *self = (struct wf_mutex *)mutex;
    int err = is_entered ? 0 : wf_op_enter_slowly("weft_mutex_lock");
    if (wf_unlikely(err != 0)) {
        return err;
    }
    if (take(self) || take_soon(self)) {
        return 0;
    }
    weft_op op;
    weft_mutex_lock_init(&op, mutex);
    return wf_op_await_slowly(&op, deadline);
}

int weft_mutex_lock(weft_mutex *mutex, weft_time deadline)
{
    if (wf_unlikely(!wf_await_enter_quickly(&deadline))) {
        return lock_slowly(mutex, deadline, false);
    }
    return wf_likely(take((struct wf_mutex *)mutex)) ? 0 : lock_slowly(mutex, deadline, true);
}

void weft_mutex_hold(weft_mutex *mutex)
{
    static const char instead[] = "in a body, await a weft_mutex_lock_init()";
    wf_await_spend("weft_mutex_hold", instead);
    if (wf_likely(take((struct wf_mutex *)mutex))) {
        return;
    }
    wf_await_must_suspend("weft_mutex_hold", instead);
    bool is_task = wf_thread_shielded() != NULL;
    if (is_task) {
        weft_shield_enter();
    }
    while (weft_mutex_lock(mutex, WEFT_NEVER) != 0) {
        (void)sched_yield(); /* The thread has no memory for its first wait. */
    }
    if (is_task) {
        weft_shield_leave();
    }
}

/* B2 to B4. Not inlined, like lock_slowly(). */
static __attribute__((noinline)) void unlock_slowly(struct wf_mutex *mutex)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, mutex);
    if (wf_unlikely((turn.bits & LOCKED) == 0)) {
        wf_fatal("weft_mutex_unlock: the mutex is not locked");
    }
    struct wf_op *next = wf_turn_claim(&turn, &mutex->waiters);
    turn.bits = wf_waitq_is_empty(&mutex->waiters) ? 0 : WAITING;
    if (next != NULL && wf_clock_real() - next->time > PATIENCE_NS) {
        next->flag = true;
        turn.bits |= LOCKED;
    }
    wf_turn_end(&turn);
}

void weft_mutex_unlock(weft_mutex *mutex)
{
    struct wf_mutex *self = (struct wf_mutex *)mutex;
    uint32_t word = LOCKED;
    /* release [MX1]: the next holder sees what this one wrote. */
    if (wf_unlikely(!wf_cas_release(&self->word, &word, 0u))) {
        unlock_slowly(self);
    }
}

bool weft_mutex_is_locked(const weft_mutex *mutex)
{
    /* relaxed: a snapshot that may be stale on return. */
    return (wf_load_relaxed(&((const struct wf_mutex *)mutex)->word) & LOCKED) != 0;
}
