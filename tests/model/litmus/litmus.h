/* SPDX-License-Identifier: MIT */
/*
 * litmus.h - atomic operations with an order that is known only at run time.
 *
 * One shape of a litmus test is run with many orders. The compiler wants to know
 * an order when it compiles, so each operation is a switch.
 */
#ifndef LITMUS_H
#define LITMUS_H

#include <stdatomic.h>

#include "mc.h"

enum {
    RLX = memory_order_relaxed,
    ACQ = memory_order_acquire,
    REL = memory_order_release,
    AR = memory_order_acq_rel,
    SC = memory_order_seq_cst,
    NO = -1, /* no fence */
};

static inline int load(atomic_int *word, int order)
{
    switch (order) {
    case RLX:
        return atomic_load_explicit(word, memory_order_relaxed);
    case ACQ:
        return atomic_load_explicit(word, memory_order_acquire);
    default:
        return atomic_load_explicit(word, memory_order_seq_cst);
    }
}

static inline void store(atomic_int *word, int value, int order)
{
    switch (order) {
    case RLX:
        atomic_store_explicit(word, value, memory_order_relaxed);
        break;
    case REL:
        atomic_store_explicit(word, value, memory_order_release);
        break;
    default:
        atomic_store_explicit(word, value, memory_order_seq_cst);
        break;
    }
}

static inline int exchange(atomic_int *word, int value, int order)
{
    switch (order) {
    case RLX:
        return atomic_exchange_explicit(word, value, memory_order_relaxed);
    case ACQ:
        return atomic_exchange_explicit(word, value, memory_order_acquire);
    case REL:
        return atomic_exchange_explicit(word, value, memory_order_release);
    case AR:
        return atomic_exchange_explicit(word, value, memory_order_acq_rel);
    default:
        return atomic_exchange_explicit(word, value, memory_order_seq_cst);
    }
}

static inline int fetch_add(atomic_int *word, int value, int order)
{
    switch (order) {
    case RLX:
        return atomic_fetch_add_explicit(word, value, memory_order_relaxed);
    case ACQ:
        return atomic_fetch_add_explicit(word, value, memory_order_acquire);
    case REL:
        return atomic_fetch_add_explicit(word, value, memory_order_release);
    case AR:
        return atomic_fetch_add_explicit(word, value, memory_order_acq_rel);
    default:
        return atomic_fetch_add_explicit(word, value, memory_order_seq_cst);
    }
}

/* Returns what was found; the failure order is the acquire part of order. */
static inline int cas(atomic_int *word, int expected, int desired, int order)
{
    switch (order) {
    case RLX:
        atomic_compare_exchange_strong_explicit(word, &expected, desired, memory_order_relaxed,
                                                memory_order_relaxed);
        break;
    case ACQ:
        atomic_compare_exchange_strong_explicit(word, &expected, desired, memory_order_acquire,
                                                memory_order_acquire);
        break;
    case REL:
        atomic_compare_exchange_strong_explicit(word, &expected, desired, memory_order_release,
                                                memory_order_relaxed);
        break;
    case AR:
        atomic_compare_exchange_strong_explicit(word, &expected, desired, memory_order_acq_rel,
                                                memory_order_acquire);
        break;
    default:
        atomic_compare_exchange_strong_explicit(word, &expected, desired, memory_order_seq_cst,
                                                memory_order_seq_cst);
        break;
    }
    return expected;
}

static inline void fence(int order)
{
    switch (order) {
    case ACQ:
        atomic_thread_fence(memory_order_acquire);
        break;
    case REL:
        atomic_thread_fence(memory_order_release);
        break;
    case AR:
        atomic_thread_fence(memory_order_acq_rel);
        break;
    case SC:
        atomic_thread_fence(memory_order_seq_cst);
        break;
    default:
        break;
    }
}

#endif
