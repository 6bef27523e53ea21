/* SPDX-License-Identifier: MIT */
/*
 * state_model.c - src/sched/state.h and task.c: a task is polled after each wake,
 * sees what its wakers wrote, is never queued twice, and is freed once.
 *
 * The queue and the workers are those of runq.h. Also fakes: wf_join_answer(), so
 * that the steps of the word stand alone (join_model.c has the real one), and the
 * variable that says which worker a thread is.
 *
 * What wakers write is relaxed flags. The task ends when it has seen them all: a
 * lost wake, or a poll that does not see what its waker wrote, is a deadlock.
 */
#include <stdlib.h>

#include "mc.h"
#include "runq.h"
#include "sched/join.h"
#include "sched/task.h"
#include "sched/worker.h"

enum {
    RESULT = 7,
    ID = 42,
    FLAGS_MAX = 3,
};

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

/* How a test differs from its siblings. */
struct plan {
    unsigned workers;
    bool is_outside; /* the first waker is no worker: it takes two steps */
};

struct toy {
    struct wf_task task;
    int polls;     /* the poller's: a race if two polls are not ordered */
    bool has_left; /* its shield */
};

static struct toy *toy;
static unsigned destroyed;
static _Atomic(int) said[FLAGS_MAX];
static unsigned awaited; /* flags to see before the task ends */
static _Atomic(uint32_t) answered;
static struct wf_worker inside;
static char heap_stub;

void wf_join_answer(struct wf_task *task)
{
    mc_assert(task == &toy->task);
    wf_store_release(&answered, 1u);
}

static void destroy(struct wf_task *task)
{
    mc_assert(task->id == ID);
    destroyed++;
    free(task);
}

static bool has_seen_all(void)
{
    unsigned seen = 0;
    for (unsigned i = 0; i < awaited; i++) {
        seen += wf_load_relaxed(&said[i]) != 0;
    }
    return seen == awaited;
}

static int poll_flags(struct wf_task *task)
{
    ((struct toy *)task)->polls++;
    return has_seen_all() ? RESULT : WEFT_PENDING;
}

static int poll_flags_yielding(struct wf_task *task)
{
    int polls = ((struct toy *)task)->polls++;
    if (has_seen_all()) {
        return RESULT;
    }
    return polls == 0 ? WEFT_YIELDED : WEFT_PENDING;
}

/* Ends once it is told; the last flag says why. */
static int poll_until_told(struct wf_task *task)
{
    ((struct toy *)task)->polls++;
    if (!wf_state_must_cancel(runq_state)) {
        return WEFT_PENDING;
    }
    mc_assert(wf_load_relaxed(&said[FLAGS_MAX - 1]) != 0);
    return WEFT_ECANCELED;
}

/* The same, but the task begins behind a shield, until it has seen the flags. */
static int poll_until_told_shielded(struct wf_task *task)
{
    struct toy *self = (struct toy *)task;
    self->polls++;
    if (wf_state_must_cancel(runq_state)) {
        mc_assert(self->has_left);
        return WEFT_ECANCELED;
    }
    if (!self->has_left && has_seen_all()) {
        self->has_left = true;
        wf_state_shield_leave(&task->state);
    }
    return WEFT_PENDING;
}

/* Raises a shield twice and lowers it twice in its first poll. */
static int poll_until_told_shielding(struct wf_task *task)
{
    struct toy *self = (struct toy *)task;
    if (wf_state_must_cancel(runq_state)) {
        return WEFT_ECANCELED;
    }
    if (self->polls++ == 0) {
        wf_state_shield_enter(&task->state);
        wf_state_shield_enter(&task->state);
        wf_state_shield_leave(&task->state);
        mc_assert(!wf_state_must_cancel(wf_task_state(task)));
        wf_state_shield_leave(&task->state);
    }
    return WEFT_PENDING;
}

/* Makes the task, as spawn does, with refs besides its life. */
static void make(int (*poll)(struct wf_task *task), unsigned flags, unsigned refs)
{
    static struct wf_task_ops ops;
    ops = (struct wf_task_ops){ .poll = poll, .schedule = runq_push, .destroy = destroy };
    toy = malloc(sizeof *toy);
    *toy = (struct toy){ .task = { .ops = &ops, .id = ID } };
    toy->task.heap = (struct wf_heap *)&heap_stub;
    inside.heap = toy->task.heap;
    runq_task = &toy->task;
    awaited = flags;
    mc_name(toy, sizeof *toy, "task");
    mc_name(&runq_place, sizeof runq_place, "queue");
    mc_name(said, sizeof said, "said");
    wf_store_release(&toy->task.state, WF_STATE_RUNNING | (1 + refs) * WF_STATE_REF);
}

/* The same, and the workers but for one. */
static void start(int (*poll)(struct wf_task *task), unsigned flags, unsigned refs)
{
    const struct plan *plan = mc_arg();
    make(poll, flags, refs);
    runq_push(&toy->task);
    for (unsigned i = 1; i < plan->workers; i++) {
        mc_go(runq_worker, NULL);
    }
}

/* This thread is the last worker; then everybody is done. */
static void finish(void)
{
    runq_worker(NULL);
    mc_join();
    mc_assert(destroyed == 1);
}

static void say(_Atomic(int) *flag)
{
    wf_store_relaxed(flag, 1);
}

/* Holds a reference, says something, and wakes. */
static void waker(void *arg)
{
    const struct plan *plan = mc_arg();
    bool is_outside = plan->is_outside && arg == &said[0];
    wf_tls_worker = is_outside ? NULL : &inside;
    say(arg);
    wf_task_wake(&toy->task);
}

/* The same, and then once more with a clone. */
static void waker_twice(void *arg)
{
    _Atomic(int) *flags = arg;
    wf_task_retain(&toy->task);
    waker(&flags[0]);
    waker(&flags[1]);
}

static void canceller(void *arg)
{
    say(arg);
    wf_task_cancel(&toy->task);
    wf_task_release(&toy->task);
}

/* A handle that is dropped unused. */
static void detacher(void *arg)
{
    (void)arg;
    mc_assert(toy->task.id == ID);
    wf_task_release(&toy->task);
}

/* A handle whose owner looks whether the task is done. */
static void looker(void *arg)
{
    (void)arg;
    struct wf_task *task = &toy->task;
    if (wf_state_is_complete(wf_task_state(task))) {
        mc_assert(task->result == RESULT);
        mc_note(1);
    }
    wf_task_release(task);
}

static void await_answer(void)
{
    mc_await_exchange(&answered, 1, 2);
}

/* Waits for the end as join.c does. */
static void joiner(void *arg)
{
    (void)arg;
    struct wf_task *task = &toy->task;
    bool waits = wf_state_join_register(&task->state);
    if (waits) {
        await_answer();
    }
    mc_note(waits);
    mc_assert(task->result == RESULT);
    wf_task_release(task);
}

/*
 * Goal:   no wake is lost and no poll misses what a waker wrote, whether the task
 *         is queued, running, idle or complete; the last of all frees it.
 * Method: two wakers against the polls of a task that waits for both.
 */
static void two_wakers(void)
{
    start(poll_flags, 2, 2);
    mc_go(waker, &said[0]);
    mc_go(waker, &said[1]);
    finish();
}

/*
 * Goal:   the same for a waker that is cloned.
 * Method: one thread wakes twice.
 */
static void waker_and_its_clone(void)
{
    start(poll_flags, 2, 1);
    mc_go(waker_twice, &said[0]);
    finish();
}

/*
 * Goal:   the same for a task that yields.
 * Method: its first poll yields; its waker comes at any time.
 */
static void waker_against_yield(void)
{
    start(poll_flags_yielding, 1, 1);
    mc_go(waker, &said[0]);
    finish();
}

/*
 * Goal:   a cancelled task is polled, told, and sees why.
 * Method: cancel and a wake against polls that wait for nothing else.
 */
static void cancel_and_wake(void)
{
    start(poll_until_told, 0, 2);
    mc_go(canceller, &said[FLAGS_MAX - 1]);
    mc_go(waker, &said[0]);
    finish();
}

/*
 * Goal:   cancelling twice is cancelling once.
 * Method: two threads cancel. Only one of them can say why.
 */
static void two_cancels(void)
{
    start(poll_until_told, 0, 2);
    say(&said[FLAGS_MAX - 1]);
    mc_go(canceller, &said[0]);
    mc_go(canceller, &said[1]);
    finish();
}

/*
 * Goal:   a shield holds a cancellation off, and does not swallow it.
 * Method: the task waits behind its shield for a waker; cancel comes then, while
 *         it is lowered, or after.
 */
static void cancel_against_shield(void)
{
    make(poll_until_told_shielded, 1, 2);
    wf_state_shield_enter(&toy->task.state);
    runq_push(&toy->task);
    mc_go(canceller, &said[FLAGS_MAX - 1]);
    mc_go(waker, &said[0]);
    finish();
}

/*
 * Goal:   the same while the shield is raised.
 * Method: the task raises it in its first poll and lowers it in the same.
 */
static void cancel_against_short_shield(void)
{
    start(poll_until_told_shielding, 0, 1);
    mc_go(canceller, &said[FLAGS_MAX - 1]);
    finish();
}

/*
 * Goal:   the task is freed after the last use of the last holder, whoever it is;
 *         who finds it complete sees its result.
 * Method: two handles and a waker are given up while it runs and completes.
 */
static void last_reference_anywhere(void)
{
    start(poll_flags, 1, 3);
    mc_go(detacher, NULL);
    mc_go(looker, NULL);
    mc_go(waker, &said[0]);
    finish();
}

/*
 * Goal:   a joiner is answered, or sees the result at once.
 * Method: it comes while the task runs and completes.
 */
static void join_against_complete(void)
{
    start(poll_flags, 1, 2);
    mc_go(joiner, NULL);
    mc_go(waker, &said[0]);
    finish();
}

static const struct plan one = { .workers = 1 };
static const struct plan one_outside = { .workers = 1, .is_outside = true };
static const struct plan two = { .workers = 2 };
static const struct plan two_outside = { .workers = 2, .is_outside = true };

#define TEST(function, which)                                                                      \
    .name = #function "/" #which, .run = function, .arg = &(which), .leaks = true

static const struct mc_test tests[] = {
    { TEST(waker_against_yield, two), .spurious_cas = 1 },
    { TEST(waker_and_its_clone, one_outside) },
    { TEST(join_against_complete, one), .seen = MC_OUTCOMES(0, 1) },
    { TEST(last_reference_anywhere, one), .seen = MC_OUTCOMES(1) },
    { TEST(two_wakers, one) },
    { TEST(cancel_and_wake, one) },
    { TEST(cancel_against_short_shield, one) },
    { TEST(two_wakers, two) },
    { TEST(two_wakers, one_outside) },
    { TEST(two_cancels, two_outside) },
    { TEST(cancel_against_shield, one) },
};

MC_MAIN(tests)
