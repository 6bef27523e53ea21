/* SPDX-License-Identifier: MIT */
/*
 * state.h - state word of a task, and all of its transitions.
 *
 *   63 .. 56   55 .. 48     47 .. 40   39 .. 32   31 .. 0
 *   marks      lifecycle    flags      shield     references
 *
 *                wake             complete
 *          IDLE -------> RUNNING -----------> COMPLETE
 *            ^            |   ^
 *            +------------+   +-- spawn
 *               poll pending
 *
 * A task is RUNNING while it is polled, and from the moment when a poll is certain to come:
 * when it is new, has yielded or was woken, and waits in a queue. The queue hands it over, so
 * the worker that dequeues it needs no transition to begin.
 *
 * Each transition is one read-modify-write that also accounts for the references it makes or
 * drops. In particular, a poll that returned WEFT_PENDING but was woken meanwhile leaves the
 * task RUNNING, and the task goes back into a queue. If it passed through IDLE, another thread
 * could wake it, run it to its end and free it while the first thread still uses it.
 *
 * References. A task that is not complete holds one reference on itself, the self-reference.
 * While the task is RUNNING, the self-reference belongs to the queue or the worker. While it is
 * IDLE, it belongs to no thread, so a task that only the shutdown can reach still exists. Each
 * handle and each waker holds one more. The thread that drops the last reference frees the
 * task.
 *
 * A wake of a RUNNING task sets NOTIFIED: it will be polled again. If it is still in a queue,
 * the poll that begins next clears the mark, and is the poll that the waker wanted.
 *
 * A shield defers cancellation while its depth is above 0. Only the task itself changes the
 * depth, while it is RUNNING.
 *
 * Edges.
 * [T1] wf_state_wake(), wf_state_pend() and wf_state_cancel() release and acquire,
 *      wf_state_rouse() acquires: a thread that takes the task from IDLE, or leaves it RUNNING,
 *      has seen the last poll, writes the link of its queue, and hands all of that over with
 *      the task. A thread that finds it RUNNING leaves NOTIFIED, which wf_state_begin() or
 *      wf_state_pend() takes: the poll after that sees what the waker wrote.
 * [T2] wf_state_complete() releases, a join acquires: the joiner sees the result.
 * [T3] each drop of a reference releases, the last one acquires: the task is freed after the
 *      last use by every thread.
 *
 * Checked by tests/unit/sched/state_test.c, transition by transition, and by
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
#define WF_STATE_JOIN_INTEREST (UINT64_C(1) << 42) /* it has had a joiner: see join.c */
#define WF_STATE_DETACHED      (UINT64_C(1) << 43) /* will never be joined */

#define WF_STATE_LIFECYCLE_SHIFT 48
#define WF_STATE_LIFECYCLE_MASK  (UINT64_C(0xff) << WF_STATE_LIFECYCLE_SHIFT)
#define WF_STATE_IDLE            (UINT64_C(0) << WF_STATE_LIFECYCLE_SHIFT)
#define WF_STATE_RUNNING         (UINT64_C(1) << WF_STATE_LIFECYCLE_SHIFT)
#define WF_STATE_COMPLETE        (UINT64_C(2) << WF_STATE_LIFECYCLE_SHIFT)

/* The runtime is gone, but this task's memory is not: see heap.c. */
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

/* Returns whether the task is canceled and no shield defers it. */
static inline bool wf_state_must_cancel(uint64_t state)
{
    return (state & WF_STATE_CANCELLED) != 0 && wf_state_shield(state) == 0;
}

/* What the caller must do after a transition. */
enum wf_step {
    WF_STEP_NONE,
    WF_STEP_SCHEDULE, /* queue the task; the self-reference goes with it */
    WF_STEP_FREE,     /* that was the last reference: free the task */
    WF_STEP_TOLD,     /* canceled just now, without a wake-up */
};

/* Takes one more reference. The caller must hold one already. */
static inline void wf_state_retain(_Atomic(uint64_t) *state)
{
    /* relaxed: the caller's own reference keeps the task alive. */
    uint64_t old = wf_fetch_add_relaxed(state, WF_STATE_REF);
    if (wf_unlikely(wf_state_refs(old) == UINT32_MAX)) {
        wf_fatal("a task has over 4294967295 references; are wakers or handles leaked?");
    }
}

/* Drops a reference. Returns the state before. The caller frees the task if that was the last
 * reference. */
static inline uint64_t wf_state_release(_Atomic(uint64_t) *state)
{
    /* acq_rel [T3]: this thread's uses of the task come before the free, and a free by this
     * thread comes after the uses of all others. */
    uint64_t old = wf_fetch_sub_acq_rel(state, WF_STATE_REF);
    if (wf_unlikely(wf_state_refs(old) == 0)) {
        wf_fatal("a task has no reference that could be given up; was a handle joined or detached "
                 "twice, or a waker fired or dropped twice?");
    }
    return old;
}

/*
 * A worker of its runtime: drops a reference of a complete task. Returns true if that was the
 * last one, without a read-modify-write: no other thread can reach the task then, except a
 * walker, and walkers leave complete tasks alone.
 */
static inline bool wf_state_release_ended(_Atomic(uint64_t) *state)
{
    /* acquire [T3]: if the references of other threads are gone, so are their uses. */
    uint64_t old = wf_load_acquire(state);
    WF_DEBUG_ASSERT(wf_state_is_complete(old));
    if (wf_likely(wf_state_refs(old) == 1)) {
        /* relaxed: no other thread looks at it, as said above. */
        wf_store_relaxed(state, old - WF_STATE_REF);
        return true;
    }
    return wf_state_refs(wf_state_release(state)) == 1;
}

/* Worker only: begins the poll of a task taken out of a queue. Returns the state. */
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

/* Worker only: ends a poll that returned WEFT_PENDING. */
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
 * Worker only: ends the task, whose result is stored. Returns the state before. Without
 * JOIN_INTEREST in it, the self-reference is dropped in the same transition. With it, the
 * caller wakes the joiner and then drops the self-reference.
 */
static inline uint64_t wf_state_complete(_Atomic(uint64_t) *state)
{
    /* relaxed: the CAS checks the value. */
    uint64_t old = wf_load_relaxed(state);
    uint64_t next;
    do {
        WF_DEBUG_ASSERT(wf_state_lifecycle(old) == WF_STATE_RUNNING && wf_state_refs(old) > 0);
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
 * Any thread: makes the task runnable. refs is WF_STATE_REF to drop the caller's reference in
 * the same transition, or 0 to keep it.
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
 * For a waker that the task waits for, so the task cannot end before. Returns true if the task
 * was IDLE: it is RUNNING now and the caller queues it. Returns false if it was not: the caller
 * has a reference instead, to wake the task with.
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

/* Any thread with a reference: cancels the task. */
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
            /* The task will see it when it leaves its shield. */
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

/* The task itself, while RUNNING: enters a shield. */
static inline void wf_state_shield_enter(_Atomic(uint64_t) *state)
{
    /* relaxed: only the task itself bases decisions on the depth. */
    uint64_t old = wf_fetch_add_relaxed(state, WF_STATE_SHIELD);
    if (wf_unlikely(wf_state_shield(old) == 0xff)) {
        wf_fatal("weft_shield_enter: over 255 shields are nested; leave each one that is entered");
    }
}

/* The task itself, while RUNNING: leaves a shield. A cancellation that arrived under the last
 * shield counts as a wake now: the task is polled again and sees it. */
static inline void wf_state_shield_leave(_Atomic(uint64_t) *state)
{
    /* relaxed: only the task itself bases decisions on the depth. */
    uint64_t old = wf_fetch_sub_relaxed(state, WF_STATE_SHIELD);
    if (wf_unlikely(wf_state_shield(old) == 0)) {
        wf_fatal("weft_shield_leave: no shield is entered; call weft_shield_enter() first");
    }
    if (wf_state_must_cancel(old - WF_STATE_SHIELD)) {
        (void)wf_state_wake(state, 0);
    }
}

/* Joiner, under the join lock: registers for the end of the task. Returns false if the task is
 * already complete; its result can then be read. */
static inline bool wf_state_join_register(_Atomic(uint64_t) *state)
{
    /* acquire [T2]: if the task is complete, its result is visible. */
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
