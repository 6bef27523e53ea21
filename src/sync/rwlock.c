/* SPDX-License-Identifier: MIT */
/*
 * rwlock.c - reader-writer lock: many readers or one writer.
 *
 * The word counts the readers that hold the lock, and says whether a WRITER holds it, and
 * whether a task is WAITING in the queue, which is guarded by the latch in the same word.
 *
 *   Lock                                   Unlock
 *   A1  free; or to read, held by          B1  no task waits, or other readers hold
 *       readers, while no task waits:          it: by CAS [X1]
 *       by CAS [X1]                        B2  else take the latch; claim the first
 *   A2  take the latch; as A1; or              waiter and, if that is a reader, all
 *       WAITING, and enqueue                   up to the next writer; release the
 *   A3  woken: it was handed over; or          latch, with
 *       as A1, but readers join readers    B3  the word free; or, if the first has
 *       regardless of waiters; or as           waited long, theirs: handed over
 *       A2, at the front                   B4  wake them
 *
 * No waiter is forgotten, as in mutex.c: a waiter that is woken and finds that another task has
 * locked first waits again, or gives up; that other task unlocks later. No waiter is kept out
 * forever: readers that arrive while a task waits do not join the readers that hold the lock,
 * so the last of these leaves, and the first waiter is woken; and after a millisecond the lock
 * is handed over. mutex.c also says why not immediately.
 *
 * The lock is handed over to readers that can join others, after a downgrade or because the
 * writer before them has left the queue.
 *
 * Edges.
 * [X1] unlock releases the word, lock acquires it: the holder sees what the last writer wrote,
 *      and a writer sees that all readers are done. A waiter that the lock is granted to sees
 *      it through the latch and the end of its wait.
 *
 * Checked by tests/model/rwlock_model.c.
 */
#include <weft/rwlock.h>

#include "base/assert.h"
#include "base/clock.h"
#include "sched/op.h"

enum {
    WRITER = 1 << WF_LATCH_SHIFT,
    WAITING = 2 << WF_LATCH_SHIFT,
    READER = 4 << WF_LATCH_SHIFT, /* one reader */

    HANDED_OVER = 1, /* in the count of an operation */
};

#define PATIENCE_NS INT64_C(1000000)

struct wf_rwlock {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters; /* under the latch; flag of an operation: it is a writer */
};

_Static_assert(sizeof(struct wf_rwlock) <= sizeof(weft_rwlock), "weft_rwlock is too small");

/* Returns the part of the word that a holder of this kind accounts for. */
static uint32_t part_of(bool is_writer)
{
    return is_writer ? WRITER : READER;
}

static bool is_free(uint32_t word)
{
    return word < READER && (word & WRITER) == 0;
}

/* Returns whether the lock can be held beside its present holders. */
static bool can_have(uint32_t word, bool is_writer)
{
    return is_writer ? is_free(word) : (word & WRITER) == 0;
}

/* Also considers waiters: a new caller goes after them, unless the lock is free. */
static bool may_have(uint32_t word, bool is_writer, bool is_new)
{
    return can_have(word, is_writer) && (!is_new || is_free(word) || (word & WAITING) == 0);
}

static uint32_t with(uint32_t word, bool is_writer)
{
    if (wf_unlikely(word > UINT32_MAX - READER)) {
        wf_fatal("weft_rwlock_read: too many readers; end what was begun");
    }
    return word + part_of(is_writer);
}

/* A1 or A3. */
static bool take(struct wf_rwlock *lock, bool is_writer, bool is_new)
{
    /* relaxed: a guess that the CAS verifies. */
    uint32_t word = wf_load_relaxed(&lock->word);
    while (wf_latch_is_open(word) && may_have(word, is_writer, is_new)) {
        /* acquire [X1]: sees what the last writer wrote, and that readers are done. */
        if (wf_cas_weak_acquire(&lock->word, &word, with(word, is_writer))) {
            return true;
        }
    }
    return false;
}

/* A2. */
static int take_bits(uint32_t *bits, bool is_writer, bool is_new)
{
    if (!may_have(*bits, is_writer, is_new)) {
        return WEFT_PENDING;
    }
    *bits = with(*bits, is_writer);
    return 0;
}

static void look_for_waiters(struct wf_rwlock *lock, struct wf_turn *turn)
{
    if (wf_waitq_is_empty(&lock->waiters)) {
        turn->bits &= ~(uint32_t)WAITING;
    }
}

/* Hands the lock over to the first waiters, as far as they can hold it together. */
static void hand_over(struct wf_rwlock *lock, struct wf_turn *turn)
{
    struct wf_op *first;
    while ((first = wf_op_first(&lock->waiters)) != NULL && can_have(turn->bits, first->flag)) {
        bool is_writer = first->flag;
        if (wf_turn_claim_this(turn, first)) {
            first->count = HANDED_OVER;
            turn->bits = with(turn->bits, is_writer);
        }
    }
    look_for_waiters(lock, turn);
}

/* Wakes the first waiters to try: a writer, or all readers up to the next writer. */
static void wake_first(struct wf_rwlock *lock, struct wf_turn *turn)
{
    struct wf_op *first;
    bool is_any = false;
    while ((first = wf_op_first(&lock->waiters)) != NULL && !(is_any && first->flag)) {
        bool is_writer = first->flag;
        is_any |= wf_turn_claim_this(turn, first);
        if (is_any && is_writer) {
            break;
        }
    }
    look_for_waiters(lock, turn);
}

static int lock_take(struct wf_op *op, struct wf_turn *turn)
{
    return take_bits(&turn->bits, op->flag, !op->is_back);
}

static void lock_enlist(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_rwlock *lock = op->object;
    turn->bits |= WAITING;
    if (op->is_back) {
        wf_op_enlist_first(op, &lock->waiters);
    } else {
        op->time = wf_clock_real();
        wf_op_enlist(op, &lock->waiters);
    }
}

static void lock_leave(struct wf_op *op, struct wf_turn *turn)
{
    hand_over(op->object, turn);
}

/* A3. If readers were faster than a writer, the readers behind it may join them: the writer has
 * left the queue, and may not come back. */
static int lock_end(struct wf_op *op)
{
    if (op->count == HANDED_OVER || take(op->object, op->flag, false)) {
        return 0;
    }
    if (op->flag) {
        struct wf_turn turn;
        wf_turn_begin(&turn, op->object);
        hand_over(op->object, &turn);
        wf_turn_end(&turn);
    }
    return WEFT_PENDING;
}

static const struct wf_op_ops lock_ops = { .future = WF_OP_FUTURE,
                                           .take = lock_take,
                                           .enlist = lock_enlist,
                                           .leave = lock_leave,
                                           .end = lock_end };

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
    int err = wf_op_enter(&deadline, is_writer ? "weft_rwlock_write" : "weft_rwlock_read");
    if (wf_unlikely(err != 0)) {
        return err;
    }
    if (wf_likely(take((struct wf_rwlock *)lock, is_writer, true))) {
        return 0;
    }
    weft_op op;
    init(&op, lock, is_writer);
    return wf_op_await_slowly(&op, deadline);
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
    if (take(self, is_writer, true)) {
        return true;
    }
    uint32_t bits = wf_latch_lock(&self->word);
    int result = take_bits(&bits, is_writer, true);
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

/* B2 to B4: gives up part of the word. */
static void give_up_slowly(struct wf_rwlock *lock, uint32_t part)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, lock);
    turn.bits -= part;
    const struct wf_op *first = wf_op_first(&lock->waiters);
    if (!is_free(turn.bits) || (first != NULL && wf_clock_real() - first->time > PATIENCE_NS)) {
        hand_over(lock, &turn);
    } else {
        wake_first(lock, &turn);
    }
    wf_turn_end(&turn);
}

/* B1: gives up part of the word, if no task waits or readers remain. */
static void give_up(struct wf_rwlock *lock, uint32_t part, const char *op)
{
    /* relaxed: a guess that the CAS verifies. */
    uint32_t word = wf_load_relaxed(&lock->word);
    for (;;) {
        if (wf_unlikely(part == WRITER ? (word & WRITER) == 0 : word / READER == 0)) {
            wf_fatal("%s: it is not locked so", op);
        }
        bool is_last = (word - part) / READER == 0;
        if (!wf_latch_is_open(word) || ((word & WAITING) != 0 && is_last)) {
            break;
        }
        /* release [X1]: the next holder sees what this one did. */
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
    hand_over(self, &turn);
    wf_turn_end(&turn);
}
