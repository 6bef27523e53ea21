/* SPDX-License-Identifier: MIT */
/*
 * local_model.c - src/sched/local.c: a key is made while a fiber ends that has a value
 * under it. (The one that made the key before had it, too.)
 *
 * Fakes: where the values are kept.
 */
#include "sched/local.h"

#include <stdlib.h>

#include <weft/fiber.h>

#include "base/alloc.h"
#include "mc.h"
#include "sched/await.h"
#include "sched/fiber.h"
#include "sched/thread.h"

static int value;
static int destroyed;

void wf_await_refuse(const char *call, const char *instead)
{
    mc_assert(call == NULL && instead == NULL); /* There are no workers. */
    abort();
}

const struct wf_task_ops wf_fiber_ops; /* nobody's */

struct wf_task *wf_thread_running(void)
{
    return NULL;
}

struct wf_thread *wf_thread_self(void)
{
    return NULL;
}

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

static struct wf_thread parent;

struct wf_thread *wf_thread_known(void)
{
    return &parent;
}

static void *share(void *arg)
{
    mc_assert(arg == &value);
    return arg;
}

static void destroy(void *arg)
{
    mc_assert(arg == &value);
    destroyed++;
}

static void end_fiber(void *arg)
{
    (void)arg;
    void **locals =
        wf_alloc_zeroed(&wf_alloc_default, WEFT_LOCAL_KEYS_MAX * sizeof(void *), _Alignof(void *));
    locals[0] = &value;
    wf_local_end(&locals);
    mc_assert(locals == NULL);
    mc_note(destroyed);
}

/* Goal: whoever finds the key ready finds its destructor, too. */
static void create_against_end(void)
{
    mc_go(end_fiber, NULL);
    weft_local key;
    mc_assert(weft_local_create(&key, destroy) == 0);
    mc_assert(key.index == 0);
    mc_join();
}

static void create_key(void *arg)
{
    mc_assert(weft_local_create(arg, destroy) == 0);
}

/* Goal: two keys that are made at once are two keys. */
static void create_against_create(void)
{
    weft_local first;
    weft_local second;
    mc_go(create_key, &first);
    create_key(&second);
    mc_join();
    mc_assert(first.index != second.index);
    mc_note((int)first.index);
}

static void start_heir(void *arg)
{
    (void)arg;
    void *values[WEFT_LOCAL_KEYS_MAX] = { &value };
    void **locals;
    parent.locals = values;
    mc_assert(wf_local_inherit(&locals) == 0);
    mc_note(locals[0] == &value);
    locals[0] = NULL;
    wf_local_end(&locals);
}

/* Goal: whoever finds the key ready finds how it is inherited, too. */
static void create_against_inherit(void)
{
    mc_go(start_heir, NULL);
    weft_local key;
    mc_assert(weft_local_create_inherited(&key, share, destroy) == 0);
    mc_assert(key.index == 0);
    mc_join();
}

static const struct mc_test tests[] = {
    { .name = "create_against_end",
      .run = create_against_end,
      .seen = MC_OUTCOMES(0, 1),
      .leaks = true },
    { .name = "create_against_inherit",
      .run = create_against_inherit,
      .seen = MC_OUTCOMES(0, 1),
      .leaks = true },
    { .name = "create_against_create", .run = create_against_create, .seen = MC_OUTCOMES(0, 1) },
};

MC_MAIN(tests)
