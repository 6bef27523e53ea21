/* SPDX-License-Identifier: MIT */
/*
 * owned.c - which descriptors of the process belong to a stream, listener or socket of weft.
 *
 * One bit for each descriptor, up to the kernel's default limit of 2^20. Descriptors beyond that
 * never count as owned: a mistake of the program goes unnoticed then, but nothing else. The kernel
 * supplies a page of the bitmap when it is first used.
 */
#include "io/owned.h"

#include <stdint.h>

#include "base/atomic.h"

enum {
    WORD_BITS = 64,
    FDS_MAX = 1 << 20,
};

static _Atomic(uint64_t) words[FDS_MAX / WORD_BITS];

static bool is_tracked(int fd)
{
    return fd >= 0 && fd < FDS_MAX;
}

static uint64_t bit_of(int fd)
{
    return UINT64_C(1) << (fd % WORD_BITS);
}

bool wf_owned_claim(int fd)
{
    if (!is_tracked(fd)) {
        return true;
    }
    /* relaxed: a bit, by which nothing else is found. */
    uint64_t before = wf_fetch_or_relaxed(&words[fd / WORD_BITS], bit_of(fd));
    return (before & bit_of(fd)) == 0;
}

void wf_owned_release(int fd)
{
    if (is_tracked(fd)) {
        /* relaxed: as above. The caller closes the descriptor after this. */
        (void)wf_fetch_and_relaxed(&words[fd / WORD_BITS], ~bit_of(fd));
    }
}
