/* SPDX-License-Identifier: MIT */
/*
 * valgrind.h - registers stacks with valgrind, so that it recognizes a context switch instead of
 * seeing a frame of a gigabyte. Costs nothing outside of valgrind. Empty if valgrind's header
 * was not available when the library was built.
 */
#ifndef WF_FIBER_VALGRIND_H
#define WF_FIBER_VALGRIND_H

#include <stddef.h>

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

static inline unsigned wf_valgrind_stack_made(char *low, size_t size)
{
#if defined(VALGRIND_STACK_REGISTER)
    return VALGRIND_STACK_REGISTER(low, low + size);
#else
    (void)low;
    (void)size;
    return 0;
#endif
}

static inline void wf_valgrind_stack_gone(unsigned id)
{
#if defined(VALGRIND_STACK_DEREGISTER)
    VALGRIND_STACK_DEREGISTER(id);
#else
    (void)id;
#endif
}

#endif
