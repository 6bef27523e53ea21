/* SPDX-License-Identifier: MIT */
/*
 * scope_rig.h - plain threads as the children of a scope. Fakes: everything that belongs to
 * workers and tasks.
 */
#ifndef MODEL_SCOPE_RIG_H
#define MODEL_SCOPE_RIG_H

#include <weft/scope.h>

#include <weft/event.h>
#include <weft/time.h>

#include "mc.h"
#include "sched/fiber.h"
#include "sched/frame.h"
#include "sched/join.h"
#include "sched/sched.h"
#include "sched/worker.h"
#include "time/timer.h"

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

const struct wf_task_ops wf_fiber_ops;

/* --- Fakes: a child is a thread, and a cancel sets its event ---------------------------------- */

enum {
    CHILDREN_MAX = 3,
};

struct fake_task {
    weft_event told;
    int (*function)(void *arg);
    char arg[64];
};

static struct fake_task tasks[CHILDREN_MAX];
static unsigned tasks_count;
static _Thread_local struct fake_task *current;

static void run_child(void *arg)
{
    current = arg;
    (void)current->function(current->arg);
}

int weft_go_with(weft_task **task, const weft_fiber_spec *spec)
{
    mc_assert(task == NULL && tasks_count < CHILDREN_MAX && spec->arg_size <= 64);
    struct fake_task *self = &tasks[tasks_count++];
    self->function = spec->function;
    for (size_t i = 0; i < spec->arg_size; i++) {
        self->arg[i] = ((const char *)spec->arg)[i];
    }
    mc_go(run_child, self);
    return 0;
}

weft_task *weft_task_current(void)
{
    return (weft_task *)current;
}

weft_task *weft_task_retain(weft_task *task)
{
    return task;
}

void weft_detach(weft_task *task)
{
    (void)task;
}

void weft_cancel(weft_task *task)
{
    weft_event_set(&((struct fake_task *)task)->told);
}

void wf_join_answer(struct wf_task *task)
{
    (void)task;
    mc_assert(!"no task is joined");
}

/* Not used here. */
int weft_runtime_go(weft_runtime *rt, weft_task **task, const weft_fiber_spec *spec)
{
    (void)rt;
    return weft_go_with(task, spec);
}

int weft_spawn(weft_task **task, const weft_spec *spec)
{
    (void)task;
    (void)spec;
    mc_assert(!"no bodies");
    return 0;
}

int weft_runtime_spawn(weft_runtime *rt, weft_task **task, const weft_spec *spec)
{
    (void)rt;
    return weft_spawn(task, spec);
}

void weft_co_init(weft_co_future *future, weft_body_fn body, void *state)
{
    (void)future;
    (void)body;
    (void)state;
}

void weft_timer_start(weft_timer *timer, weft_time deadline, unsigned flags,
                      void (*function)(void *arg), void *arg)
{
    (void)timer;
    (void)deadline;
    (void)flags;
    (void)function;
    (void)arg;
    mc_assert(!"no timers");
}

void wf_timer_start(struct wf_sched *sched, weft_timer *timer, weft_time deadline, unsigned flags,
                    void (*function)(void *arg), void *arg)
{
    (void)sched;
    weft_timer_start(timer, deadline, flags, function, arg);
}

struct wf_sched *wf_sched_of_runtime(const weft_runtime *rt, const char *call)
{
    (void)rt;
    (void)call;
    return NULL;
}

bool weft_timer_stop(weft_timer *timer)
{
    (void)timer;
    return false;
}

/* The scopes here are in no frame. */
_Atomic(uint32_t) *wf_frame_begin(const void *object)
{
    (void)object;
    return NULL;
}

void wf_frame_end(_Atomic(uint32_t) *counter)
{
    mc_assert(counter == NULL);
}

bool weft_cancelled(void)
{
    return false;
}

void weft_shield_enter(void)
{
}

void weft_shield_leave(void)
{
}

#endif
