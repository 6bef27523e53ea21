/* SPDX-License-Identifier: MIT */
/*
 * atomic.c - the word that stands in for a fence under ThreadSanitizer.
 */
#include "base/atomic.h"

#if defined(WF_TSAN) && !defined(WF_MODEL)
_Atomic(unsigned) wf_fence_word;
#else
/* ISO C wants at least one declaration. */
typedef int wf_atomic_c_is_empty;
#endif
