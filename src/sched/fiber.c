/* SPDX-License-Identifier: MIT */
/*
 * fiber.c - fibers: tasks with a stack of their own.
 *
 * A fiber is polled like any task. Its poll continues on the fiber's stack and returns when the
 * fiber suspends, yields or ends. A fiber that leaves looks for the next task itself. If that
 * is a fiber, it switches straight to it: one switch instead of two. So every hand-over (a join
 * of the fiber spawned last, a wake of the peer followed by a wait) is as cheap as a switch.
 *
 *   loop          L1  begin F; switch to F          fiber   E1  has ended: complete
 *                 L2  (back) finish the poll of             E2  take the next task N
 *                     worker->current                       E3  fresh: run it right here
 *   fiber         F1  take the next task N                  E4  begin N; leave to N, or to
 *                 F2  left = self; begin N                      the loop
 *                 F3  switch to N, or to the loop
 *                 F4  (back) finish the poll of left
 *
 * Finishing the poll of a fiber (state.h: wf_state_pend(), or a yield) lets other workers run
 * it. So this is done after the switch, by the fiber or loop that arrives: by then the
 * registers are saved and no code runs on the stack any more. For the same reason, the stack of
 * a fiber that has ended is given back by the fiber or loop that arrives. Completing needs no
 * stack but the one it runs on, so a fiber completes itself.
 *
 * That the next worker sees context and stack is ensured by the edge of state.h between the end
 * of a poll and the beginning of the next.
 *
 * After a switch the worker may be another one: it is the value that the switch carries.
 * Nothing else that belongs to a thread is kept across a switch.
 *
 * Checked by tests/model/fiber_model.c.
 */
#include "sched/fiber.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/assert.h"
#include "base/fork.h"
#include "sched/frame.h"
#include "sched/heap.h"
#include "sched/inplace.h"
#include "sched/job.h"
#include "sched/loan.h"
#include "sched/local.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/strand.h"
#include "sched/worker.h"

static bool is_fiber(const struct wf_task *task)
{
    return task->ops == &wf_fiber_ops;
}

static struct wf_fiber *cast(struct wf_task *task)
{
    return (struct wf_fiber *)(void *)task;
}

/* Gives back the stack of an ended fiber, after that fiber has left it. */
static void give_ended_stack(struct wf_worker *worker)
{
    wf_context_fini(&worker->ended);
    wf_stack_give(&worker->sched->stacks, &worker->stacks, worker->ended_stack);
    worker->ended_stack = NULL;
}

/* Runs after each switch, on the stack that continues. */
static inline void arrive(struct wf_worker *worker)
{
    if (worker->ended_stack != NULL) {
        give_ended_stack(worker);
    }
    if (worker->lent != NULL) {
        wf_loan_publish(worker->lent, worker->current);
        worker->lent = NULL;
    }
    if (worker->left != NULL) {
        wf_worker_settle_left(worker);
    }
}

static void fiber_main(void *carried);

static bool take_stack(struct wf_worker *worker, struct wf_fiber *fiber)
{
    struct wf_stack *stack = wf_stack_take(&worker->sched->stacks, &worker->stacks, fiber->class);
    if (stack == NULL) {
        return false;
    }
    fiber->stack = stack;
    wf_context_init(&fiber->context, stack->low, wf_stack_size(stack), wf_stack_top(stack),
                    fiber_main, worker->fp_control);
    return true;
}

/* Gives a fiber that has not started a stack. Returns false if it must wait for one. */
static inline bool prepare(struct wf_worker *worker, struct wf_fiber *fiber)
{
    return wf_likely(fiber->stack != NULL) || take_stack(worker, fiber);
}

/* Begins the poll of a fiber that was prepared. */
static inline struct wf_context *begin(struct wf_worker *worker, struct wf_fiber *next)
{
    wf_counter_add(&worker->counters.handovers, 1);
    wf_worker_begin(worker, &next->task);
    return &next->context;
}

/* Returns where to switch: begins the next task if it is a fiber, otherwise leaves it to the
 * loop. */
static inline struct wf_context *pass_on(struct wf_worker *worker, struct wf_task *next)
{
    if (next == NULL || !is_fiber(next) || !prepare(worker, cast(next))) {
        worker->next = next;
        return &worker->loop;
    }
    return begin(worker, cast(next));
}

static inline void arrive_as(struct wf_fiber *self, struct wf_worker *worker)
{
    wf_seat_take(&worker->seat, &self->own);
    if (wf_unlikely(self->own.strand != 0)) {
        wf_strand_arrive(worker, self);
    }
    arrive(worker);
}

void wf_fiber_arrive(struct wf_fiber *self, struct wf_worker *worker)
{
    arrive_as(self, worker);
}

void wf_fiber_must_hold_no_lock(const struct wf_fiber *self, const struct wf_seat *seat)
{
#ifdef WF_DEBUG
    const char *lock = wf_seat_lock_held(seat);
    if (lock != NULL) {
        wf_fatal("fiber '%s' (#%llu) waits while it holds a lock of this thread (%s); unlock it "
                 "before, or use one that fibers can wait for",
                 self->task.name != NULL ? self->task.name : "", (unsigned long long)self->task.id,
                 lock);
    }
#else
    (void)self;
    (void)seat;
#endif
}

/* Leaves this fiber for the context of another. Inlined, because it is all that its callers,
 * which are WF_NO_TSAN, do. */
static inline __attribute__((always_inline)) void
leave_for(struct wf_worker *worker, struct wf_fiber *self, struct wf_context *to)
{
    wf_fiber_must_hold_no_lock(self, &worker->seat);
    if (wf_unlikely(self->own.strand != 0)) {
        wf_strand_leave(worker, self);
    }
    wf_seat_leave(&worker->seat, &self->own);
    worker = wf_context_switch(&self->context, to, worker);
    if (wf_likely(worker != NULL)) { /* Else on a pool thread: inplace.c. */
        arrive_as(self, worker);
    }
}

/* Leaves this fiber, whose poll ends with this result, for the next task. */
WF_NO_TSAN static void leave(struct wf_worker *worker, struct wf_fiber *self, struct wf_task *next,
                             int result)
{
    struct wf_context *to = pass_on(worker, next);
    worker->left_result = result;
    worker->left = to != &worker->loop ? &self->task : NULL;
    leave_for(worker, self, to);
}

WF_NO_TSAN bool wf_fiber_lend(struct wf_fiber *self, struct wf_worker *worker,
                              struct wf_fiber *borrower)
{
    if (!prepare(worker, borrower)) {
        return false;
    }
    worker->lent = self;
    leave_for(worker, self, begin(worker, borrower));
    return true;
}

/* Ends a join handoff before this fiber's poll ends. */
static inline void cut_loan(struct wf_fiber *self)
{
    /* relaxed: see loan.c, E2. */
    if (wf_unlikely(wf_load_relaxed(&self->lender) != NULL)) {
        wf_loan_cut(self);
    }
}

void wf_fiber_suspend(struct wf_fiber *self, struct wf_worker *worker)
{
    cut_loan(self);
    leave(worker, self, wf_worker_next_direct(worker), WEFT_PENDING);
}

void wf_fiber_yield(struct wf_fiber *self, struct wf_worker *worker)
{
    cut_loan(self);
    struct wf_task *next = wf_worker_next_direct(worker);
    if (next == NULL && worker->counted && self->own.strand == 0) {
        /* No task waits, and it has no forks: start a new poll. */
        worker->counted = false;
        worker->budget = WF_WORKER_BUDGET;
        wf_counter_add(&worker->counters.polls, 1);
        return;
    }
    leave(worker, self, next, WEFT_YIELDED);
}

void wf_fiber_move(struct wf_fiber *self, void (*moved)(void *arg), void *arg)
{
    struct wf_worker *worker = wf_worker_current();
    cut_loan(self);
    worker->moved = moved;
    worker->moved_arg = arg;
    leave(worker, self, wf_worker_next_direct(worker), WEFT_PENDING);
}

/* Completes this fiber. Returns the joiner to switch back to, or NULL. */
static struct wf_fiber *complete(struct wf_worker *worker, struct wf_fiber *self, int result)
{
    /* relaxed: see loan.c, E1. */
    if (wf_load_relaxed(&self->lender) == NULL) {
        wf_worker_settle(worker, &self->task, result);
        return NULL;
    }
    wf_counter_add(&worker->counters.completed, 1);
    struct wf_fiber *lender = wf_loan_complete(self, result);
    if (wf_unlikely(worker->closing)) {
        wf_drain_task_done(worker);
    }
    return lender;
}

/* Ends a fiber. Returns the next fiber that runs on this stack, or does not return. */
WF_NO_TSAN_INLINE static inline struct wf_fiber *finish(struct wf_fiber *self, int result)
{
    struct wf_worker *worker = wf_worker_current();
    struct wf_stack *stack = self->stack;
    self->stack = NULL;
    worker->ended.sanitizer = self->context.sanitizer;
    wf_stack_unpromise(&worker->sched->stacks, &worker->stacks, self->class);
    struct wf_fiber *lender = complete(worker, self, result);
    worker->ended_stack = stack;
    worker->left_result = WEFT_PENDING;
    if (lender != NULL) {
        wf_counter_add(&worker->counters.handovers, 1);
        worker->current = &lender->task;
        wf_context_leave(&lender->context, worker);
    }
    worker->current = NULL;

    struct wf_task *next = wf_worker_next_direct(worker);
    if (WF_FIBER_REUSES_CONTEXT && next != NULL && is_fiber(next)) {
        struct wf_fiber *fresh = cast(next);
        if (fresh->stack == NULL && fresh->class == stack->class) {
            wf_counter_add(&worker->counters.handovers, 1);
            fresh->stack = stack;
            worker->ended_stack = NULL;
            fresh->context.sanitizer = worker->ended.sanitizer;
            wf_seat_take(&worker->seat, &fresh->own);
            if (wf_unlikely(wf_fp_control_read() != worker->fp_control)) {
                wf_fp_control_write(worker->fp_control);
            }
            wf_worker_begin(worker, next);
            return fresh;
        }
    }
    wf_context_leave(pass_on(worker, next), worker);
}

static void must_be_result(const struct wf_fiber *self, int result)
{
    if (wf_unlikely(result == WEFT_PENDING || result == WEFT_YIELDED)) {
        wf_fatal("fiber '%s' (#%llu) returned WEFT_PENDING or WEFT_YIELDED; it must return its "
                 "result, and wait with weft_await()",
                 self->task.name != NULL ? self->task.name : "", (unsigned long long)self->task.id);
    }
}

/* Functions spawned in a scope on the stack of an ended fiber would still use it. */
static void must_have_ended_scopes(const struct wf_fiber *self)
{
    if (wf_unlikely(self->scopes != 0)) {
        wf_fatal("fiber '%s' (#%llu) returned with a parallel scope that was not ended; call "
                 "weft_par_scope_end() in the function that has called weft_par_scope_begin()",
                 self->task.name != NULL ? self->task.name : "", (unsigned long long)self->task.id);
    }
}

/* Runs the functions that the fiber has spawned and no thief has stolen, then ends its fork
 * context. */
static void end_strand(struct wf_fiber *self)
{
    while (wf_job_run_spawned(INT64_MIN)) {
    }
    if (self->own.strand != 0) { /* It may have suspended meanwhile. */
        wf_strand_end(wf_worker_current(), self);
    }
}

/* The first frame on a fiber's stack. */
static void fiber_main(void *carried)
{
    struct wf_worker *worker = carried;
    struct wf_fiber *self = cast(worker->current);
    wf_context_begin(&self->context);
    arrive_as(self, worker);
    for (;;) {
        int result = self->function(self->arg);
        must_be_result(self, result);
        must_have_ended_scopes(self);
        wf_frame_must_be_empty(&self->open, &self->task);
        if (wf_unlikely(self->locals != NULL)) {
            wf_local_end(&self->locals);
        }
        if (wf_unlikely(self->own.strand != 0)) {
            end_strand(self);
        }
        self = finish(self, result);
    }
}

void wf_fiber_arrive_at_loop(struct wf_worker *worker)
{
    if (worker->seat.exceptions != NULL) {
        worker->seat.exceptions[0] = NULL;
        worker->seat.exceptions[1] = NULL;
    }
    arrive(worker);
}

/* Called by the worker's loop: continues on the fiber's stack. */
WF_NO_TSAN static int fiber_poll(struct wf_task *task)
{
    struct wf_worker *worker = wf_worker_current();
    struct wf_fiber *self = cast(task);
    if (!prepare(worker, self)) {
        return WEFT_YIELDED;
    }
    (void)wf_context_switch(&worker->loop, &self->context, worker);
    wf_fiber_arrive_at_loop(worker);
    return worker->left_result;
}

static void cancelled(struct wf_task *task)
{
    wf_loan_cancelled(cast(task));
    wf_inplace_cancelled(task);
}

const struct wf_task_ops wf_fiber_ops = {
    .kind = "fiber",
    .poll = fiber_poll,
    .schedule = wf_sched_schedule,
    .cancelled = cancelled,
    .destroy = wf_spawn_free,
};

static inline int check_spec(const struct wf_sched *sched, const weft_fiber_spec *spec)
{
    if (spec->function == NULL || spec->arg_size > SIZE_MAX - sizeof(struct wf_fiber)) {
        return -EINVAL;
    }
    return wf_spawn_can_pin(sched, spec->pinned) ? wf_stack_class(spec->stack_size) : -EINVAL;
}

/* Initializes all fields except the header. */
static inline void fill(struct wf_fiber *self, const weft_fiber_spec *spec, unsigned class,
                        void **locals)
{
    self->stack = NULL;
    self->function = spec->function;
    self->arg = spec->arg;
    self->own = (struct wf_belongings){ 0 };
    self->class = (uint8_t) class;
    self->polling = false;
    self->scopes = 0;
    /* relaxed: not shared yet. */
    wf_store_relaxed(&self->open, 0u);
    self->locals = locals;
    self->runs = NULL;
    self->runners = NULL;
    self->follows = false;
    self->hosting = NULL;
    /* relaxed: not shared yet. */
    wf_store_relaxed(&self->lender, (struct wf_fiber *)NULL);
    wf_store_relaxed(&self->lent_to, (struct wf_task *)NULL);
    if (spec->arg_size != 0) {
        memcpy(self->copy, spec->arg, spec->arg_size);
        self->arg = self->copy;
    }
}

/* On a worker of the scheduler. Inlined, and short for a plain spec. */
static inline __attribute__((always_inline)) int spawn_here(struct wf_worker *worker,
                                                            struct wf_task **out,
                                                            const weft_fiber_spec *spec,
                                                            void **locals, bool follows)
{
    struct wf_sched *sched = worker->sched;
    if (wf_unlikely(!wf_spawn_is_open(worker))) {
        return WEFT_ESHUTDOWN;
    }
    int class = check_spec(sched, spec);
    if (wf_unlikely(class < 0)) {
        return class;
    }
    if (wf_unlikely(wf_stack_promise(&sched->stacks, &worker->stacks, (unsigned)class) != 0)) {
        return -ENOMEM;
    }
    size_t size = sizeof(struct wf_fiber) + spec->arg_size;
    struct wf_task *task = wf_heap_alloc_own(worker->heap, worker->index, size);
    if (wf_unlikely(task == NULL)) {
        wf_stack_unpromise(&sched->stacks, &worker->stacks, (unsigned)class);
        return -ENOMEM;
    }
    wf_spawn_fill(task, &wf_fiber_ops, spec->name, wf_spawn_id(worker));
    fill(cast(task), spec, (unsigned)class, locals);
    cast(task)->follows = follows;
    if (spec->pinned != 0) {
        wf_spawn_pin(sched, worker, task, spec->pinned);
    }
    wf_spawn_publish(worker, task, out == NULL);
    if (out != NULL) {
        *out = task;
    }
    if (spec->pinned != 0) {
        wf_sched_schedule(task);
    } else {
        wf_worker_push(worker, task);
    }
    return 0;
}

int wf_fiber_go(struct wf_worker *worker, struct wf_task **out, int (*function)(void *arg),
                void *arg)
{
    weft_fiber_spec spec = { .function = function, .arg = arg };
    return spawn_here(worker, out, &spec, NULL, false);
}

struct wf_task *wf_fiber_reserve(struct wf_worker *worker, size_t stack_size)
{
    unsigned class = (unsigned)wf_stack_class(stack_size);
    if (wf_stack_promise(&worker->sched->stacks, &worker->stacks, class) != 0) {
        return NULL;
    }
    struct wf_task *task = wf_heap_alloc_own(worker->heap, worker->index, sizeof(struct wf_fiber));
    if (task == NULL) {
        wf_stack_unpromise(&worker->sched->stacks, &worker->stacks, class);
    }
    return task;
}

void wf_fiber_unreserve(struct wf_worker *worker, struct wf_task *task, size_t stack_size)
{
    unsigned class = (unsigned)wf_stack_class(stack_size);
    wf_stack_unpromise(&worker->sched->stacks, &worker->stacks, class);
    wf_heap_free_own(worker->heap, task, worker->index);
}

/* Publishes a new task, also during a shutdown. */
static void publish_always(struct wf_worker *worker, struct wf_task *task)
{
    if (wf_likely(!worker->closing)) {
        wf_spawn_publish(worker, task, true);
        return;
    }
    wf_drain_task_added(worker);
    wf_spawn_publish(worker, task, true);
    wf_drain_cancel(task);
}

/* The fiber runs a fork. */
static void follow(struct wf_fiber *self, struct wf_runners *runners)
{
    self->runners = runners;
    self->follows = runners->owner != NULL;
}

void wf_fiber_make(struct wf_worker *worker, struct wf_task *task, size_t stack_size,
                   int (*function)(void *arg), void *arg, struct wf_runners *runners)
{
    weft_fiber_spec spec = { .function = function, .arg = arg };
    struct wf_fiber *self = cast(task);
    wf_spawn_fill(task, &wf_fiber_ops, NULL, wf_spawn_id(worker));
    fill(self, &spec, (unsigned)wf_stack_class(stack_size), NULL);
    follow(self, runners);
    publish_always(worker, task);
}

struct wf_fiber *wf_fiber_make_shell(struct wf_worker *worker, const struct wf_task *polled,
                                     struct wf_stack *stack)
{
    struct wf_task *task = wf_heap_alloc_own(worker->heap, worker->index, sizeof(struct wf_fiber));
    if (task == NULL) {
        return NULL;
    }
    struct wf_fiber *shell = cast(task);
    /* It represents the task that is polled, with that task's name and id. */
    wf_spawn_fill(task, &wf_fiber_ops, polled->name, polled->id);
    fill(shell, &(weft_fiber_spec){ 0 }, stack->class, NULL);
    shell->stack = stack;
    task->pin = worker->index + 1;
    publish_always(worker, task);
    (void)wf_task_begin(task);
    return shell;
}

static int spawn_outside(struct wf_sched *sched, struct wf_task **out, const weft_fiber_spec *spec,
                         void **locals, struct wf_runners *runners, bool follows)
{
    int class = check_spec(sched, spec);
    if (class < 0) {
        return class;
    }
    if (wf_stack_promise_outside(&sched->stacks, (unsigned)class) != 0) {
        return -ENOMEM;
    }
    size_t size = sizeof(struct wf_fiber) + spec->arg_size;
    struct wf_task *task =
        wf_spawn_alloc(sched, sched->heap->outside, size, &wf_fiber_ops, spec->name);
    int err = -ENOMEM;
    if (task != NULL) {
        fill(cast(task), spec, (unsigned)class, locals);
        cast(task)->follows = follows;
        if (runners != NULL) {
            follow(cast(task), runners);
        }
        err = wf_spawn_start(sched, NULL, task, spec->pinned, out);
    }
    if (err != 0) {
        wf_stack_unpromise_outside(&sched->stacks, (unsigned)class);
    }
    return err;
}

static int spawn_with(struct wf_sched *sched, struct wf_task **out, const weft_fiber_spec *spec,
                      void **locals)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL && worker->sched == sched) {
        return spawn_here(worker, out, spec, locals, false);
    }
    wf_fork_check(sched->fork_number, "weft_go");
    return spawn_outside(sched, out, spec, locals, NULL, false);
}

int wf_fiber_spawn_runner(struct wf_sched *sched, size_t stack_size, int (*function)(void *arg),
                          void *arg, struct wf_runners *runners)
{
    weft_fiber_spec spec = { .function = function, .arg = arg, .stack_size = stack_size };
    return spawn_outside(sched, NULL, &spec, NULL, runners, false);
}

int wf_fiber_go_along(struct wf_task **out, int (*function)(void *arg), void *arg, const char *call)
{
    weft_fiber_spec spec = { .function = function, .arg = arg };
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        return spawn_here(worker, out, &spec, NULL, true);
    }
    return spawn_outside(wf_thread_must_sched(call), out, &spec, NULL, NULL, true);
}

int wf_fiber_spawn(struct wf_sched *sched, struct wf_task **out, const weft_fiber_spec *spec)
{
    if (!spec->inherits) {
        return spawn_with(sched, out, spec, NULL);
    }
    void **locals;
    int err = wf_local_inherit(&locals);
    if (err == 0) {
        err = spawn_with(sched, out, spec, locals);
    }
    if (err != 0) {
        wf_local_end(&locals);
    }
    return err;
}
