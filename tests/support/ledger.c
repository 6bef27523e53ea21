/* SPDX-License-Identifier: MIT */
/*
 * ledger.c - counting allocator.
 */
#include "ledger.h"

#include <stdatomic.h>
#include <stdlib.h>

static void *ledger_alloc(void *ctx, size_t size, size_t align)
{
    struct ledger *ledger = ctx;
    if (atomic_fetch_add(&ledger->calls, 1) + 1 == ledger->fail_at) {
        return NULL;
    }
    atomic_fetch_add(&ledger->bytes, (int64_t)size);
    return aligned_alloc(align, (size + align - 1) & ~(align - 1));
}

static void ledger_free(void *ctx, void *ptr, size_t size, size_t align)
{
    struct ledger *ledger = ctx;
    atomic_fetch_sub(&ledger->bytes, (int64_t)size);
    (void)align;
    free(ptr);
}

weft_allocator ledger_allocator(struct ledger *ledger)
{
    return (weft_allocator){ ledger_alloc, ledger_free, ledger };
}
