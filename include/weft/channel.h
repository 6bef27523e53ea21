/* SPDX-License-Identifier: MIT */
/*
 * weft/channel.h - messages from any number of senders to any number of receivers.
 *
 *     WEFT_CHANNEL(numbers, int)
 *
 *     numbers_sender *to;
 *     numbers_receiver *from;
 *     int err = numbers_make(&to, &from, 16);
 *
 *     err = numbers_send(to, 42, WEFT_NEVER);         // a sender
 *     err = numbers_recv(from, &number, WEFT_NEVER);  // a receiver
 *
 * Each message goes to one receiver. Those of one sender arrive in the order in which they
 * were sent; a receiver gets them in the order in which they came into the channel. A
 * channel holds as many as its capacity says: with 0 a sender waits until a receiver takes
 * its message from its hands. With WEFT_UNBOUNDED it never waits; memory is allocated as messages
 * come, and freed as they are received.
 *
 * Handles are counted. A handle may be shared by tasks; a clone is a handle of its own, and each
 * handle is dropped once. A handle must not be dropped while an operation with it is under way.
 * When the last sender is dropped, receivers get what is left, and then WEFT_ECLOSED. When the last
 * receiver is dropped, unread messages are dropped with it, and senders get WEFT_ECLOSED.
 *
 * The functions below take messages as memory of the size that the channel was made with;
 * WEFT_CHANNEL() makes functions of the same names for a type.
 */
#ifndef WEFT_CHANNEL_H
#define WEFT_CHANNEL_H

#include "clock.h"
#include "op.h"

WEFT_EXTERN_C_BEGIN

/* A channel, as its senders and its receivers see it. */
typedef struct weft_sender weft_sender;
typedef struct weft_receiver weft_receiver;

/* A capacity without a limit. */
#define WEFT_UNBOUNDED SIZE_MAX

/* What a channel is like. Zero fields mean: events, from hand to hand, no drop function. */
typedef struct weft_channel_options {
    size_t size;     /* of a message, in bytes; see weft_channel_make() */
    size_t capacity; /* messages; 0, or WEFT_UNBOUNDED */
    /* Called for each message that no receiver gets, with a pointer to the message and with arg:
     * for the unread messages when the last receiver is dropped, oldest first, and for a message
     * that weft_send_reserved() sends after that. It runs on the thread that makes that call,
     * before the call returns, without a lock: it may use the library, but must not wait. A
     * message that a send refuses stays the sender's, and is not dropped. */
    void (*drop)(void *message, void *arg);
    void *arg;
} weft_channel_options;

/*
 * Creates a channel with one sender and one receiver.
 *
 *     static void free_job(void *message, void *arg)
 *     {
 *         (void)arg;
 *         free(*(void **)message);
 *     }
 *
 *     weft_sender *sender;
 *     weft_receiver *receiver;
 *     weft_channel_options options = { sizeof(void *), 16, free_job, NULL };
 *     err = weft_channel_create(&sender, &receiver, &options);
 *
 * Context: any thread.
 * Owns:    the caller, both handles: weft_sender_drop(), weft_receiver_drop().
 * Errors:  -ENOMEM; -EINVAL: the capacity and the size are too large.
 */
WEFT_API WEFT_NODISCARD int weft_channel_create(weft_sender **sender, weft_receiver **receiver,
                                                const weft_channel_options *options);

/*
 * Makes a channel for messages of this size, with one sender and one receiver. With size 0 a
 * message is an event: the pointers to messages are not accessed and may be NULL.
 *
 * Context: any thread.
 * Owns:    the caller, both handles: weft_sender_drop(), weft_receiver_drop().
 * Errors:  -ENOMEM; -EINVAL: the capacity and the size are too large.
 */
WEFT_API WEFT_NODISCARD int weft_channel_make(weft_sender **sender, weft_receiver **receiver,
                                              size_t size, size_t capacity);

/*
 * Returns one more sender of the channel, or NULL: out of memory.
 *
 * Context: any thread.
 * Owns:    the caller: weft_sender_drop().
 */
WEFT_API WEFT_NODISCARD weft_sender *weft_sender_clone(weft_sender *sender);

/*
 * Returns one more receiver of the channel, or NULL: out of memory.
 *
 * Context: any thread.
 * Owns:    the caller: weft_receiver_drop().
 */
WEFT_API WEFT_NODISCARD weft_receiver *weft_receiver_clone(weft_receiver *receiver);

/*
 * Drops a sender, and gives up the room that it has reserved. The last one closes the channel.
 * NULL is allowed. A second drop aborts with a sentence while other handles of the channel
 * exist; after the last handle the memory is freed, and a second drop is undefined.
 *
 * Context: any thread.
 */
WEFT_API void weft_sender_drop(weft_sender *sender);

/*
 * Drops a receiver. The last one closes the channel, and unread messages go to the drop function
 * of the channel, or are forgotten without one. NULL is allowed. A second drop is as that of
 * weft_sender_drop().
 *
 * Context: any thread.
 */
WEFT_API void weft_receiver_drop(weft_receiver *receiver);

/*
 * Sends a message.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_send_init().
 * Suspends: while the channel is full, until the deadline.
 * Errors:   WEFT_ECLOSED, WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM (without a limit, or on a
 *           thread's first wait). The message was not sent then.
 */
WEFT_API WEFT_NODISCARD int weft_send(weft_sender *sender, const void *message, weft_time deadline);

/*
 * Sends a message if that needs no wait.
 *
 * Context: anywhere.
 * Errors:  -EAGAIN: the channel is full; WEFT_ECLOSED; -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_try_send(weft_sender *sender, const void *message);

/*
 * Prepares to send a message, which must stay in place until then: the result of the future
 * is that of weft_send().
 *
 * Context: any thread.
 */
WEFT_API void weft_send_init(weft_op *op, weft_sender *sender, const void *message);

/*
 * Receives a message.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_recv_init().
 * Suspends: while the channel is empty, until the deadline.
 * Errors:   WEFT_ECLOSED: it is closed, and empty; WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM
 *           (on a thread's first wait). *message is unchanged then.
 */
WEFT_API WEFT_NODISCARD int weft_recv(weft_receiver *receiver, void *message, weft_time deadline);

/*
 * Receives a message if there is one.
 *
 * Context: anywhere.
 * Errors:  -EAGAIN: the channel is empty; WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_try_recv(weft_receiver *receiver, void *message);

/*
 * Receives up to so many messages, one after the other in memory, and waits for the first.
 * Returns how many, 1 or more.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: as weft_recv().
 * Errors:   as weft_recv(); -EINVAL: none are wanted.
 */
WEFT_API WEFT_NODISCARD int64_t weft_recv_many(weft_receiver *receiver, void *messages, size_t most,
                                               weft_time deadline);

/*
 * Prepares to receive a message: the result of the future is that of weft_recv(). Where it
 * goes must stay in place until then.
 *
 * Context: any thread.
 */
WEFT_API void weft_recv_init(weft_op *op, weft_receiver *receiver, void *message);

/*
 * Reserves room for one message: weft_send_reserved() with the same sender then needs no wait,
 * and does not fail. The room is this sender's, and is given up when the sender is dropped.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_reserve_init().
 * Suspends: as weft_send().
 * Errors:   as weft_send(); -EINVAL: the capacity is 0.
 */
WEFT_API WEFT_NODISCARD int weft_reserve(weft_sender *sender, weft_time deadline);

/*
 * Reserves room for one message if there is some.
 *
 * Context: anywhere.
 * Errors:  as weft_try_send(); -EINVAL: the capacity is 0.
 */
WEFT_API WEFT_NODISCARD int weft_try_reserve(weft_sender *sender);

/*
 * Prepares to reserve room: the result of the future is that of weft_reserve().
 *
 * Context: any thread.
 */
WEFT_API void weft_reserve_init(weft_op *op, weft_sender *sender);

/*
 * Sends a message into room that this sender has reserved. If all receivers are gone, the message
 * goes to the drop function of the channel. Aborts if the sender has reserved no room.
 *
 * Context: anywhere.
 */
WEFT_API void weft_send_reserved(weft_sender *sender, const void *message);

/*
 * Gives up room for one message that this sender has reserved. Aborts if there is none.
 *
 * Context: anywhere.
 */
WEFT_API void weft_unreserve(weft_sender *sender);

/*
 * Closes the channel before the last sender is dropped: senders get WEFT_ECLOSED from now on,
 * and receivers when they have received what is left. Room that is reserved may still be
 * used.
 *
 * Context: any thread.
 */
WEFT_API void weft_sender_close(weft_sender *sender);

/*
 * The same, for a receiver that wants no more than what is there.
 *
 * Context: any thread.
 */
WEFT_API void weft_receiver_close(weft_receiver *receiver);

/* What is known of a channel at one moment. */
typedef struct weft_channel_info {
    size_t length;   /* messages in it */
    size_t capacity; /* or WEFT_UNBOUNDED */
    size_t bytes;    /* memory for messages; without a limit it grows and shrinks */
    size_t senders;
    size_t receivers;
    bool is_closed;
} weft_channel_info;

/*
 * Tells what is known of a channel.
 *
 * Context: any thread.
 */
WEFT_API weft_channel_info weft_sender_info(const weft_sender *sender);

/*
 * Tells what is known of a channel.
 *
 * Context: any thread.
 */
WEFT_API weft_channel_info weft_receiver_info(const weft_receiver *receiver);

WEFT_EXTERN_C_END

/*
 * Defines a channel for messages of a type: the handles name_sender and name_receiver, and
 * functions that do what those above do,
 *
 *   name_make(&sender, &receiver, capacity)
 *   name_create(&sender, &receiver, &options)   whose size is that of the type
 *   name_send(sender, message, deadline)        name_recv(receiver, &message, deadline)
 *   name_try_send(sender, message)              name_try_recv(receiver, &message)
 *   name_send_init(op, sender, &message)        name_recv_init(op, receiver, &message)
 *   name_send_reserved(sender, message)         name_recv_many(receiver, messages, most,
 *                                                              deadline)
 *   name_sender_clone(sender)                   name_receiver_clone(receiver)
 *   name_sender_drop(sender)                    name_receiver_drop(receiver)
 *
 * The other functions take name_to(sender), a weft_sender, or name_from(receiver), a
 * weft_receiver.
 */
#define WEFT_CHANNEL(name, type)                                                                   \
    typedef struct name##_sender name##_sender;                                                    \
    typedef struct name##_receiver name##_receiver;                                                \
                                                                                                   \
    static inline __attribute__((unused)) weft_sender *name##_to(name##_sender *sender_)           \
    {                                                                                              \
        return (weft_sender *)sender_;                                                             \
    }                                                                                              \
    static inline __attribute__((unused)) weft_receiver *name##_from(name##_receiver *receiver_)   \
    {                                                                                              \
        return (weft_receiver *)receiver_;                                                         \
    }                                                                                              \
    static inline __attribute__((unused)) WEFT_NODISCARD int name##_make(                          \
        name##_sender **sender_, name##_receiver **receiver_, size_t capacity_)                    \
    {                                                                                              \
        weft_sender *to_ = NULL;                                                                   \
        weft_receiver *from_ = NULL;                                                               \
        int err_ = weft_channel_make(&to_, &from_, sizeof(type), capacity_);                       \
        *sender_ = (name##_sender *)to_;                                                           \
        *receiver_ = (name##_receiver *)from_;                                                     \
        return err_;                                                                               \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_create(name##_sender **sender_, name##_receiver **receiver_,         \
                                     const weft_channel_options *options_)                         \
    {                                                                                              \
        weft_sender *to_ = NULL;                                                                   \
        weft_receiver *from_ = NULL;                                                               \
        weft_channel_options typed_ = *options_;                                                   \
        typed_.size = sizeof(type);                                                                \
        int err_ = weft_channel_create(&to_, &from_, &typed_);                                     \
        *sender_ = (name##_sender *)to_;                                                           \
        *receiver_ = (name##_receiver *)from_;                                                     \
        return err_;                                                                               \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_send(name##_sender *sender_, type message_, weft_time deadline_)     \
    {                                                                                              \
        return weft_send(name##_to(sender_), &message_, deadline_);                                \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_try_send(name##_sender *sender_, type message_)                      \
    {                                                                                              \
        return weft_try_send(name##_to(sender_), &message_);                                       \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_send_init(                                   \
        weft_op *op_, name##_sender *sender_, type const *message_)                                \
    {                                                                                              \
        weft_send_init(op_, name##_to(sender_), message_);                                         \
    }                                                                                              \
    static inline                                                                                  \
        __attribute__((unused)) void name##_send_reserved(name##_sender *sender_, type message_)   \
    {                                                                                              \
        weft_send_reserved(name##_to(sender_), &message_);                                         \
    }                                                                                              \
    static inline __attribute__((unused)) WEFT_NODISCARD int name##_recv(                          \
        name##_receiver *receiver_, type *message_, weft_time deadline_)                           \
    {                                                                                              \
        return weft_recv(name##_from(receiver_), message_, deadline_);                             \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_try_recv(name##_receiver *receiver_, type *message_)                 \
    {                                                                                              \
        return weft_try_recv(name##_from(receiver_), message_);                                    \
    }                                                                                              \
    static inline __attribute__((unused)) WEFT_NODISCARD int64_t name##_recv_many(                 \
        name##_receiver *receiver_, type *messages_, size_t most_, weft_time deadline_)            \
    {                                                                                              \
        return weft_recv_many(name##_from(receiver_), messages_, most_, deadline_);                \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_recv_init(                                   \
        weft_op *op_, name##_receiver *receiver_, type *message_)                                  \
    {                                                                                              \
        weft_recv_init(op_, name##_from(receiver_), message_);                                     \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD name##_sender *name##_sender_clone(name##_sender *sender_)                      \
    {                                                                                              \
        return (name##_sender *)weft_sender_clone(name##_to(sender_));                             \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD name##_receiver *name##_receiver_clone(name##_receiver *receiver_)              \
    {                                                                                              \
        return (name##_receiver *)weft_receiver_clone(name##_from(receiver_));                     \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_sender_drop(name##_sender *sender_)          \
    {                                                                                              \
        weft_sender_drop(name##_to(sender_));                                                      \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_receiver_drop(name##_receiver *receiver_)    \
    {                                                                                              \
        weft_receiver_drop(name##_from(receiver_));                                                \
    }

#endif
