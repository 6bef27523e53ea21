/* SPDX-License-Identifier: MIT */
/*
 * elements.h - arrays of elements of any size, and a predicate that can fail and set a cancel
 * flag.
 */
#ifndef TEST_PAR_ELEMENTS_H
#define TEST_PAR_ELEMENTS_H

#include <stdatomic.h>

#include "records.h"

static const size_t element_sizes[] = { 1, 2, 3, 4, 8, 16, 24, 100 };

#define ELEMENT_SIZES (sizeof element_sizes / sizeof element_sizes[0])

/* An array between guards. Its elements have keys like records, and differ in their other
 * bytes. */
struct elements {
    struct guarded array;
    size_t count;
    size_t size;
};

static inline struct elements elements_create(enum pattern pattern, size_t count, size_t size)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), pattern);
    struct elements elements = { guarded_create(count * size, count % 3), count, size };
    for (size_t i = 0; i < count; i++) {
        unsigned char *element = elements.array.at + i * size;
        uint64_t key = input_value(pattern, i, count, &rng);
        uint64_t tag = i * UINT64_C(0x9E3779B97F4A7C15);
        memcpy(element, &key, key_size(size));
        for (size_t k = key_size(size); k < size; k++) {
            element[k] = (unsigned char)(tag >> k % 8 * 8);
        }
    }
    return elements;
}

static inline struct elements elements_copy(const struct elements *from)
{
    struct elements copy = { guarded_create(from->array.size, 0), from->count, from->size };
    memcpy(copy.array.at, from->array.at, from->array.size);
    return copy;
}

static inline unsigned char *element_at(const struct elements *elements, size_t index)
{
    return elements->array.at + index * elements->size;
}

static inline void elements_check_equal(const struct elements *a, const struct elements *b)
{
    CHECK_EQ(memcmp(a->array.at, b->array.at, a->array.size), 0);
    guarded_check(&a->array);
    guarded_check(&b->array);
}

static inline void elements_destroy(struct elements *elements)
{
    guarded_destroy(&elements->array);
}

/* --- A predicate ------------------------------------------------------------------------- */

/* An element passes if its key modulo 8 is less than below. */
struct rule {
    size_t size;
    uint64_t below;
    _Atomic(uint64_t) tested; /* number of elements */
    uint64_t fail_after;      /* number of elements; 0: never */
    uint64_t stop_after;
    weft_stop stop;
};

static inline bool rule_passes(const struct rule *rule, const void *element)
{
    return record_key(element, rule->size) % 8 < rule->below;
}

/* A weft_test_fn. */
static inline int rule_test(const void *elements, size_t count, bool *answers, void *arg)
{
    struct rule *rule = arg;
    CHECK(count > 0);
    CHECK_LE(count, WEFT_ELEMENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        answers[i] = rule_passes(rule, (const char *)elements + i * rule->size);
    }
    uint64_t tested = atomic_fetch_add(&rule->tested, count) + count;
    if (rule->stop_after != 0 && tested > rule->stop_after) {
        weft_stop_set(&rule->stop);
    }
    return rule->fail_after != 0 && tested > rule->fail_after ? -77 : 0;
}

/* --- All small inputs, some large ones ----------------------------------------------------- */

/* Chooses all small inputs and some of the others. */
static inline bool is_chosen(size_t number, size_t count, size_t size)
{
    if (count <= test_scale(100)) {
        return true;
    }
    size_t step = test_is_sanitized() ? 167 : 53;
    return number % step == 0 && count * size <= test_scale(8 << 20);
}

/* Calls the check with the chosen counts, sizes and patterns. */
static inline void for_some_inputs(void (*check)(enum pattern pattern, size_t count, size_t size))
{
    for (size_t k = 0; k < ELEMENT_SIZES; k++) {
        for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
            for (size_t i = 0; i < INPUT_COUNTS; i++) {
                if (is_chosen(i * 3 + pattern * 5 + k * 7, input_counts[i], element_sizes[k])) {
                    check((enum pattern)pattern, input_counts[i], element_sizes[k]);
                }
            }
        }
    }
}

#endif
