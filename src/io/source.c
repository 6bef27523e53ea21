/* SPDX-License-Identifier: MIT */
/*
 * source.c - a descriptor that tasks wait at.
 *
 * Who reads tries the system call first, and waits if there is nothing: so data goes from
 * the kernel to where it is wanted, a call that was cancelled has taken nothing, and no
 * buffer is ever the kernel's. What is known of the descriptor is in the word: a reader
 * does not try in vain twice.
 *
 *   Read                                    Event, told once (by edge), any thread
 *   T1  look: READABLE?                     E1  latch; is it still this descriptor?
 *   T2  yes: try. Something: done           E2  READABLE; one more of NEWS
 *   T3  nothing: not READABLE, unless       E3  grant to the first who waits
 *       there was NEWS since T1
 *   T4  latch; READABLE: T1; else enlist
 *
 * Nothing is missed: what comes after a try that found nothing makes an event, and its E2 is
 * after T1. If it is before T3, T3 sees the NEWS and leaves READABLE; if it is between T3 and
 * T4, T4 sees READABLE; if after T4, E3 finds the reader. One event may stand for much: who
 * was granted it tries, and if that was not in vain, grants to the next who waits (pass on).
 *
 * A connection or pipe that gave less than was wanted has no more, so T3 follows at once;
 * unless it is UNSURE, since an end, an error or urgent data is an event that may have come
 * before T1, and nothing else follows.
 *
 * Closing. A source counts who is in a call at it. Close says so to those who wait and to
 * those who come; the last one to leave closes the descriptor, so that its number is not
 * another's while somebody still reads from it. Events carry a number that changes with each
 * descriptor that is in this place of the table: a late one is for nobody.
 *
 * Edges.
 * [SO1] leave releases users, the last one to leave acquires it: all have left the
 *       descriptor when it is closed.
 * And latch.h's [E1]: who tells of an event gives up the latch, and a look acquires that: what
 * the event tells of is there for the try that follows. Without it a reader could see the
 * NEWS, and in the kernel what was before.
 *
 * Rejected. Waiting for reading and writing by one queue: a writer would be woken by what
 * is to be read. Waking all who wait: of many tasks that receive from one socket, all but
 * one are woken for nothing. Buffers that the kernel fills (io_uring): ADR 13.
 *
 * Checked by tests/model/source_model.c.
 */
#include "io/source.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/io.h"
#include "sched/op.h"

enum {
    READY = WF_SOURCE_READABLE | WF_SOURCE_WRITABLE,
    WAITED_FOR = WF_SOURCE_READERS | WF_SOURCE_WRITERS,
    NEWS_MASK = (int)~(uint32_t)(WF_SOURCE_NEWS - 1),
    LINE = 64,
    FRAMES_BELOW = 4 * LINE, /* of the calls that wait, */
    FRAMES_ABOVE = 6 * LINE, /* and of the one that has begun it, and the operation itself */
};

/* So that one follows from the other. */
_Static_assert(WF_SOURCE_READERS / WF_SOURCE_READABLE == WF_SOURCE_WRITERS / WF_SOURCE_WRITABLE,
               "");
_Static_assert(WF_SOURCE_READABLE / WF_EVENT_READ == WF_SOURCE_WRITABLE / WF_EVENT_WRITE, "");
_Static_assert(WF_EVENT_READ_OVER / WF_EVENT_READ == WF_EVENT_WRITE_OVER / WF_EVENT_WRITE, "");

_Static_assert(offsetof(struct wf_source, room) == WF_SOURCE_ALIGN - sizeof(void *),
               "the first word of the room is to be in the line before it");

/* Who waits for this. */
static uint32_t waiters_of(uint32_t what)
{
    return what * (WF_SOURCE_READERS / WF_SOURCE_READABLE);
}

static struct wf_waitq *queue_of(struct wf_source *source, uint32_t what)
{
    return what == WF_SOURCE_READABLE ? &source->readers : &source->writers;
}

/* --- Waiting ---------------------------------------------------------------------------- */

/* In a turn: grants to the first who waits for this, or to all. */
static inline void grant(struct wf_source *source, struct wf_turn *turn, uint32_t what, bool all)
{
    if ((turn->bits & waiters_of(what)) == 0) {
        return;
    }
    struct wf_waitq *queue = queue_of(source, what);
    struct wf_op *op;
    do {
        op = wf_turn_claim(turn, queue);
    } while (all && op != NULL);
    if (wf_waitq_is_empty(queue)) {
        turn->bits &= ~waiters_of(what);
    }
}

/* In a turn: an event comes if this may be done from now on. */
static int watch(struct wf_source *source, struct wf_turn *turn, uint32_t what)
{
    struct wf_io *io = source->io;
    if (wf_likely((source->armed * WF_SOURCE_READABLE & what) != 0)) {
        return 0;
    }
    bool is_first = (turn->bits & WF_SOURCE_WATCHED) == 0;
    if (is_first) { /* Counted before an event can come: workers look for none if there is none. */
        wf_io_count_watched(io);
    }
    int err = io->backend->watch(io, source, what);
    if (err == 0) {
        turn->bits |= WF_SOURCE_WATCHED;
    } else if (is_first) {
        wf_io_uncount_watched(io);
    }
    return err;
}

int wf_source_watch(struct wf_source *source)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, source);
    int err = watch(source, &turn, WF_SOURCE_READABLE);
    wf_turn_end(&turn);
    return err;
}

/* Asks the kernel, for who does not try at once. What comes after this makes an event. */
static bool is_ready(struct wf_source *source, uint32_t what)
{
    if (source->is_ready != NULL) {
        return source->is_ready(source, what);
    }
    struct pollfd look = { .fd = source->fd,
                           .events = what == WF_SOURCE_READABLE ? POLLIN | POLLRDHUP : POLLOUT };
    int saved = errno;
    int count = poll(&look, 1, 0);
    errno = saved;
    return count != 0;
}

/* T4. */
static int wait_take(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_source *source = op->object;
    if ((turn->bits & WF_SOURCE_CLOSED) != 0) {
        return WEFT_ECLOSED;
    }
    if ((turn->bits & op->count) != 0) {
        if (op->flag || is_ready(source, op->count)) {
            return 0;
        }
        turn->bits &= ~op->count;
    }
    int err = watch(source, turn, op->count);
    return err != 0 ? err : WEFT_PENDING;
}

static void wait_enlist(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_source *source = op->object;
    turn->bits |= waiters_of(op->count);
    wf_op_enlist(op, queue_of(source, op->count));
    if (op->node.wait == &op->own) { /* Else it is a select's, which may not have begun yet. */
        /* relaxed: an address to ask for, which nobody follows. */
        wf_store_relaxed(&source->op, (const void *)op);
        /* relaxed: as above, nobody follows it. */
        wf_store_relaxed(&source->task, (const void *)op->own.task);
    }
}

static void wait_leave(struct wf_op *op, struct wf_turn *turn)
{
    if (wf_waitq_is_empty(queue_of(op->object, op->count))) {
        turn->bits &= ~waiters_of(op->count);
    }
}

/* One that is not followed by a try of ours: somebody else may have what is there. */
static int wait_end(struct wf_op *op)
{
    if (!op->flag && op->result == 0) {
        wf_source_pass_on(op->object, op->count);
    }
    return op->result;
}

static const struct wf_op_ops wait_ops = { .future = WF_OP_FUTURE,
                                           .take = wait_take,
                                           .enlist = wait_enlist,
                                           .leave = wait_leave,
                                           .end = wait_end };

void wf_source_wait_init(weft_op *op, struct wf_source *source, uint32_t what, bool is_ours)
{
    struct wf_op *self = wf_op_init(op, &wait_ops, source);
    self->count = what;
    self->flag = is_ours;
}

int wf_source_await(struct wf_source *source, uint32_t what, weft_time deadline, const char *call)
{
    weft_op op;
    wf_source_wait_init(&op, source, what, true);
    return wf_op_await_inline((struct wf_op *)&op, &wait_ops, deadline, call);
}

/* T3, under the latch or by a CAS while it is open. */
static bool is_old_news(uint32_t word, uint32_t seen)
{
    return ((word ^ seen) & (uint32_t)NEWS_MASK) == 0;
}

void wf_source_exhausted(struct wf_source *source, uint32_t seen, uint32_t what)
{
    /* relaxed: the exchange sees whether it is true. */
    uint32_t word = wf_load_relaxed(&source->word);
    while (wf_latch_is_open(word) && is_old_news(word, seen)) {
        /* relaxed: it says only what a system call has said. */
        if (wf_cas_weak_relaxed(&source->word, &word, word & ~what)) {
            return;
        }
    }
    if (!wf_latch_is_open(word)) {
        word = wf_latch_lock(&source->word);
        wf_latch_unlock(&source->word, is_old_news(word, seen) ? word & ~what : word);
    }
}

void wf_source_pass_on(struct wf_source *source, uint32_t what)
{
    uint32_t both = what | waiters_of(what);
    if ((wf_source_look(source) & both) != both) {
        return;
    }
    struct wf_turn turn;
    wf_turn_begin(&turn, source);
    if ((turn.bits & both) == both) {
        grant(source, &turn, what, false);
    }
    wf_turn_end(&turn);
}

int wf_source_failed(struct wf_source *source, uint32_t seen, uint32_t what)
{
    int error = errno;
    if (error == EAGAIN || error == EWOULDBLOCK) {
        wf_source_exhausted(source, seen, what);
        return -EAGAIN;
    }
    wf_source_pass_on(source, what); /* Others who wait want to know, too. */
    return -error;
}

/* Under the latch: events that carry the tag of before are for nobody. */
static void next_tag(struct wf_source *source)
{
    /* relaxed: under the latch. */
    wf_store_relaxed(&source->sequence, wf_load_relaxed(&source->sequence) + 1);
}

void wf_source_fetch(struct wf_io *io, uint64_t tag)
{
    __builtin_prefetch(wf_io_source(io, (uint32_t)tag));
}

/* The lines of its task, and of the frames around the operation, if it is a fiber's. */
void wf_source_fetch_waiter(struct wf_io *io, uint64_t tag)
{
    const struct wf_source *source = wf_io_source(io, (uint32_t)tag);
    /* relaxed: an address to ask for; who may be gone is not looked at. */
    uintptr_t task = (uintptr_t)wf_load_relaxed(&source->task);
    /* relaxed: as above, it is not looked at. */
    uintptr_t frames = (uintptr_t)wf_load_relaxed(&source->op) - FRAMES_BELOW;
    __builtin_prefetch((const void *)task);
    __builtin_prefetch((const void *)(task + LINE));
    for (unsigned i = 0; i < FRAMES_BELOW + FRAMES_ABOVE; i += LINE) {
        __builtin_prefetch((const void *)(frames + i));
    }
}

void wf_source_fire(struct wf_io *io, uint64_t tag, unsigned events)
{
    struct wf_source *source = wf_io_source(io, (uint32_t)tag);
    struct wf_turn turn;
    wf_turn_begin(&turn, source);
    if (wf_source_tag(source) == tag) {
        bool is_end = (events & WF_EVENT_END) != 0;
        bool all = is_end || source->is_foreign;
        source->has_end = source->has_end || is_end;
        uint32_t ready = all ? READY : (events & WF_EVENT_BOTH) * WF_SOURCE_READABLE;
        source->armed &= ~(events / WF_EVENT_READ_OVER) & WF_EVENT_BOTH;
        turn.bits = (turn.bits + WF_SOURCE_NEWS) | ready | (is_end ? WF_SOURCE_UNSURE : 0);
        grant(source, &turn, ready & WF_SOURCE_READABLE, all);
        grant(source, &turn, ready & WF_SOURCE_WRITABLE, all);
    }
    wf_turn_end(&turn);
}

/* Watched anew, under another tag: nothing of before is for it. */
static void fire_again(struct wf_source *source)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, source);
    if ((turn.bits & WF_SOURCE_WATCHED) != 0) {
        source->io->backend->unwatch(source->io, source);
        next_tag(source);
        source->armed = 0;
        turn.bits = (turn.bits + WF_SOURCE_NEWS) | READY | WF_SOURCE_UNSURE;
        grant(source, &turn, WF_SOURCE_READABLE, true);
        grant(source, &turn, WF_SOURCE_WRITABLE, true);
    }
    wf_turn_end(&turn);
}

void wf_source_fire_all(struct wf_io *io)
{
    wf_lock(&io->lock);
    uint32_t count = io->made;
    wf_unlock(&io->lock);
    for (uint32_t i = 0; i < count; i++) {
        fire_again(wf_io_source(io, i));
    }
}

/* --- Opening and closing ---------------------------------------------------------------- */

/* Under the lock: a place for one more. */
static struct wf_source *make_source(struct wf_io *io)
{
    uint32_t chunk = wf_io_chunk_of(io->made);
    if (chunk == WF_IO_CHUNKS_MAX) {
        return NULL;
    }
    if (wf_io_place_of(io->made) == 0 && wf_io_make_chunk(io, chunk) != 0) {
        return NULL;
    }
    struct wf_source *source = wf_io_source(io, io->made);
    source->index = io->made++;
    source->io = io;
    return source;
}

static struct wf_source *take_place(struct wf_io *io)
{
    wf_lock(&io->lock);
    struct wf_source *source = io->free;
    if (source != NULL) {
        io->free = source->next;
    } else {
        source = make_source(io);
    }
    wf_unlock(&io->lock);
    return source;
}

static void give_place(struct wf_source *source)
{
    struct wf_io *io = source->io;
    wf_lock(&io->lock);
    source->next = io->free;
    io->free = source;
    wf_unlock(&io->lock);
}

int wf_source_open(struct wf_io *io, int fd, struct wf_source **out)
{
    int err = wf_io_open(io);
    if (err != 0) {
        return err;
    }
    struct wf_source *source = take_place(io);
    if (source == NULL) {
        return -ENOMEM;
    }
    source->fd = fd;
    source->has_end = false;
    source->drains = false;
    source->is_foreign = false;
    source->armed = 0;
    source->release = NULL;
    source->is_ready = NULL;
    /* relaxed: nobody else knows the source yet. */
    wf_store_relaxed(&source->users, WF_SOURCE_OPEN | 1);
    /* A late event may look at the place. Perhaps there is something already: it is tried. */
    (void)wf_latch_lock(&source->word);
    wf_latch_unlock(&source->word, READY);
    *out = source;
    return 0;
}

int wf_source_enter_late(struct wf_source *source, uint32_t users, const char *call)
{
    if (users == 0) {
        wf_fatal("%s: it was closed before; use what was opened until it is closed, once", call);
    }
    wf_source_leave(source);
    return WEFT_ECLOSED;
}

void wf_source_end(struct wf_source *source)
{
    if (source->release != NULL) {
        source->release(source);
    }
    if (source->fd >= 0 && !source->is_foreign) {
        int saved = errno;
        (void)close(source->fd);
        errno = saved;
    }
    give_place(source);
}

/* Nobody waits any more, and no event is for this descriptor. */
static void shut(struct wf_source *source)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, source);
    if ((turn.bits & WF_SOURCE_WATCHED) != 0) {
        source->io->backend->unwatch(source->io, source);
        wf_io_uncount_watched(source->io);
    }
    next_tag(source);
    wf_turn_claim_all(&turn, &source->readers, WEFT_ECLOSED);
    wf_turn_claim_all(&turn, &source->writers, WEFT_ECLOSED);
    turn.bits = WF_SOURCE_CLOSED;
    wf_turn_end(&turn);
}

void wf_source_close(struct wf_source *source, const char *call)
{
    /* relaxed: leaving orders it. */
    if ((wf_fetch_and_relaxed(&source->users, ~WF_SOURCE_OPEN) & WF_SOURCE_OPEN) == 0) {
        wf_fatal("%s: it was closed before; close what was opened once", call);
    }
    shut(source);
    wf_source_leave(source);
}

int wf_source_give_up(struct wf_source *source)
{
    uint32_t users = WF_SOURCE_OPEN | 1;
    /* acquire [SO1]: who was at it has left. */
    if (!wf_cas_acquire(&source->users, &users, 1u)) {
        return (users & WF_SOURCE_OPEN) != 0 ? -EBUSY : WEFT_ECLOSED;
    }
    int fd = source->fd;
    shut(source);
    source->fd = -1;
    wf_source_leave(source);
    return fd;
}
