/* SPDX-License-Identifier: MIT */
/*
 * search.c - parallel search for a matching index.
 *
 * To find the first match, a single loop over everything would do, skipping the parts behind a
 * match that was found. But a worker that starts in the middle would work for nothing if the
 * match is near the front. So the search proceeds from the front in rounds, each twice as long
 * as the one before, and workers share each round. A caller that cannot fork searches from the
 * front anyway.
 */
#include "par/search.h"

#include <weft/element.h>

#include "base/atomic.h"
#include "par/pause.h"
#include "sched/job.h"

enum {
    ROUND_FIRST = WEFT_ELEMENTS_MAX,
    ROUND_MAX = 4 << 20, /* a loop of this length amortizes splitting and joining */
};

struct search {
    wf_search_fn look;
    void *arg;
    size_t count;
    bool any;
    _Atomic(size_t) best; /* the lowest match so far, or count; any part lowers it */
};

/* Returns whether there is nothing left to find at or after first. */
static bool is_over(const struct search *search, size_t first)
{
    /* relaxed: an unnecessary search does no harm. */
    size_t best = wf_load_relaxed(&search->best);
    return best <= first || (search->any && best < search->count);
}

static void lower(struct search *search, size_t match)
{
    /* relaxed: only the number matters. The joins make it visible to the caller. */
    size_t best = wf_load_relaxed(&search->best);
    /* relaxed: only the number matters. */
    while (match < best && !wf_cas_weak_relaxed(&search->best, &best, match)) {
    }
}

static int look_at(size_t first, size_t end, void *arg)
{
    struct search *search = arg;
    while (first < end && !is_over(search, first)) {
        size_t next = end - first > WEFT_ELEMENTS_MAX ? first + WEFT_ELEMENTS_MAX : end;
        size_t match = next;
        int err = search->look(first, next, &match, search->arg);
        if (err != 0) {
            return err;
        }
        if (match < next) {
            lower(search, match);
        }
        wf_pause(next - first);
        first = next;
    }
    return 0;
}

static int search_in_rounds(struct search *search, size_t round, size_t *index,
                            const weft_par_options *options)
{
    size_t end = 0;
    while (!is_over(search, end)) {
        size_t first = end;
        end = search->count - first > round ? first + round : search->count;
        int err = weft_for(first, end, look_at, search, options);
        if (err != 0) {
            return err;
        }
        round = round < ROUND_MAX ? 2 * round : round;
    }
    /* relaxed: all parts have been joined. */
    *index = wf_load_relaxed(&search->best);
    return 0;
}

int wf_search_first(size_t count, wf_search_fn look, void *arg, size_t *index,
                    const weft_par_options *options)
{
    struct search search = { .look = look, .arg = arg, .count = count, .best = count };
    size_t round = wf_job_may_fork() ? ROUND_FIRST : count;
    return search_in_rounds(&search, round, index, options);
}

int wf_search_any(size_t count, wf_search_fn look, void *arg, size_t *index,
                  const weft_par_options *options)
{
    struct search search = { .look = look, .arg = arg, .count = count, .best = count };
    search.any = true;
    return search_in_rounds(&search, count, index, options);
}
