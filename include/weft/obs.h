/* SPDX-License-Identifier: MIT */
/*
 * weft/obs.h - looking into a running runtime.
 */
#ifndef WEFT_OBS_H
#define WEFT_OBS_H

#include "base.h"
#include "runtime.h"

WEFT_EXTERN_C_BEGIN

typedef enum weft_worker_state {
    WEFT_WORKER_RUNNING = 0,
    WEFT_WORKER_SEARCHING = 1,
    WEFT_WORKER_PARKED = 2,
    WEFT_WORKER_STOPPED = 3,
} weft_worker_state;

/* Counters of one worker, since its start. */
typedef struct weft_worker_stats {
    uint64_t polls;
    uint64_t spawned;          /* tasks spawned on this worker */
    uint64_t completed;        /* tasks that ended on this worker */
    uint64_t steals;           /* times it took from another worker */
    uint64_t stolen_tasks;     /* how many it got that way */
    uint64_t lifo_hits;        /* polls of the task woken last */
    uint64_t lifo_stolen;      /* such tasks taken from a worker that was busy */
    uint64_t evictions;        /* tasks pushed from that place into the queue */
    uint64_t inject_fetches;   /* times it took from the inject queue */
    uint64_t injected_tasks;   /* how many it got that way */
    uint64_t overflows;        /* times its queue was full */
    uint64_t parks;            /* times it went to sleep */
    uint64_t wakes;            /* times it was woken to look for work */
    uint64_t idle_wakes;       /* of these: it found nothing */
    uint64_t unannounced_work; /* park timeouts that found forgotten work; stays 0 */
    uint64_t budget_yields;    /* polls cut short after 128 ready operations */
    uint64_t handovers;        /* times a fiber passed it straight on to another */
    uint64_t stolen_forks;     /* forks of others that it has taken */
    uint64_t fork_waits;       /* joins that had to wait for such a fork */
    uint64_t average_poll_ns;
    uint64_t inject_interval; /* polls between looks at the inject queue */
    uint64_t running_ns;
    uint64_t searching_ns;
    uint64_t parked_ns;
    uint64_t queue_length;
    weft_worker_state state;
} weft_worker_stats;

/* Figures of a whole runtime. */
typedef struct weft_stats {
    unsigned workers;
    unsigned searching; /* workers that look for work */
    unsigned parked;    /* workers that sleep */
    uint64_t inject_length;
    uint64_t tasks_alive; /* spawned and not ended, blocking jobs included */
    uint64_t tasks_spawned;
    uint64_t blocking_threads;
    uint64_t blocking_idle;
    uint64_t blocking_queued;
    uint64_t fiber_stacks;         /* in existence; most of their memory is not in use */
    uint64_t fiber_stack_bytes;    /* address space of these */
    uint64_t fiber_stack_used_max; /* the deepest use that was seen; looked at when stacks
                                     * are given back to the system */
} weft_stats;

/*
 * Reads the figures of the runtime. Each value is whole; they are not of one
 * instant.
 *
 * Context: any thread, until weft_runtime_destroy().
 */
WEFT_API void weft_runtime_stats(const weft_runtime *rt, weft_stats *stats);

/*
 * Reads the counters of one worker. Each value is whole.
 *
 * Context: any thread, until weft_runtime_destroy().
 * Errors:  -EINVAL: there is no worker with this index.
 */
WEFT_API WEFT_NODISCARD int weft_worker_stats_read(const weft_runtime *rt, unsigned worker,
                                                   weft_worker_stats *stats);

WEFT_EXTERN_C_END

#endif
