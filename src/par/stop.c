/* SPDX-License-Identifier: MIT */
/*
 * stop.c - a request to stop.
 */
#include "par/stop.h"

/* The public type has no atomics in it, for C++. */
static _Atomic(uint32_t) *word_of(const weft_stop *stop)
{
    return (_Atomic(uint32_t) *)(uintptr_t)&stop->set;
}

void weft_stop_set(weft_stop *stop)
{
    /* relaxed: a request; nothing comes with it. */
    wf_store_relaxed(word_of(stop), 1u);
}

bool wf_stop_is_set(const weft_stop *stop)
{
    /* relaxed: a request; nothing comes with it. */
    return stop != NULL && wf_load_relaxed(word_of(stop)) != 0;
}
