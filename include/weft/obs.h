/* SPDX-License-Identifier: MIT */
/*
 * weft/obs.h - runtime and worker statistics.
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

/* Counters of one worker, since it started. */
typedef struct weft_worker_stats {
    uint64_t polls;
    uint64_t spawned;          /* tasks spawned on this worker */
    uint64_t completed;        /* tasks that ended on this worker */
    uint64_t steals;           /* successful steals from other workers */
    uint64_t stolen_tasks;     /* tasks obtained by them */
    uint64_t lifo_hits;        /* polls of tasks from the LIFO slot */
    uint64_t lifo_stolen;      /* tasks stolen from the LIFO slot of a stalled worker */
    uint64_t evictions;        /* tasks moved from the LIFO slot to the run queue */
    uint64_t inject_fetches;   /* fetches from the inject queue */
    uint64_t injected_tasks;   /* tasks obtained by them */
    uint64_t overflows;        /* times its run queue was full */
    uint64_t parks;            /* times it parked */
    uint64_t wakes;            /* times it was woken to look for work */
    uint64_t idle_wakes;       /* wakes that found no work */
    uint64_t unannounced_work; /* park timeouts that found forgotten work; stays 0 */
    uint64_t budget_yields;    /* polls cut short after 128 ready operations */
    uint64_t handovers;        /* direct switches from one fiber to the next */
    uint64_t stolen_forks;     /* forks stolen from other workers */
    uint64_t fork_waits;       /* joins that waited for a stolen fork */
    uint64_t average_poll_ns;
    uint64_t inject_interval; /* polls between checks of the inject queue */
    uint64_t running_ns;
    uint64_t searching_ns;
    uint64_t parked_ns;
    uint64_t queue_length;
    weft_worker_state state;
} weft_worker_stats;

/* Statistics of a whole runtime. */
typedef struct weft_stats {
    unsigned workers;
    unsigned searching; /* workers searching for work */
    unsigned parked;    /* workers that are parked */
    uint64_t inject_length;
    uint64_t tasks_alive; /* spawned and not ended, blocking jobs included */
    uint64_t tasks_spawned;
    uint64_t blocking_threads;
    uint64_t blocking_idle;
    uint64_t blocking_queued;
    uint64_t fiber_stacks;         /* allocated; most of their memory is not committed */
    uint64_t fiber_stack_bytes;    /* their address space */
    uint64_t fiber_stack_used_max; /* deepest use seen when stacks are returned to the system */
} weft_stats;

/*
 * Reads the statistics of a runtime. No value is torn, but the values are not a snapshot of one
 * instant.
 *
 * Context: any thread, until weft_runtime_destroy().
 */
WEFT_API void weft_runtime_stats(const weft_runtime *rt, weft_stats *stats);

/*
 * Reads the counters of one worker. No value is torn.
 *
 * Context: any thread, until weft_runtime_destroy().
 * Errors:  -EINVAL (no worker with this index).
 */
WEFT_API WEFT_NODISCARD int weft_worker_stats_read(const weft_runtime *rt, unsigned worker,
                                                   weft_worker_stats *stats);

WEFT_EXTERN_C_END

#endif
