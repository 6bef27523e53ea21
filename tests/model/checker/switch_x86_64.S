/* SPDX-License-Identifier: MIT */
/*
 * switch_x86_64.S - from one stack to another.
 *
 * void mc_switch(void **save, void *to)
 *
 * Keeps what the ABI wants kept across a call: six registers, and the stack
 * pointer in *save. The rest the compiler believes to be lost anyway.
 */
        .text
        .globl  mc_switch
        .hidden mc_switch
        .type   mc_switch, @function
mc_switch:
        pushq   %rbp
        pushq   %rbx
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        ret
        .size   mc_switch, . - mc_switch

        .section .note.GNU-stack, "", @progbits
