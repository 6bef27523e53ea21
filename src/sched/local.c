/* SPDX-License-Identifier: MIT */
/*
 * local.c - fiber-local storage: values that each fiber, blocking job and plain thread has for
 * itself.
 *
 * Keys are slots in one table of the process. The values of a fiber are an array that is
 * allocated when the fiber first sets one, and kept with it. Those of a plain thread, or of the
 * blocking job that runs on it, are kept with the thread's record.
 *
 * Edges.
 * [K1] creating a key releases its slot; starting a fiber that inherits, and ending one,
 *      acquire it: the functions are visible.
 */
#include "sched/local.h"

#include <errno.h>

#include <weft/fiber.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/callout.h"
#include "sched/await.h"
#include "sched/fiber.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    KEYS_MAX = WEFT_LOCAL_KEYS_MAX,
    /* A destructor may set values again. After this number of rounds they are left alone. */
    ROUNDS_MAX = 4,
};

enum key_state {
    KEY_FREE,
    KEY_TAKEN, /* by a creator that is about to fill it */
    KEY_READY,
};

struct key {
    _Atomic(uint32_t) state;
    void *(*inherit)(void *value); /* NULL: the value is not inherited */
    void (*destructor)(void *value);
};

static struct key keys[KEYS_MAX];

int weft_local_create(weft_local *out, void (*destructor)(void *value))
{
    return weft_local_create_inherited(out, NULL, destructor);
}

int weft_local_create_inherited(weft_local *out, void *(*inherit)(void *value),
                                void (*destructor)(void *value))
{
    for (unsigned i = 0; i < KEYS_MAX; i++) {
        uint32_t state = KEY_FREE;
        /* relaxed: decides which creator gets the slot; it is filled below. */
        if (wf_cas_relaxed(&keys[i].state, &state, (uint32_t)KEY_TAKEN)) {
            keys[i].inherit = inherit;
            keys[i].destructor = destructor;
            /* release [K1]: the functions are visible. */
            wf_store_release(&keys[i].state, (uint32_t)KEY_READY);
            *out = (weft_local){ .index = i };
            return 0;
        }
    }
    return -EAGAIN;
}

/* Returns where the values of the current fiber or thread are kept. */
static void ***locals_here(const char *call)
{
    const struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        (void)wf_await_fiber(worker, call, "keep it in the state of the task");
    }
    struct wf_fiber *fiber = wf_fiber_of(wf_thread_running());
    if (fiber != NULL) {
        return &fiber->locals;
    }
    struct wf_thread *self = wf_thread_self();
    return self != NULL ? &self->locals : NULL;
}

static void must_be_key(weft_local key, const char *call)
{
    /* relaxed: only checks the caller's argument. */
    if (key.index >= KEYS_MAX || wf_load_relaxed(&keys[key.index].state) != KEY_READY) {
        wf_fatal("%s: no such key; make one with weft_local_create()", call);
    }
}

int weft_local_set(weft_local key, void *value)
{
    must_be_key(key, "weft_local_set");
    void ***locals = locals_here("weft_local_set");
    if (locals == NULL) {
        return -ENOMEM;
    }
    if (*locals == NULL) {
        *locals = wf_alloc_zeroed(&wf_alloc_default, KEYS_MAX * sizeof(void *), _Alignof(void *));
        if (*locals == NULL) {
            return -ENOMEM;
        }
    }
    (*locals)[key.index] = value;
    return 0;
}

void *weft_local_get(weft_local key)
{
    must_be_key(key, "weft_local_get");
    void ***locals = locals_here("weft_local_get");
    return locals != NULL && *locals != NULL ? (*locals)[key.index] : NULL;
}

/* Returns the values of the current fiber or thread; NULL if it has none, or is a stackless
 * task. */
static void **known_locals(void)
{
    struct wf_fiber *fiber = wf_fiber_of(wf_thread_running());
    if (fiber != NULL) {
        return fiber->locals;
    }
    const struct wf_thread *self = wf_worker_current() == NULL ? wf_thread_known() : NULL;
    return self != NULL ? self->locals : NULL;
}

static void *inherited(unsigned key, void *value)
{
    /* acquire [K1]: the function. */
    bool is_ready = value != NULL && wf_load_acquire(&keys[key].state) == KEY_READY;
    if (!is_ready || keys[key].inherit == NULL) {
        return NULL;
    }
    WF_CALLOUT_BEGIN();
    void *copy = keys[key].inherit(value);
    WF_CALLOUT_END();
    return copy;
}

int wf_local_inherit(void ***locals)
{
    void **from = known_locals();
    *locals = NULL;
    if (from == NULL) {
        return 0;
    }
    *locals = wf_alloc_zeroed(&wf_alloc_default, KEYS_MAX * sizeof(void *), _Alignof(void *));
    if (*locals == NULL) {
        return -ENOMEM;
    }
    for (unsigned i = 0; i < KEYS_MAX; i++) {
        (*locals)[i] = inherited(i, from[i]);
    }
    return 0;
}

/* Calls the destructors of the values that are set. Returns false if there was none. */
static bool end_round(void **locals)
{
    bool any = false;
    for (unsigned i = 0; i < KEYS_MAX; i++) {
        void *value = locals[i];
        locals[i] = NULL;
        /* acquire [K1]: the destructor. */
        if (value != NULL && wf_load_acquire(&keys[i].state) == KEY_READY &&
            keys[i].destructor != NULL) {
            WF_CALLOUT_BEGIN();
            keys[i].destructor(value);
            WF_CALLOUT_END();
            any = true;
        }
    }
    return any;
}

void wf_local_end(void ***locals)
{
    for (int round = 0; round < ROUNDS_MAX && *locals != NULL && end_round(*locals); round++) {
    }
    wf_free(&wf_alloc_default, *locals, KEYS_MAX * sizeof(void *), _Alignof(void *));
    *locals = NULL;
}
