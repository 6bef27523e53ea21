/* SPDX-License-Identifier: MIT */
/*
 * step.c - single-stepping. The trap flag makes the processor raise SIGTRAP after each
 * instruction; the handler counts, and runs the other side when it is time.
 */
#include "step.h"

#include "test.h"

void test_check_both(const unsigned outcomes[2])
{
    CHECK_GE(outcomes[0], 1);
    CHECK_GE(outcomes[1], 1);
}

#if defined(__x86_64__) && !TEST_IS_SANITIZED

#include <signal.h>
#include <stddef.h>

enum {
    STEPS_MIN = 10,
};

static int steps_left;
static void (*run_between)(void);

static void on_step(int number)
{
    (void)number;
    if (steps_left-- == 0) {
        run_between();
    }
}

bool test_interrupt_after(int n, void (*step)(void), void (*between)(void))
{
    struct sigaction action = { .sa_handler = on_step };
    struct sigaction before;
    CHECK_EQ(sigaction(SIGTRAP, &action, &before), 0);
    steps_left = n;
    run_between = between;
    /* Sets the trap flag; keeps the red zone of this function intact. */
    __asm__ volatile("subq $128, %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
                     "addq $128, %%rsp" ::
                         : "memory", "cc");
    step();
    __asm__ volatile("subq $128, %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\t"
                     "addq $128, %%rsp" ::
                         : "memory", "cc");
    CHECK_EQ(sigaction(SIGTRAP, &before, NULL), 0);
    if (steps_left >= 0) {
        CHECK_GE(n, STEPS_MIN);
        return false;
    }
    return true;
}

#else

bool test_interrupt_after(int n, void (*step)(void), void (*between)(void))
{
    (void)n;
    (void)step;
    (void)between;
    test_fail(__FILE__, __LINE__, "instructions cannot be stepped: list it with TEST_STEPS()");
}

#endif
