/* SPDX-License-Identifier: MIT */
/*
 * atomic.h - atomic accesses with the memory order in their names.
 *
 * This is the only file that includes <stdatomic.h>: a plain read, = or ++ of an _Atomic object
 * would silently be seq_cst. It is also the seam at which a model checker replaces the atomics.
 */
#ifndef WF_BASE_ATOMIC_H
#define WF_BASE_ATOMIC_H

#include <stdatomic.h>

#define wf_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define wf_load_acquire(p) atomic_load_explicit((p), memory_order_acquire)

#define wf_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define wf_store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)

#define wf_xchg_relaxed(p, v) atomic_exchange_explicit((p), (v), memory_order_relaxed)
#define wf_xchg_acquire(p, v) atomic_exchange_explicit((p), (v), memory_order_acquire)
#define wf_xchg_release(p, v) atomic_exchange_explicit((p), (v), memory_order_release)
#define wf_xchg_acq_rel(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)

/* A failed CAS stores the value that it found in *expected. Its load has the acquire part of
 * the order, if the order has one. */
#define wf_cas_relaxed(p, expected, v)                                                             \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_relaxed,            \
                                            memory_order_relaxed)
#define wf_cas_acquire(p, expected, v)                                                             \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acquire,            \
                                            memory_order_acquire)
#define wf_cas_release(p, expected, v)                                                             \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_release,            \
                                            memory_order_relaxed)
#define wf_cas_acq_rel(p, expected, v)                                                             \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acq_rel,            \
                                            memory_order_acquire)

/* The weak forms may fail spuriously: use them only in a loop. */
#define wf_cas_weak_relaxed(p, expected, v)                                                        \
    atomic_compare_exchange_weak_explicit((p), (expected), (v), memory_order_relaxed,              \
                                          memory_order_relaxed)
#define wf_cas_weak_acquire(p, expected, v)                                                        \
    atomic_compare_exchange_weak_explicit((p), (expected), (v), memory_order_acquire,              \
                                          memory_order_acquire)
#define wf_cas_weak_release(p, expected, v)                                                        \
    atomic_compare_exchange_weak_explicit((p), (expected), (v), memory_order_release,              \
                                          memory_order_relaxed)
#define wf_cas_weak_acq_rel(p, expected, v)                                                        \
    atomic_compare_exchange_weak_explicit((p), (expected), (v), memory_order_acq_rel,              \
                                          memory_order_acquire)

#define wf_fetch_add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define wf_fetch_add_release(p, v) atomic_fetch_add_explicit((p), (v), memory_order_release)
#define wf_fetch_add_acquire(p, v) atomic_fetch_add_explicit((p), (v), memory_order_acquire)
#define wf_fetch_add_acq_rel(p, v) atomic_fetch_add_explicit((p), (v), memory_order_acq_rel)
#define wf_fetch_sub_relaxed(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_relaxed)
#define wf_fetch_sub_release(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_release)
#define wf_fetch_sub_acq_rel(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_acq_rel)
#define wf_fetch_or_relaxed(p, v)  atomic_fetch_or_explicit((p), (v), memory_order_relaxed)
#define wf_fetch_or_release(p, v)  atomic_fetch_or_explicit((p), (v), memory_order_release)
#define wf_fetch_and_relaxed(p, v) atomic_fetch_and_explicit((p), (v), memory_order_relaxed)
#define wf_fetch_and_acquire(p, v) atomic_fetch_and_explicit((p), (v), memory_order_acquire)
#define wf_fetch_and_acq_rel(p, v) atomic_fetch_and_explicit((p), (v), memory_order_acq_rel)

#if defined(__SANITIZE_THREAD__)
#define WF_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WF_TSAN 1
#endif
#endif

/*
 * A full fence: orders every access before it with every access after it, including an earlier
 * store with a later load. It has three forms, since
 * - clang compiles the C11 fence to mfence, which costs 20 ns, where a locked instruction on
 *   the stack costs 3 ns;
 * - ThreadSanitizer does not model fences, so there it is a read-modify-write of one shared
 *   word, which is as strong;
 * - a model checker must see the C11 fence itself, and its position.
 */
#if defined(WF_MODEL)
#define wf_fence_full() atomic_thread_fence(memory_order_seq_cst)
#elif defined(WF_TSAN)
extern _Atomic(unsigned) wf_fence_word;
static inline void wf_fence_full(void)
{
    (void)atomic_fetch_add_explicit(&wf_fence_word, 1, memory_order_seq_cst);
}
#elif defined(__x86_64__)
static inline void wf_fence_full(void)
{
    __asm__ volatile("lock orl $0, -64(%%rsp)" ::: "memory", "cc");
}
#else
static inline void wf_fence_full(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}
#endif

/* Hints to the CPU that this is a spin-wait loop. */
static inline void wf_cpu_relax(void)
{
#if defined(__x86_64__) && !defined(WF_MODEL)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && !defined(WF_MODEL)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Calls wf_cpu_relax() count times. */
static inline void wf_cpu_pause(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        wf_cpu_relax();
    }
}

/* Minimum distance between fields that different threads write. Two cache lines, since the
 * adjacent-line prefetcher fetches pairs. */
#define WF_CACHE_LINE 128

#endif
