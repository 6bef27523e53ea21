/* SPDX-License-Identifier: MIT */
/*
 * scope.c - any number of functions, from anywhere inside, and one end for all.
 *
 * A spawn is a job of the strand that spawns it, in a deque of its own (sched/job.h): idle
 * workers take the oldest ones, and the strand itself runs the newest ones, at the end of
 * the scope or of its fiber. The scope counts those that are not over, and itself; who
 * counts down to 0 ends it.
 *
 * Edge: jobs.c's [J2], from the end of the scope to who waits for it; counting down is a
 * chain of read-modify-writes before that.
 */
#include <weft/par.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "par/pause.h"
#include "par/stop.h"
#include "queue/jobs.h"
#include "sched/fiber.h"
#include "sched/job.h"
#include "sched/worker.h"

enum {
    SPAWN_STEPS = 8, /* of memory and queue */
};

struct scope {
    struct wf_job end;      /* over when all are */
    _Atomic(uint64_t) left; /* not over yet, and the scope itself */
    int64_t mark;           /* what the strand has spawned before */
    struct wf_fiber *fiber; /* that counts it among its open scopes; NULL: it is no fiber's */
    struct wf_stopper stopper;
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
    /* relaxed: nobody else knows the scope yet. */
    wf_store_relaxed(&scope->end.state, (uintptr_t)0);
    /* relaxed: nobody else knows it. */
    wf_store_relaxed(&scope->left, (uint64_t)1);
    /* relaxed: nobody else knows it. */
    wf_store_relaxed(&scope->stopper.error, 0);
    scope->stopper.stop = stop;
    scope->mark = wf_job_spawn_mark();
    struct wf_worker *worker = wf_worker_current();
    scope->fiber = worker != NULL ? wf_fiber_of(worker->current) : NULL;
    if (scope->fiber != NULL) {
        scope->fiber->scopes++;
    }
}

static void count_down(struct scope *scope)
{
    /* acq_rel [J2]: the last one has seen what all others have done. */
    if (wf_fetch_sub_acq_rel(&scope->left, (uint64_t)1) == 1) {
        wf_job_end(&scope->end);
    }
}

static void call(struct scope *scope, int (*function)(void *arg), void *arg)
{
    if (!wf_stopper_is_set(&scope->stopper)) {
        int err = function(arg);
        if (err != 0) {
            wf_stopper_fail(&scope->stopper, err);
        }
    }
    wf_pause(1);
}

/* A spawn: a job, and what does not fit into its words as it should. */
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
        self->job.words[WF_JOB_AFTER].function = after_spawned;
        /* relaxed: who spawns is itself counted, and counts down later. */
        (void)wf_fetch_add_relaxed(&scope->left, 1);
        if (wf_job_spawn(&self->job)) {
            wf_pause(SPAWN_STEPS);
            return;
        }
        /* relaxed: it has not begun, and who spawns is still counted. */
        (void)wf_fetch_sub_relaxed(&scope->left, 1);
        wf_free(&wf_alloc_default, self, sizeof *self, _Alignof(struct spawned));
    }
    call(scope, function, arg);
}

int weft_par_scope_end(weft_par_scope *public_scope)
{
    struct scope *scope = scope_of(public_scope);
    /* relaxed: the owner has counted itself, and has not counted down yet. */
    if (wf_unlikely(wf_load_relaxed(&scope->left) == 0)) {
        wf_fatal("weft_par_scope_end: this scope was ended before");
    }
    while (wf_job_run_spawned(scope->mark)) {
    }
    count_down(scope);
    wf_job_await(&scope->end);
    if (scope->fiber != NULL) {
        scope->fiber->scopes--;
    }
    return wf_stopper_result(&scope->stopper);
}
