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

static const struct mc_test tests[] = {
    { .name = "spawn_and_join",
      .run = spawn_and_join,
      .mode = MC_PCT,
      .runs = 2000,
      .steps_max = 20000,
      .leaks = true },
    { .name = "spawn_and_destroy",
      .run = spawn_and_destroy,
      .mode = MC_PCT,
      .runs = 2000,
      .steps_max = 20000,
      .leaks = true },
};

MC_MAIN(tests)
