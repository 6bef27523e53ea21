/* SPDX-License-Identifier: MIT */
/*
 * mutex.c - a lock for tasks and threads.
 *
 * Its word says whether it is LOCKED, and whether somebody is WAITING in the queue. The
 * queue is guarded by the latch in the same word (latch.h), which is held for a few
 * instructions.
 *
 *   To lock                                To unlock
 *   A1  free: LOCKED, by CAS [MX1]          B1  LOCKED alone: free, by CAS [MX1]
 *   A2  look again, for a moment           B2  else take the latch; claim the first
 *   A3  take the latch; free: LOCKED;          who waits; give up the latch, with
 *       else WAITING, and enlist           B3  the word free; or, if it waits for
 *   A4  woken: it was handed over; or          long, LOCKED: handed over
 *       as A1; or as A3, in front          B4  wake it
 *
 * Nobody is forgotten. WAITING is set under the latch when somebody is enlisted, and cleared
 * under the latch when the queue is empty: so a holder that unlocks sees it, and wakes the
 * first. Who was woken with the word free may find that another has come before it, and waits
 * again; or it gives up: in both cases that other one unlocks after it, and wakes the next.
 * If nobody has come before it, it takes the lock, even if it was cancelled meanwhile.
 *
 * Why the word is free in B3. If the lock were always handed over, each change of the holder
 * would take as long as it takes a task to run: with a line of waiters it would be held by
 * somebody who does not run, most of the time. Why it is handed over after a millisecond:
 * else one who comes back again and again could keep others out for ever.
 *
 * Edges.
 * [MX1] unlock releases the word, lock acquires it: what the last holder wrote is seen. One
 *      that it is handed over to sees it by the end of its wait (waitq.h, W1).
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

    /* Between two looks, each time for longer: meanwhile the holder may come back several
     * times, with all in its cache. */
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

/* A1: takes it if it is free, whoever waits. */
static bool take(struct wf_mutex *mutex)
{
    uint32_t word = 0;
    /* acquire [MX1]: what the last holder wrote. */
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

/* A4. The flag: it was handed over. */
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
    /* Somebody may have had the latch, while it was free. */
    uint32_t bits = wf_latch_lock(&self->word);
    wf_latch_unlock(&self->word, bits | LOCKED);
    return (bits & LOCKED) == 0;
}

/* A2. Not if others wait, and not if the holder cannot run meanwhile. */
static bool take_soon(struct wf_mutex *mutex)
{
    const struct wf_worker *worker = wf_worker_current();
    if (worker != NULL && worker->sched->options.workers == 1) {
        return false;
    }
    for (unsigned pause = PAUSE_MIN; pause <= PAUSE_MAX; pause *= 2) {
        wf_cpu_pause(pause);
        /* relaxed: a look; taking it acquires. */
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

int weft_mutex_lock(weft_mutex *mutex, weft_time deadline)
{
    struct wf_mutex *self = (struct wf_mutex *)mutex;
    int err = wf_op_enter(&deadline, "weft_mutex_lock");
    if (wf_unlikely(err != 0)) {
        return err;
    }
    if (wf_likely(take(self)) || take_soon(self)) {
        return 0;
    }
    weft_op op;
    weft_mutex_lock_init(&op, mutex);
    return wf_op_await_slowly(&op, deadline);
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
        (void)sched_yield(); /* A thread without memory for a wait. */
    }
    if (is_task) {
        weft_shield_leave();
    }
}

/* B2 to B4. */
static void unlock_slowly(struct wf_mutex *mutex)
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
    /* relaxed: an answer that may be old when it arrives. */
    return (wf_load_relaxed(&((const struct wf_mutex *)mutex)->word) & LOCKED) != 0;
}
