/* SPDX-License-Identifier: MIT */
/*
 * source.c - I/O source: a non-blocking descriptor with its readiness and its waiters.
 *
 * A reader tries the system call first, and waits only if nothing is available. So data goes from
 * the kernel directly to the caller's buffer, a canceled call has consumed nothing, and the kernel
 * never owns a buffer. The word caches the descriptor's readiness, so that a reader does not
 * repeat a system call that failed with EAGAIN.
 *
 *   Read                                    Event, edge-triggered, any thread
 *   T1  look: READABLE?                     E1  latch; drop it if the tag is stale
 *   T2  if so, try. Success: done           E2  set READABLE; increment NEWS
 *   T3  EAGAIN: clear READABLE, unless      E3  grant to the first waiter
 *       NEWS has changed since T1
 *   T4  latch; if READABLE, go to T1;
 *       else enqueue
 *
 * Why no event is lost. Data that arrives after a failed try causes an event, whose E2 comes after
 * T1. If E2 comes before T3, T3 sees the changed NEWS and leaves READABLE set. If it comes between
 * T3 and T4, T4 sees READABLE. If it comes after T4, E3 finds the reader. One event may announce
 * data for several readers: the waiter that was granted it tries, and if it succeeds, it grants to
 * the next waiter (pass on).
 *
 * A short transfer on a connection or pipe means that the descriptor is exhausted, so T3 follows
 * immediately. The exception is UNSURE: an end, an error or urgent data is an event that may have
 * come before T1, and no other event follows.
 *
 * Handles. The program never holds a pointer to a source. It holds a handle: the index of the
 * source in a table whose memory is never freed (table.c), and a generation. One word of the source
 * holds its generation, whether it is OPEN, and the number of its users: the owner, until the
 * source is closed, and each call in progress. Each step is one atomic update of that word.
 *
 *   Enter, any thread                       Close, any thread
 *   N1  same generation and OPEN?           C1  same generation and OPEN? Clear OPEN.
 *   N2  if not: WEFT_ECLOSED                    If not: already closed, nothing to do
 *   N3  CAS: users + 1; if it fails: N1     C2  latch; CLOSED; wake all waiters; next tag
 *                                           C3  leave
 *   Leave, a user
 *   V1  users - 1                           Open, a free source, under io->lock
 *   V2  last user, and not OPEN?            O1  generation + 1, OPEN, two users
 *       Close the descriptor; free          O2  latch; clear CLOSED
 *
 * A stale handle has an older generation, or finds OPEN clear. N3 is a CAS of the whole word, so it
 * fails if the source was closed or reused after N1. A late call therefore never counts as a user
 * of the source's next owner, and no code has to expect it. The call returns WEFT_ECLOSED, and a
 * late close does nothing. Between C1 and V2, users that entered earlier still use the descriptor.
 * The last one to leave closes it, so the descriptor number is not reused while a call still uses
 * it. Only a free source is opened, and only users and the owner change the word of a source that
 * is not OPEN: so a store is enough for O1.
 *
 * Shutdown. When the last task of a runtime has ended, calls of plain threads and of tasks of other
 * runtimes may still be in progress. The closing thread refuses new sources and closes all
 * (close_all), which wakes these calls. Then it waits until the last user of each source has left.
 * Workers still run, so that the timers of these calls fire. Only then are the backend, the timers
 * and the scheduler freed, since a user may need them. A call may open a source itself (accept, or
 * a probe of peer.c). The opener is a second user until it publishes the handle, so a source that
 * is closed in the meantime stays intact. O1 and O2 are one critical section of io->lock, and so is
 * the check of is_closing: close_all finds a source as it is after O2, or the opener is refused.
 *
 * A wait for readiness without a try (ready_init) does not count as a user: it may be prepared long
 * before it is awaited, and then abandoned. Under the latch it checks that the source is OPEN and
 * has its generation. CLOSED alone is not enough: a second close returns after C1 of the first one,
 * perhaps before its C2, and a wait that follows must fail. If OPEN is set, the C2 still to come
 * finds the waiter. If O2 of a later source has cleared CLOSED, O1 of that source is visible, since
 * O2 released the latch.
 *
 * A generation is used once: a source that has used up its generations is not opened again. Events
 * carry a sequence number that changes with each descriptor in this slot of the table, so a late
 * event is dropped.
 *
 * Edges.
 * [SO1] leave releases users, the last user to leave acquires it: no call uses the descriptor
 *       any more when it is closed.
 * And latch.h's [E1]: the thread that handles an event releases the latch, and a look acquires it.
 * So the system call that follows the look finds what the event announced. Without this edge a
 * reader could see the new NEWS, and still the old state in the kernel.
 *
 * Rejected. Entering by an addition, and leaving again if the generation differs: the user count
 * of an unrelated source would be too high for a moment, and giving up its descriptor would fail
 * for no reason. One queue for readers and writers: readable data would wake a writer. Waking all
 * waiters: of many tasks that receive from one socket, all but one would be woken for nothing.
 * Buffers that the kernel fills (io_uring): ADR 13.
 *
 * Checked by tests/model/source_model.c.
 */
#include "io/source.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/futex.h"
#include "io/io.h"
#include "io/owned.h"
#include "io/table.h"
#include "sched/await.h"
#include "sched/op.h"

enum {
    READY = WF_SOURCE_READABLE | WF_SOURCE_WRITABLE,
    WAITED_FOR = WF_SOURCE_READERS | WF_SOURCE_WRITERS,
    NEWS_MASK = (int)~(uint32_t)(WF_SOURCE_NEWS - 1),
    LINE = 64,
    FRAMES_BELOW = 4 * LINE, /* stack frames of the calls that wait */
    FRAMES_ABOVE = 6 * LINE, /* the frame that prepared the operation, and the operation */
};

/* One set of bits converts to another by a multiplication or division. */
_Static_assert(WF_SOURCE_READABLE / WF_EVENT_READ == WF_SOURCE_WRITABLE / WF_EVENT_WRITE, "");
_Static_assert(WF_EVENT_READ_OVER / WF_EVENT_READ == WF_EVENT_WRITE_OVER / WF_EVENT_WRITE, "");

_Static_assert(sizeof(void *) == sizeof(uint64_t), "a handle has the size of a pointer");
_Static_assert(offsetof(struct wf_source, room) == WF_SOURCE_ALIGN - sizeof(void *),
               "the first word of the room is to be in the line before it");

/* Returns the flag of the queue that holds waiters for this. A waiter for both directions is in
 * the readers' queue. */
static uint32_t waiters_of(uint32_t what)
{
    return (what & WF_SOURCE_READABLE) != 0 ? WF_SOURCE_READERS : WF_SOURCE_WRITERS;
}

static struct wf_waitq *queue_of(struct wf_source *source, uint32_t what)
{
    return (what & WF_SOURCE_READABLE) != 0 ? &source->readers : &source->writers;
}

/* --- Waiting ---------------------------------------------------------------------------- */

/* Grants to the first waiter for this, or to all. The caller holds the latch. */
static inline void grant(struct wf_source *source, struct wf_turn *turn, uint32_t what, bool all)
{
    if (what == 0 || (turn->bits & waiters_of(what)) == 0) {
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

/* Asks the backend for an event when this becomes possible. The caller holds the latch. */
static int watch(struct wf_source *source, struct wf_turn *turn, uint32_t what)
{
    struct wf_io *io = source->io;
    if (wf_likely((source->armed * WF_SOURCE_READABLE & what) != 0)) {
        return 0;
    }
    bool is_first = (turn->bits & WF_SOURCE_WATCHED) == 0;
    if (is_first) { /* Before an event can come: workers do not poll while the count is 0. */
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

/* Asks the kernel, for a waiter that will not try itself. Readiness that arises after this
 * causes an event. */
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

/* Returns whether the source is open and of the handle's generation. */
static bool is_open(uint64_t users, const void *handle)
{
    uint64_t open = ((uintptr_t)handle & WF_SOURCE_GENERATION) | WF_SOURCE_OPEN;
    return users - open <= WF_SOURCE_USERS_MAX;
}

/* Returns whether the handle's source has been closed: the slot is not open, or holds another
 * source. The caller holds the latch. */
static bool is_stale(const struct wf_source *source, const void *handle)
{
    /* relaxed: open writes it before it releases the latch. A caller that knows of a close has seen
     * OPEN cleared, or was told by a thread that has. */
    uint64_t users = wf_load_relaxed(&source->users);
    return !is_open(users, handle);
}

/* Returns whether the operation's deadline, or that of the surrounding await, has passed. */
static bool is_late(const struct wf_op *op)
{
    return (op->time != WEFT_NEVER && wf_clock_now() >= op->time) || wf_await_is_late();
}

/* T4. */
static int wait_take(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_source *source = op->object;
    if ((turn->bits & WF_SOURCE_CLOSED) != 0 || (op->data != NULL && is_stale(source, op->data))) {
        return WEFT_ECLOSED;
    }
    if ((turn->bits & op->count) != 0) {
        if (op->flag || is_ready(source, op->count)) {
            return 0;
        }
        turn->bits &= ~op->count;
    }
    /* An event may be in flight, and readiness wins over a deadline that has passed. */
    if (wf_unlikely(is_late(op)) && is_ready(source, op->count)) {
        turn->bits |= op->count;
        return 0;
    }
    /* A foreign descriptor has one poll for both directions. */
    int err = watch(source, turn, source->is_foreign ? (uint32_t)WF_SOURCE_READABLE : op->count);
    return err != 0 ? err : WEFT_PENDING;
}

static void wait_enlist(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_source *source = op->object;
    turn->bits |= waiters_of(op->count);
    wf_op_enlist(op, queue_of(source, op->count));
    if (op->node.wait == &op->own) { /* Otherwise a select's, which may not have started yet. */
        /* relaxed: an address to prefetch, never dereferenced. */
        wf_store_relaxed(&source->op, (const void *)op);
        /* relaxed: as above, never dereferenced. */
        wf_store_relaxed(&source->task, (const void *)op->own.task);
    }
}

static void wait_leave(struct wf_op *op, struct wf_turn *turn)
{
    if (wf_waitq_is_empty(queue_of(op->object, op->count))) {
        turn->bits &= ~waiters_of(op->count);
    }
}

/* Passes the readiness on if the waiter did not try itself: it may be enough for another
 * waiter, too. An event of a foreign descriptor has been granted to all. */
static int wait_end(struct wf_op *op)
{
    struct wf_source *source = op->object;
    if (op->flag || op->result != 0) {
        return op->result;
    }
    if (op->data == NULL) { /* A user. */
        if (!source->is_foreign) {
            wf_source_pass_on(source, op->count);
        }
    } else if (wf_source_enter(op->data, &source) == 0) {
        wf_source_pass_on(source, op->count);
        wf_source_leave(source);
    }
    return 0;
}

static const struct wf_op_ops wait_ops = { .future = WF_OP_FUTURE,
                                           .take = wait_take,
                                           .enlist = wait_enlist,
                                           .leave = wait_leave,
                                           .end = wait_end };

void wf_source_wait_init(weft_op *op, struct wf_source *source, uint32_t what)
{
    struct wf_op *self = wf_op_init(op, &wait_ops, source);
    self->count = what;
    self->time = WEFT_NEVER;
    self->flag = true;
}

void wf_source_ready_init(weft_op *op, const void *handle, uint32_t what)
{
    struct wf_op *self = wf_op_init(op, &wait_ops, wf_source_of(handle));
    self->count = what;
    self->time = WEFT_NEVER;
    self->data = (void *)(uintptr_t)handle;
}

int wf_source_await(struct wf_source *source, uint32_t what, weft_time deadline, const char *call)
{
    weft_op op;
    wf_source_wait_init(&op, source, what);
    struct wf_op *self = (struct wf_op *)&op;
    self->time = deadline;
    return wf_op_await_inline(self, &wait_ops, deadline, call);
}

/* T3. The caller holds the latch, or the latch is free and a CAS follows. */
static bool is_old_news(uint32_t word, uint32_t seen)
{
    return ((word ^ seen) & (uint32_t)NEWS_MASK) == 0;
}

void wf_source_exhausted(struct wf_source *source, uint32_t seen, uint32_t what)
{
    /* relaxed: the CAS verifies it. */
    uint32_t word = wf_load_relaxed(&source->word);
    while (wf_latch_is_open(word) && is_old_news(word, seen)) {
        /* relaxed: the bit only repeats the result of a system call. */
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
    wf_source_pass_on(source, what); /* Other waiters need the error, too. */
    return -error;
}

/* Invalidates events with the previous tag. The caller holds the latch. */
static void next_tag(struct wf_source *source)
{
    /* relaxed: under the latch. */
    wf_store_relaxed(&source->sequence, wf_load_relaxed(&source->sequence) + 1);
}

void wf_source_fetch(struct wf_io *io, uint64_t tag)
{
    (void)io;
    __builtin_prefetch(wf_source_at((uint32_t)tag));
}

/* Prefetches the waiter's task, and, if it is a fiber, the stack frames around the operation. */
void wf_source_fetch_waiter(struct wf_io *io, uint64_t tag)
{
    (void)io;
    const struct wf_source *source = wf_source_at((uint32_t)tag);
    /* relaxed: an address to prefetch; the task may be gone and is not accessed. */
    uintptr_t task = (uintptr_t)wf_load_relaxed(&source->task);
    /* relaxed: as above, not accessed. */
    uintptr_t frames = (uintptr_t)wf_load_relaxed(&source->op) - FRAMES_BELOW;
    __builtin_prefetch((const void *)task);
    __builtin_prefetch((const void *)(task + LINE));
    for (unsigned i = 0; i < FRAMES_BELOW + FRAMES_ABOVE; i += LINE) {
        __builtin_prefetch((const void *)(frames + i));
    }
}

/* Returns the changing part of the tag. The index is in another cache line. */
static uint32_t sequence_of(const struct wf_source *source)
{
    /* relaxed: written under the latch. */
    return wf_load_relaxed(&source->sequence) % (1u << WF_SOURCE_SEQUENCE_BITS);
}

void wf_source_fire(struct wf_io *io, uint64_t tag, unsigned events)
{
    (void)io;
    struct wf_source *source = wf_source_at((uint32_t)tag);
    struct wf_turn turn;
    wf_turn_begin(&turn, source);
    if (sequence_of(source) == (uint32_t)(tag >> 32)) {
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

/* Notifies the waiters of a source and drops its watch. The next wait watches it under a new
 * tag, so that older events do not match. */
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
    struct wf_source *block = io->blocks;
    wf_unlock(&io->lock);
    for (; block != NULL; block = block->next_block) {
        for (uint32_t i = 0; i < WF_SOURCE_BLOCK; i++) {
            fire_again(block + i);
        }
    }
}

/* --- Opening and closing ---------------------------------------------------------------- */

/* Returns whether the source can be opened. It cannot if its generations are used up. */
static bool is_usable(const struct wf_source *source)
{
    /* relaxed: it is in no list, and not open. */
    uint64_t users = wf_load_relaxed(&source->users);
    return (users & ~WF_SOURCE_GENERATION) == 0 && users != WF_SOURCE_GENERATION;
}

/* Puts a source into the free list, if it is usable. The caller holds the lock. */
static void put_into_list(struct wf_io *io, struct wf_source *source)
{
    if (is_usable(source)) {
        source->next = io->free;
        io->free = source;
    }
}

/* Fills the free list, if memory is available. A block may have no usable source. The caller
 * holds the lock. */
static void take_block(struct wf_io *io)
{
    struct wf_source *block;
    while (io->free == NULL && (block = wf_table_take(io)) != NULL) {
        block->next_block = io->blocks;
        io->blocks = block;
        for (uint32_t i = WF_SOURCE_BLOCK; i > 0; i--) {
            put_into_list(io, block + i - 1);
        }
    }
}

/* Changes the count of sources in use and returns the new count. The caller holds the lock. */
static uint32_t count_in_use(struct wf_io *io, int change)
{
    /* relaxed: written under the lock. */
    uint32_t count = wf_load_relaxed(&io->in_use) + (uint32_t)change;
    /* relaxed: the lock orders it; the closing thread sleeps on it. */
    wf_store_relaxed(&io->in_use, count);
    return count;
}

/* Frees a source, after its last user has left. The runtime may be freed as soon as the lock is
 * released. */
static void give_place(struct wf_source *source)
{
    struct wf_io *io = source->io;
    wf_lock(&io->lock);
    put_into_list(io, source);
    bool is_awaited = count_in_use(io, -1) == 0 && io->is_closing;
    wf_unlock(&io->lock);
    if (is_awaited) {
        wf_futex_wake(&io->in_use, 1);
    }
}

/* O1: starts the next generation, with two users: the owner and the opener. */
static void open_users(struct wf_source *source)
{
    /* relaxed: the source is free, so no other thread writes the word. */
    uint64_t users = wf_load_relaxed(&source->users) + (UINT64_C(1) << WF_SOURCE_INDEX_BITS);
    /* relaxed: the handle is not known yet, and passing it on also publishes the source. */
    wf_store_relaxed(&source->users, users | WF_SOURCE_OPEN | 2);
}

/* Opens a free source. The caller holds the lock, which keeps wf_source_close_all() from seeing
 * the source before O2. */
static void open_free(struct wf_source *source, int fd)
{
    source->fd = fd;
    source->has_end = false;
    source->drains = false;
    source->is_foreign = false;
    source->wants_proxy = false;
    source->armed = 0;
    source->release = NULL;
    source->is_ready = NULL;
    source->guards = NULL;
    open_users(source);
    /* O2, under the latch since a late event may look at the source. Both directions count as
     * ready, so they are tried before the first wait. */
    (void)wf_latch_lock(&source->word);
    wf_latch_unlock(&source->word, READY);
}

/* Returns a free source, or NULL. The caller holds the lock. */
static struct wf_source *pop_free(struct wf_io *io)
{
    if (io->free == NULL) {
        take_block(io);
    }
    struct wf_source *source = io->free;
    if (source != NULL) {
        io->free = source->next;
        count_in_use(io, 1);
    }
    return source;
}

int wf_source_open(struct wf_io *io, int fd, struct wf_source **out)
{
    int err = wf_io_open(io);
    if (err != 0) {
        return err;
    }
    wf_lock(&io->lock);
    bool is_closing = io->is_closing;
    struct wf_source *source = is_closing ? NULL : pop_free(io);
    if (source != NULL) {
        open_free(source, fd);
    }
    wf_unlock(&io->lock);
    *out = source;
    return source != NULL ? 0 : is_closing ? WEFT_ESHUTDOWN : -ENOMEM;
}

void *wf_source_publish(struct wf_source *source)
{
    void *handle = wf_source_handle(source);
    if (!source->is_foreign) {
        (void)wf_owned_claim(source->fd);
    }
    wf_source_leave(source);
    return handle;
}

int wf_source_enter_late(uint64_t users, uint64_t open)
{
    return users - open == WF_SOURCE_USERS_MAX ? -EBUSY : WEFT_ECLOSED;
}

/* Releases the opener's state and closes the descriptor. */
static void let_go(struct wf_source *source)
{
    if (source->release != NULL) {
        source->release(source);
    }
    if (source->fd >= 0 && !source->is_foreign) {
        int saved = errno;
        wf_owned_release(source->fd);
        (void)close(source->fd);
        errno = saved;
    }
}

void wf_source_end(struct wf_source *source)
{
    let_go(source);
    give_place(source);
}

/* --- Guards ------------------------------------------------------------------------------- */

static void stop_by_close(const struct wf_source_guard *guard)
{
    int none = 0;
    /* relaxed: a plain number; the wake that follows orders it. */
    (void)wf_cas_relaxed(guard->stop, &none, WEFT_ECLOSED);
}

/* After C2: notifies one call that waits elsewhere. The guard may be gone once the latch is
 * released, so the waker is taken out first. Returns false if the source has no guard. */
static bool fire_guard(struct wf_source *source)
{
    weft_waker *waker = NULL;
    uint32_t word = wf_latch_lock(&source->word);
    struct wf_source_guard *guard = source->guards;
    if (guard != NULL) {
        source->guards = guard->next;
        stop_by_close(guard);
        waker = guard->waker;
        guard->waker = NULL;
    }
    wf_latch_unlock(&source->word, word);
    if (waker != NULL) {
        weft_waker_fire(waker);
    }
    return guard != NULL;
}

void wf_source_guard_add(struct wf_source *source, struct wf_source_guard *guard)
{
    uint32_t word = wf_latch_lock(&source->word);
    if ((word & WF_SOURCE_CLOSED) != 0) {
        stop_by_close(guard);
    } else {
        guard->next = source->guards;
        source->guards = guard;
    }
    wf_latch_unlock(&source->word, word);
}

void wf_source_guard_remove(struct wf_source *source, struct wf_source_guard *guard)
{
    uint32_t word = wf_latch_lock(&source->word);
    struct wf_source_guard **at = &source->guards;
    while (*at != NULL && *at != guard) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = guard->next;
    }
    wf_latch_unlock(&source->word, word);
    weft_waker_drop(guard->waker);
    guard->waker = NULL;
}

/* C2: wakes all waiters and invalidates later events. The caller holds the latch. */
static void end_waits(struct wf_source *source, struct wf_turn *turn)
{
    next_tag(source);
    wf_turn_claim_all(turn, &source->readers, WEFT_ECLOSED);
    wf_turn_claim_all(turn, &source->writers, WEFT_ECLOSED);
    turn->bits = WF_SOURCE_CLOSED;
}

static void shut(struct wf_source *source)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, source);
    if ((turn.bits & WF_SOURCE_WATCHED) != 0) {
        source->io->backend->unwatch(source->io, source);
        wf_io_uncount_watched(source->io);
    }
    end_waits(source, &turn);
    wf_turn_end(&turn);
    while (fire_guard(source)) {
    }
}

struct wf_source *wf_source_begin_close(const void *handle)
{
    struct wf_source *source = wf_source_of(handle);
    /* relaxed: the CAS verifies it. */
    uint64_t users = wf_load_relaxed(&source->users);
    do {
        if (!is_open(users, handle)) {
            return NULL;
        }
        /* relaxed: leave orders it. */
    } while (!wf_cas_weak_relaxed(&source->users, &users, users & ~WF_SOURCE_OPEN));
    shut(source);
    return source;
}

void wf_source_close(const void *handle)
{
    struct wf_source *source = wf_source_begin_close(handle);
    if (source != NULL) {
        wf_source_leave(source);
    }
}

/* Takes the source over if the caller is its only user; otherwise loads the word into *users. */
static bool take_over(struct wf_source *source, uint64_t *users, uint64_t taken)
{
    /* acquire [SO1]: all other users have left. */
    return wf_cas_acquire(&source->users, users, taken);
}

int wf_source_give_up(struct wf_source *source)
{
    /* relaxed: the CAS verifies it. */
    uint64_t users = wf_load_relaxed(&source->users);
    /* The caller and the owner. The caller takes over the owner's reference. */
    uint64_t alone = (users & WF_SOURCE_GENERATION) | WF_SOURCE_OPEN | 2;
    if (users != alone || !take_over(source, &users, alone - WF_SOURCE_OPEN - 1)) {
        return (users & WF_SOURCE_OPEN) != 0 ? -EBUSY : WEFT_ECLOSED;
    }
    int fd = source->fd;
    shut(source);
    wf_owned_release(fd);
    source->fd = -1;
    wf_source_leave(source);
    return fd;
}

/* Returns the next open source of the block, starting at *index, or NULL. The lock waits for an
 * opener that is between O1 and O2. */
static struct wf_source *next_open(struct wf_io *io, struct wf_source *block, uint32_t *index)
{
    struct wf_source *found = NULL;
    wf_lock(&io->lock);
    while (found == NULL && *index < WF_SOURCE_BLOCK) {
        struct wf_source *source = block + (*index)++;
        /* relaxed: a hint; closing it is a CAS that fails if it is not open any more. */
        bool is_open = (wf_load_relaxed(&source->users) & WF_SOURCE_OPEN) != 0;
        found = is_open ? source : NULL;
    }
    wf_unlock(&io->lock);
    return found;
}

/* Refuses new sources. Returns the list of blocks, which does not change any more. */
static struct wf_source *refuse_new(struct wf_io *io)
{
    wf_lock(&io->lock);
    io->is_closing = true;
    struct wf_source *blocks = io->blocks;
    wf_unlock(&io->lock);
    return blocks;
}

static void await_users(struct wf_io *io)
{
    for (;;) {
        wf_lock(&io->lock);
        /* relaxed: written under the lock. */
        uint32_t count = wf_load_relaxed(&io->in_use);
        wf_unlock(&io->lock);
        if (count == 0) {
            return;
        }
        (void)wf_futex_wait(&io->in_use, count, WF_NEVER);
    }
}

void wf_source_close_all(struct wf_io *io)
{
    struct wf_source *blocks = refuse_new(io);
    for (struct wf_source *block = blocks; block != NULL; block = block->next_block) {
        uint32_t index = 0;
        struct wf_source *source;
        while ((source = next_open(io, block, &index)) != NULL) {
            wf_source_close(wf_source_handle(source));
        }
    }
    await_users(io);
}
