/* SPDX-License-Identifier: MIT */
/*
 * latched.c - detects a waiter by the mark that it leaves in the latch's word.
 */
#include "latched.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/latch.h"
#include "test.h"

struct call {
    void (*function)(void);
    _Atomic(bool) has_returned;
};

static void *call_it(void *arg)
{
    struct call *call = arg;
    call->function();
    atomic_store(&call->has_returned, true);
    return NULL;
}

void test_call_latched(void *object, void (*call)(void))
{
    _Atomic(uint32_t) *word = object;
    struct call calling = { .function = call };
    pthread_t thread;
    uint32_t bits = wf_latch_lock(word);
    CHECK_EQ(pthread_create(&thread, NULL, call_it, &calling), 0);
    while ((atomic_load(word) & WF_LATCH_CONTENDED) == 0 && !atomic_load(&calling.has_returned)) {
        sched_yield();
    }
    wf_latch_unlock(word, bits);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}
