/* SPDX-License-Identifier: MIT */
/*
 * batch.c - events that are told together.
 *
 * Among a thousand connections, what one event needs is not in the cache: its source, the
 * operation that waits there, the task, and soon the frames of the task. If they were told one
 * by one, each of these would be waited for, one after the other. So all sources are asked for
 * first, then all who wait at them, and the processor fetches them side by side. They are still
 * there when the tasks run, if not many more events come before: max_io_completions.
 */
#include "io/batch.h"

#include "io/source.h"

void wf_batch_end(struct wf_batch *batch)
{
    for (unsigned i = 0; i < batch->count; i++) {
        wf_source_fetch(batch->io, batch->told[i].tag);
    }
    for (unsigned i = 0; i < batch->count; i++) {
        wf_source_fetch_waiter(batch->io, batch->told[i].tag);
    }
    for (unsigned i = 0; i < batch->count; i++) {
        wf_source_fire(batch->io, batch->told[i].tag, batch->told[i].events);
    }
    batch->count = 0;
}
