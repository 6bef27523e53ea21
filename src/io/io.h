/* SPDX-License-Identifier: MIT */
/*
 * io.h - I/O of one runtime: its sources, the backend that reports their events, and a driver
 * per worker.
 */
#ifndef WF_IO_IO_H
#define WF_IO_IO_H

#include <stdbool.h>
#include <stdint.h>

#include <weft/io.h>

#include "base/lock.h"
#include "io/source.h"
#include "sched/driver.h"

struct wf_io;
struct wf_sched;
struct wf_worker;

/* A worker's driver (driver.h): the worker parks in it. */
struct wf_io_driver {
    struct wf_driver driver;
    struct wf_io *io;
    struct wf_worker *worker;
    void *own; /* the backend's */
};

/* A kernel interface for readiness events. */
struct wf_io_backend {
    const char *name;
    /* Returns 0, or -errno if the backend cannot be used on this system. io->failed_call then
     * names the call that failed. */
    int (*open)(struct wf_io *io);
    void (*close)(struct wf_io *io);
    /* Starts and stops reporting events of a source, for reading or writing. Reports the next
     * event, which comes immediately if the source is ready, or all events from now on. The
     * caller holds the source's latch. */
    int (*watch)(struct wf_io *io, struct wf_source *source, uint32_t what);
    void (*unwatch)(struct wf_io *io, struct wf_source *source);
    /* The operations of driver.h, used while sources are watched. */
    bool (*park)(struct wf_io_driver *driver, int64_t deadline);
    void (*reach)(struct wf_io_driver *driver);
    void (*poll)(struct wf_io_driver *driver, unsigned room);
    bool (*is_left)(struct wf_io_driver *driver);
    bool (*help)(struct wf_io_driver *driver);
};

extern const struct wf_io_backend wf_io_epoll;
#ifdef WF_HAS_URING
extern const struct wf_io_backend wf_io_uring;
#endif

struct wf_io {
    struct wf_sched *sched;              /* constant */
    struct wf_io_driver *drivers;        /* constant: one per worker */
    unsigned events_max;                 /* constant: maximum number handled per poll */
    weft_io_backend wanted;              /* constant */
    struct wf_lock lock;                 /* guards the fields up to is_open */
    struct wf_source *free;              /* list of free sources */
    struct wf_source *blocks;            /* list of the first sources of the runtime's blocks */
    bool is_closing;                     /* no source is opened any more */
    _Atomic(uint32_t) in_use;            /* sources that are not free; a futex while closing */
    char reason[96];                     /* why this backend is used, or why it cannot be */
    const char *failed_call;             /* the call in which the backend's open failed, or NULL */
    int reported;                        /* the error that was reported last, or 0 */
    _Atomic(bool) is_open;               /* written under the lock: the backend is open */
    const struct wf_io_backend *backend; /* constant once open */
    void *own;                           /* constant once open: the backend's */
    _Atomic(uint32_t) watched;           /* any thread: number of watched sources */
};

/* Called before the scheduler has started, and after it has stopped. */
int wf_io_create(struct wf_sched *sched);
void wf_io_destroy(struct wf_sched *sched);

/* Closes all sources, see source.h. Called after the last task, while the workers still run. */
void wf_io_close(struct wf_sched *sched);

/* Returns the I/O of the current task's runtime. Aborts, naming the call, if there is none. */
struct wf_io *wf_io_must(const char *call);

/* Counts a source as watched, before an event of it can come; and uncounts it. Any thread. */
void wf_io_count_watched(struct wf_io *io);
static inline void wf_io_uncount_watched(struct wf_io *io)
{
    /* relaxed: a worker that reads it late sleeps in its driver, which is harmless. */
    (void)wf_fetch_sub_relaxed(&io->watched, 1);
}

/* Opens the backend and describes it. Any thread. */
int wf_io_info(struct wf_io *io, weft_io_info *info);

/* Opens the backend, unless it is open. Any thread. */
int wf_io_open(struct wf_io *io);

static inline bool wf_io_is_used(const struct wf_io *io)
{
    /* acquire [IO2]: the backend is open. */
    return wf_load_acquire(&io->watched) > 0;
}

#endif
