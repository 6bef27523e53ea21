/* SPDX-License-Identifier: MIT */
/*
 * fiber_crowd.c - memory of many waiting fibers: each costs one page of stack and half a
 * kilobyte in addition, whatever the kernel's limit on mappings.
 */
#include <stdatomic.h>
#include <stdio.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

enum {
    BYTES_MAX = 4096 + 512,
    FIRST = 1000, /* started first, so that one-time allocations do not count */
};

static _Atomic(uint64_t) waiting;
static _Atomic(uint64_t) right;

/* Waits with data in its frame until the runtime ends. */
static int wait_until_canceled(void *arg)
{
    volatile uint64_t frame[4] = { (uintptr_t)arg, 1, 2, 3 };
    atomic_fetch_add(&waiting, 1);
    CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ECANCELED);
    atomic_fetch_add(&right, frame[0] == (uintptr_t)arg && frame[1] + frame[2] == frame[3]);
    return 0;
}

struct crowd {
    uint64_t first;
    uint64_t end;
};

static int start_fibers(void *arg)
{
    const struct crowd *crowd = arg;
    for (uint64_t i = crowd->first; i < crowd->end; i++) {
        CHECK_EQ(weft_go(NULL, wait_until_canceled, (void *)(uintptr_t)i), 0);
        if (i % 64 == 0) {
            CHECK_EQ(weft_yield(), 0);
        }
    }
    return 0;
}

static void add_fibers(weft_runtime *rt, uint64_t first, uint64_t end)
{
    struct crowd crowd = { .first = first, .end = end };
    CHECK_EQ(test_run(rt, start_fibers, &crowd), 0);
    test_wait_for(&waiting, end);
}

static void each_waiting_fiber_costs_one_page_of_stack(void)
{
    uint64_t count = test_scale(10000);
    weft_runtime *rt = test_start(test_workers(2));
    add_fibers(rt, 0, FIRST);
    size_t before = test_rss_bytes();
    add_fibers(rt, FIRST, FIRST + count);
    double bytes = ((double)test_rss_bytes() - (double)before) / (double)count;
    printf("%llu fibers wait: %.0f bytes each\n", (unsigned long long)count, bytes);
    if (!test_is_sanitized()) {
        CHECK_LE((int64_t)bytes, BYTES_MAX);
    }
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&right), FIRST + count);
}

TEST_MAIN({ TEST_NATIVE(each_waiting_fiber_costs_one_page_of_stack, "takes memory itself") })
