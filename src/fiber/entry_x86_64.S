/* SPDX-License-Identifier: MIT */
/*
 * entry_x86_64.S - the first frame of a context: see context.h.
 *
 * Arrives by a jump, with the function in rbp and what is carried in rdx. Undefined
 * rip is how unwind information says "nobody called this"; rbp is 0 for those who
 * walk frame pointers.
 *
 * It jumps to the function, with a return address as a call would have made it: the
 * processor pairs calls with returns, and a call that never returns would spoil its
 * guesses for those who called when this context began.
 */
#if defined(__x86_64__)

    .text
    .globl wf_context_entry
    .hidden wf_context_entry
    .type wf_context_entry, @function
    .p2align 4
wf_context_entry:
    .cfi_startproc
    .cfi_undefined rip
    endbr64
    movq %rbp, %rax
    xorl %ebp, %ebp
    movq %rdx, %rdi
    leaq 1f(%rip), %rcx
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    jmp *%rax
1:  ud2
    .cfi_endproc
    .size wf_context_entry, . - wf_context_entry

/* Indirect jumps land on endbr64 only; shadow stacks are not supported. */
    .section .note.gnu.property, "a", @note
    .p2align 3
    .long 4
    .long 16
    .long 5
    .asciz "GNU"
    .long 0xc0000002
    .long 4
    .long 1
    .long 0

#endif

    .section .note.GNU-stack, "", %progbits
