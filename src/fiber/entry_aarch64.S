/* SPDX-License-Identifier: MIT */
/*
 * entry_aarch64.S - first frame of a context (see context.h).
 *
 * Entered by a jump, with the function in x29 and the carried value in x2. An undefined x30
 * marks the outermost frame in the unwind information; x29 is 0 for frame-pointer walkers. Jumps
 * instead of calling: see entry_x86_64.S.
 */
#if defined(__aarch64__)

    .text
    .globl wf_context_entry
    .hidden wf_context_entry
    .type wf_context_entry, %function
    .p2align 4
wf_context_entry:
    .cfi_startproc
    .cfi_undefined x30
    hint #36 /* bti j */
    mov x16, x29
    mov x29, #0
    adr x30, 1f
    mov x0, x2
    br x16
1:  brk #1
    .cfi_endproc
    .size wf_context_entry, . - wf_context_entry

/* Indirect jumps land only on bti. */
    .section .note.gnu.property, "a", %note
    .p2align 3
    .long 4
    .long 16
    .long 5
    .asciz "GNU"
    .long 0xc0000000
    .long 4
    .long 1
    .long 0

#endif

    .section .note.GNU-stack, "", %progbits
