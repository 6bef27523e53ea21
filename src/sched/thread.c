/* SPDX-License-Identifier: MIT */
/*
 * thread.c - plain threads: how they wait, and how the runtime's threads are started.
 *
 * A thread's task is RUNNING while the thread runs. To wait, the thread makes it IDLE like any
 * task and sleeps on a word until the task's schedule function sets it. The task is
 * reference-counted and on the C heap, because a waker may outlive the thread.
 *
 * A blocking job that waits is canceled like a task: canceling it wakes its thread, which then
 * cancels the future and awaits the end of that.
 *
 * Timeouts. When the deadline has passed, the thread wakes itself, through the state word like
 * any other waker. If another waker was faster, that wake-up is on its way and the thread waits
 * for it. Then it cancels the future and awaits the end of that.
 *
 * Edges.
 * [Y1] schedule releases the word, the thread acquires it: it sees what the waker wrote, and
 *      that the task is RUNNING.
 *
 * Checked by tests/model/thread_model.c.
 */
#include "sched/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/callout.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/lock.h"
#include "fiber/sanitizer.h"
#include "sched/await.h"
#include "sched/local.h"
#include "sched/sched.h"
#include "sched/task.h"
#include "sched/worker.h"

struct thread_task {
    struct wf_task task;
    _Atomic(uint32_t) scheduled; /* wakers set it, the thread clears it */
};

WF_TLS_DEFINE(struct wf_thread *, wf_tls_thread);

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t service_key; /* set while a thread of the runtime must not end */
static pthread_key_t key;
static bool has_keys; /* both */

static void thread_task_schedule(struct wf_task *task)
{
    struct thread_task *self = (struct thread_task *)task;
    /* release [Y1]: the thread sees what the waker wrote. The task may be gone after this;
     * using only the address is harmless. */
    wf_store_release(&self->scheduled, 1u);
    wf_futex_wake(&self->scheduled, 1);
}

static void thread_task_destroy(struct wf_task *task)
{
    wf_free(&wf_alloc_default, task, sizeof(struct thread_task), _Alignof(struct thread_task));
}

static const struct wf_task_ops thread_ops = {
    .kind = "thread",
    .schedule = thread_task_schedule,
    .destroy = thread_task_destroy,
};

/* Aborts: a plain thread has ended in a callback of a call that is in progress. The call's record
 * was in a frame that is gone. */
static void ended_in_call(const struct wf_thread *self)
{
    wf_sanitizer_forget_frames();
    wf_fatal("%s: the function ended its thread: it called pthread_exit(), or the thread was "
             "canceled; return from the function instead",
             self->guest != NULL ? "weft_par_run" : "weft_await");
}

static void thread_exit(void *arg)
{
    struct wf_thread *self = arg;
    if (wf_unlikely(self->guest != NULL || self->waits != 0)) {
        ended_in_call(self);
    }
    if (self->locals != NULL) {
        wf_local_end(&self->locals);
    }
    WF_TLS_STORE(wf_tls_thread, (struct wf_thread *)NULL);
    wf_task_release(self->waiter);
    wf_free(&wf_alloc_default, self, sizeof *self, _Alignof(struct wf_thread));
}

/* Aborts: a thread of the runtime has ended in a callback or a task. */
static void ended_early(void *arg)
{
    (void)arg;
    wf_sanitizer_forget_frames();
    const struct wf_task *task = wf_thread_running();
    if (task == NULL) {
        wf_fatal("a thread of the runtime ended in a callback: pthread_exit() was called, or the "
                 "thread was canceled; return from the function instead");
    }
    const char *kind = task->ops->poll != NULL ? task->ops->kind : "blocking job";
    wf_fatal("%s '%s' (#%llu) ended the thread that it runs on: it called pthread_exit(), or the "
             "thread was canceled; return from the function instead",
             kind, task->name != NULL ? task->name : "", (unsigned long long)task->id);
}

static void make_keys(void)
{
    /* In this order: the first destructor needs data that the second one frees. */
    if (pthread_key_create(&service_key, ended_early) != 0) {
        return;
    }
    has_keys = pthread_key_create(&key, thread_exit) == 0;
    if (!has_keys) {
        (void)pthread_key_delete(service_key);
    }
}

int wf_thread_prepare(void)
{
    (void)pthread_once(&key_once, make_keys);
    return has_keys ? 0 : -EAGAIN;
}

void wf_thread_must_return(bool must)
{
#ifndef WF_MODEL /* threads of the model always return */
    if (wf_thread_prepare() == 0) {
        (void)pthread_setspecific(service_key, must ? &service_key : NULL);
    }
#else
    (void)must;
#endif
}

static struct wf_thread *create_self(void)
{
    if (wf_thread_prepare() != 0) {
        return NULL;
    }
    struct wf_thread *self =
        wf_alloc_zeroed(&wf_alloc_default, sizeof *self, _Alignof(struct wf_thread));
    struct thread_task *task =
        wf_alloc_zeroed(&wf_alloc_default, sizeof *task, _Alignof(struct thread_task));
    if (self == NULL || task == NULL || pthread_setspecific(key, self) != 0) {
        wf_free(&wf_alloc_default, task, sizeof *task, _Alignof(struct thread_task));
        wf_free(&wf_alloc_default, self, sizeof *self, _Alignof(struct wf_thread));
        return NULL;
    }
    task->task.ops = &thread_ops;
    /* relaxed: no other thread knows the task yet. */
    wf_store_relaxed(&task->task.state, WF_STATE_RUNNING | WF_STATE_REF);
    self->waiter = &task->task;
    WF_TLS_STORE(wf_tls_thread, self);
    return self;
}

struct wf_thread *wf_thread_known(void)
{
    return WF_TLS_LOAD(wf_tls_thread);
}

struct wf_thread *wf_thread_self(void)
{
    struct wf_thread *self = wf_thread_known();
    return self != NULL ? self : create_self();
}

struct wf_task *wf_thread_waiter(void)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL && worker->current != NULL) {
        return worker->current;
    }
    struct wf_thread *self = wf_thread_known();
    if (self == NULL || self->waits == 0) {
        wf_fatal("a future is polled, or weft_waker_current() is called, where nothing waits; "
                 "await it in a body, or with weft_await() on a plain thread");
    }
    return self->waiter;
}

void wf_thread_must_await(const struct wf_task *waiter)
{
    if (wf_unlikely(waiter != wf_thread_waiter())) {
        wf_fatal("weft_await: another task awaits this future already, and only that one would be "
                 "woken; prepare a future for each task");
    }
}

struct wf_task *wf_thread_running(void)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        return worker->current;
    }
    struct wf_thread *self = wf_thread_known();
    return self != NULL ? self->running : NULL;
}

struct wf_task *wf_thread_shielded(void)
{
    struct wf_thread *self = wf_thread_known();
    bool waits = wf_worker_current() == NULL && self != NULL && self->waits > 0;
    return waits ? self->waiter : wf_thread_running();
}

struct wf_sched *wf_thread_must_sched(const char *call)
{
    struct wf_worker *worker = wf_worker_current();
    struct wf_thread *self = wf_thread_known();
    if (worker == NULL && (self == NULL || self->sched == NULL)) {
        wf_fatal("%s: this thread belongs to no runtime; call it from a task or a blocking job",
                 call);
    }
    return worker != NULL ? worker->sched : self->sched;
}

void wf_thread_must_be_plain(const char *call, const char *instead)
{
    if (wf_worker_current() != NULL) {
        wf_fatal("%s: called on a worker, which would block it; %s", call, instead);
    }
}

/* Sleeps until the task is scheduled. Returns false after the deadline. */
static bool sleep_until_scheduled(struct thread_task *task, int64_t deadline)
{
    /* acquire [Y1]: see what the waker wrote. */
    while (wf_load_acquire(&task->scheduled) == 0) {
        if (wf_clock_futex_wait(&task->scheduled, 0, deadline) == -ETIMEDOUT) {
            return false;
        }
    }
    return true;
}

/* Continues after a wake-up. */
static void go_on(struct thread_task *task)
{
    /* relaxed: the next wake comes after the task has become IDLE again. */
    wf_store_relaxed(&task->scheduled, 0u);
    (void)wf_state_begin(&task->task.state);
}

/* Makes the thread's task IDLE until it is woken. Returns false after the deadline. The task is
 * RUNNING again in both cases. */
static bool suspend(struct thread_task *task, int64_t deadline)
{
    if (wf_state_pend(&task->task.state) == WF_STEP_SCHEDULE) {
        /* Woken already. A future that keeps waking itself must not defeat the deadline. */
        (void)wf_state_begin(&task->task.state);
        return deadline == WF_NEVER || wf_clock_now() < deadline;
    }
    bool woken = sleep_until_scheduled(task, deadline);
    if (!woken && wf_state_wake(&task->task.state, 0) != WF_STEP_SCHEDULE) {
        /* Another waker was faster, and is about to set the word. */
        woken = sleep_until_scheduled(task, WF_NEVER);
    }
    go_on(task);
    return woken;
}

void wf_thread_suspend(struct wf_thread *self)
{
    (void)suspend((struct thread_task *)self->waiter, WF_NEVER);
}

/* Returns whether the blocking job that waits here is canceled and not shielded. */
static bool job_must_cancel(const struct wf_thread *self)
{
    return self->running != NULL && wf_state_must_cancel(wf_task_state(self->running)) &&
           wf_state_shield(wf_task_state(self->waiter)) == 0;
}

/* Polls the future once, with a new budget: a stackless task whose awaits are always ready
 * returns here, where deadline and cancellation are checked. */
static int poll_future(struct wf_thread *self, weft_future *future)
{
    self->budget = WF_WORKER_BUDGET;
    WF_CALLOUT_BEGIN();
    int result = future->ops->poll(future);
    WF_CALLOUT_END();
    return result;
}

/* Cancels the future, also with a new budget: a cancel may let a stackless task run to its end. */
static bool cancel_future(struct wf_thread *self, weft_future *future)
{
    self->budget = WF_WORKER_BUDGET;
    WF_CALLOUT_BEGIN();
    bool ended = future->ops->cancel(future);
    WF_CALLOUT_END();
    return ended;
}

/* Awaits the future, starting with the result of its last poll. */
static int await_on(struct wf_thread *self, weft_future *future, int64_t deadline, int result)
{
    struct thread_task *task = (struct thread_task *)self->waiter;
    bool late = false;
    while (result == WEFT_PENDING) {
        bool cancelled = job_must_cancel(self);
        if (!cancelled && !suspend(task, late ? WF_NEVER : deadline)) {
            late = true;
        }
        while ((late || cancelled || job_must_cancel(self)) && !cancel_future(self, future)) {
            (void)suspend(task, WF_NEVER);
        }
        result = poll_future(self, future);
    }
    return late && result == WEFT_ECANCELED ? WEFT_ETIMEDOUT : result;
}

int wf_thread_enter(const char *call)
{
    const struct wf_thread *self = wf_thread_known();
    if (self == NULL) {
        return 0;
    }
    if (self->waits != 0) {
        wf_fatal("%s: called from the poll of a future that is being awaited; "
                 "poll the inner future instead",
                 call);
    }
    return job_must_cancel(self) ? WEFT_ECANCELED : 0;
}

int wf_thread_await(weft_future *future, weft_time deadline)
{
    struct wf_thread *self = wf_thread_self();
    if (self == NULL) {
        return -ENOMEM;
    }
    self->waits = 1;
    int64_t before = wf_await_set_deadline(deadline);
    int result = poll_future(self, future);
    wf_await_restore_deadline(before);
    result = await_on(self, future, deadline, result);
    self->waits = 0;
    return result;
}

int wf_thread_await_pending(struct wf_thread *self, weft_future *future, weft_time deadline)
{
    self->waits = 1;
    int result = await_on(self, future, deadline, WEFT_PENDING);
    self->waits = 0;
    return result;
}

/* Fills in the signals that threads of the runtime block. Asynchronous signals belong to the
 * program's own threads. A fault must still be delivered to the thread that caused it. */
static void fill_blocked(sigset_t *blocked)
{
    (void)sigfillset(blocked);
    (void)sigdelset(blocked, SIGSEGV);
    (void)sigdelset(blocked, SIGBUS);
    (void)sigdelset(blocked, SIGFPE);
    (void)sigdelset(blocked, SIGILL);
    (void)sigdelset(blocked, SIGTRAP);
    (void)sigdelset(blocked, SIGSYS);
    (void)sigdelset(blocked, SIGABRT);
}

int wf_thread_start(pthread_t *thread, void *(*main_fn)(void *arg), void *arg)
{
    sigset_t blocked;
    sigset_t before;
    fill_blocked(&blocked);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int saved = errno;
    int err = pthread_create(thread, NULL, main_fn, arg);
    errno = saved;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -err;
}

void wf_thread_signals(sigset_t *signals)
{
    const struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        *signals = worker->sched->signals;
    } else {
        (void)pthread_sigmask(SIG_SETMASK, NULL, signals);
    }
}

void wf_thread_unblock_signals(const sigset_t *signals)
{
    sigset_t ours;
    sigset_t now;
    fill_blocked(&ours);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &now);
    for (int i = 1; i < NSIG; i++) {
        bool can_be_blocked = i != SIGKILL && i != SIGSTOP;
        if (can_be_blocked && sigismember(&now, i) != sigismember(&ours, i)) {
            return; /* The program has set its own mask. */
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, signals, NULL);
}

char *wf_thread_stack_low(void)
{
    void *low = NULL;
#ifndef WF_MODEL /* threads of the model have stacks of their own */
    pthread_attr_t attributes;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstack(&attributes, &low, &size);
        (void)pthread_attr_destroy(&attributes);
    }
#endif
    return low;
}

void wf_thread_set_name(const char *prefix, const char *name)
{
    char full[16];
    (void)snprintf(full, sizeof full, "%s-%s", prefix, name);
    (void)pthread_setname_np(pthread_self(), full);
}

/* Part of the C++ runtime, if the program has one. */
extern void *__cxa_get_globals(void) __attribute__((weak));

struct wf_seat wf_thread_seat(void)
{
    return (struct wf_seat){
        .error = weft_errno_location(),
        .exceptions = __cxa_get_globals != NULL ? __cxa_get_globals() : NULL,
#ifdef WF_DEBUG
        .mutexes = wf_futex_robust_list(),
#endif
    };
}

const char *wf_seat_lock_held(const struct wf_seat *seat)
{
    return wf_futex_robust_held(seat->mutexes) ? "pthread mutex" : wf_lock_any_held();
}
