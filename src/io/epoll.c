/* SPDX-License-Identifier: MIT */
/*
 * epoll.c - epoll backend: readiness events from one epoll instance for all workers.
 *
 * Each descriptor is registered once, for reading and writing, edge-triggered. An instance holds
 * each descriptor only once, so a second source of the same descriptor registers a duplicate. Any
 * thread may fetch events, and each event is fetched once, so events of a descriptor never wait
 * for the busy worker that has registered it. One of the parked workers, the poller, sleeps in the
 * instance. The others sleep on their futexes and are woken first when work arrives, since the
 * poller would have to be replaced.
 *
 *   seat: NOBODY ---park: CAS---> worker ---awake---> NOBODY
 *
 * A worker that parks becomes the poller if there is none. So the instance is without a poller
 * only if the last poller is awake, and that worker checks for events between ticks and before it
 * parks. If it spends long in one task, the monitor sees that there is no poller (is_left), and
 * wakes a worker that becomes the poller, or handles the events itself.
 *
 * The poller is woken through an eventfd in the instance. The eventfd is never read: each write is
 * an edge. A write that comes after its worker has left wakes the next poller spuriously, and that
 * one goes back to sleep. A wake may also be fetched by another thread, one that had seen no poller
 * before. That thread writes the eventfd again: the poller had registered itself before the wake
 * was written, and stays the poller until it is woken. So the thread that fetched the wake must see
 * the poller registered. It does: the waker has acquired that (park.h's [P2]), and the kernel's
 * locks pass it on.
 *
 * Checked by tests/model/io_model.c.
 */
#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
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

/* Tag of the eventfd's events; no source has it. */
#define WAKE_TAG UINT64_MAX

enum {
    NOBODY = 0, /* no poller; else 1 + the worker's index */
};

struct instance {
    int fd;
    int wake_fd;
    bool is_precise;                                /* the kernel supports timeouts in
                                                     * nanoseconds */
    _Alignas(WF_CACHE_LINE) _Atomic(uint32_t) seat; /* the poller; workers write, all read */
};

/* The events that a worker fetched while parked and has not handled yet. */
struct catch
{
    int count;
    struct epoll_event events[];
};

static size_t catch_bytes(const struct wf_io *io)
{
    return sizeof(struct catch) + io->events_max * sizeof(struct epoll_event);
}

/* --- Events ----------------------------------------------------------------------------- */

static unsigned events_of(uint32_t events)
{
    unsigned result = 0;
    if ((events & EPOLLIN) != 0) {
        result |= WF_EVENT_READ;
    }
    if ((events & EPOLLOUT) != 0) {
        result |= WF_EVENT_WRITE;
    }
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI)) != 0) {
        result |= WF_EVENT_END;
    }
    return result;
}

static bool is_free(const struct instance *instance)
{
    /* relaxed: a hint; a worker that fetched a wake sees its poller registered, see above. */
    return wf_load_relaxed(&instance->seat) == NOBODY;
}

/* Handles events. The caller is not the poller. If it has fetched a wake, it passes the wake on
 * to the current poller. */
static void handle(struct wf_io *io, const struct epoll_event *events, int count)
{
    struct wf_batch batch;
    wf_batch_begin(&batch, io);
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 != WAKE_TAG) {
            wf_batch_add(&batch, events[i].data.u64, events_of(events[i].events));
        } else if (!is_free(io->own)) {
            wf_call_count_up(((const struct instance *)io->own)->wake_fd);
        }
    }
    wf_batch_end(&batch);
}

/* Fetches events, and waits for one until the given real time. Returns their number; 0 if none
 * came. */
static int fetch(const struct instance *instance, struct epoll_event *events, unsigned max,
                 int64_t until)
{
    int saved = errno;
    int count;
    if (until == WF_NEVER) {
        count = epoll_wait(instance->fd, events, (int)max, -1);
    } else {
        int64_t left = until == INT64_MIN ? 0 : until - wf_clock_real();
        left = left < 0 ? 0 : left;
        if (left > 0 && instance->is_precise) {
            struct timespec timeout = { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
            count = epoll_pwait2(instance->fd, events, (int)max, &timeout, NULL);
        } else {
            int64_t ms = (left + 999999) / 1000000; /* Rounded up: never too early. */
            count = epoll_wait(instance->fd, events, (int)max, ms < INT_MAX ? (int)ms : INT_MAX);
        }
    }
    WF_ASSERT(count >= 0 || errno == EINTR);
    errno = saved;
    return count < 0 ? 0 : count;
}

/* --- Sleeping --------------------------------------------------------------------------- */

static bool sit_down(struct wf_io_driver *driver)
{
    struct instance *instance = driver->io->own;
    uint32_t nobody = NOBODY;
    /* relaxed: epoll_wait() hands each event to one caller. */
    if (!wf_cas_relaxed(&instance->seat, &nobody, driver->worker->index + 1)) {
        return false;
    }
    wf_idle_wake_last(&driver->io->sched->idle, driver->worker->index);
    return true;
}

static void get_up(struct wf_io_driver *driver)
{
    struct instance *instance = driver->io->own;
    wf_idle_wake_last(&driver->io->sched->idle, WF_IDLE_NOBODY);
    /* relaxed: epoll_wait() hands each event to one caller. */
    wf_store_relaxed(&instance->seat, (uint32_t)NOBODY);
}

/* Wakes the poller while program time is paused. */
struct sleeper {
    struct wf_clock_sleeper base;
    struct instance *instance;
};

static void wake_sleeper(struct wf_clock_sleeper *self)
{
    wf_call_count_up(((struct sleeper *)self)->instance->wake_fd);
}

/* Returns whether only a wake was fetched, which may be a late one. */
static bool is_nothing(const struct catch *catch)
{
    return catch->count == 1 && catch->events[0].data.u64 == WAKE_TAG;
}

/* Sleeps as the poller, while the worker's park is AWAY. Returns false if the deadline passed. */
static bool sleep_on_seat(struct wf_io_driver *driver, int64_t deadline)
{
    struct instance *instance = driver->io->own;
    struct catch *catch = driver->own;
    struct sleeper sleeper = { .base.wake = wake_sleeper, .instance = instance };
    bool late;
    do {
        int64_t until = wf_clock_sleep_begin(&sleeper.base, deadline);
        catch->count = fetch(instance, catch->events, driver->io->events_max, until);
        late = wf_clock_sleep_end(&sleeper.base);
    } while (!late && (catch->count == 0 || is_nothing(catch)) &&
             wf_park_is_away(&driver->worker->park));
    return !late || catch->count > 0;
}

static bool epoll_park(struct wf_io_driver *driver, int64_t deadline)
{
    struct wf_park *park = &driver->worker->park;
    const struct catch *catch = driver->own;
    if (catch->count > 0) {
        return true; /* Fetched events are still to be handled. */
    }
    if (!sit_down(driver)) {
        return wf_park_sleep(park, deadline);
    }
    bool woken = true;
    if (wf_park_leave(park)) {
        woken = sleep_on_seat(driver, deadline);
        woken = wf_park_come_back(park) || woken;
    }
    get_up(driver);
    return woken;
}

static void epoll_reach(struct wf_io_driver *driver)
{
    wf_call_count_up(((const struct instance *)driver->io->own)->wake_fd);
}

/* --- Awake ------------------------------------------------------------------------------ */

static void epoll_poll(struct wf_io_driver *driver, unsigned room)
{
    struct instance *instance = driver->io->own;
    struct catch *catch = driver->own;
    if (catch->count == 0 && room > 0 && is_free(instance)) {
        catch->count = fetch(instance, catch->events, room, INT64_MIN);
    }
    int count = catch->count;
    catch->count = 0;
    handle(driver->io, catch->events, count);
}

static bool epoll_is_left(struct wf_io_driver *driver)
{
    return is_free(driver->io->own);
}

static bool epoll_help(struct wf_io_driver *driver)
{
    struct epoll_event events[64];
    unsigned max = driver->io->events_max;
    int count = fetch(driver->io->own, events, max < 64 ? max : 64, INT64_MIN);
    handle(driver->io, events, count);
    return false;
}

/* --- Descriptors ------------------------------------------------------------------------ */

static int epoll_watch(struct wf_io *io, struct wf_source *source, uint32_t what)
{
    const struct instance *instance = io->own;
    (void)what;
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
                                 .data.u64 = wf_source_tag(source) };
    int saved = errno;
    int err = epoll_ctl(instance->fd, EPOLL_CTL_ADD, source->fd, &event) == 0 ? 0 : -errno;
    if (err == -EEXIST) {
        int fd = wf_proxy_duplicate(source);
        err = fd < 0 ? fd : epoll_ctl(instance->fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
        if (err != 0) {
            wf_proxy_close(source, 0);
        }
    }
    errno = saved;
    source->armed = err == 0 ? WF_EVENT_BOTH : 0;
    return err;
}

static void epoll_unwatch(struct wf_io *io, struct wf_source *source)
{
    const struct instance *instance = io->own;
    int saved = errno;
    (void)epoll_ctl(instance->fd, EPOLL_CTL_DEL, wf_proxy_fd(source, 0), NULL);
    wf_proxy_close(source, 0);
    errno = saved;
}

/* --- The instance ----------------------------------------------------------------------- */

static bool knows_nanoseconds(int fd)
{
    struct epoll_event event;
    struct timespec none = { 0 };
    /* ENOSYS: the kernel is too old. EPERM: the sandbox is. */
    return epoll_pwait2(fd, &event, 1, &none, NULL) == 0 || errno == EINTR;
}

static void close_instance(struct wf_io *io)
{
    const weft_allocator *allocator = &io->sched->options.allocator;
    struct instance *instance = io->own;
    wf_proxy_close_all(io);
    for (unsigned i = 0; i < io->sched->options.workers; i++) {
        wf_free(allocator, io->drivers[i].own, catch_bytes(io), _Alignof(struct catch));
        io->drivers[i].own = NULL;
    }
    if (instance->wake_fd >= 0) {
        (void)close(instance->wake_fd);
    }
    if (instance->fd >= 0) {
        (void)close(instance->fd);
    }
    wf_free(allocator, instance, sizeof *instance, _Alignof(struct instance));
    io->own = NULL;
}

static int open_descriptors(struct wf_io *io, struct instance *instance)
{
    io->failed_call = "epoll_create1";
    instance->wake_fd = -1;
    instance->fd = epoll_create1(EPOLL_CLOEXEC);
    if (instance->fd < 0) {
        return -errno;
    }
    io->failed_call = "eventfd";
    instance->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (instance->wake_fd < 0) {
        return -errno;
    }
    struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = WAKE_TAG };
    io->failed_call = "epoll_ctl";
    if (epoll_ctl(instance->fd, EPOLL_CTL_ADD, instance->wake_fd, &event) != 0) {
        return -errno;
    }
    io->failed_call = "epoll_wait";
    if (epoll_wait(instance->fd, &event, 1, 0) < 0 && errno != EINTR) {
        return -errno;
    }
    io->failed_call = NULL;
    instance->is_precise = knows_nanoseconds(instance->fd);
    return 0;
}

static int epoll_open(struct wf_io *io)
{
    const weft_allocator *allocator = &io->sched->options.allocator;
    struct instance *instance =
        wf_alloc_zeroed(allocator, sizeof *instance, _Alignof(struct instance));
    if (instance == NULL) {
        return -ENOMEM;
    }
    int saved = errno;
    io->own = instance;
    int err = open_descriptors(io, instance);
    for (unsigned i = 0; err == 0 && i < io->sched->options.workers; i++) {
        io->drivers[i].own = wf_alloc_zeroed(allocator, catch_bytes(io), _Alignof(struct catch));
        err = io->drivers[i].own != NULL ? 0 : -ENOMEM;
    }
    if (err != 0) {
        close_instance(io);
    }
    errno = saved;
    return err;
}

const struct wf_io_backend wf_io_epoll = {
    .name = "epoll",
    .open = epoll_open,
    .close = close_instance,
    .watch = epoll_watch,
    .unwatch = epoll_unwatch,
    .park = epoll_park,
    .reach = epoll_reach,
    .poll = epoll_poll,
    .is_left = epoll_is_left,
    .help = epoll_help,
};
