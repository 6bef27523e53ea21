/* SPDX-License-Identifier: MIT */
/*
 * callout.h - calls of the user's functions, which no exception may leave.
 *
 * A function of the library that calls a function of the user stands between two frames of the
 * user. An exception that is thrown in the inner one and caught in the outer one would skip the
 * rest of the library's function, and leave what that had begun: a fiber on a thread of the
 * blocking pool, a fork that is never joined, a latch that is held.
 *
 * So the call is put between WF_CALLOUT_BEGIN() and WF_CALLOUT_END(). They compile to no
 * instruction. The first gives the frame a personality routine that refuses every exception: then
 * the search for a handler fails, nothing is unwound, and the C++ runtime calls std::terminate()
 * where the exception was thrown. The second keeps the compiler from making the call a jump, which
 * would remove the frame.
 *
 * Rejected. To leave out the unwind tables of the library: the search fails in the same way, but
 * backtrace() and debuggers fail, too. Only folders with too many such calls to mark are compiled
 * so (CMakeLists.txt).
 */
#ifndef WF_BASE_CALLOUT_H
#define WF_BASE_CALLOUT_H

#ifdef WF_MODEL /* in C only */
#define WF_CALLOUT_BEGIN() ((void)0)
#define WF_CALLOUT_END()   ((void)0)
#else
/* 0x1b: relative to the place of the address, in four bytes. */
#define WF_CALLOUT_BEGIN() __asm__ volatile(".cfi_personality 0x1b, wf_callout_personality")
#define WF_CALLOUT_END()   __asm__ volatile("")
#endif

/* The most frequent kind. */
static inline __attribute__((always_inline)) int wf_callout(int (*function)(void *arg), void *arg)
{
    WF_CALLOUT_BEGIN();
    int result = function(arg);
    WF_CALLOUT_END();
    return result;
}

#endif
