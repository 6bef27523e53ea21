/* SPDX-License-Identifier: MIT */
/*
 * fork.c - noticing that this process is a fork.
 */
#include "base/fork.h"

#include <pthread.h>
#include <stddef.h>

unsigned wf_fork_number;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void (*child_hook)(void);

static void count_fork(void)
{
    wf_fork_number++;
    if (child_hook != NULL) {
        child_hook();
    }
}

static void install(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

void wf_fork_watch(void (*in_child)(void))
{
    if (child_hook == NULL) {
        child_hook = in_child;
    }
    (void)pthread_once(&once, install);
}

_Noreturn void wf_fork_refuse(const char *call)
{
    wf_fatal("%s: this process is a fork of the one that made the runtime, and has none of its "
             "threads; call exec, or create a runtime after fork",
             call);
}
