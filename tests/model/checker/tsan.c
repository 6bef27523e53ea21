/* SPDX-License-Identifier: MIT */
/*
 * tsan.c - the calls that -fsanitize=thread puts into the code under test.
 *
 * The compiler turns each atomic operation, fence, and plain access into a call
 * of the ThreadSanitizer runtime. That runtime is not linked: these are the
 * functions behind the calls, so any C code can be checked as it is.
 */
#include <string.h>

#include "coroutine.h"
#include "memory.h"
#include "report.h"
#include "shadow.h"
#include "weaken.h"

#define PC __builtin_return_address(0)

static void plain(const volatile void *memory, size_t size, bool is_write, const void *pc)
{
    uintptr_t addr = (uintptr_t)memory;
    if (mc_self != NULL && !mc_coroutine_is_local(addr)) {
        mc_shadow_plain(addr, size, is_write, pc);
    }
}

/* --- Plain accesses --------------------------------------------------------- */

#define PLAIN_ONE(name, size, is_write)                                                            \
    MC_API void __tsan_##name##size(void *memory);                                                 \
    void __tsan_##name##size(void *memory)                                                         \
    {                                                                                              \
        plain(memory, size, is_write, PC);                                                         \
    }

#define PLAIN(size)                                                                                \
    PLAIN_ONE(read, size, false)                                                                   \
    PLAIN_ONE(write, size, true)                                                                   \
    PLAIN_ONE(read_write, size, true)                                                              \
    PLAIN_ONE(unaligned_read, size, false)                                                         \
    PLAIN_ONE(unaligned_write, size, true)                                                         \
    PLAIN_ONE(unaligned_read_write, size, true)                                                    \
    PLAIN_ONE(volatile_read, size, false)                                                          \
    PLAIN_ONE(volatile_write, size, true)

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

MC_API void __tsan_read_range(void *memory, size_t size);
void __tsan_read_range(void *memory, size_t size)
{
    plain(memory, size, false, PC);
}

MC_API void __tsan_write_range(void *memory, size_t size);
void __tsan_write_range(void *memory, size_t size)
{
    plain(memory, size, true, PC);
}

MC_API void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size)
{
    plain(from, size, false, PC);
    plain(to, size, true, PC);
    return memcpy(to, from, size);
}

MC_API void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size)
{
    plain(from, size, false, PC);
    plain(to, size, true, PC);
    return memmove(to, from, size);
}

MC_API void *__wrap_memset(void *memory, int byte, size_t size);
void *__wrap_memset(void *memory, int byte, size_t size)
{
    plain(memory, size, true, PC);
    return memset(memory, byte, size);
}

/* What newer compilers call instead. */
MC_API void *__tsan_memcpy(void *, const void *, size_t) __attribute__((alias("__wrap_memcpy")));
MC_API void *__tsan_memmove(void *, const void *, size_t) __attribute__((alias("__wrap_memmove")));
MC_API void *__tsan_memset(void *, int, size_t) __attribute__((alias("__wrap_memset")));

/* --- Nothing to do ---------------------------------------------------------- */

MC_API void __tsan_init(void);
void __tsan_init(void)
{
}

MC_API void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
    (void)caller;
}

MC_API void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/* --- Atomics ---------------------------------------------------------------- */

static enum mc_order order_of(enum mc_kind kind, int order, const void *pc)
{
    return mc_weaken_order(kind, (enum mc_order)order, pc);
}

static struct mc_cas cas_of(uint64_t expected, uint64_t desired, int order, int fail_order,
                            const void *pc)
{
    enum mc_order used = order_of(MC_OP_CAS, order, pc);
    return (struct mc_cas){
        .expected = expected,
        .desired = desired,
        .order = used,
        .fail_order = used == (enum mc_order)order
                          ? (enum mc_order)fail_order
                          : mc_weaken_fail_order((enum mc_order)fail_order, used),
    };
}

static uint64_t do_exchange(uint64_t old, uint64_t operand)
{
    (void)old;
    return operand;
}

static uint64_t do_add(uint64_t old, uint64_t operand)
{
    return old + operand;
}

static uint64_t do_sub(uint64_t old, uint64_t operand)
{
    return old - operand;
}

static uint64_t do_and(uint64_t old, uint64_t operand)
{
    return old & operand;
}

static uint64_t do_or(uint64_t old, uint64_t operand)
{
    return old | operand;
}

static uint64_t do_xor(uint64_t old, uint64_t operand)
{
    return old ^ operand;
}

static uint64_t do_nand(uint64_t old, uint64_t operand)
{
    return ~(old & operand);
}

#define UPDATE(bits, type, name, function)                                                         \
    MC_API type __tsan_atomic##bits##_##name(volatile type *word, type operand, int order);        \
    type __tsan_atomic##bits##_##name(volatile type *word, type operand, int order)                \
    {                                                                                              \
        return (type)mc_memory_update((uintptr_t)word, bits / 8, function, operand,                \
                                      order_of(MC_OP_RMW, order, PC), PC);                         \
    }

#define EXCHANGE_IF(bits, type, name, weak)                                                        \
    MC_API int __tsan_atomic##bits##_compare_exchange_##name(                                      \
        volatile type *word, type *expected, type desired, int order, int fail_order);             \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *word, type *expected,         \
                                                      type desired, int order, int fail_order)     \
    {                                                                                              \
        struct mc_cas cas = cas_of(*expected, desired, order, fail_order, PC);                     \
        cas.is_weak = weak;                                                                        \
        bool is_done = mc_memory_cas((uintptr_t)word, bits / 8, &cas, PC);                         \
        if (!is_done) {                                                                            \
            *expected = (type)cas.expected;                                                        \
        }                                                                                          \
        return is_done;                                                                            \
    }

#define ATOMIC(bits, type)                                                                         \
    MC_API type __tsan_atomic##bits##_load(const volatile type *word, int order);                  \
    type __tsan_atomic##bits##_load(const volatile type *word, int order)                          \
    {                                                                                              \
        return (type)mc_memory_load((uintptr_t)word, bits / 8, order_of(MC_OP_LOAD, order, PC),    \
                                    PC);                                                           \
    }                                                                                              \
    MC_API void __tsan_atomic##bits##_store(volatile type *word, type value, int order);           \
    void __tsan_atomic##bits##_store(volatile type *word, type value, int order)                   \
    {                                                                                              \
        mc_memory_store((uintptr_t)word, bits / 8, value, order_of(MC_OP_STORE, order, PC), PC);   \
    }                                                                                              \
    UPDATE(bits, type, exchange, do_exchange)                                                      \
    UPDATE(bits, type, fetch_add, do_add)                                                          \
    UPDATE(bits, type, fetch_sub, do_sub)                                                          \
    UPDATE(bits, type, fetch_and, do_and)                                                          \
    UPDATE(bits, type, fetch_or, do_or)                                                            \
    UPDATE(bits, type, fetch_xor, do_xor)                                                          \
    UPDATE(bits, type, fetch_nand, do_nand)                                                        \
    EXCHANGE_IF(bits, type, strong, false)                                                         \
    EXCHANGE_IF(bits, type, weak, true)                                                            \
    /* What clang calls, also for weak ones; see weak_cas.h. */                                    \
    MC_API type __tsan_atomic##bits##_compare_exchange_val(                                        \
        volatile type *word, type expected, type desired, int order, int fail_order);              \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *word, type expected,            \
                                                    type desired, int order, int fail_order)       \
    {                                                                                              \
        struct mc_cas cas = cas_of(expected, desired, order, fail_order, PC);                      \
        (void)mc_memory_cas((uintptr_t)word, bits / 8, &cas, PC);                                  \
        return (type)cas.expected;                                                                 \
    }

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

MC_API void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    mc_memory_fence(order_of(MC_OP_FENCE, order, PC), PC);
}

MC_API void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

bool mc_cas_weak(volatile void *word, void *expected, const void *desired, size_t size, int order,
                 int fail_order)
{
    struct mc_cas cas = cas_of(0, 0, order, fail_order, PC);
    cas.is_weak = true;
    memcpy(&cas.expected, expected, size);
    memcpy(&cas.desired, desired, size);
    bool is_done = mc_memory_cas((uintptr_t)word, (unsigned)size, &cas, PC);
    if (!is_done) {
        memcpy(expected, &cas.expected, size);
    }
    return is_done;
}
