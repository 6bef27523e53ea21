/* SPDX-License-Identifier: MIT */
/*
 * valgrind.h - telling valgrind where stacks are, so that it takes a switch for a
 * switch and not for a frame of a gigabyte. Costs nothing outside of valgrind; not
 * there if its header was not when the library was built.
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
