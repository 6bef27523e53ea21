/* SPDX-License-Identifier: MIT */
/*
 * libc.c - what else of the C library the code under test must not reach: memory,
 * the clock, futex system calls, and the ways to die.
 *
 * The test is linked with --wrap for each of these (wraps.ld).
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "heap.h"
#include "memory.h"
#include "run.h"
#include "sleep.h"

#define PC __builtin_return_address(0)

#define WRAP(type, name, ...)                                                                      \
    MC_API type __wrap_##name(__VA_ARGS__);                                                        \
    type __wrap_##name(__VA_ARGS__)

enum {
    NS_PER_S = 1000000000,
};

/* --- Memory ----------------------------------------------------------------- */

WRAP(void *, malloc, size_t size)
{
    return mc_self == NULL ? malloc(size) : mc_heap_alloc(size, 1, PC);
}

WRAP(void *, calloc, size_t count, size_t size)
{
    if (mc_self == NULL) {
        return calloc(count, size);
    }
    void *memory = mc_heap_alloc(count * size, 1, PC);
    memset(memory, 0, count * size);
    return memory;
}

WRAP(void *, aligned_alloc, size_t align, size_t size)
{
    return mc_self == NULL ? aligned_alloc(align, size) : mc_heap_alloc(size, align, PC);
}

WRAP(int, posix_memalign, void **out, size_t align, size_t size)
{
    if (mc_self == NULL) {
        return posix_memalign(out, align, size);
    }
    *out = mc_heap_alloc(size, align, PC);
    return 0;
}

WRAP(void, free, void *memory)
{
    if (mc_self == NULL) {
        /* The model's memory needs no freeing. */
        if (!mc_heap_owns(memory)) {
            free(memory);
        }
    } else if (memory != NULL) {
        mc_heap_free(memory, PC);
    }
}

WRAP(void *, realloc, void *memory, size_t size)
{
    if (mc_self == NULL) {
        return realloc(memory, size);
    }
    void *fresh = mc_heap_alloc(size, 1, PC);
    if (memory != NULL) {
        size_t old = mc_heap_size(memory);
        memcpy(fresh, memory, old < size ? old : size);
        mc_heap_free(memory, PC);
    }
    return fresh;
}

/* --- Time, and futexes ------------------------------------------------------ */

WRAP(int, clock_gettime, clockid_t clock, struct timespec *now)
{
    if (mc_self == NULL) {
        return clock_gettime(clock, now);
    }
    int64_t ns = mc_clock_now();
    *now = (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
    return 0;
}

static long fail_with(int error)
{
    errno = error;
    return -1;
}

static long futex(uintptr_t word, int operation, uint32_t value, const struct timespec *timeout,
                  const void *pc)
{
    int64_t deadline = INT64_MAX;
    int command = operation & FUTEX_CMD_MASK;
    if (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET) {
        return mc_wake(word, (int)value, pc);
    }
    if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) {
        mc_fail(MC_ASSERTION, "futex operation %d is not modelled", command);
    }
    if (timeout != NULL) {
        deadline = (int64_t)timeout->tv_sec * NS_PER_S + timeout->tv_nsec;
        deadline += command == FUTEX_WAIT ? mc_clock_now() : 0;
    }
    mc_point(&(struct mc_op){ .kind = MC_OP_WAIT, .addr = word, .pc = pc });
    if (!mc_memory_futex_equals(word, value, pc)) {
        return fail_with(EAGAIN);
    }
    return mc_sleep(word, deadline, pc) == 0 ? 0 : fail_with(ETIMEDOUT);
}

WRAP(long, syscall, long number, ...)
{
    va_list list;
    va_start(list, number);
    long args[6];
    for (unsigned i = 0; i < 6; i++) {
        args[i] = va_arg(list, long);
    }
    va_end(list);
    if (mc_self == NULL || number != SYS_futex) {
        return syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
    }
    return futex((uintptr_t)args[0], (int)args[1], (uint32_t)args[2],
                 (const struct timespec *)args[3], PC);
}

/* --- Death ------------------------------------------------------------------ */

WRAP(void, abort, void)
{
    if (mc_self != NULL) {
        mc_fail(MC_ASSERTION, "abort()");
    }
    abort();
}

WRAP(void, __assert_fail, const char *expression, const char *file, unsigned line,
     const char *function)
{
    mc_fail(MC_ASSERTION, "%s:%u: %s: %s", file, line, function, expression);
}
