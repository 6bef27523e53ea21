/* SPDX-License-Identifier: MIT */
/*
 * source.h - I/O source: a non-blocking descriptor with its readiness and its waiters. The
 * protocol is in source.c.
 */
#ifndef WF_IO_SOURCE_H
#define WF_IO_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include <weft/op.h>

#include "base/atomic.h"
#include "base/latch.h"
#include "sched/waitq.h"
#include "sched/worker.h"

struct wf_io;

enum {
    /* Bits of the word, above the latch. Known readiness: */
    WF_SOURCE_READABLE = 1 << WF_LATCH_SHIFT,
    WF_SOURCE_WRITABLE = 2 << WF_LATCH_SHIFT,
    /* The queue is not empty. */
    WF_SOURCE_READERS = 4 << WF_LATCH_SHIFT,
    WF_SOURCE_WRITERS = 8 << WF_LATCH_SHIFT,
    /* An end, an error or urgent data was reported: a short transfer may not have exhausted it. */
    WF_SOURCE_UNSURE = 16 << WF_LATCH_SHIFT,
    WF_SOURCE_WATCHED = 32 << WF_LATCH_SHIFT, /* registered with the backend */
    WF_SOURCE_CLOSED = 64 << WF_LATCH_SHIFT,
    WF_SOURCE_NEWS = 128 << WF_LATCH_SHIFT, /* unit of a counter of events, in all higher bits */

    WF_SOURCE_ALIGN = 64,
    WF_SOURCE_ROOM = 128,         /* bytes for the opener's state */
    WF_SOURCE_SEQUENCE_BITS = 30, /* of its tag; a backend uses the two top bits */

    /* A handle: index of the source in the low bits, generation above. */
    WF_SOURCE_INDEX_BITS = 24,
#ifdef WF_MODEL
    WF_SOURCE_CHUNK_BITS = 0,
    WF_SOURCE_BLOCK = 1,
    WF_SOURCE_CHUNKS_MAX = 2,
#else
    WF_SOURCE_CHUNK_BITS = 10, /* log2 of the sources that the table grows by */
    WF_SOURCE_BLOCK = 64,      /* sources that a runtime claims at a time */
    WF_SOURCE_CHUNKS_MAX = 1 << (WF_SOURCE_INDEX_BITS - WF_SOURCE_CHUNK_BITS),
#endif
};

/*
 * The word that counts the users of a source.
 *
 *      63                     24   23   22               0
 *     | generation               | OPEN | users           |
 *
 * The owner is a user until the source is closed. A handle has the same generation in the same
 * bits, and the index of the source in the other bits.
 */
#define WF_SOURCE_OPEN       (UINT64_C(1) << 23)
#define WF_SOURCE_USERS_MAX  (WF_SOURCE_OPEN - 1)
#define WF_SOURCE_GENERATION (~UINT64_C(0) << WF_SOURCE_INDEX_BITS)

/*
 * Links a call to a source that it uses while it waits for another one, such as a copy. Closing
 * the source sets *stop to WEFT_ECLOSED, unless *stop is nonzero, and wakes the task of the
 * call. It lives in the frame of the call.
 */
struct wf_source_guard {
    struct wf_source_guard *next; /* under the latch, like the other fields */
    weft_waker *waker;            /* NULL: it has been fired */
    _Atomic(int) *stop;
};

/*
 * A source is never freed, and its memory never holds anything else. So a late call always
 * finds a source, perhaps that of another descriptor, which the generation reveals. Everything
 * that a transfer and its events need is in one cache line, up to the first word of room: with
 * a thousand connections, each further line would be a cache miss.
 */
struct wf_source {
    _Alignas(WF_SOURCE_ALIGN) _Atomic(uint32_t) word; /* the latch, and the flags above it */
    int fd;                                           /* constant while open */
    _Atomic(uint64_t) users;    /* see above; any thread. The last user to leave ends the source */
    struct wf_waitq readers;    /* under the latch */
    _Atomic(const void *) op;   /* last waiter, perhaps gone: prefetched, see batch.c */
    _Atomic(const void *) task; /* its task, likewise */
    _Atomic(uint32_t) sequence; /* how often the slot was used; under the latch */
    uint8_t armed : 2;          /* under the latch: events that will be reported, subset of BOTH */
    bool has_end : 1;           /* under the latch: an end or an error was reported */
    uint8_t kind;               /* constant while open: for the opener */
    bool drains;                /* constant while open: a short transfer means that it is
                                 * exhausted */
    bool is_foreign;            /* constant while open: a library's descriptor, see fd.c */
    unsigned char room[WF_SOURCE_ROOM];
    struct wf_waitq writers;        /* under the latch */
    uint32_t home[2];               /* under the latch, the backend's: where it is watched */
    int proxies[2];                 /* under the latch: 0, or a descriptor plus 1, see proxy.c */
    bool wants_proxy;               /* constant while open: a ring must not hold its descriptor */
    struct wf_source_guard *guards; /* under the latch: calls that wait elsewhere */
    struct wf_io *io;               /* constant while the runtime owns its block */
    struct wf_source *next;         /* in the free list */
    /* Releases the opener's state. Called by the last user before the source ends. */
    void (*release)(struct wf_source *source);
    /* Under the latch: returns whether a try would not fail with EAGAIN. NULL: ask poll(2). */
    bool (*is_ready)(struct wf_source *source, uint32_t what);
    struct wf_source *next_block; /* first source of a block only: list of the runtime's blocks */
    uint32_t index;               /* constant: in the table */
};

/* The table of all sources of the process, see table.c. An entry is constant once it is set. */
extern _Atomic(struct wf_source *) wf_source_chunks[WF_SOURCE_CHUNKS_MAX];

static inline struct wf_source *wf_source_at(uint32_t index)
{
    /* relaxed: the caller got the index or handle after the source was made. The lock, kernel
     * call or program code that passed it on orders this load, too. */
    struct wf_source *chunk = wf_load_relaxed(&wf_source_chunks[index >> WF_SOURCE_CHUNK_BITS]);
    return chunk + (index & ((1u << WF_SOURCE_CHUNK_BITS) - 1));
}

/* Returns the source of a handle. It may be closed, or reused by another owner. */
static inline struct wf_source *wf_source_of(const void *handle)
{
    return wf_source_at((uint32_t)((uintptr_t)handle & ~WF_SOURCE_GENERATION));
}

/*
 * Opens a source for a non-blocking descriptor. wf_source_close() closes the descriptor, too.
 * The opener is a user until wf_source_publish() or wf_source_abandon(): the runtime may close
 * the source before the opener has finished with it. Fails with -ENOMEM, -EMFILE,
 * WEFT_ESHUTDOWN or other errors of a backend. The descriptor is then still the caller's.
 */
int wf_source_open(struct wf_io *io, int fd, struct wf_source **out);

/* Returns the handle of an open source. */
static inline void *wf_source_handle(const struct wf_source *source)
{
    /* relaxed: the generation is constant while it is open. */
    uint64_t generation = wf_load_relaxed(&source->users) & WF_SOURCE_GENERATION;
    return (void *)(uintptr_t)(generation | source->index);
}

/*
 * Closes the source: waiters and later calls get WEFT_ECLOSED. The last user to leave closes
 * the descriptor, which happens immediately if no call is in progress. Does nothing if the
 * source is already closed.
 */
void wf_source_close(const void *handle);

/* Same as wf_source_close(), but the caller takes over the owner's reference and leaves the source
 * itself. Returns NULL if the source is already closed. */
struct wf_source *wf_source_begin_close(const void *handle);

/* Same as wf_source_close(), by a user, but keeps the descriptor open and returns it. The user
 * has left the source then. Fails with -EBUSY if the source has another user. */
int wf_source_give_up(struct wf_source *source);

/* Closes all sources of a runtime that has no tasks any more. Waits until the calls in
 * progress, of plain threads and of other runtimes' tasks, have left them. */
void wf_source_close_all(struct wf_io *io);

/* Enters the source for a call: its descriptor is not closed until the call leaves. Fails with
 * WEFT_ECLOSED if the source is closed, with -EBUSY if too many calls use it. */
int wf_source_enter_late(uint64_t users, uint64_t open) __attribute__((cold));
void wf_source_end(struct wf_source *source);

static inline int wf_source_enter(const void *handle, struct wf_source **out)
{
    struct wf_source *source = wf_source_of(handle);
    *out = source; /* Set on failure, too, so that compilers see it initialized. */
    uint64_t open = ((uintptr_t)handle & WF_SOURCE_GENERATION) | WF_SOURCE_OPEN;
    /* relaxed: the CAS verifies it. */
    uint64_t users = wf_load_relaxed(&source->users);
    while (wf_likely(users - open < WF_SOURCE_USERS_MAX)) {
        /* relaxed: close changes the same word. */
        if (wf_likely(wf_cas_weak_relaxed(&source->users, &users, users + 1))) {
            return 0;
        }
    }
    int err = wf_source_enter_late(users, open);
    if (err == 0) {
        __builtin_unreachable(); /* saves a test of the result in each caller */
    }
    return err;
}

static inline void wf_source_leave(struct wf_source *source)
{
    /* acq_rel [SO1]: the last user sees that all others have left. */
    if (wf_unlikely((wf_fetch_sub_acq_rel(&source->users, 1) & ~WF_SOURCE_GENERATION) == 1)) {
        wf_source_end(source);
    }
}

/* Links a guard, or sets *stop if the source is closed; and unlinks it. The caller is a user.
 * The guard owns the waker. */
void wf_source_guard_add(struct wf_source *source, struct wf_source_guard *guard);
void wf_source_guard_remove(struct wf_source *source, struct wf_source_guard *guard);

/* Ends an open that succeeded: returns the handle, and the opener leaves. From now on the
 * source owns the descriptor. */
void *wf_source_publish(struct wf_source *source);

/* Ends an open that failed: closes the source, and the opener leaves. */
static inline void wf_source_abandon(struct wf_source *source)
{
    wf_source_close(wf_source_handle(source));
    wf_source_leave(source);
}

/*
 * To read or write, look at the readiness, try the system call, and report the outcome:
 * exhausted, so that the next caller has to wait, or not, so that another waiter may try.
 */
static inline uint32_t wf_source_look(const struct wf_source *source)
{
    /* acquire [E1]: the system call that follows finds what an event announced. */
    return wf_load_acquire(&source->word);
}
void wf_source_exhausted(struct wf_source *source, uint32_t seen, uint32_t what);
void wf_source_pass_on(struct wf_source *source, uint32_t what);

/* Reports a system call that failed. Returns its -errno, -EAGAIN if the descriptor was
 * exhausted. */
int wf_source_failed(struct wf_source *source, uint32_t seen, uint32_t what);

/* Reports a system call that transferred count of wanted bytes. */
static inline void wf_source_moved(struct wf_source *source, uint32_t seen, uint32_t what,
                                   size_t count, size_t wanted)
{
    wf_worker_count_bytes(count);
    if (source->drains && count < wanted && (seen & WF_SOURCE_UNSURE) == 0) {
        wf_source_exhausted(source, seen, what);
    } else if (wf_unlikely((seen & (WF_SOURCE_READERS | WF_SOURCE_WRITERS)) != 0)) {
        wf_source_pass_on(source, what);
    }
}

/* Prepares a wait until the descriptor is readable (WF_SOURCE_READABLE) or writable. The caller
 * is a user. It tries afterwards and reports by wf_source_moved() or a similar function. The
 * result is 0, WEFT_ECLOSED, or an error of the backend. A wait for a foreign descriptor may be
 * for both directions. */
void wf_source_wait_init(weft_op *op, struct wf_source *source, uint32_t what);

/* Same as wf_source_wait_init(), for a caller that is not a user and does not try: the handle
 * is checked when the operation waits. */
void wf_source_ready_init(weft_op *op, const void *handle, uint32_t what);

/* Same as wf_source_wait_init(), and waits for it. For callers with a stack. */
int wf_source_await(struct wf_source *source, uint32_t what, weft_time deadline, const char *call);

/* Registers the source with the backend, which otherwise happens at its first wait. */
int wf_source_watch(struct wf_source *source);

/* Reports events of the source with this tag. Called by a backend, on any thread. */
enum {
    WF_EVENT_READ = 1,
    WF_EVENT_WRITE = 2,
    WF_EVENT_BOTH = 3,
    WF_EVENT_END = 4,       /* of the peer; an error; urgent data */
    WF_EVENT_READ_OVER = 8, /* no longer armed for reading */
    WF_EVENT_WRITE_OVER = 16,
};
void wf_source_fire(struct wf_io *io, uint64_t tag, unsigned events);

/* Prefetch the source of an event to come, and then its waiter. */
void wf_source_fetch(struct wf_io *io, uint64_t tag);
void wf_source_fetch_waiter(struct wf_io *io, uint64_t tag);

/* Reports that events were lost: all waiters retry and wait again. Called by a backend, on any
 * thread. */
void wf_source_fire_all(struct wf_io *io);

/* Returns the tag. The caller holds the latch, or knows that no thread closes the source. */
static inline uint64_t wf_source_tag(const struct wf_source *source)
{
    /* relaxed: written under the latch. */
    uint64_t sequence = wf_load_relaxed(&source->sequence) % (1u << WF_SOURCE_SEQUENCE_BITS);
    return sequence << 32 | source->index;
}

#endif
