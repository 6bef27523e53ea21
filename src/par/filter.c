/* SPDX-License-Identifier: MIT */
/*
 * filter.c - parallel filter and partition by a test.
 *
 * The filter works in rounds. In each round all elements are tested, then those that passed are
 * copied, both in parallel. A round fits into the caches, so memory is read only once. A caller
 * that cannot fork uses short rounds, which fit into the first-level cache, with the results on
 * its stack.
 *
 * The partition tests all elements before it moves any. So an error of the test leaves the
 * array unchanged.
 */
#include "par/array.h"
#include "par/deep.h"
#include "par/pack.h"
#include "par/pause.h"
#include "par/scratch.h"
#include "par/stop.h"
#include "sched/job.h"

enum {
    ROUND_BYTES = 4 << 20,
    ROUND_MIN = 64 * 1024, /* elements, enough to split */
    ROUND_MAX = 1 << 20,
    SCRATCH_HERE = 2048, /* bytes, enough to partition a small array */
};

struct answering {
    struct wf_tested tested;
    size_t offset; /* of the round in the array */
    unsigned char *answers;
};

static int answer(size_t first, size_t end, void *arg)
{
    const struct answering *answering = arg;
    int err = 0;
    while (err == 0 && first < end) {
        size_t next = end - first > WEFT_ELEMENTS_MAX ? first + WEFT_ELEMENTS_MAX : end;
        err = wf_tested_ask(&answering->tested, answering->offset + first, answering->offset + next,
                            answering->answers + first);
        wf_pause(next - first);
        first = next;
    }
    return err;
}

/* Returns the number of elements of a round. */
static size_t round_of(size_t count, size_t size)
{
    size_t round = ROUND_BYTES / size;
    round = round > ROUND_MIN ? round : ROUND_MIN;
    round = round < ROUND_MAX ? round : ROUND_MAX;
    return count < round ? count : round;
}

/* Describes the elements from first to before end, with their test results. */
static struct wf_pack pack_of(const struct wf_tested *tested, size_t first, size_t end,
                              const unsigned char *answers, char *to)
{
    const char *from = tested->base + first * tested->size;
    return (struct wf_pack){ from, end - first, tested->size, answers, to, false };
}

struct filter {
    const struct wf_tested *tested;
    size_t count;
    char *to;
    size_t kept;
    const weft_stop *stop;
};

/* Filters without forking, in rounds of one call of the test. */
static int filter_alone(void *arg)
{
    struct filter *filter = arg;
    const struct wf_tested *tested = filter->tested;
    unsigned char answers[WEFT_ELEMENTS_MAX];
    size_t most = wf_pause_most(WEFT_ELEMENTS_MAX, tested->size);
    size_t end = 0;
    while (end < filter->count) {
        size_t first = end;
        end = wf_pause_next(first, filter->count, most);
        int err = wf_stop_is_set(filter->stop) ? WEFT_ECANCELED
                                               : wf_tested_ask(tested, first, end, answers);
        if (err != 0) {
            return err;
        }
        struct wf_pack pack =
            pack_of(tested, first, end, answers, filter->to + filter->kept * tested->size);
        filter->kept += wf_pack_alone(&pack);
        wf_pause_copied(end - first, tested->size);
    }
    return 0;
}

static int filter_in_rounds(struct answering *answering, struct filter *filter, size_t round)
{
    const struct wf_tested *tested = &answering->tested;
    weft_par_options options = { .stop = filter->stop };
    int err = 0;
    size_t end = 0;
    while (err == 0 && end < filter->count) {
        size_t first = end;
        end = wf_pause_next(first, filter->count, round);
        answering->offset = first;
        err = weft_for(0, end - first, answer, answering, &options);
        if (err == 0) {
            struct wf_pack pack = pack_of(tested, first, end, answering->answers,
                                          filter->to + filter->kept * tested->size);
            err = wf_pack(&pack, &filter->kept, filter->stop);
        }
    }
    return err;
}

static int filter_shared(struct filter *filter, const weft_par_options *options)
{
    const struct wf_tested *tested = filter->tested;
    size_t round = round_of(filter->count, tested->size);
    if (round <= WEFT_ELEMENTS_MAX) {
        unsigned char here[WEFT_ELEMENTS_MAX];
        struct answering answering = { *tested, 0, here };
        return filter_in_rounds(&answering, filter, round);
    }
    struct wf_scratch scratch;
    int err = wf_scratch_init(&scratch, wf_scratch_add(0, round, 1), options);
    if (err == 0) {
        struct answering answering = { *tested, 0, wf_scratch_take(&scratch, round, 1) };
        err = filter_in_rounds(&answering, filter, round);
        wf_scratch_fini(&scratch);
    }
    return err;
}

int weft_filter(const void *base, size_t count, size_t size, weft_test_fn test, void *arg, void *to,
                size_t *kept, const weft_par_options *options)
{
    wf_pause_call();
    struct wf_tested tested = { base, size, test, arg };
    struct filter filter = {
        .tested = &tested, .count = count, .to = to, .stop = wf_stop_of(options)
    };
    int err = wf_array_check_scratch(count, size, options);
    if (err != 0) {
        return err;
    }
    err = wf_job_may_fork() ? filter_shared(&filter, options) : wf_deep_call(filter_alone, &filter);
    if (err == 0) {
        *kept = filter.kept;
    }
    return err;
}

/* --- Partition --------------------------------------------------------------------------- */

struct copy {
    char *to;
    const char *from;
};

static int copy_bytes(size_t first, size_t end, void *arg)
{
    const struct copy *copy = arg;
    wf_pause_copy(copy->to + first, copy->from + first, end - first);
    return 0;
}

size_t wf_partition_scratch(size_t count, size_t size)
{
    return wf_scratch_add(wf_scratch_add(0, count, 1), count, size);
}

static int partition(void *base, size_t count, const struct wf_tested *tested, size_t *passed,
                     const weft_par_options *options)
{
    size_t size = tested->size;
    struct wf_scratch scratch;
    int err = wf_scratch_init(&scratch, wf_partition_scratch(count, size), options);
    if (err != 0) {
        return err;
    }
    struct answering answering = { *tested, 0, wf_scratch_take(&scratch, count, 1) };
    char *other = wf_scratch_take(&scratch, count, size);
    const weft_stop *stop = wf_stop_of(options);
    size_t sum = 0;
    err = weft_for(0, count, answer, &answering, &(weft_par_options){ .stop = stop });
    if (err == 0) {
        struct wf_pack pack = { base, count, size, answering.answers, other, true };
        err = wf_pack(&pack, &sum, stop);
    }
    if (err == 0) {
        struct copy copy = { base, other };
        err = weft_for(0, count * size, copy_bytes, &copy, NULL);
        *passed = sum;
    }
    wf_scratch_fini(&scratch);
    return err;
}

int weft_partition(void *base, size_t count, size_t size, weft_test_fn test, void *arg,
                   size_t *passed, const weft_par_options *options)
{
    wf_pause_call();
    struct wf_tested tested = { base, size, test, arg };
    int err = wf_array_check_scratch(count, size, options);
    if (err != 0) {
        return err;
    }
    if (count == 0) {
        *passed = 0;
        return 0;
    }
    char here[SCRATCH_HERE];
    weft_par_options small = { 0, wf_stop_of(options), here, sizeof here };
    bool is_given = options != NULL && options->scratch != NULL;
    if (!is_given && weft_array_scratch(count, size) <= sizeof here) {
        options = &small;
    }
    return partition(base, count, &tested, passed, options);
}
