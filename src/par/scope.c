/* SPDX-License-Identifier: MIT */
/*
 * scope.c - parallel scopes: spawn any number of functions and wait for all of them.
 *
 * A spawned function is a fork of the fork context that spawns it, in a separate deque
 * (sched/job.h). Idle workers steal the oldest ones. The fork context itself runs the newest
 * ones, at the end of the scope or of its fiber. The scope counts the functions that are not
 * finished, plus itself. Counting down to 0 ends the scope.
 *
 * Edge: jobs.c's [J2], from the end of the scope to the waiter. It is preceded by the chain of
 * read-modify-writes that count down.
 */
#include <weft/par.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "par/deep.h"
#include "par/pause.h"
#include "par/stop.h"
#include "queue/jobs.h"
#include "sched/fiber.h"
#include "sched/job.h"
#include "sched/runners.h"
#include "sched/worker.h"

enum {
    SPAWN_STEPS = 8, /* of memory and queue */
};

struct scope {
    struct wf_job end;      /* done when all functions are */
    _Atomic(uint64_t) left; /* unfinished functions, plus one for the scope */
    int64_t mark;           /* position in the deque of spawned functions at begin */
    struct wf_fiber *fiber; /* counts this scope as open; NULL if not in a fiber */
    struct wf_stopper stopper;
    struct wf_runners runners; /* of the functions that were stolen */
};

_Static_assert(sizeof(struct scope) <= sizeof(weft_par_scope), "the public type is too small");

static struct scope *scope_of(weft_par_scope *scope)
{
    return (struct scope *)(void *)scope;
}

void weft_par_scope_begin(weft_par_scope *public_scope, const weft_stop *stop)
{
    wf_pause_call();
    struct scope *scope = scope_of(public_scope);
    /* relaxed: no other thread knows the scope yet. */
    wf_store_relaxed(&scope->end.state, (uintptr_t)0);
    /* relaxed: no other thread knows it yet. */
    wf_store_relaxed(&scope->left, (uint64_t)1);
    /* relaxed: no other thread knows it yet. */
    wf_store_relaxed(&scope->stopper.error, 0);
    scope->stopper.stop = stop;
    wf_runners_init(&scope->runners);
    scope->mark = wf_job_spawn_mark();
    struct wf_worker *worker = wf_worker_current();
    scope->fiber = worker != NULL ? wf_fiber_of(worker->current) : NULL;
    if (scope->fiber != NULL) {
        scope->fiber->scopes++;
    }
}

static void count_down(struct scope *scope)
{
    /* acq_rel [J2]: the last one to count down sees what all others have done. */
    if (wf_fetch_sub_acq_rel(&scope->left, (uint64_t)1) == 1) {
        wf_job_end(&scope->end);
    }
}

static void call(struct scope *scope, int (*function)(void *arg), void *arg)
{
    if (!wf_stopper_is_set(&scope->stopper)) {
        int err = wf_deep_call(function, arg);
        if (err != 0) {
            wf_stopper_fail(&scope->stopper, err);
        }
    }
    wf_pause(1);
}

/* A spawned function: a fork, plus the fields whose types do not fit into its words. */
struct spawned {
    struct wf_job job;
    struct scope *scope;
    int (*function)(void *arg);
    void *arg;
};

static void run_spawned(weft_job *job)
{
    struct spawned *self = (struct spawned *)(void *)job;
    call(self->scope, self->function, self->arg);
}

static void after_spawned(void *job)
{
    struct spawned *self = job;
    struct scope *scope = self->scope;
    wf_free(&wf_alloc_default, self, sizeof *self, _Alignof(struct spawned));
    count_down(scope);
}

void weft_par_spawn(weft_par_scope *public_scope, int (*function)(void *arg), void *arg)
{
    struct scope *scope = scope_of(public_scope);
    struct spawned *self = NULL;
    if (weft_jobs_here()->head != NULL || wf_pause_attach(wf_clock_real())) {
        self = wf_alloc(&wf_alloc_default, sizeof *self, _Alignof(struct spawned));
    }
    if (self != NULL) {
        *self = (struct spawned){
            .job.run = run_spawned, .scope = scope, .function = function, .arg = arg
        };
        self->job.words[WF_JOB_RUNNERS].pointer = &scope->runners;
        self->job.words[WF_JOB_AFTER].function = after_spawned;
        /* relaxed: the spawner is itself counted, and counts down later. */
        (void)wf_fetch_add_relaxed(&scope->left, 1);
        if (wf_job_spawn(&self->job)) {
            wf_pause(SPAWN_STEPS);
            return;
        }
        /* relaxed: the function has not started, and the spawner is still counted. */
        (void)wf_fetch_sub_relaxed(&scope->left, 1);
        wf_free(&wf_alloc_default, self, sizeof *self, _Alignof(struct spawned));
    }
    call(scope, function, arg);
}

int weft_par_scope_end(weft_par_scope *public_scope)
{
    struct scope *scope = scope_of(public_scope);
    /* relaxed: the owner is counted, and has not counted down yet. */
    if (wf_unlikely(wf_load_relaxed(&scope->left) == 0)) {
        wf_fatal("weft_par_scope_end: this scope was ended before");
    }
    while (wf_job_run_spawned(scope->mark)) {
    }
    count_down(scope);
    wf_job_await(&scope->end, &scope->runners);
    if (scope->fiber != NULL) {
        scope->fiber->scopes--;
    }
    return wf_stopper_result(&scope->stopper);
}
