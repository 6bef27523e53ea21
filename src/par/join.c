/* SPDX-License-Identifier: MIT */
/*
 * join.c - any number of parallel calls, by recursive halving.
 */
#include <weft/par.h>

#include "par/deep.h"
#include "par/pause.h"

struct calls {
    const weft_call *first;
    size_t count;
};

static void run_calls(void *arg)
{
    const struct calls *calls = arg;
    if (calls->count == 1) {
        calls->first->function(calls->first->arg);
        wf_pause(1);
        return;
    }
    struct calls left = { calls->first, calls->count / 2 };
    struct calls right = { calls->first + left.count, calls->count - left.count };
    weft_join2(run_calls, &left, run_calls, &right);
}

void weft_join_n(const weft_call *calls, size_t count)
{
    wf_pause_call();
    if (count > 0) {
        wf_deep_run(run_calls, &(struct calls){ calls, count });
    }
}
