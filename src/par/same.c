/* SPDX-License-Identifier: MIT */
/*
 * same.c - parallel equality and mismatch of two arrays.
 */
#include "par/array.h"
#include "par/pause.h"
#include "par/search.h"

struct pair {
    const char *a;
    const char *b;
    size_t size;
    weft_compare_fn compare;
    void *arg;
};

static bool differs(const struct pair *pair, size_t index)
{
    const char *a = pair->a + index * pair->size;
    const char *b = pair->b + index * pair->size;
    return pair->compare != NULL ? pair->compare(a, b, pair->arg) != 0
                                 : !wf_pause_equal(a, b, pair->size);
}

static int look(size_t first, size_t end, size_t *match, void *arg)
{
    const struct pair *pair = arg;
    size_t offset = first * pair->size;
    size_t bytes = (end - first) * pair->size;
    if (pair->compare == NULL && wf_pause_equal(pair->a + offset, pair->b + offset, bytes)) {
        return 0;
    }
    while (first < end && !differs(pair, first)) {
        first++;
    }
    *match = first;
    return 0;
}

int weft_equal(const void *a, const void *b, size_t count, size_t size, weft_compare_fn compare,
               void *arg, bool *answer, const weft_par_options *options)
{
    wf_pause_call();
    struct pair pair = { a, b, size, compare, arg };
    size_t index;
    int err = wf_array_check(count, size);
    if (err == 0) {
        err = wf_search_any(count, look, &pair, &index, options);
    }
    if (err == 0) {
        *answer = index == count;
    }
    return err;
}

int weft_mismatch(const void *a, const void *b, size_t count, size_t size, weft_compare_fn compare,
                  void *arg, size_t *index, const weft_par_options *options)
{
    wf_pause_call();
    struct pair pair = { a, b, size, compare, arg };
    int err = wf_array_check(count, size);
    return err != 0 ? err : wf_search_first(count, look, &pair, index, options);
}
