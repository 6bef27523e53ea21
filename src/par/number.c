/* SPDX-License-Identifier: MIT */
/*
 * number.c - parallel sorts of numbers.
 *
 * All numbers are sorted as unsigned numbers, after a transformation of their bits. Flipping
 * the sign bit puts negative numbers below the others. For a negative floating-point number all
 * other bits are flipped as well, since they count backwards.
 */
#include <weft/sort.h>

#include "par/pause.h"
#include "par/radix.h"
#include "par/scratch.h"
#include "par/stop.h"

#define SIGN_32 (UINT64_C(1) << 31)
#define SIGN_64 (UINT64_C(1) << 63)

static const struct wf_radix_order unsigned_order = { 0, 0 };
static const struct wf_radix_order signed_32 = { 0, SIGN_32 };
static const struct wf_radix_order signed_64 = { 0, SIGN_64 };
static const struct wf_radix_order float_32 = { SIGN_32 - 1, SIGN_32 };
static const struct wf_radix_order float_64 = { SIGN_64 - 1, SIGN_64 };

size_t weft_sort_number_scratch(size_t count, size_t size)
{
    return wf_scratch_with_slack(wf_radix_scratch(0, count, size));
}

static int sort_numbers(enum wf_radix_kind kind, struct wf_radix_order order, void *base,
                        size_t count, const weft_par_options *options)
{
    size_t size = kind == WF_RADIX_32 ? 4 : 8;
    if (count < 2) {
        wf_pause_call();
        return 0;
    }
    struct wf_scratch scratch;
    int error = wf_scratch_init(&scratch, wf_radix_scratch(0, count, size), options);
    if (error != 0) {
        return error;
    }
    const weft_stop *stop = wf_stop_of(options);
    wf_radix_sort(kind, order, base, count, &scratch, stop);
    wf_scratch_fini(&scratch);
    return wf_stop_is_set(stop) ? WEFT_ECANCELED : 0;
}

int weft_sort_u32(uint32_t *base, size_t count, const weft_par_options *options)
{
    return sort_numbers(WF_RADIX_32, unsigned_order, base, count, options);
}

int weft_sort_u64(uint64_t *base, size_t count, const weft_par_options *options)
{
    return sort_numbers(WF_RADIX_64, unsigned_order, base, count, options);
}

int weft_sort_i32(int32_t *base, size_t count, const weft_par_options *options)
{
    return sort_numbers(WF_RADIX_32, signed_32, base, count, options);
}

int weft_sort_i64(int64_t *base, size_t count, const weft_par_options *options)
{
    return sort_numbers(WF_RADIX_64, signed_64, base, count, options);
}

int weft_sort_f32(float *base, size_t count, const weft_par_options *options)
{
    return sort_numbers(WF_RADIX_32, float_32, base, count, options);
}

int weft_sort_f64(double *base, size_t count, const weft_par_options *options)
{
    return sort_numbers(WF_RADIX_64, float_64, base, count, options);
}
