/* SPDX-License-Identifier: MIT */
/*
 * task.c - public API for tasks: spawn, cancel, shield.
 */
#include <weft/fiber.h>
#include <weft/task.h>

#include "base/assert.h"
#include "base/fork.h"
#include "rt/runtime.h"
#include "sched/await.h"
#include "sched/blocking.h"
#include "sched/fiber.h"
#include "sched/heap.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/task.h"
#include "sched/thread.h"
#include "sched/worker.h"

int weft_spawn(weft_task **task, const weft_spec *spec)
{
    struct wf_worker *worker = wf_worker_current();
    if (wf_likely(worker != NULL)) {
        return wf_spawn(worker->sched, (struct wf_task **)task, spec);
    }
    return weft_runtime_spawn(wf_runtime_must_current("weft_spawn"), task, spec);
}

int weft_runtime_spawn(weft_runtime *rt, weft_task **task, const weft_spec *spec)
{
    wf_runtime_check(rt, "weft_runtime_spawn");
    return wf_spawn(rt->sched, (struct wf_task **)task, spec);
}

int weft_runtime_spawn_wait(weft_runtime *rt, weft_task **task, const weft_spec *spec,
                            weft_time deadline)
{
    wf_runtime_enter(rt, "weft_runtime_spawn_wait");
    int err = wf_await_begin(&deadline, "weft_runtime_spawn_wait",
                             "use weft_spawn(), which never waits there");
    if (err == 0) {
        err = wf_spawn_wait(rt->sched, (struct wf_task **)task, spec, deadline);
    }
    wf_runtime_leave(rt);
    return err;
}

int weft_go_with(weft_task **task, const weft_fiber_spec *spec)
{
    struct wf_worker *worker = wf_worker_current();
    if (wf_likely(worker != NULL)) {
        return wf_fiber_spawn(worker->sched, (struct wf_task **)task, spec);
    }
    return weft_runtime_go(wf_runtime_must_current("weft_go"), task, spec);
}

int weft_go(weft_task **task, int (*function)(void *arg), void *arg)
{
    struct wf_worker *worker = wf_worker_current();
    if (wf_likely(worker != NULL)) {
        return wf_fiber_go(worker, (struct wf_task **)task, function, arg);
    }
    return weft_go_with(task, &(weft_fiber_spec){ .function = function, .arg = arg });
}

int weft_runtime_go(weft_runtime *rt, weft_task **task, const weft_fiber_spec *spec)
{
    wf_runtime_check(rt, "weft_runtime_go");
    return wf_fiber_spawn(rt->sched, (struct wf_task **)task, spec);
}

int weft_spawn_blocking(weft_task **task, int (*function)(void *arg), void *arg)
{
    weft_runtime *rt = wf_runtime_must_current("weft_spawn_blocking");
    return weft_runtime_spawn_blocking(rt, task, function, arg);
}

int weft_runtime_spawn_blocking(weft_runtime *rt, weft_task **task, int (*function)(void *arg),
                                void *arg)
{
    wf_runtime_check(rt, "weft_runtime_spawn_blocking");
    struct wf_pool_spec spec = { .function = function, .arg = arg };
    return wf_pool_spawn(rt->sched, (struct wf_task **)task, &spec);
}

weft_task *weft_task_retain(weft_task *task)
{
    wf_task_check_handle(wf_task_state((struct wf_task *)task), "weft_task_retain");
    wf_task_retain((struct wf_task *)task);
    return task;
}

void weft_cancel(weft_task *handle)
{
    struct wf_task *task = (struct wf_task *)handle;
    wf_task_check_handle(wf_task_state(task), "weft_cancel");
    wf_fork_check(task->heap->sched->fork_number, "weft_cancel");
    wf_task_cancel(task);
}

bool weft_task_is_done(const weft_task *task)
{
    return wf_state_is_complete(wf_task_state((const struct wf_task *)task));
}

uint64_t weft_task_id(const weft_task *task)
{
    return ((const struct wf_task *)task)->id;
}

const char *weft_task_name(const weft_task *task)
{
    return ((const struct wf_task *)task)->name;
}

weft_task *weft_task_current(void)
{
    return (weft_task *)wf_thread_running();
}

bool weft_cancelled(void)
{
    const struct wf_task *task = wf_thread_running();
    return task != NULL && wf_state_must_cancel(wf_task_state(task));
}

static struct wf_task *must_run(const char *call)
{
    struct wf_task *task = wf_thread_shielded();
    if (task == NULL) {
        wf_fatal("%s: no task runs here; call it from the body of a task", call);
    }
    return task;
}

void weft_shield_enter(void)
{
    wf_state_shield_enter(&must_run("weft_shield_enter")->state);
}

void weft_shield_leave(void)
{
    wf_state_shield_leave(&must_run("weft_shield_leave")->state);
}
