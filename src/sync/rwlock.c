/* SPDX-License-Identifier: MIT */
/*
 * rwlock.c - a lock for many readers or one writer.
 *
 * Its word counts the readers that have it, and says whether a WRITER has it, and whether
 * somebody is WAITING in the queue, which is guarded by the latch in the same word.
 *
 *   To lock                                To unlock
 *   A1  nobody waits, and it can be        B1  nobody waits, or other readers have
 *       had: by CAS [X1]                       it: by CAS [X1]
 *   A2  else take the latch; as A1;        B2  else take the latch; grant to the
 *       or WAITING, and enlist                 first who waits, and if that is a
 *                                              reader, to all up to the next writer
 *
 * While somebody waits, nobody gets it but in the order of the queue. The last one who has
 * it hands it over in B2: the writer, or the last of the readers. A writer that gives up may
 * have held up readers behind it, who can join those that have it: it grants that when it
 * leaves.
 *
 * Edges.
 * [X1] unlock releases the word, lock acquires it: what the last writer wrote is seen, and a
 *      writer sees that all readers are done. One that it is granted to sees it by the latch,
 *      and the end of its wait.
 *
 * Checked by tests/model/rwlock_model.c.
 */
#include <weft/rwlock.h>

#include "base/assert.h"
#include "sched/op.h"

enum {
    WRITER = 1 << WF_LATCH_SHIFT,
    WAITING = 2 << WF_LATCH_SHIFT,
    READER = 4 << WF_LATCH_SHIFT, /* one of them */
};

struct wf_rwlock {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters; /* under the latch; the flag of an operation: a writer */
};

_Static_assert(sizeof(struct wf_rwlock) <= sizeof(weft_rwlock), "weft_rwlock is too small");

/* What the word becomes if one more gets it; or the same, if that cannot be. */
static uint32_t with(uint32_t word, bool is_writer)
{
    if (is_writer) {
        return word / READER == 0 ? word | WRITER : word;
    }
    return (word & WRITER) == 0 ? word + READER : word;
}

/* A1. */
static bool take(struct wf_rwlock *lock, bool is_writer)
{
    /* relaxed: the exchange sees whether it is true. */
    uint32_t word = wf_load_relaxed(&lock->word);
    while (wf_latch_is_open(word) && (word & (WRITER | WAITING)) == 0) {
        uint32_t taken = with(word, is_writer);
        if (taken == word) {
            return false;
        }
        if (wf_unlikely(taken < word)) {
            wf_fatal("weft_rwlock_read: too many readers; end what was begun");
        }
        /* acquire [X1]: what the last writer wrote, and that readers are done. */
        if (wf_cas_weak_acquire(&lock->word, &word, taken)) {
            return true;
        }
    }
    return false;
}

/* A2. */
static int take_bits(uint32_t *bits, bool is_writer)
{
    if ((*bits & (WRITER | WAITING)) != 0 || with(*bits, is_writer) == *bits) {
        return WEFT_PENDING;
    }
    *bits = with(*bits, is_writer);
    return 0;
}

/* Grants to the first ones what they can have. */
static void serve(struct wf_rwlock *lock, struct wf_turn *turn)
{
    struct wf_op *first;
    while ((first = wf_op_first(&lock->waiters)) != NULL) {
        uint32_t taken = (turn->bits & WRITER) == 0 ? with(turn->bits, first->flag) : turn->bits;
        if (taken == turn->bits) {
            return;
        }
        if (wf_turn_claim_this(turn, first)) {
            turn->bits = taken;
        }
    }
    turn->bits &= ~(uint32_t)WAITING;
}

static int lock_take(struct wf_op *op, struct wf_turn *turn)
{
    return take_bits(&turn->bits, op->flag);
}

static void lock_enlist(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_rwlock *lock = op->object;
    turn->bits |= WAITING;
    wf_op_enlist(op, &lock->waiters);
}

static void lock_leave(struct wf_op *op, struct wf_turn *turn)
{
    serve(op->object, turn);
}

static const struct wf_op_ops lock_ops = {
    .future = WF_OP_FUTURE, .take = lock_take, .enlist = lock_enlist, .leave = lock_leave
};

static void init(weft_op *op, weft_rwlock *lock, bool is_writer)
{
    struct wf_op *self = wf_op_init(op, &lock_ops, lock);
    self->flag = is_writer;
}

void weft_rwlock_read_init(weft_op *op, weft_rwlock *lock)
{
    init(op, lock, false);
}

void weft_rwlock_write_init(weft_op *op, weft_rwlock *lock)
{
    init(op, lock, true);
}

static int lock_for(weft_rwlock *lock, bool is_writer, weft_time deadline)
{
    if (wf_likely(take((struct wf_rwlock *)lock, is_writer))) {
        return 0;
    }
    weft_op op;
    init(&op, lock, is_writer);
    return wf_op_await(&op, deadline, is_writer ? "weft_rwlock_write" : "weft_rwlock_read");
}

int weft_rwlock_read(weft_rwlock *lock, weft_time deadline)
{
    return lock_for(lock, false, deadline);
}

int weft_rwlock_write(weft_rwlock *lock, weft_time deadline)
{
    return lock_for(lock, true, deadline);
}

static bool try_for(weft_rwlock *lock, bool is_writer)
{
    struct wf_rwlock *self = (struct wf_rwlock *)lock;
    if (take(self, is_writer)) {
        return true;
    }
    uint32_t bits = wf_latch_lock(&self->word);
    int result = take_bits(&bits, is_writer);
    wf_latch_unlock(&self->word, bits);
    return result == 0;
}

bool weft_rwlock_try_read(weft_rwlock *lock)
{
    return try_for(lock, false);
}

bool weft_rwlock_try_write(weft_rwlock *lock)
{
    return try_for(lock, true);
}

/* B2: gives up part of the word. */
static void give_up_slowly(struct wf_rwlock *lock, uint32_t part)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, lock);
    turn.bits -= part;
    serve(lock, &turn);
    wf_turn_end(&turn);
}

/* B1: if nobody waits, or readers are left. */
static void give_up(struct wf_rwlock *lock, uint32_t part, const char *op)
{
    /* relaxed: the exchange sees whether it is true. */
    uint32_t word = wf_load_relaxed(&lock->word);
    for (;;) {
        if (wf_unlikely(part == WRITER ? (word & WRITER) == 0 : word / READER == 0)) {
            wf_fatal("%s: it is not locked so", op);
        }
        bool is_last = (word - part) / READER == 0;
        if (!wf_latch_is_open(word) || ((word & WAITING) != 0 && is_last)) {
            break;
        }
        /* release [X1]: the next one sees what this one did. */
        if (wf_cas_weak_release(&lock->word, &word, word - part)) {
            return;
        }
    }
    give_up_slowly(lock, part);
}

void weft_rwlock_end_read(weft_rwlock *lock)
{
    give_up((struct wf_rwlock *)lock, READER, "weft_rwlock_end_read");
}

void weft_rwlock_end_write(weft_rwlock *lock)
{
    give_up((struct wf_rwlock *)lock, WRITER, "weft_rwlock_end_write");
}

void weft_rwlock_downgrade(weft_rwlock *lock)
{
    struct wf_rwlock *self = (struct wf_rwlock *)lock;
    struct wf_turn turn;
    wf_turn_begin(&turn, self);
    if (wf_unlikely((turn.bits & WRITER) == 0)) {
        wf_fatal("weft_rwlock_downgrade: it is not locked for writing");
    }
    turn.bits += READER - WRITER;
    serve(self, &turn);
    wf_turn_end(&turn);
}
