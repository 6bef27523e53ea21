/* SPDX-License-Identifier: MIT */
/*
 * array.h - common parts of the array algorithms.
 */
#ifndef WF_PAR_ARRAY_H
#define WF_PAR_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include <weft/array.h>

#include "par/options.h"

/* An array and the test that is applied to its elements. */
struct wf_tested {
    const char *base;
    size_t size;
    weft_test_fn test;
    void *arg;
};

/* Returns 0, or -EINVAL if no such array can exist. */
static inline int wf_array_check(size_t count, size_t size)
{
    return wf_options_fit(count, size) ? 0 : -EINVAL;
}

/* Same as wf_array_check(). Also returns -EINVAL if the caller's scratch is too small, whether
 * it is used or not. */
int wf_array_check_scratch(size_t count, size_t size, const weft_par_options *options);

/* Tests the elements from first to before end, at most WEFT_ELEMENTS_MAX of them. */
static inline int wf_tested_ask(const struct wf_tested *tested, size_t first, size_t end,
                                unsigned char *answers)
{
    return tested->test(tested->base + first * tested->size, end - first, (bool *)answers,
                        tested->arg);
}

/* Return the scratch size of an algorithm; see wf_scratch_add(). */
size_t wf_partition_scratch(size_t count, size_t size);
size_t wf_shuffle_scratch(size_t count, size_t size);

#endif
