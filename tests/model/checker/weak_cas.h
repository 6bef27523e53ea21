/* SPDX-License-Identifier: MIT */
/*
 * weak_cas.h - lets the checker see which exchanges are weak, with clang.
 *
 * gcc says so in the call that it makes for ThreadSanitizer, clang does not. So
 * the code under test is compiled with "-include weak_cas.h"; its own #include of
 * <stdatomic.h> then does nothing.
 */
#ifndef MC_WEAK_CAS_H
#define MC_WEAK_CAS_H

#if defined(__clang__) && !defined(__cplusplus)

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

bool mc_cas_weak(volatile void *word, void *expected, const void *desired, size_t size, int order,
                 int fail_order);

#undef atomic_compare_exchange_weak_explicit
#define atomic_compare_exchange_weak_explicit(word, expected, value, order, fail_order)            \
    __extension__({                                                                                \
        __typeof__(*(expected)) mc_desired = (value);                                              \
        mc_cas_weak((word), (expected), &mc_desired, sizeof mc_desired, (order), (fail_order));    \
    })

#undef atomic_compare_exchange_weak
#define atomic_compare_exchange_weak(word, expected, value)                                        \
    atomic_compare_exchange_weak_explicit((word), (expected), (value), memory_order_seq_cst,       \
                                          memory_order_seq_cst)

#endif

#endif
