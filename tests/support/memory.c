/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "sched/thread.h"
#include "test.h"

static _Atomic(bool) is_limited;
static _Atomic(bool) is_over; /* once one has failed, all do */
static _Atomic(int64_t) left;
static _Atomic(uint64_t) failed;

static bool may_take(void)
{
    if (!atomic_load(&is_limited)) {
        return true;
    }
    int64_t before = atomic_fetch_sub(&left, 1);
    if (before > 0 || (before < 0 && !atomic_load(&is_over))) {
        return true;
    }
    atomic_fetch_add(&failed, 1);
    return false;
}

/* Runs before there is any thread that could read the hook. The first thread can then wait
 * without memory, while other threads use it up. */
__attribute__((constructor)) static void watch_memory(void)
{
    (void)wf_thread_self();
#ifdef WF_DEBUG
    wf_alloc_hook = may_take;
#else
    (void)may_take;
#endif
}

static void limit(uint64_t count, bool to_the_end)
{
    test_must_have_debug();
    atomic_store(&left, (int64_t)count);
    atomic_store(&failed, 0);
    atomic_store(&is_over, to_the_end);
    atomic_store(&is_limited, true);
}

void memory_ends_after(uint64_t count)
{
    limit(count, true);
}

void memory_fails_after(uint64_t count)
{
    limit(count, false);
}

uint64_t memory_mend(void)
{
    atomic_store(&is_limited, false);
    return atomic_load(&failed);
}

int result_without_memory(int (*function)(void *arg), void *arg)
{
    memory_ends_after(0);
    int result = function(arg);
    (void)memory_mend();
    return result;
}

uint64_t memory_sweep(void (*function)(void *arg), void *arg)
{
    for (uint64_t count = 0;; count++) {
        memory_fails_after(count);
        function(arg);
        if (memory_mend() == 0) {
            return count;
        }
    }
}
