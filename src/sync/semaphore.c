/* SPDX-License-Identifier: MIT */
/*
 * semaphore.c - a number of permits.
 *
 * Its word has the number of permits that are there, and says whether somebody is WAITING
 * in the queue, and whether it is CLOSED. The queue is guarded by the latch in the same
 * word.
 *
 *   To acquire                             To release
 *   A1  nobody waits, and there are        B1  nobody waits: add, by CAS [SE1]
 *       enough: subtract, by CAS [SE1]      B2  else take the latch, and add; while
 *   A2  else take the latch; as A1;            there are enough for the first who
 *       or WAITING, and enlist                 waits, subtract and grant [SE1]
 *
 * While somebody waits, permits change under the latch only, so nobody overtakes the first
 * one, and it gets its permits as soon as there are enough. One that gives up may have held
 * up those behind it: it grants what they can have when it leaves.
 *
 * Permits are granted by the releaser, and belong to the waiter from then on. A wait that
 * is cancelled at that moment has succeeded: so none are lost.
 *
 * Edges.
 * [SE1] release releases the word, acquire acquires it: who has a permit sees what those did
 *      who had it before. One that it is granted to sees it by the latch, and the end of its
 *      wait.
 *
 * Checked by tests/model/semaphore_model.c.
 */
#include <weft/semaphore.h>

#include "base/assert.h"
#include "sched/op.h"

enum {
    WAITING = 1 << WF_LATCH_SHIFT,
    CLOSED = 2 << WF_LATCH_SHIFT,
    ONE = 4 << WF_LATCH_SHIFT, /* permit */
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

/* Can they be had at once? None of them always can: no waiter is overtaken by that. */
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
    /* relaxed: the exchange sees whether it is true. */
    uint32_t word = wf_load_relaxed(&semaphore->word);
    while (wf_latch_is_open(word) && is_there(word, permits)) {
        /* acquire [SE1]: what those did who had them before. */
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

/* Grants to the first ones what they can have. */
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
    /* relaxed: the exchange sees whether it is true. */
    uint32_t word = wf_load_relaxed(&self->word);
    while (wf_latch_is_open(word) && (word & WAITING) == 0) {
        /* release [SE1]: who acquires them sees what this one did. */
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
    /* relaxed: an answer that may be old when it arrives. */
    return permits_of(wf_load_relaxed(&((const struct wf_semaphore *)semaphore)->word));
}
