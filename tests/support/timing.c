/* SPDX-License-Identifier: MIT */
/*
 * timing.c - by the clock and the futex of the library.
 */
#include "timing.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/futex.h"
#include "test.h"

int64_t test_race_end(void)
{
    uint64_t ms = test_scale(test_is_sanitized() ? 2000 : 300);
    return wf_clock_now() + (int64_t)ms * 1000000;
}

void test_spin_for(_Atomic(uint64_t) *word, uint64_t n)
{
    for (int i = 0; i < 300 && atomic_load(word) < n; i++) {
        wf_cpu_relax();
    }
    test_wait_for(word, n);
}

void test_wait_ns(int64_t ns)
{
    _Atomic(uint32_t) word = 0; /* Nobody wakes it. */
    int64_t until = wf_clock_real() + ns;
    while (wf_clock_real() < until) {
        (void)wf_futex_wait(&word, 0, until);
    }
}
