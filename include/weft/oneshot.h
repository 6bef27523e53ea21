/* SPDX-License-Identifier: MIT */
/*
 * weft/oneshot.h - oneshot channel: a slot for a single value.
 *
 *     WEFT_ONESHOT(answer, double)
 *
 *     static answer place;
 *
 *     err = answer_send(&place, 0.5);                 // sender
 *     err = answer_recv(&place, &value, WEFT_NEVER);  // receiver
 *
 * A zero-initialized oneshot is empty. The first sender fills it, and one receiver gets the
 * value. The caller provides the storage, in a stack frame or a struct, and keeps it while
 * either side uses it. The receiver may free it as soon as it has the value: the sender does
 * not touch it after that. If neither side knows how long the other one lives, use a channel
 * with a capacity of 1 (weft/channel.h), whose handles are counted.
 *
 * A oneshot has no drop function, since the library never frees it. To dispose of a oneshot
 * whose value owns a resource, close it and then receive once more: weft_oneshot_try_recv()
 * returns 0 and the value if it was sent and not received.
 */
#ifndef WEFT_ONESHOT_H
#define WEFT_ONESHOT_H

#include "clock.h"
#include "op.h"

WEFT_EXTERN_C_BEGIN

/* The state of a oneshot, beside its value. */
typedef struct weft_oneshot {
    uint64_t opaque[3];
} weft_oneshot;

/*
 * Sends the value: copies size bytes to the slot, or directly to a waiting receiver.
 * WEFT_ONESHOT() defines a typed wrapper. If size is 0, the pointers are not accessed and may
 * be NULL.
 *
 * Context: any thread.
 * Errors:  -EEXIST (a value was sent before), WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_oneshot_send(weft_oneshot *oneshot, void *slot, const void *value,
                                              size_t size);

/*
 * Receives the value, which only one receiver gets. WEFT_ONESHOT() defines a typed wrapper.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_oneshot_recv_init().
 * Suspends: until the value is sent or the deadline passes.
 * Errors:   WEFT_ECLOSED (it was closed without a value, or the value was received before),
 *           WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first wait of a thread). *value is
 *           unchanged.
 */
WEFT_API WEFT_NODISCARD int weft_oneshot_recv(weft_oneshot *oneshot, const void *slot, void *value,
                                              size_t size, weft_time deadline);

/*
 * Receives the value if it is available.
 *
 * Context: any thread.
 * Errors:  -EAGAIN (not sent yet), WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_oneshot_try_recv(weft_oneshot *oneshot, const void *slot,
                                                  void *value, size_t size);

/*
 * Prepares a receive. The future's result is that of weft_oneshot_recv().
 *
 * Context: any thread.
 */
WEFT_API void weft_oneshot_recv_init(weft_op *op, weft_oneshot *oneshot, const void *slot,
                                     void *value, size_t size);

/*
 * Closes the oneshot, from either side: later sends fail. Wakes all waiters with WEFT_ECLOSED.
 * A value that was sent before can still be received.
 *
 * Context: any thread.
 */
WEFT_API void weft_oneshot_close(weft_oneshot *oneshot);

/*
 * Returns whether the oneshot is closed or its value was received, so that a send is pointless.
 *
 * Context: any thread.
 */
WEFT_API bool weft_oneshot_is_closed(const weft_oneshot *oneshot);

WEFT_EXTERN_C_END

/*
 * Defines a oneshot for values of the given type: the struct name, and typed forms of the
 * functions above:
 *
 *   name_send(place, value)
 *   name_recv(place, &value, deadline)      name_recv_init(op, place, &value)
 *   name_try_recv(place, &value)
 *   name_close(place)                       name_is_closed(place)
 */
#define WEFT_ONESHOT(name, type)                                                                   \
    typedef struct name {                                                                          \
        weft_oneshot oneshot;                                                                      \
        type slot;                                                                                 \
    } name;                                                                                        \
                                                                                                   \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_send(name *place_, type value_)                                      \
    {                                                                                              \
        return weft_oneshot_send(&place_->oneshot, &place_->slot, &value_, sizeof(type));          \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_recv(name *place_, type *value_, weft_time deadline_)                \
    {                                                                                              \
        return weft_oneshot_recv(&place_->oneshot, &place_->slot, value_, sizeof(type),            \
                                 deadline_);                                                       \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_try_recv(name *place_, type *value_)                                 \
    {                                                                                              \
        return weft_oneshot_try_recv(&place_->oneshot, &place_->slot, value_, sizeof(type));       \
    }                                                                                              \
    static inline                                                                                  \
        __attribute__((unused)) void name##_recv_init(weft_op *op_, name *place_, type *value_)    \
    {                                                                                              \
        weft_oneshot_recv_init(op_, &place_->oneshot, &place_->slot, value_, sizeof(type));        \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_close(name *place_)                          \
    {                                                                                              \
        weft_oneshot_close(&place_->oneshot);                                                      \
    }                                                                                              \
    static inline __attribute__((unused)) bool name##_is_closed(const name *place_)                \
    {                                                                                              \
        return weft_oneshot_is_closed(&place_->oneshot);                                           \
    }

#endif
