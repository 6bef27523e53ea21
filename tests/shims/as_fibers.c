/* SPDX-License-Identifier: MIT */
/*
 * as_fibers.c - runs stackless tasks as fibers, to run the tests of stackless tasks with
 * fibers.
 *
 * In programs that are linked with --wrap=wf_spawn, calls of wf_spawn() come here instead of to
 * spawn.c. The fiber treats the task's function as a worker would: it calls the function, and
 * suspends or yields when the function returns WEFT_PENDING or WEFT_YIELDED.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sched/fiber.h"
#include "sched/spawn.h"

struct as_fiber {
    weft_spec spec;
    weft_co co;
    _Alignas(32) unsigned char state[];
};

int __wrap_wf_spawn(struct wf_sched *sched, struct wf_task **out, const weft_spec *spec);

static bool must_cancel(const struct wf_fiber *self)
{
    return wf_state_must_cancel(wf_task_state(&self->task));
}

/* Polls the task once. */
static int poll_task(struct wf_fiber *self, struct as_fiber *task)
{
    bool told = must_cancel(self);
    weft_future *waiting = task->co.waiting;
    if (told && waiting != NULL && !waiting->ops->cancel(waiting)) {
        return WEFT_PENDING;
    }
    int result = task->spec.body(&task->co, task->state);
    bool forgets = result == WEFT_PENDING && told && task->co.waiting == NULL && must_cancel(self);
    return forgets ? WEFT_ECANCELED : result;
}

static int run_task(void *arg)
{
    struct as_fiber *task = arg;
    struct wf_fiber *self = wf_fiber_current();
    int result;
    while ((result = poll_task(self, task)) == WEFT_PENDING || result == WEFT_YIELDED) {
        if (result == WEFT_PENDING) {
            wf_fiber_suspend(self, wf_worker_current());
        } else {
            wf_fiber_yield(self, wf_worker_current());
        }
    }
    WF_ASSERT(task->co.waiting == NULL);
    if (task->spec.drop != NULL) {
        task->spec.drop(task->state);
    }
    free(task);
    return result;
}

int __wrap_wf_spawn(struct wf_sched *sched, struct wf_task **out, const weft_spec *spec)
{
    if (spec->body == NULL || spec->state_size > SIZE_MAX - 2 * sizeof(struct as_fiber)) {
        return -EINVAL;
    }
    size_t size = (sizeof(struct as_fiber) + spec->state_size + 31) & ~(size_t)31;
    struct as_fiber *task = aligned_alloc(32, size);
    if (task == NULL) {
        return -ENOMEM;
    }
    memset(task, 0, size);
    task->spec = *spec;
    if (spec->state != NULL && spec->state_size != 0) {
        memcpy(task->state, spec->state, spec->state_size);
    }
    weft_fiber_spec fiber = {
        .function = run_task,
        .arg = task,
        .name = spec->name,
        .pinned = spec->pinned,
    };
    int err = wf_fiber_spawn(sched, out, &fiber);
    if (err != 0) {
        free(task);
    }
    return err;
}
