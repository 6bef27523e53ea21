/* SPDX-License-Identifier: MIT */
/*
 * threads.c - what POSIX threads offer, on the threads of the model.
 *
 * The test is linked with --wrap for each of these (wraps.ld), so that its calls
 * come here. Outside of an execution they go on to the C library.
 *
 * A mutex is a word that is awaited and exchanged; it is not recursive.
 */
#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "explore.h"
#include "location.h"
#include "memory.h"
#include "report.h"
#include "run.h"
#include "shadow.h"
#include "sleep.h"
#include "spin.h"

#define PC __builtin_return_address(0)

/* Declares and opens a function that stands for one of the C library. */
#define WRAP(type, name, ...)                                                                      \
    MC_API type __wrap_##name(__VA_ARGS__);                                                        \
    type __wrap_##name(__VA_ARGS__)

enum {
    ONCE_NEW,
    ONCE_RUNNING,
    ONCE_DONE,
};

static struct {
    unsigned count;
    void (*destructors[MC_KEYS_MAX])(void *value);
} keys;

struct started {
    void (*function)(void *arg);
    void *arg;
};

static uint32_t joined; /* threads of mc_go() that mc_join() has seen */
static uint32_t started_by_go;

void mc_threads_reset(void)
{
    keys.count = 0;
    joined = 0;
    started_by_go = 0;
}

/* --- Start and end ---------------------------------------------------------- */

static pthread_t handle_of(unsigned index)
{
    return (pthread_t)index + 1;
}

static unsigned index_of(pthread_t handle)
{
    if (handle == 0 || handle > mc_exec.thread_count) {
        mc_fail(MC_ASSERTION, "a pthread_t that was never returned by pthread_create");
    }
    return (unsigned)handle - 1;
}

static unsigned start(void *(*function)(void *arg), void *arg, const void *pc)
{
    unsigned index = mc_run_spawn(function, arg);
    (void)mc_report_event(&(struct mc_event){
        .kind = MC_OP_CREATE, .order = MC_NO_ORDER, .read = index, .from = UINT32_MAX, .pc = pc });
    return index;
}

static void *run_started(void *arg)
{
    const struct started *started = arg;
    started->function(started->arg);
    return NULL;
}

void mc_go(void (*function)(void *arg), void *arg)
{
    struct started *started = mc_scratch(sizeof *started);
    *started = (struct started){ function, arg };
    started_by_go |= 1u << start(run_started, started, PC);
}

void mc_join(void)
{
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        uint32_t bit = 1u << i;
        if ((started_by_go & bit) && (joined & bit) == 0 &&
            mc_exec.threads[i].parent == mc_self->index) {
            joined |= bit;
            mc_run_join(i, PC);
        }
    }
}

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *),
     void *arg)
{
    if (mc_self == NULL) {
        return pthread_create(thread, attr, function, arg);
    }
    *thread = handle_of(start(function, arg, PC));
    return 0;
}

WRAP(int, pthread_join, pthread_t thread, void **result)
{
    if (mc_self == NULL) {
        return pthread_join(thread, result);
    }
    unsigned index = index_of(thread);
    mc_run_join(index, PC);
    if (result != NULL) {
        *result = mc_exec.threads[index].result;
    }
    return 0;
}

WRAP(void, pthread_exit, void *result)
{
    if (mc_self == NULL) {
        pthread_exit(result);
    }
    mc_run_exit(result);
}

WRAP(pthread_t, pthread_self, void)
{
    return mc_self == NULL ? pthread_self() : handle_of(mc_self->index);
}

WRAP(int, pthread_detach, pthread_t thread)
{
    return mc_self == NULL ? pthread_detach(thread) : 0;
}

WRAP(int, sched_yield, void)
{
    if (mc_self == NULL) {
        return sched_yield();
    }
    if (mc_spin_before(PC, 0) != MC_SPIN_READ_NEWER) {
        mc_spin_after(PC, 0, 0);
    }
    return 0;
}

/* --- Harmless --------------------------------------------------------------- */

WRAP(int, pthread_setname_np, pthread_t thread, const char *name)
{
    return mc_self == NULL ? pthread_setname_np(thread, name) : 0;
}

WRAP(int, pthread_sigmask, int how, const sigset_t *set, sigset_t *old)
{
    return mc_self == NULL ? pthread_sigmask(how, set, old) : 0;
}

WRAP(int, pthread_atfork, void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    /* It would be registered once per execution. */
    (void)prepare;
    (void)parent;
    (void)child;
    return 0;
}

/* --- Once, and keys --------------------------------------------------------- */

WRAP(int, pthread_once, pthread_once_t *once, void (*function)(void))
{
    if (mc_self == NULL) {
        return pthread_once(once, function);
    }
    uintptr_t addr = (uintptr_t)once;
    unsigned size = sizeof *once;
    if (mc_memory_load(addr, size, MC_ACQUIRE, PC) == ONCE_DONE) {
        return 0;
    }
    struct mc_cas cas = { ONCE_NEW, ONCE_RUNNING, MC_ACQUIRE, MC_ACQUIRE, false };
    if (mc_memory_cas(addr, size, &cas, PC)) {
        function();
        mc_memory_store(addr, size, ONCE_DONE, MC_RELEASE, PC);
    } else {
        mc_memory_await(addr, size, ONCE_DONE, ONCE_DONE, PC);
    }
    return 0;
}

WRAP(int, pthread_key_create, pthread_key_t *key, void (*destructor)(void *))
{
    if (mc_self == NULL) {
        return pthread_key_create(key, destructor);
    }
    if (keys.count == MC_KEYS_MAX) {
        return EAGAIN;
    }
    keys.destructors[keys.count] = destructor;
    *key = keys.count++;
    return 0;
}

WRAP(int, pthread_key_delete, pthread_key_t key)
{
    if (mc_self == NULL) {
        return pthread_key_delete(key);
    }
    keys.destructors[key] = NULL;
    return 0;
}

WRAP(int, pthread_setspecific, pthread_key_t key, const void *value)
{
    if (mc_self == NULL) {
        return pthread_setspecific(key, value);
    }
    mc_self->keys[key] = (void *)(uintptr_t)value;
    return 0;
}

WRAP(void *, pthread_getspecific, pthread_key_t key)
{
    return mc_self == NULL ? pthread_getspecific(key) : mc_self->keys[key];
}

void mc_threads_run_destructors(void)
{
    for (unsigned i = 0; i < keys.count; i++) {
        void *value = mc_self->keys[i];
        mc_self->keys[i] = NULL;
        if (value != NULL && keys.destructors[i] != NULL) {
            keys.destructors[i](value);
        }
    }
}

/* --- Mutex and condition ---------------------------------------------------- */

enum {
    MUTEX_FREE,
    MUTEX_HELD,
    MUTEX_SIZE = sizeof(uint32_t),
};

WRAP(int, pthread_mutex_init, pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    if (mc_self == NULL) {
        return pthread_mutex_init(mutex, attr);
    }
    mc_shadow_plain((uintptr_t)mutex, sizeof *mutex, true, PC);
    memset(mutex, 0, sizeof *mutex);
    return 0;
}

WRAP(int, pthread_mutex_destroy, pthread_mutex_t *mutex)
{
    return mc_self == NULL ? pthread_mutex_destroy(mutex) : 0;
}

WRAP(int, pthread_mutex_lock, pthread_mutex_t *mutex)
{
    if (mc_self == NULL) {
        return pthread_mutex_lock(mutex);
    }
    mc_memory_await((uintptr_t)mutex, MUTEX_SIZE, MUTEX_FREE, MUTEX_HELD, PC);
    return 0;
}

WRAP(int, pthread_mutex_trylock, pthread_mutex_t *mutex)
{
    if (mc_self == NULL) {
        return pthread_mutex_trylock(mutex);
    }
    struct mc_cas cas = { MUTEX_FREE, MUTEX_HELD, MC_ACQUIRE, MC_RELAXED, false };
    return mc_memory_cas((uintptr_t)mutex, MUTEX_SIZE, &cas, PC) ? 0 : EBUSY;
}

static void unlock(pthread_mutex_t *mutex, const void *pc)
{
    if (!mc_memory_holds((uintptr_t)mutex, MUTEX_HELD)) {
        mc_fail(MC_ASSERTION, "pthread_mutex_unlock: the mutex is not locked");
    }
    mc_memory_store((uintptr_t)mutex, MUTEX_SIZE, MUTEX_FREE, MC_RELEASE, pc);
}

WRAP(int, pthread_mutex_unlock, pthread_mutex_t *mutex)
{
    if (mc_self == NULL) {
        return pthread_mutex_unlock(mutex);
    }
    unlock(mutex, PC);
    return 0;
}

WRAP(int, pthread_cond_init, pthread_cond_t *cond, const pthread_condattr_t *attr)
{
    if (mc_self == NULL) {
        return pthread_cond_init(cond, attr);
    }
    mc_shadow_plain((uintptr_t)cond, sizeof *cond, true, PC);
    memset(cond, 0, sizeof *cond);
    return 0;
}

WRAP(int, pthread_cond_destroy, pthread_cond_t *cond)
{
    return mc_self == NULL ? pthread_cond_destroy(cond) : 0;
}

/* The unlock and the beginning of the sleep are one step. */
static int wait_on(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline, const void *pc)
{
    mc_self->waits_at = (uintptr_t)cond;
    unlock(mutex, pc);
    mc_self->waits_at = 0;
    mc_did_access(mc_location_at((uintptr_t)cond, sizeof(uint32_t)), MC_DID_WAIT);
    int err = mc_sleep((uintptr_t)cond, deadline, pc);
    mc_memory_await((uintptr_t)mutex, MUTEX_SIZE, MUTEX_FREE, MUTEX_HELD, pc);
    return -err;
}

WRAP(int, pthread_cond_wait, pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    if (mc_self == NULL) {
        return pthread_cond_wait(cond, mutex);
    }
    return wait_on(cond, mutex, INT64_MAX, PC);
}

WRAP(int, pthread_cond_timedwait, pthread_cond_t *cond, pthread_mutex_t *mutex,
     const struct timespec *until)
{
    if (mc_self == NULL) {
        return pthread_cond_timedwait(cond, mutex, until);
    }
    return wait_on(cond, mutex, (int64_t)until->tv_sec * 1000000000 + until->tv_nsec, PC);
}

WRAP(int, pthread_cond_signal, pthread_cond_t *cond)
{
    if (mc_self == NULL) {
        return pthread_cond_signal(cond);
    }
    (void)mc_wake((uintptr_t)cond, 1, PC);
    return 0;
}

WRAP(int, pthread_cond_broadcast, pthread_cond_t *cond)
{
    if (mc_self == NULL) {
        return pthread_cond_broadcast(cond);
    }
    (void)mc_wake((uintptr_t)cond, MC_THREADS_MAX, PC);
    return 0;
}
