/* SPDX-License-Identifier: MIT */
/*
 * stop.c - cancel flag, polled by parallel algorithms.
 */
#include "par/stop.h"

/* Returns the flag as an atomic. The public type has no atomics, for C++. */
static _Atomic(uint32_t) *word_of(const weft_stop *stop)
{
    return (_Atomic(uint32_t) *)(uintptr_t)&stop->set;
}

void weft_stop_set(weft_stop *stop)
{
    /* relaxed: only a request; it publishes no data. */
    wf_store_relaxed(word_of(stop), 1u);
}

bool wf_stop_is_set(const weft_stop *stop)
{
    /* relaxed: only a request; it publishes no data. */
    return stop != NULL && wf_load_relaxed(word_of(stop)) != 0;
}
