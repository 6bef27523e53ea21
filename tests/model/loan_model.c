/* SPDX-License-Identifier: MIT */
/*
 * loan_model.c - src/sched/loan.c with the real joins, awaits, waits, tasks and heap: a
 * fiber that lends its worker goes on once, whoever lets it, and has what it joined.
 *
 * Fakes: stacks and workers. Each fiber is a thread of the model, with a worker of its
 * own; it is away until somebody goes back to it or runs it, which would be a switch.
 */
#include <stdlib.h>

#include <weft/future.h>
#include <weft/task.h>

#include "base/alloc.h"
#include "mc.h"
#include "sched/await.h"
#include "sched/fiber.h"
#include "sched/heap.h"
#include "sched/join.h"
#include "sched/loan.h"
#include "sched/local.h"
#include "sched/sched.h"
#include "sched/task.h"
#include "sched/worker.h"

enum {
    RESULT = 42,
    ACTORS = 3,
};

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

/* A fiber and the thread that plays it. */
struct actor {
    struct wf_fiber *fiber;
    struct wf_worker worker;
    void (*play)(struct actor *self);
    bool leaves;         /* before its end */
    struct actor *joins; /* whom it joins; in its worker's queue until it begins */
    weft_task *handle;   /* of the one it joins */
    bool has_begun;
    _Atomic(uint32_t) may_go; /* somebody lets it go on */
};

static struct wf_heap *heap;
static struct actor actors[ACTORS];

/* --- What is not there --- */

unsigned wf_worker_slab(const struct wf_heap *of)
{
    const struct wf_worker *worker = wf_worker_current();
    return worker != NULL && worker->heap == of ? worker->index : of->outside;
}

static void destroy(struct wf_task *task)
{
    wf_heap_free(task, wf_worker_slab(task->heap));
}

static void cancelled(struct wf_task *task)
{
    wf_loan_cancelled(wf_fiber_of(task));
}

const struct wf_task_ops wf_fiber_ops = {
    .schedule = wf_sched_schedule,
    .cancelled = cancelled,
    .destroy = destroy,
};

int model_yield(void);

int model_yield(void)
{
    return 0;
}

void wf_local_end(void ***locals)
{
    (void)locals;
}

int *weft_errno_location(void)
{
    static int value;
    return &value;
}

static struct actor *actor_of(const struct wf_fiber *fiber)
{
    for (unsigned i = 0; i < ACTORS; i++) {
        if (actors[i].fiber == fiber) {
            return &actors[i];
        }
    }
    mc_assert(!"a fiber that nobody plays");
    return NULL;
}

/* Goes on with a fiber that is away. Nobody else does. */
static void resume(struct wf_fiber *fiber)
{
    mc_assert(wf_xchg_acq_rel(&actor_of(fiber)->may_go, 1u) == 0);
}

static void be_away(struct wf_fiber *self)
{
    mc_await_exchange(&actor_of(self)->may_go, 1, 0);
}

void wf_sched_schedule(struct wf_task *task)
{
    (void)wf_task_begin(task);
    resume(wf_fiber_of(task));
}

static void cut_loan(struct wf_fiber *self)
{
    if (wf_load_relaxed(&self->lender) != NULL) {
        wf_loan_cut(self);
    }
}

void wf_fiber_yield(struct wf_fiber *self, struct wf_worker *worker)
{
    (void)self;
    (void)worker;
    mc_assert(!"nobody yields");
}

bool wf_worker_take_direct(struct wf_worker *worker, struct wf_task *task)
{
    (void)worker;
    (void)task;
    return true;
}

void wf_worker_push(struct wf_worker *worker, struct wf_task *task)
{
    (void)worker;
    (void)task;
    mc_assert(!"there are stacks");
}

static void start(struct actor *actor);

/* A new fiber begins: what fiber.c does there, then its part, then its end. */
static void first_frame(void *arg)
{
    struct actor *self = arg;
    struct wf_task *task = &self->fiber->task;
    WF_TLS_STORE(wf_tls_worker, &self->worker);
    (void)wf_task_begin(task);
    struct wf_fiber *lender = wf_load_relaxed(&self->fiber->lender);
    if (lender != NULL) {
        wf_loan_publish(lender, task);
    }
    self->play(self);
    start(self->joins);
    if (wf_load_relaxed(&self->fiber->lender) == NULL) {
        wf_task_complete(task, RESULT);
    } else {
        lender = wf_loan_complete(self->fiber, RESULT);
        if (lender != NULL) {
            resume(lender);
        }
    }
    WF_TLS_STORE(wf_tls_worker, (struct wf_worker *)NULL);
    mc_join();
}

/* The worker of whoever joins it takes it out of its queue. */
static void start(struct actor *actor)
{
    if (actor != NULL && !actor->has_begun) {
        actor->has_begun = true;
        mc_go(first_frame, actor);
    }
}

bool wf_fiber_lend(struct wf_fiber *self, struct wf_worker *worker, struct wf_fiber *borrower)
{
    mc_assert(worker->current == &self->task);
    start(actor_of(borrower));
    be_away(self);
    return true;
}

void wf_fiber_suspend(struct wf_fiber *self, struct wf_worker *worker)
{
    mc_assert(worker->current == &self->task);
    cut_loan(self);
    start(actor_of(self)->joins);
    if (wf_state_pend(&self->task.state) == WF_STEP_SCHEDULE) {
        (void)wf_state_begin(&self->task.state);
    } else {
        be_away(self);
    }
}

/* --- The parts --- */

static void begin(void)
{
    heap = wf_heap_create(&wf_alloc_default, calloc(1, sizeof(struct wf_sched)), ACTORS);
    mc_name(heap, sizeof *heap, "heap");
}

static void free_sched(struct wf_sched *sched)
{
    free(sched);
}

static void end(void)
{
    mc_join();
    wf_heap_retire(heap, free_sched);
}

/* A fiber with so many handles, in the slab of the given worker. */
static weft_task *cast(unsigned number, unsigned slab, unsigned handles,
                       void (*play)(struct actor *self))
{
    struct wf_task *task = wf_heap_alloc(heap, slab, sizeof(struct wf_fiber));
    mc_name(task, sizeof(struct wf_fiber), "fiber");
    task->ops = &wf_fiber_ops;
    task->joiner = NULL;
    struct actor *actor = &actors[number];
    actor->fiber = (struct wf_fiber *)(void *)task;
    actor->fiber->polling = false;
    wf_store_relaxed(&actor->fiber->lender, (struct wf_fiber *)NULL);
    wf_store_relaxed(&actor->fiber->lent_to, (struct wf_task *)NULL);
    actor->play = play;
    actor->has_begun = false;
    actor->joins = NULL;
    actor->worker.heap = heap;
    actor->worker.index = number;
    actor->worker.current = task;
    actor->worker.budget = 100;
    wf_task_mark_queued(task);
    wf_store_release(&task->state, WF_STATE_RUNNING | (1 + handles) * WF_STATE_REF);
    return (weft_task *)task;
}

static void join_to(unsigned from, unsigned to, weft_task *handle)
{
    actors[from].joins = &actors[to];
    actors[from].handle = handle;
}

static void run(struct actor *self)
{
    if (self->leaves) {
        cut_loan(self->fiber);
    }
}

/* Joins, or gives up when it is cancelled. */
static void join(struct actor *self)
{
    int result = 0;
    int err = weft_join(self->handle, &result, WEFT_NEVER);
    if (err == 0) {
        mc_assert(result == RESULT);
    } else {
        mc_assert(err == WEFT_ECANCELED);
        weft_detach(self->handle);
    }
    mc_note(err == 0);
}

static void cancel(void *arg)
{
    wf_task_cancel(arg);
    wf_task_release(arg);
}

static const bool leaves = true;

/*
 * Goal:   a lender that is cancelled goes on once: it has the result, or not.
 * Method: the borrower ends, or leaves before; the canceller comes at any time.
 */
static void cancel_against_borrower(void)
{
    begin();
    weft_task *lender = cast(0, heap->outside, 1, join);
    join_to(0, 1, cast(1, heap->outside, 1, run));
    actors[1].leaves = mc_arg() != NULL;
    mc_go(first_frame, &actors[0]);
    cancel(lender);
    end();
}

/*
 * Goal:   everybody below one that leaves waits as others do, and goes on once.
 * Method: a lender of a lender; one of the two is cancelled.
 */
static void cancel_below_two_loans(void)
{
    begin();
    bool first = mc_choose(2) == 0;
    weft_task *lower = cast(0, heap->outside, first, join);
    weft_task *upper = cast(1, heap->outside, 1 + !first, join);
    join_to(0, 1, upper);
    join_to(1, 2, cast(2, heap->outside, 1, run));
    actors[2].leaves = mc_arg() != NULL;
    mc_go(first_frame, &actors[0]);
    cancel(first ? lower : upper);
    end();
}

static void join_with_second_handle(struct actor *self)
{
    int result = 0;
    int err = weft_join(self->handle, &result, WEFT_NEVER);
    if (err == 0) {
        mc_assert(result == RESULT);
    } else {
        mc_assert(err == WEFT_EJOINED);
        weft_detach(self->handle);
    }
    mc_note(err == 0);
}

/*
 * Goal:   of two that join, the second is refused, or comes after the first.
 * Method: a plain thread with a handle of its own joins what a lender has lent to.
 */
static void second_joiner_against_loan(void)
{
    begin();
    (void)cast(0, heap->outside, 0, join_with_second_handle);
    weft_task *handle = cast(1, heap->outside, 2, run);
    join_to(0, 1, handle);
    actors[1].leaves = mc_arg() != NULL;
    mc_go(first_frame, &actors[0]);
    int result = 0;
    int err = weft_join(handle, &result, WEFT_NEVER);
    if (err != 0) {
        mc_assert(err == WEFT_EJOINED);
        weft_detach(handle);
    }
    mc_note(2 + (err == 0));
    end();
}

static _Atomic(uint32_t) second_waits;

/* A join that tells when it waits. */
struct telling_join {
    weft_future future;
    weft_join_future join;
};

static int telling_poll(weft_future *future)
{
    struct telling_join *self = (struct telling_join *)future;
    int result = self->join.future.ops->poll(&self->join.future);
    if (result == WEFT_PENDING) {
        wf_store_release(&second_waits, 1u);
    }
    return result;
}

static void join_second(void *handle)
{
    static const weft_future_ops ops = { .poll = telling_poll };
    struct telling_join telling = { .future.ops = &ops };
    int result = 0;
    weft_join_init(&telling.join, handle, &result);
    mc_assert(weft_await(&telling.future, WEFT_NEVER) == 0);
    mc_assert(result == RESULT);
}

static void run_until_second_waits(struct actor *self)
{
    mc_go(join_second, &self->fiber->task);
    mc_await_exchange(&second_waits, 1, 0);
}

static void be_refused(struct actor *self)
{
    mc_assert(weft_join(self->handle, NULL, WEFT_NEVER) == WEFT_EJOINED);
}

/*
 * Goal:   a lender is refused if another has joined meanwhile, and lets the task alone.
 * Method: the other one takes the result and the only handle.
 */
static void second_joiner_is_first(void)
{
    begin();
    (void)cast(0, heap->outside, 0, be_refused);
    join_to(0, 1, cast(1, heap->outside, 1, run_until_second_waits));
    first_frame(&actors[0]);
    end();
}

/* The handle of the one that is joined is not the only one. */
static void join_and_reuse(struct actor *self)
{
    weft_task *first = self->handle;
    mc_assert(weft_join(first, NULL, WEFT_NEVER) == 0);
    actors[1].fiber = NULL; /* The slot may be the second's. */
    weft_task *second = cast(2, 0, 1, run);
    mc_note(second == first);
    join_to(0, 2, second);
    mc_assert(weft_join(second, NULL, WEFT_NEVER) == 0);
}

/*
 * Goal:   the slot of a borrower is used again after everybody's last look at it.
 * Method: somebody cancels the borrower while it is joined.
 */
static void cancel_of_the_borrower(void)
{
    begin();
    (void)cast(0, heap->outside, 0, join_and_reuse);
    weft_task *borrower = cast(1, 0, 2, run);
    join_to(0, 1, borrower);
    mc_go(first_frame, &actors[0]);
    cancel(borrower);
    end();
}

/* Under a shield: joins one, and then one in the same slot. */
static void join_twice(struct actor *self)
{
    wf_state_shield_enter(&self->fiber->task.state);
    weft_task *first = self->handle;
    mc_assert(weft_join(first, NULL, WEFT_NEVER) == 0);
    actors[1].fiber = NULL; /* The slot is the second's. */
    weft_task *second = cast(2, 0, 1, run);
    actors[2].leaves = actors[1].leaves;
    mc_note(second == first);
    join_to(0, 2, second);
    mc_assert(weft_join(second, NULL, WEFT_NEVER) == 0);
    wf_state_shield_leave(&self->fiber->task.state);
}

/*
 * Goal:   a canceller that comes late does no harm to whom it finds in the slot.
 * Method: two borrowers, one after the other, in one slot; the first one ends or
 *         leaves, so does the second.
 */
static void late_canceller(void)
{
    begin();
    weft_task *lender = cast(0, heap->outside, 1, join_twice);
    join_to(0, 1, cast(1, 0, 1, run));
    actors[1].leaves = mc_arg() != NULL;
    mc_go(first_frame, &actors[0]);
    cancel(lender);
    end();
}

#define TEST(function) .name = #function, .run = function, .leaks = true
#define LEAVING(function)                                                                          \
    .name = #function "/leaving", .run = function, .arg = &leaves, .leaks = true

static const struct mc_test tests[] = {
    { TEST(cancel_against_borrower), .preemptions = 2, .seen = MC_OUTCOMES(0, 1) },
    { LEAVING(cancel_against_borrower), .preemptions = 1, .deep_preemptions = 3,
      .seen = MC_OUTCOMES(0, 1) },
    { TEST(second_joiner_against_loan), .seen = MC_OUTCOMES(0, 1, 3) },
    { LEAVING(second_joiner_against_loan), .seen = MC_OUTCOMES(0, 1, 2, 3) },
    { TEST(second_joiner_is_first) },
    { TEST(cancel_of_the_borrower), .preemptions = 2, .seen = MC_OUTCOMES(0, 1) },
    { TEST(cancel_below_two_loans), .preemptions = 1, .deep_preemptions = 2,
      .seen = MC_OUTCOMES(0, 1) },
    { LEAVING(cancel_below_two_loans), .preemptions = 1, .deep_preemptions = 2,
      .seen = MC_OUTCOMES(0, 1) },
    { TEST(late_canceller), .preemptions = 2, .seen = MC_OUTCOMES(1) },
    { LEAVING(late_canceller), .mode = MC_PCT, .runs = 5000, .seen = MC_OUTCOMES(0, 1) },
};

MC_MAIN(tests)
