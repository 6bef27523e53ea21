/* SPDX-License-Identifier: MIT */
/*
 * par_table.c - checks that every parallel algorithm must pass, over one table of all of them.
 *
 * The table is in support/algorithms.c. tools/tidy compares it with the headers and fails if an
 * algorithm has no row. The tests go through the rows:
 *
 * - a queued task starts within 2 ms of its worker's CPU time (p99) beside long runs, runs with
 *   large elements, runs that allocate their scratch, and a loop of short runs;
 * - an error of any callback is the result;
 * - a stop ends a run with WEFT_ECANCELED soon;
 * - a run survives the failure of each of its allocations;
 * - 0, 1, 2 and impossibly many elements, and elements of size 0.
 *
 * The number of workers is WEFT_TEST_WORKERS. Long tests run a sample of the rows, which the
 * seed selects, and all rows with WEFT_TEST_SCALE of 2 or more.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

/* Returns whether this row is in the sample, which has one row of the given number. */
static bool is_chosen(size_t row, unsigned one_of)
{
    one_of *= TEST_IS_TSAN ? 8 : 1;
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

/* Runs the row on a fiber of the runtime, or on this thread if there is none. */
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

/* Calls the function for each sampled row, on a runtime and, on request, also without one. */
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

static void algorithms_accept_few_and_refuse_too_many_elements(void)
{
    for_rows(check_counts, 1, true);
}

static void check_size_0(const struct row *row, struct data *data)
{
    if ((row->flags & SIZED) != 0) {
        set_size(data, 0);
        for (size_t count = 0; count <= 2; count++) {
            CHECK_ROW(row, result_of(row, data, count, NULL), ==, -EINVAL);
        }
        CHECK_ROW(row, result_of(row, data, SOME, NULL), ==, -EINVAL);
        set_size(data, sizeof(struct record));
    }
}

static void element_size_0_returns_einval(void)
{
    for_rows(check_size_0, 1, true);
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

static void callback_error_becomes_result(void)
{
    for_rows(check_errors, 1, true);
}

/* --- Cancel flags ----------------------------------------------------------------------------- */

/*
 * Goal:   a cancel flag ends a run with WEFT_ECANCELED, without much further work.
 * Method: the callback of a long run sets the flag. The number of calls after that does not
 *         depend on the number of elements.
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

static void cancel_flag_ends_run_soon(void)
{
    for_rows(check_stop, 2, true);
}

/* --- Memory ----------------------------------------------------------------------------------- */

/* Each allocation fails once. A run that needs it returns -ENOMEM; one that does not succeeds. */
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

static void algorithms_survive_each_failed_allocation(void)
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
    WAIT_MIN_NS = 100 * 1000, /* a shorter wait is not due to a computation */
    LIMIT_NS = 2 * 1000 * 1000,
    WORST_NS = 10 * 1000 * 1000,
    LONG_NS = 100 * 1000 * 1000, /* CPU time of a run */
    SHORT_NS = 20 * 1000 * 1000, /* more than the worst wait */
    LARGE = 4 << 20,             /* numbers, whose scratch spans many large pages */
    FAULTS_MAX = 2,              /* of large pages, each of which may take milliseconds */
};

/* The work that is repeated. */
struct workload {
    size_t count;
    int64_t time;     /* CPU time per worker */
    bool has_scratch; /* provided by the caller: no page faults */
    bool refills;     /* between two runs, if they change their input; yields */
};

struct contest {
    const struct row *row;
    const struct workload *workload;
    atomic_uint running;
    atomic_uint waits;
    _Atomic(int64_t) waited[WAITS_MAX];
};

/* Returns the CPU time of a thread of this process. Not pthread_getcpuclockid(): the compiler
 * assumes that a function stays on one thread. */
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

/* Returns the number of page faults of this thread. */
static long faults_here(void)
{
    struct rusage usage;
    CHECK_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_minflt;
}

/* Returns whether the wait was due to a few page faults only. */
static bool is_excused(const struct contest *contest, pid_t thread, long faults)
{
    long more = thread == this_thread() ? faults_here() - faults : 0;
    return !contest->workload->has_scratch && more > 0 && more <= FAULTS_MAX;
}

static pid_t worker_threads[WORKERS_MAX];

static int note_thread(void *arg)
{
    *(pid_t *)arg = this_thread();
    return 0;
}

static void note_worker_threads(void)
{
    for (unsigned i = 0; i < workers(); i++) {
        weft_task *task;
        weft_fiber_spec spec = { .function = note_thread,
                                 .arg = &worker_threads[i],
                                 .pinned = WEFT_PINNED_TO(i) };
        CHECK_EQ(weft_runtime_go(algorithms_runtime, &task, &spec), 0);
        CHECK_EQ(test_join_soon(task), 0);
    }
}

static void read_cpu_times(int64_t *times)
{
    for (unsigned i = 0; i < workers(); i++) {
        times[i] = cpu_time_of(worker_threads[i]);
    }
}

/* The CPU time that each worker used at least: a worker that has no processor cannot run the task,
 * nor can another one if the first has it in its queue. */
static int64_t least_used(const int64_t *before)
{
    int64_t now[WORKERS_MAX];
    int64_t least = INT64_MAX;
    read_cpu_times(now);
    for (unsigned i = 0; i < workers(); i++) {
        least = now[i] - before[i] < least ? now[i] - before[i] : least;
    }
    return least;
}

/* Yields in a loop, and records the CPU time that the workers used in the meantime. */
static int wait_beside(void *arg)
{
    struct contest *contest = arg;
    while (atomic_load(&contest->running) > 0) {
        int64_t before[WORKERS_MAX];
        pid_t thread = this_thread();
        long faults = faults_here();
        read_cpu_times(before);
        CHECK_EQ(weft_yield(), 0);
        int64_t waited = least_used(before);
        if (waited >= WAIT_MIN_NS && !is_excused(contest, thread, faults)) {
            unsigned wait = atomic_fetch_add(&contest->waits, 1);
            if (wait < WAITS_MAX) {
                atomic_store(&contest->waited[wait], waited);
            }
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
    const struct workload *workload = competitor->contest->workload;
    struct data *data = competitor->data;
    weft_par_options given = { .scratch = data->scratch, .scratch_size = SCRATCH };
    const weft_par_options *options = workload->has_scratch ? &given : NULL;
    bool is_refused = workload->count == 0 && (row->flags & NOT_EMPTY) != 0;
    int64_t until = test_cpu_ns() + workload->time * workers();
    do {
        CHECK_ROW(row, row->run(data, workload->count, options), ==, is_refused ? -EINVAL : 0);
        if (workload->refills && (row->flags & CHANGES) != 0) {
            refill(data, MANY);
        }
    } while (test_cpu_ns() < until);
    atomic_fetch_sub(&competitor->contest->running, 1);
    return 0;
}

/* Returns by which factor a wait may take longer than it should. */
static int64_t slowness_of(const struct contest *contest)
{
    if (test_is_sanitized()) {
        return 50; /* Each memory access, and in particular each allocation, is slow. */
    }
    /* Forks yield when the monitor asks, which may have to wait for a processor itself. The time
     * for a page fault of fresh scratch depends on the other load of the machine. */
    bool is_slow =
        TEST_IS_EMULATED || (contest->row->flags & FORKS) != 0 || !contest->workload->has_scratch;
    return is_slow ? 10 : 1;
}

/* The waits of all rows of a test. */
static struct {
    unsigned waits;
    unsigned late;
} total;

/*
 * A task waits for one turn of each computation ahead of it in the queue, normally one. Now and
 * then the computations of both workers, and forks that one stole from the other, share a queue.
 * A row has too few waits for a 99th percentile, so that is checked for all rows together
 * (check_total_waits()). In a row that never yields, nearly all waits are late.
 */
static void check_waits(const struct contest *contest)
{
    int64_t limit = LIMIT_NS * slowness_of(contest);
    int64_t worst = 0;
    unsigned waits = atomic_load(&contest->waits);
    unsigned late = 0;
    waits = waits < WAITS_MAX ? waits : WAITS_MAX;
    for (unsigned i = 0; i < waits; i++) {
        int64_t waited = atomic_load(&contest->waited[i]);
        late += waited > limit;
        worst = waited > worst ? waited : worst;
    }
    if (getenv("WEFT_TEST_PRINT") != NULL) {
        printf("%-24s %7zu waits %4u late %3u worst %6lld us\n", contest->row->name,
               contest->workload->count, waits, late, (long long)(worst / 1000));
    }
    CHECK_ROW(contest->row, late, <=, waits / 4 + 2);
    CHECK_ROW(contest->row, worst, <=, WORST_NS * (limit / LIMIT_NS));
    total.waits += waits;
    total.late += late;
}

static void check_total_waits(void)
{
    if (getenv("WEFT_TEST_PRINT") != NULL) {
        printf("all rows: %u waits, %u late\n", total.waits, total.late);
    }
    CHECK_LE(total.late, total.waits / 100 + 1);
    total.waits = 0;
    total.late = 0;
}

/* Runs the algorithm once: the page faults of its memory, which may take milliseconds, are not
 * part of what is measured. */
static void touch_pages(const struct row *row, struct data *data, const struct workload *workload)
{
    weft_par_options options = { .scratch = data->scratch, .scratch_size = SCRATCH };
    (void)result_of(row, data, workload->count, &options);
    if (workload->refills && (row->flags & CHANGES) != 0) {
        refill(data, MANY);
    }
}

/*
 * Goal:   a task in the run queue starts soon although every worker computes.
 * Method: one fiber per worker runs the algorithm in a loop, and one task per worker yields. Each
 *         yielding task records how much CPU time its worker's thread used before it ran again,
 *         so the load of the machine does not matter.
 */
static void check_safe_points(const struct row *row, struct data *data,
                              const struct workload *workload)
{
    unsigned count = workers();
    struct contest contest = { .row = row, .workload = workload, .running = count };
    struct competitor competitors[WORKERS_MAX];
    weft_task *tasks[2 * WORKERS_MAX];
    for (unsigned i = 0; workload->has_scratch && i < count; i++) {
        touch_pages(row, &data[i], workload);
    }
    /* The monitor sleeps, too, after 10 ms. If it does not, the test is easier to pass. */
    test_wait_until_asleep(algorithms_runtime);
    CHECK_EQ(weft_sleep(15 * WEFT_MS), 0);
    for (unsigned i = 0; i < count; i++) {
        tasks[count + i] = test_go(algorithms_runtime, wait_beside, &contest);
    }
    for (unsigned i = 0; i < count; i++) {
        competitors[i] = (struct competitor){ &contest, &data[i] };
        tasks[i] = test_go(algorithms_runtime, run_for_long, &competitors[i]);
    }
    for (unsigned i = 0; i < 2 * count; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    check_waits(&contest);
}

/* Calls the function for the sampled rows that have one of these flags (0: all rows), on a
 * runtime, with data for each of up to two workers. */
static void for_contests(void (*function)(const struct row *row, struct data *data), unsigned flags)
{
    struct data data[2];
    unsigned count = workers();
    if (count > 2) {
        return; /* With more workers than processors, they wait for each other. */
    }
    expect_no_events();
    for (unsigned i = 0; i < count; i++) {
        data_init(&data[i]);
    }
    algorithms_runtime = test_start(count);
    note_worker_threads();
    for (size_t i = 0; i < rows_count; i++) {
        if (is_chosen(i, 4) && (flags == 0 || (rows[i].flags & flags) != 0)) {
            function(&rows[i], data);
        }
    }
    check_total_waits();
    weft_runtime_destroy(algorithms_runtime);
    algorithms_runtime = NULL;
    for (unsigned i = 0; i < count; i++) {
        data_fini(&data[i]);
    }
}

static void run_long(const struct row *row, struct data *data)
{
    check_safe_points(row, data, &(struct workload){ MANY, LONG_NS, true, true });
}

static void queued_task_beside_long_runs_starts_within_2_ms(void)
{
    for_contests(run_long, 0);
}

static int key_of_numbers(const void *elements, size_t count, uint64_t *keys, void *arg)
{
    (void)arg;
    memcpy(keys, elements, count * sizeof *keys);
    return 0;
}

static int compare_numbers(const void *a, const void *b, void *arg)
{
    uint64_t one = *(const uint64_t *)a;
    uint64_t other = *(const uint64_t *)b;
    (void)arg;
    return (one > other) - (one < other);
}

static int sort_numbers(struct data *data, size_t count, const weft_par_options *options)
{
    return weft_sort_u64(data->numbers, count, options);
}

static int sort_numbers_by_key(struct data *data, size_t count, const weft_par_options *options)
{
    return weft_sort_by_key(data->numbers, count, 8, key_of_numbers, NULL, options);
}

static int shuffle_numbers(struct data *data, size_t count, const weft_par_options *options)
{
    return weft_shuffle(data->numbers, count, 8, 5, options);
}

static int find_middle_number(struct data *data, size_t count, const weft_par_options *options)
{
    return weft_nth(data->numbers, count, 8, count / 2, compare_numbers, NULL, options);
}

/*
 * Goal:   same, beside runs that allocate so much scratch that the kernel provides it page by
 *         page, in the order in which they write to it.
 * Method: neighboring elements go to different pages. The time for a large page is not counted:
 *         it is the kernel's.
 */
static void queued_task_beside_fresh_scratch_starts_within_2_ms(void)
{
    static const struct row large[] = {
        { "weft_sort_u64", sort_numbers, 0, 0 },
        { "weft_sort_by_key", sort_numbers_by_key, 0, 0 },
        { "weft_shuffle", shuffle_numbers, 0, 0 },
        { "weft_nth", find_middle_number, 0, 0 },
    };
    struct data data[2] = { { .numbers = NULL } };
    unsigned count = workers();
    if (count > 2) {
        return; /* With more workers than processors, they wait for each other. */
    }
    for (unsigned i = 0; i < count; i++) {
        data[i].numbers = malloc(LARGE * sizeof(uint64_t));
        CHECK(data[i].numbers != NULL);
        for (uint64_t k = 0; k < LARGE; k++) {
            data[i].numbers[k] = k * UINT64_C(0x9E3779B97F4A7C15);
        }
    }
    algorithms_runtime = test_start(count);
    note_worker_threads();
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        check_safe_points(&large[i], data, &(struct workload){ LARGE, LONG_NS, false, false });
    }
    check_total_waits();
    weft_runtime_destroy(algorithms_runtime);
    algorithms_runtime = NULL;
    for (unsigned i = 0; i < count; i++) {
        free(data[i].numbers);
    }
}

static void run_large_elements(const struct row *row, struct data *data)
{
    static const size_t sizes[] = { 64 << 10, 4 << 20, sizeof(struct record) };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (unsigned worker = 0; worker < workers(); worker++) {
            set_size(&data[worker], sizes[i]);
        }
        if (sizes[i] != sizeof(struct record)) {
            check_safe_points(row, data, &(struct workload){ data->room, SHORT_NS, true, false });
        }
    }
}

static void queued_task_beside_large_elements_starts_within_2_ms(void)
{
    for_contests(run_large_elements, SIZED);
}

static void run_short(const struct row *row, struct data *data)
{
    static const size_t counts[] = { 0, 8, 100, 4000 };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && (row->flags & NO_CALL) == 0; i++) {
        check_safe_points(row, data, &(struct workload){ counts[i], SHORT_NS, false, false });
    }
}

static void queued_task_beside_short_runs_starts_within_2_ms(void)
{
    for_contests(run_short, 0);
}

TEST_MAIN({
    TEST(algorithms_accept_few_and_refuse_too_many_elements),
    TEST(element_size_0_returns_einval),
    TEST(callback_error_becomes_result),
    TEST(cancel_flag_ends_run_soon),
    TEST_DEBUG(algorithms_survive_each_failed_allocation),
    TEST(queued_task_beside_long_runs_starts_within_2_ms),
    TEST(queued_task_beside_fresh_scratch_starts_within_2_ms),
    TEST(queued_task_beside_large_elements_starts_within_2_ms),
    TEST(queued_task_beside_short_runs_starts_within_2_ms),
})
