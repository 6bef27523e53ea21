/* SPDX-License-Identifier: MIT */
/*
 * uring.c - io_uring backend: readiness events from one ring per worker.
 *
 * To wait for a descriptor, a task puts a poll request into the ring of its current worker. The
 * poll is one-shot: it ends with its first event. One system call submits the polls of many
 * tasks, when the worker checks for events or parks. A worker parks in its own ring while the
 * ring holds polls. It is woken through an eventfd, which the ring polls as well.
 *
 * The kernel delivers the completions of a thread's requests when that thread next enters the
 * kernel (cooperative task run), since interrupting the thread for each event costs more than
 * the event. So a worker that computes receives no events, and the polls in its ring may not
 * even be submitted yet. Both conditions are visible from outside (is_left), for all rings,
 * since workers submit for each other. A helper submits, makes the kernel interrupt all running
 * threads once (membarrier), and takes the events out of the rings. Rings have locks, so any
 * thread may use them. But only workers and the monitor submit; another thread submits only if a
 * ring is full. The runtime cannot tell whether a plain thread computes, and when a thread
 * exits, the kernel cancels everything that the thread has submitted. The waiters then retry and
 * wait again.
 *
 * A poll reports an end, an error or a half-close by the peer whether that was requested or not,
 * and it is level-triggered: each new poll completes immediately. A task that waits for another
 * condition, such as space to write while the peer still reads, would retry and wait in a busy
 * loop. So after the first such event, polls of the descriptor are multishot, which makes them
 * edge-triggered. Descriptors of libraries use multishot polls, too: one poll covers reading and
 * writing, and a task may have to wait for one direction while the other is ready. No other poll
 * requests urgent data: a socket announces it with every arrival, and a poll passes the
 * announcement on unchecked.
 *
 * A kernel that is out of memory accepts nothing for the moment (EAGAIN). The polls then stay in
 * the ring, and a worker that parks there sleeps only briefly and submits them again. A full ring
 * refuses further waits. A cancellation cannot be refused: if the ring is full, it goes into a
 * list, in which each poll reserved a slot when it was added. It moves into the ring as soon as
 * the kernel accepts an entry. If more events arrive at the same time than the ring can hold, the
 * kernel may drop some. Then every watched source is notified of an event and watched again,
 * under a new tag.
 *
 * Closing a descriptor takes effect only when the kernel has released the file, and polls hold
 * the file until they end. So the polls are canceled. (Not removed with a poll-remove request: a
 * multishot poll with an event in flight at that moment would survive.) For sockets that must be
 * closed when the process ends, see proxy.c.
 *
 * A thread that puts a poll into the ring of a parked worker wakes the worker:
 *
 *   Arm, another thread                     Park, the worker
 *   A1  increment polls                     P1  set own bit: parked
 *   A2  full fence                          P3  full fence
 *   A3  if it is parked, wake it            P4  if polls > 0, sleep in the ring, else on
 *                                               the futex
 *
 * A helper that takes events out of the ring of a sleeping worker stops at a wake. The wake stays
 * in the ring, and so do the events behind it: the worker does not sleep while an event is
 * pending, and takes them itself. If the worker does not sleep in the ring, the helper takes
 * wakes out as well. Such a wake is either late, or its worker is about to sleep and has not yet
 * acquired the ring's lock. Once it has the lock, it sees that it was woken.
 *
 * Rejected, with figures in docs/adr/0013-readiness.md: multishot polls for all descriptors,
 * reads by the kernel, one ring for all workers, delivery by interrupts, and delivery to a single
 * thread. Also rejected: a helper that takes a wake out and sends it again. It would have to arm
 * the wake poll first, and wait with the ring's lock held while the kernel accepts nothing.
 *
 * Edges: idle.c's [I1], the fences of A2 and P3.
 *
 * Checked by tests/model/uring_model.c.
 */
#ifdef WF_HAS_URING

#include <errno.h>
#include <liburing.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "io/call.h"
#include "io/batch.h"
#include "io/io.h"
#include "io/proxy.h"
#include "sched/idle.h"
#include "sched/sched.h"
#include "sched/worker.h"

enum {
    ENTRIES = 256,
    COMPLETIONS = 2048, /* the kernel stores overflowing completions elsewhere */
    DIRECTION_SHIFT = 62,
    PROXY_SHIFT = 63,
    CANCELS_MIN = 64,
    NAP_NS = 1000000, /* retry interval while the kernel accepts nothing */
};

/* user_data values that belong to no source. */
#define WAKE_DATA   (UINT64_MAX - 2)
#define CANCEL_DATA (UINT64_MAX - 1) /* a cancellation left to the ring's worker */
#define IGNORE_DATA UINT64_MAX

/* An event taken out of a ring. */
struct event {
    uint64_t data;
    int result;
    bool has_more; /* its poll is multishot and continues */
};

struct ring {
    struct wf_lock lock; /* guards the ring */
    struct io_uring uring;
    _Atomic(uint32_t) polls;   /* any thread: polls in the ring, submitted or not, plus
                                * cancellations left to the ring's worker */
    _Atomic(uint32_t) waiting; /* written under the lock: entries not submitted yet */
    _Atomic(uint32_t) taken;   /* written under the lock: events taken so far */
    int wake_fd;
    bool is_wake_armed; /* under the lock */
    bool is_slept_in;   /* under the lock: its worker sleeps in it, so wakes belong to the worker */
    uint64_t *cancels;  /* under the lock: polls to cancel once the ring has space */
    uint32_t cancel_count;
    uint32_t cancel_room; /* at least the number of polls that may have to be canceled */
    int64_t retry_at;     /* under the lock: when to offer refused entries again; 0: none refused */
    bool has_lost;        /* worker only: the kernel has dropped events */
    uint32_t losses;      /* worker only: number of dropped events so far */
    unsigned count;       /* worker only: fetched events that are not handled yet */
    struct event *caught; /* worker only */
};

static struct ring *ring_of(const struct wf_io_driver *driver)
{
    return driver->own;
}

/*
 * Reports that a system call fails although it worked when the backend was opened: a sandbox
 * has forbidden it since. The polls that the kernel holds cannot be moved to another backend.
 */
static _Noreturn void give_up(const char *call, int error)
{
    wf_fatal("%s: %s; it was possible when the runtime began with I/O. If a sandbox is entered "
             "later, allow io_uring there, or ask for WEFT_IO=epoll",
             call, weft_strerror(-error));
}

/* --- Submission ------------------------------------------------------------------------- */

static void prepare_cancel(struct io_uring_sqe *entry, uint64_t poll, uint64_t data)
{
    io_uring_prep_cancel64(entry, poll, 0);
    io_uring_sqe_set_data64(entry, data);
}

/* Moves cancellations from the list into the ring, oldest first. The caller holds the lock. */
static void refill(struct ring *ring)
{
    uint32_t moved = 0;
    struct io_uring_sqe *entry;
    while (moved < ring->cancel_count && (entry = io_uring_get_sqe(&ring->uring)) != NULL) {
        prepare_cancel(entry, ring->cancels[moved++], CANCEL_DATA);
    }
    if (moved > 0) {
        ring->cancel_count -= moved;
        memmove(ring->cancels, ring->cancels + moved, ring->cancel_count * sizeof *ring->cancels);
    }
}

/* Submits the pending entries. The caller holds the lock. A kernel that is out of memory
 * accepts only some of them, or none. The rest stays in the ring until retry_at. */
static void submit(struct ring *ring)
{
    int saved = errno;
    int submitted;
    do {
        refill(ring);
        submitted = io_uring_submit(&ring->uring);
        if (wf_unlikely(submitted < 0 && submitted != -EINTR && submitted != -EAGAIN &&
                        submitted != -EBUSY)) {
            give_up("io_uring_enter", -submitted);
        }
    } while (io_uring_sq_ready(&ring->uring) + ring->cancel_count > 0 &&
             (submitted > 0 || submitted == -EINTR));
    errno = saved;
    uint32_t left = io_uring_sq_ready(&ring->uring) + ring->cancel_count;
    /* relaxed: written under the lock; other threads read it as a hint. */
    wf_store_relaxed(&ring->waiting, left);
    ring->retry_at = left > 0 ? wf_clock_real() + NAP_NS : 0;
}

/* Submits pending entries, if any. The caller holds the lock. Refused entries are offered again
 * at most once per NAP_NS: a searching worker polls its ring in a loop and must not make a
 * system call in each round. */
static void hand_over(struct ring *ring)
{
    /* relaxed: written under the lock. */
    if (wf_load_relaxed(&ring->waiting) > 0 &&
        (wf_likely(ring->retry_at == 0) || wf_clock_real() >= ring->retry_at)) {
        submit(ring);
    }
}

/* Returns the next entry, which the caller fills, or NULL if the kernel accepts none for the
 * moment. The caller holds the lock. */
static struct io_uring_sqe *next_entry(struct ring *ring)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring->uring);
    if (entry == NULL) {
        submit(ring); /* Regardless of retry_at: without an entry the caller's operation fails. */
        entry = io_uring_get_sqe(&ring->uring);
    }
    if (entry != NULL) {
        /* relaxed: written under the lock. */
        wf_store_relaxed(&ring->waiting, wf_load_relaxed(&ring->waiting) + 1);
    }
    return entry;
}

/* Makes sure that count polls can be canceled even if the kernel accepts nothing. The caller
 * holds the lock. */
static int reserve_cancels(struct wf_io *io, struct ring *ring, uint32_t count)
{
    if (wf_likely(count <= ring->cancel_room)) {
        return 0;
    }
    const weft_allocator *allocator = &io->sched->options.allocator;
    uint32_t room = ring->cancel_room > 0 ? ring->cancel_room : CANCELS_MIN;
    while (room < count) {
        room *= 2;
    }
    uint64_t *cancels = wf_alloc_zeroed(allocator, room * sizeof *cancels, _Alignof(uint64_t));
    if (cancels == NULL) {
        return -ENOMEM;
    }
    if (ring->cancel_count > 0) {
        memcpy(cancels, ring->cancels, ring->cancel_count * sizeof *cancels);
    }
    wf_free(allocator, ring->cancels, ring->cancel_room * sizeof *cancels, _Alignof(uint64_t));
    ring->cancels = cancels;
    ring->cancel_room = room;
    return 0;
}

/* Returns the user_data of a poll: the source's tag, the direction (0 reads, 1 writes), and
 * whether the poll is of the source's proxy. */
static uint64_t data_of(const struct wf_source *source, unsigned direction)
{
    return wf_source_tag(source) | (uint64_t)direction << DIRECTION_SHIFT |
           (uint64_t)wf_proxy_is_open(source, direction) << PROXY_SHIFT;
}

/* --- Events ----------------------------------------------------------------------------- */

static unsigned events_of(int mask)
{
    unsigned events = 0;
    if ((mask & POLLIN) != 0) {
        events |= WF_EVENT_READ;
    }
    if ((mask & POLLOUT) != 0) {
        events |= WF_EVENT_WRITE;
    }
    if ((mask & (POLLRDHUP | POLLHUP | POLLERR | POLLPRI)) != 0) {
        events |= WF_EVENT_END;
    }
    return events;
}

/* Translates a poll's result to source events. If the kernel refuses to poll, or has stopped
 * polling, the waiter retries the system call and gets the error there. A proxy's result only
 * means that its direction has an event. */
static unsigned what_happened(unsigned direction, bool is_proxy, const struct event *event)
{
    int result = is_proxy ? -ECANCELED : event->result;
    unsigned what = result == -ECANCELED ? 0 : result < 0 ? WF_EVENT_END : events_of(result);
    unsigned over = direction == 0 ? WF_EVENT_READ_OVER : WF_EVENT_WRITE_OVER;
    what = what != 0 ? what : direction == 0 ? WF_EVENT_READ : WF_EVENT_WRITE;
    return event->has_more ? what : what | over;
}

static void handle(struct wf_io *io, struct ring *ring, const struct event *events, unsigned count)
{
    struct wf_batch batch;
    unsigned ended = 0;
    wf_batch_begin(&batch, io);
    for (unsigned i = 0; i < count; i++) {
        if (events[i].data == IGNORE_DATA || events[i].data == WAKE_DATA) {
            continue;
        }
        if (events[i].data == CANCEL_DATA) {
            wf_io_uncount_watched(io);
            ended++;
            continue;
        }
        unsigned direction = (unsigned)(events[i].data >> DIRECTION_SHIFT) & 1;
        bool is_proxy = events[i].data >> PROXY_SHIFT != 0;
        uint64_t tag = events[i].data & ~(UINT64_C(3) << DIRECTION_SHIFT);
        wf_batch_add(&batch, tag, what_happened(direction, is_proxy, &events[i]));
        ended += !events[i].has_more;
    }
    wf_batch_end(&batch);
    /* relaxed: a worker that sees too many polls sleeps in the ring, which is harmless. */
    (void)wf_fetch_sub_relaxed(&ring->polls, ended);
}

/* Resets the eventfd. It may already be 0: an earlier read also consumes later wakes. */
static void read_wake(const struct ring *ring)
{
    uint64_t value;
    int saved = errno;
    ssize_t got = read(ring->wake_fd, &value, sizeof value);
    (void)got;
    errno = saved;
}

/* Takes up to max events out of the ring. With leaves_wake it stops at a wake, which belongs to
 * the ring's worker. The caller holds the lock. */
static unsigned take_out(struct ring *ring, struct event *events, unsigned max, bool leaves_wake)
{
    struct io_uring_cqe *entry;
    unsigned head;
    unsigned count = 0;
    io_uring_for_each_cqe(&ring->uring, head, entry)
    {
        if (count == max) {
            break;
        }
        if (entry->user_data == WAKE_DATA) {
            if (leaves_wake) {
                break;
            }
            ring->is_wake_armed = false;
            read_wake(ring);
        }
        events[count++] =
            (struct event){ entry->user_data, entry->res, (entry->flags & IORING_CQE_F_MORE) != 0 };
    }
    io_uring_cq_advance(&ring->uring, count);
    /* relaxed: written under the lock; other threads read it as a hint. */
    wf_store_relaxed(&ring->taken, wf_load_relaxed(&ring->taken) + count);
    return count;
}

/* Worker only. Notes whether the kernel has dropped events since the last check. */
static void look_for_losses(struct ring *ring)
{
    uint32_t losses = IO_URING_READ_ONCE(*ring->uring.cq.koverflow);
    ring->has_lost = ring->has_lost || losses != ring->losses;
    ring->losses = losses;
}

/* Returns whether the kernel holds events until a thread enters it. */
static bool has_deferred(const struct ring *ring)
{
    return (IO_URING_READ_ONCE(*ring->uring.sq.kflags) &
            (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

static bool has_events(const struct ring *ring)
{
    /* relaxed: a hint; a thread that takes events out holds the lock. */
    uint32_t taken = wf_load_relaxed(&ring->taken);
    return io_uring_smp_load_acquire(ring->uring.cq.ktail) != taken;
}

/* --- Sleeping --------------------------------------------------------------------------- */

/* Enters the kernel so that it delivers events, and waits there for one until the given real
 * time. INT64_MIN: does not wait. */
static void come_by(struct ring *ring, int64_t until)
{
    int saved = errno;
    struct __kernel_timespec timeout;
    struct io_uring_getevents_arg arg = { .sigmask_sz = _NSIG / 8 };
    unsigned wanted = until != INT64_MIN;
    if (wanted != 0 && until != WF_NEVER) {
        int64_t left = until - wf_clock_real();
        left = left > 0 ? left : 0;
        timeout.tv_sec = left / 1000000000;
        timeout.tv_nsec = left % 1000000000;
        arg.ts = (uintptr_t)&timeout;
    }
    long rc = syscall(SYS_io_uring_enter, ring->uring.ring_fd, 0, wanted,
                      IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof arg);
    /* EBADR: events were dropped, see look_for_losses(). */
    if (wf_unlikely(rc < 0 && errno != ETIME && errno != EINTR && errno != EBUSY &&
                    errno != EAGAIN && errno != EBADR)) {
        give_up("io_uring_enter", errno);
    }
    errno = saved;
}

/* Wakes the worker's sleep in the ring while program time is paused. */
struct sleeper {
    struct wf_clock_sleeper base;
    const struct ring *ring;
};

static void wake_sleeper(struct wf_clock_sleeper *self)
{
    wf_call_count_up(((struct sleeper *)self)->ring->wake_fd);
}

/* Arms the poll of the eventfd. If the ring has no free entry, the sleeper sleeps only briefly.
 * The caller holds the lock. */
static void arm_wake(struct ring *ring)
{
    struct io_uring_sqe *entry = ring->is_wake_armed ? NULL : next_entry(ring);
    if (entry != NULL) {
        io_uring_prep_poll_add(entry, ring->wake_fd, POLLIN);
        io_uring_sqe_set_data64(entry, WAKE_DATA);
        ring->is_wake_armed = true;
    }
}

/* Returns whether the worker has fetched anything but wakes, which may be late ones. */
static bool is_something(const struct ring *ring)
{
    if (ring->has_lost) {
        return true;
    }
    for (unsigned i = 0; i < ring->count; i++) {
        if (ring->caught[i].data != WAKE_DATA) {
            return true;
        }
    }
    return false;
}

/* Sleeps in the ring, while the worker's park is AWAY. Returns false if the deadline passed. */
static bool sleep_in_ring(struct wf_io_driver *driver, int64_t deadline)
{
    const struct wf_park *park = &driver->worker->park;
    struct ring *ring = ring_of(driver);
    struct sleeper sleeper = { .base.wake = wake_sleeper, .ring = ring };
    bool late;
    do {
        wf_lock(&ring->lock);
        ring->is_slept_in = true;
        arm_wake(ring);
        hand_over(ring);
        int64_t nap_end = ring->retry_at != 0 ? ring->retry_at : WF_NEVER;
        wf_unlock(&ring->lock);
        int64_t until = wf_clock_sleep_begin(&sleeper.base, deadline);
        until = until == INT64_MIN ? 0 : until;
        bool is_away = wf_park_is_away(park); /* If not, a helper may have taken the wake. */
        come_by(ring, !is_away ? INT64_MIN : until < nap_end ? until : nap_end);
        late = wf_clock_sleep_end(&sleeper.base);
        wf_lock(&ring->lock);
        ring->is_slept_in = false;
        ring->count = take_out(ring, ring->caught, driver->io->events_max, false);
        look_for_losses(ring);
        wf_unlock(&ring->lock);
    } while (!late && !is_something(ring) && wf_park_is_away(park));
    return !late || ring->count > 0;
}

static bool uring_park(struct wf_io_driver *driver, int64_t deadline)
{
    struct wf_park *park = &driver->worker->park;
    struct ring *ring = ring_of(driver);
    if (ring->count > 0) {
        return true; /* Fetched events are still to be handled. */
    }
    /* relaxed: behind the fence [I1], P4. */
    if (wf_load_relaxed(&ring->polls) == 0) {
        return wf_park_sleep(park, deadline);
    }
    bool woken = true;
    if (wf_park_leave(park)) {
        woken = sleep_in_ring(driver, deadline);
        woken = wf_park_come_back(park) || woken;
    }
    return woken;
}

static void uring_reach(struct wf_io_driver *driver)
{
    wf_call_count_up(ring_of(driver)->wake_fd);
}

/* --- Awake ------------------------------------------------------------------------------ */

/* Worker only. Watches all sources again after dropped events: the ring may have lost any of
 * its polls. Dropped polls stay in the count for good; the worker then sleeps in the ring,
 * which is harmless. */
static void start_anew(struct wf_io *io, struct ring *ring)
{
    ring->has_lost = false;
    wf_lock(&ring->lock);
    ring->is_wake_armed = false;
    wf_unlock(&ring->lock);
    wf_source_fire_all(io);
}

static void uring_poll(struct wf_io_driver *driver, unsigned room)
{
    struct ring *ring = ring_of(driver);
    /* relaxed: a hint; a thread that adds a poll to the ring of a parked worker wakes it. */
    if (ring->count == 0 && room > 0 && wf_load_relaxed(&ring->polls) > 0) {
        wf_lock(&ring->lock);
        hand_over(ring); /* Submitting enters the kernel, too. */
        if (has_deferred(ring)) {
            come_by(ring, INT64_MIN);
        }
        ring->count = take_out(ring, ring->caught, room, false);
        look_for_losses(ring);
        wf_unlock(&ring->lock);
    }
    unsigned count = ring->count;
    ring->count = 0;
    handle(driver->io, ring, ring->caught, count);
    if (wf_unlikely(ring->has_lost)) {
        start_anew(driver->io, ring);
    }
}

static bool is_left(const struct ring *ring)
{
    /* relaxed: a hint; a helper takes the lock. */
    return wf_load_relaxed(&ring->polls) > 0 &&
           (wf_load_relaxed(&ring->waiting) > 0 || has_events(ring) || has_deferred(ring));
}

static bool uring_is_left(struct wf_io_driver *driver)
{
    const struct wf_io *io = driver->io;
    for (unsigned i = 0; i < io->sched->options.workers; i++) {
        if (is_left(ring_of(&io->drivers[i]))) {
            return true;
        }
    }
    return false;
}

/* Makes the kernel interrupt all running threads of this process, so that they enter the kernel
 * and receive their deferred events. */
static void interrupt_all(void)
{
    int saved = errno;
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    errno = saved;
}

/* Submits on behalf of the ring's worker and handles its events. */
static void help_ring(struct wf_io *io, struct ring *ring)
{
    struct event events[64];
    unsigned max = io->events_max < 64 ? io->events_max : 64;
    wf_lock(&ring->lock);
    hand_over(ring);
    unsigned count = take_out(ring, events, max, ring->is_slept_in);
    wf_unlock(&ring->lock);
    handle(io, ring, events, count);
}

/* Returns true if events remain: a computing worker that was preempted was not interrupted. */
static bool uring_help(struct wf_io_driver *driver)
{
    struct wf_io *io = driver->io;
    bool interrupted = false;
    for (unsigned i = 0; i < io->sched->options.workers; i++) {
        struct ring *ring = ring_of(&io->drivers[i]);
        if (!is_left(ring)) {
            continue;
        }
        if (!interrupted && has_deferred(ring)) {
            interrupt_all();
            interrupted = true;
        }
        help_ring(io, ring);
    }
    return uring_is_left(driver);
}

/* --- Descriptors ------------------------------------------------------------------------ */

/* Returns whether the worker belongs to this runtime. */
static bool is_ours(const struct wf_io *io, const struct wf_worker *worker)
{
    return worker != NULL && worker->sched == io->sched;
}

/* Returns the driver of the current worker; on any other thread, drivers in rotation. */
static struct wf_io_driver *choose_driver(struct wf_io *io)
{
    const struct wf_worker *here = wf_worker_current();
    if (is_ours(io, here)) {
        return &io->drivers[here->index];
    }
    /* relaxed: the rotation needs no order. */
    uint32_t turn = wf_fetch_add_relaxed(&io->sched->next_pin, 1);
    return &io->drivers[turn % io->sched->options.workers];
}

/* Wakes the driver's worker, if it is parked, to submit what another thread put into its ring. */
static void tell(struct wf_io *io, struct wf_io_driver *driver)
{
    /* fence [I1], A2: the worker sees the poll, or is seen parked. */
    wf_fence_full();
    if (wf_idle_is_parked(&io->sched->idle, driver->worker->index)) {
        wf_worker_wake(driver->worker);
    }
}

static unsigned mask_of(const struct wf_source *source, unsigned direction)
{
    if (source->is_foreign) {
        return POLLIN | POLLOUT | POLLRDHUP | POLLPRI;
    }
    return direction == 0 ? POLLIN | POLLRDHUP : POLLOUT;
}

/* Returns whether the poll must be multishot, and so report new events only. */
static bool lasts(const struct wf_source *source)
{
    if (source->is_foreign || source->has_end) {
        return true;
    }
    if (!source->wants_proxy) {
        return false;
    }
    struct pollfd look = { .fd = source->fd }; /* A proxy does not report errors. */
    int saved = errno;
    int count = poll(&look, 1, 0);
    errno = saved;
    return count != 0;
}

struct poll_args {
    int fd;
    unsigned mask;
    bool lasts;
    uint64_t data;
};

/* Puts a poll into the ring. The caller holds the lock. */
static int add_poll(struct wf_io *io, struct ring *ring, const struct poll_args *args)
{
    /* relaxed: each poll that may be canceled was counted before the lock was taken. */
    int err = reserve_cancels(io, ring, wf_load_relaxed(&ring->polls));
    struct io_uring_sqe *entry = err == 0 ? next_entry(ring) : NULL;
    if (entry == NULL) {
        return -ENOMEM;
    }
    if (args->lasts) {
        io_uring_prep_poll_multishot(entry, args->fd, args->mask);
    } else {
        io_uring_prep_poll_add(entry, args->fd, args->mask);
    }
    io_uring_sqe_set_data64(entry, args->data);
    return 0;
}

static int uring_watch(struct wf_io *io, struct wf_source *source, uint32_t what)
{
    unsigned direction = what == WF_SOURCE_READABLE ? 0 : 1;
    unsigned mask = mask_of(source, direction);
    int fd = source->wants_proxy ? wf_proxy_open(source, direction, mask) : source->fd;
    if (fd < 0) {
        return fd;
    }
    struct poll_args args = { .fd = fd,
                              .mask = wf_proxy_is_open(source, direction) ? POLLIN : mask,
                              .lasts = lasts(source),
                              .data = data_of(source, direction) };
    struct wf_io_driver *driver = choose_driver(io);
    struct ring *ring = ring_of(driver);
    /* relaxed: before the fence, A1. */
    (void)wf_fetch_add_relaxed(&ring->polls, 1);
    wf_lock(&ring->lock);
    int err = add_poll(io, ring, &args);
    wf_unlock(&ring->lock);
    if (err != 0) {
        /* relaxed: as in handle(). */
        (void)wf_fetch_sub_relaxed(&ring->polls, 1);
        wf_proxy_close(source, direction);
        return err;
    }
    source->armed |= 1u << direction;
    source->home[direction] = driver->worker->index;
    if (driver->worker != wf_worker_current()) {
        tell(io, driver);
    }
    return 0;
}

/* Replaces a poll that was not submitted by a no-op. The kernel would look up its descriptor
 * number later and find another file there. The caller holds the lock. */
static bool take_back(struct ring *ring, uint64_t data)
{
    const struct io_uring_sq *queue = &ring->uring.sq;
    for (unsigned i = *queue->khead; i != queue->sqe_tail; i++) {
        struct io_uring_sqe *entry = &queue->sqes[i & queue->ring_mask];
        if (entry->opcode == IORING_OP_POLL_ADD && entry->user_data == data) {
            io_uring_prep_nop(entry);
            io_uring_sqe_set_data64(entry, IGNORE_DATA);
            return true;
        }
    }
    return false;
}

/* Cancels a poll. Returns false if the ring's worker has to submit the cancellation, which then
 * counts as a poll. The caller holds the lock. */
static bool add_cancel(struct wf_io *io, struct ring *ring, uint64_t data)
{
    struct io_uring_sqe *entry = next_entry(ring);
    if (entry != NULL) {
        prepare_cancel(entry, data, IGNORE_DATA);
        if (is_ours(io, wf_worker_current())) {
            hand_over(ring);
        }
        /* relaxed: written under the lock. */
        if (wf_load_relaxed(&ring->waiting) == 0) {
            return true;
        }
        io_uring_sqe_set_data64(entry, CANCEL_DATA);
    } else {
        WF_ASSERT(ring->cancel_count < ring->cancel_room);
        ring->cancels[ring->cancel_count++] = data;
        /* relaxed: written under the lock. */
        wf_store_relaxed(&ring->waiting, wf_load_relaxed(&ring->waiting) + 1);
    }
    /* relaxed: before the fence, A1. */
    (void)wf_fetch_add_relaxed(&ring->polls, 1);
    wf_io_count_watched(io);
    return false;
}

/* Cancels a poll or takes it back. A cancellation that is left to the ring's worker counts as a
 * poll, so that it is submitted regardless of what becomes of the canceled poll. Plain threads
 * leave it to the worker. */
static void cancel_poll(struct wf_io *io, struct wf_io_driver *driver, uint64_t data)
{
    struct ring *ring = ring_of(driver);
    wf_lock(&ring->lock);
    bool is_back = take_back(ring, data);
    bool is_done = is_back || add_cancel(io, ring, data);
    wf_unlock(&ring->lock);
    if (is_back) {
        /* relaxed: as in handle(). */
        (void)wf_fetch_sub_relaxed(&ring->polls, 1);
    }
    if (!is_done) {
        tell(io, driver);
    }
}

static void uring_unwatch(struct wf_io *io, struct wf_source *source)
{
    for (unsigned direction = 0; direction < 2; direction++) {
        if ((source->armed & 1u << direction) != 0) {
            struct wf_io_driver *driver = &io->drivers[source->home[direction]];
            cancel_poll(io, driver, data_of(source, direction));
            /* Its last event is dropped. */
            source->armed &= ~(1u << direction) & WF_EVENT_BOTH;
        }
        wf_proxy_close(source, direction);
    }
}

/* --- The rings -------------------------------------------------------------------------- */

/* Checks that io_uring_enter works: a sandbox may allow the setup and forbid this call. A kernel
 * that is busy, or out of memory for now, does not forbid it. */
static int try_enter(const struct io_uring *uring)
{
    struct io_uring_getevents_arg arg = { .sigmask_sz = _NSIG / 8 };
    long rc = syscall(SYS_io_uring_enter, uring->ring_fd, 0, 0,
                      IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof arg);
    bool is_allowed = rc >= 0 || errno == EINTR || errno == EAGAIN || errno == EBUSY;
    return is_allowed ? 0 : -errno;
}

static int open_uring(struct wf_io *io, struct io_uring *uring)
{
    struct io_uring_params params = { .cq_entries = COMPLETIONS };
    params.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_COOP_TASKRUN |
                   IORING_SETUP_TASKRUN_FLAG;
    io->failed_call = "io_uring_setup";
    int err = io_uring_queue_init_params(ENTRIES, uring, &params);
    if (err != 0) {
        return err;
    }
    if ((params.features & IORING_FEAT_EXT_ARG) == 0) {
        err = -ENOSYS;
    } else {
        io->failed_call = "io_uring_enter";
        err = try_enter(uring);
    }
    if (err != 0) {
        io_uring_queue_exit(uring);
    }
    return err;
}

static size_t caught_bytes(const struct wf_io *io)
{
    return io->events_max * sizeof(struct event);
}

static void close_ring(struct wf_io *io, struct ring *ring)
{
    const weft_allocator *allocator = &io->sched->options.allocator;
    io_uring_queue_exit(&ring->uring);
    (void)close(ring->wake_fd);
    wf_free(allocator, ring->cancels, ring->cancel_room * sizeof *ring->cancels,
            _Alignof(uint64_t));
    wf_free(allocator, ring->caught, caught_bytes(io), _Alignof(struct event));
    wf_free(allocator, ring, sizeof *ring, _Alignof(struct ring));
}

static int open_ring(struct wf_io *io, struct ring **out)
{
    const weft_allocator *allocator = &io->sched->options.allocator;
    int err = -ENOMEM;
    io->failed_call = NULL;
    struct ring *ring = wf_alloc_zeroed(allocator, sizeof *ring, _Alignof(struct ring));
    if (ring == NULL) {
        return err;
    }
    wf_lock_init(&ring->lock, WF_RANK_RING);
    ring->caught = wf_alloc_zeroed(allocator, caught_bytes(io), _Alignof(struct event));
    if (ring->caught == NULL) {
        goto undo_ring;
    }
    io->failed_call = "eventfd";
    ring->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ring->wake_fd < 0) {
        err = -errno;
        goto undo_caught;
    }
    err = open_uring(io, &ring->uring);
    if (err != 0) {
        goto undo_eventfd;
    }
    *out = ring;
    return 0;

undo_eventfd:
    (void)close(ring->wake_fd);
undo_caught:
    wf_free(allocator, ring->caught, caught_bytes(io), _Alignof(struct event));
undo_ring:
    wf_free(allocator, ring, sizeof *ring, _Alignof(struct ring));
    return err;
}

static void close_rings(struct wf_io *io)
{
    for (unsigned i = 0; i < io->sched->options.workers; i++) {
        if (io->drivers[i].own != NULL) {
            close_ring(io, io->drivers[i].own);
            io->drivers[i].own = NULL;
        }
    }
}

static void uring_close(struct wf_io *io)
{
    wf_proxy_close_all(io);
    close_rings(io);
}

static int uring_open(struct wf_io *io)
{
    int saved = errno;
    io->failed_call = "membarrier";
    int err =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 ? 0 : -errno;
    for (unsigned i = 0; err == 0 && i < io->sched->options.workers; i++) {
        struct ring *ring = NULL;
        err = open_ring(io, &ring);
        io->drivers[i].own = ring;
    }
    if (err != 0) {
        close_rings(io);
    }
    errno = saved;
    return err;
}

const struct wf_io_backend wf_io_uring = {
    .name = "io_uring",
    .open = uring_open,
    .close = uring_close,
    .watch = uring_watch,
    .unwatch = uring_unwatch,
    .park = uring_park,
    .reach = uring_reach,
    .poll = uring_poll,
    .is_left = uring_is_left,
    .help = uring_help,
};

#else

typedef int wf_io_uring_is_not_built_in; /* An empty translation unit is not valid C. */

#endif
