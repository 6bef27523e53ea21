/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "everywhere.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

enum {
    COUNT = 100000,
};

static _Atomic(unsigned char) seen[COUNT + 1];

static int count_each(size_t first, size_t end, void *arg)
{
    (void)arg;
    CHECK_LT(first, end);
    CHECK_LE(end, COUNT);
    for (size_t i = first; i < end; i++) {
        atomic_fetch_add(&seen[i], 1);
    }
    return 0;
}

static void check_range(size_t first, size_t end, const weft_par_options *options)
{
    memset(seen, 0, sizeof seen);
    CHECK_EQ(weft_for(first, end, count_each, NULL, options), 0);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(seen[i], i >= first && i < end);
    }
}

static int check_ranges(void *arg)
{
    (void)arg;
    static const size_t ends[] = { 0, 1, 2, 3, 7, 64, 1000, COUNT };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        check_range(0, ends[i], NULL);
        check_range(ends[i] / 3, ends[i], NULL);
        check_range(0, ends[i], &(weft_par_options){ .piece = 1 + ends[i] / 5 });
    }
    check_range(5, 3, NULL);
    return 0;
}

static void for_visits_each_number_once(void)
{
    test_run_everywhere(check_ranges, NULL);
}

static int check_chunk_size(size_t first, size_t end, void *arg)
{
    CHECK_LE(end - first, *(size_t *)arg);
    return 0;
}

static int loop_with_chunk_sizes(void *arg)
{
    (void)arg;
    for (size_t piece = 1; piece < 2000; piece = piece * 3 + 1) {
        CHECK_EQ(weft_for(0, 5000, check_chunk_size, &piece, &(weft_par_options){ .piece = piece }),
                 0);
    }
    return 0;
}

static void chunk_size_option_limits_chunks(void)
{
    test_run_everywhere(loop_with_chunk_sizes, NULL);
}

/* --- Early ends ---------------------------------------------------------------------- */

static _Atomic(uint64_t) calls;

static int fail_at(size_t first, size_t end, void *arg)
{
    size_t bad = *(size_t *)arg;
    atomic_fetch_add(&calls, 1);
    return bad >= first && bad < end ? -77 : 0;
}

static int fail_somewhere(void *arg)
{
    (void)arg;
    for (size_t bad = 0; bad < 3000; bad += 271) {
        CHECK_EQ(weft_for(0, 3000, fail_at, &bad, NULL), -77);
    }
    /* The first chunk fails. Of the others, only those that had begun are run. */
    atomic_store(&calls, 0);
    CHECK_EQ(weft_for(0, COUNT, fail_at, &(size_t){ 0 }, &(weft_par_options){ .piece = 1 }), -77);
    CHECK_LT(atomic_load(&calls), COUNT);
    return 0;
}

static void error_ends_loop(void)
{
    test_run_everywhere(fail_somewhere, NULL);
}

static weft_stop stop;

static int cancel_at_10th_call(size_t first, size_t end, void *arg)
{
    (void)first;
    (void)end;
    (void)arg;
    if (atomic_fetch_add(&calls, 1) == 10) {
        weft_stop_set(&stop);
    }
    return 0;
}

static int cancel_loop(void *arg)
{
    (void)arg;
    stop = (weft_stop){ 0 };
    atomic_store(&calls, 0);
    weft_par_options options = { .piece = 1, .stop = &stop };
    CHECK_EQ(weft_for(0, COUNT, cancel_at_10th_call, NULL, &options), WEFT_ECANCELED);
    CHECK_LT(atomic_load(&calls), COUNT);
    CHECK_EQ(weft_for(0, COUNT, cancel_at_10th_call, NULL, &options), WEFT_ECANCELED);
    return 0;
}

static void cancel_flag_ends_loop(void)
{
    test_run_everywhere(cancel_loop, NULL);
}

/* --- Distribution among workers --------------------------------------------------------- */

static _Atomic(uint64_t) begun;

static int meet(size_t first, size_t end, void *arg)
{
    (void)arg;
    CHECK_EQ(end - first, 1);
    atomic_fetch_add(&begun, 1);
    test_wait_for(&begun, 2);
    return 0;
}

static int meet_in_loop(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20; i++) {
        atomic_store(&begun, 0);
        CHECK_EQ(weft_for(0, 2, meet, NULL, NULL), 0);
        CHECK_EQ(weft_sleep(i % 2 * WEFT_MS), 0); /* Other workers park. */
    }
    return 0;
}

/*
 * Goal:   a loop of few, long chunks is shared from the first chunk on.
 * Method: each of two chunks waits for the other one.
 */
static void two_long_chunks_run_concurrently(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, meet_in_loop, NULL), 0);
    CHECK_EQ(weft_par_run(rt, meet_in_loop, NULL), 0);
    weft_runtime_destroy(rt);
}

static int do_nothing(size_t first, size_t end, void *arg)
{
    (void)first;
    (void)end;
    (void)arg;
    return 0;
}

static int loop_little(void *arg)
{
    (void)arg;
    return weft_for(0, 10, do_nothing, NULL, NULL);
}

static void short_loop_wakes_no_worker(void)
{
    test_wakes_nobody(loop_little, NULL);
}

static int sleep_briefly(size_t first, size_t end, void *arg)
{
    for (size_t i = first; i < end; i++) {
        CHECK_EQ(weft_sleep(10 * WEFT_US), 0);
        atomic_fetch_add((_Atomic(uint64_t) *)arg, 1);
    }
    return 0;
}

static int nest_and_wait(size_t first, size_t end, void *arg)
{
    for (size_t i = first; i < end; i++) {
        CHECK_EQ(weft_for(0, 10, sleep_briefly, arg, NULL), 0);
    }
    return 0;
}

static int nest_loops(void *arg)
{
    (void)arg;
    _Atomic(uint64_t) count = 0;
    CHECK_EQ(weft_for(0, 20, nest_and_wait, &count, NULL), 0);
    CHECK_EQ(count, 200);
    return 0;
}

static void loops_nest_and_may_wait(void)
{
    test_run_everywhere(nest_loops, NULL);
}

static _Atomic(uint64_t) met;

/* The beginning of the upper half, which is run first, and its middle. */
static int meet_in_upper_half(size_t first, size_t end, void *arg)
{
    (void)arg;
    CHECK_EQ(end, first + 1);
    if (first == 500 || first == 750) {
        atomic_fetch_add(&met, 1);
        test_wait_for(&met, 2);
    }
    return 0;
}

static int loop_with_meeting(void *arg)
{
    (void)arg;
    atomic_store(&met, 0);
    return weft_for(0, 1000, meet_in_upper_half, NULL, &(weft_par_options){ .piece = 1 });
}

/*
 * Goal:   a part that another worker has stolen is split again.
 * Method: the lower half ends immediately. Two numbers of the upper half wait for each other.
 */
static void stolen_part_is_split_again(void)
{
    weft_runtime *rt = test_start(2);
    for (unsigned i = 0; i < 50; i++) {
        CHECK_EQ(test_run(rt, loop_with_meeting, NULL), 0);
    }
    weft_runtime_destroy(rt);
}

/* The first number waits for the numbers from 250 on, which take no time. */
static int learn_from_light_numbers(size_t first, size_t end, void *arg)
{
    (void)arg;
    if (first == 0) {
        test_wait_for(&met, 750);
    }
    if (first == 250) {
        CHECK(end <= 250 + 250 / 4);
    }
    if (first >= 250) {
        atomic_fetch_add(&met, end - first);
    }
    return 0;
}

static int loop_over_light_numbers(void *arg)
{
    (void)arg;
    atomic_store(&met, 0);
    return weft_for(0, 1000, learn_from_light_numbers, NULL, NULL);
}

/*
 * Goal:   chunk lengths learned from light numbers do not lead to one long chunk of other
 *         numbers.
 * Method: another worker steals the upper half, learns that its chunks may be long, and then
 *         steals the next quarter.
 */
static void stolen_part_begins_with_short_chunk(void)
{
    weft_runtime *rt = test_start(2);
    for (unsigned i = 0; i < 50; i++) {
        CHECK_EQ(test_run(rt, loop_over_light_numbers, NULL), 0);
        CHECK_EQ(weft_par_run(rt, loop_over_light_numbers, NULL), 0);
    }
    weft_runtime_destroy(rt);
}

/* --- Without memory for a fork context -------------------------------------------------------- */

enum {
    REFUSAL_NS = 50 * 1000, /* CPU time: much longer than a chunk should take */
};

struct refusal {
    atomic_bool refuses;
    atomic_size_t refused;
    size_t pieces;
    size_t numbers;
};

static void *alloc_slowly(void *ctx, size_t size, size_t align)
{
    struct refusal *refusal = ctx;
    if (!atomic_load(&refusal->refuses)) {
        return aligned_alloc(align, (size + align - 1) / align * align);
    }
    atomic_fetch_add(&refusal->refused, 1);
    for (int64_t end = test_cpu_ns() + REFUSAL_NS; test_cpu_ns() < end;) {
    }
    return NULL;
}

static void free_slowly(void *ctx, void *memory, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    free(memory);
}

static int count_chunks(size_t first, size_t end, void *arg)
{
    struct refusal *refusal = arg;
    refusal->pieces++;
    refusal->numbers += end - first;
    return 0;
}

static int loop_while_refused(void *arg)
{
    struct refusal *refusal = arg;
    atomic_store(&refusal->refuses, true);
    CHECK_EQ(weft_for(0, 10 * COUNT, count_chunks, refusal, NULL), 0);
    atomic_store(&refusal->refuses, false);
    return 0;
}

/*
 * Goal:   a loop that gets no memory for a fork context runs in chunks of the usual length, and
 *         rarely retries the allocation.
 * Method: the runtime's allocator fails, and takes longer to do so than a chunk takes.
 */
static void loop_without_fork_context_runs_in_long_chunks(void)
{
    struct refusal refusal = { .refuses = false };
    weft_allocator allocator = { alloc_slowly, free_slowly, &refusal };
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.allocator = &allocator;
    weft_runtime *rt = test_start_with(&config);
    CHECK_EQ(test_run(rt, loop_while_refused, &refusal), 0);
    CHECK_EQ(refusal.numbers, 10 * COUNT);
    CHECK_GE(atomic_load(&refusal.refused), 1);
    CHECK_LT(refusal.pieces, 1000);
    CHECK_LT(atomic_load(&refusal.refused), 20);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(stolen_part_is_split_again),
    TEST(stolen_part_begins_with_short_chunk),
    TEST(for_visits_each_number_once),
    TEST(chunk_size_option_limits_chunks),
    TEST(error_ends_loop),
    TEST(cancel_flag_ends_loop),
    TEST(two_long_chunks_run_concurrently),
    TEST(short_loop_wakes_no_worker),
    TEST(loops_nest_and_may_wait),
    TEST(loop_without_fork_context_runs_in_long_chunks),
})
