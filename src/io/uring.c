/* SPDX-License-Identifier: MIT */
/*
 * uring.c - events by io_uring: a ring for each worker.
 *
 * Who waits for a descriptor puts a poll of it into the ring of the worker it is on: one
 * that ends with its first event. Polls of many tasks go to the kernel by one call, when
 * the worker looks for events or goes to sleep, and a worker sleeps in its own ring while
 * there are polls in it. It is woken by an eventfd, of which there is a poll as well.
 *
 * The kernel delivers what a thread has handed over when that thread comes by (cooperative
 * task run), since to interrupt it for each event costs more than the event. So nothing
 * comes for a worker that computes; and what it has put into its ring, it has perhaps not
 * handed over. Both is seen from outside (is_left), of all rings, since workers hand over for
 * each other. Who helps hands over, makes the kernel interrupt all that runs, once
 * (membarrier), and takes the events out of the rings: rings have locks, and any thread may
 * use them. But workers and the watch hand over, and another thread only if a ring is full. Of
 * a plain thread nobody knows whether it computes; and when a thread ends, the kernel cancels all
 * that it has handed over: then who waits tries, and waits anew.
 *
 * A poll tells of an end, an error, or that the other side writes no more, whether it was asked
 * for or not, and as long as that is so: at once, each time. Who waits for something else, for
 * room say, while the other side still reads, would try and wait in a circle. So once there was
 * such an event a poll lasts, and tells of what is new. The same goes for descriptors of
 * libraries, whose polls are for reading and writing, of which one may have to be waited for
 * while the other is possible. And urgent data is not asked for: a socket says that with
 * everything that comes, and a poll passes it on as it was said.
 *
 * Without memory the kernel takes nothing for now (EAGAIN). Then polls wait in the ring, and who
 * sleeps there naps, and offers them again. A ring that is full refuses to wait for more
 * descriptors. A cancellation cannot be refused. If the ring is full, it goes into a list, in which
 * each poll has reserved a place when it was added. It moves into the ring as soon as the kernel
 * takes something. And of more events at once than a ring has room for, it may drop some: then all
 * that is watched is told of an event, and waited for anew, under other tags.
 *
 * A descriptor is not closed before the kernel has let go of it, and that is not before its
 * polls have ended: so those are cancelled. (Not removed: a poll that lasts, and has an event
 * under way at that moment, would stay.) For sockets that must be closed when the process ends, see
 * proxy.c.
 *
 * Who puts a poll into the ring of a worker that sleeps tells it:
 *
 *   Arm, another thread                     Park, the worker
 *   A1  polls + 1                           P1  set my bit: parked
 *   A2  full fence                          P3  full fence
 *   A3  parked? Wake it                     P4  polls? Sleep in the ring, else on the
 *                                               futex
 *
 * A helper that takes events out of the ring of a sleeping worker stops at a wake. It stays in the
 * ring, and so do the events behind it: the worker does not sleep while there is an event, and
 * comes for them. If the worker does not sleep in the ring, a helper takes wakes out, too: such a
 * wake is a late one; or the worker is about to sleep, and has not had the ring's lock yet. When it
 * has the lock, it sees that it was woken.
 *
 * Rejected, with figures in docs/adr/0013-readiness.md: polls that last, reads by the
 * kernel, one ring for all, delivery by interrupts, and delivery to one thread only. Also rejected:
 * a helper that takes a wake out and sends it again must arm the poll for it first, and wait under
 * the ring's lock while the kernel takes nothing.
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
    COMPLETIONS = 2048, /* The kernel keeps more, if there are. */
    DIRECTION_SHIFT = 62,
    PROXY_SHIFT = 63,
    CANCELS_MIN = 64,
    NAP_NS = 1000000, /* while the kernel takes nothing */
};

/* What is not a source's. */
#define WAKE_DATA   (UINT64_MAX - 2)
#define CANCEL_DATA (UINT64_MAX - 1) /* that was left to a worker */
#define IGNORE_DATA UINT64_MAX

/* An event that was taken out of a ring. */
struct event {
    uint64_t data;
    int result;
    bool has_more; /* its poll lasts */
};

struct ring {
    struct wf_lock lock; /* guards the ring */
    struct io_uring uring;
    _Atomic(uint32_t) polls;   /* any thread: in the ring, also those not handed over, and
                                * what is to be handed over for plain threads */
    _Atomic(uint32_t) waiting; /* written under the lock: not handed over */
    _Atomic(uint32_t) taken;   /* written under the lock: events, so far */
    int wake_fd;
    bool is_wake_armed; /* under the lock */
    bool is_slept_in;   /* under the lock: a wake is for its worker */
    uint64_t *cancels;  /* under the lock: polls to cancel, while the ring is full */
    uint32_t cancel_count;
    uint32_t cancel_room; /* at least the number of polls that may have to be canceled */
    int64_t retry_at;     /* under the lock: the kernel refused entries; 0: it did not */
    bool has_lost;        /* its worker: the kernel has dropped events, */
    uint32_t losses;      /* and how many, so far */
    unsigned count;       /* its worker: events from its sleep that were not handled */
    struct event *caught; /* its worker */
};

static struct ring *ring_of(const struct wf_io_driver *driver)
{
    return driver->own;
}

/*
 * A system call that the open has tried fails: a sandbox has forbidden it since. The polls that are
 * in the kernel cannot be moved to another backend.
 */
static _Noreturn void give_up(const char *call, int error)
{
    wf_fatal("%s: %s; it was possible when the runtime began with I/O. If a sandbox is entered "
             "later, allow io_uring there, or ask for WEFT_IO=epoll",
             call, weft_strerror(-error));
}

/* --- Handing over ----------------------------------------------------------------------- */

static void prepare_cancel(struct io_uring_sqe *entry, uint64_t poll, uint64_t data)
{
    io_uring_prep_cancel64(entry, poll, 0);
    io_uring_sqe_set_data64(entry, data);
}

/* Under the lock: moves cancellations from the list into the ring, the oldest first. */
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

/* Submits the pending entries. The caller holds the lock. A kernel without memory takes only some
 * of them, or none: the rest stays in the ring until retry_at. */
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
    /* relaxed: written under the lock; others look. */
    wf_store_relaxed(&ring->waiting, left);
    ring->retry_at = left > 0 ? wf_clock_real() + NAP_NS : 0;
}

/* Submits pending entries, if any. The caller holds the lock. Entries that the kernel refused are
 * offered again at most once per NAP_NS: a searching worker polls its ring in a loop, and does not
 * make a system call in each round. */
static void hand_over(struct ring *ring)
{
    /* relaxed: written under the lock. */
    if (wf_load_relaxed(&ring->waiting) > 0 &&
        (wf_likely(ring->retry_at == 0) || wf_clock_real() >= ring->retry_at)) {
        submit(ring);
    }
}

/* Under the lock: the next entry, which its caller fills. NULL: the kernel takes none for now. */
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

/* Under the lock: so many polls can be canceled whatever the kernel takes. */
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

/* Which poll this is: of a source, for reading (0) or writing (1), of its proxy or itself. */
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

/* What the kernel refuses to wait for, or waits for no longer, is tried and found out. A proxy
 * does not say more than that there is an event for its direction. */
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
    /* relaxed: who sleeps in the ring for nothing sleeps all the same. */
    (void)wf_fetch_sub_relaxed(&ring->polls, ended);
}

/* Another wake may have been read before, with the last one. */
static void read_wake(const struct ring *ring)
{
    uint64_t value;
    int saved = errno;
    ssize_t got = read(ring->wake_fd, &value, sizeof value);
    (void)got;
    errno = saved;
}

/* Under the lock: takes up to max events out; leaves a wake, and what is behind it, if the wake is
 * for another thread. */
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
    /* relaxed: written under the lock; others look. */
    wf_store_relaxed(&ring->taken, wf_load_relaxed(&ring->taken) + count);
    return count;
}

/* Its worker: has the kernel dropped events since the last look? */
static void look_for_losses(struct ring *ring)
{
    uint32_t losses = IO_URING_READ_ONCE(*ring->uring.cq.koverflow);
    ring->has_lost = ring->has_lost || losses != ring->losses;
    ring->losses = losses;
}

/* Does the kernel have something for the thread that will come by? */
static bool has_deferred(const struct ring *ring)
{
    return (IO_URING_READ_ONCE(*ring->uring.sq.kflags) &
            (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

static bool has_events(const struct ring *ring)
{
    /* relaxed: a look; who takes events out holds the lock. */
    uint32_t taken = wf_load_relaxed(&ring->taken);
    return io_uring_smp_load_acquire(ring->uring.cq.ktail) != taken;
}

/* --- Sleeping --------------------------------------------------------------------------- */

/* Comes by at the kernel, and waits there until this time of the machine's for an event;
 * INT64_MIN: does not wait. */
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
    /* EBADR: events were lost, see look_for_losses(). */
    if (wf_unlikely(rc < 0 && errno != ETIME && errno != EINTR && errno != EBUSY &&
                    errno != EAGAIN && errno != EBADR)) {
        give_up("io_uring_enter", errno);
    }
    errno = saved;
}

/* A sleeper while the program's time is paused. */
struct sleeper {
    struct wf_clock_sleeper base;
    const struct ring *ring;
};

static void wake_sleeper(struct wf_clock_sleeper *self)
{
    wf_call_count_up(((struct sleeper *)self)->ring->wake_fd);
}

/* Under the lock: a wake is an event, too. Without an entry who sleeps naps. */
static void arm_wake(struct ring *ring)
{
    struct io_uring_sqe *entry = ring->is_wake_armed ? NULL : next_entry(ring);
    if (entry != NULL) {
        io_uring_prep_poll_add(entry, ring->wake_fd, POLLIN);
        io_uring_sqe_set_data64(entry, WAKE_DATA);
        ring->is_wake_armed = true;
    }
}

/* Is there anything but wakes, which may be late ones? */
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

/* Away from its park. Returns false if the deadline ended it. */
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
        bool is_away = wf_park_is_away(park); /* Else the wake may have been taken out. */
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
        return true; /* There is something to do from the last time. */
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

/* Its worker: what the ring waited for, it may not wait for any more. What was lost counts as a
 * poll from now on: who sleeps in the ring for nothing sleeps all the same. */
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
    /* relaxed: a look; what others have put there they have handed over. */
    if (ring->count == 0 && room > 0 && wf_load_relaxed(&ring->polls) > 0) {
        wf_lock(&ring->lock);
        hand_over(ring); /* Which is to come by. */
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
    /* relaxed: looks; who helps takes the lock. */
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

/* Makes the kernel interrupt all threads of this process that run: what they are to come by
 * for, they come by for. */
static void interrupt_all(void)
{
    int saved = errno;
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    errno = saved;
}

/* Hands over for the worker of this ring, and handles its events. */
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

/* A worker that computes and has no processor was not interrupted. */
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

/* Is this one of our workers? */
static bool is_ours(const struct wf_io *io, const struct wf_worker *worker)
{
    return worker != NULL && worker->sched == io->sched;
}

/* The ring of this worker; from outside, some. */
static struct wf_io_driver *choose_driver(struct wf_io *io)
{
    const struct wf_worker *here = wf_worker_current();
    if (is_ours(io, here)) {
        return &io->drivers[here->index];
    }
    /* relaxed: any order of turns will do. */
    uint32_t turn = wf_fetch_add_relaxed(&io->sched->next_pin, 1);
    return &io->drivers[turn % io->sched->options.workers];
}

/* A plain thread has put something into the ring of this driver, whose worker hands it over. */
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

/* Must the poll last, and tell of what is new only? */
static bool lasts(const struct wf_source *source)
{
    if (source->is_foreign || source->has_end) {
        return true;
    }
    if (!source->wants_proxy) {
        return false;
    }
    struct pollfd look = { .fd = source->fd }; /* A proxy does not tell of an error. */
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

/* Under the lock: puts the poll into the ring. */
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
        /* relaxed: as where events are handled. */
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

/* Under the lock: a poll that was not handed over is none. The kernel would look for its
 * descriptor later, and find another's. */
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

/* Under the lock: cancels a poll. Returns false if its worker has to hand that over: it counts as a
 * poll then. */
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

/* What is left to its worker counts as a poll, so that it is handed over, whatever becomes of the
 * one that it cancels. Plain threads leave it. */
static void cancel_poll(struct wf_io *io, struct wf_io_driver *driver, uint64_t data)
{
    struct ring *ring = ring_of(driver);
    wf_lock(&ring->lock);
    bool is_back = take_back(ring, data);
    bool is_done = is_back || add_cancel(io, ring, data);
    wf_unlock(&ring->lock);
    if (is_back) {
        /* relaxed: as where events are handled. */
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
            /* Its end is for nobody. */
            source->armed &= ~(1u << direction) & WF_EVENT_BOTH;
        }
        wf_proxy_close(source, direction);
    }
}

/* --- The rings -------------------------------------------------------------------------- */

/* A sandbox may allow the setup and forbid this call. A kernel that is busy, or out of memory for
 * now, does not forbid it. */
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

typedef int wf_io_uring_is_not_built_in; /* A file must not be empty. */

#endif
