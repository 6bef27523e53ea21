/* SPDX-License-Identifier: MIT */
/*
 * sweep.c - cancels a program, or lets it time out, at each of its suspension points.
 */
#include "sweep.h"

#include <stdatomic.h>

#include <weft.h>

#include "hooks.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

enum {
    WORKERS_MAX = 32,
};

enum mode {
    COUNTS,
    CANCELS,
    TIMES_OUT,
};

static enum mode mode;
static uint64_t target;
static atomic_uint_fast64_t points;
static _Atomic(weft_task *) root;    /* runs the program; exempt from the sweep */
static _Atomic(weft_task *) patient; /* main task of a program that resumes: it never times out */

static void at_point(weft_time *deadline)
{
    if (weft_task_current() == atomic_load(&root)) {
        return;
    }
    uint64_t point = atomic_fetch_add(&points, 1) + 1;
    if (mode == CANCELS && point == target) {
        weft_cancel(weft_task_current());
    } else if (mode == TIMES_OUT && point == target && deadline != NULL &&
               weft_task_current() != atomic_load(&patient)) {
        *deadline = 0;
    }
}

static int run_main(void *arg)
{
    const struct program *program = arg;
    atomic_store(&patient, program->resumes ? weft_task_current() : NULL);
    return program->main_fn(NULL);
}

/* Runs the program as a task of its own, so that the sweep can cancel that, too. */
static int run_as_task(void *arg)
{
    weft_task *task;
    int result = 0;
    atomic_store(&root, weft_task_current());
    CHECK_EQ(weft_go(&task, run_main, arg), 0);
    CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
    return result;
}

/* When it returns, all tasks of the program have ended. */
static int run_in(weft_runtime *rt, const struct program *program)
{
    int result = test_run(rt, run_as_task, (void *)(uintptr_t)program);
    weft_stats stats;
    int64_t deadline = test_deadline();
    do {
        CHECK_LT(weft_now(), deadline);
        weft_runtime_stats(rt, &stats);
    } while (stats.tasks_alive > 0);
    return result;
}

static uint64_t run_once(weft_runtime *rt, const struct program *program, enum mode how,
                         uint64_t point)
{
    mode = how;
    target = point;
    program->begin();
    atomic_store(&points, 0);
    int result = run_in(rt, program);
    bool is_whole =
        how == COUNTS || (how == TIMES_OUT && program->resumes) || atomic_load(&points) < point;
    if (is_whole) {
        CHECK_EQ(result, 0);
    }
    program->check(is_whole);
    return atomic_load(&points);
}

/* Limits the number of workers, still far above that of cores: each has a ring, and each run
 * uses all. */
static unsigned workers(void)
{
    unsigned count = test_workers(2);
    return count < WORKERS_MAX ? count : WORKERS_MAX;
}

/* Under a sanitizer, every third point, different ones for each seed. */
void sweep(const struct program *program)
{
    hook_await(at_point);
    weft_runtime *rt = test_start(workers());
    uint64_t step = test_is_sanitized() ? 3 : 1;
    weft_io_info info;
    CHECK_EQ(weft_runtime_io(rt, &info), 0); /* Now the runtime has its own descriptors. */
    uint64_t count = run_once(rt, program, COUNTS, 0);
    CHECK(count > 5);
    for (enum mode how = CANCELS; how <= TIMES_OUT; how++) {
        uint64_t last = count;
        for (uint64_t point = 1 + test_seed() % step; point <= last; point += step) {
            uint64_t seen = run_once(rt, program, how, point);
            last = seen > last && last < 2 * count ? seen : last;
        }
    }
    weft_runtime_destroy(rt);
    hook_await(NULL);
}
