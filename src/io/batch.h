/* SPDX-License-Identifier: MIT */
/*
 * batch.h - delivery of readiness events in batches.
 */
#ifndef WF_IO_BATCH_H
#define WF_IO_BATCH_H

#include <stdint.h>

struct wf_io;

enum {
#ifdef WF_MODEL
    WF_BATCH_MAX = 1,
#else
    WF_BATCH_MAX = 32,
#endif
};

struct wf_batch {
    struct wf_io *io;
    unsigned count;
    struct {
        uint64_t tag;
        unsigned events; /* a set of WF_EVENT_* */
    } told[WF_BATCH_MAX];
};

static inline void wf_batch_begin(struct wf_batch *batch, struct wf_io *io)
{
    batch->io = io;
    batch->count = 0;
}

/* Delivers the added events with wf_source_fire(). */
void wf_batch_end(struct wf_batch *batch);

/* Adds an event. Delivers the batch first if it is full. */
static inline void wf_batch_add(struct wf_batch *batch, uint64_t tag, unsigned events)
{
    if (batch->count == WF_BATCH_MAX) {
        wf_batch_end(batch);
    }
    batch->told[batch->count].tag = tag;
    batch->told[batch->count].events = events;
    batch->count++;
}

#endif
