/* SPDX-License-Identifier: MIT */
/*
 * find.c - parallel count, find, any, all and none by a test.
 */
#include "base/atomic.h"
#include "par/answers.h"
#include "par/array.h"
#include "par/pause.h"
#include "par/search.h"

/* --- Count ------------------------------------------------------------------------------- */

struct counter {
    struct wf_tested tested;
    _Atomic(size_t) passed; /* every part adds to it */
};

static int count_some(size_t first, size_t end, void *arg)
{
    struct counter *counter = arg;
    unsigned char answers[WEFT_ELEMENTS_MAX];
    size_t passed = 0;
    while (first < end) {
        size_t next = end - first > WEFT_ELEMENTS_MAX ? first + WEFT_ELEMENTS_MAX : end;
        int err = wf_tested_ask(&counter->tested, first, next, answers);
        if (err != 0) {
            return err;
        }
        passed += wf_answers_count(answers, next - first);
        wf_pause(next - first);
        first = next;
    }
    /* relaxed: only the sum matters. The joins make it visible to the caller. */
    (void)wf_fetch_add_relaxed(&counter->passed, passed);
    return 0;
}

int weft_count_if(const void *base, size_t count, size_t size, weft_test_fn test, void *arg,
                  size_t *passed, const weft_par_options *options)
{
    wf_pause_call();
    struct counter counter = { .tested = { base, size, test, arg } };
    int err = wf_array_check(count, size);
    if (err == 0) {
        err = weft_for(0, count, count_some, &counter, options);
    }
    if (err == 0) {
        /* relaxed: all parts have been joined. */
        *passed = wf_load_relaxed(&counter.passed);
    }
    return err;
}

/* --- Find -------------------------------------------------------------------------------- */

struct find {
    struct wf_tested tested;
    size_t count;
    bool wanted; /* the result to look for */
};

static int look_forwards(size_t first, size_t end, size_t *match, void *arg)
{
    const struct find *find = arg;
    unsigned char answers[WEFT_ELEMENTS_MAX];
    int err = wf_tested_ask(&find->tested, first, end, answers);
    if (err == 0) {
        *match = first + wf_answers_first(answers, end - first, find->wanted);
    }
    return err;
}

/* Searches from the end of the array: index 0 is its last element. */
static int look_backwards(size_t first, size_t end, size_t *match, void *arg)
{
    const struct find *find = arg;
    unsigned char answers[WEFT_ELEMENTS_MAX];
    int err = wf_tested_ask(&find->tested, find->count - end, find->count - first, answers);
    size_t last = end - first;
    if (err == 0) {
        last = wf_answers_last(answers, end - first, find->wanted);
    }
    if (last < end - first) {
        *match = end - 1 - last;
    }
    return err;
}

int weft_find_first(const void *base, size_t count, size_t size, weft_test_fn test, void *arg,
                    size_t *index, const weft_par_options *options)
{
    wf_pause_call();
    struct find find = { { base, size, test, arg }, count, true };
    int err = wf_array_check(count, size);
    return err != 0 ? err : wf_search_first(count, look_forwards, &find, index, options);
}

int weft_find_last(const void *base, size_t count, size_t size, weft_test_fn test, void *arg,
                   size_t *index, const weft_par_options *options)
{
    wf_pause_call();
    struct find find = { { base, size, test, arg }, count, true };
    size_t distance;
    int err = wf_array_check(count, size);
    if (err == 0) {
        err = wf_search_first(count, look_backwards, &find, &distance, options);
    }
    if (err == 0) {
        *index = distance < count ? count - 1 - distance : count;
    }
    return err;
}

int weft_find_any(const void *base, size_t count, size_t size, weft_test_fn test, void *arg,
                  size_t *index, const weft_par_options *options)
{
    wf_pause_call();
    struct find find = { { base, size, test, arg }, count, true };
    int err = wf_array_check(count, size);
    return err != 0 ? err : wf_search_any(count, look_forwards, &find, index, options);
}

/* --- Any, all and none --------------------------------------------------------------------- */

/* Sets *answer to said if any element has the wanted test result, otherwise to !said. */
static int decide(struct find find, bool said, bool *answer, const weft_par_options *options)
{
    size_t index;
    int err = wf_array_check(find.count, find.tested.size);
    if (err == 0) {
        err = wf_search_any(find.count, look_forwards, &find, &index, options);
    }
    if (err == 0) {
        *answer = index < find.count ? said : !said;
    }
    return err;
}

int weft_any(const void *base, size_t count, size_t size, weft_test_fn test, void *arg,
             bool *answer, const weft_par_options *options)
{
    wf_pause_call();
    struct find passing = { { base, size, test, arg }, count, true };
    return decide(passing, true, answer, options);
}

int weft_all(const void *base, size_t count, size_t size, weft_test_fn test, void *arg,
             bool *answer, const weft_par_options *options)
{
    wf_pause_call();
    struct find failing = { { base, size, test, arg }, count, false };
    return decide(failing, false, answer, options);
}

int weft_none(const void *base, size_t count, size_t size, weft_test_fn test, void *arg,
              bool *answer, const weft_par_options *options)
{
    wf_pause_call();
    struct find passing = { { base, size, test, arg }, count, true };
    return decide(passing, false, answer, options);
}
