/* SPDX-License-Identifier: MIT */
/*
 * runtime.c - the life of a runtime: create, run, shut down, destroy.
 *
 * Edges.
 * [U1] the end of a shutdown releases the word, others who wait for it acquire
 *      it: everything has ended.
 */
#include "rt/runtime.h"

#include <errno.h>

#include <weft/fiber.h>
#include <weft/task.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/futex.h"
#include "fiber/stack.h"
#include "io/io.h"
#include "rt/config.h"
#include "sched/heap.h"
#include "sched/overflow.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/worker.h"
#include "time/timer.h"

/* Every runtime of the process. Debuggers look for this name: tools/weft-gdb.py. */
static struct wf_list wf_runtimes = { &wf_runtimes, &wf_runtimes };
static struct wf_lock runtimes_lock = WF_LOCK_INIT(WF_RANK_RUNTIME);

static void list_runtime(weft_runtime *rt)
{
    wf_lock(&runtimes_lock);
    wf_list_push_back(&wf_runtimes, &rt->link);
    wf_unlock(&runtimes_lock);
}

static void unlist_runtime(weft_runtime *rt)
{
    wf_lock(&runtimes_lock);
    wf_list_remove(&rt->link);
    wf_unlock(&runtimes_lock);
}

void wf_runtime_check_fork(const weft_runtime *rt, const char *call)
{
    wf_fork_check(rt->sched->fork_number, call);
}

int weft_runtime_create(weft_runtime **out, const weft_config *config)
{
    struct wf_sched_options options;
    int err = wf_config_resolve(config, &options);
    if (err != 0) {
        return err;
    }
    wf_fork_watch(wf_worker_in_child);
    wf_overflow_watch();
    err = -ENOMEM;
    weft_runtime *rt = wf_alloc_zeroed(&options.allocator, sizeof *rt, _Alignof(weft_runtime));
    struct wf_sched *sched =
        wf_alloc_zeroed(&options.allocator, sizeof *sched, _Alignof(struct wf_sched));
    if (rt == NULL || sched == NULL) {
        goto undo_memory;
    }
    err = wf_sched_init(sched, &options, rt);
    if (err != 0) {
        goto undo_memory;
    }
    rt->sched = sched;
    rt->allocator = options.allocator;
    wf_lock_init(&rt->stop_lock, WF_RANK_RUNTIME);
    list_runtime(rt);
    err = wf_timers_create(sched);
    if (err != 0) {
        goto undo_sched;
    }
    err = wf_io_create(sched);
    if (err != 0) {
        goto undo_sched;
    }
    err = wf_sched_start(sched);
    if (err != 0) {
        goto undo_sched;
    }
    *out = rt;
    return 0;

undo_sched:
    unlist_runtime(rt);
    wf_io_destroy(sched);
    wf_timers_destroy(sched);
    wf_sched_fini(sched);
    sched = NULL;
undo_memory:
    wf_free(&options.allocator, sched, sizeof *sched, _Alignof(struct wf_sched));
    wf_free(&options.allocator, rt, sizeof *rt, _Alignof(weft_runtime));
    return err;
}

static void must_be_outside(const weft_runtime *rt, const char *call)
{
    const struct wf_worker *worker = wf_worker_current();
    const struct wf_task *running = wf_thread_running();
    bool on_worker = worker != NULL && worker->sched == rt->sched;
    bool on_pool = running != NULL && running->heap->sched == rt->sched;
    if (on_worker || on_pool) {
        wf_fatal("%s: called on a thread of this runtime, which would wait for itself; call it "
                 "from a plain thread, for example after weft_run()'s main",
                 call);
    }
}

void weft_runtime_shutdown(weft_runtime *rt)
{
    wf_runtime_check_fork(rt, "weft_runtime_shutdown");
    must_be_outside(rt, "weft_runtime_shutdown");
    wf_lock(&rt->stop_lock);
    bool first = !rt->stopping;
    rt->stopping = true;
    wf_unlock(&rt->stop_lock);
    if (first) {
        wf_sched_stop(rt->sched);
        /* release [U1]: everything has ended. */
        wf_store_release(&rt->stopped, 1u);
        wf_futex_wake(&rt->stopped, INT_MAX);
        return;
    }
    /* acquire [U1]: everything has ended. */
    while (wf_load_acquire(&rt->stopped) == 0) {
        (void)wf_futex_wait(&rt->stopped, 0, WF_NEVER);
    }
}

void weft_runtime_destroy(weft_runtime *rt)
{
    if (rt == NULL) {
        return;
    }
    weft_runtime_shutdown(rt);
    unlist_runtime(rt);
    wf_io_destroy(rt->sched);
    wf_timers_destroy(rt->sched);
    wf_sched_fini(rt->sched);
    weft_allocator allocator = rt->allocator;
    wf_free(&allocator, rt, sizeof *rt, _Alignof(weft_runtime));
}

int weft_run(const weft_config *config, int (*main_fn)(void *arg), void *arg)
{
    wf_thread_must_be_plain("weft_run", "spawn a task on the runtime that is there");
    if (wf_thread_self() == NULL) { /* Else it could not wait for what has begun. */
        return -ENOMEM;
    }
    weft_runtime *rt;
    int err = weft_runtime_create(&rt, config);
    if (err != 0) {
        return err;
    }
    weft_task *main_task;
    weft_fiber_spec spec = {
        .function = main_fn,
        .arg = arg,
        .name = "main",
        .stack_size = WF_STACK_MAX,
    };
    int result = 0;
    err = weft_runtime_go(rt, &main_task, &spec);
    if (err == 0) {
        err = weft_join(main_task, &result, WEFT_NEVER);
        if (err != 0) {
            weft_detach(main_task);
        }
    }
    weft_runtime_destroy(rt);
    return err != 0 ? err : result;
}

weft_runtime *weft_runtime_current(void)
{
    const struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        return worker->sched->runtime;
    }
    const struct wf_thread *thread = wf_thread_known();
    return thread != NULL ? thread->runtime : NULL;
}

weft_runtime *wf_runtime_must_current(const char *call)
{
    weft_runtime *rt = weft_runtime_current();
    if (rt == NULL) {
        wf_fatal("%s: this thread belongs to no runtime; call weft_runtime_%s with a handle, or "
                 "call it in a task",
                 call, call + sizeof "weft_" - 1);
    }
    return rt;
}

int weft_worker_current(void)
{
    const struct wf_worker *worker = wf_worker_current();
    return worker != NULL ? (int)worker->index : -1;
}

unsigned weft_runtime_workers(const weft_runtime *rt)
{
    return rt->sched->options.workers;
}
