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

static void every_number_comes_once(void)
{
    test_run_everywhere(check_ranges, NULL);
}

static int no_piece_is_larger(size_t first, size_t end, void *arg)
{
    CHECK_LE(end - first, *(size_t *)arg);
    return 0;
}

static int give_a_piece(void *arg)
{
    (void)arg;
    for (size_t piece = 1; piece < 2000; piece = piece * 3 + 1) {
        CHECK_EQ(
            weft_for(0, 5000, no_piece_is_larger, &piece, &(weft_par_options){ .piece = piece }),
            0);
    }
    return 0;
}

static void a_piece_that_was_given_is_kept(void)
{
    test_run_everywhere(give_a_piece, NULL);
}

/* --- Ends ---------------------------------------------------------------------------- */

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
    /* The first piece fails: of the others only those that had begun are run. */
    atomic_store(&calls, 0);
    CHECK_EQ(weft_for(0, COUNT, fail_at, &(size_t){ 0 }, &(weft_par_options){ .piece = 1 }), -77);
    CHECK_LT(atomic_load(&calls), COUNT);
    return 0;
}

static void an_error_ends_the_loop(void)
{
    test_run_everywhere(fail_somewhere, NULL);
}

static weft_stop stop;

static int stop_it(size_t first, size_t end, void *arg)
{
    (void)first;
    (void)end;
    (void)arg;
    if (atomic_fetch_add(&calls, 1) == 10) {
        weft_stop_set(&stop);
    }
    return 0;
}

static int stop_a_loop(void *arg)
{
    (void)arg;
    stop = (weft_stop){ 0 };
    atomic_store(&calls, 0);
    weft_par_options options = { .piece = 1, .stop = &stop };
    CHECK_EQ(weft_for(0, COUNT, stop_it, NULL, &options), WEFT_ECANCELED);
    CHECK_LT(atomic_load(&calls), COUNT);
    CHECK_EQ(weft_for(0, COUNT, stop_it, NULL, &options), WEFT_ECANCELED);
    return 0;
}

static void a_stop_ends_the_loop(void)
{
    test_run_everywhere(stop_a_loop, NULL);
}

/* --- Who runs it ------------------------------------------------------------------------ */

static _Atomic(uint64_t) begun;

static int meet(size_t first, size_t end, void *arg)
{
    (void)arg;
    CHECK_EQ(end - first, 1);
    atomic_fetch_add(&begun, 1);
    test_wait_for(&begun, 2);
    return 0;
}

static int meet_in_a_loop(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20; i++) {
        atomic_store(&begun, 0);
        CHECK_EQ(weft_for(0, 2, meet, NULL, NULL), 0);
        CHECK_EQ(weft_sleep(i % 2 * WEFT_MS), 0); /* Others fall asleep. */
    }
    return 0;
}

/*
 * Goal:   a loop of few and long pieces is shared from the first one on.
 * Method: each of two pieces waits for the other one.
 */
static void two_long_pieces_run_at_once(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, meet_in_a_loop, NULL), 0);
    CHECK_EQ(weft_par_run(rt, meet_in_a_loop, NULL), 0);
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

static void a_short_loop_wakes_nobody(void)
{
    test_wakes_nobody(loop_little, NULL);
}

static int wait_a_little(size_t first, size_t end, void *arg)
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
        CHECK_EQ(weft_for(0, 10, wait_a_little, arg, NULL), 0);
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

static void loops_nest_and_bodies_may_wait(void)
{
    test_run_everywhere(nest_loops, NULL);
}

static _Atomic(uint64_t) met;

/* The middle of the upper half and its beginning, which is the first of it that is run. */
static int meet_in_the_upper_half(size_t first, size_t end, void *arg)
{
    (void)arg;
    CHECK_EQ(end, first + 1);
    if (first == 500 || first == 750) {
        atomic_fetch_add(&met, 1);
        test_wait_for(&met, 2);
    }
    return 0;
}

static int loop_in_which_halves_meet(void *arg)
{
    (void)arg;
    atomic_store(&met, 0);
    return weft_for(0, 1000, meet_in_the_upper_half, NULL, &(weft_par_options){ .piece = 1 });
}

/*
 * Goal:   a part that another worker has taken is divided again.
 * Method: the lower half is over at once; two of the upper half wait for each other.
 */
static void a_part_that_was_taken_is_divided(void)
{
    weft_runtime *rt = test_start(2);
    for (unsigned i = 0; i < 50; i++) {
        CHECK_EQ(test_run(rt, loop_in_which_halves_meet, NULL), 0);
    }
    weft_runtime_destroy(rt);
}

/* The first number waits for those from 250 on, which take no time. */
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
 * Goal:   what was learned from light numbers does not make one long piece of others.
 * Method: another worker takes the upper half, learns that its pieces may be long, and
 *         then takes the next quarter.
 */
static void a_part_begins_with_a_short_piece(void)
{
    weft_runtime *rt = test_start(2);
    for (unsigned i = 0; i < 50; i++) {
        CHECK_EQ(test_run(rt, loop_over_light_numbers, NULL), 0);
        CHECK_EQ(weft_par_run(rt, loop_over_light_numbers, NULL), 0);
    }
    weft_runtime_destroy(rt);
}

/* --- Without memory for a strand -------------------------------------------------------------- */

enum {
    REFUSAL_NS = 50 * 1000, /* CPU time: much longer than a piece should take */
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

static int count_pieces(size_t first, size_t end, void *arg)
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
    CHECK_EQ(weft_for(0, 10 * COUNT, count_pieces, refusal, NULL), 0);
    atomic_store(&refusal->refuses, false);
    return 0;
}

/*
 * Goal:   a loop that gets no memory for a strand runs in pieces of the usual length, and seldom
 *         asks again.
 * Method: the runtime's allocator refuses, and takes longer for that than a piece.
 */
static void a_loop_without_a_strand_has_long_pieces(void)
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
    TEST(a_part_that_was_taken_is_divided),
    TEST(a_part_begins_with_a_short_piece),
    TEST(every_number_comes_once),
    TEST(a_piece_that_was_given_is_kept),
    TEST(an_error_ends_the_loop),
    TEST(a_stop_ends_the_loop),
    TEST(two_long_pieces_run_at_once),
    TEST(a_short_loop_wakes_nobody),
    TEST(loops_nest_and_bodies_may_wait),
    TEST(a_loop_without_a_strand_has_long_pieces),
})
