/* SPDX-License-Identifier: MIT */
/*
 * order.c - scratch size of the functions of weft/order.h.
 */
#include <weft/order.h>

#include "par/scratch.h"
#include "par/top.h"

size_t weft_order_scratch(size_t count, size_t size)
{
    /* weft_top_k() needs the most: a copy of the array, and the scratch of weft_nth(). */
    return wf_scratch_with_slack(wf_top_scratch(count, size));
}
