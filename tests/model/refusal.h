/* SPDX-License-Identifier: MIT */
/*
 * refusal.h - a system that refuses to start a thread. For programs that are built
 * with pthread_create=model_pthread_create.
 */
#ifndef MODEL_REFUSAL_H
#define MODEL_REFUSAL_H

#include <errno.h>
#include <pthread.h>

#undef pthread_create
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *arg),
                   void *arg);

static int starts_to_refusal; /* the n-th start is refused; 0 for none */

int model_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                         void *(*start)(void *arg), void *arg)
{
    if (starts_to_refusal > 0 && --starts_to_refusal == 0) {
        return EAGAIN;
    }
    return pthread_create(thread, attributes, start, arg);
}

#endif
