/* SPDX-License-Identifier: MIT */
/*
 * timeout_test.c - weft_timeout_init() around other futures, awaited in a stackless task, on a
 * fiber and in a blocking job.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <weft.h>

#include "base/atomic.h"
#include "base/rng.h"
#include "gate.h"
#include "rt.h"
#include "test.h"
#include "virtual.h"

enum place {
    IN_BODY,
    ON_FIBER,
    IN_JOB,
    PLACES
};

/* A task that awaits one future. */
struct waiter {
    weft_future *future;
    weft_task *task;
    int result;
    weft_time woke;
};

static int await_in_stackless_task(weft_co *co, void *state)
{
    struct waiter *waiter = test_arg(state);
    WEFT_BEGIN(co);
    WEFT_AWAIT(co, waiter->result, waiter->future);
    waiter->woke = weft_now();
    WEFT_END(co, 1);
}

static int await_on_fiber_or_job(void *arg)
{
    struct waiter *waiter = arg;
    waiter->result = weft_await(waiter->future, WEFT_NEVER);
    waiter->woke = weft_now();
    return 1;
}

static void waiter_start(struct waiter *waiter, weft_runtime *rt, int place)
{
    waiter->result = 1234;
    if (place == IN_BODY) {
        waiter->task = test_spawn(rt, await_in_stackless_task, waiter);
    } else if (place == ON_FIBER) {
        waiter->task = virtual_go(rt, await_on_fiber_or_job, waiter);
    } else {
        CHECK_EQ(weft_runtime_spawn_blocking(rt, &waiter->task, await_on_fiber_or_job, waiter), 0);
    }
}

static int waiter_join(struct waiter *waiter)
{
    CHECK_EQ(test_join(waiter->task), 1);
    return waiter->result;
}

/* A gate with a deadline 10 ms away, and a task that waits for both. */
struct rig {
    weft_runtime *rt;
    weft_time deadline;
    struct gate gate;
    weft_timeout_future timeout;
    struct waiter waiter;
};

static void rig_begin(struct rig *rig, int place, enum cancel_mode mode)
{
    rig->deadline = virtual_begin() + 10 * WEFT_MS;
    rig->rt = test_start(1);
    rig->gate = gate_make(mode);
    weft_timeout_init(&rig->timeout, &rig->gate.future, rig->deadline);
    rig->waiter = (struct waiter){ .future = &rig->timeout.future };
    waiter_start(&rig->waiter, rig->rt, place);
    test_wait_for(&rig->gate.polls, 1);
    virtual_settle(rig->rt);
}

static void rig_end(struct rig *rig)
{
    gate_fini(&rig->gate);
    weft_runtime_destroy(rig->rt);
    virtual_end();
}

/* Wakes the task that waits for the gate, spuriously. */
static void wake_spuriously(struct gate *gate)
{
    weft_waker *waker = atomic_exchange(&gate->waker, NULL);
    CHECK(waker != NULL);
    weft_waker_fire(waker);
}

/* --- Result against deadline ----------------------------------------------------------- */

static void result_before_deadline_is_returned(void)
{
    for (int place = 0; place < PLACES; place++) {
        struct rig rig;
        rig_begin(&rig, place, CANCEL_AT_ONCE);
        weft_clock_advance(10 * WEFT_MS - 1);
        gate_open(&rig.gate, 42);
        CHECK_EQ(waiter_join(&rig.waiter), 42);
        CHECK_EQ(rig.waiter.woke, rig.deadline - 1);
        CHECK_EQ(rig.gate.polls, 2);
        CHECK_EQ(rig.gate.cancels, 0);
        /* Its timer is stopped, so the future may be overwritten. */
        rig.timeout = (weft_timeout_future){ .late = 0 };
        virtual_go_to(rig.rt, rig.deadline + WEFT_MS);
        rig_end(&rig);
    }
}

static void deadline_cancels_inner_future(void)
{
    for (int place = 0; place < PLACES; place++) {
        struct rig rig;
        rig_begin(&rig, place, CANCEL_AT_ONCE);
        virtual_go_to(rig.rt, rig.deadline - 1);
        CHECK(!weft_task_is_done(rig.waiter.task));
        CHECK_EQ(rig.gate.cancels, 0);
        weft_clock_advance(1);
        CHECK_EQ(waiter_join(&rig.waiter), WEFT_ETIMEDOUT);
        CHECK_EQ(rig.waiter.woke, rig.deadline);
        CHECK_EQ(rig.gate.cancels, 1);
        rig_end(&rig);
    }
}

static void ready_future_ignores_deadline(void)
{
    (void)virtual_begin();
    weft_runtime *rt = test_start(1);
    const weft_time deadlines[] = { 0, INT64_MIN, weft_now(), weft_after(WEFT_MS), WEFT_NEVER };
    for (int i = 0; i < 5 * PLACES; i++) {
        struct gate gate = gate_make(CANCEL_AT_ONCE);
        weft_timeout_future timeout;
        weft_timeout_init(&timeout, &gate.future, deadlines[i / PLACES]);
        struct waiter waiter = { .future = &timeout.future };
        gate_open(&gate, 7);
        waiter_start(&waiter, rt, i % PLACES);
        CHECK_EQ(waiter_join(&waiter), 7);
        CHECK_EQ(gate.polls, 1);
        CHECK_EQ(gate.cancels, 0);
    }
    weft_runtime_destroy(rt);
    virtual_end();
}

static void past_deadline_polls_once(void)
{
    (void)virtual_begin();
    weft_runtime *rt = test_start(1);
    const weft_time deadlines[] = { 0, INT64_MIN, weft_now() };
    for (int i = 0; i < 3 * PLACES; i++) {
        struct gate gate = gate_make(CANCEL_AT_ONCE);
        weft_timeout_future timeout;
        weft_timeout_init(&timeout, &gate.future, deadlines[i / PLACES]);
        struct waiter waiter = { .future = &timeout.future };
        waiter_start(&waiter, rt, i % PLACES);
        CHECK_EQ(waiter_join(&waiter), WEFT_ETIMEDOUT);
        CHECK_EQ(gate.polls, 2); /* The second poll fetches the result of the cancel. */
        CHECK_EQ(gate.cancels, 1);
        gate_fini(&gate);
    }
    weft_runtime_destroy(rt);
    virtual_end();
}

static void open_with_42(void *arg)
{
    gate_open(arg, 42);
}

struct opener {
    weft_timer timer;
    weft_time deadline;
    struct gate *gate;
};

static int opener_start(void *arg)
{
    struct opener *opener = arg;
    weft_timer_start(&opener->timer, opener->deadline, 0, open_with_42, opener->gate);
    return 0;
}

/*
 * Goal:   a result that arrives together with the deadline is not lost.
 * Method: a timer with the same deadline opens the gate. It was started later, so it fires
 *         right after the deadline. It fires on the only worker, so the task finds both.
 */
static void result_arriving_with_deadline_wins(void)
{
    for (int place = 0; place < IN_JOB; place++) {
        struct rig rig;
        rig_begin(&rig, place, CANCEL_LATER);
        struct opener opener = { .deadline = rig.deadline, .gate = &rig.gate };
        weft_task *task;
        CHECK_EQ(weft_runtime_spawn_blocking(rig.rt, &task, opener_start, &opener), 0);
        CHECK_EQ(test_join(task), 0);
        weft_clock_advance(10 * WEFT_MS);
        CHECK_EQ(waiter_join(&rig.waiter), 42);
        CHECK_EQ(rig.waiter.woke, rig.deadline);
        CHECK(!weft_timer_stop(&opener.timer));
        rig_end(&rig);
    }
}

static void *open_soon(void *arg)
{
    struct gate *gate = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), (uint64_t)weft_now());
    for (uint32_t i = wf_rng_below(&rng, 1u << wf_rng_below(&rng, 14)); i > 0; i--) {
        wf_cpu_relax();
    }
    gate_open(gate, 42);
    return NULL;
}

/*
 * Goal:   whichever comes first, the wait ends once.
 * Method: another thread opens the gate while this one advances the clock. The cancel of the
 *         gate lasts until the gate is opened, so every round returns the gate's result.
 */
static void result_racing_deadline_is_returned_once(void)
{
    (void)virtual_begin();
    weft_runtime *rt = test_start(2);
    for (uint64_t i = 0; i < test_scale(2000); i++) {
        struct gate gate = gate_make(CANCEL_LATER);
        weft_timeout_future timeout;
        weft_timeout_init(&timeout, &gate.future, weft_after(WEFT_MS));
        struct waiter waiter = { .future = &timeout.future };
        pthread_t thread;
        waiter_start(&waiter, rt, (int)(i % PLACES));
        CHECK_EQ(pthread_create(&thread, NULL, open_soon, &gate), 0);
        weft_clock_advance(WEFT_MS);
        CHECK_EQ(waiter_join(&waiter), 42);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        gate_fini(&gate);
    }
    weft_runtime_destroy(rt);
    virtual_end();
}

/* --- Cancel that takes time -------------------------------------------------------------- */

static void timeout_waits_for_end_of_cancel(void)
{
    for (int place = 0; place < PLACES; place++) {
        for (int wins = 0; wins < 2; wins++) {
            struct rig rig;
            rig_begin(&rig, place, CANCEL_LATER);
            weft_clock_advance(10 * WEFT_MS);
            test_wait_for(&rig.gate.cancels, 1);
            virtual_go_to(rig.rt, rig.deadline + VIRTUAL_HOUR);
            CHECK(!weft_task_is_done(rig.waiter.task));
            gate_open(&rig.gate, wins ? 77 : WEFT_ECANCELED);
            CHECK_EQ(waiter_join(&rig.waiter), wins ? 77 : WEFT_ETIMEDOUT);
            CHECK_EQ(rig.waiter.woke, rig.deadline + VIRTUAL_HOUR);
            rig_end(&rig);
        }
    }
}

/* As future.h says: the task is woken, and cancel is called again. */
static void pending_cancel_is_repeated_after_each_wake(void)
{
    for (int place = 0; place < PLACES; place++) {
        struct rig rig;
        rig_begin(&rig, place, CANCEL_LATER);
        weft_clock_advance(10 * WEFT_MS);
        for (uint64_t i = 1; i <= 5; i++) {
            test_wait_for(&rig.gate.cancels, i);
            wake_spuriously(&rig.gate);
        }
        test_wait_for(&rig.gate.cancels, 6);
        gate_open(&rig.gate, WEFT_ECANCELED);
        CHECK_EQ(waiter_join(&rig.waiter), WEFT_ETIMEDOUT);
        rig_end(&rig);
    }
}

/*
 * Goal:   a task that is canceled while it waits gets WEFT_ECANCELED, not WEFT_ETIMEDOUT, even
 *         if the deadline passes before the inner future has ended.
 */
static void task_cancellation_is_not_reported_as_timeout(void)
{
    for (int place = 0; place < PLACES; place++) {
        struct rig rig;
        rig_begin(&rig, place, CANCEL_LATER);
        weft_cancel(rig.waiter.task);
        test_wait_for(&rig.gate.cancels, 1);
        virtual_go_to(rig.rt, rig.deadline + VIRTUAL_HOUR);
        CHECK(!weft_task_is_done(rig.waiter.task));
        wake_spuriously(&rig.gate);
        test_wait_for(&rig.gate.cancels, 2);
        gate_open(&rig.gate, WEFT_ECANCELED);
        CHECK_EQ(waiter_join(&rig.waiter), WEFT_ECANCELED);
        rig_end(&rig);
    }
}

static void result_before_end_of_task_cancellation_wins(void)
{
    for (int place = 0; place < PLACES; place++) {
        struct rig rig;
        rig_begin(&rig, place, CANCEL_LATER);
        weft_cancel(rig.waiter.task);
        test_wait_for(&rig.gate.cancels, 1);
        gate_open(&rig.gate, 55);
        CHECK_EQ(waiter_join(&rig.waiter), 55);
        virtual_go_to(rig.rt, rig.deadline); /* Its timer is stopped. */
        rig_end(&rig);
    }
}

static void immediate_cancel_ends_wait_immediately(void)
{
    for (int place = 0; place < PLACES; place++) {
        struct rig rig;
        rig_begin(&rig, place, CANCEL_AT_ONCE);
        weft_cancel(rig.waiter.task);
        CHECK_EQ(waiter_join(&rig.waiter), WEFT_ECANCELED);
        CHECK_EQ(rig.waiter.woke, rig.deadline - 10 * WEFT_MS);
        CHECK_EQ(rig.gate.cancels, 1);
        rig_end(&rig);
    }
}

static void ecanceled_from_inner_future_is_not_timeout(void)
{
    for (int place = 0; place < PLACES; place++) {
        struct rig rig;
        rig_begin(&rig, place, CANCEL_AT_ONCE);
        gate_open(&rig.gate, WEFT_ECANCELED);
        CHECK_EQ(waiter_join(&rig.waiter), WEFT_ECANCELED);
        rig_end(&rig);
    }
}

/* --- Nested timeouts ------------------------------------------------------------------------ */

static void earlier_of_nested_timeouts_ends_wait(void)
{
    for (int i = 0; i < 2 * PLACES; i++) {
        bool outer_first = i % 2 == 0;
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(1);
        struct gate gate = gate_make(CANCEL_AT_ONCE);
        weft_timeout_future inner;
        weft_timeout_future outer;
        weft_timeout_init(&inner, &gate.future, start + (outer_first ? 20 : 10) * WEFT_MS);
        weft_timeout_init(&outer, &inner.future, start + (outer_first ? 10 : 20) * WEFT_MS);
        struct waiter waiter = { .future = &outer.future };
        waiter_start(&waiter, rt, i / 2);
        test_wait_for(&gate.polls, 1);
        weft_clock_advance(10 * WEFT_MS);
        CHECK_EQ(waiter_join(&waiter), WEFT_ETIMEDOUT);
        CHECK_EQ(waiter.woke, start + 10 * WEFT_MS);
        CHECK_EQ(gate.cancels, 1);
        virtual_go_to(rt, start + 30 * WEFT_MS); /* The other timer is stopped. */
        gate_fini(&gate);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

/* Awaits a gate for up to an hour, inside a timeout that is shorter. */
struct patient {
    struct gate gate;
    weft_timeout_future inner;
    int seen; /* by the coroutine */
};

static int patient_task(weft_co *co, void *state)
{
    struct patient *patient = state;
    WEFT_BEGIN(co);
    weft_timeout_init(&patient->inner, &patient->gate.future, weft_after(VIRTUAL_HOUR));
    WEFT_AWAIT(co, patient->seen, &patient->inner.future);
    WEFT_END(co, patient->seen);
}

/*
 * Goal:   when an outer timeout expires first, a coroutine with a later deadline of its own
 *         sees WEFT_ECANCELED, not WEFT_ETIMEDOUT.
 * Method: the cancel takes time, and meanwhile the task is woken spuriously, so that all
 *         futures are checked again.
 */
static void coroutine_inside_timeout_sees_ecanceled(void)
{
    for (int place = 0; place < PLACES; place++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(1);
        struct patient patient = { .gate = gate_make(CANCEL_LATER) };
        weft_co_future body;
        weft_timeout_future outer;
        weft_co_init(&body, patient_task, &patient);
        weft_timeout_init(&outer, &body.future, start + 10 * WEFT_MS);
        struct waiter waiter = { .future = &outer.future };
        waiter_start(&waiter, rt, place);
        test_wait_for(&patient.gate.polls, 1);
        weft_clock_advance(10 * WEFT_MS);
        for (uint64_t i = 1; i <= 3; i++) {
            test_wait_for(&patient.gate.cancels, i);
            virtual_settle(rt);
            wake_spuriously(&patient.gate);
        }
        test_wait_for(&patient.gate.cancels, 4);
        gate_open(&patient.gate, WEFT_ECANCELED);
        CHECK_EQ(waiter_join(&waiter), WEFT_ETIMEDOUT);
        CHECK_EQ(patient.seen, WEFT_ECANCELED);
        gate_fini(&patient.gate);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

/* --- Inner futures ---------------------------------------------------------------------------- */

static void timed_out_join_leaves_handle_valid(void)
{
    for (int place = 0; place < PLACES; place++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(2);
        struct gate gate = gate_make(CANCEL_AT_ONCE);
        struct waiter child = { .future = &gate.future };
        waiter_start(&child, rt, ON_FIBER);
        int result = -99;
        weft_join_future join;
        weft_timeout_future timeout;
        weft_join_init(&join, child.task, &result);
        weft_timeout_init(&timeout, &join.future, start + WEFT_MS);
        struct waiter waiter = { .future = &timeout.future };
        waiter_start(&waiter, rt, place);
        virtual_settle(rt);
        weft_clock_advance(WEFT_MS);
        CHECK_EQ(waiter_join(&waiter), WEFT_ETIMEDOUT);
        CHECK(join.task == child.task);
        CHECK_EQ(result, -99);

        /* This time the task ends before the deadline. */
        weft_join_init(&join, child.task, &result);
        weft_timeout_init(&timeout, &join.future, weft_after(VIRTUAL_HOUR));
        waiter_start(&waiter, rt, place);
        virtual_settle(rt);
        gate_open(&gate, 5);
        CHECK_EQ(waiter_join(&waiter), 0);
        CHECK(join.task == NULL);
        CHECK_EQ(result, 1);
        CHECK_EQ(child.result, 5);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static void timeout_future_can_be_reused(void)
{
    struct rig rig;
    rig_begin(&rig, ON_FIBER, CANCEL_AT_ONCE);
    weft_clock_advance(10 * WEFT_MS);
    for (int i = 1; i <= 5; i++) {
        CHECK_EQ(waiter_join(&rig.waiter), WEFT_ETIMEDOUT);
        gate_fini(&rig.gate);
        rig.gate = gate_make(CANCEL_AT_ONCE);
        weft_timeout_init(&rig.timeout, &rig.gate.future, weft_after(10 * WEFT_MS));
        waiter_start(&rig.waiter, rig.rt, i % PLACES);
        test_wait_for(&rig.gate.polls, 1);
        virtual_settle(rig.rt);
        CHECK(!weft_task_is_done(rig.waiter.task));
        weft_clock_advance(10 * WEFT_MS);
    }
    CHECK_EQ(waiter_join(&rig.waiter), WEFT_ETIMEDOUT);
    rig_end(&rig);
}

struct droppable {
    weft_future future;
    int drops;
};

static void count_drop(weft_future *future)
{
    ((struct droppable *)future)->drops++;
}

static void drop_is_forwarded_to_inner_future(void)
{
    static const weft_future_ops with = { .drop = count_drop };
    static const weft_future_ops without = { .drop = NULL };
    struct droppable inner = { .future.ops = &with };
    weft_timeout_future timeout;
    weft_timeout_init(&timeout, &inner.future, WEFT_NEVER);
    timeout.future.ops->drop(&timeout.future);
    CHECK_EQ(inner.drops, 1);
    inner.future.ops = &without;
    timeout.future.ops->drop(&timeout.future);
    CHECK_EQ(inner.drops, 1);
}

TEST_MAIN({
    TEST(result_before_deadline_is_returned),
    TEST(deadline_cancels_inner_future),
    TEST(ready_future_ignores_deadline),
    TEST(past_deadline_polls_once),
    TEST(result_arriving_with_deadline_wins),
    TEST(result_racing_deadline_is_returned_once),
    TEST(timeout_waits_for_end_of_cancel),
    TEST(pending_cancel_is_repeated_after_each_wake),
    TEST(task_cancellation_is_not_reported_as_timeout),
    TEST(result_before_end_of_task_cancellation_wins),
    TEST(immediate_cancel_ends_wait_immediately),
    TEST(ecanceled_from_inner_future_is_not_timeout),
    TEST(earlier_of_nested_timeouts_ends_wait),
    TEST(coroutine_inside_timeout_sees_ecanceled),
    TEST(timed_out_join_leaves_handle_valid),
    TEST(timeout_future_can_be_reused),
    TEST(drop_is_forwarded_to_inner_future),
})
