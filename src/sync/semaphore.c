/* SPDX-License-Identifier: MIT */
/*
 * semaphore.c - counting semaphore with a fair queue.
 *
 * The word holds the number of available permits, and says whether a task is WAITING in the
 * queue, and whether the semaphore is CLOSED. The queue is guarded by the latch in the same
 * word.
 *
 *   Acquire                                Release
 *   A1  no task waits, and there are       B1  no task waits: add, by CAS [SE1]
 *       enough: subtract, by CAS [SE1]     B2  else take the latch, and add; while
 *   A2  else take the latch; as A1;            there are enough for the first
 *       or WAITING, and enqueue                waiter, subtract and grant [SE1]
 *
 * While a task waits, permits change only under the latch. So no caller overtakes the first
 * waiter, which gets its permits as soon as there are enough. A waiter that gives up may have
 * held up the waiters behind it: when it leaves, it grants them what they can have.
 *
 * The releaser grants the permits, and the waiter owns them from then on. A wait that is
 * canceled at that moment has succeeded, so no permit is lost.
 *
 * Edges.
 * [SE1] release releases the word, acquire acquires it: the holder of a permit sees what its
 *       previous holders did. A waiter that it is granted to sees it through the latch and the
 *       end of its wait.
 *
 * Checked by tests/model/semaphore_model.c.
 */
#include <weft/semaphore.h>

#include "base/assert.h"
#include "sched/op.h"

enum {
    WAITING = 1 << WF_LATCH_SHIFT,
    CLOSED = 2 << WF_LATCH_SHIFT,
    ONE = 4 << WF_LATCH_SHIFT, /* one permit */
};

struct wf_semaphore {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters; /* under the latch */
};

_Static_assert(sizeof(struct wf_semaphore) <= sizeof(weft_semaphore), "weft_semaphore is small");
_Static_assert(ONE == 1 << 4, "WEFT_SEMAPHORE_INIT() knows better");
_Static_assert(UINT32_MAX / ONE == WEFT_SEMAPHORE_MAX, "");

static uint32_t permits_of(uint32_t word)
{
    return word / ONE;
}

/* Returns whether the permits are available immediately. Zero permits always are, unless it is
 * closed: that overtakes no waiter. */
static bool is_there(uint32_t word, uint32_t permits)
{
    if (permits == 0) {
        return (word & CLOSED) == 0;
    }
    return (word & (WAITING | CLOSED)) == 0 && permits_of(word) >= permits;
}

/* A1. */
static bool take(struct wf_semaphore *semaphore, uint32_t permits)
{
    /* relaxed: a guess that the CAS verifies. */
    uint32_t word = wf_load_relaxed(&semaphore->word);
    while (wf_latch_is_open(word) && is_there(word, permits)) {
        /* acquire [SE1]: sees what the previous holders of the permits did. */
        if (wf_cas_weak_acquire(&semaphore->word, &word, word - permits * ONE)) {
            return true;
        }
    }
    return false;
}

/* A2. */
static int take_bits(uint32_t *bits, uint32_t permits)
{
    if (permits > WEFT_SEMAPHORE_MAX) {
        return -EINVAL;
    }
    if ((*bits & CLOSED) != 0) {
        return WEFT_ECLOSED;
    }
    if (!is_there(*bits, permits)) {
        return WEFT_PENDING;
    }
    *bits -= permits * ONE;
    return 0;
}

/* Grants permits to the first waiters while there are enough. */
static void serve(struct wf_semaphore *semaphore, struct wf_turn *turn)
{
    struct wf_op *first;
    while ((first = wf_op_first(&semaphore->waiters)) != NULL &&
           permits_of(turn->bits) >= first->count) {
        uint32_t wanted = first->count;
        if (wf_turn_claim_this(turn, first)) {
            turn->bits -= wanted * ONE;
        }
    }
    if (first == NULL) {
        turn->bits &= ~(uint32_t)WAITING;
    }
}

static int acquire_take(struct wf_op *op, struct wf_turn *turn)
{
    return take_bits(&turn->bits, op->count);
}

static void acquire_enlist(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_semaphore *semaphore = op->object;
    turn->bits |= WAITING;
    wf_op_enlist(op, &semaphore->waiters);
}

static void acquire_leave(struct wf_op *op, struct wf_turn *turn)
{
    serve(op->object, turn);
}

static const struct wf_op_ops acquire_ops = {
    .future = WF_OP_FUTURE, .take = acquire_take, .enlist = acquire_enlist, .leave = acquire_leave
};

void weft_semaphore_init(weft_semaphore *semaphore, uint32_t permits)
{
    if (permits > WEFT_SEMAPHORE_MAX) {
        wf_fatal("weft_semaphore_init: %u permits; WEFT_SEMAPHORE_MAX is the most", permits);
    }
    *semaphore = (weft_semaphore)WEFT_SEMAPHORE_INIT(permits);
}

void weft_semaphore_acquire_init(weft_op *op, weft_semaphore *semaphore, uint32_t permits)
{
    struct wf_op *self = wf_op_init(op, &acquire_ops, semaphore);
    self->count = permits;
}

int weft_semaphore_try_acquire(weft_semaphore *semaphore, uint32_t permits)
{
    struct wf_semaphore *self = (struct wf_semaphore *)semaphore;
    if (wf_likely(take(self, permits))) {
        return 0;
    }
    uint32_t bits = wf_latch_lock(&self->word);
    int result = take_bits(&bits, permits);
    wf_latch_unlock(&self->word, bits);
    return result == WEFT_PENDING ? -EAGAIN : result;
}

int weft_semaphore_acquire(weft_semaphore *semaphore, uint32_t permits, weft_time deadline)
{
    int err = wf_op_enter(&deadline, "weft_semaphore_acquire");
    if (wf_unlikely(err != 0)) {
        return err;
    }
    if (wf_likely(take((struct wf_semaphore *)semaphore, permits))) {
        return 0;
    }
    weft_op op;
    weft_semaphore_acquire_init(&op, semaphore, permits);
    return wf_op_await_slowly(&op, deadline);
}

static uint32_t add(uint32_t word, uint32_t permits)
{
    if (wf_unlikely(permits > WEFT_SEMAPHORE_MAX - permits_of(word))) {
        wf_fatal("weft_semaphore_release: more than WEFT_SEMAPHORE_MAX permits; "
                 "release what was acquired, once");
    }
    return word + permits * ONE;
}

/* B2. */
static void release_slowly(struct wf_semaphore *semaphore, uint32_t permits)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, semaphore);
    turn.bits = add(turn.bits, permits);
    serve(semaphore, &turn);
    wf_turn_end(&turn);
}

void weft_semaphore_release(weft_semaphore *semaphore, uint32_t permits)
{
    struct wf_semaphore *self = (struct wf_semaphore *)semaphore;
    /* relaxed: a guess that the CAS verifies. */
    uint32_t word = wf_load_relaxed(&self->word);
    while (wf_latch_is_open(word) && (word & WAITING) == 0) {
        /* release [SE1]: the next holder of the permits sees what this one did. */
        if (wf_cas_weak_release(&self->word, &word, add(word, permits))) {
            return;
        }
    }
    release_slowly(self, permits);
}

uint32_t weft_semaphore_forget(weft_semaphore *semaphore, uint32_t permits)
{
    struct wf_semaphore *self = (struct wf_semaphore *)semaphore;
    uint32_t bits = wf_latch_lock(&self->word);
    uint32_t taken = permits_of(bits) < permits ? permits_of(bits) : permits;
    wf_latch_unlock(&self->word, bits - taken * ONE);
    return taken;
}

void weft_semaphore_close(weft_semaphore *semaphore)
{
    struct wf_semaphore *self = (struct wf_semaphore *)semaphore;
    struct wf_turn turn;
    wf_turn_begin(&turn, self);
    wf_turn_claim_all(&turn, &self->waiters, WEFT_ECLOSED);
    turn.bits = (turn.bits | CLOSED) & ~(uint32_t)WAITING;
    wf_turn_end(&turn);
}

uint32_t weft_semaphore_available(const weft_semaphore *semaphore)
{
    /* relaxed: a snapshot that may be stale on return. */
    return permits_of(wf_load_relaxed(&((const struct wf_semaphore *)semaphore)->word));
}
