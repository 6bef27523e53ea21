/* SPDX-License-Identifier: MIT */
/*
 * gate.c - future with one waker at a time. Opening sets the flag and then wakes; a poll stores
 * its waker and then checks the flag. So one of the two sees the other.
 */
#include "gate.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

void gate_open(struct gate *gate, int result)
{
    gate->result = result;
    atomic_store(&gate->open, 1);
    weft_waker *waker = atomic_exchange(&gate->waker, NULL);
    if (waker != NULL) {
        weft_waker_fire(waker);
    }
}

void gate_fini(struct gate *gate)
{
    weft_waker_drop(atomic_exchange(&gate->waker, NULL));
}

/* Stores a waker. Returns false if the gate was opened meanwhile. */
static bool gate_wait(struct gate *gate)
{
    weft_waker_drop(atomic_exchange(&gate->waker, weft_waker_current()));
    return atomic_load(&gate->open) == 0;
}

static int gate_poll(weft_future *future)
{
    struct gate *gate = (struct gate *)future;
    bool waits = atomic_load(&gate->open) == 0 && gate_wait(gate);
    (void)atomic_fetch_add(&gate->polls, 1);
    if (waits) {
        return WEFT_PENDING;
    }
    weft_waker_drop(atomic_exchange(&gate->waker, NULL));
    return gate->result;
}

static bool gate_cancel(weft_future *future)
{
    struct gate *gate = (struct gate *)future;
    bool at_once = gate->mode == CANCEL_AT_ONCE;
    bool ended = at_once || !gate_wait(gate);
    (void)atomic_fetch_add(&gate->cancels, 1);
    if (at_once) {
        gate->result = WEFT_ECANCELED;
        atomic_store(&gate->open, 1);
    }
    return ended;
}

struct gate gate_make(enum cancel_mode mode)
{
    static const weft_future_ops ops = { .poll = gate_poll, .cancel = gate_cancel };
    return (struct gate){ .future.ops = &ops, .mode = mode };
}
