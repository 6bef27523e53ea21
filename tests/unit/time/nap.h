/* SPDX-License-Identifier: MIT */
/*
 * nap.h - one sleep in each context: on a fiber, on a plain thread, in a blocking job, and as a
 * future in a stackless task.
 */
#ifndef NAP_H
#define NAP_H

#include <pthread.h>
#include <stdatomic.h>

#include <weft.h>

#include "../base/asleep.h"
#include "rt.h"
#include "test.h"
#include "virtual.h"

enum place {
    ON_FIBER,
    IN_JOB,
    IN_BODY,
    ON_THREAD, /* must be last: cannot be canceled */
    PLACES,
    CANCELLABLE = ON_THREAD,
};

/* One sleep and its outcome. */
struct nap {
    weft_time deadline;
    unsigned flags; /* for the future */
    bool shielded;  /* the first sleep is shielded; a second one follows without the shield */
    int result;     /* of the first sleep */
    int afterwards; /* of the second */
    weft_time woke;
    weft_sleep_future future;
    weft_task *task;
    pthread_t thread;
    enum place place;
    _Atomic(uint64_t) tid;
    _Atomic(uint64_t) begun;
    _Atomic(uint64_t) ended;
};

static inline void nap_ended(struct nap *nap, int result)
{
    nap->result = result;
    nap->woke = weft_now();
    (void)atomic_fetch_add(&nap->ended, 1);
}

static inline int nap_function(void *arg)
{
    struct nap *nap = arg;
    atomic_store(&nap->tid, own_tid());
    if (nap->shielded) {
        weft_shield_enter();
    }
    (void)atomic_fetch_add(&nap->begun, 1);
    bool never = nap->deadline == WEFT_NEVER;
    nap_ended(nap, never ? weft_sleep(WEFT_NEVER) : weft_sleep_until(nap->deadline));
    if (nap->shielded) {
        weft_shield_leave();
        nap->afterwards = weft_sleep(VIRTUAL_HOUR);
    }
    return nap->result;
}

static inline void *nap_main(void *arg)
{
    (void)nap_function(arg);
    return NULL;
}

static inline int nap_body(weft_co *co, void *state)
{
    struct nap *nap = test_arg(state);
    int err = 0;
    WEFT_BEGIN(co);
    if (nap->shielded) {
        weft_shield_enter();
    }
    (void)atomic_fetch_add(&nap->begun, 1);
    weft_sleep_init(&nap->future, nap->deadline, nap->flags);
    WEFT_AWAIT(co, err, &nap->future.future);
    nap_ended(nap, err);
    if (nap->shielded) {
        weft_shield_leave();
        weft_sleep_init(&nap->future, weft_after(VIRTUAL_HOUR), nap->flags);
        WEFT_AWAIT(co, err, &nap->future.future);
        nap->afterwards = err;
    }
    WEFT_END(co, nap->result);
}

static inline void nap_start(struct nap *nap, weft_runtime *rt, enum place place)
{
    nap->place = place;
    nap->result = 1234;
    nap->afterwards = 1234;
    if (place == ON_FIBER) {
        nap->task = virtual_go(rt, nap_function, nap);
    } else if (place == IN_JOB) {
        CHECK_EQ(weft_runtime_spawn_blocking(rt, &nap->task, nap_function, nap), 0);
    } else if (place == IN_BODY) {
        nap->task = test_spawn(rt, nap_body, nap);
    } else {
        CHECK_EQ(pthread_create(&nap->thread, NULL, nap_main, nap), 0);
    }
}

/* Waits until it is asleep. */
static inline void nap_wait_asleep(struct nap *nap, weft_runtime *rt)
{
    test_wait_for(&nap->begun, 1);
    virtual_settle(rt);
    if (nap->place == ON_THREAD || nap->place == IN_JOB) {
        wait_until_asleep(atomic_load(&nap->tid));
    }
    CHECK_EQ(atomic_load(&nap->ended), 0);
}

static inline void nap_join(struct nap *nap)
{
    if (nap->place == ON_THREAD) {
        CHECK_EQ(pthread_join(nap->thread, NULL), 0);
    } else {
        CHECK_EQ(test_join(nap->task), nap->result);
    }
    CHECK_EQ(atomic_load(&nap->ended), 1);
}

#endif
