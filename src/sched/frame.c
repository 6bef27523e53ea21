/* SPDX-License-Identifier: MIT */
/*
 * frame.c - objects in the frame or the state of a task, which must not outlive it.
 */
#include "sched/frame.h"

#include <stdbool.h>

#include "sched/fiber.h"
#include "sched/spawn.h"
#include "sched/task.h"
#include "sched/thread.h"

enum {
    ONE = 4, /* The two low bits of a stackless task's counter are in use: spawn.c. */
};

static bool is_between(const void *object, const void *low, const void *high)
{
    uintptr_t at = (uintptr_t)object;
    return (uintptr_t)low <= at && at < (uintptr_t)high;
}

/* Returns whether the object is on the stack of a fiber, also while that runs on a pool thread. */
static bool is_on_stack(const struct wf_fiber *fiber, const void *object)
{
    const struct wf_stack *stack = fiber->stack;
    return stack != NULL && is_between(object, stack->low, stack->low + wf_stack_size(stack));
}

/* Returns whether the object is on the thread's stack, above this frame and below that of the
 * blocking job. */
static bool is_in_job(const struct wf_thread *thread, const void *object)
{
    return thread != NULL && thread->job_frame != NULL &&
           is_between(object, __builtin_frame_address(0), thread->job_frame);
}

static _Atomic(uint32_t) *counter_for(const void *object)
{
    struct wf_task *task = wf_thread_running();
    if (task == NULL) {
        return NULL;
    }
    struct wf_fiber *fiber = wf_fiber_of(task);
    if (fiber != NULL) {
        return is_on_stack(fiber, object) ? &fiber->open : NULL;
    }
    _Atomic(uint32_t) *counter = wf_spawn_counter(task, object);
    struct wf_thread *thread = wf_thread_known();
    bool is_job = counter == NULL && wf_worker_current() == NULL && is_in_job(thread, object);
    return is_job ? &thread->open : counter;
}

_Atomic(uint32_t) *wf_frame_begin(const void *object)
{
    _Atomic(uint32_t) *counter = counter_for(object);
    if (counter != NULL) {
        /* relaxed: only the task itself reads the sum. */
        (void)wf_fetch_add_relaxed(counter, (uint32_t)ONE);
    }
    return counter;
}

void wf_frame_end(_Atomic(uint32_t) *counter)
{
    if (counter != NULL) {
        /* relaxed: the task that reads the sum has waited for this one, or is this one. */
        (void)wf_fetch_sub_relaxed(counter, (uint32_t)ONE);
    }
}
