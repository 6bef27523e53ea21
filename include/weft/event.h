/* SPDX-License-Identifier: MIT */
/*
 * weft/event.h - events and notifications.
 *
 * An event stays set until it is reset. A notification wakes one waiter, or the next caller
 * that waits.
 *
 *     static weft_event ready;
 *
 *     weft_event_set(&ready);                     // one task
 *     err = weft_event_wait(&ready, WEFT_NEVER);  // any number of others
 *
 * A zero-initialized event is not set, and a zero-initialized weft_notify holds no
 * notification. A waiter may free the object as soon as its wait returns: the thread that woke
 * it does not touch the object after that.
 */
#ifndef WEFT_EVENT_H
#define WEFT_EVENT_H

#include "op.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_event {
    uint64_t opaque[3];
} weft_event;

/*
 * Sets the event: wakes all waiters, and later waits return immediately. They see all writes
 * made before this call.
 *
 * Context: any thread.
 */
WEFT_API void weft_event_set(weft_event *event);

/*
 * Resets the event: later waits last until the event is set again.
 *
 * Context: any thread.
 */
WEFT_API void weft_event_reset(weft_event *event);

/*
 * Returns whether the event is set. If so, the caller sees all writes made before it was set.
 *
 * Context: any thread.
 */
WEFT_API bool weft_event_is_set(const weft_event *event);

/*
 * Waits until the event is set.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_event_wait_init().
 * Suspends: until the event is set or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first wait of a thread).
 */
WEFT_API WEFT_NODISCARD int weft_event_wait(weft_event *event, weft_time deadline);

/*
 * Prepares a wait. The future's result is that of weft_event_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_event_wait_init(weft_op *op, weft_event *event);

typedef struct weft_notify {
    uint64_t opaque[3];
} weft_notify;

/*
 * Wakes one waiter, the one that has waited longest. If there is none, the next wait returns
 * immediately. At most one notification is stored, no matter how often this is called.
 *
 * Context: any thread.
 */
WEFT_API void weft_notify_one(weft_notify *notify);

/*
 * Wakes all current waiters. Stores nothing.
 *
 * Context: any thread.
 */
WEFT_API void weft_notify_all(weft_notify *notify);

/*
 * Waits for a notification.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_notify_wait_init().
 * Suspends: until it is notified or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first wait of a thread). No notification
 *           was consumed.
 */
WEFT_API WEFT_NODISCARD int weft_notify_wait(weft_notify *notify, weft_time deadline);

/*
 * Prepares a wait. The future's result is that of weft_notify_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_notify_wait_init(weft_op *op, weft_notify *notify);

WEFT_EXTERN_C_END

#endif
