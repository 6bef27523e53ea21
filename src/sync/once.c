/* SPDX-License-Identifier: MIT */
/*
 * once.c - something that is done once.
 *
 * The word says whether somebody is at it, BUSY, or it is DONE; the latch in the word guards
 * the queue. Who fails hands its turn to the first who waits; who succeeds lets all go. A
 * waiter that is cancelled when it is given the turn has it, and does it: so no turn is lost.
 *
 * Edges: latch.h's [E1]: who is done releases the word, who finds it DONE acquires it:
 * what was done is seen. One who waited sees it by the end of its wait.
 *
 * Checked by tests/model/once_model.c.
 */
#include <weft/once.h>

#include "base/assert.h"
#include "base/latch.h"
#include "sched/op.h"

enum {
    BUSY = 1 << WF_LATCH_SHIFT,
    DONE = 2 << WF_LATCH_SHIFT,
};

struct wf_once {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters; /* under the latch */
};

_Static_assert(sizeof(struct wf_once) <= sizeof(weft_once), "weft_once is too small");

bool weft_once_is_done(const weft_once *once)
{
    const struct wf_once *self = (const struct wf_once *)once;
    /* acquire latch.h's [E1]: what was done. */
    return (wf_load_acquire(&self->word) & DONE) != 0;
}

/* 0: done; 1: it is this one's turn; or what the operation's wait gives, or -EBUSY without one. */
static int take_turn(struct wf_once *once, struct wf_op *op)
{
    int result = 0;
    uint32_t bits = wf_latch_lock(&once->word);
    if (bits == 0) {
        bits = BUSY;
        result = 1;
    } else if (bits == BUSY) {
        result = op != NULL ? wf_op_enlist(op, &once->waiters) : -EBUSY;
    }
    wf_latch_unlock(&once->word, bits);
    return result;
}

static int begin_begin(struct wf_op *op)
{
    return take_turn(op->object, op);
}

static void begin_leave(struct wf_op *op)
{
    struct wf_once *once = op->object;
    uint32_t bits = wf_latch_lock(&once->word);
    (void)wf_op_delist(op);
    wf_latch_unlock(&once->word, bits);
}

static const struct wf_op_ops begin_ops = { .future = WF_OP_FUTURE,
                                            .begin = begin_begin,
                                            .leave = begin_leave };

void weft_once_begin_init(weft_op *op, weft_once *once)
{
    (void)wf_op_init(op, &begin_ops, once);
}

int weft_once_begin(weft_once *once, weft_time deadline)
{
    if (weft_once_is_done(once)) {
        return 0;
    }
    weft_op op;
    weft_once_begin_init(&op, once);
    return wf_op_await(&op, deadline, "weft_once_begin");
}

void weft_once_end(weft_once *once, bool is_done)
{
    struct wf_once *self = (struct wf_once *)once;
    struct wf_grants grants;
    wf_grants_init(&grants);
    uint32_t bits = wf_latch_lock(&self->word);
    if (wf_unlikely(bits != BUSY)) {
        wf_fatal("weft_once_end: nobody is at it; op it after a weft_once_begin() that gave 1");
    }
    if (is_done) {
        bits = DONE;
        wf_grants_claim_all(&grants, &self->waiters, 0);
    } else {
        struct wf_op *next = wf_grants_claim(&grants, &self->waiters);
        bits = next != NULL ? BUSY : 0;
        if (next != NULL) {
            next->result = 1;
        }
    }
    wf_latch_unlock(&self->word, bits);
    wf_grants_fire(&grants);
}

int weft_once_run(weft_once *once, int (*function)(void *arg), void *arg, weft_time deadline)
{
    int result = weft_once_begin(once, deadline);
    if (result == 1) {
        result = function(arg);
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
    int result = take_turn((struct wf_once *)&cell->once, NULL);
    if (result != 1) {
        return result == 0 ? -EEXIST : result;
    }
    cell->value = value;
    weft_once_end(&cell->once, true);
    return 0;
}

int weft_once_cell_get_or_make(weft_once_cell *cell, int (*make)(void **value, void *arg),
                               void *arg, void **value, weft_time deadline)
{
    int result = weft_once_begin(&cell->once, deadline);
    if (result == 1) {
        result = make(&cell->value, arg);
        weft_once_end(&cell->once, result == 0);
    }
    if (result == 0) {
        *value = cell->value;
    }
    return result;
}
