/* SPDX-License-Identifier: MIT */
/*
 * par_table.c - one table of all parallel algorithms, and what holds for each of them.
 *
 * The table is in support/algorithms.c. tools/tidy compares it with the headers: an algorithm
 * without a row fails it. The tests go through the rows:
 *
 * - beside a long run, a queued task starts within 2 ms of its worker's CPU time (p99);
 * - an error of any callback is the result;
 * - a stop ends a run with WEFT_ECANCELED soon;
 * - a run survives the failure of each of its allocations;
 * - 0, 1, 2 and impossibly many elements.
 *
 * The number of workers is WEFT_TEST_WORKERS. Tests that take long run a sample of the rows,
 * which the seed chooses, and all rows with WEFT_TEST_SCALE of 2 or more.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weft.h>

#include "algorithms.h"
#include "memory.h"
#include "rt.h"
#include "test.h"

enum {
    HUGE_SHIFT = 2, /* SIZE_MAX >> 2: more than memory can hold */
    WORKERS_MAX = 8,
};

/* --- Running rows ----------------------------------------------------------------------------- */

static unsigned workers(void)
{
    unsigned count = test_workers(2);
    return count < WORKERS_MAX ? count : WORKERS_MAX;
}

/* Is it among those that are run, one of so many? */
static bool is_chosen(size_t row, unsigned one_of)
{
    return test_scale(100) >= 200 || (row + test_seed()) % one_of == 0;
}

struct run {
    const struct row *row;
    struct data *data;
    size_t count;
    const weft_par_options *options;
    int result;
};

static int run_row(void *arg)
{
    struct run *run = arg;
    run->result = run->row->run(run->data, run->count, run->options);
    return 0;
}

/* On a fiber of the runtime; without one, here. */
static int result_of(const struct row *row, struct data *data, size_t count,
                     const weft_par_options *options)
{
    struct run run = { row, data, count, options, 0 };
    CHECK_EQ(algorithms_runtime != NULL ? test_run(algorithms_runtime, run_row, &run)
                                        : run_row(&run),
             0);
    return run.result;
}

/* Names the row if the check fails. */
#define CHECK_ROW(row, a, operator, b)                                                             \
    do {                                                                                           \
        int64_t check_a = (int64_t)(a);                                                            \
        int64_t check_b = (int64_t)(b);                                                            \
        if (!(check_a operator check_b)) {                                                         \
            test_fail(__FILE__, __LINE__, "%s: %s = %lld, wanted %s %lld", (row)->name, #a,        \
                      (long long)check_a, #operator,(long long) check_b);                          \
        }                                                                                          \
    } while (0)

/* Calls the function for the rows, on a runtime, and if asked for without one. */
static void for_rows(void (*function)(const struct row *row, struct data *data), unsigned one_of,
                     bool also_alone)
{
    struct data data;
    data_init(&data);
    for (int alone = 0; alone <= also_alone; alone++) {
        algorithms_runtime = alone ? NULL : test_start(workers());
        for (size_t i = 0; i < rows_count; i++) {
            if (is_chosen(i, one_of)) {
                expect_no_events();
                function(&rows[i], &data);
            }
        }
        if (algorithms_runtime != NULL) {
            weft_runtime_destroy(algorithms_runtime);
        }
        algorithms_runtime = NULL;
    }
    data_fini(&data);
}

/* --- Counts ----------------------------------------------------------------------------------- */

static void check_counts(const struct row *row, struct data *data)
{
    for (size_t count = 0; count <= 2; count++) {
        bool is_error = count == 0 && (row->flags & NOT_EMPTY) != 0;
        CHECK_ROW(row, result_of(row, data, count, NULL), ==, is_error ? -EINVAL : 0);
    }
    CHECK_ROW(row, result_of(row, data, SOME, NULL), ==, 0);
    refill(data, SOME);
    if ((row->flags & NO_HUGE) == 0) {
        CHECK_ROW(row, result_of(row, data, SIZE_MAX >> HUGE_SHIFT, NULL), <, 0);
    }
}

static void all_accept_few_elements_and_refuse_too_many(void)
{
    for_rows(check_counts, 1, true);
}

/* --- Errors ----------------------------------------------------------------------------------- */

static void check_errors(const struct row *row, struct data *data)
{
    for (int which = 0; which < row->callbacks && (row->flags & COMPARES) == 0; which++) {
        for (uint64_t call = 1; call <= 20; call += 19) {
            expect_events(which, call, 0);
            int result = result_of(row, data, SOME, NULL);
            uint64_t calls = atomic_load(&events.calls[which]);
            CHECK_ROW(row, result, ==, calls >= call ? FAILURE : 0);
            expect_no_events();
            CHECK_ROW(row, result_of(row, data, SOME, NULL), ==, 0);
            refill(data, SOME);
        }
    }
}

static void an_error_of_any_callback_is_the_result(void)
{
    for_rows(check_errors, 1, true);
}

/* --- Stops ------------------------------------------------------------------------------------ */

/*
 * Goal:   a stop ends a run with WEFT_ECANCELED, without much further work.
 * Method: the callback of a long run sets it; how many elements it is called for after that does
 *         not depend on their count.
 */
static void check_stop(const struct row *row, struct data *data)
{
    weft_par_options options = { .stop = &events.stop };
    if ((row->flags & NO_STOP) != 0) {
        return;
    }
    expect_events(-1, 0, 0);
    weft_stop_set(&events.stop);
    CHECK_ROW(row, result_of(row, data, MANY, &options), ==, WEFT_ECANCELED);
    refill(data, MANY);
    if ((row->flags & PRESET_STOP) != 0) {
        return;
    }
    expect_events(-1, 0, 5);
    CHECK_ROW(row, result_of(row, data, MANY, &options), ==, WEFT_ECANCELED);
    CHECK_ROW(row, atomic_load(&events.calls_after_stop), <=, (workers() + 2) * 64 * 1024);
    expect_no_events();
    refill(data, MANY);
}

static void a_stop_ends_each_soon(void)
{
    for_rows(check_stop, 2, true);
}

/* --- Memory ----------------------------------------------------------------------------------- */

/* Each allocation fails once. What needs it says so; what can do without succeeds. */
static void check_memory(const struct row *row, struct data *data)
{
    uint64_t failed = 1;
    for (uint64_t before = 0; failed > 0; before++) {
        memory_fails_after(before);
        int result = row->run(data, SOME, NULL);
        failed = memory_mend();
        if (result != 0) {
            CHECK_ROW(row, result, ==, -ENOMEM);
            CHECK_ROW(row, failed, >, 0);
        }
    }
    CHECK_ROW(row, row->run(data, SOME, NULL), ==, 0);
}

static int check_memory_of_rows(void *arg)
{
    for (size_t i = 0; i < rows_count; i++) {
        check_memory(&rows[i], arg);
    }
    return 0;
}

static void each_survives_the_failure_of_each_allocation(void)
{
    struct data data;
    data_init(&data);
    expect_no_events();
    (void)check_memory_of_rows(&data);
    algorithms_runtime = test_start(workers());
    CHECK_EQ(test_run(algorithms_runtime, check_memory_of_rows, &data), 0);
    weft_runtime_destroy(algorithms_runtime);
    algorithms_runtime = NULL;
    data_fini(&data);
}

/* --- Safe points ------------------------------------------------------------------------------ */

enum {
    WAITS_MAX = 4096,
    WAIT_MIN_NS = 100 * 1000, /* less is not spent behind a computation */
    LIMIT_NS = 2 * 1000 * 1000,
    WORST_NS = 10 * 1000 * 1000,
    LONG_NS = 100 * 1000 * 1000, /* CPU time of a run */
};

struct contest {
    const struct row *row;
    struct data *data;
    atomic_uint running;
    atomic_uint waits;
    _Atomic(int64_t) waited[WAITS_MAX];
};

/* CPU time of a thread of this process. Not pthread_getcpuclockid(): the compiler believes that
 * the thread of a function is always the same. */
static int64_t cpu_time_of(pid_t thread)
{
    struct timespec time;
    clockid_t clock = (clockid_t)(~(unsigned)thread << 3 | 6);
    CHECK_EQ(clock_gettime(clock, &time), 0);
    return time.tv_sec * WEFT_S + time.tv_nsec;
}

static pid_t this_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* Yields again and again, and notes the CPU time of the worker that it waited for. */
static int wait_beside(void *arg)
{
    struct contest *contest = arg;
    while (atomic_load(&contest->running) > 0) {
        pid_t thread = this_thread();
        int64_t before = cpu_time_of(thread);
        CHECK_EQ(weft_yield(), 0);
        int64_t waited = cpu_time_of(thread) - before;
        if (waited >= WAIT_MIN_NS) {
            unsigned wait = atomic_fetch_add(&contest->waits, 1);
            CHECK_LT(wait, WAITS_MAX);
            atomic_store(&contest->waited[wait], waited);
        }
    }
    return 0;
}

struct competitor {
    struct contest *contest;
    struct data *data;
};

static int run_for_long(void *arg)
{
    struct competitor *competitor = arg;
    const struct row *row = competitor->contest->row;
    struct data *data = competitor->data;
    weft_par_options options = { .scratch = data->scratch, .scratch_size = SCRATCH };
    int64_t until = test_cpu_ns() + LONG_NS * workers();
    do {
        CHECK_ROW(row, row->run(data, MANY, &options), ==, 0);
        if ((row->flags & CHANGES) != 0) {
            refill(data, MANY);
        }
    } while (test_cpu_ns() < until);
    atomic_fetch_sub(&competitor->contest->running, 1);
    return 0;
}

static void check_waits(const struct contest *contest)
{
    /* Forks yield when the watch asks, which may have to wait for a processor. */
    bool is_slow = test_is_sanitized() || (contest->row->flags & FORKS) != 0;
    int64_t limit = is_slow ? 10 * LIMIT_NS : LIMIT_NS;
    int64_t worst = 0;
    unsigned waits = atomic_load(&contest->waits);
    unsigned late = 0;
    for (unsigned i = 0; i < waits; i++) {
        int64_t waited = atomic_load(&contest->waited[i]);
        late += waited > limit;
        worst = waited > worst ? waited : worst;
    }
    if (getenv("WEFT_TEST_PRINT") != NULL) {
        printf("%-24s waits %4u late %3u worst %6lld us\n", contest->row->name, waits, late,
               (long long)(worst / 1000));
    }
    CHECK_ROW(contest->row, late, <=, waits / 100 + 1);
    CHECK_ROW(contest->row, worst, <=, WORST_NS * (limit / LIMIT_NS));
}

/*
 * Goal:   a task in the run queue starts soon although each worker computes.
 * Method: as many runs of the algorithm as workers, one after the other, and as many tasks that
 *         yield. Each notes how much CPU time its worker's thread used before its turn came. So
 *         the load of the machine does not matter; nor do page faults, since the scratch is
 *         there already.
 */
static void check_safe_points(const struct row *row, struct data *data)
{
    unsigned count = workers();
    struct contest contest = { .row = row, .running = count };
    struct competitor competitors[WORKERS_MAX];
    weft_task *tasks[2 * WORKERS_MAX];
    /* The watch sleeps, too, after 10 ms. If it does not, the test is easier to pass. */
    test_wait_until_asleep(algorithms_runtime);
    CHECK_EQ(weft_sleep(15 * WEFT_MS), 0);
    for (unsigned i = 0; i < count; i++) {
        competitors[i] = (struct competitor){ &contest, &data[i] };
        tasks[i] = test_go(algorithms_runtime, run_for_long, &competitors[i]);
        tasks[count + i] = test_go(algorithms_runtime, wait_beside, &contest);
    }
    for (unsigned i = 0; i < 2 * count; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    check_waits(&contest);
}

static void a_queued_task_starts_within_2_ms_beside_each(void)
{
    struct data data[2];
    unsigned count = workers();
    if (count > 2) {
        return; /* Of more workers than processors, each waits for the others. */
    }
    expect_no_events();
    for (unsigned i = 0; i < count; i++) {
        data_init(&data[i]);
    }
    algorithms_runtime = test_start(count);
    for (size_t i = 0; i < rows_count; i++) {
        if (is_chosen(i, 4)) {
            check_safe_points(&rows[i], data);
        }
    }
    weft_runtime_destroy(algorithms_runtime);
    algorithms_runtime = NULL;
    for (unsigned i = 0; i < count; i++) {
        data_fini(&data[i]);
    }
}

TEST_MAIN({
    TEST(all_accept_few_elements_and_refuse_too_many),
    TEST(an_error_of_any_callback_is_the_result),
    TEST(a_stop_ends_each_soon),
    TEST_DEBUG(each_survives_the_failure_of_each_allocation),
    TEST(a_queued_task_starts_within_2_ms_beside_each),
})
