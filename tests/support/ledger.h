/* SPDX-License-Identifier: MIT */
/*
 * ledger.h - counting allocator that fails at a call of the test's choice.
 */
#ifndef TEST_LEDGER_H
#define TEST_LEDGER_H

#include <stdint.h>

#include <weft/base.h>

struct ledger {
    _Atomic(int64_t) bytes; /* allocated and not freed */
    _Atomic(int64_t) calls;
    int64_t fail_at; /* number of the failing call, from 1; 0: none */
};

/* Returns an allocator. The ledger must exist as long as anything allocated by it. */
weft_allocator ledger_allocator(struct ledger *ledger);

#endif
