/* SPDX-License-Identifier: MIT */
#include "memory.h"
#include "par/search.h"

#include <stdatomic.h>

#include "inputs.h"
#include "timing.h"

/* Indexes that match: the first one, and every step-th index after it. */
struct places {
    size_t first;
    size_t step;
    _Atomic(uint64_t) looks; /* number of indexes */
    size_t fail_at;          /* SIZE_MAX: never */
};

static int look(size_t first, size_t end, size_t *match, void *arg)
{
    struct places *places = arg;
    CHECK_LT(first, end);
    CHECK_LE(end - first, WEFT_ELEMENTS_MAX);
    atomic_fetch_add_explicit(&places->looks, end - first, memory_order_relaxed);
    for (size_t i = first; i < end; i++) {
        if (i >= places->first && (i - places->first) % places->step == 0) {
            *match = i;
            break;
        }
    }
    return places->fail_at >= first && places->fail_at < end ? -77 : 0;
}

static int find_all(void *arg)
{
    (void)arg;
    static const size_t counts[] = { 0, 1, 2, 1023, 1024, 1025, 3000, 100000 };
    for (size_t i = 0; i < 8; i++) {
        for (size_t k = 0; k < 8; k++) {
            struct places places = { counts[k] / 2, 1 + k * 100, 0, SIZE_MAX };
            size_t wanted = places.first < counts[i] ? places.first : counts[i];
            size_t index = 77;
            CHECK_EQ(wf_search_first(counts[i], look, &places, &index, NULL), 0);
            CHECK_EQ(index, wanted);
            CHECK_EQ(wf_search_any(counts[i], look, &places, &index, NULL), 0);
            CHECK_EQ(index < counts[i], wanted < counts[i]);
            CHECK(index == counts[i] || (index - places.first) % places.step == 0);
        }
    }
    return 0;
}

static void first_match_is_found(void)
{
    test_run_everywhere(find_all, NULL);
}

/* However long the range is. */
static int find_early(void *arg)
{
    (void)arg;
    for (size_t first = 0; first < 100000; first = 3 * first + 1) {
        struct places places = { first, SIZE_MAX, 0, SIZE_MAX };
        size_t index;
        CHECK_EQ(wf_search_first(SIZE_MAX, look, &places, &index, NULL), 0);
        CHECK_EQ(index, first);
        CHECK_LE(places.looks, 4 * first + 4 * WEFT_ELEMENTS_MAX);
    }
    return 0;
}

static void early_match_takes_few_looks(void)
{
    test_run_everywhere(find_early, NULL);
}

/* --- With other workers -------------------------------------------------------------------- */

static _Atomic(uint64_t) begun;
static _Atomic(uint64_t) found;

/* Takes long, and checks how far the search has come. */
static int look_slowly(size_t first, size_t end, size_t *match, void *arg)
{
    struct places *places = arg;
    CHECK_LE(end, 4 * places->first + 4 * WEFT_ELEMENTS_MAX);
    test_wait_ns(20 * WEFT_US);
    return look(first, end, match, arg);
}

static int find_slowly(void *arg)
{
    (void)arg;
    struct places places = { 1200, SIZE_MAX, 0, SIZE_MAX };
    size_t index;
    CHECK_EQ(wf_search_first(SIZE_MAX, look_slowly, &places, &index, NULL), 0);
    CHECK_EQ(index, 1200);
    return 0;
}

/*
 * Goal:   no worker looks far behind the match, although there is time to share the search.
 * Method: each look takes longer than a chunk of a loop should.
 */
static void other_workers_stay_near_front(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, find_slowly, NULL), 0);
    weft_runtime_destroy(rt);
}

/* The lower half waits for a match in the upper half. */
static int wait_for_upper_half(size_t first, size_t end, size_t *match, void *arg)
{
    int err = look(first, end, match, arg);
    if (first == 0) {
        test_wait_for(&found, 1);
    } else if (*match < end) {
        atomic_store(&found, 1);
    }
    return err;
}

static int find_any_of_many(void *arg)
{
    (void)arg;
    struct places places = { SIZE_MAX / 8, 1, 0, SIZE_MAX };
    size_t index;
    atomic_store(&found, 0);
    CHECK_EQ(wf_search_any(SIZE_MAX / 4, wait_for_upper_half, &places, &index, NULL), 0);
    CHECK(index >= SIZE_MAX / 8);
    return 0;
}

/*
 * Goal:   a match ends the search, wherever it is.
 * Method: the match is behind so many other indexes that looking at all of them would never
 *         end.
 */
static void any_match_ends_search(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, find_any_of_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* The upper half reports a match, too, after the lower half has reported one. */
static int report_match_late(size_t first, size_t end, size_t *match, void *arg)
{
    (void)arg;
    CHECK_LT(first, end);
    *match = first;
    if (first == 0) {
        test_wait_for(&begun, 1);
        atomic_store(&found, 1);
        return 0;
    }
    atomic_store(&begun, 1);
    test_wait_for(&found, 1);
    test_wait_ns(WEFT_MS);
    return 0;
}

static int find_two(void *arg)
{
    (void)arg;
    size_t index = 77;
    atomic_store(&begun, 0);
    atomic_store(&found, 0);
    CHECK_EQ(wf_search_first(2, report_match_late, NULL, &index, NULL), 0);
    CHECK_EQ(index, 0);
    return 0;
}

static void match_behind_earlier_match_is_ignored(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, find_two, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Early ends ---------------------------------------------------------------------------- */

static int fail(void *arg)
{
    (void)arg;
    struct places places = { SIZE_MAX, 1, 0, 0 };
    weft_stop stop = { 0 };
    weft_stop_set(&stop);
    for (size_t bad = 0; bad < 100000; bad = 3 * bad + 1) {
        size_t index = 77;
        places.fail_at = bad;
        CHECK_EQ(wf_search_first(100000, look, &places, &index, NULL), -77);
        CHECK_EQ(wf_search_any(100000, look, &places, &index, NULL), -77);
        CHECK_EQ(
            wf_search_first(100000, look, &places, &index, &(weft_par_options){ .stop = &stop }),
            WEFT_ECANCELED);
        CHECK_EQ(index, 77);
    }
    return 0;
}

static void errors_and_cancels_end_search(void)
{
    test_run_everywhere(fail, NULL);
}

TEST_MAIN({
    TEST(first_match_is_found),
    TEST(early_match_takes_few_looks),
    TEST(other_workers_stay_near_front),
    TEST(any_match_ends_search),
    TEST(match_behind_earlier_match_is_ignored),
    TEST(errors_and_cancels_end_search),
})
