/* SPDX-License-Identifier: MIT */
/*
 * once.c - one-time initialization.
 *
 * The word says whether a task is BUSY with the initialization, or it is DONE; the latch in the
 * word guards the queue. A task that fails passes the initialization on to the first waiter. A
 * task that succeeds wakes all waiters. A waiter that is canceled after the initialization was
 * passed to it still has to do it, so it is never lost.
 *
 * While weft_once_run() or weft_once_cell_get_or_make() calls its function, the weft_once has an
 * owner: the task, or the thread, that runs the function. A wait by the owner would never end, so
 * it aborts. Only the owner compares equal to the value that it has stored itself, so the field
 * needs no order.
 *
 * Edges: latch.h's [E1]: the task that finishes releases the word, a caller that finds it DONE
 * acquires it: it sees what was done. A waiter sees that through the end of its wait.
 *
 * Checked by tests/model/once_model.c.
 */
#include <weft/once.h>

#include "base/assert.h"
#include "base/callout.h"
#include "base/latch.h"
#include "sched/op.h"
#include "sched/thread.h"

enum {
    BUSY = 1 << WF_LATCH_SHIFT,
    DONE = 2 << WF_LATCH_SHIFT,
};

struct wf_once {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters; /* under the latch */
    _Atomic(void *) owner;   /* written by the owner, read by any caller; NULL: none */
};

_Static_assert(sizeof(struct wf_once) <= sizeof(weft_once), "weft_once is too small");

bool weft_once_is_done(const weft_once *once)
{
    const struct wf_once *self = (const struct wf_once *)once;
    /* acquire latch.h's [E1]: sees what was done. */
    return (wf_load_acquire(&self->word) & DONE) != 0;
}

/* Returns 0 if it is done, 1 if the caller must do it, WEFT_PENDING if another task is doing it. */
static int take_bits(uint32_t *bits)
{
    if (*bits == 0) {
        *bits = BUSY;
        return 1;
    }
    return *bits == BUSY ? WEFT_PENDING : 0;
}

/* Returns what identifies the task or plain thread that runs here; thread is the record of the
 * thread, or NULL. */
static void *caller(struct wf_thread *thread)
{
    void *task = wf_thread_running();
    return task != NULL ? task : thread;
}

static void set_owner(weft_once *once, void *owner)
{
    /* relaxed: see the top of the file. */
    wf_store_relaxed(&((struct wf_once *)once)->owner, owner);
}

static int begin_take(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_once *self = op->object;
    int result = take_bits(&turn->bits);
    if (result == WEFT_PENDING) {
        /* relaxed: see the top of the file. */
        void *owner = wf_load_relaxed(&self->owner);
        if (wf_unlikely(owner != NULL && owner == caller(wf_thread_known()))) {
            wf_fatal("weft_once: its function waits for the same weft_once, or weft_once_cell, "
                     "which would never end; use another one there");
        }
    }
    return result;
}

static const struct wf_op_ops begin_ops = { .future = WF_OP_FUTURE,
                                            .take = begin_take,
                                            .queue = offsetof(struct wf_once, waiters) };

void weft_once_begin_init(weft_op *op, weft_once *once)
{
    (void)wf_op_init(op, &begin_ops, once);
}

/* weft_once_begin(), in the call of that name. */
static int begin(weft_once *once, weft_time deadline, const char *call)
{
    int err = wf_op_enter(&deadline, call);
    if (wf_unlikely(err != 0)) {
        return err;
    }
    if (weft_once_is_done(once)) {
        return 0;
    }
    weft_op op;
    weft_once_begin_init(&op, once);
    return wf_op_await_slowly(&op, deadline);
}

int weft_once_begin(weft_once *once, weft_time deadline)
{
    return begin(once, deadline, "weft_once_begin");
}

void weft_once_end(weft_once *once, bool is_done)
{
    struct wf_once *self = (struct wf_once *)once;
    struct wf_turn turn;
    wf_turn_begin(&turn, self);
    if (wf_unlikely(turn.bits != BUSY)) {
        wf_fatal("weft_once_end: no call is in progress; call it after a weft_once_begin() that "
                 "returned 1");
    }
    if (is_done) {
        turn.bits = DONE;
        wf_turn_claim_all(&turn, &self->waiters, 0);
    } else {
        struct wf_op *next = wf_turn_claim(&turn, &self->waiters);
        turn.bits = next != NULL ? BUSY : 0;
        if (next != NULL) {
            next->result = 1;
        }
    }
    wf_turn_end(&turn);
}

int weft_once_run(weft_once *once, int (*function)(void *arg), void *arg, weft_time deadline)
{
    int result = begin(once, deadline, "weft_once_run");
    if (result == 1) {
        set_owner(once, caller(wf_thread_self()));
        result = wf_callout(function, arg);
        set_owner(once, NULL);
        weft_once_end(once, result == 0);
    }
    return result;
}

/* --- A pointer that is set once -------------------------------------------------------------- */

void *weft_once_cell_get(const weft_once_cell *cell)
{
    return weft_once_is_done(&cell->once) ? cell->value : NULL;
}

int weft_once_cell_set(weft_once_cell *cell, void *value)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, &cell->once);
    int result = take_bits(&turn.bits);
    wf_turn_end(&turn);
    if (result != 1) {
        return result == 0 ? -EEXIST : -EBUSY;
    }
    cell->value = value;
    weft_once_end(&cell->once, true);
    return 0;
}

int weft_once_cell_get_or_make(weft_once_cell *cell, int (*make)(void **value, void *arg),
                               void *arg, void **value, weft_time deadline)
{
    int result = begin(&cell->once, deadline, "weft_once_cell_get_or_make");
    if (result == 1) {
        set_owner(&cell->once, caller(wf_thread_self()));
        WF_CALLOUT_BEGIN();
        result = make(&cell->value, arg);
        WF_CALLOUT_END();
        set_owner(&cell->once, NULL);
        weft_once_end(&cell->once, result == 0);
    }
    if (result == 0) {
        *value = cell->value;
    }
    return result;
}
