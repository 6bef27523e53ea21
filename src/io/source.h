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
};

/* In users. */
#define WF_SOURCE_OPEN (UINT32_C(1) << 31)

/*
 * Never freed while its runtime is there: who comes late finds a source, perhaps another's. What
 * a transfer and its events need is in one line of the cache, up to the first word of the room: of
 * a thousand connections each line is another one to be fetched.
 */
struct wf_source {
    _Alignas(WF_SOURCE_ALIGN) _Atomic(uint32_t) word; /* latch, and what is above */
    _Atomic(uint32_t) users;    /* OPEN, and how many are at it; the last one closes it */
    struct wf_waitq readers;    /* under the latch */
    _Atomic(const void *) op;   /* who waited last, perhaps gone: lines to ask for, see batch.c */
    _Atomic(const void *) task; /* the same */
    int fd;                     /* constant while open */
    uint32_t index;             /* constant: in the table */
    _Atomic(uint32_t) sequence; /* how often the place was used; under the latch */
    uint8_t armed : 2;          /* under the latch: which events will come, some of BOTH */
    bool has_end : 1;           /* under the latch: there was an end, or an error */
    uint8_t kind;               /* constant while open: for who has opened it */
    bool drains;                /* constant while open: less than asked for is all there was */
    bool is_foreign;            /* constant while open: a library's, see fd.c */
    unsigned char room[WF_SOURCE_ROOM];
    struct wf_waitq writers; /* under the latch */
    uint32_t home[2];        /* under the latch, the backend's: where it is watched */
    struct wf_io *io;        /* constant */
    struct wf_source *next;  /* in the list of free ones */
    /* What it is, to who has opened it: called by the last user, before the end. */
    void (*release)(struct wf_source *source);
    /* Under the latch: would a try say something? NULL: the kernel knows. */
    bool (*is_ready)(struct wf_source *source, uint32_t what);
};

/*
 * Makes a source of a descriptor, which must not block. It is in use by the caller until
 * wf_source_close(), which closes the descriptor, too. -ENOMEM, -EMFILE and what else a
 * backend may want; the descriptor is the caller's then.
 */
int wf_source_open(struct wf_io *io, int fd, struct wf_source **out);

/*
 * Closes it: who waits, and who comes, gets WEFT_ECLOSED. The descriptor is closed when the
 * last one has left: now, if nobody is at it.
 */
void wf_source_close(struct wf_source *source, const char *call);

/* The same, but the descriptor stays open, and is returned. -EBUSY: somebody is at it. */
int wf_source_give_up(struct wf_source *source);

/* For a call: the descriptor is not closed in between. WEFT_ECLOSED: it is. */
int wf_source_enter_late(struct wf_source *source, uint32_t users, const char *call)
    __attribute__((cold));
void wf_source_end(struct wf_source *source);

static inline int wf_source_enter(struct wf_source *source, const char *call)
{
    /* relaxed: who closes it counts by the same word. */
    uint32_t users = wf_fetch_add_relaxed(&source->users, 1);
    return wf_likely((users & WF_SOURCE_OPEN) != 0) ? 0 : wf_source_enter_late(source, users, call);
}

static inline void wf_source_leave(struct wf_source *source)
{
    /* acq_rel [SO1]: the last one sees that all others have left. */
    if (wf_unlikely(wf_fetch_sub_acq_rel(&source->users, 1) == 1)) {
        wf_source_end(source);
    }
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

/* Prepares to wait until it may be read (WF_SOURCE_READABLE) or written: 0, WEFT_ECLOSED, or
 * what a backend says. Is it ours: does a call of wf_source_moved() follow? */
void wf_source_wait_init(weft_op *op, struct wf_source *source, uint32_t what, bool is_ours);

/* Waits for that, where there is a stack; a call of wf_source_moved() follows. */
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
