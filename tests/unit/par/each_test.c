/* SPDX-License-Identifier: MIT */
#include "elements.h"
#include "memory.h"

/* Argument of the functions, which count the visits of each element. */
struct visit {
    const struct elements *elements;
    size_t length; /* of a chunk or window; the maximum for weft_for_each(), or 0 */
    _Atomic(unsigned char) *seen;
    _Atomic(uint64_t) calls;
    uint64_t fail_after; /* number of calls; 0: never */
    uint64_t stop_after;
    weft_stop stop;
};

static int count_call(struct visit *visit)
{
    uint64_t calls = atomic_fetch_add(&visit->calls, 1) + 1;
    if (visit->stop_after != 0 && calls > visit->stop_after) {
        weft_stop_set(&visit->stop);
    }
    return visit->fail_after != 0 && calls > visit->fail_after ? -77 : 0;
}

static int see_piece(void *elements, size_t count, size_t first, void *arg)
{
    struct visit *visit = arg;
    CHECK(elements == element_at(visit->elements, first));
    CHECK(count > 0);
    CHECK_LE(count, visit->elements->count - first);
    CHECK(visit->length == 0 || count <= visit->length);
    for (size_t i = 0; i < count; i++) {
        atomic_fetch_add_explicit(&visit->seen[first + i], 1, memory_order_relaxed);
    }
    return count_call(visit);
}

static int see_chunk(void *elements, size_t count, size_t first, void *arg)
{
    const struct visit *visit = arg;
    CHECK_EQ(first % visit->length, 0);
    CHECK(count == visit->length || count == visit->elements->count - first);
    return see_piece(elements, count, first, arg);
}

static int see_window(const void *window, size_t first, void *arg)
{
    struct visit *visit = arg;
    CHECK(window == element_at(visit->elements, first));
    CHECK_LE(first + visit->length, visit->elements->count);
    atomic_fetch_add_explicit(&visit->seen[first], 1, memory_order_relaxed);
    return count_call(visit);
}

static struct visit visit_create(const struct elements *elements, size_t length)
{
    struct visit visit = { elements, length, calloc(elements->count + 1, 1), 0, 0, 0, { 0 } };
    CHECK(visit.seen != NULL);
    return visit;
}

/* Checks that the first elements were visited once and the others not at all. */
static void visit_end(struct visit *visit, size_t seen)
{
    for (size_t i = 0; i < visit->elements->count; i++) {
        CHECK_EQ(visit->seen[i], i < seen);
    }
    free((void *)visit->seen);
}

static void check_each(const struct elements *elements, size_t length)
{
    size_t count = elements->count;
    void *base = elements->array.at;
    struct visit visit = visit_create(elements, 0);
    CHECK_EQ(weft_for_each(base, count, elements->size, see_piece, &visit, NULL), 0);
    visit_end(&visit, count);

    visit = visit_create(elements, length);
    weft_par_options options = { .piece = length };
    CHECK_EQ(weft_for_each(base, count, elements->size, see_piece, &visit, &options), 0);
    visit_end(&visit, count);

    visit = visit_create(elements, length);
    CHECK_EQ(weft_for_chunks(base, count, elements->size, length, see_chunk, &visit, NULL), 0);
    CHECK_EQ(visit.calls, (count + length - 1) / length);
    visit_end(&visit, count);

    visit = visit_create(elements, length);
    CHECK_EQ(weft_for_windows(base, count, elements->size, length, see_window, &visit, NULL), 0);
    visit_end(&visit, length <= count ? count - length + 1 : 0);
}

static void check_input(enum pattern pattern, size_t count, size_t size)
{
    struct elements elements = elements_create(pattern, count, size);
    for (size_t length = 1; length < 3 * count + 3; length = 4 * length - 1) {
        check_each(&elements, length);
    }
    elements_destroy(&elements);
}

static int check_inputs(void *arg)
{
    (void)arg;
    for_some_inputs(check_input);
    return 0;
}

static void each_element_is_visited_once(void)
{
    test_run_everywhere(check_inputs, NULL);
}

/* --- Early ends ---------------------------------------------------------------------------- */

static int run_loop(unsigned kind, struct visit *visit)
{
    const struct elements *elements = visit->elements;
    void *base = elements->array.at;
    size_t count = elements->count;
    weft_par_options options = { .piece = 10, .stop = &visit->stop };
    visit->length = 10;
    if (kind == 0) {
        return weft_for_each(base, count, 4, see_piece, visit, &options);
    }
    return kind == 1 ? weft_for_chunks(base, count, 4, 10, see_chunk, visit, &options)
                     : weft_for_windows(base, count, 4, 10, see_window, visit, &options);
}

static int end_loops(void *arg)
{
    for (unsigned kind = 0; kind < 3; kind++) {
        struct visit visit = visit_create(arg, 0);
        visit.fail_after = 10;
        CHECK_EQ(run_loop(kind, &visit), -77);
        CHECK_LT(visit.calls, 9000);
        visit.fail_after = 0;
        visit.stop_after = 10;
        CHECK_EQ(run_loop(kind, &visit), WEFT_ECANCELED);
        CHECK_LT(visit.calls, 9000);
        uint64_t calls = visit.calls;
        CHECK_EQ(run_loop(kind, &visit), WEFT_ECANCELED);
        CHECK_EQ(visit.calls, calls);
        free((void *)visit.seen);
    }
    return 0;
}

static void errors_and_cancels_end_call(void)
{
    struct elements elements = elements_create(RANDOM, 100000, 4);
    test_run_everywhere(end_loops, &elements);
    elements_destroy(&elements);
}

static void invalid_arguments_are_rejected(void)
{
    int base[4];
    CHECK_EQ(weft_for_each(base, 4, 0, see_piece, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_for_each(base, SIZE_MAX / 2, 4, see_piece, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_for_chunks(base, 4, 0, 1, see_chunk, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_for_chunks(base, 4, 4, 0, see_chunk, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_for_chunks(base, SIZE_MAX / 2, 4, 1, see_chunk, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_for_windows(base, 4, 0, 1, see_window, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_for_windows(base, 4, 4, 0, see_window, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_for_windows(base, SIZE_MAX / 2, 4, 1, see_window, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_for_windows(base, 4, 4, SIZE_MAX, see_window, NULL, NULL), 0);
    CHECK_EQ(weft_for_chunks(NULL, 0, 4, SIZE_MAX, see_chunk, NULL, NULL), 0);
}

TEST_MAIN({
    TEST(each_element_is_visited_once),
    TEST(errors_and_cancels_end_call),
    TEST(invalid_arguments_are_rejected),
})
