/* SPDX-License-Identifier: MIT */
/*
 * threads.h - a system that may refuse to start a thread, and counts those that are
 * not joined. For programs that are built with pthread_create=model_pthread_create
 * and pthread_join=model_pthread_join.
 */
#ifndef MODEL_THREADS_H
#define MODEL_THREADS_H

#include <errno.h>
#include <pthread.h>

#include "base/atomic.h"

#undef pthread_create
#undef pthread_join
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *arg),
                   void *arg);
int pthread_join(pthread_t thread, void **result);

static int starts_to_refusal; /* the n-th start is refused; 0 for none */
static _Atomic(int) threads_unjoined;

int model_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                         void *(*start)(void *arg), void *arg)
{
    if (starts_to_refusal > 0 && --starts_to_refusal == 0) {
        return EAGAIN;
    }
    int err = pthread_create(thread, attributes, start, arg);
    (void)wf_fetch_add_relaxed(&threads_unjoined, err == 0);
    return err;
}

int model_pthread_join(pthread_t thread, void **result)
{
    int err = pthread_join(thread, result);
    (void)wf_fetch_sub_relaxed(&threads_unjoined, err == 0);
    return err;
}

#endif
