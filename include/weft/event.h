/* SPDX-License-Identifier: MIT */
/*
 * weft/event.h - something that happens: an event stays set until it is reset, and a
 * notification is for one who waits, or who will wait next.
 *
 *     static weft_event ready;
 *
 *     weft_event_set(&ready);                     // one task
 *     err = weft_event_wait(&ready, WEFT_NEVER);  // any number of others
 *
 * All zeros is an event that is not set, and a notification that nobody has sent. Who
 * returns from a wait may free the object: the one who set it does not touch it any more.
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
 * Sets the event: all who wait go on, and who waits later does not have to. What was written
 * before is seen by them.
 *
 * Context: anywhere.
 */
WEFT_API void weft_event_set(weft_event *event);

/*
 * Resets the event: who waits from now on waits for the next set.
 *
 * Context: anywhere.
 */
WEFT_API void weft_event_reset(weft_event *event);

/*
 * Is it set? If so, what was written before is seen.
 *
 * Context: anywhere.
 */
WEFT_API bool weft_event_is_set(const weft_event *event);

/*
 * Waits until it is set.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_event_wait_init().
 * Suspends: until it is set, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM (on a thread's first wait).
 */
WEFT_API WEFT_NODISCARD int weft_event_wait(weft_event *event, weft_time deadline);

/*
 * Prepares to wait: the result of the future is that of weft_event_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_event_wait_init(weft_op *op, weft_event *event);

typedef struct weft_notify {
    uint64_t opaque[3];
} weft_notify;

/*
 * Lets one go on who waits, the one that waits for the longest time. If nobody waits, the
 * next one who does goes on at once; that is remembered once, however often it is called.
 *
 * Context: anywhere.
 */
WEFT_API void weft_notify_one(weft_notify *notify);

/*
 * Lets all go on who wait now. Nothing is remembered.
 *
 * Context: anywhere.
 */
WEFT_API void weft_notify_all(weft_notify *notify);

/*
 * Waits for a notification.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_notify_wait_init().
 * Suspends: until it is notified, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM (on a thread's first wait). It has then
 *           taken no notification.
 */
WEFT_API WEFT_NODISCARD int weft_notify_wait(weft_notify *notify, weft_time deadline);

/*
 * Prepares to wait: the result of the future is that of weft_notify_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_notify_wait_init(weft_op *op, weft_notify *notify);

WEFT_EXTERN_C_END

#endif
