/* SPDX-License-Identifier: MIT */
/*
 * entry_x86_64.S - first frame of a context (see context.h).
 *
 * Entered by a jump, with the function in rbp and the carried value in rdx. An undefined rip
 * marks the outermost frame in the unwind information; rbp is 0 for frame-pointer walkers.
 *
 * Jumps to the function, with a return address as if by a call: the processor pairs calls with
 * returns, and a call that never returns would unbalance its return predictor for the callers
 * that were active when this context started.
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

/* Indirect jumps land only on endbr64; shadow stacks are not supported. */
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
