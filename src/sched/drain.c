/* SPDX-License-Identifier: MIT */
/*
 * drain.c - shutdown of a scheduler: waits for the last task to end.
 *
 * Problem. "No task is left" must be known exactly, yet a shared count of tasks would be
 * written by all workers at each spawn and each end.
 *
 * While the runtime is open, each worker counts for itself how many tasks it spawned and ended,
 * and the inject queue counts, under its lock, how many it admitted from outside. These counts
 * are never summed. Closing combines them into one number of live tasks, debt:
 *
 *   closer   C1  close the inject queue: no new tasks from outside
 *            C2  debt += admitted + workers * UNKNOWN
 *            C3  phase = CLOSING [D1], wake all workers
 *            C4  cancel every task
 *   worker   A1  sees CLOSING; from now on refuses its own spawns
 *            A2  debt += spawned - ended - UNKNOWN [D2]
 *            A3  the last worker to get here cancels every task again: those
 *                that were spawned between C4 and the last A1
 *            A4  each further end of a task: debt -= 1 [D2]
 *            A5  a fiber that a task still needs: debt += 1, before it exists; the
 *                task has not ended, so debt is not 0
 *
 * The worker that brings the number to 0 reports to the closer that every task has ended. The
 * workers keep running until the closer sets phase STOPPED: timers fire and events are handled
 * for blocking jobs and for calls of plain threads that are still in progress (sched.c).
 * UNKNOWN is larger than any number of tasks, so debt stays above 0 until every worker has
 * added its own count: a worker's count can be negative (it ended tasks that others spawned),
 * and the sum of some of them can be 0 by chance.
 *
 * Edges.
 * [D1] phase is released by the closer, acquired by workers.
 * [D2] debt and acknowledgements are chains of RMWs: the thread that sees 0 sees all tasks that
 *      ended before, and the last worker to acknowledge sees every spawn.
 * [D3] the worker that sees 0 releases is_over, the closer acquires it: every task has ended.
 */
#include "sched/drain.h"

#include "base/clock.h"
#include "base/futex.h"
#include "sched/fiber.h"
#include "sched/heap.h"
#include "sched/sched.h"
#include "sched/task.h"
#include "sched/worker.h"

#define UNKNOWN (INT64_C(1) << 40)

static void pay(struct wf_sched *sched, int64_t amount)
{
    /* acq_rel [D2]: the thread that sees 0 sees all tasks that ended before. */
    if (wf_fetch_add_acq_rel(&sched->drain.debt, amount) + amount != 0) {
        return;
    }
    /* release [D3]: every task has ended. */
    wf_store_release(&sched->drain.is_over, 1u);
    wf_futex_wake(&sched->drain.is_over, 1);
}

/* A fiber that runs a fork of a task, or another part of it: the task cancels the fiber, unless
 * a shield of the task defers that (runners.c). */
void wf_drain_cancel(struct wf_task *task)
{
    const struct wf_fiber *fiber = wf_fiber_of(task);
    if (fiber == NULL || !fiber->follows) {
        wf_task_cancel(task);
    }
}

void wf_drain_close(struct wf_sched *sched)
{
    int64_t admitted = (int64_t)wf_inject_close(&sched->inject);
    /* relaxed: the first link of the chain; the phase below publishes it. */
    (void)wf_fetch_add_relaxed(&sched->drain.debt, admitted + sched->options.workers * UNKNOWN);
    /* release [D1]: a worker that sees CLOSING sees debt. */
    wf_store_release(&sched->drain.phase, (uint32_t)WF_PHASE_CLOSING);
    wf_sched_wake_all(sched);
    wf_heap_visit(sched->heap, wf_drain_cancel);
}

void wf_drain_await(struct wf_sched *sched)
{
    /* acquire [D3]: every task has ended. */
    while (wf_load_acquire(&sched->drain.is_over) == 0) {
        (void)wf_futex_wait(&sched->drain.is_over, 0, WF_NEVER);
    }
}

void wf_drain_stop(struct wf_sched *sched)
{
    /* release [D1]: every task has ended. */
    wf_store_release(&sched->drain.phase, (uint32_t)WF_PHASE_STOPPED);
    wf_sched_wake_all(sched);
}

void wf_drain_acknowledge(struct wf_worker *worker)
{
    struct wf_sched *sched = worker->sched;
    worker->closing = true;
    /* acq_rel [D2]: the last one sees every spawn of the others. */
    uint32_t before = wf_fetch_add_acq_rel(&sched->drain.acknowledged, 1);
    if (before + 1 == sched->options.workers) {
        wf_heap_visit(sched->heap, wf_drain_cancel);
    }
    int64_t spawned = (int64_t)wf_counter_read(&worker->counters.spawned);
    int64_t completed = (int64_t)wf_counter_read(&worker->counters.completed);
    pay(sched, spawned - completed - UNKNOWN);
}

void wf_drain_task_done(struct wf_worker *worker)
{
    pay(worker->sched, -1);
}

void wf_drain_task_added(struct wf_worker *worker)
{
    pay(worker->sched, 1);
}
