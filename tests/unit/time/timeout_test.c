/* SPDX-License-Identifier: MIT */
/*
 * weft_timeout_init(): any future with a deadline; awaited in a body, on a fiber
 * and in a blocking job.
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

static int await_body(weft_co *co, void *state)
{
    struct waiter *waiter = test_arg(state);
    WEFT_BEGIN(co);
    WEFT_AWAIT(co, waiter->result, waiter->future);
    waiter->woke = weft_now();
    WEFT_END(co, 1);
}

static int await_function(void *arg)
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
        waiter->task = test_spawn(rt, await_body, waiter);
    } else if (place == ON_FIBER) {
        waiter->task = virtual_go(rt, await_function, waiter);
    } else {
        CHECK_EQ(weft_runtime_spawn_blocking(rt, &waiter->task, await_function, waiter), 0);
    }
}

static int waiter_join(struct waiter *waiter)
{
    CHECK_EQ(test_join(waiter->task), 1);
    return waiter->result;
}

/* A gate with a deadline, in 10 ms, and somebody who waits for the two. */
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

/* Wakes who waits at the gate, for no reason. */
static void nudge(struct gate *gate)
{
    weft_waker *waker = atomic_exchange(&gate->waker, NULL);
    CHECK(waker != NULL);
    weft_waker_fire(waker);
}

/* --- Which of the two is first --------------------------------------------------------- */

static void a_result_before_the_deadline_is_given(void)
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
        /* Its timer is gone, and so may the future be. */
        rig.timeout = (weft_timeout_future){ .late = 0 };
        virtual_go_to(rig.rt, rig.deadline + WEFT_MS);
        rig_end(&rig);
    }
}

static void at_the_deadline_the_future_is_cancelled(void)
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

static void a_future_that_is_ready_needs_no_time(void)
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

static void a_deadline_that_is_over_leaves_one_poll(void)
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
        CHECK_EQ(gate.polls, 2); /* The second one for the result of the cancel. */
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
 * Goal:   a result that comes together with the deadline is not thrown away.
 * Method: a timer of the same deadline opens the gate. It was started later, so
 *         it calls right after the deadline has come; and on the only worker, so
 *         that the task finds both.
 */
static void a_result_that_comes_with_the_deadline_wins(void)
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
 * Method: another thread opens the gate while this one moves the clock. The
 *         cancel of the gate lasts until it is opened, so its result is given in
 *         each round.
 */
static void a_result_that_races_with_the_deadline_is_given_once(void)
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

/* --- A cancel that needs time ------------------------------------------------------------ */

static void the_end_of_the_cancel_is_awaited(void)
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

/* future.h: "the task is woken and cancel is called again". */
static void a_future_that_is_being_cancelled_is_cancelled_again_after_each_wake(void)
{
    for (int place = 0; place < PLACES; place++) {
        struct rig rig;
        rig_begin(&rig, place, CANCEL_LATER);
        weft_clock_advance(10 * WEFT_MS);
        for (uint64_t i = 1; i <= 5; i++) {
            test_wait_for(&rig.gate.cancels, i);
            nudge(&rig.gate);
        }
        test_wait_for(&rig.gate.cancels, 6);
        gate_open(&rig.gate, WEFT_ECANCELED);
        CHECK_EQ(waiter_join(&rig.waiter), WEFT_ETIMEDOUT);
        rig_end(&rig);
    }
}

/*
 * Goal:   a task that is cancelled while it waits is told that, not that the time
 *         was over, even if the time is over before the inner future has ended.
 */
static void a_cancellation_from_outside_is_no_timeout(void)
{
    for (int place = 0; place < PLACES; place++) {
        struct rig rig;
        rig_begin(&rig, place, CANCEL_LATER);
        weft_cancel(rig.waiter.task);
        test_wait_for(&rig.gate.cancels, 1);
        virtual_go_to(rig.rt, rig.deadline + VIRTUAL_HOUR);
        CHECK(!weft_task_is_done(rig.waiter.task));
        nudge(&rig.gate);
        test_wait_for(&rig.gate.cancels, 2);
        gate_open(&rig.gate, WEFT_ECANCELED);
        CHECK_EQ(waiter_join(&rig.waiter), WEFT_ECANCELED);
        rig_end(&rig);
    }
}

static void a_result_faster_than_a_cancellation_from_outside_wins(void)
{
    for (int place = 0; place < PLACES; place++) {
        struct rig rig;
        rig_begin(&rig, place, CANCEL_LATER);
        weft_cancel(rig.waiter.task);
        test_wait_for(&rig.gate.cancels, 1);
        gate_open(&rig.gate, 55);
        CHECK_EQ(waiter_join(&rig.waiter), 55);
        virtual_go_to(rig.rt, rig.deadline); /* Its timer is gone. */
        rig_end(&rig);
    }
}

static void a_cancel_that_needs_no_time_ends_the_wait_at_once(void)
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

static void the_inner_futures_own_cancellation_is_no_timeout(void)
{
    for (int place = 0; place < PLACES; place++) {
        struct rig rig;
        rig_begin(&rig, place, CANCEL_AT_ONCE);
        gate_open(&rig.gate, WEFT_ECANCELED);
        CHECK_EQ(waiter_join(&rig.waiter), WEFT_ECANCELED);
        rig_end(&rig);
    }
}

/* --- Timeouts inside of timeouts ------------------------------------------------------------ */

static void of_nested_timeouts_the_earlier_one_ends_the_wait(void)
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
        virtual_go_to(rt, start + 30 * WEFT_MS); /* The other timer is gone. */
        gate_fini(&gate);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

/* Awaits a gate for an hour, inside of what has less time. */
struct patient {
    struct gate gate;
    weft_timeout_future inner;
    int seen; /* by the body */
};

static int patient_body(weft_co *co, void *state)
{
    struct patient *patient = state;
    WEFT_BEGIN(co);
    weft_timeout_init(&patient->inner, &patient->gate.future, weft_after(VIRTUAL_HOUR));
    WEFT_AWAIT(co, patient->seen, &patient->inner.future);
    WEFT_END(co, patient->seen);
}

/*
 * Goal:   a body whose own time is not over is told that it is cancelled, not
 *         that its time was over, when the timeout around it comes first.
 * Method: the cancel needs time, and meanwhile the task is woken for nothing, so
 *         that all futures are looked at once more.
 */
static void a_body_in_a_timeout_is_told_that_it_is_cancelled(void)
{
    for (int place = 0; place < PLACES; place++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(1);
        struct patient patient = { .gate = gate_make(CANCEL_LATER) };
        weft_co_future body;
        weft_timeout_future outer;
        weft_co_init(&body, patient_body, &patient);
        weft_timeout_init(&outer, &body.future, start + 10 * WEFT_MS);
        struct waiter waiter = { .future = &outer.future };
        waiter_start(&waiter, rt, place);
        test_wait_for(&patient.gate.polls, 1);
        weft_clock_advance(10 * WEFT_MS);
        for (uint64_t i = 1; i <= 3; i++) {
            test_wait_for(&patient.gate.cancels, i);
            virtual_settle(rt);
            nudge(&patient.gate);
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

/* --- What is inside --------------------------------------------------------------------------- */

static void a_join_with_a_timeout_leaves_the_handle(void)
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

        /* The second time the task is faster. */
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

static void a_timeout_in_a_row_of_awaits_starts_anew(void)
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

static void a_drop_is_passed_on(void)
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
    TEST(a_result_before_the_deadline_is_given),
    TEST(at_the_deadline_the_future_is_cancelled),
    TEST(a_future_that_is_ready_needs_no_time),
    TEST(a_deadline_that_is_over_leaves_one_poll),
    TEST(a_result_that_comes_with_the_deadline_wins),
    TEST(a_result_that_races_with_the_deadline_is_given_once),
    TEST(the_end_of_the_cancel_is_awaited),
    TEST(a_future_that_is_being_cancelled_is_cancelled_again_after_each_wake),
    TEST(a_cancellation_from_outside_is_no_timeout),
    TEST(a_result_faster_than_a_cancellation_from_outside_wins),
    TEST(a_cancel_that_needs_no_time_ends_the_wait_at_once),
    TEST(the_inner_futures_own_cancellation_is_no_timeout),
    TEST(of_nested_timeouts_the_earlier_one_ends_the_wait),
    TEST(a_body_in_a_timeout_is_told_that_it_is_cancelled),
    TEST(a_join_with_a_timeout_leaves_the_handle),
    TEST(a_timeout_in_a_row_of_awaits_starts_anew),
    TEST(a_drop_is_passed_on),
})
