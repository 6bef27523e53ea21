/* SPDX-License-Identifier: MIT */
/*
 * transfer.h - I/O operation (weft_io): tries a system call, and waits until it may try again.
 *
 * A kind of operation defines the try, and what to wait for when the try cannot proceed.
 * Everything that I/O calls have in common comes from this file and from weft_await(): waiting
 * on fibers, stackless tasks and threads, deadlines, cancellation, and yielding when an
 * operation could continue without end.
 */
#ifndef WF_IO_TRANSFER_H
#define WF_IO_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include <weft/io.h>

#include "base/atomic.h"

struct wf_source;
struct wf_transfer;

/* Result of an attempt that is not the result of the operation. */
enum {
    WF_TRANSFER_MORE = INT_MIN + 2, /* a part is done: try again */
};

struct wf_transfer_ops {
    /* Begin and end the use of the object. enter returns 0, or the result of the operation.
     * Most kinds use wf_transfer_enter() and wf_transfer_leave(). */
    int (*enter)(struct wf_transfer *self);
    void (*leave)(struct wf_transfer *self);
    /* Returns a result, WF_TRANSFER_MORE, or WEFT_PENDING: waits_for is then to be awaited
     * first. */
    int (*attempt)(struct wf_transfer *self);
};

/* The contents of a weft_io. */
struct wf_transfer {
    weft_future future;
    const struct wf_transfer_ops *ops;
    weft_future *waits_for;   /* NULL: nothing, the next attempt may start */
    weft_op wait;             /* storage for waits_for; its flag says that a try follows */
    void *object;             /* a handle, or an object of the kind */
    struct wf_source *source; /* of the handle, while it is used */
    struct iovec own;         /* a single buffer */
    struct iovec *vectors;
    int count;
    int flags;
    size_t done;
    uint64_t room[6]; /* for the kind */
    /* If not NULL: the operation ends as if canceled once this is nonzero. The setter wakes the
     * task. */
    const _Atomic(int) *stop;
    bool is_in;     /* the object is in use */
    bool cancelled; /* must not wait again */
};

_Static_assert(sizeof(struct wf_transfer) <= sizeof(weft_io), "weft_io is too small");

/* Initializes a transfer. The kind's members are zero. */
struct wf_transfer *wf_transfer_init(weft_io *io, const struct wf_transfer_ops *ops, void *object);

/* Enter and leave the source of the handle. */
int wf_transfer_enter(struct wf_transfer *self);
void wf_transfer_leave(struct wf_transfer *self);

/* Prepares to wait for the source (WF_SOURCE_READABLE, WF_SOURCE_WRITABLE), in an attempt that
 * cannot proceed. */
int wf_transfer_wait(struct wf_transfer *self, uint32_t what);

/* Waits for the operation, in the call of the given name, on a fiber or a plain thread. */
int wf_transfer_await(weft_io *io, weft_time deadline, const char *call);

/* The conditions that end a call of several transfers early. */
struct wf_transfer_end {
    weft_time deadline;
    const _Atomic(int) *stop; /* NULL: only the deadline */
};

/* Same as wf_transfer_await(), for one transfer of such a call. */
int wf_transfer_await_end(weft_io *io, const struct wf_transfer_end *end, const char *call);

#endif
