/* SPDX-License-Identifier: MIT */
/*
 * fork.c - detection of a forked process.
 */
#include "base/fork.h"

#include <pthread.h>
#include <stddef.h>

#include "base/atomic.h"

unsigned wf_fork_number;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(wf_fork_hook) child_hook;

static void count_fork(void)
{
    wf_fork_number++;
    /* relaxed: the child has one thread, and the function pointer publishes no data. */
    wf_fork_hook hook = wf_load_relaxed(&child_hook);
    if (hook != NULL) {
        hook();
    }
}

static void install(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

void wf_fork_watch(wf_fork_hook in_child)
{
    wf_fork_hook none = NULL;
    /* relaxed: the first of several concurrent callers wins; the pointer publishes no data. */
    (void)wf_cas_relaxed(&child_hook, &none, in_child);
    (void)pthread_once(&once, install);
}

_Noreturn void wf_fork_refuse(const char *call)
{
    wf_fatal("%s: this process is a fork of the one that made the runtime, and has none of its "
             "threads; call exec, or fork on a plain thread and create a runtime after fork",
             call);
}
