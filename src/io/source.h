/* SPDX-License-Identifier: MIT */
/*
 * source.h - a descriptor that tasks wait at, and what is known of it. The protocol is in
 * source.c.
 */
#ifndef WF_IO_SOURCE_H
#define WF_IO_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include <weft/op.h>

#include "base/atomic.h"
#include "base/latch.h"
#include "sched/waitq.h"

struct wf_io;

enum {
    /* In the word, above the latch. What may be done without waiting, as far as known: */
    WF_SOURCE_READABLE = 1 << WF_LATCH_SHIFT,
    WF_SOURCE_WRITABLE = 2 << WF_LATCH_SHIFT,
    /* Somebody is in the queue. */
    WF_SOURCE_READERS = 4 << WF_LATCH_SHIFT,
    WF_SOURCE_WRITERS = 8 << WF_LATCH_SHIFT,
    /* There was an end, an error, urgent data: less than was wanted may not be all there is. */
    WF_SOURCE_UNSURE = 16 << WF_LATCH_SHIFT,
    WF_SOURCE_WATCHED = 32 << WF_LATCH_SHIFT, /* the backend knows it */
    WF_SOURCE_CLOSED = 64 << WF_LATCH_SHIFT,
    WF_SOURCE_NEWS = 128 << WF_LATCH_SHIFT, /* one: how often an event came, up to the top */

    WF_SOURCE_ALIGN = 64,
    WF_SOURCE_ROOM = 128,         /* bytes for who opens it */
    WF_SOURCE_SEQUENCE_BITS = 30, /* of its tag: a backend needs two bits */

    /* Of a handle: which source; the generation is above. */
    WF_SOURCE_INDEX_BITS = 24,
#ifdef WF_MODEL
    WF_SOURCE_CHUNK_BITS = 0,
    WF_SOURCE_BLOCK = 1,
    WF_SOURCE_CHUNKS_MAX = 2,
#else
    WF_SOURCE_CHUNK_BITS = 10, /* sources that the table grows by */
    WF_SOURCE_BLOCK = 64,      /* sources that a runtime takes at a time */
    WF_SOURCE_CHUNKS_MAX = 1 << (WF_SOURCE_INDEX_BITS - WF_SOURCE_CHUNK_BITS),
#endif
};

/*
 * The word that counts the users of a source.
 *
 *    63                     24   23   22               0
 *   | generation               | OPEN | users           |
 *
 * The owner is a user until the source is closed. A handle has the same generation in the same
 * bits, and the index of the source in place of the rest.
 */
#define WF_SOURCE_OPEN       (UINT64_C(1) << 23)
#define WF_SOURCE_USERS_MAX  (WF_SOURCE_OPEN - 1)
#define WF_SOURCE_GENERATION (~UINT64_C(0) << WF_SOURCE_INDEX_BITS)

/*
 * A call that uses a source while it waits for another one, such as a copy: a close of the source
 * sets *stop to WEFT_ECLOSED, if that is 0, and wakes the task of the call. In the frame of the
 * call.
 */
struct wf_source_guard {
    struct wf_source_guard *next; /* under the latch, as what follows */
    weft_waker *waker;            /* NULL: it was fired */
    _Atomic(int) *stop;
};

/*
 * Never freed, and never anything but a source: a late call finds a source, perhaps another's,
 * and the generation says so. What a transfer and its events need is in one line of the cache, up
 * to the first word of the room: of a thousand connections each line is another one to be fetched.
 */
struct wf_source {
    _Alignas(WF_SOURCE_ALIGN) _Atomic(uint32_t) word; /* latch, and what is above */
    int fd;                                           /* constant while open */
    _Atomic(uint64_t) users;    /* see above; any thread. The last user to leave ends it */
    struct wf_waitq readers;    /* under the latch */
    _Atomic(const void *) op;   /* who waited last, perhaps gone: lines to ask for, see batch.c */
    _Atomic(const void *) task; /* the same */
    _Atomic(uint32_t) sequence; /* how often the place was used; under the latch */
    uint8_t armed : 2;          /* under the latch: which events will come, some of BOTH */
    bool has_end : 1;           /* under the latch: there was an end, or an error */
    uint8_t kind;               /* constant while open: for who has opened it */
    bool drains;                /* constant while open: less than asked for is all there was */
    bool is_foreign;            /* constant while open: a library's, see fd.c */
    unsigned char room[WF_SOURCE_ROOM];
    struct wf_waitq writers;        /* under the latch */
    uint32_t home[2];               /* under the latch, the backend's: where it is watched */
    int proxies[2];                 /* under the latch: see proxy.c; 0, or a descriptor plus 1 */
    bool wants_proxy;               /* constant while open: a ring must not hold its descriptor */
    struct wf_source_guard *guards; /* under the latch: calls that wait elsewhere */
    struct wf_io *io;               /* constant while its block is taken */
    struct wf_source *next;         /* in the list of free ones */
    /* What it is, to who has opened it: called by the last user, before the end. */
    void (*release)(struct wf_source *source);
    /* Under the latch: would a try say something? NULL: the kernel knows. */
    bool (*is_ready)(struct wf_source *source, uint32_t what);
    struct wf_source *next_block; /* of the first one of a block: in the list of its runtime */
    uint32_t index;               /* constant: in the table */
};

/* The table of all sources of the process, see table.c. Each is constant once it is there. */
extern _Atomic(struct wf_source *) wf_source_chunks[WF_SOURCE_CHUNKS_MAX];

static inline struct wf_source *wf_source_at(uint32_t index)
{
    /* relaxed: the caller got an index or a handle after the source was made, and what has brought
     * it, a lock, the kernel or the program, brings this as well. */
    struct wf_source *chunk = wf_load_relaxed(&wf_source_chunks[index >> WF_SOURCE_CHUNK_BITS]);
    return chunk + (index & ((1u << WF_SOURCE_CHUNK_BITS) - 1));
}

/* The source that a handle is of, or was of. */
static inline struct wf_source *wf_source_of(const void *handle)
{
    return wf_source_at((uint32_t)((uintptr_t)handle & ~WF_SOURCE_GENERATION));
}

/*
 * Opens a source for a descriptor, which must not block. wf_source_close() closes the descriptor,
 * too. The opener is a user until wf_source_publish() or wf_source_abandon(): the runtime may close
 * the source before the opener has finished with it. -ENOMEM, -EMFILE, WEFT_ESHUTDOWN and other
 * errors of a backend; the descriptor is the caller's then.
 */
int wf_source_open(struct wf_io *io, int fd, struct wf_source **out);

/* The handle of a source that is open. */
static inline void *wf_source_handle(const struct wf_source *source)
{
    /* relaxed: the generation is constant while it is open. */
    uint64_t generation = wf_load_relaxed(&source->users) & WF_SOURCE_GENERATION;
    return (void *)(uintptr_t)(generation | source->index);
}

/*
 * Closes it: waiters and later calls get WEFT_ECLOSED. The descriptor is closed when the last user
 * has left: now, if there is none. Does nothing if it was closed before.
 */
void wf_source_close(const void *handle);

/* The same by a user, but the descriptor stays open, and is returned; the user has left then.
 * -EBUSY: there is another user. */
int wf_source_give_up(struct wf_source *source);

/* Closes all sources of a runtime, which has no tasks any more, and waits until the calls of plain
 * threads and of other runtimes' tasks that are in progress have left them. */
void wf_source_close_all(struct wf_io *io);

/* Enters it, for a call: it is not closed in between. WEFT_ECLOSED: it is. -EBUSY: too many
 * calls. */
int wf_source_enter_late(uint64_t users, uint64_t open) __attribute__((cold));
void wf_source_end(struct wf_source *source);

static inline int wf_source_enter(const void *handle, struct wf_source **out)
{
    struct wf_source *source = wf_source_of(handle);
    *out = source; /* Also if it is closed: so compilers need not know when it is set. */
    uint64_t open = ((uintptr_t)handle & WF_SOURCE_GENERATION) | WF_SOURCE_OPEN;
    /* relaxed: the exchange sees whether it is true. */
    uint64_t users = wf_load_relaxed(&source->users);
    while (wf_likely(users - open < WF_SOURCE_USERS_MAX)) {
        /* relaxed: close counts by the same word. */
        if (wf_likely(wf_cas_weak_relaxed(&source->users, &users, users + 1))) {
            return 0;
        }
    }
    int err = wf_source_enter_late(users, open);
    if (err == 0) {
        __builtin_unreachable(); /* Saves a test of the result in each caller. */
    }
    return err;
}

static inline void wf_source_leave(struct wf_source *source)
{
    /* acq_rel [SO1]: the last one sees that all others have left. */
    if (wf_unlikely((wf_fetch_sub_acq_rel(&source->users, 1) & ~WF_SOURCE_GENERATION) == 1)) {
        wf_source_end(source);
    }
}

/* By a user: links a guard, or sets *stop if the source is closed. And unlinks it. The waker is
 * the guard's. */
void wf_source_guard_add(struct wf_source *source, struct wf_source_guard *guard);
void wf_source_guard_remove(struct wf_source *source, struct wf_source_guard *guard);

/* The opener is done: returns the handle, and leaves. The descriptor is owned from now on. */
void *wf_source_publish(struct wf_source *source);

/* The opener has failed: closes the source, and leaves. */
static inline void wf_source_abandon(struct wf_source *source)
{
    wf_source_close(wf_source_handle(source));
    wf_source_leave(source);
}

/*
 * To read (or write): begin says what is known; try the system call; and then tell: it was
 * exhausted, so that the next one has to wait; or not, and somebody else may try.
 */
static inline uint32_t wf_source_look(const struct wf_source *source)
{
    /* acquire [E1]: what an event has told of is found by the system call that follows. */
    return wf_load_acquire(&source->word);
}
void wf_source_exhausted(struct wf_source *source, uint32_t seen, uint32_t what);
void wf_source_pass_on(struct wf_source *source, uint32_t what);

/* The same, after a system call that has failed: what it has said, -EAGAIN if it was exhausted. */
int wf_source_failed(struct wf_source *source, uint32_t seen, uint32_t what);

/* The same, after a system call that has moved count of wanted bytes. */
static inline void wf_source_moved(struct wf_source *source, uint32_t seen, uint32_t what,
                                   size_t count, size_t wanted)
{
    if (source->drains && count < wanted && (seen & WF_SOURCE_UNSURE) == 0) {
        wf_source_exhausted(source, seen, what);
    } else if (wf_unlikely((seen & (WF_SOURCE_READERS | WF_SOURCE_WRITERS)) != 0)) {
        wf_source_pass_on(source, what);
    }
}

/* Prepares to wait until it may be read (WF_SOURCE_READABLE) or written, by a user, who tries then
 * and calls wf_source_moved() or the like: 0, WEFT_ECLOSED, or what a backend says. A wait for a
 * foreign descriptor may be for both. */
void wf_source_wait_init(weft_op *op, struct wf_source *source, uint32_t what);

/* The same for a caller that is no user and does not try: the handle is checked when it waits. */
void wf_source_ready_init(weft_op *op, const void *handle, uint32_t what);

/* As wf_source_wait_init(), and waits for that, where there is a stack. */
int wf_source_await(struct wf_source *source, uint32_t what, weft_time deadline, const char *call);

/* The backend knows it from now on; else from the first wait on. */
int wf_source_watch(struct wf_source *source);

/* A backend, any thread: an event came for the source with this tag. */
enum {
    WF_EVENT_READ = 1,
    WF_EVENT_WRITE = 2,
    WF_EVENT_BOTH = 3,
    WF_EVENT_END = 4,       /* of the other side; an error; urgent data */
    WF_EVENT_READ_OVER = 8, /* armed for that no more */
    WF_EVENT_WRITE_OVER = 16,
};
void wf_source_fire(struct wf_io *io, uint64_t tag, unsigned events);

/* Before that: asks for the lines of the source, and then for those of who waits there. */
void wf_source_fetch(struct wf_io *io, uint64_t tag);
void wf_source_fetch_waiter(struct wf_io *io, uint64_t tag);

/* A backend, any thread: events were lost. Whoever waits tries, and waits anew. */
void wf_source_fire_all(struct wf_io *io);

/* Under the latch, or while nobody closes it. */
static inline uint64_t wf_source_tag(const struct wf_source *source)
{
    /* relaxed: written under the latch. */
    uint64_t sequence = wf_load_relaxed(&source->sequence) % (1u << WF_SOURCE_SEQUENCE_BITS);
    return sequence << 32 | source->index;
}

#endif
