/* SPDX-License-Identifier: MIT */
/*
 * fork.h - noticing that this process is a fork.
 *
 * Threads do not survive fork(): in the child a runtime is a set of locks that
 * may be held for ever. So whatever belongs to a runtime remembers the number of
 * forks that this process is away from its ancestor, and calls in a child are
 * refused with a sentence instead of hanging. exec() is fine.
 */
#ifndef WF_BASE_FORK_H
#define WF_BASE_FORK_H

#include "base/assert.h"

/* Written in a child only, while it has one thread. */
extern unsigned wf_fork_number;

typedef void (*wf_fork_hook)(void);

/* Any thread: counts forks from now on, and calls in_child() in each child. The
 * first caller decides which function that is. */
void wf_fork_watch(wf_fork_hook in_child);

_Noreturn void wf_fork_refuse(const char *call) __attribute__((cold));

/* number is wf_fork_number as it was when the runtime was made. */
static inline void wf_fork_check(unsigned number, const char *call)
{
    if (wf_unlikely(number != wf_fork_number)) {
        wf_fork_refuse(call);
    }
}

#endif
