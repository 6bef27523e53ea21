/* SPDX-License-Identifier: MIT */
/*
 * atomic.c - shared word that replaces the full fence under ThreadSanitizer.
 */
#include "base/atomic.h"

#if defined(WF_TSAN) && !defined(WF_MODEL)
_Atomic(unsigned) wf_fence_word;
#else
/* ISO C requires at least one declaration. */
typedef int wf_atomic_c_is_empty;
#endif
