/* SPDX-License-Identifier: MIT */
/*
 * fork.h - detection of a forked process.
 *
 * Threads do not survive fork(): in the child, a runtime is a set of locks that may be held
 * forever. So every object of a runtime records the number of forks between this process and
 * its ancestor, and a call in a child aborts with a message instead of hanging. exec() is fine.
 */
#ifndef WF_BASE_FORK_H
#define WF_BASE_FORK_H

#include "base/assert.h"

/* Written only in a child, while it has a single thread. */
extern unsigned wf_fork_number;

typedef void (*wf_fork_hook)(void);

/* Any thread. Starts counting forks and calls in_child() in each child. The function of the
 * first caller is used. */
void wf_fork_watch(wf_fork_hook in_child);

_Noreturn void wf_fork_refuse(const char *call) __attribute__((cold));

/* Aborts if the process is not the one that created the runtime. number is the wf_fork_number
 * of that time. */
static inline void wf_fork_check(unsigned number, const char *call)
{
    if (wf_unlikely(number != wf_fork_number)) {
        wf_fork_refuse(call);
    }
}

#endif
