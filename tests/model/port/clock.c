/* SPDX-License-Identifier: MIT */
/*
 * clock.c - base/clock.h in the model: time stands still, or is the test's.
 */
#include "base/clock.h"

#include <weft/clock.h>

#include "mc.h"

int64_t wf_clock_now(void)
{
    return mc_clock_now();
}

int64_t wf_clock_real(void)
{
    return mc_clock_now();
}

int64_t wf_clock_at(int64_t real)
{
    return real;
}

int wf_clock_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline)
{
    return mc_futex_wait(word, expected, deadline);
}

int64_t wf_clock_sleep_begin(struct wf_clock_sleeper *self, int64_t deadline)
{
    self->deadline = deadline;
    return deadline;
}

bool wf_clock_sleep_end(struct wf_clock_sleeper *self)
{
    return self->deadline != WF_NEVER && mc_clock_now() >= self->deadline;
}

weft_time weft_now(void)
{
    return mc_clock_now();
}

weft_time weft_time_add(weft_time time, weft_time duration)
{
    weft_time sum;
    return __builtin_add_overflow(time, duration, &sum) ? WEFT_NEVER : sum;
}

weft_time weft_after(weft_time duration)
{
    return weft_time_add(weft_now(), duration);
}
