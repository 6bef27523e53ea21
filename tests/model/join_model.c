/* SPDX-License-Identifier: MIT */
/*
 * join_model.c - src/sched/join.c with the real waits, tasks, heap and threads: a
 * joiner learns the result once, whether it comes early or late, gives up or not.
 *
 * Joiners are plain threads. Fakes: the workers; the task that is joined runs from
 * the start, and a thread ends it. wf_worker_slab() is that of worker.c. The heap is
 * retired at the end, so a reference that is left over is a leak.
 */
#include <errno.h>
#include <stdlib.h>

#include <weft/future.h>
#include <weft/task.h>

#include "base/alloc.h"
#include "mc.h"
#include "sched/await.h"
#include "sched/heap.h"
#include "sched/loan.h"
#include "sched/sched.h"
#include "sched/task.h"
#include "sched/worker.h"

enum {
    RESULT = 42,
    DEADLINE = 1000,
};

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

static struct wf_heap *heap;
static struct wf_task *task;

unsigned wf_worker_slab(const struct wf_heap *of)
{
    const struct wf_worker *worker = wf_worker_current();
    return worker != NULL && worker->heap == of ? worker->index : of->outside;
}

static void destroy(struct wf_task *of)
{
    wf_heap_free(of, wf_worker_slab(of->heap));
}

/* No joiner is a fiber here. */
const struct wf_task_ops wf_fiber_ops;

void wf_await_refuse(const char *call, const char *instead)
{
    mc_assert(call == NULL && instead == NULL);
    abort();
}

int wf_await_woken(struct wf_fiber *self, weft_future *future)
{
    (void)self;
    (void)future;
    return WEFT_PENDING;
}

bool wf_loan_make(struct wf_fiber *self, struct wf_worker *worker, struct wf_join *join)
{
    (void)self;
    (void)worker;
    (void)join;
    return false;
}

static const struct wf_task_ops ops = { .destroy = destroy };

static void free_sched(struct wf_sched *sched)
{
    free(sched);
}

static struct wf_task *make_task(uint64_t state)
{
    struct wf_task *made = wf_heap_alloc(heap, heap->outside, sizeof *made);
    made->ops = &ops;
    made->joiner = NULL;
    mc_name(made, sizeof *made, "task");
    wf_store_release(&made->state, state);
    return made;
}

/* A task that runs, with some handles. */
static weft_task *begin(unsigned handles)
{
    heap = wf_heap_create(&wf_alloc_default, calloc(1, sizeof(struct wf_sched)), 1);
    mc_name(heap, sizeof *heap, "heap");
    task = make_task(WF_STATE_RUNNING | (1 + handles) * WF_STATE_REF);
    return (weft_task *)task;
}

static void end(void)
{
    mc_join();
    wf_heap_retire(heap, free_sched);
}

static void completer(void *arg)
{
    (void)arg;
    wf_task_complete(task, RESULT);
}

/*
 * Goal:   the joiner wakes and has the result, or finds it there.
 * Method: it joins while the task completes.
 */
static void join_against_complete(void)
{
    weft_task *handle = begin(1);
    mc_go(completer, NULL);
    int result = 0;
    mc_assert(weft_join(handle, &result, WEFT_NEVER) == 0);
    mc_assert(result == RESULT);
    end();
}

/*
 * Goal:   a joiner that gives up is answered or not, but not half; it may drop its
 *         handle at once, while the completer looks for it.
 * Method: its deadline passes at any time.
 */
static void join_timeout_against_complete(void)
{
    weft_task *handle = begin(1);
    mc_go(completer, NULL);
    int result = 0;
    int err = weft_join(handle, &result, DEADLINE);
    if (err == 0) {
        mc_assert(result == RESULT);
    } else {
        mc_assert(err == WEFT_ETIMEDOUT);
        mc_assert(result == 0);
        weft_detach(handle);
    }
    mc_note(err == 0);
    end();
}

/*
 * Goal:   the completer is done with the task when its slot becomes another one.
 * Method: the joiner gives up, drops its handle, and spawns.
 */
static void slot_is_used_again(void)
{
    weft_task *handle = begin(1);
    mc_go(completer, NULL);
    if (weft_join(handle, NULL, DEADLINE) == WEFT_ETIMEDOUT) {
        weft_detach(handle);
    }
    struct wf_task *next = make_task(WF_STATE_COMPLETE | WF_STATE_REF);
    mc_note(next == (struct wf_task *)handle);
    weft_detach((weft_task *)next);
    end();
}

/*
 * Goal:   who gave up can join again.
 * Method: after a timeout, without one.
 */
static void join_again_after_timeout(void)
{
    weft_task *handle = begin(1);
    mc_go(completer, NULL);
    int result = 0;
    int err = weft_join(handle, &result, DEADLINE);
    if (err == WEFT_ETIMEDOUT) {
        err = weft_join(handle, &result, WEFT_NEVER);
    }
    mc_assert(err == 0);
    mc_assert(result == RESULT);
    end();
}

/* Joins with a handle of its own, or is refused. */
static void second_joiner(void *arg)
{
    int result = 0;
    int err = weft_join(arg, &result, WEFT_NEVER);
    if (err == WEFT_EJOINED) {
        weft_detach(arg);
    } else {
        mc_assert(err == 0);
        mc_assert(result == RESULT);
    }
    mc_note(err == 0);
}

/* A join that lets the others begin once it waits. */
struct early {
    weft_future future;
    weft_join_future join;
    bool has_begun;
};

static int early_poll(weft_future *future)
{
    struct early *self = (struct early *)future;
    int result = self->join.future.ops->poll(&self->join.future);
    if (!self->has_begun) {
        self->has_begun = true;
        mc_go(second_joiner, self->join.task);
        mc_go(completer, NULL);
    }
    return result;
}

static bool never_cancel(weft_future *future)
{
    (void)future;
    return false;
}

/*
 * Goal:   a second joiner is refused, or is told if it comes after the first.
 * Method: it comes when the first waits, with a handle of its own.
 */
static void two_joiners(void)
{
    static const weft_future_ops early_ops = { .poll = early_poll, .cancel = never_cancel };
    weft_task *handle = begin(2);
    struct early early = { .future.ops = &early_ops };
    int result = 0;
    weft_join_init(&early.join, handle, &result);
    mc_assert(weft_await(&early.future, WEFT_NEVER) == 0);
    mc_assert(result == RESULT);
    end();
}

/*
 * Goal:   a look finds the result or none, and does not disturb.
 * Method: one handle looks while the task completes, another is dropped.
 */
static void try_join_and_detach(void)
{
    weft_task *handle = begin(2);
    mc_go(completer, NULL);
    weft_detach(handle);
    int result = 0;
    int err = weft_try_join(handle, &result);
    mc_note(err == 0);
    if (err == 0) {
        mc_assert(result == RESULT);
    } else {
        mc_assert(err == -EAGAIN);
        weft_detach(handle);
    }
    end();
}

/* Begins a join, gives it up, and awaits another one of the same task; the first is
 * then told once more to give up, which must not touch the second. */
struct pair {
    weft_future future;
    weft_join_future first;
    weft_join_future second;
    bool has_begun;
};

static int pair_poll(weft_future *future)
{
    struct pair *self = (struct pair *)future;
    if (!self->has_begun) {
        self->has_begun = true;
        int err = self->first.future.ops->poll(&self->first.future);
        mc_note(err == WEFT_PENDING);
        if (err != WEFT_PENDING) {
            weft_detach(self->second.task);
            return err;
        }
        /* False if the completer has it already; the frame outlives that. */
        (void)self->first.future.ops->cancel(&self->first.future);
        err = self->second.future.ops->poll(&self->second.future);
        (void)self->first.future.ops->cancel(&self->first.future);
        if (err != WEFT_PENDING) {
            return err;
        }
    }
    return self->second.future.ops->poll(&self->second.future);
}

/*
 * Goal:   a join that was given up leaves the place to the next, and to that alone.
 * Method: it is told to give up twice, with another join in between.
 */
static void cancel_twice(void)
{
    static const weft_future_ops pair_ops = { .poll = pair_poll, .cancel = never_cancel };
    weft_task *handle = begin(2);
    struct pair pair = { .future.ops = &pair_ops };
    int results[2] = { 0, 0 };
    weft_join_init(&pair.first, handle, &results[0]);
    weft_join_init(&pair.second, handle, &results[1]);
    mc_go(completer, NULL);
    mc_assert(weft_await(&pair.future, WEFT_NEVER) == 0);
    mc_assert(results[0] == RESULT || results[1] == RESULT);
    mc_join();
    if (results[0] == 0) {
        weft_detach(handle); /* of the one that was given up */
    }
    end();
}

#define TEST(function) .name = #function, .run = function, .leaks = true

static const struct mc_test tests[] = {
    { TEST(join_against_complete), .spurious_cas = 1 },
    { TEST(try_join_and_detach), .seen = MC_OUTCOMES(0, 1) },
    { TEST(join_timeout_against_complete), .timeouts = 1, .seen = MC_OUTCOMES(0, 1) },
    { TEST(join_again_after_timeout), .timeouts = 1 },
    { TEST(slot_is_used_again), .timeouts = 1, .seen = MC_OUTCOMES(0, 1) },
    { TEST(cancel_twice), .seen = MC_OUTCOMES(0, 1) },
    { TEST(two_joiners), .seen = MC_OUTCOMES(0, 1) },
};

MC_MAIN(tests)
