/* SPDX-License-Identifier: MIT */
/*
 * order.c - how much scratch the functions of weft/order.h need.
 */
#include <weft/order.h>

#include "par/scratch.h"
#include "par/top.h"

size_t weft_order_scratch(size_t count, size_t size)
{
    /* The most of them: a copy of the array, and what weft_nth() needs. */
    return wf_scratch_with_slack(wf_top_scratch(count, size));
}
