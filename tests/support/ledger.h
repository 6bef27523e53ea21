/* SPDX-License-Identifier: MIT */
/*
 * ledger.h - an allocator that counts, and fails at a call of the test's choice.
 */
#ifndef TEST_LEDGER_H
#define TEST_LEDGER_H

#include <stdint.h>

#include <weft/base.h>

struct ledger {
    _Atomic(int64_t) bytes; /* allocated and not freed */
    _Atomic(int64_t) calls;
    int64_t fail_at; /* this call fails, from 1; 0: none does */
};

/* Writes into the ledger for as long as anything allocated by it exists. */
weft_allocator ledger_allocator(struct ledger *ledger);

#endif
