/* SPDX-License-Identifier: MIT */
/*
 * weft/channel.h - multi-producer, multi-consumer channel.
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
 * Each message goes to one receiver. Messages of one sender arrive in the order in which they
 * were sent, and receivers get messages in the order in which they entered the channel. A
 * channel buffers up to capacity messages. With a capacity of 0 (rendezvous), a sender waits
 * until a receiver takes its message. With WEFT_UNBOUNDED it never waits; memory is allocated
 * as messages arrive and freed as they are received.
 *
 * Handles are counted. Tasks may share a handle; a clone is a handle of its own, and each
 * handle is dropped once. A handle must not be dropped while an operation with it is in
 * progress. After the last sender is dropped, receivers get the remaining messages and then
 * WEFT_ECLOSED. When the last receiver is dropped, unread messages are dropped with it, and
 * senders get WEFT_ECLOSED.
 *
 * The functions below take messages as memory of the size given at the channel's creation.
 * WEFT_CHANNEL() defines typed functions of the same names.
 */
#ifndef WEFT_CHANNEL_H
#define WEFT_CHANNEL_H

#include "clock.h"
#include "op.h"

WEFT_EXTERN_C_BEGIN

/* The sending and the receiving handle of a channel. */
typedef struct weft_sender weft_sender;
typedef struct weft_receiver weft_receiver;

/* Capacity of an unbounded channel. */
#define WEFT_UNBOUNDED SIZE_MAX

/* Options of a channel. Zero fields mean: messages without data (events), rendezvous, no drop
 * function. */
typedef struct weft_channel_options {
    size_t size;     /* of a message, in bytes; see weft_channel_make() */
    size_t capacity; /* messages; 0: rendezvous; or WEFT_UNBOUNDED */
    /* Called for each message that no receiver gets, with a pointer to the message and with
     * arg: for the unread messages, oldest first, when the last receiver is dropped, and for a
     * message that weft_send_reserved() sends after that. It runs on the calling thread, before
     * the call returns and without a lock: it may use the library, but must not wait. A message
     * that a send refuses stays with the sender and is not dropped. */
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
 * Owns:    the caller owns both handles and drops them with weft_sender_drop() and
 *          weft_receiver_drop().
 * Errors:  -ENOMEM, -EINVAL (capacity times size is too large).
 */
WEFT_API WEFT_NODISCARD int weft_channel_create(weft_sender **sender, weft_receiver **receiver,
                                                const weft_channel_options *options);

/*
 * Creates a channel for messages of the given size, with one sender and one receiver. If size
 * is 0, a message is an event: the pointers to messages are not accessed and may be NULL.
 *
 * Context: any thread.
 * Owns:    the caller owns both handles and drops them with weft_sender_drop() and
 *          weft_receiver_drop().
 * Errors:  -ENOMEM, -EINVAL (capacity times size is too large).
 */
WEFT_API WEFT_NODISCARD int weft_channel_make(weft_sender **sender, weft_receiver **receiver,
                                              size_t size, size_t capacity);

/*
 * Returns another sender of the channel, or NULL if out of memory.
 *
 * Context: any thread.
 * Owns:    the caller owns the clone and drops it with weft_sender_drop().
 */
WEFT_API WEFT_NODISCARD weft_sender *weft_sender_clone(weft_sender *sender);

/*
 * Returns another receiver of the channel, or NULL if out of memory.
 *
 * Context: any thread.
 * Owns:    the caller owns the clone and drops it with weft_receiver_drop().
 */
WEFT_API WEFT_NODISCARD weft_receiver *weft_receiver_clone(weft_receiver *receiver);

/*
 * Drops a sender and gives up the slots that it has reserved. Dropping the last sender closes
 * the channel. NULL is allowed. A second drop aborts with a message while other handles of the
 * channel exist. The memory is freed with the last handle; a second drop after that is
 * undefined behavior.
 *
 * Context: any thread.
 */
WEFT_API void weft_sender_drop(weft_sender *sender);

/*
 * Drops a receiver. Dropping the last one closes the channel and passes unread messages to the
 * channel's drop function, or discards them if it has none. NULL is allowed. A second drop is
 * treated as in weft_sender_drop().
 *
 * Context: any thread.
 */
WEFT_API void weft_receiver_drop(weft_receiver *receiver);

/*
 * Sends a message.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_send_init().
 * Suspends: while the channel is full, until the deadline passes.
 * Errors:   WEFT_ECLOSED, WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (unbounded channel, or first
 *           wait of a thread). The message was not sent.
 */
WEFT_API WEFT_NODISCARD int weft_send(weft_sender *sender, const void *message, weft_time deadline);

/*
 * Sends a message if that needs no wait.
 *
 * Context: any thread.
 * Errors:  -EAGAIN (the channel is full), WEFT_ECLOSED, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_try_send(weft_sender *sender, const void *message);

/*
 * Prepares a send. The future's result is that of weft_send(). The message must stay in place
 * until the future completes.
 *
 * Context: any thread.
 */
WEFT_API void weft_send_init(weft_op *op, weft_sender *sender, const void *message);

/*
 * Receives a message.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_recv_init().
 * Suspends: while the channel is empty, until the deadline passes.
 * Errors:   WEFT_ECLOSED (the channel is closed and empty), WEFT_ETIMEDOUT, WEFT_ECANCELED,
 *           -ENOMEM (first wait of a thread). *message is unchanged.
 */
WEFT_API WEFT_NODISCARD int weft_recv(weft_receiver *receiver, void *message, weft_time deadline);

/*
 * Receives a message if one is available.
 *
 * Context: any thread.
 * Errors:  -EAGAIN (the channel is empty), WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_try_recv(weft_receiver *receiver, void *message);

/*
 * Receives up to most messages into consecutive memory. Waits only for the first one. Returns
 * the number received, 1 or more.
 *
 * Context:  fiber or plain thread.
 * Suspends: as weft_recv().
 * Errors:   those of weft_recv(); -EINVAL (most is 0).
 */
WEFT_API WEFT_NODISCARD int64_t weft_recv_many(weft_receiver *receiver, void *messages, size_t most,
                                               weft_time deadline);

/*
 * Prepares a receive. The future's result is that of weft_recv(). The memory for the message
 * must stay in place until the future completes.
 *
 * Context: any thread.
 */
WEFT_API void weft_recv_init(weft_op *op, weft_receiver *receiver, void *message);

/*
 * Reserves a slot for one message: weft_send_reserved() with the same sender then neither waits
 * nor fails. The slot belongs to this sender and is given up when the sender is dropped.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_reserve_init().
 * Suspends: as weft_send().
 * Errors:   those of weft_send(); -EINVAL (the capacity is 0).
 */
WEFT_API WEFT_NODISCARD int weft_reserve(weft_sender *sender, weft_time deadline);

/*
 * Reserves a slot for one message if one is free.
 *
 * Context: any thread.
 * Errors:  those of weft_try_send(); -EINVAL (the capacity is 0).
 */
WEFT_API WEFT_NODISCARD int weft_try_reserve(weft_sender *sender);

/*
 * Prepares a reservation. The future's result is that of weft_reserve().
 *
 * Context: any thread.
 */
WEFT_API void weft_reserve_init(weft_op *op, weft_sender *sender);

/*
 * Sends a message into a slot that this sender has reserved. If all receivers are gone, the
 * message goes to the channel's drop function. Aborts if the sender has no reserved slot.
 *
 * Context: any thread.
 */
WEFT_API void weft_send_reserved(weft_sender *sender, const void *message);

/*
 * Gives up a slot that this sender has reserved. Aborts if it has none.
 *
 * Context: any thread.
 */
WEFT_API void weft_unreserve(weft_sender *sender);

/*
 * Closes the channel before the last sender is dropped: senders get WEFT_ECLOSED from now on,
 * receivers after they have received the remaining messages. Reserved slots may still be used.
 *
 * Context: any thread.
 */
WEFT_API void weft_sender_close(weft_sender *sender);

/*
 * Same as weft_sender_close(), for a receiver that wants only the messages that are in the
 * channel.
 *
 * Context: any thread.
 */
WEFT_API void weft_receiver_close(weft_receiver *receiver);

/* A snapshot of a channel's state. */
typedef struct weft_channel_info {
    size_t length;   /* messages in the channel */
    size_t capacity; /* or WEFT_UNBOUNDED */
    size_t bytes;    /* memory for messages; grows and shrinks if unbounded */
    size_t senders;
    size_t receivers;
    bool is_closed;
} weft_channel_info;

/*
 * Returns a snapshot of the channel's state.
 *
 * Context: any thread.
 */
WEFT_API weft_channel_info weft_sender_info(const weft_sender *sender);

/*
 * Returns a snapshot of the channel's state.
 *
 * Context: any thread.
 */
WEFT_API weft_channel_info weft_receiver_info(const weft_receiver *receiver);

WEFT_EXTERN_C_END

/*
 * Defines a channel for messages of the given type: the handles name_sender and name_receiver,
 * and typed forms of the functions above:
 *
 *   name_make(&sender, &receiver, capacity)
 *   name_create(&sender, &receiver, &options)   (options->size is ignored)
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
