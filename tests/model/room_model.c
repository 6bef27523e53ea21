/* SPDX-License-Identifier: MIT */
/*
 * room_model.c - src/sched/room.c: threads that wait for room in the inject queue.
 *
 * The queue, the list of waiters and the sleeping are real. A waiter does what
 * wf_spawn_wait() and weft_await() do; here it has a task of its own, and two
 * functions are replaced: wf_thread_waiter() gives that task, wf_task_wake() ends
 * its sleep. A waiter that is forgotten beside free room is a deadlock.
 */
#include "sched/room.h"

#include <weft/base.h>

#include "base/clock.h"
#include "mc.h"
#include "queue/inject.h"
#include "sched/park.h"
#include "sched/task.h"
#include "sched/thread.h"
#include "sched/worker.h"

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

enum {
    NODES = 4,
};

struct waiter {
    struct wf_task task; /* first */
    struct wf_park park;
    bool gives_up;
    enum wf_admit verdict;
};

static struct wf_room room;
static struct wf_inject queue;
static struct wf_qnode nodes[NODES];
static struct waiter waiters[2];
static _Atomic(uint32_t) came_in[2];
static struct wf_park worker_park;
static _Thread_local struct waiter *self;

struct wf_task *wf_thread_waiter(void)
{
    return &self->task;
}

void wf_task_wake(struct wf_task *task)
{
    wf_park_wake(&((struct waiter *)task)->park);
    wf_task_release(task);
}

static void task_must_stay(struct wf_task *task)
{
    (void)task;
    mc_assert(!"a reference too many was given up");
}

static const struct wf_task_ops ops = { .kind = "model", .destroy = task_must_stay };

/* The queue is full. */
static void begin(size_t capacity)
{
    wf_room_init(&room);
    wf_inject_init(&queue, capacity);
    mc_name(&room, sizeof room, "room");
    mc_name(&queue, sizeof queue, "queue");
    mc_name(waiters, sizeof waiters, "waiters");
    mc_name(&worker_park, sizeof worker_park, "worker_park");
    for (unsigned i = 0; i < 2; i++) {
        waiters[i].task.ops = &ops;
        wf_store_relaxed(&waiters[i].task.state, WF_STATE_RUNNING | WF_STATE_REF);
    }
    for (size_t i = 0; i < capacity; i++) {
        mc_assert(wf_inject_admit(&queue, &nodes[i]) == WF_ADMIT_OK);
    }
}

static void end(void)
{
    mc_join();
    mc_assert(wf_load_relaxed(&room.waiting) == 0);
    mc_assert(wf_waitq_is_empty(&room.waiters));
    for (unsigned i = 0; i < 2; i++) {
        mc_assert(wf_state_refs(wf_load_relaxed(&waiters[i].task.state)) == 1);
    }
}

/* As await_on() in thread.c, with a deadline that has passed if it gives up. */
static int await_room(void)
{
    struct wf_room_future future;
    wf_room_future_init(&future, &room, &queue);
    weft_future *of = &future.future;
    bool late = false;
    for (;;) {
        int result = of->ops->poll(of);
        if (result != WEFT_PENDING) {
            return result;
        }
        if (!self->gives_up || late) {
            (void)wf_park_sleep(&self->park, WF_NEVER);
        }
        late = self->gives_up;
        while (late && !of->ops->cancel(of)) {
            (void)wf_park_sleep(&self->park, WF_NEVER);
        }
    }
}

/* As wf_spawn_wait(). Its node is one that is not in the queue yet. */
static void run_waiter(void *arg)
{
    self = arg;
    struct wf_qnode *node = &nodes[2 + (self - waiters)];
    do {
        self->verdict = wf_inject_admit(&queue, node);
        if (self->verdict == WF_ADMIT_OK) {
            wf_store_release(&came_in[self - waiters], 1u);
            wf_park_wake(&worker_park);
        }
    } while (self->verdict == WF_ADMIT_FULL && await_room() == 0);
}

/* As fetch() in worker.c. */
static size_t fetch(size_t max)
{
    struct wf_qlist list = { 0 };
    wf_inject_pop(&queue, max, &list);
    if (list.count > 0) {
        wf_room_freed(&room, &queue, list.count);
    }
    return list.count;
}

/* Takes until it has had so many. */
static void fetch_all(size_t count, size_t max)
{
    while (count > 0) {
        size_t taken = fetch(max);
        count -= taken;
        if (count > 0 && taken == 0) {
            (void)wf_park_sleep(&worker_park, WF_NEVER);
        }
    }
}

/*
 * Goal:   the waiter sees the room, or is seen by who makes it.
 * Method: one waiter comes while a worker takes what fills the queue.
 */
static void one_waiter(void)
{
    begin(1);
    mc_go(run_waiter, &waiters[0]);
    fetch_all(2, 1);
    end();
    mc_assert(waiters[0].verdict == WF_ADMIT_OK);
}

/*
 * Goal:   with one place two waiters come in one after the other.
 * Method: the worker takes one at a time; whoever is woken may find it full again.
 */
static void two_waiters_for_one_place(void)
{
    begin(1);
    mc_go(run_waiter, &waiters[0]);
    mc_go(run_waiter, &waiters[1]);
    fetch_all(3, 1);
    end();
}

/*
 * Goal:   who takes two out wakes two.
 * Method: two places, taken at once; nothing comes after that, so a waiter that is
 *         not woken then never is.
 */
static void two_waiters_for_two_places(void)
{
    begin(2);
    mc_go(run_waiter, &waiters[0]);
    mc_go(run_waiter, &waiters[1]);
    mc_assert(fetch(2) == 2);
    end();
    mc_assert(waiters[0].verdict == WF_ADMIT_OK);
    mc_assert(waiters[1].verdict == WF_ADMIT_OK);
}

/*
 * Goal:   a waiter that gives up takes nobody's place with it: it was not woken, or
 *         it was, and tries again.
 * Method: one of two gives up. The worker takes until the other has come in.
 */
static void giving_up_loses_no_place(void)
{
    begin(1);
    waiters[0].gives_up = true;
    mc_go(run_waiter, &waiters[0]);
    mc_go(run_waiter, &waiters[1]);
    while (wf_load_acquire(&came_in[1]) == 0) {
        if (fetch(1) == 0) {
            (void)wf_park_sleep(&worker_park, WF_NEVER);
        }
    }
    end();
    mc_assert(waiters[1].verdict == WF_ADMIT_OK);
    mc_note(waiters[0].verdict == WF_ADMIT_OK);
}

/*
 * Goal:   nobody waits any more once the room is closed.
 * Method: the queue is closed and stays full; two waiters come at that time.
 */
static void close_wakes_all(void)
{
    begin(1);
    mc_go(run_waiter, &waiters[0]);
    mc_go(run_waiter, &waiters[1]);
    (void)wf_inject_close(&queue);
    wf_room_close(&room);
    end();
    mc_assert(waiters[0].verdict == WF_ADMIT_CLOSED);
    mc_assert(waiters[1].verdict == WF_ADMIT_CLOSED);
}

/* For tests with too many executions to run them all. */
#define BOUNDED .preemptions = 2, .deep_preemptions = 3, .seconds_max = 600

static const struct mc_test tests[] = {
    { .name = "one_waiter", .run = one_waiter },
    { .name = "two_waiters_for_one_place", .run = two_waiters_for_one_place, .mode = MC_PCT },
    { .name = "two_waiters_for_two_places", .run = two_waiters_for_two_places, BOUNDED },
    { .name = "giving_up_loses_no_place",
      .run = giving_up_loses_no_place,
      .seen = MC_OUTCOMES(0, 1),
      .mode = MC_PCT },
    { .name = "close_wakes_all", .run = close_wakes_all, BOUNDED },
};

MC_MAIN(tests)
