/* SPDX-License-Identifier: MIT */
/*
 * waitq_model.c - src/sched/waitq.h and waitq.c: what is granted arrives once, and
 * nothing touches a wait that is over.
 *
 * A waiter is a thread with a task of its own; its schedule function sets a word.
 * The waiter frees its frame, with wait and nodes in it, as soon as the wait is
 * over, and its task right after; so whoever comes late is found. Fakes: the
 * object, a pile of permits, of which one finishes a wait under its lock, and the other one
 * after it; wf_join_answer(), which nobody calls; the variable
 * that says which worker a thread is.
 */
#include <stdlib.h>

#include <weft/future.h>

#include "base/lock.h"
#include "mc.h"
#include "sched/join.h"
#include "sched/task.h"
#include "sched/waitq.h"
#include "sched/worker.h"

enum {
    OBJECTS = 2,
    NOTHING = 0,
    PERMIT = 100, /* and the object's index */
};

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

struct object {
    struct wf_lock lock;
    struct wf_waitq waiters; /* under the lock, as is permits */
    int permits;
};

struct waiter_task {
    struct wf_task task;
    _Atomic(uint32_t) woken;
};

struct branch {
    struct wf_wait_node node;
    int granted; /* written by the granter, read by the waiter */
};

struct frame {
    struct wf_wait wait;
    struct branch branches[OBJECTS];
};

static struct object objects[OBJECTS];
static struct wf_worker inside;
static char heap_stub;
static unsigned tasks;
static int got; /* what the waiter was granted */

void wf_join_answer(struct wf_task *task)
{
    (void)task;
    mc_assert(!"nobody joins");
}

static void schedule(struct wf_task *task)
{
    mc_assert(wf_xchg_release(&((struct waiter_task *)task)->woken, 1u) == 0);
}

static void destroy(struct wf_task *task)
{
    free(task);
}

static const struct wf_task_ops ops = { .schedule = schedule, .destroy = destroy };

/* With one reference, and running. */
static struct wf_task *make_task(void)
{
    struct waiter_task *self = malloc(sizeof *self);
    *self = (struct waiter_task){ .task = { .ops = &ops, .heap = (void *)&heap_stub } };
    wf_store_relaxed(&self->task.state, WF_STATE_RUNNING | WF_STATE_REF);
    mc_name(self, sizeof *self, tasks++ == 0 ? "task" : "other task");
    return &self->task;
}

static void await_wake(struct wf_task *task)
{
    task->result = 0; /* The poller's, until it has pended. */
    if (wf_state_pend(&task->state) != WF_STEP_SCHEDULE) {
        mc_await_exchange(&((struct waiter_task *)task)->woken, 1, 0);
    }
    (void)wf_state_begin(&task->state);
}

static void begin(void)
{
    inside.heap = (void *)&heap_stub;
    for (unsigned i = 0; i < OBJECTS; i++) {
        wf_lock_init(&objects[i].lock, WF_RANK_ROOM);
        wf_waitq_init(&objects[i].waiters);
    }
    mc_name(&objects[0], sizeof objects[0], "first");
    mc_name(&objects[1], sizeof objects[1], "second");
}

/* G1 to G4. */
static void granter(void *arg)
{
    struct object *object = arg;
    struct wf_task *task = NULL;
    struct wf_wait *wait = NULL;
    wf_tls_worker = &inside;
    wf_lock(&object->lock);
    struct wf_wait_node *node = wf_waitq_claim_first(&object->waiters);
    if (node != NULL) {
        struct branch *branch = wf_container_of(node, struct branch, node);
        branch->granted = PERMIT + (int)(object - objects);
        wait = node->wait;
        if (object != objects) {
            task = wf_wait_finish(wait);
        }
    } else {
        object->permits++;
    }
    wf_unlock(&object->lock);
    if (task != NULL) {
        wf_task_wake(task);
    } else if (wait != NULL) {
        wf_wait_grant(wait);
    }
}

static void link_branch(struct frame *frame, unsigned i)
{
    struct branch *branch = &frame->branches[i];
    branch->granted = NOTHING;
    wf_wait_node_init(&branch->node, &frame->wait, i);
    wf_lock(&objects[i].lock);
    wf_waitq_add(&objects[i].waiters, &branch->node);
    wf_unlock(&objects[i].lock);
}

static void unlink_branch(struct frame *frame, unsigned i)
{
    wf_lock(&objects[i].lock);
    wf_waitq_remove(&frame->branches[i].node);
    wf_unlock(&objects[i].lock);
}

/* W1 */
static struct frame *start(struct wf_task *task, unsigned branches)
{
    struct frame *frame = calloc(1, sizeof *frame);
    mc_name(frame, sizeof *frame, "wait");
    wf_wait_start(&frame->wait, task);
    for (unsigned i = 0; i < branches; i++) {
        link_branch(frame, i);
    }
    return frame;
}

/* W2, with one branch: nothing else is linked. Returns false if it goes on. */
static bool end_if_done(struct frame *frame)
{
    if (wf_wait_poll(&frame->wait) != 0) {
        return false;
    }
    got = frame->branches[0].granted;
    mc_assert(got == PERMIT);
    free(frame);
    return true;
}

/* W2, with two branches. */
static bool end_if_one_is_done(struct frame *frame)
{
    uint32_t winner = OBJECTS;
    if (wf_wait_look(&frame->wait, &winner) != WF_WAIT_DONE) {
        return false;
    }
    mc_assert(winner < OBJECTS);
    unlink_branch(frame, 1 - winner);
    got = frame->branches[winner].granted;
    mc_assert(got == PERMIT + (int)winner);
    mc_assert(frame->branches[1 - winner].granted == NOTHING);
    free(frame);
    return true;
}

/* W3. Returns true if the wait is over, and the frame gone. */
static bool give_up(struct frame *frame, unsigned branches, enum wf_wait_state verdict)
{
    if (!wf_wait_abandon(&frame->wait, verdict)) {
        return false;
    }
    /* What abandon says is enough, without another look. */
    uint32_t word = wf_load_relaxed(&frame->wait.word);
    if (wf_wait_state_of(word) == WF_WAIT_DONE) {
        got = frame->branches[word >> WF_WAIT_BRANCH_SHIFT].granted;
        mc_assert(got != NOTHING);
    } else {
        mc_assert(wf_wait_poll(&frame->wait) == WEFT_ECANCELED);
    }
    for (unsigned i = 0; i < branches; i++) {
        unlink_branch(frame, i);
    }
    mc_assert((got == NOTHING) == (wf_wait_state_of(word) == verdict));
    mc_assert(got != NOTHING || frame->branches[0].granted == NOTHING);
    free(frame);
    return true;
}

/* Everybody is done: nothing was lost, and nothing granted twice. */
static void check_permits(int count)
{
    int sum = got != NOTHING;
    for (unsigned i = 0; i < OBJECTS; i++) {
        sum += objects[i].permits;
        mc_assert(wf_waitq_is_empty(&objects[i].waiters));
    }
    mc_assert(sum == count);
    mc_note(got);
}

/*
 * Goal:   who is granted something sees it whole, and may be gone at once.
 * Method: the waiter looks before it is woken, too, as a task does that is polled
 *         for another reason.
 */
static void grant_against_look(void)
{
    begin();
    struct wf_task *task = make_task();
    struct frame *frame = start(task, 1);
    mc_go(granter, &objects[0]);
    if (!end_if_done(frame)) {
        await_wake(task);
        mc_assert(end_if_done(frame));
    }
    wf_task_release(task);
    mc_join();
    check_permits(1);
}

/*
 * Goal:   a granter or the waiter that gives up decides, not both.
 * Method: the waiter times out, and if it is too late for that, is cancelled.
 */
static void grant_against_timeout_and_cancel(void)
{
    begin();
    struct wf_task *task = make_task();
    struct frame *frame = start(task, 1);
    mc_go(granter, &objects[0]);
    if (!give_up(frame, 1, WF_WAIT_TIMED_OUT) && !give_up(frame, 1, WF_WAIT_CANCELLED)) {
        await_wake(task);
        mc_assert(end_if_done(frame));
    }
    wf_task_release(task);
    mc_join();
    check_permits(1);
}

/*
 * Goal:   one wait is granted once.
 * Method: two granters meet one waiter that has branches in both objects.
 */
static void two_branches(void)
{
    begin();
    struct wf_task *task = make_task();
    struct frame *frame = start(task, 2);
    mc_go(granter, &objects[0]);
    mc_go(granter, &objects[1]);
    if (!end_if_one_is_done(frame)) {
        await_wake(task);
        mc_assert(end_if_one_is_done(frame));
    }
    wf_task_release(task);
    mc_join();
    check_permits(2);
}

/*
 * Goal:   a wait that is granted by one object while it is linked into the next
 *         is whole for both.
 * Method: the granters are there before the waiter begins.
 */
static void two_branches_linked_late(void)
{
    begin();
    struct wf_task *task = make_task();
    mc_go(granter, &objects[0]);
    struct frame *frame = start(task, 2);
    if (!give_up(frame, 2, WF_WAIT_CANCELLED)) {
        await_wake(task);
        mc_assert(end_if_one_is_done(frame));
    }
    wf_task_release(task);
    mc_join();
    check_permits(1);
}

/*
 * Goal:   the same when the waiter gives up.
 * Method: it does so against both.
 */
static void two_branches_given_up(void)
{
    begin();
    struct wf_task *task = make_task();
    struct frame *frame = start(task, 2);
    mc_go(granter, &objects[0]);
    mc_go(granter, &objects[1]);
    if (!give_up(frame, 2, WF_WAIT_CANCELLED)) {
        await_wake(task);
        mc_assert(end_if_one_is_done(frame));
    }
    wf_task_release(task);
    mc_join();
    check_permits(2);
}

/*
 * Goal:   two grants for one waiter are one grant and one permit.
 * Method: both come from the same object.
 */
static void two_granters(void)
{
    begin();
    struct wf_task *task = make_task();
    struct frame *frame = start(task, 1);
    mc_go(granter, &objects[0]);
    mc_go(granter, &objects[0]);
    await_wake(task);
    mc_assert(end_if_done(frame));
    wf_task_release(task);
    mc_join();
    check_permits(2);
}

/*
 * Goal:   a granter that loses a waiter grants to the next.
 * Method: the first of two waiters gives up; either it is granted, or the second.
 */
static void grant_goes_to_the_next(void)
{
    begin();
    struct wf_task *task = make_task();
    struct frame *frame = start(task, 1);
    struct wf_task *next_task = make_task();
    struct frame *next = start(next_task, 1);
    mc_go(granter, &objects[0]);
    if (!give_up(frame, 1, WF_WAIT_CANCELLED)) {
        await_wake(task);
        mc_assert(end_if_done(frame));
    }
    int first = got;
    got = NOTHING;
    if (first == NOTHING) {
        await_wake(next_task);
        mc_assert(end_if_done(next));
    } else {
        mc_assert(give_up(next, 1, WF_WAIT_CANCELLED));
        mc_assert(got == NOTHING);
        got = first;
    }
    wf_task_release(task);
    wf_task_release(next_task);
    mc_join();
    check_permits(1);
    mc_note(first);
}

/*
 * Goal:   who claims a wait sees the task to wake, without the help of a lock.
 * Method: the node is in the list before the wait is started. A granter that comes
 *         too early drops it; the waiter then finds the permit.
 */
static void start_publishes_the_task(void)
{
    begin();
    struct wf_task *task = make_task();
    struct frame *frame = calloc(1, sizeof *frame);
    link_branch(frame, 0);
    mc_go(granter, &objects[0]);
    wf_wait_start(&frame->wait, task);

    struct object *object = &objects[0];
    wf_lock(&object->lock);
    bool is_too_early = object->permits > 0;
    wf_unlock(&object->lock);
    if (is_too_early) {
        mc_assert(give_up(frame, 1, WF_WAIT_CANCELLED));
    } else {
        await_wake(task);
        mc_assert(end_if_done(frame));
    }
    wf_task_release(task);
    mc_join();
    check_permits(1);
}

#define TEST(function)                                                                             \
    .name = #function, .run = function, .leaks = true, .early_stores = true, .spurious_cas = 1

/* What comes up: nothing (it gave up), or which object was granted. */
static const struct mc_test tests[] = {
    { TEST(grant_against_look), .seen = MC_OUTCOMES(PERMIT), .seen_only = true },
    { TEST(grant_against_timeout_and_cancel), .seen = MC_OUTCOMES(NOTHING, PERMIT) },
    { TEST(grant_goes_to_the_next), .seen = MC_OUTCOMES(NOTHING, PERMIT) },
    { TEST(start_publishes_the_task), .seen = MC_OUTCOMES(NOTHING, PERMIT) },
    { TEST(two_granters), .seen = MC_OUTCOMES(PERMIT), .seen_only = true },
    { TEST(two_branches_linked_late), .seen = MC_OUTCOMES(NOTHING, PERMIT) },
    { TEST(two_branches), .seen = MC_OUTCOMES(PERMIT, PERMIT + 1), .seen_only = true },
    { TEST(two_branches_given_up), .seen = MC_OUTCOMES(NOTHING, PERMIT, PERMIT + 1) },
};

MC_MAIN(tests)
