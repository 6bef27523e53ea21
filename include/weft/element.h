/* SPDX-License-Identifier: MIT */
/*
 * weft/element.h - functions of the elements of an array, for the algorithms.
 *
 *     WEFT_TEST(is_even, int, number, *number % 2 == 0)
 *     WEFT_MAP(half_of, int, number, double, *number / 2.0)
 *     WEFT_KEY(age_of, struct person, person, person->age)
 *
 *     err = weft_count_if(numbers, count, sizeof *numbers, is_even, NULL, &evens, NULL);
 *
 * An algorithm calls its function with many elements at a time, not with each of them: so
 * a loop is compiled with what it does, and the call costs nothing. The macros write that
 * loop. By hand it is:
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
 * Such functions are called on several threads at once, and may wait, but not if a stackless
 * task has called the algorithm (weft/par.h). They return 0, or an error, which ends the
 * whole and is its result.
 */
#ifndef WEFT_ELEMENT_H
#define WEFT_ELEMENT_H

#include <string.h>

#include "base.h"

/* How many elements a function is called with at most. */
#define WEFT_ELEMENTS_MAX 1024

/* Says for each element whether it is meant. */
typedef int (*weft_test_fn)(const void *elements, size_t count, bool *answers, void *arg);

/* Makes the key of each element. weft_key_i64() and weft_key_f64() are for others than
 * unsigned numbers. */
typedef int (*weft_key_fn)(const void *elements, size_t count, uint64_t *keys, void *arg);

/* Makes something else of each element, or the same. */
typedef int (*weft_map_fn)(const void *elements, size_t count, void *to, void *arg);

/* Makes something of two elements, one from each of two arrays. */
typedef int (*weft_map2_fn)(const void *a, const void *b, size_t count, void *to, void *arg);

/*
 * Compares two elements: negative, zero, or positive, as for qsort_r(). It is called on
 * several threads at once, and must not keep the pointers, nor suspend. If it contradicts
 * itself, the order is any, but each element is still there once.
 */
typedef int (*weft_compare_fn)(const void *a, const void *b, void *arg);

/*
 * Defines a weft_test_fn from a condition. In it, element is a type const *, and arg is the
 * pointer that the algorithm was given.
 */
#define WEFT_TEST(name, type, element, condition)                                                  \
    WEFT_ELEMENTS_DEFINE(name, type, element, bool, bool, condition)

/* Defines a weft_key_fn, likewise. */
#define WEFT_KEY(name, type, element, key)                                                         \
    WEFT_ELEMENTS_DEFINE(name, type, element, uint64_t, uint64_t, key)

/* Defines a weft_map_fn that makes a to_type of each, likewise. */
#define WEFT_MAP(name, type, element, to_type, value)                                              \
    WEFT_ELEMENTS_DEFINE(name, type, element, void, to_type, value)

/*
 * Defines a weft_map2_fn that makes a to_type of each two, likewise: a is an a_type const *,
 * and b a b_type const *.
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

/* What follows is how. */
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

/* A key that has the order of a signed number. */
static inline uint64_t weft_key_i64(int64_t number)
{
    return (uint64_t)number ^ (UINT64_C(1) << 63);
}

/* A key that has the order of a floating-point number; the total one of IEEE 754. */
static inline uint64_t weft_key_f64(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    uint64_t sign = UINT64_C(1) << 63;
    return (bits & sign) != 0 ? ~bits : bits | sign;
}

#endif
