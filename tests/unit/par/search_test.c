/* SPDX-License-Identifier: MIT */
#include "memory.h"
#include "par/search.h"

#include <stdatomic.h>

#include "inputs.h"
#include "timing.h"

/* Where it matches: all from an index on, every so many. */
struct places {
    size_t first;
    size_t step;
    _Atomic(uint64_t) looks; /* so many indexes */
    size_t fail_at;          /* or SIZE_MAX */
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

static void the_first_match_is_found(void)
{
    test_run_everywhere(find_all, NULL);
}

/* However long it is. */
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

static void an_early_match_takes_few_looks(void)
{
    test_run_everywhere(find_early, NULL);
}

/* --- With others --------------------------------------------------------------------------- */

static _Atomic(uint64_t) begun;
static _Atomic(uint64_t) found;

/* Takes long, and says how far it has come. */
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
 * Goal:   nobody looks far behind the match, though there is time to share the search.
 * Method: each look takes longer than a piece of a loop should.
 */
static void others_stay_near_the_front(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, find_slowly, NULL), 0);
    weft_runtime_destroy(rt);
}

/* The lower half waits for a match in the upper one. */
static int wait_for_the_upper_half(size_t first, size_t end, size_t *match, void *arg)
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
    CHECK_EQ(wf_search_any(SIZE_MAX / 4, wait_for_the_upper_half, &places, &index, NULL), 0);
    CHECK(index >= SIZE_MAX / 8);
    return 0;
}

/*
 * Goal:   a match ends the search, wherever it is.
 * Method: it is behind so many others that looking at them would never end.
 */
static void any_match_ends_the_search(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, find_any_of_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* The upper half says that it matches, too, when the lower one has said so. */
static int say_it_late(size_t first, size_t end, size_t *match, void *arg)
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
    CHECK_EQ(wf_search_first(2, say_it_late, NULL, &index, NULL), 0);
    CHECK_EQ(index, 0);
    return 0;
}

static void a_match_behind_another_is_forgotten(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, find_two, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Ends ---------------------------------------------------------------------------------- */

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

static void errors_and_stops_end_the_search(void)
{
    test_run_everywhere(fail, NULL);
}

TEST_MAIN({
    TEST(the_first_match_is_found),
    TEST(an_early_match_takes_few_looks),
    TEST(others_stay_near_the_front),
    TEST(any_match_ends_the_search),
    TEST(a_match_behind_another_is_forgotten),
    TEST(errors_and_stops_end_the_search),
})
