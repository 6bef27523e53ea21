/* SPDX-License-Identifier: MIT */
/*
 * context_test.c - context switches: what a context preserves, and how it starts.
 *
 * Each test ends the contexts that it starts, so that the next test can use their stacks.
 */
#include "fiber/context.h"

#include <execinfo.h>
#include <fenv.h>
#include <float.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "child.h"
#include "fiber/valgrind.h"
#include "test.h"

#define WITHOUT_INLINE __attribute__((noinline))

enum {
    STACK_BYTES = 128 * 1024,
    /* Bytes above the first frame. A frame walk that does not stop there runs into them. */
    ABOVE_BYTES = 256,
    STRANDS = 1000,
};

struct strand {
    struct wf_context context;
    char *low;
};

static struct strand strands[STRANDS];
static struct strand *const one = &strands[0];
static struct wf_context home; /* the thread that runs the tests */

/* Called by the first test, on the thread that runs all of them. */
static void set_up(void)
{
    wf_context_init_thread(&home);
    char *map = mmap(NULL, (size_t)STRANDS * STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(map != MAP_FAILED);
    for (size_t i = 0; i < STRANDS; i++) {
        strands[i].low = map + i * STACK_BYTES;
        (void)wf_valgrind_stack_made(strands[i].low, STACK_BYTES);
    }
}

static char *top_of(const struct strand *strand)
{
    return strand->low + STACK_BYTES - ABOVE_BYTES;
}

/* The next switch to the context starts the function. */
static void start_at_top(struct strand *strand, char *top, void (*function)(void *carried))
{
    wf_context_init(&strand->context, strand->low, STACK_BYTES, top, function,
                    wf_fp_control_read());
}

static void start(struct strand *strand, void (*function)(void *carried))
{
    if (strand->low == NULL) {
        set_up();
    }
    start_at_top(strand, top_of(strand), function);
}

WF_NO_TSAN WITHOUT_INLINE static void *go(struct strand *to, void *carried)
{
    return wf_context_switch(&home, &to->context, carried);
}

/* The last switch to the context, which leaves for good. */
static void *go_last(struct strand *to, void *carried)
{
    carried = go(to, carried);
    wf_context_fini(&to->context);
    return carried;
}

/* --- What a switch carries --------------------------------------------------- */

enum {
    ECHOES = 1000
};

WF_NO_TSAN static void echo_main(void *carried)
{
    wf_context_begin(&one->context);
    for (uintptr_t n = 0; n < ECHOES; n++) {
        CHECK_EQ((uintptr_t)carried, 2 * n);
        carried = wf_context_switch(&one->context, &home, (void *)(2 * n + 1));
    }
    CHECK(carried == &home);
    wf_context_leave(&home, one);
}

static void switch_carries_value_both_ways(void)
{
    start(one, echo_main);
    for (uintptr_t n = 0; n < ECHOES; n++) {
        CHECK_EQ((uintptr_t)go(one, (void *)(2 * n)), 2 * n + 1);
    }
    CHECK(go_last(one, &home) == one);
}

/* --- Registers --------------------------------------------------------------- */

/* Overwrites each register in which a compiler may keep a value. */
static inline __attribute__((always_inline)) void trash_registers(void)
{
#if defined(__x86_64__)
    __asm__ volatile(
        "movq $-1, %%rax\n\tmovq $-2, %%rbx\n\tmovq $-3, %%rcx\n\tmovq $-4, %%rdx\n\t"
        "movq $-5, %%rsi\n\tmovq $-6, %%rdi\n\tmovq $-7, %%r8\n\tmovq $-8, %%r9\n\t"
        "movq $-9, %%r10\n\tmovq $-10, %%r11\n\tmovq $-11, %%r12\n\tmovq $-12, %%r13\n\t"
        "movq $-13, %%r14\n\tmovq $-14, %%r15\n\t"
        "pcmpeqd %%xmm0, %%xmm0\n\tpcmpeqd %%xmm1, %%xmm1\n\tpcmpeqd %%xmm2, %%xmm2\n\t"
        "pcmpeqd %%xmm3, %%xmm3\n\tpcmpeqd %%xmm4, %%xmm4\n\tpcmpeqd %%xmm5, %%xmm5\n\t"
        "pcmpeqd %%xmm6, %%xmm6\n\tpcmpeqd %%xmm7, %%xmm7\n\tpcmpeqd %%xmm8, %%xmm8\n\t"
        "pcmpeqd %%xmm9, %%xmm9\n\tpcmpeqd %%xmm10, %%xmm10\n\tpcmpeqd %%xmm11, %%xmm11\n\t"
        "pcmpeqd %%xmm12, %%xmm12\n\tpcmpeqd %%xmm13, %%xmm13\n\tpcmpeqd %%xmm14, %%xmm14\n\t"
        "pcmpeqd %%xmm15, %%xmm15"
        :
        :
        : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
          "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
          "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc");
#elif defined(__aarch64__)
    __asm__ volatile(
        "mov x19, #-1\n\tmov x20, #-2\n\tmov x21, #-3\n\tmov x22, #-4\n\tmov x23, #-5\n\t"
        "mov x24, #-6\n\tmov x25, #-7\n\tmov x26, #-8\n\tmov x27, #-9\n\tmov x28, #-10\n\t"
        "movi v8.2d, #-1\n\tmovi v9.2d, #-1\n\tmovi v10.2d, #-1\n\tmovi v11.2d, #-1\n\t"
        "movi v12.2d, #-1\n\tmovi v13.2d, #-1\n\tmovi v14.2d, #-1\n\tmovi v15.2d, #-1"
        :
        :
        : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "v8", "v9", "v10",
          "v11", "v12", "v13", "v14", "v15");
#endif
}

WF_NO_TSAN static void trash_registers_main(void *carried)
{
    wf_context_begin(&one->context);
    while (carried != NULL) {
        trash_registers();
        carried = wf_context_switch(&one->context, &home, NULL);
    }
    wf_context_leave(&home, NULL);
}

/* Computes with as many values as there are registers, and a few more. If other is given,
 * switches to it in the middle of each round. */
WF_NO_TSAN WITHOUT_INLINE static uint64_t mix(struct wf_context *self, struct wf_context *other,
                                              uint64_t seed)
{
    uint64_t a = seed;
    uint64_t b = seed * 3;
    uint64_t c = seed * 5;
    uint64_t d = seed * 7;
    uint64_t e = seed * 11;
    uint64_t f = seed * 13;
    uint64_t g = seed * 17;
    uint64_t h = seed * 19;
    uint64_t i = seed * 23;
    uint64_t j = seed * 29;
    uint64_t k = seed * 31;
    uint64_t l = seed * 37;
    for (uint64_t n = 0; n < 100; n++) {
        a += b ^ n;
        c ^= d + a;
        if (other != NULL) {
            (void)wf_context_switch(self, other, self);
        }
        b = (b << 7 | b >> 57) + c;
        e += f ^ d;
        d -= g * 3;
        f ^= h + e;
        g += i ^ a;
        h -= j + n;
        i ^= k * 5;
        j += l ^ c;
        k -= a + h;
        l ^= b * 9;
    }
    return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k ^ l;
}

/* Same as mix(), with floating-point numbers. The results are exact enough to compare. */
WF_NO_TSAN WITHOUT_INLINE static double add_up(struct wf_context *self, struct wf_context *other,
                                               double seed)
{
    double a = seed;
    double b = seed * 2;
    double c = seed * 3;
    double d = seed * 4;
    double e = seed * 5;
    double f = seed * 6;
    double g = seed * 7;
    double h = seed * 8;
    double i = seed * 9;
    double j = seed * 10;
    for (int n = 1; n <= 100; n++) {
        a += b * 0.25;
        c += d / n;
        if (other != NULL) {
            (void)wf_context_switch(self, other, self);
        }
        b = b * 0.5 + c;
        d = d * 0.25 + e;
        e = e * 0.5 - f;
        f = f * 0.125 + g;
        g = g * 0.5 + h / n;
        h = h * 0.25 - i;
        i = i * 0.5 + j;
        j = j * 0.5 + n;
    }
    return a + b + c + d + e + f + g + h + i + j;
}

static void values_survive_context_that_trashes_registers(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        start(one, trash_registers_main);
        CHECK_EQ(mix(&home, &one->context, seed), mix(NULL, NULL, seed));
        CHECK(add_up(&home, &one->context, 1.5 / (double)seed) ==
              add_up(NULL, NULL, 1.5 / (double)seed));
        (void)go_last(one, NULL);
    }
}

WF_NO_TSAN static void compute_main(void *carried)
{
    wf_context_begin(&one->context);
    uint64_t seed = *(uint64_t *)carried;
    CHECK_EQ(mix(&one->context, &home, seed), mix(NULL, NULL, seed));
    CHECK(add_up(&one->context, &home, 1.5 / (double)seed) ==
          add_up(NULL, NULL, 1.5 / (double)seed));
    wf_context_leave(&home, NULL);
}

/* Here the thread's own context overwrites the registers. */
WF_NO_TSAN WITHOUT_INLINE static void trash_registers_in_thread(uint64_t seed)
{
    const void *carried = wf_context_switch(&home, &one->context, &seed);
    while (carried != NULL) {
        trash_registers();
        carried = wf_context_switch(&home, &one->context, NULL);
    }
}

static void values_of_context_survive_thread_that_trashes_registers(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        start(one, compute_main);
        trash_registers_in_thread(seed);
        wf_context_fini(&one->context);
    }
}

#if defined(__x86_64__)

/* The x87 registers are a stack, which must be empty when another context runs. */
WF_NO_TSAN WITHOUT_INLINE static long double multiply(struct wf_context *self,
                                                      struct wf_context *other, long double seed)
{
    long double a = seed;
    long double b = seed + 1;
    for (int n = 0; n < 20; n++) {
        a = a * b + 2;
        if (other != NULL) {
            (void)wf_context_switch(self, other, self);
        }
    }
    return a;
}

WF_NO_TSAN static void multiply_main(void *carried)
{
    wf_context_begin(&one->context);
    CHECK(multiply(&one->context, &home, 2.5L) == multiply(NULL, NULL, 2.5L));
    wf_context_leave(&home, carried);
}

static void long_doubles_survive_switch(void)
{
    start(one, multiply_main);
    CHECK(multiply(&home, &one->context, 1.5L) == multiply(NULL, NULL, 1.5L));
    (void)go_last(one, NULL);
}

static volatile long double x87_one = 1;
static volatile long double x87_zero = 0;
static volatile long double x87_sum;

/* Unmasks division-by-zero exceptions, but does not divide by zero. */
WF_NO_TSAN static void trap_main(void *carried)
{
    wf_context_begin(&one->context);
    uint16_t control;
    __asm__ volatile("fnclex\n\tfnstcw %0" : "=m"(control));
    control &= (uint16_t)~4u;
    __asm__ volatile("fldcw %0" : : "m"(control));
    carried = wf_context_switch(&one->context, &home, carried);
    x87_sum = x87_one + x87_one;
    wf_context_leave(&home, carried);
}

static void divide_by_zero_without_trap(void *arg)
{
    start(one, trap_main);
    (void)go(one, arg);
    x87_sum = x87_one / x87_zero;
    (void)go_last(one, arg);
}

static void x87_exception_flag_does_not_trap_in_other_context(void)
{
    child_must_succeed(divide_by_zero_without_trap, NULL);
}

#endif

/* --- Many contexts ------------------------------------------------------------ */

/* Written only by contexts, so the compiler cannot see that a function that calls go() changes
 * it. */
static unsigned deepest;

/* Starts the next context, then leaves for the one that started it. */
WF_NO_TSAN static void chain_main(void *carried)
{
    struct strand *self = carried;
    wf_context_begin(&self->context);
    size_t index = (size_t)(self - strands);
    size_t squares[4] = { index * index, index, 1, index + 1 };
    deepest = (unsigned)index;
    if (index + 1 < STRANDS) {
        struct strand *next = self + 1;
        start(next, chain_main);
        CHECK(wf_context_switch(&self->context, &next->context, next) == next);
        wf_context_fini(&next->context);
    }
    CHECK_EQ(squares[0] + 2 * squares[1] + squares[2], squares[3] * squares[3]);
    wf_context_leave(index == 0 ? &home : &self[-1].context, self);
}

static void thousand_contexts_start_each_other(void)
{
    start(one, chain_main);
    deepest = 0;
    CHECK(go_last(one, one) == one);
    CHECK_EQ(deepest, STRANDS - 1);
}

enum {
    RING = 100,
    RING_ROUNDS = 3
};

WF_NO_TSAN static void ring_main(void *carried)
{
    struct strand *self = carried;
    wf_context_begin(&self->context);
    size_t index = (size_t)(self - strands);
    struct wf_context *next = index + 1 < RING ? &self[1].context : &home;
    uintptr_t sum = index;
    for (carried = wf_context_switch(&self->context, &home, NULL); carried != NULL;) {
        uintptr_t n = (uintptr_t)carried;
        sum += n;
        carried = wf_context_switch(&self->context, next, (void *)(n + 1));
    }
    wf_context_leave(&home, (void *)sum);
}

static void value_passes_through_ring_of_contexts(void)
{
    for (size_t i = 0; i < RING; i++) {
        start(&strands[i], ring_main);
        (void)go(&strands[i], &strands[i]);
    }
    uintptr_t n = 1;
    for (int round = 0; round < RING_ROUNDS; round++) {
        uintptr_t after = (uintptr_t)go(one, (void *)n);
        CHECK_EQ(after, n + RING);
        n = after;
    }
    for (uintptr_t i = 0; i < RING; i++) {
        /* i, plus the values that passed through: 1 + i, 1 + i + RING, ... */
        uintptr_t expected = i + RING_ROUNDS * (1 + i) + RING * (RING_ROUNDS - 1) * RING_ROUNDS / 2;
        CHECK_EQ((uintptr_t)go_last(&strands[i], NULL), expected);
    }
}

/* --- The first frame ---------------------------------------------------------- */

WF_NO_TSAN WITHOUT_INLINE static void frame_main(void *carried)
{
    wf_context_begin(&one->context);
    _Alignas(16) double pair[2] = { 0.5, 0.25 };
    volatile uintptr_t pair_at = (uintptr_t)pair;
    CHECK_EQ(pair_at % 16, 0);
    char *frame = __builtin_frame_address(0);
    CHECK_EQ((uintptr_t)frame % 16, 0);
    CHECK(frame < (char *)carried);
    CHECK_LT((char *)carried - frame, 64);
    /* The saved frame pointer is 0: the frame has no caller. */
    CHECK_EQ(*(uintptr_t *)(void *)frame, 0);
    wf_context_leave(&home, NULL);
}

static void first_frame_is_aligned_and_ends_frame_chain(void)
{
    start(one, frame_main);
    for (char *top = top_of(one) - 64; top <= top_of(one); top++) {
        start_at_top(one, top, frame_main);
        (void)go_last(one, top);
    }
}

enum {
    FRAMES = 64,
    LEVELS = 5
};

static WITHOUT_INLINE int backtrace_from(int level, void **frames)
{
    int count = level > 0 ? backtrace_from(level - 1, frames) : backtrace(frames, FRAMES);
    __asm__ volatile("" : "+r"(count)); /* Prevents a tail call. */
    return count;
}

WF_NO_TSAN static void backtrace_main(void *carried)
{
    wf_context_begin(&one->context);
    void *frames[FRAMES];
    int count = backtrace_from(LEVELS, frames);
    CHECK_LT(LEVELS, count);
    CHECK_LT(count, 2 * LEVELS);
    ptrdiff_t offset = (const char *)frames[count - 1] - wf_context_entry;
    CHECK_LT(0, offset);
    CHECK_LT(offset, 64);
    wf_context_leave(&home, carried);
}

static void backtrace_ends_at_first_frame(void)
{
    void *frames[FRAMES];
    CHECK_LT(0, backtrace(frames, FRAMES)); /* Loads the unwinder on this stack. */
    start(one, backtrace_main);
    /* Addresses of code that could be a caller lie above the first frame. */
    void **above = (void **)(void *)top_of(one);
    for (size_t i = 0; i < ABOVE_BYTES / sizeof *above; i++) {
        above[i] = frames[0];
    }
    (void)go_last(one, NULL);
}

static void return_main(void *carried)
{
    (void)carried;
    wf_context_begin(&one->context);
}

static void run_one(void *arg)
{
    (void)go(one, arg);
}

static void returning_context_function_traps(void)
{
    start(one, return_main);
    struct child child;
    child_run(&child, run_one, NULL);
    CHECK(child.signal == SIGILL || child.signal == SIGTRAP);
}

/* --- Floating-point control ---------------------------------------------------- */

static volatile double d1 = 1;
static volatile double d3 = 3;
static volatile double d10 = 10;

/* Checks the behavior, because some machines have two control words. */
static WITHOUT_INLINE void check_rounding(int mode)
{
    bool up = mode == FE_UPWARD;
    bool down = mode == FE_DOWNWARD;
    CHECK_EQ(d1 / d3 > 1.0 / 3, up);
    CHECK_EQ(-d1 / d3 < -1.0 / 3, down);
    CHECK_EQ(d1 / d10 < 1.0 / 10, down || mode == FE_TOWARDZERO);
#if defined(__x86_64__)
    static volatile long double x1 = 1;
    static volatile long double x3 = 3;
    static volatile long double x7 = 7;
    CHECK_EQ(x1 / x7 > 1.0L / 7, up);
    CHECK_EQ(-x1 / x7 < -1.0L / 7, down);
    CHECK_EQ(x1 / x3 < 1.0L / 3, down || mode == FE_TOWARDZERO);
#endif
}

/* Same as fesetround(), which would need another library. */
static void set_rounding(int mode)
{
#if defined(__x86_64__)
    _mm_setcsr((_mm_getcsr() & ~0x6000u) | (unsigned)mode << 3);
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    x87 = (uint16_t)((x87 & ~0x0c00u) | (unsigned)mode);
    __asm__ volatile("fldcw %0" : : "m"(x87));
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr = (fpcr & ~UINT64_C(0xc00000)) | (uint64_t)mode;
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
    check_rounding(mode);
}

static const int rounding[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };

enum {
    MODES = sizeof rounding / sizeof rounding[0]
};

/* The strand's index is its initial mode. Then it changes the mode in each round. */
WF_NO_TSAN static void rounding_main(void *carried)
{
    struct strand *self = carried;
    wf_context_begin(&self->context);
    size_t at = (size_t)(self - strands);
    check_rounding(rounding[at]);
    for (carried = self; carried != NULL; at = (at + 1) % MODES) {
        set_rounding(rounding[at]);
        carried = wf_context_switch(&self->context, &home, NULL);
        check_rounding(rounding[at]);
    }
    wf_context_leave(&home, NULL);
}

static void each_context_has_its_own_rounding_mode(void)
{
    for (size_t i = 0; i < MODES; i++) {
        set_rounding(rounding[i]); /* A new context inherits the mode of its creator. */
        start(&strands[i], rounding_main);
    }
    for (size_t i = 0; i < 10 * MODES; i++) {
        int mode = rounding[i % 3];
        set_rounding(mode);
        (void)go(&strands[i % MODES], &strands[i % MODES]);
        check_rounding(mode);
    }
    for (size_t i = 0; i < MODES; i++) {
        set_rounding(FE_DOWNWARD);
        (void)go_last(&strands[i], NULL);
        check_rounding(FE_DOWNWARD);
    }
    set_rounding(FE_TONEAREST);
}

static WITHOUT_INLINE bool flushes(void)
{
    static volatile double tiny = DBL_MIN;
    return tiny / 2 == 0;
}

static void set_flush(bool flush)
{
#if defined(__x86_64__)
    const unsigned bit = 1u << 15;
    _mm_setcsr((_mm_getcsr() & ~bit) | (flush ? bit : 0));
#elif defined(__aarch64__)
    const uint64_t bit = UINT64_C(1) << 24;
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr = (fpcr & ~bit) | (flush ? bit : 0);
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
    CHECK_EQ(flushes(), flush);
}

/* Flushes in every other round. */
WF_NO_TSAN static void flush_main(void *carried)
{
    wf_context_begin(&one->context);
    CHECK(flushes());
    for (bool flush = false; carried != NULL; flush = !flush) {
        set_flush(flush);
        carried = wf_context_switch(&one->context, &home, NULL);
        CHECK_EQ(flushes(), flush);
    }
    wf_context_leave(&home, NULL);
}

static void each_context_has_its_own_flush_mode(void)
{
    set_flush(true);
    start(one, flush_main);
    for (int i = 0; i < 16; i++) {
        bool flush = i / 2 % 2 != 0;
        set_flush(flush);
        (void)go(one, one);
        CHECK_EQ(flushes(), flush);
    }
    set_flush(false);
    (void)go_last(one, NULL);
    CHECK(!flushes());
}

/* --- Threads -------------------------------------------------------------------- */

enum {
    HOPS = 20
};

static pid_t threads_seen[HOPS];

/* Each switch carries the context of the thread that it runs on. */
WF_NO_TSAN static void move_between_threads_main(void *carried)
{
    wf_context_begin(&one->context);
    int turns[HOPS] = { 0 };
    int *last = turns;
    set_rounding(FE_UPWARD);
    for (int hop = 0; hop < HOPS; hop++) {
        check_rounding(FE_UPWARD);
        CHECK_EQ(hop == 0 || *last == hop, true);
        last = &turns[hop];
        *last = hop + 1;
        threads_seen[hop] = gettid();
        carried = wf_context_switch(&one->context, carried, last);
    }
    for (int hop = 0; hop < HOPS; hop++) {
        CHECK_EQ(turns[hop], hop + 1);
    }
    wf_context_leave(carried, NULL);
}

WF_NO_TSAN static void *run_context_once(void *arg)
{
    struct wf_context here;
    wf_context_init_thread(&here);
    int *turn = wf_context_switch(&here, &one->context, &here);
    check_rounding(FE_TONEAREST);
    *(int *)arg = *turn;
    return NULL;
}

/*
 * Goal:   a context continues on any thread that switches to it, with its frames and its
 *         control words, and returns to the context that it is given.
 * Method: every other round runs on another thread. Creating and joining that thread hands the
 *         context over.
 */
static void context_continues_on_other_thread(void)
{
    start(one, move_between_threads_main);
    for (int hop = 0; hop < HOPS; hop++) {
        int turn = 0;
        pthread_t thread;
        if (hop % 2 == 0) {
            (void)run_context_once(&turn);
        } else {
            CHECK_EQ(pthread_create(&thread, NULL, run_context_once, &turn), 0);
            CHECK_EQ(pthread_join(thread, NULL), 0);
        }
        CHECK_EQ(turn, hop + 1);
        CHECK_EQ(threads_seen[hop] == gettid(), hop % 2 == 0);
    }
    (void)go_last(one, &home);
}

/* --- Leaving ---------------------------------------------------------------------- */

static WITHOUT_INLINE uintptr_t fill_frame(uintptr_t n, int depth)
{
    volatile uintptr_t frame[16];
    for (size_t i = 0; i < 16; i++) {
        frame[i] = n + i;
    }
    return frame[n % 16] + (depth > 0 ? fill_frame(n, depth - 1) : 0);
}

WF_NO_TSAN static void short_life_main(void *carried)
{
    wf_context_begin(&one->context);
    uintptr_t n = (uintptr_t)carried;
    CHECK_EQ(fill_frame(n, 3), 4 * (n + n % 16));
    wf_context_leave(&home, (void *)(n + 1));
}

static void stack_is_reused_by_successive_contexts(void)
{
    for (uintptr_t n = 0; n < test_scale(5000); n++) {
        start(one, short_life_main);
        CHECK_EQ((uintptr_t)go_last(one, (void *)n), n + 1);
    }
}

#if defined(__x86_64__)
#define MACHINE_TESTS                                                                              \
    TEST(long_doubles_survive_switch), TEST(x87_exception_flag_does_not_trap_in_other_context),
#else
#define MACHINE_TESTS
#endif

TEST_MAIN({
    TEST(switch_carries_value_both_ways),
    TEST(values_survive_context_that_trashes_registers),
    TEST(values_of_context_survive_thread_that_trashes_registers),
    MACHINE_TESTS TEST(thousand_contexts_start_each_other),
    TEST(value_passes_through_ring_of_contexts),
    TEST(first_frame_is_aligned_and_ends_frame_chain),
    TEST(backtrace_ends_at_first_frame),
    TEST(returning_context_function_traps),
    TEST(each_context_has_its_own_rounding_mode),
    TEST(each_context_has_its_own_flush_mode),
    TEST(context_continues_on_other_thread),
    TEST(stack_is_reused_by_successive_contexts),
})
