/* SPDX-License-Identifier: MIT */
/*
 * futex.c - base/futex.h in the model.
 */
#include "base/futex.h"

#include <stddef.h>

#include "mc.h"

int wf_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline)
{
    return mc_futex_wait(word, expected, deadline);
}

void wf_futex_wake(_Atomic(uint32_t) *word, int count)
{
    (void)mc_futex_wake(word, count);
}

const void *wf_futex_robust_list(void)
{
    return NULL;
}

bool wf_futex_robust_held(const void *list)
{
    (void)list;
    return false;
}
