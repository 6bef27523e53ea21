/* SPDX-License-Identifier: MIT */
/*
 * io.c - I/O of one runtime: choice of the backend, and the workers' drivers.
 *
 * A runtime without I/O costs next to nothing: the backend is chosen and opened with the first
 * source, and a worker parks in its driver only while sources are watched.
 *
 *   Watch, any thread                       Park, a worker (idle.c)
 *   A1  increment watched                   P1  set own bit: parked
 *   A2  full fence                          P3  full fence
 *   A3  if all workers are parked,          P4  if watched > 0, sleep in the driver, else
 *       wake one                                on the futex
 *
 * One fence comes first: either A3 sees that all workers are parked, or P4 sees the source. On a
 * worker of this runtime A2 and A3 are not needed, since that worker is not parked.
 *
 * Edges.
 * [IO2] the first watched source releases the count, workers acquire it: the backend is open.
 * And idle.c's [I1]: the fences of A2 and P3, as above.
 *
 * Checked by tests/model/io_model.c.
 */
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/table.h"
#include "sched/idle.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/worker.h"

static struct wf_io_driver *driver_of(struct wf_driver *driver)
{
    return (struct wf_io_driver *)driver;
}

static bool io_park(struct wf_driver *driver, int64_t deadline)
{
    struct wf_io_driver *self = driver_of(driver);
    return wf_io_is_used(self->io) ? self->io->backend->park(self, deadline)
                                   : wf_park_sleep(&self->worker->park, deadline);
}

static void io_reach(struct wf_driver *driver)
{
    driver_of(driver)->io->backend->reach(driver_of(driver));
}

static void io_poll(struct wf_driver *driver, unsigned room)
{
    struct wf_io_driver *self = driver_of(driver);
    if (wf_io_is_used(self->io)) {
        unsigned max = self->io->events_max;
        self->io->backend->poll(self, room < max ? room : max);
    }
}

static bool io_is_left(struct wf_driver *driver)
{
    struct wf_io_driver *self = driver_of(driver);
    return wf_io_is_used(self->io) && self->io->backend->is_left(self);
}

static bool io_help(struct wf_driver *driver)
{
    return driver_of(driver)->io->backend->help(driver_of(driver));
}

static const struct wf_driver_ops driver_ops = {
    .park = io_park, .reach = io_reach, .poll = io_poll, .is_left = io_is_left, .help = io_help
};

void wf_io_count_watched(struct wf_io *io)
{
    struct wf_sched *sched = io->sched;
    /* release [IO2]: the backend is open. */
    (void)wf_fetch_add_release(&io->watched, 1);
    const struct wf_worker *here = wf_worker_current();
    if (here != NULL && here->sched == sched) {
        return;
    }
    /* fence [I1], A2: a parking worker sees the source, or is seen parked. */
    wf_fence_full();
    if (wf_idle_unparked(&sched->idle) == 0) {
        wf_worker_wake(&sched->workers[0]);
    }
}

/* --- Choice of the backend -------------------------------------------------------------- */

static void explain(struct wf_io *io, const char *text)
{
    (void)snprintf(io->reason, sizeof io->reason, "%s", text);
}

static int use(struct wf_io *io, const struct wf_io_backend *backend)
{
    io->backend = backend;
    io->failed_call = NULL;
    int err = backend->open(io);
    if (err != 0) {
        (void)snprintf(io->reason, sizeof io->reason, "%s: %s",
                       io->failed_call != NULL ? io->failed_call : "it cannot be opened",
                       weft_strerror(err));
    }
    return err;
}

/* Under the lock. */
static int use_uring(struct wf_io *io)
{
#ifdef WF_HAS_URING
    explain(io, "it was asked for");
    return use(io, &wf_io_uring);
#else
    (void)snprintf(io->reason, sizeof io->reason, "weft was built without io_uring: %s",
                   weft_strerror(-ENOSYS));
    return -ENOSYS;
#endif
}

/* Under the lock. The default is epoll, which sandboxes allow. */
static int choose(struct wf_io *io)
{
    if (io->wanted == WEFT_IO_URING) {
        return use_uring(io);
    }
    bool is_asked_for = io->wanted == WEFT_IO_EPOLL;
    explain(io, is_asked_for ? "it was asked for" : "it takes less of the processor");
    return use(io, &wf_io_epoll);
}

static const char *wanted_name(const struct wf_io *io)
{
    return io->wanted == WEFT_IO_URING ? "io_uring" : wf_io_epoll.name;
}

/* Composes the sentence for the runtime's messages, after choose(). Returns false if the same
 * error was reported before. The caller holds the lock. */
static bool compose_report(struct wf_io *io, int err, char *text, size_t size)
{
    if (io->reported == err) {
        return false;
    }
    io->reported = err;
    const char *advice = io->wanted == WEFT_IO_URING
                             ? "; I/O is not possible; ask for WEFT_IO=epoll or WEFT_IO=auto"
                             : "; I/O is not possible";
    (void)snprintf(text, size, "%s: %s%s", wanted_name(io), io->reason, advice);
    return true;
}

int wf_io_open(struct wf_io *io)
{
    /* acquire [IO2]: the backend is open. */
    if (wf_likely(wf_load_acquire(&io->is_open))) {
        return 0;
    }
    char text[256];
    bool reports = false;
    wf_lock(&io->lock);
    /* relaxed: written under the lock. */
    int err = wf_load_relaxed(&io->is_open) ? 0 : choose(io);
    if (err == 0) {
        /* release [IO2]: the backend is open. */
        wf_store_release(&io->is_open, true);
    } else {
        reports = compose_report(io, err, text, sizeof text);
    }
    wf_unlock(&io->lock);
    const struct wf_sched_options *options = &io->sched->options;
    if (reports && options->on_message != NULL) {
        options->on_message(options->message_ctx, text);
    }
    return err;
}

/* --- Lifetime --------------------------------------------------------------------------- */

/*
 * Grows the kernel's descriptor table in advance. The table doubles when a descriptor does not
 * fit, and in a process with threads the kernel then waits until no processor can still be
 * reading the old table: an accept that takes 15 ms. Once grown, the table never shrinks.
 * Before there are threads, this costs some microseconds.
 */
static void make_room_for_fds(uint64_t count)
{
    struct rlimit limit;
    int saved = errno;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < count) {
        count = limit.rlim_cur;
    }
    int fd = count > 1 ? eventfd(0, EFD_CLOEXEC) : -1;
    if (fd >= 0) { /* Otherwise no descriptors are left, and space for them is not needed. */
        int last = fcntl(fd, F_DUPFD_CLOEXEC, (int)count - 1);
        if (last >= 0) {
            (void)close(last);
        }
        (void)close(fd);
    }
    errno = saved;
}

static size_t drivers_bytes(const struct wf_sched *sched)
{
    return sched->options.workers * sizeof(struct wf_io_driver);
}

int wf_io_create(struct wf_sched *sched)
{
    const weft_allocator *allocator = &sched->options.allocator;
    struct wf_io *io = wf_alloc_zeroed(allocator, sizeof *io, _Alignof(struct wf_io));
    struct wf_io_driver *drivers =
        wf_alloc_zeroed(allocator, drivers_bytes(sched), _Alignof(struct wf_io_driver));
    if (io == NULL || drivers == NULL) {
        wf_free(allocator, drivers, drivers_bytes(sched), _Alignof(struct wf_io_driver));
        wf_free(allocator, io, sizeof *io, _Alignof(struct wf_io));
        return -ENOMEM;
    }
    io->sched = sched;
    io->drivers = drivers;
    io->events_max = sched->options.io_events_max;
    io->wanted = sched->options.io_backend;
    wf_lock_init(&io->lock, WF_RANK_IO);
    for (unsigned i = 0; i < sched->options.workers; i++) {
        drivers[i] = (struct wf_io_driver){ .driver.ops = &driver_ops,
                                            .io = io,
                                            .worker = &sched->workers[i] };
        sched->workers[i].driver = &drivers[i].driver;
    }
    sched->io = io;
    make_room_for_fds(sched->options.fds_expected);
    return 0;
}

void wf_io_close(struct wf_sched *sched)
{
    wf_source_close_all(sched->io);
}

void wf_io_destroy(struct wf_sched *sched)
{
    struct wf_io *io = sched->io;
    if (io == NULL) {
        return;
    }
    /* relaxed: no other thread uses the runtime any more. */
    if (wf_load_relaxed(&io->is_open)) {
        io->backend->close(io);
    }
    wf_table_give_back(io->blocks);
    const weft_allocator *allocator = &sched->options.allocator;
    wf_free(allocator, io->drivers, drivers_bytes(sched), _Alignof(struct wf_io_driver));
    wf_free(allocator, io, sizeof *io, _Alignof(struct wf_io));
    sched->io = NULL;
    for (unsigned i = 0; i < sched->options.workers; i++) {
        sched->workers[i].driver = NULL;
    }
}

struct wf_io *wf_io_must(const char *call)
{
    return wf_thread_must_sched(call)->io;
}

int wf_io_info(struct wf_io *io, weft_io_info *info)
{
    int err = wf_io_open(io);
    wf_lock(&io->lock);
    info->backend = err == 0 ? io->backend->name : wanted_name(io);
    memcpy(info->reason, io->reason, sizeof info->reason);
    wf_unlock(&io->lock);
    return err;
}
