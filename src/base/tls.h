/* SPDX-License-Identifier: MIT */
/*
 * tls.h - thread-local variables that are read by value on every access.
 *
 * A task may resume on another thread after it has waited. Compilers keep the address of a
 * thread-local across calls, and even fold a noinline function that returns it. So code that
 * reads a thread-local before and after a suspension would read the old thread's. WF_TLS_LOAD
 * is an asm volatile that computes the address and loads the value in one step: there is no
 * address left to keep. Stores use WF_TLS_STORE, a second asm volatile, since the compiler may
 * move a plain store past an asm that does not mention it.
 *
 * The variable must be pointer-sized and defined with WF_TLS_DEFINE, which selects the
 * initial-exec model: two instructions, also in a shared library.
 */
#ifndef WF_BASE_TLS_H
#define WF_BASE_TLS_H

#define WF_TLS_MODEL __attribute__((tls_model("initial-exec")))

#define WF_TLS_DECLARE(type, name) extern WF_TLS_MODEL _Thread_local type name
#define WF_TLS_DEFINE(type, name)  WF_TLS_MODEL __attribute__((used)) _Thread_local type name

#if defined(WF_MODEL)
#define WF_TLS_LOAD(name)         (name)
#define WF_TLS_STORE(name, value) ((void)((name) = (value)))
#elif defined(__x86_64__)
#define WF_TLS_LOAD(name)                                                                          \
    __extension__({                                                                                \
        __typeof__(name) wf_tls_value;                                                             \
        __asm__ volatile("movq " #name "@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0"                \
                         : "=r"(wf_tls_value));                                                    \
        wf_tls_value;                                                                              \
    })
#define WF_TLS_STORE(name, value)                                                                  \
    __extension__({                                                                                \
        __typeof__(name) wf_tls_value = (value);                                                   \
        void *wf_tls_base;                                                                         \
        __asm__ volatile("movq " #name "@gottpoff(%%rip), %0\n\tmovq %1, %%fs:(%0)"                \
                         : "=&r"(wf_tls_base)                                                      \
                         : "r"(wf_tls_value));                                                     \
    })
#elif defined(__aarch64__)
#define WF_TLS_LOAD(name)                                                                          \
    __extension__({                                                                                \
        __typeof__(name) wf_tls_value;                                                             \
        void *wf_tls_base;                                                                         \
        __asm__ volatile("adrp %0, :gottprel:" #name "\n\t"                                        \
                         "ldr %0, [%0, :gottprel_lo12:" #name "]\n\t"                              \
                         "mrs %1, tpidr_el0\n\t"                                                   \
                         "ldr %0, [%0, %1]"                                                        \
                         : "=&r"(wf_tls_value), "=&r"(wf_tls_base));                               \
        wf_tls_value;                                                                              \
    })
#define WF_TLS_STORE(name, value)                                                                  \
    __extension__({                                                                                \
        __typeof__(name) wf_tls_value = (value);                                                   \
        void *wf_tls_offset;                                                                       \
        void *wf_tls_base;                                                                         \
        __asm__ volatile("adrp %0, :gottprel:" #name "\n\t"                                        \
                         "ldr %0, [%0, :gottprel_lo12:" #name "]\n\t"                              \
                         "mrs %1, tpidr_el0\n\t"                                                   \
                         "str %2, [%0, %1]"                                                        \
                         : "=&r"(wf_tls_offset), "=&r"(wf_tls_base)                                \
                         : "r"(wf_tls_value));                                                     \
    })
#else
#error "weft runs on x86-64 and aarch64: add WF_TLS_LOAD for this machine"
#endif

#endif
