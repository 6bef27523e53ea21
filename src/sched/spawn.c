/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - creating and polling stackless tasks.
 *
 * Cancellation. A task that is canceled is polled once more. Before that, its current await is
 * canceled, and the task's function does not run until that has ended. So no list ever holds a
 * node of an await that the function has given up, and no operation holds a buffer of one. Each
 * later await returns WEFT_ECANCELED immediately. A function that still returns WEFT_PENDING
 * without awaiting anything waits for a waker of its own that may never come. It has seen the
 * cancellation, and is ended.
 *
 * Edges: heap.c's [H2], the store of the state word.
 */
#include "sched/spawn.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/fork.h"
#include "sched/frame.h"
#include "sched/heap.h"
#include "sched/sched.h"
#include "sched/task.h"
#include "sched/thread.h"
#include "sched/worker.h"

struct stackless {
    struct wf_task task;
    weft_body_fn body;
    void (*drop)(void *state);
    weft_co co;
    unsigned char state[];
};

_Static_assert(offsetof(struct stackless, state) % 32 == 0, "the state is aligned to 32 bytes");

static bool must_cancel(const struct wf_task *task)
{
    /* relaxed: a flag; if it is set later, the task is polled again. */
    return wf_state_must_cancel(wf_load_relaxed(&task->state));
}

/* If the function is not awaited as a future, its flags are unused except for the low bits
 * (future.c). */
static _Atomic(uint32_t) *counter_of(struct stackless *self)
{
    return (_Atomic(uint32_t) *)&self->co.flags;
}

static int stackless_end(struct stackless *self, int result)
{
    if (self->co.waiting != NULL) {
        wf_fatal("task '%s' (#%llu) returned while an await of its was pending; return "
                 "WEFT_PENDING until the await has its result",
                 self->task.name != NULL ? self->task.name : "", (unsigned long long)self->task.id);
    }
    if (wf_unlikely(self->co.flags != 0)) {
        wf_frame_must_be_empty(counter_of(self), &self->task);
    }
    if (self->drop != NULL) {
        self->drop(self->state);
    }
    return result;
}

static int stackless_poll(struct wf_task *task)
{
    struct stackless *self = (struct stackless *)task;
    bool told = must_cancel(task);
    weft_future *waiting = self->co.waiting;
    if (told && waiting != NULL && !waiting->ops->cancel(waiting)) {
        return WEFT_PENDING;
    }
    int result = self->body(&self->co, self->state);
    if (result == WEFT_YIELDED) {
        return result;
    }
    if (result == WEFT_PENDING) {
        if (!told || self->co.waiting != NULL || !must_cancel(task)) {
            return result;
        }
        result = WEFT_ECANCELED;
    }
    return stackless_end(self, result);
}

void wf_spawn_free(struct wf_task *task)
{
    wf_heap_free(task, wf_worker_slab(task->heap));
}

static const struct wf_task_ops stackless_ops = {
    .kind = "task",
    .poll = stackless_poll,
    .schedule = wf_sched_schedule,
    .destroy = wf_spawn_free,
};

static uint64_t new_id(struct wf_sched *sched, unsigned slab)
{
    if (slab != sched->heap->outside) {
        return wf_spawn_id(&sched->workers[slab]);
    }
    /* relaxed: the order of the numbers does not matter. */
    uint64_t count = wf_fetch_add_relaxed(&sched->outside_spawned, 1);
    return count * (sched->options.workers + 1) + slab + 1;
}

_Atomic(uint32_t) *wf_spawn_counter(struct wf_task *task, const void *object)
{
    struct stackless *self = (struct stackless *)task;
    if (task->ops != &stackless_ops) {
        return NULL;
    }
    uintptr_t offset = (uintptr_t)object - (uintptr_t)self->state;
    return offset < wf_heap_size_of(task) - sizeof *self ? counter_of(self) : NULL;
}

weft_body_fn wf_spawn_body(const struct wf_task *task)
{
    return task->ops == &stackless_ops ? ((const struct stackless *)task)->body : NULL;
}

struct wf_task *wf_spawn_alloc(struct wf_sched *sched, unsigned slab, size_t size,
                               const struct wf_task_ops *ops, const char *name)
{
    struct wf_task *task = wf_heap_alloc(sched->heap, slab, size);
    if (task == NULL) {
        return NULL;
    }
    wf_spawn_fill(task, ops, name, new_id(sched, slab));
    return task;
}

static int make_stackless(struct wf_sched *sched, unsigned slab, const weft_spec *spec,
                          struct wf_task **out)
{
    if (spec->body == NULL || spec->state_size > SIZE_MAX - sizeof(struct stackless)) {
        return -EINVAL;
    }
    if (!wf_spawn_can_pin(sched, spec->pinned)) {
        return -EINVAL;
    }
    size_t size = sizeof(struct stackless) + spec->state_size;
    struct wf_task *task = wf_spawn_alloc(sched, slab, size, &stackless_ops, spec->name);
    if (task == NULL) {
        return -ENOMEM;
    }
    struct stackless *self = (struct stackless *)task;
    self->body = spec->body;
    self->drop = spec->drop;
    self->co = (weft_co){ 0 };
    if (spec->state != NULL) {
        memcpy(self->state, spec->state, spec->state_size);
    } else {
        memset(self->state, 0, spec->state_size);
    }
    *out = task;
    return 0;
}

void wf_spawn_pin(struct wf_sched *sched, struct wf_worker *worker, struct wf_task *task,
                  uint32_t pinned)
{
    if (pinned != WEFT_PINNED) {
        task->pin = (uint16_t)pinned;
    } else if (worker != NULL) {
        task->pin = (uint16_t)(worker->index + 1);
    } else {
        /* relaxed: the order of the turns does not matter. */
        uint32_t turn = wf_fetch_add_relaxed(&sched->next_pin, 1);
        task->pin = (uint16_t)(turn % sched->options.workers + 1);
    }
}

static void publish(struct wf_task *task, bool detached)
{
    /* release [H2]: the task is initialized. */
    wf_store_release(&task->state, wf_spawn_state(detached));
}

/*
 * Refuses a spawn: the task's function never runs and its state stays the caller's. A walker
 * may hold a reference by now, so the task is completed, not freed; the last reference frees
 * it.
 */
static int refuse(struct wf_task *task, bool detached, int error)
{
    (void)wf_task_begin(task);
    wf_task_complete(task, error);
    if (!detached) {
        wf_task_release(task);
    }
    return error;
}

/* Publishes the task first: once it is queued, it may run and be gone. */
static int start_outside(struct wf_sched *sched, struct wf_task *task, bool detached)
{
    publish(task, detached);
    bool pinned = task->pin != 0;
    enum wf_admit verdict = pinned ? wf_inject_admit_elsewhere(&sched->inject)
                                   : wf_inject_admit(&sched->inject, &task->node);
    if (verdict != WF_ADMIT_OK) {
        return refuse(task, detached, verdict == WF_ADMIT_FULL ? -EAGAIN : WEFT_ESHUTDOWN);
    }
    if (pinned) {
        wf_sched_deliver(sched, task);
    } else {
        wf_sched_notify_injected(sched);
    }
    return 0;
}

static int start_on_worker(struct wf_worker *worker, struct wf_task *task, bool detached)
{
    wf_spawn_publish(worker, task, detached);
    wf_sched_schedule(task);
    return 0;
}

int wf_spawn_admit(struct wf_sched *sched, struct wf_worker **out)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL && worker->sched != sched) {
        worker = NULL;
    }
    wf_fork_check(sched->fork_number, "weft_spawn");
    *out = worker;
    return worker == NULL || wf_spawn_is_open(worker) ? 0 : WEFT_ESHUTDOWN;
}

int wf_spawn_start(struct wf_sched *sched, struct wf_worker *worker, struct wf_task *task,
                   uint32_t pinned, struct wf_task **out)
{
    if (pinned != 0) {
        wf_spawn_pin(sched, worker, task, pinned);
    }
    bool detached = out == NULL;
    int err = worker != NULL ? start_on_worker(worker, task, detached)
                             : start_outside(sched, task, detached);
    if (err == 0 && out != NULL) {
        *out = task;
    }
    return err;
}

int wf_spawn(struct wf_sched *sched, struct wf_task **out, const weft_spec *spec)
{
    struct wf_worker *worker;
    struct wf_task *task;
    int err = wf_spawn_admit(sched, &worker);
    if (err == 0) {
        unsigned slab = worker != NULL ? worker->index : sched->heap->outside;
        err = make_stackless(sched, slab, spec, &task);
    }
    return err != 0 ? err : wf_spawn_start(sched, worker, task, spec->pinned, out);
}

int wf_spawn_wait(struct wf_sched *sched, struct wf_task **out, const weft_spec *spec,
                  weft_time deadline)
{
    bool granted = false;
    for (;;) {
        int err = wf_spawn(sched, out, spec);
        if (err != -EAGAIN) {
            if (err != 0 && granted) {
                /* The space that was granted is not used: pass it on. */
                wf_room_freed(&sched->room, &sched->inject, 1);
            }
            return err;
        }
        struct wf_room_future future;
        wf_room_future_init(&future, &sched->room, &sched->inject);
        err = weft_await(&future.future, deadline);
        if (err != 0) {
            return err;
        }
        granted = true;
    }
}
