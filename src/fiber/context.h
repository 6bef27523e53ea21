/* SPDX-License-Identifier: MIT */
/*
 * context.h - context switch between stacks.
 *
 * A switch is inline assembly that declares every register as clobbered. So the compiler spills
 * to the frame exactly what it still needs, and the switch saves only the position of the frame
 * and the resume address. The stack pointer does not move in between, so the frame's own unwind
 * information also holds for a suspended context: a debugger that is given its sp, bp and pc
 * walks its stack like any other.
 *
 * Not a function: a call saves registers that the caller does not need, and its return is
 * mispredicted, since it resumes at another address (9 ns instead of 3 here;
 * docs/adr/0006-context-switch.md has the figures).
 *
 * Floating-point control words (rounding, flushing, exceptions) are kept per context. Each
 * switch reads them, and writes them if they differ.
 *
 * A new context starts in wf_context_entry (entry_*.S), which calls its function with the value
 * that the first switch to it carries. The function never returns.
 */
#ifndef WF_FIBER_CONTEXT_H
#define WF_FIBER_CONTEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fiber/sanitizer.h"

struct wf_context {
    /* Fields that the assembly uses, in this order. */
    void *sp;
    void *bp;
    void *pc;
    uint32_t fp_control; /* as returned by wf_fp_control_read() */
    struct wf_sanitizer_context sanitizer;
};

_Static_assert(offsetof(struct wf_context, sp) == 0, "the assembly knows");
_Static_assert(offsetof(struct wf_context, bp) == 8, "the assembly knows");
_Static_assert(offsetof(struct wf_context, pc) == 16, "the assembly knows");

/* Entry point of a new context: calls (function in bp)(carried). */
extern const char wf_context_entry[];

#if defined(__x86_64__)

/* The control bits of MXCSR in the low half, the x87 control word above. */
static inline uint32_t wf_fp_control_read(void)
{
    uint32_t mxcsr;
    uint16_t x87;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return (mxcsr & 0xffc0) | (uint32_t)x87 << 16;
}

static inline void wf_fp_control_write(uint32_t control)
{
    uint32_t mxcsr;
    uint16_t x87 = (uint16_t)(control >> 16);
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    mxcsr = (mxcsr & ~UINT32_C(0xffff)) | (control & 0xffc0);
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    /* Pending exception flags of another context would trap here if they are not masked. */
    __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(x87));
}

#if defined(__AVX512F__)
#define WF_AVX512_REGISTERS                                                                        \
    "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",      \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6",  \
        "k7",
#else
#define WF_AVX512_REGISTERS
#endif

static inline __attribute__((always_inline)) void *
wf_context_jump(struct wf_context *from, struct wf_context *to, void *carried)
{
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "movq %%rsp, 0(%%rdi)\n\t"
                     "movq %%rbp, 8(%%rdi)\n\t"
                     "movq %%rax, 16(%%rdi)\n\t"
                     "movq 0(%%rsi), %%rsp\n\t"
                     "movq 8(%%rsi), %%rbp\n\t"
                     "jmpq *16(%%rsi)\n"
                     "1:\tendbr64"
                     : "+D"(from), "+S"(to), "+d"(carried)
                     :
                     : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                       "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st", "st(1)",
                       "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)",
                       WF_AVX512_REGISTERS "cc", "memory");
    return carried;
}

static inline __attribute__((always_inline)) _Noreturn void
wf_context_jump_away(struct wf_context *to, void *carried)
{
    __asm__ volatile("movq 0(%%rsi), %%rsp\n\t"
                     "movq 8(%%rsi), %%rbp\n\t"
                     "jmpq *16(%%rsi)"
                     :
                     : "S"(to), "d"(carried)
                     : "memory");
    __builtin_unreachable();
}

#elif defined(__aarch64__)

static inline uint32_t wf_fp_control_read(void)
{
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return (uint32_t)control;
}

static inline void wf_fp_control_write(uint32_t control)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)control));
}

static inline __attribute__((always_inline)) void *
wf_context_jump(struct wf_context *from, struct wf_context *to, void *carried)
{
    register struct wf_context *x0 __asm__("x0") = from;
    register struct wf_context *x1 __asm__("x1") = to;
    register void *x2 __asm__("x2") = carried;
    __asm__ volatile("adr x3, 1f\n\t"
                     "mov x4, sp\n\t"
                     "stp x4, x29, [x0]\n\t"
                     "str x3, [x0, #16]\n\t"
                     "ldp x4, x29, [x1]\n\t"
                     "ldr x16, [x1, #16]\n\t"
                     "mov sp, x4\n\t"
                     "br x16\n"
                     "1:\thint #36" /* bti j */
                     : "+r"(x0), "+r"(x1), "+r"(x2)
                     :
                     : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
                       "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25",
                       "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",
                       "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18",
                       "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29",
                       "v30", "v31", "cc", "memory");
    return x2;
}

static inline __attribute__((always_inline)) _Noreturn void
wf_context_jump_away(struct wf_context *to, void *carried)
{
    register struct wf_context *x1 __asm__("x1") = to;
    register void *x2 __asm__("x2") = carried;
    __asm__ volatile("ldp x4, x29, [x1]\n\t"
                     "ldr x16, [x1, #16]\n\t"
                     "mov sp, x4\n\t"
                     "br x16"
                     :
                     : "r"(x1), "r"(x2)
                     : "x4", "x16", "memory");
    __builtin_unreachable();
}

#else
#error "weft runs on x86-64 and aarch64: add wf_context_jump for this machine"
#endif

/* Initializes a context that will start in function, with these control words, on the stack of
 * size bytes at low, first frame at top. The function receives the value that the first switch
 * carries. It must call wf_context_begin() and never return. */
static inline void wf_context_init(struct wf_context *context, char *low, size_t size, char *top,
                                   void (*function)(void *carried), uint32_t fp_control)
{
    context->sp = (void *)((uintptr_t)top & ~(uintptr_t)15);
    memcpy(&context->bp, &function, sizeof function);
    context->pc = (void *)(uintptr_t)wf_context_entry;
    context->fp_control = fp_control;
    wf_sanitizer_init(&context->sanitizer, low, size);
}

/* Initializes the context of this thread's own stack. */
static inline void wf_context_init_thread(struct wf_context *context)
{
    wf_sanitizer_init_thread(&context->sanitizer);
}

/* Must be the first call in a new context. */
static inline void wf_context_begin(struct wf_context *self)
{
    wf_sanitizer_arrive(&self->sanitizer);
}

static inline __attribute__((always_inline)) void
wf_context_change_fp_control(struct wf_context *from, const struct wf_context *to)
{
    from->fp_control = wf_fp_control_read();
    if (__builtin_expect(to->fp_control != from->fp_control, 0)) {
        wf_fp_control_write(to->fp_control);
    }
}

/*
 * Switches to another context. Returns when another context switches back to from, with the
 * value that that switch carries. Thread-local values read before are invalid afterwards: the
 * context may resume on another thread. The caller is WF_NO_TSAN.
 */
static inline __attribute__((always_inline)) void *
wf_context_switch(struct wf_context *from, struct wf_context *to, void *carried)
{
    wf_context_change_fp_control(from, to);
    wf_sanitizer_leave(&from->sanitizer, &to->sanitizer);
    carried = wf_context_jump(from, to, carried);
    wf_sanitizer_arrive(&from->sanitizer);
    return carried;
}

/* Ends the running context and switches to another. */
static inline __attribute__((always_inline)) _Noreturn void wf_context_leave(struct wf_context *to,
                                                                             void *carried)
{
    if (__builtin_expect(to->fp_control != wf_fp_control_read(), 0)) {
        wf_fp_control_write(to->fp_control);
    }
    /* No locals from here on: AddressSanitizer's fake stack is released by this call. */
    wf_sanitizer_leave(NULL, &to->sanitizer);
    wf_context_jump_away(to, carried);
}

/* Frees the resources of an ended context. Called from another context, after it has left. */
static inline void wf_context_fini(struct wf_context *context)
{
    wf_sanitizer_fini(&context->sanitizer);
}

#endif
