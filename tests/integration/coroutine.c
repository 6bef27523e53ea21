/* SPDX-License-Identifier: MIT */
/*
 * Stackless tasks written with the macros: sequences, loops, nesting, cancellation.
 */
#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "test.h"

static weft_config config_of_test(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = test_workers(2);
    config.seed = test_seed();
    return config;
}

static int run_main(int (*main_fn)(void *arg))
{
    weft_config config = config_of_test();
    return weft_run(&config, main_fn, NULL);
}

/* Spawns a stackless task on the current runtime and joins it from the calling task. */
static int run_body(weft_body_fn body, size_t state_size)
{
    weft_task *task;
    int result = -1;
    CHECK_EQ(weft_spawn(&task, &(weft_spec){ .body = body, .state_size = state_size }), 0);
    CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
    return result;
}

static int square_body(weft_co *co, void *state)
{
    (void)co;
    int n = *(int *)state;
    return n * n;
}

static int spawn_square(weft_task **task, int n)
{
    return weft_spawn(task,
                      &(weft_spec){ .body = square_body, .state = &n, .state_size = sizeof n });
}

/* A sequence: three awaits, one after another. */

struct sequence {
    weft_task *tasks[3];
    int results[3];
    weft_join_future join;
};

static int sequence_body(weft_co *co, void *state)
{
    struct sequence *s = state;
    int err;
    WEFT_BEGIN(co);
    CHECK_EQ(spawn_square(&s->tasks[0], 2), 0);
    CHECK_EQ(spawn_square(&s->tasks[1], 3), 0);
    CHECK_EQ(spawn_square(&s->tasks[2], 4), 0);
    weft_join_init(&s->join, s->tasks[2], &s->results[2]);
    WEFT_AWAIT(co, err, &s->join.future);
    CHECK_EQ(err, 0);
    weft_join_init(&s->join, s->tasks[0], &s->results[0]);
    WEFT_AWAIT(co, err, &s->join.future);
    CHECK_EQ(err, 0);
    weft_join_init(&s->join, s->tasks[1], &s->results[1]);
    WEFT_AWAIT(co, err, &s->join.future);
    CHECK_EQ(err, 0);
    WEFT_END(co, s->results[0] + 10 * s->results[1] + 100 * s->results[2]);
}

static int sequence_main(void *arg)
{
    (void)arg;
    return run_body(sequence_body, sizeof(struct sequence));
}

static void awaits_in_sequence_return_their_results(void)
{
    CHECK_EQ(run_main(sequence_main), 4 + 90 + 1600);
}

/* A loop whose variable lives in the state. */

struct loop {
    int i;
    int sum;
    int result;
    weft_task *task;
    weft_join_future join;
};

static int loop_body(weft_co *co, void *state)
{
    struct loop *s = state;
    int err;
    WEFT_BEGIN(co);
    for (s->i = 1; s->i <= 100; s->i++) {
        CHECK_EQ(spawn_square(&s->task, s->i), 0);
        weft_join_init(&s->join, s->task, &s->result);
        WEFT_AWAIT(co, err, &s->join.future);
        CHECK_EQ(err, 0);
        s->sum += s->result;
        WEFT_YIELD(co, err);
        CHECK_EQ(err, 0);
    }
    WEFT_END(co, s->sum);
}

static int loop_main(void *arg)
{
    (void)arg;
    return run_body(loop_body, sizeof(struct loop));
}

static void loop_continues_after_each_await(void)
{
    CHECK_EQ(run_main(loop_main), 338350);
}

/* A stackless function that awaits others, three deep. */

struct nested {
    int depth;
    int i;
    int sum;
    struct loop loop;
    weft_co_future child;
    struct nested *inner; /* the caller's memory */
};

static int nested_body(weft_co *co, void *state)
{
    struct nested *s = state;
    int err;
    WEFT_BEGIN(co);
    s->sum = 0;
    for (s->i = 0; s->i < 2; s->i++) {
        if (s->inner != NULL) {
            weft_co_init(&s->child, nested_body, s->inner);
        } else {
            memset(&s->loop, 0, sizeof s->loop);
            weft_co_init(&s->child, loop_body, &s->loop);
        }
        WEFT_AWAIT(co, err, &s->child.future);
        CHECK_EQ(err, s->inner != NULL ? 676700 : 338350);
        s->sum += err;
    }
    WEFT_END(co, s->sum);
}

static int nested_main(void *arg)
{
    (void)arg;
    static struct nested inner;
    memset(&inner, 0, sizeof inner);
    struct nested outer = { .inner = &inner };
    weft_task *task;
    int result = -1;
    weft_spec spec = { .body = nested_body, .state = &outer, .state_size = sizeof outer };
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
    return result;
}

static void stackless_function_awaits_others(void)
{
    CHECK_EQ(run_main(nested_main), 2 * 676700);
}

/* Cancellation reaches the innermost await and comes back as an error. */

struct never {
    weft_future future;
    bool cancelled;
};

static int never_poll(weft_future *future)
{
    return ((struct never *)future)->cancelled ? WEFT_ECANCELED : WEFT_PENDING;
}

static bool never_cancel(weft_future *future)
{
    ((struct never *)future)->cancelled = true;
    return true;
}

static const weft_future_ops never_ops = { .poll = never_poll, .cancel = never_cancel };

struct waiter {
    struct never never;
    weft_co_future child;
    struct waiter *inner;
    _Atomic(uint64_t) *waiting;
    _Atomic(uint64_t) *cleaned;
};

static int waiter_body(weft_co *co, void *state)
{
    struct waiter *s = state;
    int err;
    WEFT_BEGIN(co);
    if (s->inner != NULL) {
        weft_co_init(&s->child, waiter_body, s->inner);
        WEFT_AWAIT(co, err, &s->child.future);
    } else {
        s->never.future.ops = &never_ops;
        atomic_fetch_add(s->waiting, 1);
        WEFT_AWAIT(co, err, &s->never.future);
    }
    CHECK_EQ(err, WEFT_ECANCELED);
    CHECK(weft_cancelled());
    atomic_fetch_add(s->cleaned, 1);
    /* Another await returns immediately, and its future is not started. */
    s->never.cancelled = false;
    s->never.future.ops = &never_ops;
    WEFT_AWAIT(co, err, &s->never.future);
    CHECK_EQ(err, WEFT_ECANCELED);
    CHECK(!s->never.cancelled);
    WEFT_END(co, err);
}

static int cancel_main(void *arg)
{
    (void)arg;
    static _Atomic(uint64_t) waiting;
    static _Atomic(uint64_t) cleaned;
    struct waiter innermost = { .waiting = &waiting, .cleaned = &cleaned };
    struct waiter middle = { .inner = &innermost, .waiting = &waiting, .cleaned = &cleaned };
    struct waiter outer = { .inner = &middle, .waiting = &waiting, .cleaned = &cleaned };
    weft_task *task;
    int result = 0;
    weft_spec spec = { .body = waiter_body, .state = &outer, .state_size = sizeof outer };
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    while (atomic_load(&waiting) == 0) {
        CHECK_EQ(weft_yield(), 0);
    }
    weft_cancel(task);
    CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
    CHECK_EQ(atomic_load(&cleaned), 3);
    return result;
}

static void cancel_reaches_innermost_await(void)
{
    CHECK_EQ(run_main(cancel_main), WEFT_ECANCELED);
}

TEST_MAIN({
    TEST(awaits_in_sequence_return_their_results),
    TEST(loop_continues_after_each_await),
    TEST(stackless_function_awaits_others),
    TEST(cancel_reaches_innermost_await),
})
