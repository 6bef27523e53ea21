/* SPDX-License-Identifier: MIT */
/*
 * io.h - the I/O of one runtime: its sources, the backend that tells of their events, and a
 * driver for each worker.
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

/* What a worker sleeps in. */
struct wf_io_driver {
    struct wf_driver driver;
    struct wf_io *io;
    struct wf_worker *worker;
    void *own; /* the backend's */
};

/* How the kernel tells of events. */
struct wf_io_backend {
    const char *name;
    /* Returns 0, or -errno if the backend cannot be used here: then io->failed_call names what
     * has failed. */
    int (*open)(struct wf_io *io);
    void (*close)(struct wf_io *io);
    /* Under the latch of the source: the next event, for reading or writing, is told, at
     * once if there is reason to; or all of them from now on. And no more. */
    int (*watch)(struct wf_io *io, struct wf_source *source, uint32_t what);
    void (*unwatch)(struct wf_io *io, struct wf_source *source);
    /* Of its worker's, as in driver.h; while there are sources. */
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
    struct wf_io_driver *drivers;        /* constant: one for each worker */
    unsigned events_max;                 /* constant: handled in one visit */
    weft_io_backend wanted;              /* constant */
    struct wf_lock lock;                 /* guards what follows, up to is_open */
    struct wf_source *free;              /* list of sources */
    struct wf_source *blocks;            /* list of the first sources of our blocks */
    bool is_closing;                     /* no source is opened any more */
    _Atomic(uint32_t) in_use;            /* sources that are not free; a futex while closing */
    char reason[96];                     /* why this backend, or why it cannot be used */
    const char *failed_call;             /* the backend's: what its open has failed in, or NULL */
    int reported;                        /* the error that the last message was about, or 0 */
    _Atomic(bool) is_open;               /* written under the lock: there is a backend */
    const struct wf_io_backend *backend; /* constant once open */
    void *own;                           /* constant once open: the backend's */
    _Atomic(uint32_t) watched;           /* any thread: sources that are watched */
};

/* For a scheduler that has not started, and after it has stopped. */
int wf_io_create(struct wf_sched *sched);
void wf_io_destroy(struct wf_sched *sched);

/* After the last task, while the workers still run: closes all sources, see source.h. */
void wf_io_close(struct wf_sched *sched);

/* The I/O of this task's runtime; aborts, naming the call, where there is none. */
struct wf_io *wf_io_must(const char *call);

/* One more source is watched, before any event of it comes; and one less. Any thread. */
void wf_io_count_watched(struct wf_io *io);
static inline void wf_io_uncount_watched(struct wf_io *io)
{
    /* relaxed: who sleeps for nothing sleeps all the same. */
    (void)wf_fetch_sub_relaxed(&io->watched, 1);
}

/* Any thread: what it is; opens it. */
int wf_io_info(struct wf_io *io, weft_io_info *info);

/* Any thread: opens the backend if that has not happened yet. */
int wf_io_open(struct wf_io *io);

static inline bool wf_io_is_used(const struct wf_io *io)
{
    /* acquire [IO2]: the backend is there. */
    return wf_load_acquire(&io->watched) > 0;
}

#endif
