/* SPDX-License-Identifier: MIT */
/*
 * range.c - parallel range split into parts of fixed maximum length.
 *
 * The range is halved until its parts are small enough. Idle workers steal the largest parts.
 * So a grain that is far too small costs only a few nanoseconds per part, and parts of uneven
 * weight are balanced.
 */
#include "par/range.h"

#include <weft/par.h>

#include "base/assert.h"
#include "par/deep.h"
#include "par/pause.h"

struct part {
    size_t begin;
    size_t end;
    size_t grain;
    wf_range_fn body;
    void *arg;
};

static void run(void *arg)
{
    const struct part *part = arg;
    size_t count = part->end - part->begin;
    if (count <= part->grain) {
        part->body(part->begin, part->end, part->arg);
        wf_pause(count);
        return;
    }
    struct part left = *part;
    struct part right = *part;
    left.end = right.begin = part->begin + count / 2;
    weft_join2(run, &left, run, &right);
}

void wf_range_each(size_t count, size_t grain, wf_range_fn body, void *arg)
{
    WF_ASSERT(grain > 0);
    if (count > 0) {
        struct part all = { .end = count, .grain = grain, .body = body, .arg = arg };
        wf_deep_run(run, &all);
    }
}
