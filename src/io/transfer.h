/* SPDX-License-Identifier: MIT */
/*
 * transfer.h - an operation of I/O (weft_io): it tries, and waits until it may try again.
 *
 * A kind of operation says how to try, and what to wait for when that was in vain. All that
 * calls have in common comes from here and from weft_await(): that fibers, bodies and threads
 * can wait for them, deadlines, cancellation, and that nobody goes on for ever while there is
 * always something to do.
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

/* What an attempt may say beside a result. */
enum {
    WF_TRANSFER_MORE = INT_MIN + 2, /* it has done a part: once more */
};

struct wf_transfer_ops {
    /* Begins to use the object: 0, or the result. And ends. Of most kinds wf_transfer_enter() and
     * wf_transfer_leave(). */
    int (*enter)(struct wf_transfer *self);
    void (*leave)(struct wf_transfer *self);
    /* A result; WF_TRANSFER_MORE; or WEFT_PENDING: then waits_for is what to wait for first. */
    int (*attempt)(struct wf_transfer *self);
};

/* As weft_io. */
struct wf_transfer {
    weft_future future;
    const struct wf_transfer_ops *ops;
    weft_future *waits_for;   /* NULL: nothing, it may try */
    weft_op wait;             /* to be that; its flag says that a try follows */
    void *object;             /* a handle; or what else the kind has */
    struct wf_source *source; /* of the handle, while it is used */
    struct iovec own;         /* a single buffer */
    struct iovec *vectors;
    int count;
    int flags;
    size_t done;
    uint64_t room[6]; /* the kind's */
    /* NULL; or it ends like one that is cancelled when this is not 0. Its setter wakes the task. */
    const _Atomic(int) *stop;
    bool is_in;     /* uses the object */
    bool cancelled; /* must not wait again */
};

_Static_assert(sizeof(struct wf_transfer) <= sizeof(weft_io), "weft_io is too small");

/* Prepares one; the kind's members are zero. */
struct wf_transfer *wf_transfer_init(weft_io *io, const struct wf_transfer_ops *ops, void *object);

/* Enters the source of the handle, and leaves it. */
int wf_transfer_enter(struct wf_transfer *self);
void wf_transfer_leave(struct wf_transfer *self);

/* In an attempt that was in vain: waits for the source (WF_SOURCE_READABLE, WF_SOURCE_WRITABLE). */
int wf_transfer_wait(struct wf_transfer *self, uint32_t what);

/* Waits for it, in the call of that name, on a fiber or a plain thread. */
int wf_transfer_await(weft_io *io, weft_time deadline, const char *call);

/* What ends a call that is made of several transfers. */
struct wf_transfer_end {
    weft_time deadline;
    const _Atomic(int) *stop; /* NULL: nothing else */
};

/* The same for one of them. */
int wf_transfer_await_end(weft_io *io, const struct wf_transfer_end *end, const char *call);

#endif
