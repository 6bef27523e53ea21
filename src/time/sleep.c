/* SPDX-License-Identifier: MIT */
/*
 * sleep.c - sleep, and futures with a timeout.
 *
 * Where there is a stack, a sleep awaits a future that never completes, with a deadline. A
 * stackless task awaits a future that is a timer.
 */
#include <weft/time.h>

#include "base/clock.h"
#include "sched/await.h"
#include "sched/thread.h"
#include "time/timer.h"

struct never {
    weft_future future;
    bool cancelled;
};

static int never_poll(weft_future *future)
{
    return ((struct never *)future)->cancelled ? WEFT_ECANCELED : WEFT_PENDING;
}

static bool never_cancel(weft_future *future)
{
    ((struct never *)future)->cancelled = true;
    return true;
}

static const weft_future_ops never_ops = { .poll = never_poll, .cancel = never_cancel };

int wf_sleep_until(weft_time deadline, const char *call)
{
    struct never never = { .future.ops = &never_ops };
    int result = wf_await(&never.future, deadline, call, "await a weft_sleep_future in a body");
    return result == WEFT_ETIMEDOUT ? 0 : result;
}

int weft_sleep_until(weft_time deadline)
{
    return wf_sleep_until(deadline, "weft_sleep_until");
}

int weft_sleep(weft_time duration)
{
    return wf_sleep_until(weft_after(duration), "weft_sleep");
}

struct sleep {
    weft_future future;
    weft_time deadline;
    struct wf_timer timer;
    bool started;
    bool cancelled;
};

_Static_assert(sizeof(struct sleep) <= sizeof(weft_sleep_future), "weft_sleep_future is too small");
_Static_assert(offsetof(struct sleep, deadline) == offsetof(weft_sleep_future, deadline), "");

static int sleep_poll(weft_future *future)
{
    struct sleep *sleep = (struct sleep *)future;
    if (sleep->started) {
        if (sleep->cancelled) {
            return WEFT_ECANCELED;
        }
        if (wf_timer_has_fired(&sleep->timer)) {
            return 0;
        }
        wf_thread_must_await(sleep->timer.task);
        return WEFT_PENDING;
    }
    if (wf_clock_now() >= sleep->deadline) {
        return 0;
    }
    sleep->started = true;
    sleep->timer.task = wf_thread_waiter();
    wf_timer_arm(wf_thread_must_sched("weft_sleep_init"), &sleep->timer, sleep->deadline);
    return WEFT_PENDING;
}

static bool sleep_cancel(weft_future *future)
{
    struct sleep *sleep = (struct sleep *)future;
    if (sleep->started && !sleep->cancelled) {
        sleep->cancelled = wf_timer_disarm(&sleep->timer);
    }
    return true;
}

static const weft_future_ops sleep_ops = { .poll = sleep_poll, .cancel = sleep_cancel };

void weft_sleep_init(weft_sleep_future *future, weft_time deadline, unsigned flags)
{
    struct sleep *sleep = (struct sleep *)future;
    *sleep = (struct sleep){ .deadline = deadline };
    sleep->timer.is_precise = (flags & WEFT_PRECISE) != 0;
    sleep->future.ops = &sleep_ops;
}

/* A timeout: a future and a sleep, polled side by side. */

/* Values of weft_timeout_future.late. */
enum {
    IN_TIME,
    LATE,
    CANCELED, /* by the caller of cancel, which is not late */
};

/* The inner future has completed: the sleep is not needed any more. */
static int timeout_end(weft_timeout_future *self, int result)
{
    (void)sleep_cancel(&self->sleep.future);
    return self->late == LATE && result == WEFT_ECANCELED ? WEFT_ETIMEDOUT : result;
}

static int timeout_poll(weft_future *future)
{
    weft_timeout_future *self = (weft_timeout_future *)future;
    int64_t before = wf_await_set_deadline(self->sleep.deadline);
    int result = self->inner->ops->poll(self->inner);
    wf_await_restore_deadline(before);
    if (result != WEFT_PENDING) {
        return timeout_end(self, result);
    }
    if (self->late == CANCELED || (self->late == IN_TIME && sleep_poll(&self->sleep.future) != 0)) {
        return WEFT_PENDING; /* Not late; or canceled, and the inner future needs time. */
    }
    self->late = LATE;
    if (!self->inner->ops->cancel(self->inner)) {
        return WEFT_PENDING;
    }
    return timeout_end(self, self->inner->ops->poll(self->inner));
}

static bool timeout_cancel(weft_future *future)
{
    weft_timeout_future *self = (weft_timeout_future *)future;
    (void)sleep_cancel(&self->sleep.future);
    if (self->late == IN_TIME) {
        self->late = CANCELED;
    }
    return self->inner->ops->cancel(self->inner);
}

static void timeout_drop(weft_future *future)
{
    weft_timeout_future *self = (weft_timeout_future *)future;
    if (self->inner->ops->drop != NULL) {
        self->inner->ops->drop(self->inner);
    }
}

#define TIMEOUT_OPS(bits)                                                                          \
    {                                                                                              \
        .poll = timeout_poll, .cancel = timeout_cancel, .drop = timeout_drop, .flags = (bits)      \
    }

/* Flags of the inner future that the caller of the outer one must know. */
enum {
    INHERITED = WEFT_FUTURE_ALWAYS_STARTS | WF_FUTURE_CANCELS_FIRST | WEFT_FUTURE_GIVES_BACK,
};

/* By inherited flags. */
static const weft_future_ops timeout_ops[INHERITED + 1] = {
    TIMEOUT_OPS(0), TIMEOUT_OPS(1), TIMEOUT_OPS(2), TIMEOUT_OPS(3),
    TIMEOUT_OPS(4), TIMEOUT_OPS(5), TIMEOUT_OPS(6), TIMEOUT_OPS(7),
};

_Static_assert(INHERITED == 7, "timeout_ops needs an entry for each combination of flags");

void weft_timeout_init(weft_timeout_future *future, weft_future *inner, weft_time deadline)
{
    *future = (weft_timeout_future){ .inner = inner };
    future->future.ops = &timeout_ops[inner->ops->flags & INHERITED];
    weft_sleep_init(&future->sleep, deadline, 0);
}
