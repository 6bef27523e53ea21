/* SPDX-License-Identifier: MIT */
/*
 * weft/oneshot.h - a place for one value, from whoever is first to send it to whoever waits.
 *
 *     WEFT_ONESHOT(answer, double)
 *
 *     static answer place;
 *
 *     err = answer_send(&place, 0.5);                 // one task
 *     err = answer_recv(&place, &value, WEFT_NEVER);  // another
 *
 * All zeros is a place for a value that nobody has sent. It is yours, in a frame or a struct,
 * as long as both sides use it. Who has received the value may free it: the sender does not
 * touch it any more. Where neither side knows how long the other one lives, make a channel
 * with room for one message (weft/channel.h), whose handles are counted.
 *
 * A place has no drop function, since it is never freed by the library. To end a place whose value
 * owns something, close it and then receive once more: weft_oneshot_try_recv() returns 0 with the
 * value if it was sent and nobody has received it.
 */
#ifndef WEFT_ONESHOT_H
#define WEFT_ONESHOT_H

#include "clock.h"
#include "op.h"

WEFT_EXTERN_C_BEGIN

/* What each place has, beside the value. */
typedef struct weft_oneshot {
    uint64_t opaque[3];
} weft_oneshot;

/*
 * Sends the value: copies so many bytes into the slot beside it, or to who waits for it.
 * WEFT_ONESHOT() makes a typed function of it. With size 0 the pointers are not accessed and may
 * be NULL.
 *
 * Context: anywhere.
 * Errors:  -EEXIST: somebody has sent one before; WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_oneshot_send(weft_oneshot *oneshot, void *slot, const void *value,
                                              size_t size);

/*
 * Receives the value; once. WEFT_ONESHOT() makes a typed function of it.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_oneshot_recv_init().
 * Suspends: until it is sent, or the deadline.
 * Errors:   WEFT_ECLOSED: nobody will send it, or it was received before; WEFT_ETIMEDOUT,
 *           WEFT_ECANCELED; -ENOMEM (on a thread's first wait). *value is unchanged then.
 */
WEFT_API WEFT_NODISCARD int weft_oneshot_recv(weft_oneshot *oneshot, const void *slot, void *value,
                                              size_t size, weft_time deadline);

/*
 * Receives the value if it is there.
 *
 * Context: anywhere.
 * Errors:  -EAGAIN: it is not; WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_oneshot_try_recv(weft_oneshot *oneshot, const void *slot,
                                                  void *value, size_t size);

/*
 * Prepares to receive: the result of the future is that of weft_oneshot_recv().
 *
 * Context: any thread.
 */
WEFT_API void weft_oneshot_recv_init(weft_op *op, weft_oneshot *oneshot, const void *slot,
                                     void *value, size_t size);

/*
 * Closes it, from either side: nothing can be sent from now on. What was sent can still be
 * received; who waits for it gets WEFT_ECLOSED.
 *
 * Context: anywhere.
 */
WEFT_API void weft_oneshot_close(weft_oneshot *oneshot);

/*
 * Was it closed, or has the value been received? Then there is nothing to send it for.
 *
 * Context: anywhere.
 */
WEFT_API bool weft_oneshot_is_closed(const weft_oneshot *oneshot);

WEFT_EXTERN_C_END

/*
 * Defines a place for a value of a type, the struct name, and functions that do what those
 * above do,
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
