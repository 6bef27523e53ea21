/* SPDX-License-Identifier: MIT */
/*
 * merge.c - parallel merge of two sorted arrays.
 *
 * The merge is split in the middle of the result: a binary search finds how many elements of
 * each array belong before the cut. Then both sides are merged in parallel and split again.
 * Each side has exactly the elements that the cut has left it. So each element comes out once,
 * whatever the comparison returns.
 *
 * Rejected. Searching for all cuts at the same time, each in the whole arrays: it is as fast,
 * but two searches may disagree.
 */
#include <weft/order.h>
#include <weft/par.h>
#include <weft/sort.h>

#include "par/deep.h"
#include "par/options.h"
#include "par/pause.h"
#include "sched/job.h"

enum {
    GRAIN = 4 * 1024, /* elements that are merged serially */
};

struct merge {
    size_t size;
    weft_compare_fn compare;
    void *arg;
    struct wf_stopper stopper;
};

struct part {
    struct merge *merge;
    const char *a;
    const char *b;
    char *to;
    size_t a_count;
    size_t b_count;
};

/* --- Serial merge ---------------------------------------------------------------------- */

static void copy(char *to, const char *from, const char *end)
{
    if (from < end) {
        wf_pause_copy(to, from, (size_t)(end - from));
    }
}

/* Inlined for constant sizes. The result of the comparison becomes an index, since a branch
 * would be mispredicted half of the time. */
static inline __attribute__((always_inline)) void merge_of_size(const struct part *part,
                                                                size_t size)
{
    const struct merge *merge = part->merge;
    const char *a = part->a;
    const char *b = part->b;
    const char *a_end = a + part->a_count * size;
    const char *b_end = b + part->b_count * size;
    char *to = part->to;
    size_t most = wf_pause_most(WF_PAUSE_CALLS, size);
    size_t calls = 0;
    while (a < a_end && b < b_end) {
        if (++calls == most) {
            wf_pause_copied(calls, size);
            calls = 0;
        }
        size_t from_b = weft_sort_mask(merge->compare(b, a, merge->arg) < 0);
        wf_pause_element(to, weft_sort_pick(from_b, a, b), size);
        a += size & ~from_b;
        b += size & from_b;
        to += size;
    }
    copy(to, a, a_end);
    copy(to + (a_end - a), b, b_end);
    wf_pause_copied(calls, size);
}

static void merge_few(const struct part *part)
{
    struct merge *merge = part->merge;
    if (wf_stopper_is_set(&merge->stopper)) {
        return;
    }
    if (part->a_count == 0 || part->b_count == 0) {
        copy(part->to, part->a, part->a + part->a_count * merge->size);
        copy(part->to, part->b, part->b + part->b_count * merge->size);
    } else if (merge->size == 4) {
        merge_of_size(part, 4);
    } else if (merge->size == 8) {
        merge_of_size(part, 8);
    } else if (merge->size == 16) {
        merge_of_size(part, 16);
    } else {
        merge_of_size(part, merge->size);
    }
    wf_job_speak_up();
}

/* --- Parallel merge -------------------------------------------------------------------- */

/* Returns how many of the given number of elements at the front of the result come from a. */
static size_t cut(const struct part *part, size_t first)
{
    const struct merge *merge = part->merge;
    size_t low = first > part->b_count ? first - part->b_count : 0;
    size_t high = first < part->a_count ? first : part->a_count;
    while (low < high) {
        size_t from_a = low + (high - low) / 2;
        size_t from_b = first - from_a;
        const char *next = part->a + from_a * merge->size;
        const char *last = part->b + (from_b - 1) * merge->size;
        if (merge->compare(last, next, merge->arg) < 0) {
            high = from_a;
        } else {
            low = from_a + 1;
        }
        wf_pause(1);
    }
    return low;
}

static void merge_part(void *arg)
{
    const struct part *part = arg;
    size_t count = part->a_count + part->b_count;
    if (count <= GRAIN || wf_stopper_is_set(&part->merge->stopper)) {
        merge_few(part);
        return;
    }
    size_t size = part->merge->size;
    struct part left = *part;
    struct part right = *part;
    left.a_count = cut(part, count / 2);
    left.b_count = count / 2 - left.a_count;
    right.a += left.a_count * size;
    right.b += left.b_count * size;
    right.to += count / 2 * size;
    right.a_count -= left.a_count;
    right.b_count -= left.b_count;
    weft_join2(merge_part, &left, merge_part, &right);
}

int weft_merge(const void *a, size_t a_count, const void *b, size_t b_count, size_t size,
               weft_compare_fn compare, void *arg, void *to, const weft_par_options *options)
{
    wf_pause_call();
    size_t count;
    if (__builtin_add_overflow(a_count, b_count, &count) || !wf_options_fit(count, size)) {
        return -EINVAL;
    }
    if (count == 0) {
        return 0;
    }
    struct merge merge = { .size = size, .compare = compare, .arg = arg };
    merge.stopper.stop = wf_stop_of(options);
    struct part all = { &merge, a, b, to, a_count, b_count };
    /* An empty array may be NULL, but its pointer is still advanced, by 0. */
    all.a = a_count > 0 ? all.a : all.b;
    all.b = b_count > 0 ? all.b : all.a;
    bool silent = wf_job_begin_silently();
    wf_deep_run(merge_part, &all);
    wf_job_end_silently(silent);
    return wf_stopper_result(&merge.stopper);
}
