/* SPDX-License-Identifier: MIT */
/*
 * liburing.h - of liburing, what src/io/uring.c calls, for the kernel of port/uring.c.
 *
 * The queue of entries to hand over is plain memory, as it is in the library: who does not hold
 * the lock of the ring is found. The queue of completions is the kernel's, as is its tail.
 */
#ifndef MODEL_LIBURING_H
#define MODEL_LIBURING_H

#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"

#ifndef _NSIG
#define _NSIG 65
#endif

enum {
    MODEL_ENTRIES = 2,
    MODEL_COMPLETIONS = 16,
};

struct io_uring_sq {
    _Atomic(uint32_t) *kflags;
    unsigned *khead; /* sqe_head: the kernel takes all it is given */
    unsigned sqe_head;
    unsigned sqe_tail;
    unsigned ring_mask;
    struct io_uring_sqe *sqes;
};

struct io_uring_cq {
    _Atomic(uint32_t) *khead;
    _Atomic(uint32_t) *ktail;
    _Atomic(uint32_t) *koverflow;
    struct io_uring_cqe *cqes;
};

struct io_uring {
    struct io_uring_sq sq;
    struct io_uring_cq cq;
    int ring_fd;
};

int io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                               struct io_uring_params *params);
void io_uring_queue_exit(struct io_uring *ring);
int io_uring_submit(struct io_uring *ring);

#define IO_URING_READ_ONCE(var)      wf_load_relaxed(&(var))
#define io_uring_smp_load_acquire(p) wf_load_acquire(p)

/* NULL, or the entry behind this head. */
static inline struct io_uring_cqe *model_next_cqe(struct io_uring *ring, unsigned head)
{
    return head == wf_load_acquire(ring->cq.ktail) ? NULL
                                                   : &ring->cq.cqes[head % MODEL_COMPLETIONS];
}

#define io_uring_for_each_cqe(ring, head, cqe)                                                     \
    for ((head) = wf_load_relaxed((ring)->cq.khead); ((cqe) = model_next_cqe(ring, head)) != NULL; \
         (head)++)

static inline void io_uring_cq_advance(struct io_uring *ring, unsigned count)
{
    if (count > 0) {
        wf_store_release(ring->cq.khead, wf_load_relaxed(ring->cq.khead) + count);
    }
}

static inline unsigned io_uring_sq_ready(const struct io_uring *ring)
{
    return ring->sq.sqe_tail - ring->sq.sqe_head;
}

static inline struct io_uring_sqe *io_uring_get_sqe(struct io_uring *ring)
{
    struct io_uring_sq *queue = &ring->sq;
    if (queue->sqe_tail - queue->sqe_head == MODEL_ENTRIES) {
        return NULL;
    }
    return &queue->sqes[queue->sqe_tail++ & queue->ring_mask];
}

static inline void model_prepare(struct io_uring_sqe *entry, int opcode, int fd)
{
    memset(entry, 0, sizeof *entry);
    entry->opcode = (uint8_t)opcode;
    entry->fd = fd;
}

static inline void io_uring_prep_poll_add(struct io_uring_sqe *entry, int fd, unsigned mask)
{
    model_prepare(entry, IORING_OP_POLL_ADD, fd);
    entry->poll32_events = mask;
}

static inline void io_uring_prep_poll_multishot(struct io_uring_sqe *entry, int fd, unsigned mask)
{
    io_uring_prep_poll_add(entry, fd, mask);
    entry->len = IORING_POLL_ADD_MULTI;
}

static inline void io_uring_prep_nop(struct io_uring_sqe *entry)
{
    model_prepare(entry, IORING_OP_NOP, -1);
}

static inline void io_uring_prep_cancel64(struct io_uring_sqe *entry, uint64_t data, int flags)
{
    model_prepare(entry, IORING_OP_ASYNC_CANCEL, -1);
    entry->addr = data;
    entry->cancel_flags = (uint32_t)flags;
}

static inline void io_uring_sqe_set_data64(struct io_uring_sqe *entry, uint64_t data)
{
    entry->user_data = data;
}

#endif
