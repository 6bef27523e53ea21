/* SPDX-License-Identifier: MIT */
/*
 * uring.c - rings of io_uring in the model, and what is polled in them: kernel.h's descriptors,
 * and an eventfd for each ring.
 *
 * All is under one lock, but for what the program reads without asking: the tails, and the flag
 * that there is something for a thread that comes by. What is polled belongs to the thread that
 * has handed it over; an event waits for that one to come by (cooperative task run), unless it
 * sleeps, or somebody interrupts all.
 */
#include "kernel.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mc.h"

enum {
    RINGS_MAX = 2,
    THREADS_MAX = 8,
    POLLS_MAX = 8,
    FIRST_EVENTFD = KERNEL_FIRST_FD + KERNEL_FDS,
    FIRST_RING = FIRST_EVENTFD + RINGS_MAX,
    FDS_MAX = FIRST_RING + RINGS_MAX,
};

struct entry {
    uint64_t data;
    int result;
    unsigned flags;
    unsigned owner;
};

struct poll_of {
    bool is_used;
    bool lasts;
    int fd;
    unsigned ring;
    unsigned owner;
    uint64_t data;
};

_Static_assert(sizeof(struct io_uring_cqe) == sizeof(uint64_t[2]), "");

struct ring_of {
    struct io_uring_sqe sqes[MODEL_ENTRIES];
    uint64_t cqes[MODEL_COMPLETIONS][2];
    _Atomic(uint32_t) flags;
    _Atomic(uint32_t) head; /* the program writes it */
    _Atomic(uint32_t) tail;
    _Atomic(uint32_t) overflow; /* so many were dropped */
    struct entry deferred[MODEL_COMPLETIONS];
    unsigned deferred_count;
};

static _Atomic(uint32_t) lock;
static _Atomic(uint32_t) open_count;
static struct ring_of rings[RINGS_MAX];
static unsigned ring_count;
static unsigned eventfd_count;
static struct poll_of polls[POLLS_MAX];
static bool is_readable[FDS_MAX];
static bool is_closed[FDS_MAX];
static _Atomic(uint32_t) polled[FDS_MAX]; /* how often; for who waits that it is not */

/* Threads, by their order of coming. */
static _Thread_local unsigned own_number;
static unsigned thread_count;
static bool sleeps[THREADS_MAX + 1];

static unsigned to_drop;

/* --- Completions ------------------------------------------------------------------------ */

static struct io_uring_cqe *cqes_of(struct ring_of *ring)
{
    return (struct io_uring_cqe *)ring->cqes;
}

static void post(unsigned index, const struct entry *entry)
{
    struct ring_of *ring = &rings[index];
    if (to_drop > 0) {
        to_drop--;
        wf_store_relaxed(&ring->overflow, wf_load_relaxed(&ring->overflow) + 1);
        return;
    }
    uint32_t tail = wf_load_relaxed(&ring->tail);
    mc_assert(tail - wf_load_acquire(&ring->head) < MODEL_COMPLETIONS);
    struct io_uring_cqe *cqe = &cqes_of(ring)[tail % MODEL_COMPLETIONS];
    cqe->user_data = entry->data;
    cqe->res = entry->result;
    cqe->flags = entry->flags;
    wf_store_release(&ring->tail, tail + 1);
    (void)mc_futex_wake(&ring->tail, 1);
}

/* What waits for this thread; for all of them, if it is none. */
static void deliver(unsigned owner)
{
    for (unsigned i = 0; i < ring_count; i++) {
        struct ring_of *ring = &rings[i];
        unsigned left = 0;
        for (unsigned at = 0; at < ring->deferred_count; at++) {
            if (owner == 0 || ring->deferred[at].owner == owner) {
                post(i, &ring->deferred[at]);
            } else {
                ring->deferred[left++] = ring->deferred[at];
            }
        }
        if (left == 0 && ring->deferred_count > 0) {
            wf_store_relaxed(&ring->flags, 0u);
        }
        ring->deferred_count = left;
    }
}

static void complete(unsigned index, const struct entry *entry)
{
    struct ring_of *ring = &rings[index];
    if (sleeps[entry->owner]) {
        post(index, entry);
        return;
    }
    ring->deferred[ring->deferred_count++] = *entry;
    wf_store_relaxed(&ring->flags, (uint32_t)IORING_SQ_TASKRUN);
}

/* --- Entering and leaving --------------------------------------------------------------- */

static unsigned enter(void)
{
    mc_await_exchange(&lock, 0, 1);
    if (own_number == 0) {
        own_number = ++thread_count;
        mc_assert(own_number <= THREADS_MAX);
    }
    deliver(own_number);
    return own_number;
}

static void leave(void)
{
    wf_store_release(&lock, 0u);
}

void kernel_thread_sleeps(bool does)
{
    unsigned self = enter();
    sleeps[self] = does;
    leave();
}

/* --- Descriptors ------------------------------------------------------------------------ */

static void end_poll(struct poll_of *poll)
{
    poll->is_used = false;
    (void)wf_fetch_sub_release(&polled[poll->fd], 1);
}

static void become_readable(int fd)
{
    is_readable[fd] = true;
    for (unsigned i = 0; i < POLLS_MAX; i++) {
        struct poll_of *poll = &polls[i];
        if (poll->is_used && poll->fd == fd) {
            complete(poll->ring,
                     &(struct entry){ poll->data, POLLIN, poll->lasts ? IORING_CQE_F_MORE : 0,
                                      poll->owner });
            if (!poll->lasts) {
                end_poll(poll);
            }
        }
    }
}

void kernel_drops(unsigned count)
{
    (void)enter();
    to_drop = count;
    leave();
}

void kernel_readable(int fd)
{
    (void)enter();
    become_readable(fd);
    leave();
}

void kernel_close(int fd)
{
    (void)enter();
    mc_assert(!is_closed[fd]);
    is_closed[fd] = true;
    leave();
}

void kernel_await_let_go(int fd)
{
    mc_await_exchange(&polled[fd], 0, 0);
}

unsigned kernel_open_count(void)
{
    return wf_load_relaxed(&open_count);
}

int eventfd(unsigned value, int flags)
{
    (void)value;
    (void)flags;
    (void)wf_fetch_add_relaxed(&open_count, 1);
    (void)enter();
    int fd = FIRST_EVENTFD + (int)eventfd_count++;
    leave();
    return fd;
}

int close(int fd)
{
    mc_assert(fd >= FIRST_EVENTFD);
    (void)wf_fetch_sub_relaxed(&open_count, 1);
    return 0;
}

ssize_t write(int fd, const void *data, size_t size)
{
    (void)data;
    kernel_readable(fd);
    return (ssize_t)size;
}

ssize_t read(int fd, void *data, size_t size)
{
    (void)data;
    (void)enter();
    bool was_readable = is_readable[fd];
    is_readable[fd] = false;
    leave();
    return was_readable ? (ssize_t)size : -1;
}

/* --- Rings ------------------------------------------------------------------------------ */

int io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                               struct io_uring_params *params)
{
    (void)entries;
    (void)enter();
    mc_assert(ring_count < RINGS_MAX);
    struct ring_of *of = &rings[ring_count];
    ring->ring_fd = FIRST_RING + (int)ring_count++;
    ring->sq = (struct io_uring_sq){ .kflags = &of->flags,
                                     .khead = &ring->sq.sqe_head,
                                     .ring_mask = MODEL_ENTRIES - 1,
                                     .sqes = of->sqes };
    ring->cq = (struct io_uring_cq){ &of->head, &of->tail, &of->overflow, cqes_of(of) };
    params->features = IORING_FEAT_EXT_ARG;
    leave();
    (void)wf_fetch_add_relaxed(&open_count, 1);
    return 0;
}

void io_uring_queue_exit(struct io_uring *ring)
{
    (void)close(ring->ring_fd);
}

static void add_poll(unsigned index, unsigned self, const struct io_uring_sqe *entry)
{
    bool lasts = (entry->len & IORING_POLL_ADD_MULTI) != 0;
    mc_assert(!is_closed[entry->fd]); /* It may be another's by now. */
    if (is_readable[entry->fd]) {
        post(index,
             &(struct entry){ entry->user_data, POLLIN, lasts ? IORING_CQE_F_MORE : 0, self });
        if (!lasts) {
            return;
        }
    }
    unsigned at = 0;
    while (polls[at].is_used) {
        at++;
        mc_assert(at < POLLS_MAX);
    }
    polls[at] = (struct poll_of){ true, lasts, entry->fd, index, self, entry->user_data };
    (void)wf_fetch_add_relaxed(&polled[entry->fd], 1);
}

static int cancel(unsigned index, unsigned self, uint64_t data)
{
    for (unsigned i = 0; i < POLLS_MAX; i++) {
        struct poll_of *poll = &polls[i];
        if (poll->is_used && poll->ring == index && poll->data == data) {
            post(index, &(struct entry){ data, -ECANCELED, 0, self });
            end_poll(poll);
            return 0;
        }
    }
    return -ENOENT;
}

int io_uring_submit(struct io_uring *ring)
{
    unsigned index = (unsigned)(ring->ring_fd - FIRST_RING);
    struct io_uring_sq *queue = &ring->sq;
    unsigned self = enter();
    int count = 0;
    for (; queue->sqe_head != queue->sqe_tail; queue->sqe_head++, count++) {
        const struct io_uring_sqe *entry = &queue->sqes[queue->sqe_head & queue->ring_mask];
        int result = 0;
        if (entry->opcode == IORING_OP_POLL_ADD) {
            add_poll(index, self, entry);
            continue;
        }
        if (entry->opcode == IORING_OP_ASYNC_CANCEL) {
            result = cancel(index, self, entry->addr);
        }
        post(index, &(struct entry){ entry->user_data, result, 0, self });
    }
    leave();
    return count;
}

/* Waits until there is one more than was taken out. */
static void wait_for_events(struct ring_of *ring)
{
    unsigned self = enter();
    uint32_t head = wf_load_relaxed(&ring->head);
    bool slept = sleeps[self];
    sleeps[self] = true;
    leave();
    while (wf_load_acquire(&ring->tail) == head) {
        (void)mc_futex_wait(&ring->tail, head, INT64_MAX);
    }
    (void)enter();
    sleeps[self] = slept;
    leave();
}

long syscall(long number, ...)
{
    if (number == SYS_membarrier) {
        (void)enter();
        deliver(0);
        leave();
        return 0;
    }
    mc_assert(number == SYS_io_uring_enter);
    va_list args;
    va_start(args, number);
    int fd = va_arg(args, int);
    (void)va_arg(args, int);
    unsigned wanted = va_arg(args, unsigned);
    va_end(args);
    if (wanted > 0) {
        wait_for_events(&rings[fd - FIRST_RING]);
    } else {
        (void)enter();
        leave();
    }
    return 0;
}
