/* SPDX-License-Identifier: MIT */
/*
 * transfer.c - I/O operation: tries a system call, and waits until it may try again.
 */
#include "io/transfer.h"

#include <string.h>

#include "io/source.h"
#include "sched/await.h"
#include "sched/op.h"
#include "sched/task.h"
#include "sched/thread.h"

enum {
    PARTS_MAX = 16, /* attempts in one poll; then it yields */
};

/* Makes the task runnable again, behind the tasks that are already waiting to run. */
static int yield(void)
{
    wf_task_wake_ref(wf_thread_waiter());
    return WEFT_PENDING;
}

static int go_on(struct wf_transfer *self)
{
    for (unsigned parts = 0;; parts++) {
        if (self->waits_for != NULL) {
            int err = self->waits_for->ops->poll(self->waits_for);
            if (err == WEFT_PENDING) {
                return WEFT_PENDING;
            }
            self->waits_for = NULL;
            if (err != 0) {
                return err;
            }
        }
        if (parts == PARTS_MAX) {
            return yield();
        }
        int result = self->ops->attempt(self);
        if (result != WEFT_PENDING && result != WF_TRANSFER_MORE) {
            return result;
        }
        if (self->cancelled) {
            self->waits_for = NULL; /* The wait was not started. */
            return WEFT_ECANCELED;
        }
    }
}

static void leave(struct wf_transfer *self)
{
    self->is_in = false;
    self->ops->leave(self);
}

static bool transfer_cancel(weft_future *future);

static bool is_stopped(const struct wf_transfer *self)
{
    /* relaxed: the wake that follows makes this poll see it. */
    return self->stop != NULL && wf_load_relaxed(self->stop) != 0;
}

static int transfer_poll(weft_future *future)
{
    struct wf_transfer *self = (struct wf_transfer *)future;
    if (wf_unlikely(is_stopped(self)) && !self->cancelled) {
        (void)transfer_cancel(future);
    }
    if (!self->is_in) {
        int err = self->cancelled ? WEFT_ECANCELED : self->ops->enter(self);
        if (err != 0) {
            self->cancelled = false; /* It may be awaited again. */
            return err;
        }
        self->is_in = true;
    }
    int result = go_on(self);
    if (result != WEFT_PENDING) {
        leave(self);
        self->cancelled = false;
    }
    return result;
}

/* Ends a wait whose operation will not try. If the wait was granted, another waiter gets the
 * grant. */
static void forgo(struct wf_transfer *self)
{
    struct wf_op *op = wf_op_of(self->waits_for);
    if (op != NULL) {
        op->flag = false;
    }
    (void)self->waits_for->ops->poll(self->waits_for);
    self->waits_for = NULL;
}

/* On true the operation has ended and holds nothing. One more poll returns WEFT_ECANCELED. */
static bool transfer_cancel(weft_future *future)
{
    struct wf_transfer *self = (struct wf_transfer *)future;
    self->cancelled = true;
    if (self->waits_for != NULL) {
        if (!self->waits_for->ops->cancel(self->waits_for)) {
            return false;
        }
        forgo(self);
    }
    if (self->is_in) {
        leave(self);
    }
    return true;
}

static const weft_future_ops transfer_ops = { .poll = transfer_poll,
                                              .cancel = transfer_cancel,
                                              .flags = WF_FUTURE_RENEWS };

struct wf_transfer *wf_transfer_init(weft_io *io, const struct wf_transfer_ops *ops, void *object)
{
    struct wf_transfer *self = (struct wf_transfer *)io;
    self->future.ops = &transfer_ops;
    self->ops = ops;
    self->waits_for = NULL;
    self->object = object;
    self->source = NULL;
    self->stop = NULL;
    self->vectors = NULL;
    self->count = 0;
    self->flags = 0;
    self->done = 0;
    memset(self->room, 0, sizeof self->room);
    self->is_in = false;
    self->cancelled = false;
    return self;
}

int wf_transfer_enter(struct wf_transfer *self)
{
    return wf_source_enter(self->object, &self->source);
}

void wf_transfer_leave(struct wf_transfer *self)
{
    wf_source_leave(self->source);
}

int wf_transfer_wait(struct wf_transfer *self, uint32_t what)
{
    wf_source_wait_init(&self->wait, self->source, what);
    self->waits_for = &self->wait.future;
    return WEFT_PENDING;
}

int wf_transfer_await(weft_io *io, weft_time deadline, const char *call)
{
    struct wf_transfer *self = (struct wf_transfer *)io;
    int result = wf_await(&io->future, deadline, call, "in a body, prepare a weft_io and await it");
    if (wf_unlikely(self->is_in)) { /* Entered when it was prepared, and never polled. */
        leave(self);
    }
    return result;
}

int wf_transfer_await_end(weft_io *io, const struct wf_transfer_end *end, const char *call)
{
    ((struct wf_transfer *)io)->stop = end->stop;
    return wf_transfer_await(io, end->deadline, call);
}
