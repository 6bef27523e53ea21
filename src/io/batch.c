/* SPDX-License-Identifier: MIT */
/*
 * batch.c - delivery of readiness events in batches, with prefetching.
 *
 * With a thousand connections, the data that one event needs is not in the cache: its source,
 * the waiting operation, the task, and soon the stack frames of the task. If events were
 * delivered one by one, each would cost several cache misses in sequence. So a batch first
 * prefetches all sources, then all their waiters, and the processor fetches them in parallel.
 * The data is still in the cache when the tasks run, unless many more events come first.
 * max_io_completions limits their number.
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
