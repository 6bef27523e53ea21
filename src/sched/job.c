/* SPDX-License-Identifier: MIT */
/*
 * job.c - forks and joins that need more than what is compiled into the program, and jobs
 * that run on other workers.
 *
 * A fork is private, and costs nothing, until somebody asks for work (jobs.c). Three rules
 * say who is asked, and who is woken.
 *
 * - The first few forks of a strand are public at once, and wake a sleeper: they are few,
 *   and their owner may compute for long without coming to a fork or join. Its limits
 *   stay closed until it is deeper than that.
 * - A worker that searches and finds nothing public asks, and is given half of what there
 *   is.
 * - A worker that goes to sleep asks all; the owner that answers wakes one.
 *
 * A stolen job runs on a fiber of its own, so it may wait. Its joiner looks for a moment
 * whether it has ended, and then suspends:
 *
 *   Joiner                               Thief
 *   W1  take a reference to itself       E1  run the job
 *   W2  state: 0 -> its task             E2  state -> DONE; was a task there?
 *   W3  suspend until DONE               E3  wake it, with its reference
 *
 * If E2 comes before W2, the joiner finds DONE and does not wait. After E2 the slot may
 * be used for another job, so the thief does not touch it again.
 *
 * Edges: jobs.c's [J2], jobs.c's [J3], strand.c's [S1].
 */
#include "sched/job.h"

#include "base/assert.h"
#include "sched/fiber.h"
#include "sched/sched.h"
#include "sched/strand.h"
#include "sched/worker.h"

enum {
    ASK_WORK = 1, /* somebody searches */
    ASK_WAKE = 2, /* somebody sleeps */
    LOOKS = 16,   /* before a joiner suspends: some 300 ns */
};

static struct wf_fiber *fiber_here(struct wf_worker **worker)
{
    *worker = wf_worker_current();
    return *worker != NULL ? wf_fiber_of((*worker)->current) : NULL;
}

weft_jobs *weft_jobs_make_room(weft_jobs *own)
{
    if (own->head != NULL) {
        return own->head < (weft_job *)wf_jobs_of(own)->end ? own : NULL;
    }
    struct wf_worker *worker;
    struct wf_fiber *self = fiber_here(&worker);
    struct wf_strand *strand = self != NULL ? wf_strand_attach(worker, self) : NULL;
    return strand != NULL ? wf_jobs_public(&strand->jobs) : NULL;
}

/* How many jobs others should have now. */
static uint32_t to_publish(const struct wf_worker *worker, struct wf_jobs *jobs, bool asked)
{
    uint32_t private = wf_jobs_private(jobs);
    if (!worker->shares || wf_jobs_len(jobs) <= worker->eager_forks) {
        return worker->shares ? private : 0;
    }
    return asked || !wf_jobs_has_public(jobs) ? (private + 1) / 2 : 0;
}

/* Does what was asked for; forks and joins are quick again unless they are the first
 * few. */
static void answer(struct wf_jobs *jobs)
{
    const struct wf_worker *worker = wf_worker_current();
    bool asked = wf_jobs_take_reasons(jobs) != 0;
    uint32_t count = to_publish(worker, jobs, asked);
    if (count > 0) {
        wf_jobs_publish(jobs, count);
    }
    if (wf_jobs_len(jobs) >= worker->eager_forks) {
        wf_jobs_open(jobs);
    } else {
        wf_jobs_close(jobs);
    }
    if (count > 0) {
        wf_sched_notify(worker->sched);
    }
}

void weft_jobs_answer(weft_jobs *own)
{
    answer(wf_jobs_of(own));
}

static int run_job(void *arg)
{
    struct wf_job *job = arg;
    job->run((weft_job *)(void *)job);
    struct wf_task *waiter = wf_job_finish(job);
    if (waiter != NULL) {
        wf_task_wake(waiter);
    }
    return 0;
}

static void suspend_until_done(struct wf_fiber *self, struct wf_job *job)
{
    wf_task_retain(&self->task);
    if (!wf_job_wait(job, &self->task)) {
        wf_task_release(&self->task);
        return;
    }
    while (!wf_job_is_done(job)) {
        wf_fiber_suspend(self, wf_worker_current());
    }
    if (self->polling) {
        /* What it was polling may have woken it meanwhile: it polls once more. */
        wf_task_retain(&self->task);
        wf_task_wake(&self->task);
    }
}

/* Returns when the job that a thief has is done. */
static void wait_for(struct wf_job *job)
{
    for (unsigned i = 0; i < LOOKS; i++) {
        if (wf_job_is_done(job)) {
            return;
        }
        wf_cpu_relax();
    }
    struct wf_worker *worker;
    suspend_until_done(fiber_here(&worker), job);
}

/* A function that is called on another stack. */
struct call {
    struct wf_job job; /* as if it had been stolen */
    void (*function)(void *arg);
    void *arg;
};

static void run_call(weft_job *job)
{
    struct call *call = job->words[0].pointer;
    call->function(call->arg);
}

void weft_jobs_call_elsewhere(void (*function)(void *arg), void *arg)
{
    struct wf_worker *worker;
    struct wf_fiber *self = fiber_here(&worker);
    struct wf_task *task = self != NULL ? wf_fiber_reserve(worker, WF_STACK_JOB) : NULL;
    if (task == NULL) {
        function(arg);
        return;
    }
    struct call call = { .job.run = run_call, .function = function, .arg = arg };
    call.job.words[0].pointer = &call;
    wf_fiber_make(worker, task, WF_STACK_JOB, run_job, &call.job);
    wf_worker_push(worker, task);
    suspend_until_done(self, &call.job);
}

bool weft_jobs_settle(weft_jobs *own, weft_job *public_job)
{
    struct wf_jobs *jobs = wf_jobs_of(own);
    struct wf_job *job = (struct wf_job *)(void *)public_job;
    bool mine = wf_jobs_reclaim(jobs, job);
    if (!mine) {
        wait_for(job);
        wf_jobs_joined(jobs, job);
    }
    answer(jobs);
    return mine;
}

/* --- Other workers ----------------------------------------------------------------------- */

static struct wf_job *steal_running(const struct wf_worker *victim)
{
    /* acquire [S1]: the strand is initialised. */
    struct wf_strand *strand = wf_load_acquire(&victim->strand);
    struct wf_job *job = NULL;
    if (strand == NULL) {
        return NULL;
    }
    enum wf_steal result;
    do {
        result = wf_jobs_steal(&strand->jobs, &job);
    } while (result == WF_STEAL_RETRY);
    if (result == WF_STEAL_EMPTY) {
        wf_jobs_ask(&strand->jobs, ASK_WORK);
    }
    return job;
}

/* Steals with a fiber at hand: a job that was taken must be run. */
static struct wf_task *steal(struct wf_worker *worker, struct wf_worker *victim)
{
    struct wf_task *task = wf_fiber_reserve(worker, WF_STACK_JOB);
    if (task == NULL) {
        return NULL;
    }
    struct wf_job *job = steal_running(victim);
    if (job == NULL) {
        job = wf_away_steal(&victim->away);
    }
    if (job == NULL) {
        wf_fiber_unreserve(worker, task, WF_STACK_JOB);
        return NULL;
    }
    wf_fiber_make(worker, task, WF_STACK_JOB, run_job, job);
    return task;
}

bool wf_job_has_own(const struct wf_worker *worker)
{
    return wf_away_has_jobs(&worker->away) &&
           wf_drain_phase(&worker->sched->drain) == WF_PHASE_OPEN;
}

struct wf_task *wf_job_take_own(struct wf_worker *worker)
{
    return wf_away_has_jobs(&worker->away) ? steal(worker, worker) : NULL;
}

struct wf_task *wf_job_steal(struct wf_worker *worker, struct wf_worker *victim)
{
    /* relaxed: a look; who steals reads it again. */
    bool forks = wf_load_relaxed(&victim->strand) != NULL || wf_away_has_jobs(&victim->away);
    return forks ? steal(worker, victim) : NULL;
}

bool wf_job_has_public(const struct wf_worker *victim)
{
    /* acquire [S1]: the strand is initialised. */
    const struct wf_strand *strand = wf_load_acquire(&victim->strand);
    return wf_job_has_own(victim) || (strand != NULL && wf_jobs_has_public(&strand->jobs) &&
                                      wf_drain_phase(&victim->sched->drain) == WF_PHASE_OPEN);
}

void wf_job_ask_all(struct wf_worker *worker)
{
    struct wf_sched *sched = worker->sched;
    for (unsigned i = 0; i < sched->options.workers; i++) {
        /* acquire [S1]: the strand is initialised. */
        struct wf_strand *strand = wf_load_acquire(&sched->workers[i].strand);
        if (strand != NULL) {
            wf_jobs_ask(&strand->jobs, ASK_WAKE);
        }
    }
}
