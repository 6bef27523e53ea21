/* SPDX-License-Identifier: MIT */
/*
 * weft/element.h - callbacks on array elements, for the parallel algorithms.
 *
 *     WEFT_TEST(is_even, int, number, *number % 2 == 0)
 *     WEFT_MAP(half_of, int, number, double, *number / 2.0)
 *     WEFT_KEY(age_of, struct person, person, person->age)
 *
 *     err = weft_count_if(numbers, count, sizeof *numbers, is_even, NULL, &evens, NULL);
 *
 * An algorithm calls its callback with many elements at a time, not once per element. The loop
 * over the elements is compiled together with the operation, so the cost of the indirect call
 * is negligible. The macros write that loop. Written by hand it is:
 *
 *     static int is_even(const void *elements, size_t count, bool *answers, void *arg)
 *     {
 *         const int *numbers = (const int *)elements;
 *         (void)arg;
 *         for (size_t i = 0; i < count; i++) {
 *             answers[i] = numbers[i] % 2 == 0;
 *         }
 *         return 0;
 *     }
 *
 * Callbacks run on several threads at the same time. They may suspend, unless a stackless task
 * has called the algorithm (weft/par.h). They return 0 or an error. An error ends the algorithm
 * and becomes its result.
 */
#ifndef WEFT_ELEMENT_H
#define WEFT_ELEMENT_H

#include <string.h>

#include "base.h"

/* Maximum number of elements per call of a callback. */
#define WEFT_ELEMENTS_MAX 1024

/* Tests each element: sets answers[i] to whether element i passes. */
typedef int (*weft_test_fn)(const void *elements, size_t count, bool *answers, void *arg);

/* Computes the key of each element. weft_key_i64() and weft_key_f64() convert signed and
 * floating-point numbers to keys. */
typedef int (*weft_key_fn)(const void *elements, size_t count, uint64_t *keys, void *arg);

/* Maps each element to an element of the output array. */
typedef int (*weft_map_fn)(const void *elements, size_t count, void *to, void *arg);

/* Maps each pair of elements, one from each of two arrays, to an element of the output array. */
typedef int (*weft_map2_fn)(const void *a, const void *b, size_t count, void *to, void *arg);

/*
 * Compares two elements. Returns a negative number, zero, or a positive number, as for
 * qsort_r(). It is called on several threads at the same time. It must neither keep the
 * pointers nor suspend. If it is inconsistent, the resulting order is unspecified, but each
 * element is still present exactly once.
 */
typedef int (*weft_compare_fn)(const void *a, const void *b, void *arg);

/*
 * Defines a weft_test_fn from a condition. In the condition, element is a type const *, and arg
 * is the pointer that was passed to the algorithm.
 */
#define WEFT_TEST(name, type, element, condition)                                                  \
    WEFT_ELEMENTS_DEFINE(name, type, element, bool, bool, condition)

/* Defines a weft_key_fn from an expression, like WEFT_TEST(). */
#define WEFT_KEY(name, type, element, key)                                                         \
    WEFT_ELEMENTS_DEFINE(name, type, element, uint64_t, uint64_t, key)

/* Defines a weft_map_fn that maps each element to a to_type, like WEFT_TEST(). */
#define WEFT_MAP(name, type, element, to_type, value)                                              \
    WEFT_ELEMENTS_DEFINE(name, type, element, void, to_type, value)

/*
 * Defines a weft_map2_fn that maps each pair of elements to a to_type, like WEFT_TEST(): a is
 * an a_type const *, and b is a b_type const *.
 */
#define WEFT_MAP2(name, a_type, a, b_type, b, to_type, value)                                      \
    static inline int name(const void *weft_a, const void *weft_b, size_t weft_count,              \
                           void *weft_made, void *arg)                                             \
    {                                                                                              \
        a_type const *a = (a_type const *)weft_a;                                                  \
        a_type const *weft_end = a + weft_count;                                                   \
        b_type const *b = (b_type const *)weft_b;                                                  \
        to_type *weft_to = (to_type *)weft_made;                                                   \
        (void)arg;                                                                                 \
        for (; a < weft_end; a++, b++) {                                                           \
            *weft_to++ = (value);                                                                  \
        }                                                                                          \
        return 0;                                                                                  \
    }

/* Implementation of the macros above. */
#define WEFT_ELEMENTS_DEFINE(name, type, element, passed, made, value)                             \
    static inline int name(const void *weft_elements, size_t weft_count, passed *weft_made,        \
                           void *arg)                                                              \
    {                                                                                              \
        type const *element = (type const *)weft_elements;                                         \
        type const *weft_end = element + weft_count;                                               \
        made *weft_to = (made *)weft_made;                                                         \
        (void)arg;                                                                                 \
        for (; element < weft_end; element++) {                                                    \
            *weft_to++ = (value);                                                                  \
        }                                                                                          \
        return 0;                                                                                  \
    }

/* Returns a key that sorts like the signed number. */
static inline uint64_t weft_key_i64(int64_t number)
{
    return (uint64_t)number ^ (UINT64_C(1) << 63);
}

/* Returns a key that sorts like the floating-point number, in the IEEE 754 total order. */
static inline uint64_t weft_key_f64(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    uint64_t sign = UINT64_C(1) << 63;
    return (bits & sign) != 0 ? ~bits : bits | sign;
}

#endif
