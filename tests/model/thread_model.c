/* SPDX-License-Identifier: MIT */
/*
 * thread_model.c - src/sched/thread.c, and the wakers of future.c: a plain thread
 * that awaits is woken, or gives up in time, and its task goes with the last waker.
 *
 * What is awaited is a flag that another thread sets, relaxed, before it fires the
 * waker; so the wake must carry it. Fakes: wf_join_answer(), which nobody calls; the
 * variable that says which worker a thread is.
 */
#include <stdlib.h>

#include <weft/future.h>

#include "base/alloc.h"
#include "mc.h"
#include "sched/join.h"
#include "sched/task.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    RESULT = 7,
    DEADLINE = 1000,
    FLAGS = 2,
};

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

/* How the flags are set. */
struct plan {
    void (*setters[FLAGS])(void *arg);
};

struct flags {
    weft_future future;
    unsigned count; /* of setters, once they have begun */
    bool is_given_up;
    bool takes_time; /* to cancel: until a flag is set */
    bool has_left;   /* its shield */
};

struct setter {
    weft_waker *waker;
    _Atomic(int) flag;
};

static struct setter setters[FLAGS];
static struct wf_task job; /* a blocking job that waits */

void wf_join_answer(struct wf_task *task)
{
    (void)task;
    mc_assert(!"nobody joins");
}

static void fire(void *arg)
{
    struct setter *self = arg;
    wf_store_relaxed(&self->flag, 1);
    weft_waker_fire(self->waker);
}

/* Wakes, and drops the waker later. */
static void wake_and_drop(void *arg)
{
    struct setter *self = arg;
    wf_store_relaxed(&self->flag, 1);
    weft_waker_wake(self->waker);
    weft_waker_drop(self->waker);
}

/* Wakes, and leaves the waker to the test. */
static void wake(void *arg)
{
    struct setter *self = arg;
    wf_store_relaxed(&self->flag, 1);
    weft_waker_wake(self->waker);
}

/* The same after a wake for no reason. */
static void stir_and_wake(void *arg)
{
    weft_waker_wake(((struct setter *)arg)->waker);
    wake(arg);
}

/* Wakes with a clone for no reason, and then for one. */
static void wake_twice(void *arg)
{
    struct setter *self = arg;
    weft_waker *clone = weft_waker_clone(self->waker);
    weft_waker_fire(clone);
    fire(arg);
}

/* Without a setter it never is. */
static bool is_set(void)
{
    const struct plan *plan = mc_arg();
    unsigned count = 0;
    while (count < FLAGS && plan->setters[count] != NULL) {
        if (wf_load_relaxed(&setters[count].flag) == 0) {
            return false;
        }
        count++;
    }
    return count > 0;
}

static void begin_setters(struct flags *self)
{
    const struct plan *plan = mc_arg();
    for (unsigned i = 0; i < FLAGS && plan->setters[i] != NULL; i++) {
        setters[i].waker = weft_waker_current();
        mc_go(plan->setters[i], &setters[i]);
        self->count++;
    }
}

static int flags_poll(weft_future *future)
{
    struct flags *self = (struct flags *)future;
    if (self->is_given_up) {
        return is_set() ? RESULT : WEFT_ECANCELED;
    }
    if (self->count == 0) {
        begin_setters(self);
    }
    return is_set() ? RESULT : WEFT_PENDING;
}

static bool flags_cancel(weft_future *future)
{
    struct flags *self = (struct flags *)future;
    self->is_given_up = !self->takes_time || is_set();
    return self->is_given_up;
}

static const weft_future_ops flags_ops = { .poll = flags_poll, .cancel = flags_cancel };

static int await_flags(weft_time deadline, bool takes_time)
{
    struct flags flags = { .future.ops = &flags_ops, .takes_time = takes_time };
    return weft_await(&flags.future, deadline);
}

/*
 * Goal:   no wake is lost, and the thread sees what each waker wrote.
 * Method: the thread waits for every flag of the plan.
 */
static void await(void)
{
    mc_assert(await_flags(WEFT_NEVER, false) == RESULT);
    mc_join();
}

/* Written by the waker as plain memory. */
static int message;

static void write_and_fire(void *arg)
{
    struct setter *self = arg;
    message = RESULT;
    weft_waker_fire(self->waker);
}

/* Pending at first. The second poll comes after the wake, and because of nothing else. */
static int message_poll(weft_future *future)
{
    struct flags *self = (struct flags *)future;
    if (self->count == 0) {
        begin_setters(self);
        return WEFT_PENDING;
    }
    return message;
}

/*
 * Goal:   a wake orders plain memory: what the waker wrote before it is read without a race.
 * Method: the thread may be asleep when the wake comes, about to sleep, or still in its poll.
 */
static void await_message(void)
{
    static const weft_future_ops ops = { .poll = message_poll, .cancel = flags_cancel };
    struct flags flags = { .future.ops = &ops };
    mc_assert(weft_await(&flags.future, WEFT_NEVER) == RESULT);
    mc_join();
}

/* Awaits, and leaves at once: its task may be the wakers' then. */
static void await_and_leave(void *arg)
{
    (void)arg;
    int result = await_flags(DEADLINE, false);
    mc_assert(result == RESULT || result == WEFT_ETIMEDOUT);
    mc_note(result);
}

/*
 * Goal:   a waker may outlive the thread that it wakes.
 * Method: the deadline passes at any time, and the thread ends.
 */
static void waker_outlives_thread(void)
{
    mc_go(await_and_leave, NULL);
    mc_join();
}

/*
 * Goal:   a wake that comes with the deadline, or after it, does not harm the next
 *         await.
 * Method: the thread awaits once more, for the same flags; the first time with a
 *         deadline.
 */
static void await_again_after_timeout(void)
{
    struct flags flags = { .future.ops = &flags_ops };
    int result = weft_await(&flags.future, DEADLINE);
    mc_note(result);
    if (result != RESULT) {
        mc_assert(result == WEFT_ETIMEDOUT);
        flags.is_given_up = false;
        mc_assert(weft_await(&flags.future, WEFT_NEVER) == RESULT);
    }
    mc_join();
    weft_waker_drop(setters[0].waker);
}

/*
 * Goal:   what takes time to cancel is awaited to its end.
 * Method: cancel says no until the flags are set.
 */
static void cancel_takes_time(void)
{
    mc_assert(await_flags(DEADLINE, true) == RESULT);
    mc_join();
}

/* As a blocking job's: wakes the thread that it runs on. */
static struct wf_task *waiter;

static void job_cancelled(struct wf_task *task)
{
    (void)task;
    wf_task_wake_ref(waiter);
}

static void canceller(void *arg)
{
    (void)arg;
    wf_task_cancel(&job);
}

/* This thread runs a blocking job, which somebody cancels. */
static void begin_job(void)
{
    static const struct wf_task_ops ops = { .cancelled = job_cancelled };
    job.ops = &ops;
    wf_store_relaxed(&job.state, WF_STATE_RUNNING | 2 * WF_STATE_REF);
    struct wf_thread *self = wf_thread_self();
    self->running = &job;
    waiter = self->waiter;
    mc_go(canceller, NULL);
}

/*
 * Goal:   a blocking job that waits is told that it was cancelled.
 * Method: cancel comes before the await or in it; nothing else wakes.
 */
static void cancelled_job(void)
{
    begin_job();
    mc_assert(await_flags(WEFT_NEVER, false) == WEFT_ECANCELED);
    mc_join();
}

/* Waits for the flags behind a shield, and then for a cancellation. */
static int shielded_poll(weft_future *future)
{
    struct flags *self = (struct flags *)future;
    struct wf_task *shielded = wf_thread_shielded();
    if (self->is_given_up) {
        return WEFT_ECANCELED;
    }
    if (self->count == 0) {
        wf_state_shield_enter(&shielded->state);
        begin_setters(self);
    }
    if (!self->has_left && is_set()) {
        self->has_left = true;
        wf_state_shield_leave(&shielded->state);
    }
    return WEFT_PENDING;
}

static bool shielded_cancel(weft_future *future)
{
    struct flags *self = (struct flags *)future;
    mc_assert(self->has_left);
    self->is_given_up = true;
    return true;
}

/*
 * Goal:   a shield holds the cancellation of the job off, and does not swallow it.
 * Method: cancel comes at any time; the shield is lowered in a poll that waits on.
 */
static void cancelled_job_with_shield(void)
{
    static const weft_future_ops ops = { .poll = shielded_poll, .cancel = shielded_cancel };
    begin_job();
    struct flags flags = { .future.ops = &ops };
    mc_assert(weft_await(&flags.future, WEFT_NEVER) == WEFT_ECANCELED);
    mc_join();
    weft_waker_drop(setters[0].waker);
}

static const struct plan none = { 0 };
static const struct plan one_fires = { .setters = { fire } };
static const struct plan one_wakes = { .setters = { wake } };
static const struct plan one_stirs = { .setters = { stir_and_wake } };
static const struct plan one_drops = { .setters = { wake_and_drop } };
static const struct plan one_writes = { .setters = { write_and_fire } };
static const struct plan one_wakes_twice = { .setters = { wake_twice } };

#define TEST(function, which)                                                                      \
    .name = #function "/" #which, .run = function, .arg = &(which), .leaks = true,                 \
    .early_stores = true

static const struct mc_test tests[] = {
    { TEST(await, one_fires) },
    { TEST(await, one_drops) },
    { TEST(await, one_wakes_twice) },
    { TEST(await_message, one_writes) },
    { TEST(waker_outlives_thread, one_fires), .timeouts = 1,
      .seen = MC_OUTCOMES(RESULT, WEFT_ETIMEDOUT) },
    { TEST(await_again_after_timeout, one_wakes), .timeouts = 1,
      .seen = MC_OUTCOMES(RESULT, WEFT_ETIMEDOUT) },
    { TEST(await_again_after_timeout, one_stirs), .timeouts = 1,
      .seen = MC_OUTCOMES(RESULT, WEFT_ETIMEDOUT) },
    { TEST(cancel_takes_time, one_fires), .timeouts = 1 },
    { TEST(cancelled_job, none) },
    { TEST(cancelled_job_with_shield, one_wakes) },
};

MC_MAIN(tests)
