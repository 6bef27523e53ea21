/* SPDX-License-Identifier: MIT */
/*
 * par.c - public API for parallel computation on a given runtime.
 */
#include <errno.h>

#include <weft/fiber.h>
#include <weft/par.h>
#include <weft/task.h>

#include "base/alloc.h"
#include "base/callout.h"
#include "par/deep.h"
#include "par/pause.h"
#include "rt/runtime.h"
#include "sched/await.h"
#include "sched/guest.h"
#include "sched/sched.h"
#include "sched/worker.h"

struct run {
    weft_runtime *rt;
    int (*function)(void *arg);
    void *arg;
};

static int run_here(void *arg)
{
    const struct run *run = arg;
    if (wf_worker_current() != NULL) {
        wf_runtime_check(run->rt, "weft_par_run");
        wf_pause_call();
        return wf_callout(run->function, run->arg);
    }
    wf_runtime_enter(run->rt, "weft_par_run");
    int result = wf_guest_run(run->rt->sched, run->function, run->arg);
    wf_runtime_leave(run->rt);
    return result;
}

int weft_par_run(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    struct run run = { rt, function, arg };
    return wf_deep_call(run_here, &run);
}

/* Joins the first of the tasks. If the caller is canceled, all of them are, and the caller waits
 * all the same. */
static int join_first(weft_task **tasks, unsigned count)
{
    int result = 0;
    int err = weft_join(tasks[0], &result, WEFT_NEVER);
    if (err == WEFT_ECANCELED) {
        for (unsigned i = 0; i < count; i++) {
            weft_cancel(tasks[i]);
        }
        weft_shield_enter();
        err = weft_join(tasks[0], &result, WEFT_NEVER);
        weft_shield_leave();
    }
    return err != 0 ? err : result;
}

static int broadcast(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    const weft_allocator *allocator = &rt->sched->options.allocator;
    unsigned workers = weft_runtime_workers(rt);
    size_t size = workers * sizeof(weft_task *);
    weft_task **tasks = wf_alloc(allocator, size, _Alignof(weft_task *));
    if (tasks == NULL) {
        return -ENOMEM;
    }
    int refused = 0;
    unsigned started = 0;
    while (refused == 0 && started < workers) {
        weft_fiber_spec spec = { .function = function,
                                 .arg = arg,
                                 .pinned = WEFT_PINNED_TO(started) };
        refused = weft_runtime_go(rt, &tasks[started], &spec);
        started += refused == 0;
    }
    int first = 0;
    for (unsigned i = 0; i < started; i++) {
        int err = join_first(&tasks[i], started - i);
        first = first == 0 ? err : first;
    }
    wf_free(allocator, tasks, size, _Alignof(weft_task *));
    return first != 0 ? first : refused;
}

int weft_par_broadcast(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    wf_await_must_suspend("weft_par_broadcast", "call it on a fiber");
    wf_runtime_enter(rt, "weft_par_broadcast");
    int result = broadcast(rt, function, arg);
    wf_runtime_leave(rt);
    return result;
}
