/* SPDX-License-Identifier: MIT */
/*
 * runners.c - the fibers that run the stolen forks of one task, and are canceled with it.
 *
 * A stolen fork is a part of the task that forked it, its owner. But it runs on a fiber of its
 * own, its runner, and weft_cancel() and a shutdown find only the owner. So runners are in a
 * list, and the owner cancels them when it comes to wait for them:
 *
 *   Owner, in its wait                     Runner
 *   F1  canceled, and no shield: cancel    R1  enter the list; if the owner is canceled, cancel
 *       all runners in the list                itself
 *   F2  suspend until the fork is done     R2  run the fork
 *                                          R3  leave the list; then the fork is done
 *
 * A cancellation wakes the owner, which repeats F1. F1 and R1 are under one lock: a runner that
 * F1 does not find in the list enters it later, and sees that the owner is canceled. The owner
 * does not change its shield while it waits. If the cancellation comes before the owner waits,
 * F1 reaches the runners then.
 *
 * An owner that was canceled may enter a shield to clean up. Forks inside it are shielded like
 * their owner. For the same reason a shutdown cancels no runner whose owner is a task (drain.c):
 * the owner decides.
 *
 * The owner waits for the fork, so it outlives R1 to R3. A runner leaves the list before the
 * fork is done, since its owner and the list may be gone after that.
 *
 * A stackless task cannot be woken in the middle of a poll. A shutdown cancels its poll fiber
 * (shell.c), too, which repeats F1. A weft_cancel() of the task reaches the runners that start
 * later, and the others when the poll fiber wakes up next.
 *
 * Checked by tests/model/fork_model.c.
 */
#include "sched/runners.h"

#include "sched/fiber.h"
#include "sched/task.h"
#include "sched/thread.h"
#include "sched/worker.h"

void wf_runners_init(struct wf_runners *runners)
{
    runners->owner = wf_thread_running();
    wf_lock_init(&runners->lock, WF_RANK_RUNNERS);
    wf_list_init(&runners->list);
}

/* Returns whether the owner is canceled, and no shield defers that. */
static bool must_cancel(const struct wf_runners *runners)
{
    /* relaxed: a flag; if it is set later, the owner is woken and looks again. */
    return runners->owner != NULL && wf_state_must_cancel(wf_load_relaxed(&runners->owner->state));
}

void wf_runners_add(struct wf_runners *runners, struct wf_runner *self)
{
    self->task = wf_thread_running();
    wf_lock(&runners->lock);
    bool is_canceled = must_cancel(runners);
    self->canceled = is_canceled;
    wf_list_push_back(&runners->list, &self->link);
    wf_unlock(&runners->lock);
    if (is_canceled) {
        wf_task_cancel(self->task);
    }
}

void wf_runners_remove(struct wf_runners *runners, struct wf_runner *self)
{
    wf_lock(&runners->lock);
    wf_list_remove(&self->link);
    wf_unlock(&runners->lock);
}

/* Returns a runner that is not canceled yet, with a reference, or NULL. It may end once the
 * lock is released. */
static struct wf_task *next_to_cancel(struct wf_runners *runners)
{
    struct wf_task *task = NULL;
    wf_lock(&runners->lock);
    for (struct wf_list *link = runners->list.next; link != &runners->list && task == NULL;
         link = link->next) {
        struct wf_runner *runner = wf_container_of(link, struct wf_runner, link);
        if (!runner->canceled) {
            runner->canceled = true;
            task = runner->task;
            wf_task_retain(task);
        }
    }
    wf_unlock(&runners->lock);
    return task;
}

/* A shutdown may have canceled the poll fiber, and not yet the task that it polls. */
static void cancel_with_shell(const struct wf_runners *runners)
{
    const struct wf_worker *worker = wf_worker_current();
    const struct wf_fiber *shell = worker != NULL ? worker->shell : NULL;
    /* relaxed: a flag, as above. */
    if (shell != NULL && wf_state_must_cancel(wf_load_relaxed(&shell->task.state))) {
        wf_task_cancel(runners->owner);
    }
}

void wf_runners_follow(struct wf_runners *runners)
{
    cancel_with_shell(runners);
    if (wf_likely(!must_cancel(runners))) {
        return;
    }
    struct wf_task *task;
    while ((task = next_to_cancel(runners)) != NULL) {
        wf_task_cancel(task);
        wf_task_release(task);
    }
}
