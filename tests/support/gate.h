/* SPDX-License-Identifier: MIT */
/*
 * gate.h - a future that the test opens.
 *
 * It counts what is done to it. A count goes up once the waker is in its place:
 * a test that has seen it and opens the gate wakes whoever waits.
 */
#ifndef TEST_GATE_H
#define TEST_GATE_H

#include <stdint.h>

#include <weft/future.h>

enum cancel_mode {
    CANCEL_AT_ONCE, /* opens it, with WEFT_ECANCELED */
    CANCEL_LATER,   /* needs time: it lasts until the test opens the gate */
};

struct gate {
    weft_future future;
    enum cancel_mode mode;
    int result; /* before open is set */
    _Atomic(uint32_t) open;
    _Atomic(weft_waker *) waker;
    _Atomic(uint64_t) polls;
    _Atomic(uint64_t) cancels;
};

/* A closed gate. */
struct gate gate_make(enum cancel_mode mode);

/* Any thread, once: the future is ready, with this result. */
void gate_open(struct gate *gate, int result);

/* Drops the waker of a gate that is not polled any more. */
void gate_fini(struct gate *gate);

#endif
