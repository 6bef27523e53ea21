/* SPDX-License-Identifier: MIT */
/*
 * fault_chain.h - the signal handlers below ours: a stack that a handler reads at any time.
 *
 * One thread at a time changes it, under the lock of overflow.c. Our handler reads it on a
 * thread that has a fault, without a lock.
 *
 * Edges.
 * [OV1] a change releases the number of handlers, the handler acquires it: it sees them. An entry
 *       is overwritten only after the program has replaced its handler.
 *
 * Checked by tests/model/fault_chain_model.c.
 */
#ifndef WF_SCHED_FAULT_CHAIN_H
#define WF_SCHED_FAULT_CHAIN_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

enum {
    WF_FAULT_CHAIN_MAX = 8, /* different handlers of a program, each installed on top of ours */
};

/* The handlers below ours for one signal. */
struct wf_fault_chain {
    int number;                                 /* constant: the signal */
    _Atomic(uint32_t) count;                    /* written under the lock, read by the handler */
    struct sigaction below[WF_FAULT_CHAIN_MAX]; /* the last one is called first */
};

/* Under the lock: returns the number of handlers. */
static inline uint32_t wf_fault_chain_count(const struct wf_fault_chain *chain)
{
    /* relaxed: written under the lock only. */
    return wf_load_relaxed(&chain->count);
}

/* Under the lock: puts a handler at this position, which is at most the number of handlers, and
 * removes those above it. */
static inline void wf_fault_chain_put(struct wf_fault_chain *chain, uint32_t position,
                                      const struct sigaction *handler)
{
    chain->below[position] = *handler;
    /* release [OV1]: the handlers below ours. */
    wf_store_release(&chain->count, position + 1);
}

/* Under the lock: removes the last handler, which exists. */
static inline void wf_fault_chain_pop(struct wf_fault_chain *chain)
{
    /* release [OV1]: the handlers below ours. */
    wf_store_release(&chain->count, wf_fault_chain_count(chain) - 1);
}

/* Any thread: returns the handler at this level, 0 for the last one; NULL if there is none. */
static inline struct sigaction *wf_fault_chain_at(struct wf_fault_chain *chain, uint32_t level)
{
    /* acquire [OV1]: the handlers below ours. */
    uint32_t count = wf_load_acquire(&chain->count);
    return level < count ? &chain->below[count - 1 - level] : NULL;
}

#endif
