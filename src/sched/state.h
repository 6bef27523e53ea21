/* SPDX-License-Identifier: MIT */
/*
 * state.h - the state word of a task, and every step it can take.
 *
 *   63 .. 56   55 .. 48     47 .. 40   39 .. 32   31 .. 0
 *   marks      lifecycle    flags      shield     references
 *
 *                wake             complete
 *          IDLE -------> RUNNING -----------> COMPLETE
 *            ^            |   ^
 *            +------------+   +-- spawn
 *                 pend
 *
 * A task is RUNNING while it is polled, and as soon as a poll is certain to come: when it is
 * new, has yielded or was woken, and waits in a queue. The queue hands it over, so who takes
 * it out needs no step to begin.
 *
 * Each step is one read-modify-write that also accounts for the references it
 * makes or drops. In particular a pending poll that was woken meanwhile stays RUNNING, and
 * goes back into a queue: with a stop at IDLE in between, another thread could wake
 * the task, run it to its end and free it under the first one's hands.
 *
 * References. A task that is not complete holds one on itself, the life: it is
 * the queue's or the worker's while the task is RUNNING, and
 * nobody's while it is IDLE, so a task that only the shutdown can reach
 * still exists. Each handle and each waker holds one more. Who drops
 * the last frees the task.
 *
 * A wake of a RUNNING task sets NOTIFIED: it will be polled again. If it is still in a queue,
 * the poll that begins then takes the mark, and is the one that was wanted.
 *
 * A shield defers cancellation while its depth is above 0. Only the task itself
 * changes the depth, while it is RUNNING.
 *
 * Edges.
 * [T1] wake, pend and cancel release and acquire, rouse acquires: who takes the task from
 *      IDLE, or leaves it RUNNING, has seen the last poll, writes the link of its queue, and
 *      hands all of that over with the task. Who finds it RUNNING leaves NOTIFIED, which begin
 *      or pend take: the poll after that sees what the waker wrote.
 * [T2] complete releases, join acquires: the result is seen.
 * [T3] each drop of a reference releases, the last one acquires: the task is
 *      freed after everybody's last use of it.
 *
 * Checked by tests/unit/sched/state_test.c, step by step, and by
 * tests/model/state_model.c, in every order.
 */
#ifndef WF_SCHED_STATE_H
#define WF_SCHED_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/atomic.h"

#define WF_STATE_REF    (UINT64_C(1) << 0)
#define WF_STATE_SHIELD (UINT64_C(1) << 32)

#define WF_STATE_NOTIFIED      (UINT64_C(1) << 40) /* poll once more */
#define WF_STATE_CANCELLED     (UINT64_C(1) << 41)
#define WF_STATE_JOIN_INTEREST (UINT64_C(1) << 42) /* there was a joiner: see join.c */
#define WF_STATE_DETACHED      (UINT64_C(1) << 43) /* nobody will join */

#define WF_STATE_LIFECYCLE_SHIFT 48
#define WF_STATE_LIFECYCLE_MASK  (UINT64_C(0xff) << WF_STATE_LIFECYCLE_SHIFT)
#define WF_STATE_IDLE            (UINT64_C(0) << WF_STATE_LIFECYCLE_SHIFT)
#define WF_STATE_RUNNING         (UINT64_C(1) << WF_STATE_LIFECYCLE_SHIFT)
#define WF_STATE_COMPLETE        (UINT64_C(2) << WF_STATE_LIFECYCLE_SHIFT)

/* The runtime is gone, this task's memory is not: see heap.c. */
#define WF_STATE_ORPHAN (UINT64_C(1) << 56)

static inline uint32_t wf_state_refs(uint64_t state)
{
    return (uint32_t)state;
}

static inline uint32_t wf_state_shield(uint64_t state)
{
    return (uint32_t)(state >> 32) & 0xff;
}

static inline uint64_t wf_state_lifecycle(uint64_t state)
{
    return state & WF_STATE_LIFECYCLE_MASK;
}

static inline bool wf_state_is_complete(uint64_t state)
{
    return wf_state_lifecycle(state) == WF_STATE_COMPLETE;
}

/* Cancelled, and no shield holds it off. */
static inline bool wf_state_must_cancel(uint64_t state)
{
    return (state & WF_STATE_CANCELLED) != 0 && wf_state_shield(state) == 0;
}

/* What a step leaves for its caller to do. */
enum wf_step {
    WF_STEP_NONE,
    WF_STEP_SCHEDULE, /* put the task into a queue; the life goes with it */
    WF_STEP_FREE,     /* that was the last reference */
    WF_STEP_TOLD,     /* cancelled just now, without a wake */
};

/* Takes one more reference; the caller has one already. */
static inline void wf_state_retain(_Atomic(uint64_t) *state)
{
    /* relaxed: the reference the caller has keeps the task alive. */
    uint64_t old = wf_fetch_add_relaxed(state, WF_STATE_REF);
    if (wf_unlikely(wf_state_refs(old) == UINT32_MAX)) {
        wf_fatal("a task has over 4294967295 references; are wakers or handles leaked?");
    }
}

/* Drops a reference. Returns the state before. The caller frees the task if
 * that was the last one. */
static inline uint64_t wf_state_release(_Atomic(uint64_t) *state)
{
    /* acq_rel [T3]: this thread's uses of the task come before its freeing,
     * and the last one's freeing after everybody's. */
    uint64_t old = wf_fetch_sub_acq_rel(state, WF_STATE_REF);
    if (wf_unlikely(wf_state_refs(old) == 0)) {
        wf_fatal("a task has no reference that could be given up; was a handle joined or detached "
                 "twice, or a waker fired or dropped twice?");
    }
    return old;
}

/*
 * A worker of its runtime: drops a reference of a task that is complete. Returns true if
 * that was the last one, without a step: nobody else can reach the task then, except a
 * walker, and those leave complete ones alone.
 */
static inline bool wf_state_release_ended(_Atomic(uint64_t) *state)
{
    /* acquire [T3]: if the others' references are gone, so are they. */
    uint64_t old = wf_load_acquire(state);
    WF_DEBUG_ASSERT(wf_state_is_complete(old));
    if (wf_likely(wf_state_refs(old) == 1)) {
        /* relaxed: as said above, nobody else looks. */
        wf_store_relaxed(state, old - WF_STATE_REF);
        return true;
    }
    return wf_state_refs(wf_state_release(state)) == 1;
}

/* Worker only: has taken a task out of a queue to poll it. Returns the state. */
static inline uint64_t wf_state_begin(_Atomic(uint64_t) *state)
{
    /* relaxed: a wake that is not seen here leaves its mark for the end of the poll. */
    uint64_t old = wf_load_relaxed(state);
    WF_DEBUG_ASSERT(wf_state_lifecycle(old) == WF_STATE_RUNNING);
    if (wf_unlikely((old & WF_STATE_NOTIFIED) != 0)) {
        /* acquire [T1]: this is the poll that the waker wanted. */
        old = wf_fetch_and_acquire(state, ~WF_STATE_NOTIFIED);
    }
    return old & ~WF_STATE_NOTIFIED;
}

/* Worker only: the poll answered "pending". */
static inline enum wf_step wf_state_pend(_Atomic(uint64_t) *state)
{
    /* relaxed: the CAS checks the value. */
    uint64_t old = wf_load_relaxed(state);
    uint64_t next;
    do {
        WF_DEBUG_ASSERT(wf_state_lifecycle(old) == WF_STATE_RUNNING);
        next = old & ~(WF_STATE_LIFECYCLE_MASK | WF_STATE_NOTIFIED);
        if ((old & WF_STATE_NOTIFIED) != 0) {
            next |= WF_STATE_RUNNING;
        }
        /* acq_rel [T1]: the next poll sees this one, and what the waker wrote. */
    } while (!wf_cas_weak_acq_rel(state, &old, next));
    return (old & WF_STATE_NOTIFIED) != 0 ? WF_STEP_SCHEDULE : WF_STEP_NONE;
}

/*
 * Worker only: the task has its result. Returns the state before. Without
 * JOIN_INTEREST in it the life is dropped in the same step; with it the caller
 * answers the joiner and then drops the life.
 */
static inline uint64_t wf_state_complete(_Atomic(uint64_t) *state)
{
    /* relaxed: the CAS checks the value. */
    uint64_t old = wf_load_relaxed(state);
    uint64_t next;
    do {
        WF_DEBUG_ASSERT(wf_state_lifecycle(old) == WF_STATE_RUNNING);
        next = (old & ~(WF_STATE_LIFECYCLE_MASK | WF_STATE_NOTIFIED)) | WF_STATE_COMPLETE;
        if ((old & WF_STATE_JOIN_INTEREST) == 0) {
            next -= WF_STATE_REF;
        }
        /* acq_rel [T2] [T3]: the joiner sees the result; the last reference
         * may be this one. */
    } while (!wf_cas_weak_acq_rel(state, &old, next));
    return old;
}

/*
 * Any thread: makes the task runnable. refs is WF_STATE_REF to give up the
 * caller's reference in the same step, or 0 to keep it.
 */
static inline enum wf_step wf_state_wake(_Atomic(uint64_t) *state, uint64_t refs)
{
    /* relaxed: the CAS checks the value. */
    uint64_t old = wf_load_relaxed(state);
    uint64_t next;
    do {
        next = old - refs;
        if (wf_state_lifecycle(old) == WF_STATE_IDLE) {
            next |= WF_STATE_RUNNING;
        } else if (wf_state_lifecycle(old) == WF_STATE_RUNNING) {
            next |= WF_STATE_NOTIFIED;
        }
        /* acq_rel [T1] [T3]: the next poll sees what the waker wrote, and the
         * queue link is free to be written; the reference given up may be the
         * last one. */
    } while (!wf_cas_weak_acq_rel(state, &old, next));
    if (wf_state_lifecycle(old) == WF_STATE_IDLE) {
        return WF_STEP_SCHEDULE;
    }
    return wf_state_refs(next) == 0 ? WF_STEP_FREE : WF_STEP_NONE;
}

/*
 * One who will wake the task, and for whom it waits: it cannot end before. True: it was IDLE, is
 * RUNNING now, and the caller queues it. False: the caller has a reference instead, to wake it
 * with.
 */
static inline bool wf_state_rouse(_Atomic(uint64_t) *state)
{
    /* relaxed: the CAS checks the value. */
    uint64_t old = wf_load_relaxed(state);
    uint64_t next;
    do {
        bool is_idle = wf_state_lifecycle(old) == WF_STATE_IDLE;
        next = is_idle ? old | WF_STATE_RUNNING : old + WF_STATE_REF;
        /* acquire [T1]: the last poll is over; the queue hands over the rest. */
    } while (!wf_cas_weak_acquire(state, &old, next));
    return wf_state_lifecycle(old) == WF_STATE_IDLE;
}

/* Any thread with a reference: asks the task to end. */
static inline enum wf_step wf_state_cancel(_Atomic(uint64_t) *state)
{
    /* relaxed: the CAS checks the value. */
    uint64_t old = wf_load_relaxed(state);
    uint64_t next;
    do {
        if (wf_state_is_complete(old) || (old & WF_STATE_CANCELLED) != 0) {
            return WF_STEP_NONE;
        }
        next = old | WF_STATE_CANCELLED;
        if (wf_state_shield(old) > 0) {
            /* The task will see it when it lowers its shield. */
        } else if (wf_state_lifecycle(old) == WF_STATE_IDLE) {
            next |= WF_STATE_RUNNING;
        } else if (wf_state_lifecycle(old) == WF_STATE_RUNNING) {
            next |= WF_STATE_NOTIFIED;
        }
        /* acq_rel [T1]: the poll that ends the task sees why; the queue link is
         * free to be written. */
    } while (!wf_cas_weak_acq_rel(state, &old, next));
    bool woken = wf_state_lifecycle(old) != wf_state_lifecycle(next);
    return woken ? WF_STEP_SCHEDULE : WF_STEP_TOLD;
}

/* The task itself, while RUNNING. */
static inline void wf_state_shield_enter(_Atomic(uint64_t) *state)
{
    /* relaxed: only the task itself reads the depth for a decision. */
    uint64_t old = wf_fetch_add_relaxed(state, WF_STATE_SHIELD);
    if (wf_unlikely(wf_state_shield(old) == 0xff)) {
        wf_fatal("weft_shield_enter: over 255 shields are nested; leave each one that is entered");
    }
}

/* The task itself, while RUNNING. A cancellation that came under the last
 * shield counts as a wake now: the task is polled again to be told. */
static inline void wf_state_shield_leave(_Atomic(uint64_t) *state)
{
    /* relaxed: only the task itself reads the depth for a decision. */
    uint64_t old = wf_fetch_sub_relaxed(state, WF_STATE_SHIELD);
    if (wf_unlikely(wf_state_shield(old) == 0)) {
        wf_fatal("weft_shield_leave: no shield is entered; call weft_shield_enter() first");
    }
    if (wf_state_must_cancel(old - WF_STATE_SHIELD)) {
        (void)wf_state_wake(state, 0);
    }
}

/* Joiner, under the join lock: asks to be told. Returns false if the task is
 * complete already; its result can then be read. */
static inline bool wf_state_join_register(_Atomic(uint64_t) *state)
{
    /* acquire [T2]: if it is complete, its result is seen. */
    uint64_t old = wf_load_acquire(state);
    do {
        if (wf_state_is_complete(old)) {
            return false;
        }
        /* acquire [T2]: as above when the CAS fails; the completer that sees
         * the flag takes the join lock for the rest. */
    } while (!wf_cas_weak_acquire(state, &old, old | WF_STATE_JOIN_INTEREST));
    return true;
}

#endif
