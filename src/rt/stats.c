/* SPDX-License-Identifier: MIT */
/*
 * stats.c - runtime and worker statistics.
 */
#include <weft/obs.h>

#include <errno.h>

#include "base/clock.h"
#include "rt/runtime.h"
#include "sched/sched.h"
#include "sched/worker.h"

static void add_pool(struct wf_pool *pool, weft_stats *stats)
{
    wf_lock(&pool->lock);
    stats->blocking_threads = pool->threads;
    stats->blocking_idle = pool->idle_count;
    stats->blocking_queued = pool->queued;
    stats->tasks_alive = pool->submitted - pool->completed;
    stats->tasks_spawned = pool->submitted;
    wf_unlock(&pool->lock);
}

void weft_runtime_stats(const weft_runtime *rt, weft_stats *stats)
{
    wf_runtime_check(rt, "weft_runtime_stats");
    struct wf_sched *sched = rt->sched;
    *stats = (weft_stats){ .workers = sched->options.workers };
    add_pool(&sched->pool, stats);

    /* Reads "completed" first and "spawned" second: a task that ends in between counts as alive,
     * and the difference is never negative. */
    uint64_t ended = 0;
    for (unsigned i = 0; i < sched->options.workers; i++) {
        ended += wf_counter_read(&sched->workers[i].counters.completed);
    }
    uint64_t spawned = wf_inject_admitted(&sched->inject);
    for (unsigned i = 0; i < sched->options.workers; i++) {
        spawned += wf_counter_read(&sched->workers[i].counters.spawned);
    }
    stats->tasks_spawned += spawned;
    stats->tasks_alive += spawned > ended ? spawned - ended : 0;

    uint32_t unparked = wf_idle_unparked(&sched->idle);
    stats->parked = unparked < stats->workers ? stats->workers - unparked : 0;
    stats->searching = wf_idle_searching(&sched->idle);
    stats->inject_length = wf_inject_len(&sched->inject);

    struct wf_stack_stats stacks;
    wf_stacks_read(&sched->stacks, &stacks);
    stats->fiber_stacks = stacks.made;
    stats->fiber_stack_bytes = stacks.bytes;
    stats->fiber_stack_used_max = stacks.used_max;
}

int weft_worker_stats_read(const weft_runtime *rt, unsigned index, weft_worker_stats *stats)
{
    wf_runtime_check(rt, "weft_worker_stats_read");
    if (index >= rt->sched->options.workers) {
        return -EINVAL;
    }
    const struct wf_worker *worker = &rt->sched->workers[index];
    const struct wf_worker_counters *counters = &worker->counters;
    *stats = (weft_worker_stats){
        .polls = wf_counter_read(&counters->polls),
        .spawned = wf_counter_read(&counters->spawned),
        .completed = wf_counter_read(&counters->completed),
        .steals = wf_counter_read(&counters->steals),
        .stolen_tasks = wf_counter_read(&counters->stolen_tasks),
        .lifo_hits = wf_counter_read(&counters->lifo_hits),
        .lifo_stolen = wf_counter_read(&counters->lifo_stolen),
        .evictions = wf_counter_read(&counters->evictions),
        .inject_fetches = wf_counter_read(&counters->inject_fetches),
        .injected_tasks = wf_counter_read(&counters->injected_tasks),
        .overflows = wf_counter_read(&counters->overflows),
        .parks = wf_counter_read(&counters->parks),
        .wakes = wf_counter_read(&counters->wakes),
        .idle_wakes = wf_counter_read(&counters->idle_wakes),
        .unannounced_work = wf_counter_read(&counters->unannounced_work),
        .budget_yields = wf_counter_read(&counters->budget_yields),
        .handovers = wf_counter_read(&counters->handovers),
        .stolen_forks = wf_counter_read(&counters->stolen_forks),
        .fork_waits = wf_counter_read(&counters->fork_waits),
        .average_poll_ns = wf_counter_read(&counters->average_poll_ns),
        .inject_interval = wf_counter_read(&counters->inject_interval),
        .running_ns = wf_counter_read(&counters->time_ns[WEFT_WORKER_RUNNING]),
        .searching_ns = wf_counter_read(&counters->time_ns[WEFT_WORKER_SEARCHING]),
        .parked_ns = wf_counter_read(&counters->time_ns[WEFT_WORKER_PARKED]),
        .queue_length = wf_ring_len(&worker->ring),
        .state = (weft_worker_state)wf_counter_read(&counters->state),
    };
    uint64_t since = wf_counter_read(&counters->since_ns);
    uint64_t now = (uint64_t)wf_clock_real();
    uint64_t running = now > since ? now - since : 0;
    if (stats->state == WEFT_WORKER_RUNNING) {
        stats->running_ns += running;
    } else if (stats->state == WEFT_WORKER_SEARCHING) {
        stats->searching_ns += running;
    } else if (stats->state == WEFT_WORKER_PARKED) {
        stats->parked_ns += running;
    }
    return 0;
}
