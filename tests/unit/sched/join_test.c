/* SPDX-License-Identifier: MIT */
#include "sched/join.h"

#include <pthread.h>
#include <sched.h>

#include <weft.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "rt.h"
#include "sched/heap.h"
#include "sched/task.h"
#include "sched/waitq.h"
#include "scheduler.h"
#include "test.h"
#include "timing.h"

/* A deadline that has passed. */
#define PAST ((weft_time)1)

/* A task that ends when the test releases it. */
struct held {
    int result; /* written before released is set */
    _Atomic(uint32_t) released;
    _Atomic(weft_waker *) waker;
    uint64_t written; /* plain: the joiner sees it */
};

static int held_body(weft_co *co, void *state)
{
    struct held *held = test_arg(state);
    (void)co;
    if (atomic_load(&held->waker) == NULL) {
        atomic_store(&held->waker, weft_waker_current());
    }
    if (atomic_load(&held->released) == 0) {
        return WEFT_PENDING;
    }
    held->written = 99;
    return held->result;
}

static void release(struct held *held, int result)
{
    weft_waker *waker;
    while ((waker = atomic_load(&held->waker)) == NULL) {
        (void)sched_yield();
    }
    held->result = result;
    atomic_store(&held->released, 1);
    weft_waker_fire(waker);
}

static void wait_for_joiner(weft_task *task)
{
    while (!test_has_joiner(task)) {
        (void)sched_yield();
    }
}

/* --- The answer to a joiner, on fake tasks that count --------------------------- */

struct fake {
    struct wf_task task;
    int scheduled;
};

static void fake_schedule(struct wf_task *task)
{
    ((struct fake *)task)->scheduled++;
}

static const struct wf_task_ops fake_ops = { .kind = "fake", .schedule = fake_schedule };

static void answer_wakes_joiner_that_still_waits(void)
{
    struct wf_heap *heap = wf_heap_create(&wf_alloc_default, NULL, 1);
    CHECK(heap != NULL);
    for (int gives_up = 0; gives_up < 2; gives_up++) {
        struct fake joiner = { .task.ops = &fake_ops };
        joiner.task.state = WF_STATE_IDLE | WF_STATE_REF;
        struct wf_task ended = { .heap = heap };
        struct wf_wait wait = { 0 };
        struct wf_wait_node node;
        wf_wait_start(&wait, &joiner.task);
        wf_wait_node_init(&node, &wait, 0);
        ended.joiner = &node;
        if (gives_up == 1) { /* It is about to take the lock and unlink its node. */
            CHECK(wf_wait_abandon(&wait, WF_WAIT_CANCELLED));
        }
        wf_join_answer(&ended);
        CHECK(ended.joiner == NULL);
        CHECK_EQ(joiner.scheduled, gives_up == 0);
        CHECK_EQ(wf_wait_poll(&wait), gives_up == 0 ? 0 : WEFT_ECANCELED);
        CHECK_EQ(wf_state_refs(wf_task_state(&joiner.task)), 1);
        wf_join_answer(&ended); /* No joiner is left. */
        CHECK_EQ(joiner.scheduled, gives_up == 0);
    }
    wf_heap_retire(heap, NULL);
}

/* --- Joining on a plain thread ------------------------------------------------ */

static void join_of_ended_task_returns_its_result(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *task = test_spawn(rt, test_return_7, NULL);
    while (!weft_task_is_done(task)) {
        (void)sched_yield();
    }
    int result = 0;
    CHECK_EQ(weft_join(task, &result, PAST), 0); /* The deadline does not matter. */
    CHECK_EQ(result, 7);
    weft_runtime_destroy(rt);
}

struct joining {
    weft_task *task;
    int error;
    int result;
    weft_time deadline;
};

static void *join_main(void *arg)
{
    struct joining *joining = arg;
    joining->error = weft_join(joining->task, &joining->result, joining->deadline);
    return NULL;
}

static void end_of_task_wakes_joiner(void)
{
    weft_runtime *rt = test_start(1);
    struct held held = { 0 };
    weft_task *task = test_spawn(rt, held_body, &held);
    struct joining joining = { .task = weft_task_retain(task), .deadline = WEFT_NEVER };
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, join_main, &joining), 0);
    wait_for_joiner(task);
    CHECK(!weft_task_is_done(task));
    release(&held, -12);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(joining.error, 0);
    CHECK_EQ(joining.result, -12);
    CHECK_EQ(held.written, 99);
    weft_detach(task);
    weft_runtime_destroy(rt);
}

static void join_result_may_be_ignored(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(weft_join(test_spawn(rt, test_return_7, NULL), NULL, WEFT_NEVER), 0);
    weft_runtime_destroy(rt);
}

static void join_that_times_out_leaves_handle_valid(void)
{
    weft_runtime *rt = test_start(1);
    struct held held = { 0 };
    weft_task *task = test_spawn(rt, held_body, &held);
    int result = 1234;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weft_join(task, &result, PAST), WEFT_ETIMEDOUT);
        CHECK_EQ(result, 1234);
        CHECK(!test_has_joiner(task));
        CHECK_EQ(weft_try_join(task, &result), -EAGAIN);
    }
    CHECK_EQ(weft_join(task, &result, weft_now() + WEFT_MS), WEFT_ETIMEDOUT);
    release(&held, 3);
    CHECK_EQ(test_join(task), 3);
    weft_runtime_destroy(rt);
}

static void second_joiner_gets_ejoined(void)
{
    weft_runtime *rt = test_start(1);
    struct held held = { 0 };
    weft_task *task = test_spawn(rt, held_body, &held);
    struct joining joining = { .task = weft_task_retain(task), .deadline = WEFT_NEVER };
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, join_main, &joining), 0);
    wait_for_joiner(task);
    int result = 1234;
    CHECK_EQ(weft_join(task, &result, WEFT_NEVER), WEFT_EJOINED);
    CHECK_EQ(weft_join(task, &result, PAST), WEFT_EJOINED);
    CHECK_EQ(weft_try_join(task, &result), WEFT_EJOINED);
    CHECK_EQ(result, 1234);
    release(&held, 5);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(joining.error, 0);
    CHECK_EQ(joining.result, 5);
    CHECK(weft_task_is_done(task)); /* The refused handle is still valid. */
    weft_detach(task);
    weft_runtime_destroy(rt);
}

static void task_can_be_joined_after_earlier_join_timed_out(void)
{
    weft_runtime *rt = test_start(1);
    struct held held = { 0 };
    weft_task *task = test_spawn(rt, held_body, &held);
    CHECK_EQ(weft_join(task, NULL, PAST), WEFT_ETIMEDOUT);
    struct joining joining = { .task = task, .deadline = WEFT_NEVER };
    pthread_t thread;
    weft_task *extra = weft_task_retain(task);
    CHECK_EQ(pthread_create(&thread, NULL, join_main, &joining), 0);
    wait_for_joiner(extra);
    release(&held, 8);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(joining.error, 0);
    CHECK_EQ(joining.result, 8);
    weft_detach(extra);
    weft_runtime_destroy(rt);
}

static void try_join_succeeds_once_task_has_ended(void)
{
    weft_runtime *rt = test_start(1);
    struct held held = { 0 };
    weft_task *task = test_spawn(rt, held_body, &held);
    int result = 0;
    CHECK_EQ(weft_try_join(task, &result), -EAGAIN);
    release(&held, 21);
    int error;
    while ((error = weft_try_join(task, &result)) == -EAGAIN) {
        (void)sched_yield();
    }
    CHECK_EQ(error, 0);
    CHECK_EQ(result, 21);
    CHECK_EQ(held.written, 99);
    weft_runtime_destroy(rt);
}

static void join_of_canceled_task_returns_ecanceled(void)
{
    weft_runtime *rt = test_start(1);
    struct held held = { 0 };
    weft_task *task = test_spawn(rt, held_body, &held);
    weft_cancel(task);
    CHECK_EQ(test_join(task), WEFT_ECANCELED);
    weft_runtime_destroy(rt);
    weft_waker_drop(held.waker);
}

static void task_can_be_joined_after_its_runtime(void)
{
    weft_runtime *rt = test_start(2);
    struct held held = { 0 };
    weft_task *waits = test_spawn(rt, held_body, &held);
    weft_task *ends = test_spawn(rt, test_return_7, NULL);
    weft_runtime_destroy(rt);
    CHECK_EQ(test_join(waits), WEFT_ECANCELED);
    CHECK_EQ(test_join(ends), 7);
    weft_waker_drop(held.waker);
}

static void detached_running_task_runs_to_its_end(void)
{
    weft_runtime *rt = test_start(1);
    struct held held = { 0 };
    weft_task *task = test_spawn(rt, held_body, &held);
    weft_task *extra = weft_task_retain(task);
    weft_detach(task);
    release(&held, 1);
    while (!weft_task_is_done(extra)) {
        (void)sched_yield();
    }
    CHECK_EQ(held.written, 99);
    weft_detach(extra); /* The last handle: frees the memory. */

    struct held other = { 0 };
    weft_detach(test_spawn(rt, held_body, &other));
    release(&other, 1);
    weft_runtime_destroy(rt);
}

static int join_on_pool(void *arg)
{
    return test_join(arg);
}

static void blocking_job_can_join_task(void)
{
    weft_runtime *rt = test_start(1);
    struct held held = { 0 };
    weft_task *task = test_spawn(rt, held_body, &held);
    weft_task *extra = weft_task_retain(task);
    weft_task *job;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, join_on_pool, task), 0);
    wait_for_joiner(extra);
    release(&held, 31);
    CHECK_EQ(test_join(job), 31);
    weft_detach(extra);
    weft_runtime_destroy(rt);
}

/* --- Joining in a stackless task ----------------------------------------------- */

struct parent {
    weft_task *child;
    weft_join_future future;
    int result;
    int error;
    _Atomic(uint64_t) steps;
};

static int parent_body(weft_co *co, void *state)
{
    struct parent *parent = test_arg(state);
    WEFT_BEGIN(co);
    weft_join_init(&parent->future, parent->child, &parent->result);
    WEFT_AWAIT(co, parent->error, &parent->future.future);
    WEFT_END(co, parent->error < 0 ? parent->error : parent->result);
}

static void stackless_task_joins_before_and_after_end(void)
{
    weft_runtime *rt = test_start(2);
    struct held held = { 0 };
    struct parent early = { .child = test_spawn(rt, held_body, &held) };
    weft_task *extra = weft_task_retain(early.child);
    weft_task *task = test_spawn(rt, parent_body, &early);
    wait_for_joiner(extra);
    release(&held, 17);
    CHECK_EQ(test_join(task), 17);
    CHECK(early.future.task == NULL);

    struct parent late = { .child = extra };
    CHECK_EQ(test_join(test_spawn(rt, parent_body, &late)), 17);
    CHECK(late.future.task == NULL);
    weft_runtime_destroy(rt);
}

static void canceled_join_leaves_child_and_handle(void)
{
    weft_runtime *rt = test_start(2);
    struct held held = { 0 };
    struct parent parent = { .child = test_spawn(rt, held_body, &held), .result = 1234 };
    weft_task *task = test_spawn(rt, parent_body, &parent);
    wait_for_joiner(parent.child);
    weft_cancel(task);
    CHECK_EQ(test_join(task), WEFT_ECANCELED);
    CHECK_EQ(parent.result, 1234);
    CHECK(parent.future.task == parent.child);
    CHECK(!test_has_joiner(parent.child));
    CHECK(!weft_task_is_done(parent.child));
    release(&held, 6);
    CHECK_EQ(test_join(parent.child), 6);
    weft_runtime_destroy(rt);
}

static void stackless_task_gets_ejoined_if_another_joins(void)
{
    weft_runtime *rt = test_start(2);
    struct held held = { 0 };
    weft_task *child = test_spawn(rt, held_body, &held);
    struct parent first = { .child = weft_task_retain(child) };
    struct parent second = { .child = child };
    weft_task *task = test_spawn(rt, parent_body, &first);
    wait_for_joiner(child);
    CHECK_EQ(test_join(test_spawn(rt, parent_body, &second)), WEFT_EJOINED);
    CHECK(second.future.task == child);
    release(&held, 9);
    CHECK_EQ(test_join(task), 9);
    weft_detach(child);
    weft_runtime_destroy(rt);
}

static void task_of_another_runtime_can_be_joined(void)
{
    weft_runtime *here = test_start(1);
    weft_runtime *there = test_start(1);
    struct held held = { 0 };
    struct parent parent = { .child = test_spawn(there, held_body, &held) };
    weft_task *extra = weft_task_retain(parent.child);
    weft_task *task = test_spawn(here, parent_body, &parent);
    wait_for_joiner(extra);
    release(&held, 4);
    CHECK_EQ(test_join(task), 4);
    weft_detach(extra);
    weft_runtime_destroy(there);
    weft_runtime_destroy(here);
}

static int join_self_body(weft_co *co, void *state)
{
    struct parent *parent = test_arg(state);
    WEFT_BEGIN(co);
    weft_join_init(&parent->future, weft_task_current(), NULL);
    WEFT_AWAIT(co, parent->error, &parent->future.future);
    WEFT_END(co, 0);
}

static void join_self(void)
{
    struct parent parent = { 0 };
    (void)test_join(test_spawn(test_start(1), join_self_body, &parent));
}

static void task_that_joins_itself_aborts(void)
{
    CHECK_ABORTS(join_self, "weft_join: a task joins itself");
}

/* Each task spawns the next one and joins it, so all join locks are in use at the same time. */
struct chain {
    weft_join_future future;
    int depth;
    int error;
    int result;
};

static int chain_body(weft_co *co, void *state)
{
    struct chain *chain = state;
    WEFT_BEGIN(co);
    if (chain->depth == 0) {
        return 0;
    }
    struct chain next = { .depth = chain->depth - 1 };
    weft_spec spec = { .body = chain_body, .state = &next, .state_size = sizeof next };
    weft_task *task;
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    weft_join_init(&chain->future, task, &chain->result);
    WEFT_AWAIT(co, chain->error, &chain->future.future);
    CHECK_EQ(chain->error, 0);
    WEFT_END(co, chain->result + 1);
}

static void chain_of_joins_unwinds(void)
{
    weft_runtime *rt = test_start(2);
    struct chain first = { .depth = (int)test_scale(5000) };
    weft_spec spec = { .body = chain_body, .state = &first, .state_size = sizeof first };
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(test_join(task), first.depth);
    weft_runtime_destroy(rt);
}

/* --- Races ---------------------------------------------------------------------- */

static int yield_body(weft_co *co, void *state)
{
    int error;
    uintptr_t count = (uintptr_t)test_arg(state);
    WEFT_BEGIN(co);
    WEFT_YIELD(co, error);
    (void)error;
    WEFT_END(co, (int)count);
}

/*
 * Goal:   a join whose deadline races with the end of the task returns the result or leaves the
 *         handle valid.
 * Method: tasks that take about as long as the deadline. After a timeout the handle is joined
 *         again.
 */
static void deadline_that_races_with_end_loses_nothing(void)
{
    weft_runtime *rt = test_start(1);
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    struct test_rounds rounds = test_rounds_begin();
    for (uintptr_t round = 0; test_rounds_next(&rounds); round++) {
        weft_task *task = test_spawn(rt, yield_body, (void *)round);
        int result = -1;
        int error = weft_join(task, &result, weft_now() + wf_rng_below(&rng, 15000));
        test_rounds_count(&rounds, error == 0);
        if (error == WEFT_ETIMEDOUT) {
            CHECK_EQ(result, -1);
            error = weft_join(task, &result, WEFT_NEVER);
        }
        CHECK_EQ(error, 0);
        CHECK_EQ(result, round);
    }
    weft_runtime_destroy(rt);
}

static int pair_body(weft_co *co, void *state)
{
    struct parent *parent = test_arg(state);
    WEFT_BEGIN(co);
    weft_join_init(&parent->future, parent->child, &parent->result);
    WEFT_AWAIT(co, parent->error, &parent->future.future);
    CHECK_EQ(parent->error == 0, parent->future.task == NULL);
    WEFT_END(co, parent->error);
}

/*
 * Goal:   a joiner that is canceled when the task ends has its result or the handle.
 * Method: a parent joins a child that ends soon, and is canceled at about that time. If it did
 *         not join, the test does.
 */
static void cancel_that_races_with_end_loses_nothing(void)
{
    weft_runtime *rt = test_start(2);
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    struct test_rounds rounds = test_rounds_begin();
    for (uintptr_t round = 0; test_rounds_next(&rounds); round++) {
        struct parent parent = { .child = test_spawn(rt, yield_body, (void *)round) };
        weft_task *task = test_spawn(rt, pair_body, &parent);
        for (uint32_t i = wf_rng_below(&rng, 1u << wf_rng_below(&rng, 11)); i > 0; i--) {
            wf_cpu_relax();
        }
        weft_cancel(task);
        int error = test_join(task);
        test_rounds_count(&rounds, error == 0);
        if (error == WEFT_ECANCELED) {
            CHECK_EQ(test_join(parent.child), round);
        } else {
            CHECK_EQ(error, 0);
            CHECK_EQ(parent.result, round);
        }
    }
    weft_runtime_destroy(rt);
}

enum {
    JOINERS = 2
};

struct contest {
    weft_task *handles[JOINERS];
    _Atomic(uint64_t) round;
    _Atomic(uint64_t) done;
    _Atomic(uint64_t) next_index;
    _Atomic(uint64_t) won;
    _Atomic(uint32_t) stop;
};

static void *contest_main(void *arg)
{
    struct contest *contest = arg;
    uint64_t index = atomic_fetch_add(&contest->next_index, 1);
    for (uint64_t round = 1;; round++) {
        test_spin_for(&contest->round, round);
        if (atomic_load(&contest->stop) != 0) {
            return NULL;
        }
        int result = -1;
        int error = weft_join(contest->handles[index], &result, WEFT_NEVER);
        if (error == 0) {
            CHECK_EQ(result, round);
            (void)atomic_fetch_add(&contest->won, 1);
        } else {
            CHECK_EQ(error, WEFT_EJOINED);
            weft_detach(contest->handles[index]);
        }
        (void)atomic_fetch_add(&contest->done, 1);
    }
}

/*
 * Goal:   of two threads that join one task at the same time, at least one gets the result, and
 *         neither waits forever.
 * Method: two handles of a task that is about to end, one for each thread. A refused thread drops
 *         its handle.
 */
static void concurrent_joins_by_two_threads_return_result_once(void)
{
    weft_runtime *rt = test_start(1);
    struct contest contest = { .stop = 0 };
    struct test_rounds rounds = test_rounds_begin();
    pthread_t threads[JOINERS];
    for (int i = 0; i < JOINERS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, contest_main, &contest), 0);
    }
    for (uint64_t round = 1; test_rounds_next(&rounds); round++) {
        contest.handles[0] = test_spawn(rt, yield_body, (void *)(uintptr_t)round);
        contest.handles[1] = weft_task_retain(contest.handles[0]);
        atomic_store(&contest.round, round);
        test_spin_for(&contest.done, JOINERS * round);
        CHECK_GE(contest.won, round);
    }
    atomic_store(&contest.stop, 1);
    atomic_store(&contest.round, UINT64_MAX);
    for (int i = 0; i < JOINERS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(answer_wakes_joiner_that_still_waits),
    TEST(join_of_ended_task_returns_its_result),
    TEST(end_of_task_wakes_joiner),
    TEST(join_result_may_be_ignored),
    TEST(join_that_times_out_leaves_handle_valid),
    TEST(second_joiner_gets_ejoined),
    TEST(task_can_be_joined_after_earlier_join_timed_out),
    TEST(try_join_succeeds_once_task_has_ended),
    TEST(join_of_canceled_task_returns_ecanceled),
    TEST(task_can_be_joined_after_its_runtime),
    TEST(detached_running_task_runs_to_its_end),
    TEST(blocking_job_can_join_task),
    TEST(stackless_task_joins_before_and_after_end),
    TEST(canceled_join_leaves_child_and_handle),
    TEST(stackless_task_gets_ejoined_if_another_joins),
    TEST(task_of_another_runtime_can_be_joined),
    TEST(task_that_joins_itself_aborts),
    TEST(chain_of_joins_unwinds),
    TEST(deadline_that_races_with_end_loses_nothing),
    TEST(cancel_that_races_with_end_loses_nothing),
    TEST(concurrent_joins_by_two_threads_return_result_once),
})
