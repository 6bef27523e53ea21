/* SPDX-License-Identifier: MIT */
/*
 * gate.h - future that the test completes.
 *
 * It counts polls and cancels. A count is incremented once the waker is stored: a test that has
 * seen the count and opens the gate wakes the waiter.
 */
#ifndef TEST_GATE_H
#define TEST_GATE_H

#include <stdint.h>

#include <weft/future.h>

enum cancel_mode {
    CANCEL_AT_ONCE, /* completes it with WEFT_ECANCELED */
    CANCEL_LATER,   /* needs time: stays pending until the test opens the gate */
};

struct gate {
    weft_future future;
    enum cancel_mode mode;
    int result; /* written before open is set */
    _Atomic(uint32_t) open;
    _Atomic(weft_waker *) waker;
    _Atomic(uint64_t) polls;
    _Atomic(uint64_t) cancels;
};

/* Returns a closed gate. */
struct gate gate_make(enum cancel_mode mode);

/* Any thread, once: completes the future with this result. */
void gate_open(struct gate *gate, int result);

/* Drops the waker of a gate that is no longer polled. */
void gate_fini(struct gate *gate);

#endif
