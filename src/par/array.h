/* SPDX-License-Identifier: MIT */
/*
 * array.h - what the algorithms on arrays have in common.
 */
#ifndef WF_PAR_ARRAY_H
#define WF_PAR_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include <weft/array.h>

#include "par/options.h"

/* The elements of an array, and a test of them. */
struct wf_tested {
    const char *base;
    size_t size;
    weft_test_fn test;
    void *arg;
};

/* 0, or -EINVAL: there is no such array. */
static inline int wf_array_check(size_t count, size_t size)
{
    return wf_options_fit(count, size) ? 0 : -EINVAL;
}

/* The same; and -EINVAL if the caller's scratch is too small, whether it is used or not. */
int wf_array_check_scratch(size_t count, size_t size, const weft_par_options *options);

/* Does the test of the elements from first to before end, WEFT_ELEMENTS_MAX at most. */
static inline int wf_tested_ask(const struct wf_tested *tested, size_t first, size_t end,
                                unsigned char *answers)
{
    return tested->test(tested->base + first * tested->size, end - first, (bool *)answers,
                        tested->arg);
}

/* The sums of what they take; see wf_scratch_add(). */
size_t wf_partition_scratch(size_t count, size_t size);
size_t wf_shuffle_scratch(size_t count, size_t size);

#endif
