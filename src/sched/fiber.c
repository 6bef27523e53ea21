/* SPDX-License-Identifier: MIT */
/*
 * fiber.c - tasks with a stack of their own.
 *
 * A fiber is polled like any task; its poll goes on on the fiber's stack and comes
 * back when the fiber waits, yields or ends. A fiber that leaves looks for the
 * next task itself. If that is a fiber, it goes straight there: one switch instead
 * of two, and with it every hand-over (a join of the fiber spawned last, a wake of
 * the peer followed by a wait) is as cheap as a switch.
 *
 *   loop          L1  begin F; switch to F          fiber   E1  has ended: complete
 *                 L2  (back) settle worker->current         E2  take the next task N
 *                                                           E3  fresh: run it right here
 *   fiber         F1  take the next task N                  E4  begin N; leave to N, or to
 *                 F2  left = self; begin N                      the loop
 *                 F3  switch to N, or to the loop
 *                 F4  (back) settle left
 *
 * Settling a fiber (state.h: pend, yield) lets other workers run it. So it is done
 * after the switch, by whoever arrives: then its registers are saved and nobody
 * uses its stack any more. For the same reason the stack of a fiber that has ended
 * is given back by whoever arrives. Completing needs no stack but the one it is
 * done on, so a fiber completes itself.
 *
 * That the next worker sees context and stack is the edge of state.h between the end
 * of a poll and the beginning of the next.
 *
 * After a switch the worker may be another one: it is what the switch carries.
 * Nothing else that belongs to a thread is kept across.
 *
 * Checked by tests/model/fiber_model.c.
 */
#include "sched/fiber.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/assert.h"
#include "sched/heap.h"
#include "sched/inplace.h"
#include "sched/local.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/worker.h"

static const struct wf_task_ops fiber_ops;

static bool is_fiber(const struct wf_task *task)
{
    return task->ops == &fiber_ops;
}

/* Tasks are aligned to 64 (heap.h), more than a header needs. */
static struct wf_fiber *cast(struct wf_task *task)
{
    return (struct wf_fiber *)(void *)task;
}

struct wf_fiber *wf_fiber_of(struct wf_task *task)
{
    return task != NULL && is_fiber(task) ? cast(task) : NULL;
}

struct wf_fiber *wf_fiber_current(void)
{
    struct wf_worker *worker = wf_worker_current();
    return worker != NULL ? wf_fiber_of(worker->current) : NULL;
}

/* The stack that nobody uses any more since its fiber has left it. */
static void give_ended_stack(struct wf_worker *worker)
{
    wf_context_fini(&worker->ended);
    wf_stack_give(&worker->sched->stacks, &worker->stacks, worker->ended_stack);
    worker->ended_stack = NULL;
}

/* After each switch, on the stack that goes on. */
static void arrive(struct wf_worker *worker)
{
    if (worker->ended_stack != NULL) {
        give_ended_stack(worker);
    }
    if (worker->left != NULL) {
        wf_worker_settle_left(worker);
    }
}

static void fiber_main(void *carried);

/* Gives a fiber that has not begun a stack. False if it must wait for one. */
static bool prepare(struct wf_worker *worker, struct wf_fiber *fiber)
{
    if (wf_likely(fiber->stack != NULL)) {
        return true;
    }
    struct wf_stack *stack = wf_stack_take(&worker->sched->stacks, &worker->stacks, fiber->class);
    if (stack == NULL) {
        return false;
    }
    fiber->stack = stack;
    wf_context_init(&fiber->context, stack->low, wf_stack_size(stack), wf_stack_top(stack),
                    fiber_main);
    fiber->context.fp_control = worker->fp_control; /* Not that of whoever runs now. */
    return true;
}

/* Chooses where to go: begins the next task if it is a fiber, or leaves it to the
 * loop. */
static struct wf_context *pass_on(struct wf_worker *worker, struct wf_task *next)
{
    if (next == NULL || !is_fiber(next) || !prepare(worker, cast(next))) {
        worker->next = next;
        return &worker->loop;
    }
    wf_counter_add(&worker->counters.handovers, 1);
    wf_worker_begin(worker, next);
    return &cast(next)->context;
}

void wf_fiber_arrive(struct wf_fiber *self, struct wf_worker *worker)
{
    wf_seat_take(&worker->seat, &self->own);
    arrive(worker);
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

/* Leaves this fiber, whose poll has come to result, for the next task. */
WF_NO_TSAN static void leave(struct wf_worker *worker, struct wf_fiber *self, struct wf_task *next,
                             int result)
{
    wf_fiber_must_hold_no_lock(self, &worker->seat);
    wf_seat_leave(&worker->seat, &self->own);
    worker->left_result = result;
    struct wf_context *to = pass_on(worker, next);
    worker->left = to != &worker->loop ? &self->task : NULL;
    worker = wf_context_switch(&self->context, to, worker);
    if (wf_likely(worker != NULL)) { /* Else on a thread of the pool: inplace.c. */
        wf_fiber_arrive(self, worker);
    }
}

void wf_fiber_suspend(struct wf_fiber *self)
{
    struct wf_worker *worker = wf_worker_current();
    leave(worker, self, wf_worker_next_direct(worker), WEFT_PENDING);
}

void wf_fiber_yield(struct wf_fiber *self)
{
    struct wf_worker *worker = wf_worker_current();
    struct wf_task *next = wf_worker_next_direct(worker);
    if (next == NULL && worker->counted) {
        /* Nobody waits: a new poll of its own. */
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
    worker->moved = moved;
    worker->moved_arg = arg;
    leave(worker, self, wf_worker_next_direct(worker), WEFT_PENDING);
}

/* The end of a fiber. Returns the next one that runs on this stack, or does not
 * return. */
WF_NO_TSAN static struct wf_fiber *finish(struct wf_fiber *self, int result)
{
    struct wf_worker *worker = wf_worker_current();
    struct wf_stack *stack = self->stack;
    self->stack = NULL;
    worker->ended.sanitizer = self->context.sanitizer;
    wf_stack_unpromise(&worker->sched->stacks, &worker->stacks, self->class);
    wf_worker_settle(worker, &self->task, result);
    worker->current = NULL;

    struct wf_task *next = wf_worker_next_direct(worker);
    if (WF_FIBER_REUSES_CONTEXT && next != NULL && is_fiber(next)) {
        struct wf_fiber *fresh = cast(next);
        if (fresh->stack == NULL && fresh->class == stack->class) {
            wf_counter_add(&worker->counters.handovers, 1);
            fresh->stack = stack;
            fresh->context.sanitizer = worker->ended.sanitizer;
            wf_seat_take(&worker->seat, &fresh->own);
            if (wf_unlikely(wf_fp_control_read() != worker->fp_control)) {
                wf_fp_control_write(worker->fp_control);
            }
            wf_worker_begin(worker, next);
            return fresh;
        }
    }
    worker->ended_stack = stack;
    worker->left_result = WEFT_PENDING;
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

/* The first frame on a stack. */
static void fiber_main(void *carried)
{
    struct wf_worker *worker = carried;
    struct wf_fiber *self = cast(worker->current);
    wf_context_begin(&self->context);
    wf_fiber_arrive(self, worker);
    for (;;) {
        int result = self->function(self->arg);
        must_be_result(self, result);
        if (wf_unlikely(self->locals != NULL)) {
            wf_local_end(&self->locals);
        }
        self = finish(self, result);
    }
}

/* Worker's loop: goes on on the fiber's stack. */
WF_NO_TSAN static int fiber_poll(struct wf_task *task)
{
    struct wf_worker *worker = wf_worker_current();
    struct wf_fiber *self = cast(task);
    if (!prepare(worker, self)) {
        return WEFT_YIELDED;
    }
    (void)wf_context_switch(&worker->loop, &self->context, worker);
    if (worker->seat.exceptions != NULL) {
        memset(worker->seat.exceptions, 0, sizeof self->own.exceptions);
    }
    arrive(worker);
    return worker->left_result;
}

static const struct wf_task_ops fiber_ops = {
    .kind = "fiber",
    .poll = fiber_poll,
    .schedule = wf_sched_schedule,
    .cancelled = wf_inplace_cancelled,
    .destroy = wf_spawn_free,
};

static int check_spec(const struct wf_sched *sched, const weft_fiber_spec *spec)
{
    if (spec->function == NULL || spec->arg_size > SIZE_MAX - sizeof(struct wf_fiber)) {
        return -EINVAL;
    }
    return wf_spawn_can_pin(sched, spec->pinned) ? wf_stack_class(spec->stack_size) : -EINVAL;
}

static void take_back_promise(struct wf_sched *sched, struct wf_worker *worker, unsigned class)
{
    if (worker != NULL) {
        wf_stack_unpromise(&sched->stacks, &worker->stacks, class);
    } else {
        wf_stack_unpromise_outside(&sched->stacks, class);
    }
}

/* A fiber with a promise of a stack, or an error. */
static int make_fiber(struct wf_sched *sched, struct wf_worker *worker, const weft_fiber_spec *spec,
                      unsigned class, struct wf_task **out)
{
    int err = worker != NULL ? wf_stack_promise(&sched->stacks, &worker->stacks, class)
                             : wf_stack_promise_outside(&sched->stacks, class);
    if (err != 0) {
        return err;
    }
    unsigned slab = worker != NULL ? worker->index : sched->heap->outside;
    size_t size = sizeof(struct wf_fiber) + spec->arg_size;
    struct wf_task *task = wf_spawn_alloc(sched, slab, size, &fiber_ops, spec->name);
    if (task == NULL) {
        take_back_promise(sched, worker, class);
        return -ENOMEM;
    }
    struct wf_fiber *self = cast(task);
    self->stack = NULL;
    self->function = spec->function;
    self->arg = spec->arg;
    self->own = (struct wf_belongings){ 0 };
    self->class = (uint8_t) class;
    self->polling = false;
    self->locals = NULL;
    self->hosting = NULL;
    if (spec->arg_size != 0) {
        memcpy(self->copy, spec->arg, spec->arg_size);
        self->arg = self->copy;
    }
    *out = task;
    return 0;
}

int wf_fiber_spawn(struct wf_sched *sched, struct wf_task **out, const weft_fiber_spec *spec)
{
    struct wf_worker *worker;
    int err = wf_spawn_admit(sched, &worker);
    if (err != 0) {
        return err;
    }
    int class = check_spec(sched, spec);
    if (class < 0) {
        return class;
    }
    struct wf_task *task;
    err = make_fiber(sched, worker, spec, (unsigned)class, &task);
    if (err != 0) {
        return err;
    }
    err = wf_spawn_start(sched, worker, task, spec->pinned, out);
    if (err != 0) {
        take_back_promise(sched, worker, (unsigned)class);
    }
    return err;
}
