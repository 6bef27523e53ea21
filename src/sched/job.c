/* SPDX-License-Identifier: MIT */
/*
 * job.c - slow paths of fork and join, and forks that other workers run.
 *
 * The fast path is compiled into the program (weft/fork.h). A fork is private, and costs no
 * atomic operation, until a thief requests work (jobs.c). Three rules say which owner is asked
 * and which worker is woken:
 *
 * - The first few forks of a fork context are published immediately and wake a parked worker:
 *   they are few, and their owner may compute for a long time before its next fork or join. Its
 *   limits stay closed until it is deeper than that.
 * - A searching worker that finds no public fork posts a request, and is given half of the
 *   private forks.
 * - A worker that parks posts a request to the owner on every worker. The owner that answers
 *   wakes one worker.
 *
 * Tasks submitted from outside while all workers are busy post a request, too. The monitor
 * posts one on behalf of tasks that wait for a computing worker. The forking fiber on that
 * worker then lets them run first, with its forks public meanwhile.
 *
 * A computation may run for a long time without a fork or join, or while the monitor gets no
 * CPU. So the algorithms pause every few hundred iterations of their loops (weft/fork.h). About
 * every 30 us such a pause is a safe point: it reads the clock, answers requests, and yields if
 * the fiber's time slice exceeds 700 us and tasks are queued on this worker. (Two such
 * computations may be ahead of a task in the queue, which makes 1.4 ms.)
 *
 * A stolen fork runs on its own fiber, so it may suspend. Its joiner polls briefly for the end
 * and then suspends: as a fiber, as the poll fiber of a poll (shell.c), or as a thread. A joiner
 * that is canceled cancels the fork (runners.c).
 *
 *   Joiner                               Thief
 *   W1  take a reference to itself       E1  run the fork
 *   W2  state: 0 -> its task             E2  state -> DONE; was a task there?
 *   W3  suspend until DONE               E3  wake it, with its reference
 *
 * Before it suspends, a thread helps for a while (leapfrogging).
 *
 * Recursion that reaches the end of its stack continues on another one: the call becomes a fork
 * of a new fiber, and its caller waits for it as a joiner. Callers that cannot have a fork
 * context (a timer callback, a blocking job, weft_block_in_place(), a thread outside of
 * weft_par_run() or one beyond the limit of threads in it) run their forks themselves, on a
 * thread that they cannot leave. They continue on a segment (segment.c) instead.
 *
 * If E2 precedes W2, the joiner finds DONE and does not wait. After E2 the slot may hold
 * another fork, so the thief does not touch it again.
 *
 * Edges: jobs.c's [J2], jobs.c's [J3], strand.c's [S1].
 */
#include "sched/job.h"

#include <sched.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/tls.h"
#include "fiber/segment.h"
#include "sched/fiber.h"
#include "sched/guest.h"
#include "sched/runners.h"
#include "sched/sched.h"
#include "sched/strand.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    ASK_WORK = 1,          /* a worker searches */
    ASK_WAKE = 2,          /* a worker is parked */
    ASK_YIELD = 4,         /* tasks wait for this worker */
    LOOKS = 16,            /* polls before a joiner suspends: some 300 ns */
    SERVE_NS = 500 * 1000, /* then a fiber that was asked to yield continues */
    TURN_NS = 700 * 1000,  /* then a computation yields, unasked, at its next safe point */
    SPARE_NS = 250 * 1000, /* and for that long */
    LOOK_NS = 30 * 1000,   /* between two safe points, approximately */
    SILENCE_NS = 20 * 1000,
    LINGER_NS = 100 * 1000,  /* of a thief, in tests */
    HELP_NS = 20 * 1000,     /* an external thread that finds no fork for that long sleeps */
    HELP_STACK = 256 * 1024, /* stack that must be left for helping */
};

static struct wf_strand *strand_of(weft_jobs *own)
{
    return wf_container_of(wf_jobs_of(own), struct wf_strand, jobs);
}

/* Returns the fork context that forks here, or NULL if there is none yet. */
static struct wf_strand *strand_here(void)
{
    weft_jobs *own = weft_jobs_here();
    return own->head != NULL ? strand_of(own) : NULL;
}

/* --- The current stack ------------------------------------------------------------------ */

/* For plain threads and blocking jobs without a fork context: only the floor. A worker has none,
 * since its callbacks and tasks run on many stacks. */
static __thread weft_jobs alone WF_TLS_MODEL;

/* Returns the lowest address of the current stack, or NULL if it is not known. */
static char *stack_low(void)
{
    const struct wf_stack *segment = wf_segment_current();
    if (segment != NULL) {
        return segment->low;
    }
    const struct wf_worker *worker = wf_worker_current();
    struct wf_thread *thread = worker == NULL ? wf_thread_self() : NULL;
    const struct wf_fiber *fiber = wf_fiber_of(wf_thread_running());
    if (fiber != NULL) {
        return fiber->stack->low;
    }
    if (worker != NULL) {
        return worker->loops.running->stack->low;
    }
    if (thread != NULL && thread->stack_low == NULL) {
        thread->stack_low = wf_thread_stack_low();
    }
    return thread != NULL ? thread->stack_low : NULL;
}

char *wf_job_stack_floor(void)
{
    char *low = stack_low();
    return low != NULL ? low + WF_STRAND_STACK_RESERVE : NULL;
}

/* Returns whether the caller stays on this thread. A worker's task does not. */
static bool is_bound(void)
{
    const struct wf_worker *worker = wf_worker_current();
    return worker == NULL || worker->current == NULL;
}

/* Sets the caller's stack floor. A caller on a worker that has no fork context gets none: each
 * of its checks calls the library, which determines the floor again. */
static __attribute__((noinline)) void use_floor(char *floor)
{
    struct wf_strand *strand = strand_here();
    if (strand != NULL) {
        strand->jobs.stack_floor = floor;
    } else if (wf_worker_current() == NULL) {
        alone.stack_floor = floor;
        WF_TLS_STORE(weft_jobs_of_thread, &alone);
    } else {
        wf_strand_use(NULL);
    }
}

/* Sets the caller's stack floor, after the stack may have changed. */
static void set_floor(void)
{
    use_floor(wf_job_stack_floor());
}

/* Returns whether the stack of a caller without a fork context is nearly used up. */
static bool is_low_alone(void)
{
    const char *floor = wf_job_stack_floor();
    return floor != NULL && (char *)__builtin_frame_address(0) < floor;
}

/* --- Fork and join -------------------------------------------------------------------------- */

/* Attaches a fork context to the current task. Returns NULL if memory is exhausted. */
static struct wf_strand *attach_to_task(struct wf_worker *worker)
{
    struct wf_fiber *self = wf_fiber_of(worker->current);
    if (self == NULL) {
        self = wf_shell_get(worker);
    }
    return self != NULL ? wf_strand_attach(worker, self) : NULL;
}

/* Attaches a fork context to a caller that has none. Returns NULL if it gets none. After out of
 * memory, the worker does not try again for a millisecond. */
static struct wf_strand *attach(void)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker == NULL) {
        return wf_guest_attach();
    }
    if (worker->current == NULL) {
        return NULL; /* Between two polls. */
    }
    if (wf_unlikely(worker->attach_again_at != 0) && wf_clock_real() < worker->attach_again_at) {
        return NULL;
    }
    struct wf_strand *strand = attach_to_task(worker);
    worker->attach_again_at = wf_likely(strand != NULL) ? 0 : wf_clock_real() + WF_ATTACH_AGAIN_NS;
    return strand;
}

/* Returns the current fiber, or the poll fiber of the poll; NULL on a plain thread. */
static struct wf_fiber *self_here(void)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker == NULL) {
        return NULL;
    }
    struct wf_fiber *self = wf_fiber_of(worker->current);
    return self != NULL ? self : worker->shell;
}

weft_jobs *weft_jobs_make_room(weft_jobs *own)
{
    if (own->head != NULL) {
        return own->head < (weft_job *)wf_jobs_of(own)->end ? own : NULL;
    }
    struct wf_strand *strand = attach();
    if (strand == NULL) {
        set_floor();
        return NULL;
    }
    return wf_jobs_public(&strand->jobs);
}

/* Returns the number of forks to publish now. */
static uint32_t to_publish(const struct wf_strand *strand, bool asked)
{
    const struct wf_jobs *jobs = &strand->jobs;
    uint32_t private = wf_jobs_private(jobs);
    if (!strand->shares || wf_jobs_len(jobs) <= strand->eager_forks) {
        return strand->shares ? private : 0;
    }
    return asked || !wf_jobs_has_public(jobs) ? (private + 1) / 2 : 0;
}

/* Announces public forks if the fork context has been silent for long enough. */
static void speak_up(struct wf_strand *strand, int64_t now)
{
    if (now - wf_strand_silent_since(strand) > SILENCE_NS) {
        wf_strand_be_silent(strand, 0);
        if (wf_strand_has_public(strand)) {
            wf_sched_notify(strand->sched);
        }
    }
}

/* Announces new public forks. */
static void announce(struct wf_strand *strand)
{
    if (wf_strand_silent_since(strand) == 0) {
        wf_sched_notify(strand->sched);
    } else {
        speak_up(strand, wf_clock_real());
    }
}

/* Yields behind all tasks of this worker, including those from outside. Returns the worker on
 * which the fiber resumes. */
static struct wf_worker *yield_once(struct wf_fiber *self, struct wf_worker *worker)
{
    wf_worker_fetch_ahead(worker);
    /* relaxed: a heuristic, as in others_wait(). */
    (void)wf_fetch_add_relaxed(&worker->yielding, 1);
    if (self == worker->shell) {
        wf_shell_yield(worker);
    } else {
        wf_fiber_yield(self, worker);
    }
    /* relaxed: a heuristic, as above. */
    (void)wf_fetch_sub_relaxed(&worker->yielding, 1);
    return wf_worker_current();
}

/* Returns whether tasks wait on this worker, apart from fibers that yield like this one. A
 * fiber that yields is in the ring, or pinned. */
static bool others_wait(const struct wf_worker *worker)
{
    size_t waiting = wf_ring_len(&worker->ring) + wf_worker_pinned_len(worker) +
                     wf_inject_len(&worker->sched->inject);
    /* relaxed: heuristics; some of the tasks may have been stolen. */
    return wf_load_relaxed(&worker->lifo) != NULL || waiting > wf_load_relaxed(&worker->yielding);
}

/* Returns whether computations that fork on this worker give way because tasks wait. */
static bool serves_others(struct wf_worker *worker)
{
    return worker->serves_until != 0 && others_wait(worker) &&
           wf_clock_real() < worker->serves_until;
}

/* Same as serves_others(), after those tasks have run: they may now wait for events, and some
 * events may have arrived. */
static bool serves_more(struct wf_worker *worker)
{
    wf_worker_poll_driver(worker);
    return serves_others(worker);
}

/*
 * Lets the tasks of this worker run, including those that arrive meanwhile, for at most
 * serve_ns. With 0 it does so only if other computations on this worker do. When one
 * computation was asked to yield, all others on this worker give way for the same period as
 * soon as they are scheduled; otherwise each of them would compute until it is asked, one after
 * the other. The poll of a future must not wait, so it does not give way.
 */
static void give_way(int64_t serve_ns)
{
    struct wf_fiber *self = self_here();
    if (self == NULL || self->polling) {
        return;
    }
    struct wf_worker *worker = wf_worker_current();
    if (serve_ns > 0) {
        worker->serves_until = wf_clock_real() + serve_ns;
        wf_worker_take_over(worker);
        worker = yield_once(self, worker);
    }
    while (serves_others(worker) || (serve_ns > 0 && serves_more(worker))) {
        worker = yield_once(self, worker);
    }
}

/* Returns whether tasks are queued for this worker, including the inject queue and pinned tasks. */
static bool has_queued(const struct wf_worker *worker)
{
    /* relaxed: a hint; some of the tasks may have been stolen. */
    return wf_load_relaxed(&worker->lifo) != NULL || wf_ring_len(&worker->ring) > 0 ||
           wf_inject_len(&worker->sched->inject) > 0 || worker->pinned.first != NULL ||
           !wf_mpsc_is_empty(&worker->inbox);
}

/* Returns the requests for work that stay pending because there was nothing to publish. A
 * worker that parked asks only once, and a loop splits itself only while a request is pending. */
static uint32_t unmet_reasons(const struct wf_strand *strand, uint32_t reasons, uint32_t published)
{
    bool is_met = published > 0 || !strand->shares || wf_strand_has_public(strand);
    return is_met ? 0 : reasons & (ASK_WORK | ASK_WAKE);
}

/* Answers all pending requests. Forks and joins then take the fast path again, unless they are
 * among the first few. */
static void answer(struct wf_strand *strand)
{
    struct wf_jobs *jobs = &strand->jobs;
    uint32_t reasons = wf_jobs_take_reasons(jobs);
    uint32_t count = to_publish(strand, reasons != 0);
    if (count > 0) {
        wf_jobs_publish(jobs, count);
    }
    uint32_t unmet = unmet_reasons(strand, reasons, count);
    if (wf_unlikely(unmet != 0)) {
        wf_jobs_ask(jobs, unmet);
    } else if (!strand->shares || wf_jobs_len(jobs) >= strand->eager_forks) {
        wf_jobs_open(jobs);
    } else {
        wf_jobs_close(jobs);
    }
    if (count > 0) {
        announce(strand);
    }
    if (wf_unlikely((reasons & ASK_YIELD) != 0)) {
        give_way(SERVE_NS);
    }
}

/* A fiber that gives way may resume without its fork context, so nothing of it is used
 * afterwards. */
static bool take_safe_point(struct wf_strand *strand, int64_t now)
{
    /* relaxed: a request carries no data. */
    uint32_t reasons = wf_load_relaxed(&strand->jobs.reasons);
    if (reasons != 0) {
        answer(strand);
        return (reasons & ASK_YIELD) != 0;
    }
    if (strand->turn_since == 0) {
        strand->turn_since = now;
    }
    struct wf_worker *worker = wf_worker_current();
    if (now - strand->turn_since < TURN_NS || worker == NULL || !has_queued(worker)) {
        return false;
    }
    wf_strand_begin_turn(strand);
    give_way(SPARE_NS);
    return true;
}

/* Safe point of a computation that got no fork context because memory is short: it cannot share
 * its work, but it yields all the same. */
static bool take_safe_point_alone(int64_t now)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker == NULL || worker->current == NULL || wf_worker_poll_age(worker, now) < TURN_NS ||
        !has_queued(worker)) {
        return false;
    }
    give_way(SPARE_NS);
    return true;
}

/* Returns the caller's fork context, attached if it has none yet, or NULL. */
static struct wf_strand *attached(void)
{
    struct wf_strand *strand = strand_here();
    return strand != NULL ? strand : attach();
}

bool wf_job_safe_point_at(int64_t now)
{
    struct wf_strand *strand = attached();
    return strand != NULL ? take_safe_point(strand, now) : take_safe_point_alone(now);
}

/* Adapts the distance of safe points: slow steps make the next one come sooner, quick ones
 * later. */
static void choose_steps(struct wf_strand *strand, int64_t now)
{
    int64_t elapsed = now - strand->looked_at;
    if (strand->looked_at != 0 && elapsed > 2 * LOOK_NS) {
        strand->steps = (int32_t)(strand->steps * LOOK_NS / elapsed);
    } else if (strand->looked_at != 0 && elapsed < LOOK_NS / 2) {
        strand->steps *= 2;
    }
    strand->steps = strand->steps < WF_STRAND_STEPS_MIN   ? WF_STRAND_STEPS_MIN
                    : strand->steps > WF_STRAND_STEPS_MAX ? WF_STRAND_STEPS_MAX
                                                          : strand->steps;
    strand->looked_at = now;
    strand->jobs.steps_left = strand->steps;
}

void weft_jobs_safe_point(void)
{
    int64_t now = wf_clock_real();
    struct wf_strand *strand = attached();
    if (strand != NULL) {
        choose_steps(strand, now);
        (void)take_safe_point(strand, now);
    } else {
        (void)take_safe_point_alone(now);
    }
}

void weft_jobs_answer(weft_jobs *own)
{
    answer(strand_of(own));
}

void wf_job_end(struct wf_job *job)
{
    void *waiter = wf_job_finish(job);
    if (waiter == (void *)WF_JOB_SPAWNED) {
        job->words[WF_JOB_AFTER].function(job);
    } else if (waiter != NULL) {
        wf_task_wake(waiter);
    }
}

static int run_job(void *arg)
{
    struct wf_job *job = arg;
    job->run((weft_job *)(void *)job);
    wf_job_end(job);
    return 0;
}

/* Runs a stolen fork on a fiber of its own. */
static int run_stolen(void *arg)
{
    struct wf_job *job = arg;
    struct wf_fiber *self = wf_fiber_current();
    struct wf_runner runner;
    self->runs = job;
    wf_runners_add(self->runners, &runner);
    give_way(0);
    job->run((weft_job *)(void *)job);
    wf_runners_remove(self->runners, &runner);
    wf_job_end(job);
    return 0;
}

/* Returns the task to wake when the wait of the caller ends. */
static struct wf_task *waiter_here(struct wf_fiber *self)
{
    return self != NULL ? &self->task : wf_thread_known()->waiter;
}

static void suspend(struct wf_fiber *self)
{
    struct wf_worker *worker = wf_worker_current();
    if (self == NULL) {
        wf_thread_suspend(wf_thread_known());
    } else if (self == worker->shell) {
        wf_shell_suspend(worker);
    } else {
        wf_fiber_suspend(self, worker);
    }
}

static void suspend_until_done(struct wf_job *job, struct wf_runners *runners)
{
    struct wf_fiber *self = self_here();
    struct wf_task *waiter = waiter_here(self);
    wf_task_retain(waiter);
    if (!wf_job_wait(job, waiter)) {
        wf_task_release(waiter);
        return;
    }
    if (self != NULL) {
        wf_counter_add(&wf_worker_current()->counters.fork_waits, 1);
    }
    while (!wf_job_is_done(job)) {
        wf_runners_follow(runners);
        suspend(self);
    }
    if (self != NULL ? self->polling : wf_thread_known()->waits > 0) {
        /* The poll under way may have woken the task meanwhile: the task polls once more. */
        wf_task_retain(waiter);
        wf_task_wake(waiter);
    }
    give_way(0);
}

/* Steals a fork that the given fork has forked itself, if it runs on this worker. Posts a
 * request if none is public. */
static struct wf_job *steal_descendant(struct wf_worker *victim, const struct wf_job *fork)
{
    /* acquire [S1]: the fork context is initialized. */
    struct wf_strand *strand = wf_load_acquire(&victim->strand);
    if (strand == NULL || !wf_jobs_is_named(&strand->jobs, fork)) {
        return NULL;
    }
    struct wf_job *job = NULL;
    while (wf_jobs_steal_of(&strand->jobs, fork, &job) == WF_STEAL_RETRY) {
    }
    if (job == NULL) {
        wf_jobs_ask(&strand->jobs, ASK_WORK);
    }
    return job;
}

/* Lets an external thread that waits for a fork run a part of that fork. Returns false if there
 * is none. */
static bool help(struct wf_sched *sched, const struct wf_job *fork)
{
    for (unsigned i = 0; i < sched->options.workers; i++) {
        struct wf_job *job = steal_descendant(&sched->workers[i], fork);
        if (job != NULL) {
            (void)run_job(job);
            return true;
        }
    }
    return false;
}

/* Returns whether enough stack is left to run another fork here. */
static bool is_shallow(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return here - (uintptr_t)weft_jobs_here()->stack_floor > HELP_STACK;
}

/*
 * Helps until the fork is done, or until there is nothing to help with. An external thread has
 * nothing else to do, and is slow to wake up. It runs only parts of the fork that it waits for,
 * so it never waits for a thread that waits for it.
 */
static void help_until_done(struct wf_job *job)
{
    const struct wf_strand *strand = strand_here();
    int64_t idle_since = wf_clock_real();
    while (strand != NULL && is_shallow() && !wf_job_is_done(job)) {
        if (help(strand->sched, job)) {
            idle_since = wf_clock_real();
        } else if (wf_clock_real() - idle_since > HELP_NS) {
            return;
        }
        wf_cpu_relax();
    }
}

/* Waits until a stolen fork is done. */
static void wait_for(struct wf_job *job, struct wf_runners *runners)
{
    for (unsigned i = 0; i < LOOKS; i++) {
        if (wf_job_is_done(job)) {
            return;
        }
        wf_cpu_relax();
    }
    if (wf_worker_current() == NULL) {
        help_until_done(job);
    }
    suspend_until_done(job, runners);
}

/* A function call that continues on another stack. */
struct call {
    struct wf_job job;         /* as if it had been stolen */
    struct wf_runners runners; /* the fiber that runs it; the fork context may be another's then */
    void (*function)(void *arg);
    void *arg;
};

static void run_call(weft_job *job)
{
    struct call *call = job->words[0].pointer;
    call->function(call->arg);
}

static bool start_call(struct call *call)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker == NULL) {
        struct wf_sched *sched = strand_of(weft_jobs_here())->sched;
        return wf_fiber_spawn_runner(sched, WF_STACK_JOB, run_stolen, &call->job, &call->runners) ==
               0;
    }
    struct wf_task *task = wf_fiber_reserve(worker, WF_STACK_JOB);
    if (task != NULL) {
        wf_fiber_make(worker, task, WF_STACK_JOB, run_stolen, &call->job, &call->runners);
        wf_worker_push(worker, task);
    }
    return task != NULL;
}

/* Runs the call on a segment. */
static void call_on_segment(void *arg)
{
    const struct call *call = arg;
    set_floor();
    call->function(call->arg);
}

/* Continues on a fresh stack of the same thread. Returns false if the caller may not, or if
 * there is no memory. */
static bool extend_stack(struct call *call)
{
    bool called = is_bound() && wf_segment_call(call_on_segment, call);
    if (called) {
        set_floor();
    }
    return called;
}

/* Calls the function on this stack, because there is no memory for another; it may suffice. */
static void call_here(const struct call *call)
{
    use_floor(NULL); /* Else each call of a thread or fork context would come here again. */
    call->function(call->arg);
    set_floor();
}

/* Calls the function on a fresh stack. */
static __attribute__((noinline)) void call_elsewhere(void (*function)(void *arg), void *arg)
{
    struct call call = { .job.run = run_call, .function = function, .arg = arg };
    call.job.words[0].pointer = &call;
    wf_runners_init(&call.runners);
    if (weft_jobs_here()->head != NULL && start_call(&call)) {
        suspend_until_done(&call.job, &call.runners);
    } else if (!extend_stack(&call)) {
        call_here(&call);
    }
}

void weft_jobs_call_elsewhere(void (*function)(void *arg), void *arg)
{
    if (strand_here() != NULL || is_low_alone()) {
        wf_job_call_deep(function, arg);
        return;
    }
    /* The floor is not known yet, or is that of another stack. A task that recurses gets a fork
     * context, and with it a floor for its next calls. */
    if (is_bound() || attach() == NULL) {
        set_floor();
    }
    function(arg);
}

void wf_job_call_deep(void (*function)(void *arg), void *arg)
{
    if (strand_here() == NULL && !is_low_alone()) {
        set_floor();
        function(arg);
        return;
    }
    if (strand_here() == NULL && !is_bound()) {
        (void)attach(); /* Only a fiber with a fork context can wait for another one. */
    }
    call_elsewhere(function, arg);
}

bool weft_jobs_settle(weft_jobs *own, weft_job *public_job)
{
    struct wf_strand *strand = strand_of(own);
    struct wf_jobs *jobs = &strand->jobs;
    struct wf_job *job = (struct wf_job *)(void *)public_job;
    if (wf_jobs_reclaim(jobs, job)) {
        answer(strand);
        return true;
    }
    wait_for(job, &strand->runners);
    /* Answer while the fork is still on the stack: a fiber that yields with an empty fork stack
     * gives it away, and the result is still in the slot. */
    answer(strand);
    wf_jobs_joined(jobs, job);
    wf_jobs_close(jobs);
    return false;
}

/* --- Forks that are never joined ------------------------------------------------------------- */

bool wf_job_spawn(struct wf_job *job)
{
    struct wf_strand *strand = attached();
    if (strand == NULL) {
        return false;
    }
    if (!strand->has_spawned) {
        if (wf_deque_init(&strand->spawned, &strand->sched->options.allocator) != 0) {
            return false;
        }
        strand->has_spawned = true;
    }
    /* relaxed: the push publishes it. */
    wf_store_relaxed(&job->state, WF_JOB_SPAWNED);
    if (wf_deque_push(&strand->spawned, job) != 0) {
        return false;
    }
    if (strand->shares) {
        announce(strand);
    }
    return true;
}

int64_t wf_job_spawn_mark(void)
{
    const struct wf_strand *strand = strand_here();
    return strand != NULL ? wf_deque_mark(&strand->spawned) : 0;
}

bool wf_job_run_spawned(int64_t mark)
{
    struct wf_strand *strand = strand_here();
    if (strand == NULL || !strand->has_spawned || wf_deque_mark(&strand->spawned) <= mark) {
        return false;
    }
    struct wf_job *job = wf_deque_pop(&strand->spawned);
    if (job != NULL) {
        (void)run_job(job);
    }
    return job != NULL;
}

void wf_job_await(struct wf_job *job, struct wf_runners *runners)
{
    if (!wf_job_is_done(job)) {
        wait_for(job, runners);
    }
}

/* --- Loops ------------------------------------------------------------------------------ */

/* Makes sure that the monitor looks after forks that wake no worker. */
static void be_watched(void)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        wf_worker_be_watched(worker);
    }
}

bool wf_job_begin_silently_at(int64_t now)
{
    struct wf_strand *strand = attached();
    bool begins =
        strand != NULL && wf_jobs_len(&strand->jobs) == 0 && wf_strand_silent_since(strand) == 0;
    if (begins) {
        wf_strand_be_silent(strand, now);
        be_watched();
    }
    return begins;
}

bool wf_job_begin_silently(void)
{
    return wf_job_begin_silently_at(wf_clock_real());
}

void wf_job_end_silently(bool begun)
{
    struct wf_strand *strand = begun ? strand_here() : NULL;
    if (strand != NULL) {
        wf_strand_be_silent(strand, 0);
    }
}

unsigned wf_job_eager_forks(void)
{
    const struct wf_strand *strand = strand_here();
    return strand != NULL && strand->shares ? strand->eager_forks : 0;
}

bool wf_job_is_wanted(void)
{
    weft_jobs *own = weft_jobs_here();
    if (own->head != NULL) {
        return weft_jobs_must_ask(own);
    }
    /* A stolen fork that has not forked yet: no thief has had anything to request. */
    const struct wf_strand *strand = attach();
    return strand != NULL && strand->shares;
}

void wf_job_speak_up_at(int64_t now)
{
    struct wf_strand *strand = strand_here();
    if (strand != NULL && wf_strand_silent_since(strand) != 0) {
        speak_up(strand, now);
    }
}

void wf_job_speak_up(void)
{
    const struct wf_strand *strand = strand_here();
    if (strand != NULL && wf_strand_silent_since(strand) != 0) {
        wf_job_speak_up_at(wf_clock_real());
    }
}

bool wf_job_may_fork(void)
{
    struct wf_strand *strand = attached();
    return strand != NULL && strand->shares;
}

/* --- Other workers ----------------------------------------------------------------------- */

/* Returns whether the forks there will probably end soon. */
static bool is_short(const struct wf_strand *strand)
{
    int64_t since = wf_strand_silent_since(strand);
    return since != 0 && wf_clock_real() - since < SILENCE_NS;
}

/* Opens a window in tests: the fork context may change owners before the thief steals from it. */
static void linger(struct wf_worker *thief)
{
#ifdef WF_SHUFFLE
    if (wf_rng_below(&thief->rng, 32) == 0) {
        int64_t end = wf_clock_real() + LINGER_NS;
        while (wf_clock_real() < end) {
            (void)sched_yield();
        }
    }
#else
    (void)thief;
#endif
}

/* Steals a fork from a running fork context, or posts a request. */
static struct wf_stolen steal_running(struct wf_worker *thief, struct wf_strand *strand)
{
    if (strand == NULL || is_short(strand)) {
        return (struct wf_stolen){ 0 };
    }
    linger(thief);
    struct wf_stolen stolen = wf_strand_steal(strand);
    if (stolen.job == NULL) {
        wf_jobs_ask(&strand->jobs, ASK_WORK);
    }
    return stolen;
}

static struct wf_stolen steal_from_worker(struct wf_worker *thief, void *arg)
{
    struct wf_worker *victim = arg;
    /* acquire [S1]: the fork context is initialized. */
    struct wf_stolen stolen = steal_running(thief, wf_load_acquire(&victim->strand));
    return stolen.job != NULL ? stolen : wf_away_steal(&victim->away);
}

static struct wf_stolen steal_from_guests(struct wf_worker *thief, void *arg)
{
    struct wf_guests *guests = arg;
    struct wf_stolen stolen = { 0 };
    for (unsigned i = 0; stolen.job == NULL && i < WF_GUESTS_MAX; i++) {
        /* acquire [S1]: the fork context is initialized. */
        stolen = steal_running(thief, wf_load_acquire(&guests->strands[i]));
    }
    return stolen;
}

/* Steals with a fiber reserved: a stolen fork must be run. */
static struct wf_task *steal(struct wf_worker *worker,
                             struct wf_stolen (*from)(struct wf_worker *thief, void *arg),
                             void *arg)
{
    struct wf_task *task = wf_fiber_reserve(worker, WF_STACK_JOB);
    if (task == NULL) {
        return NULL;
    }
    struct wf_stolen stolen = from(worker, arg);
    if (stolen.job == NULL) {
        wf_fiber_unreserve(worker, task, WF_STACK_JOB);
        return NULL;
    }
    wf_counter_add(&worker->counters.stolen_forks, 1);
    wf_fiber_make(worker, task, WF_STACK_JOB, run_stolen, stolen.job, stolen.runners);
    return task;
}

struct wf_task *wf_job_take_own(struct wf_worker *worker)
{
    return wf_away_has_jobs(&worker->away) ? steal(worker, steal_from_worker, worker) : NULL;
}

struct wf_task *wf_job_steal(struct wf_worker *worker, struct wf_worker *victim)
{
    /* relaxed: a hint; the steal reads it again. */
    bool forks = wf_load_relaxed(&victim->strand) != NULL || wf_away_has_jobs(&victim->away);
    return forks ? steal(worker, steal_from_worker, victim) : NULL;
}

struct wf_task *wf_job_steal_from_guests(struct wf_worker *worker)
{
    struct wf_guests *guests = &worker->sched->guests;
    /* An external thread is not a task: shutdown does not wait for it. */
    bool may = !worker->closing && wf_guests_are_there(guests);
    return may ? steal(worker, steal_from_guests, guests) : NULL;
}

bool wf_job_has_public(const struct wf_worker *victim)
{
    /* acquire [S1]: the fork context is initialized. */
    const struct wf_strand *strand = wf_load_acquire(&victim->strand);
    return (strand != NULL && wf_strand_has_public(strand) && !is_short(strand)) ||
           wf_away_has_jobs(&victim->away);
}

bool wf_job_ask_to_yield(struct wf_worker *worker)
{
    /* acquire [S1]: the fork context is initialized. */
    struct wf_strand *strand = wf_load_acquire(&worker->strand);
    if (strand != NULL) {
        wf_jobs_ask(&strand->jobs, ASK_YIELD);
    }
    return strand != NULL;
}

bool wf_job_has_not_answered(const struct wf_worker *worker)
{
    /* acquire [S1]: the fork context is initialized. */
    struct wf_strand *strand = wf_load_acquire(&worker->strand);
    return strand == NULL || wf_jobs_is_asked(&strand->jobs, ASK_YIELD);
}

void wf_job_ask_all(struct wf_worker *worker)
{
    struct wf_sched *sched = worker->sched;
    for (unsigned i = 0; i < sched->options.workers; i++) {
        /* acquire [S1]: the fork context is initialized. */
        struct wf_strand *strand = wf_load_acquire(&sched->workers[i].strand);
        if (strand != NULL) {
            wf_jobs_ask(&strand->jobs, ASK_WAKE);
        }
    }
}
