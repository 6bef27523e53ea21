/* SPDX-License-Identifier: MIT */
/*
 * runtime.c - lifecycle of a runtime: create, run, shut down, destroy.
 *
 * Destroying a runtime invalidates the handle: no other holder may use it any more. Two measures
 * soften that. A plain thread that blocks in a call of the runtime, and is woken by the
 * shutdown, counts as a user; the destroyer waits for the last user to leave [U2]. And the
 * memory of the last RETIRED_MAX destroyed handles is kept, so that a later use finds the mark
 * and aborts with a message. So this memory does not come from the user's allocator, which may
 * be gone by then.
 *
 * Edges.
 * [U1] the end of a shutdown releases the word, other callers that wait for it acquire it:
 *      everything has ended.
 * [U2] a user that leaves releases the count, the destroyer acquires it: the user is done
 *      with the runtime.
 */
#include "rt/runtime.h"

#include <errno.h>
#include <stdio.h>

#include <weft/fiber.h>
#include <weft/task.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/callout.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/futex.h"
#include "fiber/stack.h"
#include "io/io.h"
#include "rt/config.h"
#include "sched/guest.h"
#include "sched/fiber.h"
#include "sched/heap.h"
#include "sched/overflow.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/thread.h"
#include "sched/worker.h"
#include "time/timer.h"

/* All runtimes of the process. Debuggers look this name up: tools/weft-gdb.py. */
static struct wf_list wf_runtimes = { &wf_runtimes, &wf_runtimes };
static struct wf_lock runtimes_lock = WF_LOCK_INIT(WF_RANK_RUNTIME);

static void list_runtime(weft_runtime *rt)
{
    wf_lock(&runtimes_lock);
    wf_list_push_back(&wf_runtimes, &rt->link);
    wf_unlock(&runtimes_lock);
}

static void unlist_runtime(weft_runtime *rt)
{
    wf_lock(&runtimes_lock);
    wf_list_remove(&rt->link);
    wf_unlock(&runtimes_lock);
}

enum {
#ifdef WF_MODEL
    RETIRED_MAX = 0, /* The model checker would report them as leaks. */
#else
    RETIRED_MAX = 1024,
#endif
};

/* Handles of destroyed runtimes, oldest first; under runtimes_lock. */
static struct wf_list retired = { &retired, &retired };
static unsigned retired_count;

static weft_runtime *alloc_runtime(void)
{
    return wf_alloc_zeroed(&wf_alloc_default, sizeof(weft_runtime), _Alignof(weft_runtime));
}

static void free_runtime(weft_runtime *rt)
{
    wf_free(&wf_alloc_default, rt, sizeof *rt, _Alignof(weft_runtime));
}

/* Keeps the handle of a destroyed runtime. Frees the oldest handle if there are too many. */
static void retire_runtime(weft_runtime *rt)
{
    weft_runtime *oldest = NULL;
    wf_lock(&runtimes_lock);
    wf_list_push_back(&retired, &rt->link);
    if (retired_count == RETIRED_MAX) {
        oldest = wf_container_of(wf_list_pop_front(&retired), weft_runtime, link);
    } else {
        retired_count++;
    }
    wf_unlock(&runtimes_lock);
    free_runtime(oldest);
}

#define USERS_AWAITED (UINT32_C(1) << 31) /* in users: the destroyer sleeps on it */

void wf_runtime_check(const weft_runtime *rt, const char *call)
{
    /* relaxed: best effort, see runtime.h. */
    if (wf_unlikely(wf_load_relaxed(&rt->is_destroyed) != 0)) {
        wf_fatal("%s: the runtime was destroyed before; if other threads still use it, call "
                 "weft_runtime_shutdown() first, and destroy it when they have ended",
                 call);
    }
    wf_fork_check(rt->sched->fork_number, call);
}

struct wf_sched *wf_sched_of_runtime(const weft_runtime *rt, const char *call)
{
    wf_runtime_check(rt, call);
    return rt->sched;
}

void wf_runtime_enter(weft_runtime *rt, const char *call)
{
    wf_runtime_check(rt, call);
    /* relaxed: the caller may use the runtime, so a destroy can only come later. */
    (void)wf_fetch_add_relaxed(&rt->users, 1);
}

void wf_runtime_leave(weft_runtime *rt)
{
    /* release [U2]: done with the runtime. It may be freed after this; the futex call uses only
     * its address, which is harmless. */
    if (wf_fetch_sub_release(&rt->users, 1) == (USERS_AWAITED | 1)) {
        wf_futex_wake(&rt->users, 1);
    }
}

static void await_users(weft_runtime *rt)
{
    uint32_t users;
    /* relaxed: ordered by the loads below. */
    (void)wf_fetch_or_relaxed(&rt->users, USERS_AWAITED);
    /* acquire [U2]: a user that has left is done with the runtime. */
    while ((users = wf_load_acquire(&rt->users)) != USERS_AWAITED) {
        (void)wf_futex_wait(&rt->users, users, WF_NEVER);
    }
}

int weft_runtime_create(weft_runtime **out, const weft_config *config)
{
    struct wf_sched_options options;
    int err = wf_config_resolve(config, &options);
    if (err != 0) {
        return err;
    }
    err = wf_thread_prepare();
    if (err != 0) {
        return err;
    }
    wf_fork_watch(wf_worker_in_child);
    wf_overflow_watch();
    err = -ENOMEM;
    weft_runtime *rt = alloc_runtime();
    struct wf_sched *sched =
        wf_alloc_zeroed(&options.allocator, sizeof *sched, _Alignof(struct wf_sched));
    if (rt == NULL || sched == NULL) {
        goto undo_memory;
    }
    err = wf_sched_init(sched, &options, rt);
    if (err != 0) {
        goto undo_memory;
    }
    rt->sched = sched;
    wf_lock_init(&rt->stop_lock, WF_RANK_RUNTIME);
    list_runtime(rt);
    err = wf_timers_create(sched);
    if (err != 0) {
        goto undo_sched;
    }
    err = wf_io_create(sched);
    if (err != 0) {
        goto undo_sched;
    }
    err = wf_sched_start(sched);
    if (err != 0) {
        goto undo_sched;
    }
    *out = rt;
    return 0;

undo_sched:
    unlist_runtime(rt);
    wf_io_destroy(sched);
    wf_timers_destroy(sched);
    wf_sched_fini(sched);
    sched = NULL;
undo_memory:
    wf_free(&options.allocator, sched, sizeof *sched, _Alignof(struct wf_sched));
    free_runtime(rt);
    wf_overflow_unwatch();
    return err;
}

static void must_be_outside(const weft_runtime *rt, const char *call)
{
    const struct wf_worker *worker = wf_worker_current();
    const struct wf_task *running = wf_thread_running();
    bool on_worker = worker != NULL && worker->sched == rt->sched;
    bool on_pool = running != NULL && running->heap->sched == rt->sched;
    if (on_worker || on_pool || wf_guest_is_of(rt->sched)) {
        wf_fatal("%s: called on a thread of this runtime, which would wait for itself; call it "
                 "from a plain thread, for example after weft_run()'s main",
                 call);
    }
    if (worker != NULL) {
        wf_fatal("%s: called on a worker of another runtime, which would block it; call it from a "
                 "plain thread, or in weft_block_in_place()",
                 call);
    }
}

static void shut_down(weft_runtime *rt)
{
    wf_lock(&rt->stop_lock);
    bool first = !rt->stopping;
    rt->stopping = true;
    wf_unlock(&rt->stop_lock);
    if (first) {
        wf_sched_drain(rt->sched);
        wf_io_close(rt->sched);
        wf_sched_stop(rt->sched);
        /* release [U1]: everything has ended. */
        wf_store_release(&rt->stopped, 1u);
        wf_futex_wake(&rt->stopped, INT_MAX);
        return;
    }
    /* acquire [U1]: everything has ended. */
    while (wf_load_acquire(&rt->stopped) == 0) {
        (void)wf_futex_wait(&rt->stopped, 0, WF_NEVER);
    }
}

void weft_runtime_shutdown(weft_runtime *rt)
{
    wf_runtime_check(rt, "weft_runtime_shutdown");
    must_be_outside(rt, "weft_runtime_shutdown");
    shut_down(rt);
}

enum {
    HELD_NAMED = 5,
};

/* Tasks that still have handles or wakers when their runtime is destroyed. */
struct held {
    unsigned count;
    size_t length;
    char text[400];
};

/* Appends what the user knows the task by: its name, or else its function. */
static void note_held(struct wf_task *task, void *arg)
{
    struct held *held = arg;
    const struct wf_fiber *fiber = wf_fiber_of(task);
    void (*function)(void) =
        fiber != NULL ? (void (*)(void))fiber->function : (void (*)(void))wf_spawn_body(task);
    char *end = held->text + held->length;
    size_t room = sizeof held->text - held->length;
    int length = 0;
    if (held->count < HELD_NAMED) {
        const char *comma = held->count > 0 ? ", " : "";
        unsigned long long id = task->id;
        length = task->name != NULL ? snprintf(end, room, "%s%s '%s' (#%llu)", comma,
                                               task->ops->kind, task->name, id)
                                    : snprintf(end, room, "%s%s #%llu (function %p)", comma,
                                               task->ops->kind, id, (void *)(uintptr_t)function);
    } else if (held->count == HELD_NAMED) {
        length = snprintf(end, room, ", ...");
    }
    held->count++;
    held->length += length < (int)room ? (size_t)length : room - 1;
}

/* Destroys the scheduler. Its memory stays while a task still has a handle or a waker. */
static void end_sched(struct wf_sched *sched)
{
    struct held held = { 0 };
    void (*on_message)(void *ctx, const char *text) = sched->options.on_message;
    void *ctx = sched->options.message_ctx;
    sched->heap->on_orphan = note_held;
    sched->heap->orphan_arg = &held;
    wf_sched_fini(sched);
    if (held.count > 0) {
        char text[sizeof held.text + 200];
        (void)snprintf(text, sizeof text,
                       "weft_runtime_destroy: %u task%s a handle that was neither joined nor "
                       "detached, or a waker: %s; the memory of the runtime stays until they end",
                       held.count, held.count == 1 ? " has" : "s have", held.text);
        WF_CALLOUT_BEGIN();
        on_message(ctx, text);
        WF_CALLOUT_END();
    }
}

void weft_runtime_destroy(weft_runtime *rt)
{
    if (rt == NULL) {
        return;
    }
    wf_runtime_check(rt, "weft_runtime_destroy");
    must_be_outside(rt, "weft_runtime_destroy");
    shut_down(rt);
    await_users(rt);
    /* relaxed: best effort, as in wf_runtime_check(). */
    if (wf_xchg_relaxed(&rt->is_destroyed, 1u) != 0) {
        wf_fatal("weft_runtime_destroy: two threads destroy one runtime");
    }
    unlist_runtime(rt);
    wf_io_destroy(rt->sched);
    wf_timers_destroy(rt->sched);
    end_sched(rt->sched);
    retire_runtime(rt);
    wf_overflow_unwatch();
}

int weft_run(const weft_config *config, int (*main_fn)(void *arg), void *arg)
{
    const struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) { /* In a child process forked by a fiber, the runtime has no threads. */
        wf_fork_check(worker->sched->fork_number, "weft_run");
    }
    wf_thread_must_be_plain("weft_run", "spawn a task on the runtime that is there");
    int err = wf_thread_prepare();
    if (err != 0) {
        return err;
    }
    if (wf_thread_self() == NULL) { /* Otherwise it could not wait for the main task. */
        return -ENOMEM;
    }
    weft_runtime *rt;
    err = weft_runtime_create(&rt, config);
    if (err != 0) {
        return err;
    }
    weft_task *main_task;
    weft_fiber_spec spec = {
        .function = main_fn,
        .arg = arg,
        .name = "main",
        .stack_size = WF_STACK_MAX,
    };
    int result = 0;
    err = weft_runtime_go(rt, &main_task, &spec);
    if (err == 0) {
        err = weft_join(main_task, &result, WEFT_NEVER);
        if (err != 0) {
            weft_detach(main_task);
        }
    }
    weft_runtime_destroy(rt);
    return err != 0 ? err : result;
}

weft_runtime *weft_runtime_current(void)
{
    const struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        return worker->sched->runtime;
    }
    const struct wf_thread *thread = wf_thread_known();
    return thread != NULL ? thread->runtime : NULL;
}

weft_runtime *wf_runtime_must_current(const char *call)
{
    weft_runtime *rt = weft_runtime_current();
    if (rt == NULL) {
        wf_fatal("%s: this thread belongs to no runtime; call weft_runtime_%s with a handle, or "
                 "call it in a task",
                 call, call + sizeof "weft_" - 1);
    }
    return rt;
}

int weft_worker_current(void)
{
    const struct wf_worker *worker = wf_worker_current();
    return worker != NULL ? (int)worker->index : -1;
}

unsigned weft_runtime_workers(const weft_runtime *rt)
{
    wf_runtime_check(rt, "weft_runtime_workers");
    return rt->sched->options.workers;
}
