/* SPDX-License-Identifier: MIT */
/*
 * deep_test.c - recursion through the callbacks of the algorithms, deeper than a stack.
 *
 * Goal:   the recursion continues on a fresh stack, wherever it runs and whichever algorithm it
 *         goes through.
 * Method: the callback of each algorithm calls the algorithm again. The stacks hold a small part
 *         of the levels.
 */
#include "par/deep.h"

#include <pthread.h>
#include <stdatomic.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

enum {
    SMALL_STACK = 256 * 1024,
};

/* The levels that are left. */
static _Atomic(uint64_t) left;

static void (*descend)(void);

/* Called back by the algorithm. Only the first call of a level goes deeper. */
static void go_down(void)
{
    uint64_t level = atomic_load(&left);
    while (level > 0 && !atomic_compare_exchange_weak(&left, &level, level - 1)) {
    }
    if (level > 0) {
        descend();
    }
}

static int in_range(size_t first, size_t end, void *arg)
{
    (void)first;
    (void)end;
    (void)arg;
    go_down();
    return 0;
}

static void by_for(void)
{
    CHECK_EQ(weft_for(0, 1, in_range, NULL, NULL), 0);
}

static int fold(void *value, size_t first, size_t end, void *arg)
{
    (void)value;
    return in_range(first, end, arg);
}

static void keep(void *value, const void *next, void *arg)
{
    (void)value;
    (void)next;
    (void)arg;
}

static void combine(void *value, const void *next, void *arg)
{
    keep(value, next, arg);
    go_down();
}

static int fold_nothing(void *value, size_t first, size_t end, void *arg)
{
    (void)value;
    (void)first;
    (void)end;
    (void)arg;
    return 0;
}

static const char zero;

static void by_fold(void)
{
    char result;
    weft_reduction how = { .size = 1, .identity = &zero, .fold = fold, .combine = keep };
    CHECK_EQ(weft_reduce(0, 1, &how, NULL, &result, NULL), 0);
}

static void by_combine_of_scan(void)
{
    weft_scanner how = { .reduction = { 1, &zero, fold_nothing, combine }, .scan = fold_nothing };
    CHECK_EQ(weft_scan(0, 1, &how, NULL, NULL, NULL), 0);
}

static int visit(void *node, weft_walk_state *walk, void *arg)
{
    (void)node;
    (void)walk;
    return in_range(0, 0, arg);
}

static void by_walk(void)
{
    int root;
    CHECK_EQ(weft_walk(&root, visit, NULL, NULL), 0);
}

static void call(void *arg)
{
    (void)in_range(0, 0, arg);
}

static void by_join_n(void)
{
    weft_join_n(&(weft_call){ call, NULL }, 1);
}

static int spawned(void *arg)
{
    return in_range(0, 0, arg);
}

static void by_spawn(void)
{
    weft_par_scope scope;
    weft_par_scope_begin(&scope, NULL);
    weft_par_spawn(&scope, spawned, NULL);
    CHECK_EQ(weft_par_scope_end(&scope), 0);
}

static int compare(const void *a, const void *b, void *arg)
{
    (void)in_range(0, 0, arg);
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static void by_sort(void)
{
    int numbers[2] = { 2, 1 };
    CHECK_EQ(weft_sort(numbers, 2, sizeof *numbers, compare, NULL, NULL), 0);
    CHECK_EQ(numbers[0], 1);
}

static void by_merge(void)
{
    int one = 1;
    int two = 2;
    int merged[2];
    CHECK_EQ(weft_merge(&two, 1, &one, 1, sizeof one, compare, NULL, merged, NULL), 0);
    CHECK_EQ(merged[0], 1);
}

static void by_is_sorted(void)
{
    int numbers[2] = { 1, 2 };
    bool answer;
    CHECK_EQ(weft_is_sorted(numbers, 2, sizeof *numbers, compare, NULL, &answer, NULL), 0);
    CHECK(answer);
}

static int test(const void *elements, size_t count, bool *answers, void *arg)
{
    (void)elements;
    for (size_t i = 0; i < count; i++) {
        answers[i] = true;
    }
    return in_range(0, 0, arg);
}

static void by_filter(void)
{
    int from = 1;
    int to = 0;
    size_t kept;
    CHECK_EQ(weft_filter(&from, 1, sizeof from, test, NULL, &to, &kept, NULL), 0);
    CHECK_EQ(to, 1);
}

static int key_of(const void *elements, size_t count, uint64_t *keys, void *arg)
{
    (void)elements;
    for (size_t i = 0; i < count; i++) {
        keys[i] = 0;
    }
    return in_range(0, 0, arg);
}

static void by_histogram(void)
{
    char element = 0;
    uint64_t counts[1];
    CHECK_EQ(weft_histogram(&element, 1, 1, key_of, NULL, 1, counts, NULL), 0);
    CHECK_EQ(counts[0], 1);
}

static void by_key_of_min(void)
{
    char element = 0;
    size_t index;
    CHECK_EQ(weft_min_by_key(&element, 1, 1, key_of, NULL, &index, NULL), 0);
    CHECK_EQ(index, 0);
}

static void by_key_of_sort(void)
{
    char elements[2] = { 0 };
    CHECK_EQ(weft_sort_by_key(elements, 2, 1, key_of, NULL, NULL), 0);
}

static int make_item(void **item, void *arg)
{
    *item = NULL;
    return in_range(0, 0, arg);
}

static void by_pipeline(void)
{
    weft_stage stage = { WEFT_STAGE_IN_ORDER, make_item };
    CHECK_EQ(weft_pipeline(&stage, 1, 0, NULL, NULL, NULL), 0);
}

/* The functions of WEFT_PARALLEL, called without any fork. */
WEFT_PARALLEL(uint64_t, count_levels, uint64_t, depth)
{
    if (depth == 0) {
        return 0;
    }
    volatile uint64_t below = count_levels(depth - 1);
    return below + 1;
}

static void by_plain_call(void)
{
    uint64_t depth = atomic_exchange(&left, 0);
    CHECK_EQ(count_levels(depth), depth);
}

static weft_runtime *runtime;

static void by_par_run(void)
{
    CHECK_EQ(weft_par_run(runtime, spawned, NULL), 0);
}

struct way {
    void (*descend)(void);
    uint64_t depth; /* more than 16 MiB of frames, at less than 1 GiB */
};

static const struct way ways[] = {
    { by_for, 100000 },
    { by_walk, 40000 },
    { by_plain_call, 1000000 },
    { by_fold, 10000 },
    { by_combine_of_scan, 10000 },
    { by_join_n, 200000 },
    { by_spawn, 50000 },
    { by_sort, 50000 },
    { by_merge, 50000 },
    { by_is_sorted, 50000 },
    { by_filter, 20000 },
    { by_histogram, 10000 },
    { by_key_of_min, 5000 },
    { by_key_of_sort, 5000 },
    { by_pipeline, 20000 },
    { by_par_run, 50000 },
};

static int go_all_ways(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        descend = ways[i].descend;
        /* ThreadSanitizer counts up to 64 K frames. */
        atomic_store(&left, test_scale(ways[i].depth) / (TEST_IS_TSAN ? 8 : 1));
        descend();
        CHECK_EQ(atomic_load(&left), 0);
    }
    return 0;
}

static void recursion_on_fiber_outgrows_stack(void)
{
    runtime = test_start(test_workers(2));
    CHECK_EQ(test_run(runtime, go_all_ways, NULL), 0);
    weft_runtime_destroy(runtime);
}

static int recurse_in_task(weft_co *co, void *state)
{
    (void)co;
    return go_all_ways(state);
}

static void recursion_in_stackless_task_outgrows_stack(void)
{
    runtime = test_start(test_workers(2));
    CHECK_EQ(test_join(test_spawn(runtime, recurse_in_task, NULL)), 0);
    weft_runtime_destroy(runtime);
}

static void recursion_in_blocking_job_outgrows_stack(void)
{
    runtime = test_start(test_workers(1));
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn_blocking(runtime, &task, go_all_ways, NULL), 0);
    CHECK_EQ(test_join(task), 0);
    weft_runtime_destroy(runtime);
}

static int block_in_place(void *arg)
{
    return weft_block_in_place(go_all_ways, arg, WEFT_NEVER) + go_all_ways(arg);
}

static void recursion_in_block_in_place_outgrows_stack(void)
{
    runtime = test_start(test_workers(1));
    CHECK_EQ(test_run(runtime, block_in_place, NULL), 0);
    weft_runtime_destroy(runtime);
}

static int run_as_external_thread(void *arg)
{
    return weft_par_run(runtime, go_all_ways, arg);
}

static void *on_thread(void *arg)
{
    int (*function)(void *) = *(int (**)(void *))arg;
    CHECK_EQ(function(NULL), 0);
    return NULL;
}

static void run_on_small_thread(int (*function)(void *arg))
{
    pthread_t thread;
    pthread_attr_t attr;
    CHECK_EQ(pthread_attr_init(&attr), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attr, SMALL_STACK), 0);
    CHECK_EQ(pthread_create(&thread, &attr, on_thread, &function), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(pthread_attr_destroy(&attr), 0);
}

static void recursion_on_plain_thread_outgrows_stack(void)
{
    runtime = test_start(test_workers(2));
    run_on_small_thread(go_all_ways);
    weft_runtime_destroy(runtime);
}

static void recursion_on_external_thread_outgrows_stack(void)
{
    runtime = test_start(test_workers(2));
    run_on_small_thread(run_as_external_thread);
    weft_runtime_destroy(runtime);
}

struct alarm {
    weft_timer timer;
    weft_event rung;
};

static void ring(void *arg)
{
    struct alarm *alarm = arg;
    (void)go_all_ways(NULL);
    weft_event_set(&alarm->rung);
}

/* The fiber also recurses after the callback, on a stack that is not the callback's. */
static int wait_for_callback(void *arg)
{
    (void)arg;
    struct alarm alarm = { 0 };
    weft_timer_start(&alarm.timer, weft_now(), 0, ring, &alarm);
    CHECK_EQ(weft_event_wait(&alarm.rung, WEFT_NEVER), 0);
    (void)weft_timer_stop(&alarm.timer);
    return go_all_ways(NULL);
}

static void recursion_in_timer_callback_outgrows_stack(void)
{
    runtime = test_start(test_workers(1));
    CHECK_EQ(test_run(runtime, wait_for_callback, NULL), 0);
    weft_runtime_destroy(runtime);
}

TEST_MAIN({
    TEST(recursion_on_fiber_outgrows_stack),
    TEST(recursion_in_stackless_task_outgrows_stack),
    TEST(recursion_in_blocking_job_outgrows_stack),
    TEST(recursion_in_block_in_place_outgrows_stack),
    TEST(recursion_on_plain_thread_outgrows_stack),
    TEST(recursion_on_external_thread_outgrows_stack),
    TEST(recursion_in_timer_callback_outgrows_stack),
})
