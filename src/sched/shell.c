/* SPDX-License-Identifier: MIT */
/*
 * shell.c - poll fibers: stackless polls that wait for a fork. The loop that polls suspends,
 * and its worker continues with a spare loop.
 *
 * A stackless task is polled by the loop of its worker, on the loop's stack. If such a poll
 * forks, and another worker steals the fork, the join has to wait in the middle of the poll. So
 * the poll gets a poll fiber: a fiber whose stack is the loop's. It is pinned, in no queue, and
 * RUNNING, like the task. To wait, the poll fiber leaves as any fiber does; the loop that it
 * leaves for is a spare one.
 *
 *   loop A                    loop B, spare
 *   poll T; T forks
 *   the poll fiber takes over
 *     A's context; leaves --> begins, or returns from its last poll: that of the poll
 *                             fiber, as far as it can tell; finishes that poll, polls
 *                             others
 *                             polls the poll fiber, which was woken
 *   (back) B is spare   <---
 *   T continues; the poll ends
 *
 * So each loop is the running one, or spare, or a poll fiber's. The spare loop exists before
 * the poll fiber needs it: a poll that gets none has no poll fiber, and runs its forks itself.
 *
 * The first loop of a worker is on the stack of its thread, and any loop may be the last one.
 * At the end, when no tasks and no poll fibers are left, that loop switches back to the first
 * one, which returns.
 *
 * All of this happens on one thread. Checked by tests/model/fork_model.c.
 */
#include "sched/shell.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "sched/drain.h"
#include "sched/fiber.h"
#include "sched/job.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/strand.h"
#include "sched/thread.h"
#include "sched/worker.h"

/* --- Loops ------------------------------------------------------------------------------ */

static unsigned stack_class(void)
{
    return (unsigned)wf_stack_class(WF_STACK_JOB);
}

/* Changes the running loop. Returns the previous one, with its context. */
static struct wf_loop *change_to(struct wf_worker *worker, struct wf_loop *loop)
{
    struct wf_loop *before = worker->loops.running;
    before->context = worker->loop;
    worker->loop = loop->context;
    worker->loops.running = loop;
    return before;
}

/* Runs a spare loop: it begins at the end of a poll, like one that returns from it. */
WF_NO_TSAN static void spare_main(void *carried)
{
    struct wf_worker *worker = carried;
    struct wf_loops *loops = &worker->loops;
    wf_context_begin(&worker->loop);
    wf_fiber_arrive_at_loop(worker);
    wf_worker_go_on(worker);
    /* The end: the first loop frees this one. */
    struct wf_loop *self = change_to(worker, &loops->home);
    self->next = loops->spare;
    loops->spare = self;
    worker->left_result = WEFT_PENDING;
    wf_context_leave(&worker->loop, worker);
}

static void free_loop(struct wf_worker *worker, struct wf_loop *loop)
{
    struct wf_stacks *stacks = &worker->sched->stacks;
    wf_context_fini(&loop->context);
    wf_stack_give(stacks, &worker->stacks, loop->stack);
    wf_stack_unpromise(stacks, &worker->stacks, stack_class());
    wf_free(&worker->sched->options.allocator, loop, sizeof *loop, _Alignof(struct wf_loop));
}

/* Takes a stack for a loop, and reserves it. */
static struct wf_stack *take_stack(struct wf_worker *worker)
{
    struct wf_stacks *stacks = &worker->sched->stacks;
    if (wf_stack_promise(stacks, &worker->stacks, stack_class()) != 0) {
        return NULL;
    }
    struct wf_stack *stack = wf_stack_take(stacks, &worker->stacks, stack_class());
    if (stack == NULL) {
        wf_stack_unpromise(stacks, &worker->stacks, stack_class());
    }
    return stack;
}

static struct wf_loop *make_loop(struct wf_worker *worker)
{
    const weft_allocator *allocator = &worker->sched->options.allocator;
    struct wf_stack *stack = take_stack(worker);
    if (stack == NULL) {
        return NULL;
    }
    struct wf_loop *loop = wf_alloc(allocator, sizeof *loop, _Alignof(struct wf_loop));
    if (loop == NULL) {
        wf_stack_give(&worker->sched->stacks, &worker->stacks, stack);
        wf_stack_unpromise(&worker->sched->stacks, &worker->stacks, stack_class());
        return NULL;
    }
    loop->stack = stack;
    wf_context_init(&loop->context, stack->low, wf_stack_size(stack), wf_stack_top(stack),
                    spare_main, worker->fp_control);
    return loop;
}

static void put_spare(struct wf_worker *worker, struct wf_loop *loop)
{
    struct wf_loops *loops = &worker->loops;
    bool is_home = loop == &loops->home;
    if (!is_home && loops->spares == WF_LOOPS_KEPT) {
        free_loop(worker, loop);
        return;
    }
    loops->spares += !is_home;
    loop->next = loops->spare;
    loops->spare = loop;
}

static struct wf_loop *take_spare(struct wf_loops *loops)
{
    struct wf_loop *loop = loops->spare;
    WF_ASSERT(loop != NULL);
    loops->spare = loop->next;
    loops->spares -= loop != &loops->home;
    return loop;
}

static bool have_spare(struct wf_worker *worker)
{
    if (worker->loops.spare == NULL) {
        struct wf_loop *loop = make_loop(worker);
        if (loop == NULL) {
            return false;
        }
        put_spare(worker, loop);
    }
    return true;
}

void wf_loops_init(struct wf_worker *worker)
{
    struct wf_loops *loops = &worker->loops;
    loops->home_stack =
        (struct wf_stack){ .low = wf_thread_stack_low(), .class = WF_STACK_CLASSES - 1 };
    loops->home.stack = &loops->home_stack;
    loops->running = &loops->home;
    wf_context_init_thread(&worker->loop);
}

void wf_loops_fini(struct wf_worker *worker)
{
    struct wf_loops *loops = &worker->loops;
    while (loops->spare != NULL) {
        struct wf_loop *loop = take_spare(loops);
        if (loop != &loops->home) {
            free_loop(worker, loop);
        }
    }
}

/* --- Poll fibers ---------------------------------------------------------------------------- */

static struct wf_fiber *make_shell(struct wf_worker *worker)
{
    if (have_spare(worker)) {
        worker->shell = wf_fiber_make_shell(worker, worker->current, worker->loops.running->stack);
    }
    return worker->shell;
}

struct wf_fiber *wf_shell_get(struct wf_worker *worker)
{
    return worker->shell != NULL ? worker->shell : make_shell(worker);
}

/* Makes the loop the poll fiber's, and a spare one the running one. */
static void step_out(struct wf_worker *worker, struct wf_fiber *shell)
{
    struct wf_loop *loop = change_to(worker, take_spare(&worker->loops));
    shell->context = loop->context;
    shell->arg = loop;
    worker->shell = NULL;
    worker->current = &shell->task;
}

/* The poll fiber was resumed: makes the loop that did so spare, and its own loop the running
 * one. */
static void step_in(struct wf_worker *worker, struct wf_fiber *shell, struct wf_task *polled)
{
    struct wf_loop *loop = shell->arg;
    loop->context = shell->context;
    put_spare(worker, change_to(worker, loop));
    worker->shell = shell;
    worker->current = polled;
}

void wf_shell_suspend(struct wf_worker *worker)
{
    struct wf_fiber *shell = worker->shell;
    struct wf_task *polled = worker->current;
    step_out(worker, shell);
    wf_fiber_suspend(shell, worker);
    step_in(worker, shell, polled);
}

void wf_shell_yield(struct wf_worker *worker)
{
    struct wf_fiber *shell = worker->shell;
    struct wf_task *polled = worker->current;
    step_out(worker, shell);
    wf_fiber_yield(shell, worker);
    step_in(worker, shell, polled);
}

void wf_shell_end(struct wf_worker *worker)
{
    while (wf_job_run_spawned(INT64_MIN)) {
    }
    struct wf_fiber *shell = worker->shell;
    if (shell->own.strand != 0) {
        wf_strand_end(worker, shell);
    }
    worker->shell = NULL;
    shell->stack = NULL;
    wf_worker_settle(worker, &shell->task, 0);
}
