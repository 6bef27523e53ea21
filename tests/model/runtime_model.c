/* SPDX-License-Identifier: MIT */
/*
 * runtime_model.c - a whole runtime in the model: workers, watch and blocking pool
 * start, tasks run, everything ends and nothing leaks.
 *
 * Far too large to run all executions, so by priorities (MC_PCT); a deadline never
 * fires, so whoever waits for one that does not come is found.
 */
#include <weft.h>

#include "mc.h"
#include "threads.h"

static int answer(weft_co *co, void *state)
{
    (void)co;
    return *(const int *)state;
}

static void create(weft_runtime **rt, unsigned workers)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = workers;
    config.search_ns = UINT64_MAX;
    config.seed = 1;
    mc_assert(weft_runtime_create(rt, &config) == 0);
}

/*
 * Goal:   a task that is spawned from outside runs, and its joiner wakes.
 * Method: two workers, which may be asleep, searching, or about to sleep.
 */
static void spawn_and_join(void)
{
    weft_runtime *rt;
    create(&rt, 2);
    int state = 42;
    weft_task *task;
    weft_spec spec = { .body = answer, .state = &state, .state_size = sizeof state };
    mc_assert(weft_runtime_spawn(rt, &task, &spec) == 0);
    int result;
    mc_assert(weft_join(task, &result, WEFT_NEVER) == 0);
    mc_assert(result == 42);
    weft_runtime_destroy(rt);
}

/*
 * Goal:   shutdown against spawn: the task has run, or was refused, or cancelled.
 * Method: the runtime is destroyed at once.
 */
static void spawn_and_destroy(void)
{
    weft_runtime *rt;
    create(&rt, 2);
    int state = 42;
    weft_task *task;
    weft_spec spec = { .body = answer, .state = &state, .state_size = sizeof state };
    mc_assert(weft_runtime_spawn(rt, &task, &spec) == 0);
    weft_runtime_destroy(rt);
    int result = 0;
    int err = weft_join(task, &result, WEFT_NEVER);
    mc_assert(err == 0);
    mc_assert(result == 42 || result == WEFT_ECANCELED);
    mc_note(result == 42);
}

/*
 * Goal:   a task that waits for another one is woken by its end, on whatever worker.
 * Method: the one that a thread joins spawns and joins another.
 */
struct parent {
    weft_join_future join;
    int state;
    int result;
    int err;
};

static int spawn_and_await(weft_co *co, void *state)
{
    struct parent *self = state;
    WEFT_BEGIN(co);
    self->state = 42;
    weft_task *task;
    weft_spec spec = { .body = answer, .state = &self->state, .state_size = sizeof self->state };
    mc_assert(weft_spawn(&task, &spec) == 0);
    weft_join_init(&self->join, task, &self->result);
    WEFT_AWAIT(co, self->err, &self->join.future);
    mc_assert(self->err == 0);
    WEFT_END(co, self->result);
}

static void task_awaits_task(void)
{
    weft_runtime *rt;
    create(&rt, 2);
    weft_task *task;
    weft_spec spec = { .body = spawn_and_await, .state_size = sizeof(struct parent) };
    mc_assert(weft_runtime_spawn(rt, &task, &spec) == 0);
    int result;
    mc_assert(weft_join(task, &result, WEFT_NEVER) == 0);
    mc_assert(result == 42);
    weft_runtime_destroy(rt);
}

/*
 * Goal:   whoever asks for a shutdown sees everything ended.
 * Method: two threads ask; both then read what a task wrote.
 */
static int written;

static int write_down(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    written++;
    return 0;
}

static void shut_down(void *rt)
{
    weft_runtime_shutdown(rt);
    mc_assert(written == 1);
}

static void two_shutdowns(void)
{
    weft_runtime *rt;
    create(&rt, 1);
    weft_spec spec = { .body = write_down };
    mc_assert(weft_runtime_spawn(rt, NULL, &spec) == 0);
    mc_go(shut_down, rt);
    shut_down(rt);
    mc_join();
    weft_runtime_destroy(rt);
}

/*
 * Goal:   a destroy waits for a plain thread that is in weft_par_run().
 * Method: the thread uses the runtime when its function has returned; a runtime that is gone by
 *         then is a use after free. What the function wrote is plain.
 */
static _Atomic(uint32_t) is_inside;
static int left;

static int be_inside(void *arg)
{
    (void)arg;
    wf_store_release(&is_inside, 1u);
    left = 1;
    return 0;
}

static void run_inside(void *rt)
{
    mc_assert(weft_par_run(rt, be_inside, NULL) == 0);
}

static void destroy_against_par_run(void)
{
    weft_runtime *rt;
    create(&rt, 1);
    mc_go(run_inside, rt);
    while (wf_load_acquire(&is_inside) == 0) {
    }
    weft_runtime_destroy(rt);
    mc_assert(left == 1);
    mc_join();
}

/*
 * Goal:   a runtime that cannot start leaves nothing behind.
 * Method: the watch, the first or the second worker is refused.
 */
static void start_is_refused(void)
{
    weft_runtime *rt = NULL;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.search_ns = UINT64_MAX;
    config.seed = 1;
    starts_to_refusal = 1 + (int)mc_choose(3);
    mc_assert(weft_runtime_create(&rt, &config) == -EAGAIN);
    mc_assert(rt == NULL);
    mc_assert(wf_load_relaxed(&threads_unjoined) == 0);
}

#define TEST(function, count)                                                                      \
    {                                                                                              \
        .name = #function, .run = (function), .mode = MC_PCT, .runs = (count), .steps_max = 20000, \
        .leaks = true                                                                              \
    }

/* With outcomes that must come up. */
#define TEST_SEEN(function, count, ...)                                                            \
    {                                                                                              \
        .name = #function, .run = (function), .mode = MC_PCT, .runs = (count), .steps_max = 20000, \
        .leaks = true, .seen = MC_OUTCOMES(__VA_ARGS__)                                            \
    }

static const struct mc_test tests[] = {
    TEST(spawn_and_join, 2000), TEST_SEEN(spawn_and_destroy, 2000, 1), TEST(task_awaits_task, 2000),
    TEST(two_shutdowns, 2000),  TEST(destroy_against_par_run, 2000),   TEST(start_is_refused, 1000),
};

MC_MAIN(tests)
