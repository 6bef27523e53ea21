/* SPDX-License-Identifier: MIT */
/*
 * weft/broadcast.h - broadcast channel: every receiver gets every message.
 *
 *     WEFT_BROADCAST(news, struct item)
 *
 *     news_sender *to;
 *     news_receiver *from;
 *     err = news_make(&to, &from, 64);
 *
 *     err = news_send(to, item);                          // sender
 *     err = news_recv(from, &item, &missed, WEFT_NEVER);  // each receiver
 *
 * Sending never waits. The channel keeps the last capacity messages; a receiver that lags
 * behind misses the oldest ones and learns how many. Handles are counted. After the last sender
 * is dropped, receivers get the remaining messages and then WEFT_ECLOSED.
 *
 * The functions below take messages as memory of the size given at the broadcast's creation.
 * WEFT_BROADCAST() defines typed functions of the same names.
 */
#ifndef WEFT_BROADCAST_H
#define WEFT_BROADCAST_H

#include "clock.h"
#include "op.h"

WEFT_EXTERN_C_BEGIN

/* The sending handle of a broadcast, and a receiver, which keeps track of its own position. */
typedef struct weft_broadcast_sender weft_broadcast_sender;
typedef struct weft_broadcast_receiver weft_broadcast_receiver;

/* Options of a broadcast. */
typedef struct weft_broadcast_options {
    size_t size; /* of a message, in bytes; see weft_broadcast_make() */
    /* Number of messages that a receiver can get, 1 or more. The memory is that for the next power
     * of two, and a copy stays there until another one replaces it. */
    size_t capacity;
    /* For messages that hold reference-counted pointers; each may be NULL. retain is called
     * with the copy for a receiver, before the receiver gets it, and adds a reference. It must
     * be short and must not call the library. drop is called with a pointer to the broadcast's
     * own copy: when the copy is replaced, on the sending thread, and when the last handle is
     * dropped, on that thread. It is called before that call returns and without a lock: it may
     * use the library, but must not wait. */
    void (*retain)(void *message, void *arg);
    void (*drop)(void *message, void *arg);
    void *arg; /* of both */
} weft_broadcast_options;

/*
 * Creates a broadcast with one sender and one receiver.
 *
 * Context: any thread.
 * Owns:    the caller owns both handles and drops them with weft_broadcast_sender_drop() and
 *          weft_broadcast_receiver_drop().
 * Errors:  -ENOMEM, -EINVAL (the capacity is 0, or capacity times size is too large).
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_create(weft_broadcast_sender **sender,
                                                  weft_broadcast_receiver **receiver,
                                                  const weft_broadcast_options *options);

/*
 * Creates a broadcast for messages of the given size, which keeps the last capacity messages.
 * If size is 0, the pointers to messages are not accessed and may be NULL.
 *
 * Context: any thread.
 * Owns:    the caller owns both handles and drops them with weft_broadcast_sender_drop() and
 *          weft_broadcast_receiver_drop().
 * Errors:  -ENOMEM, -EINVAL (the capacity is 0, or capacity times size is too large).
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_make(weft_broadcast_sender **sender,
                                                weft_broadcast_receiver **receiver, size_t size,
                                                size_t capacity);

/*
 * Adds a reference to the sender and returns it.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD weft_broadcast_sender *
weft_broadcast_sender_clone(weft_broadcast_sender *sender);

/*
 * Creates a receiver that gets all messages sent from now on.
 *
 * Context: any thread.
 * Owns:    the caller owns the receiver and drops it with weft_broadcast_receiver_drop().
 * Errors:  -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_subscribe(weft_broadcast_sender *sender,
                                                     weft_broadcast_receiver **receiver);

/*
 * Creates a receiver that gets all messages that the given one has not received yet.
 *
 * Context: any thread.
 * Owns:    the caller owns the receiver and drops it with weft_broadcast_receiver_drop().
 * Errors:  -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_receiver_clone(const weft_broadcast_receiver *receiver,
                                                          weft_broadcast_receiver **copy);

/*
 * Drops a sender. Dropping the last one closes the broadcast. NULL is allowed. An extra drop
 * aborts with a message while the broadcast has receivers. The memory is freed with the last
 * handle of either kind; another drop after that is undefined behavior.
 *
 * Context: any thread.
 */
WEFT_API void weft_broadcast_sender_drop(weft_broadcast_sender *sender);

/*
 * Drops a receiver, which must have no pending operation. NULL is allowed. A second drop is
 * treated as in weft_broadcast_sender_drop().
 *
 * Context: any thread.
 */
WEFT_API void weft_broadcast_receiver_drop(weft_broadcast_receiver *receiver);

/*
 * Closes the broadcast before the last sender is dropped.
 *
 * Context: any thread.
 */
WEFT_API void weft_broadcast_close(weft_broadcast_sender *sender);

/*
 * Sends a message to all current receivers; there may be none.
 *
 * Context: any thread.
 * Errors:  WEFT_ECLOSED, -ENOMEM (only if the broadcast has a drop function and messages of
 *          more than 128 bytes). The caller keeps the message.
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_send(weft_broadcast_sender *sender, const void *message);

/*
 * Receives the next message. Stores in *missed, if missed is not NULL, the number of messages
 * before it that this receiver has missed; usually 0.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_broadcast_recv_init().
 * Suspends: until a message arrives or the deadline passes.
 * Errors:   WEFT_ECLOSED (the broadcast is closed and all messages were received),
 *           WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first wait of a thread). *message is
 *           unchanged.
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_recv(weft_broadcast_receiver *receiver, void *message,
                                                uint64_t *missed, weft_time deadline);

/*
 * Receives the next message if one is available.
 *
 * Context: any thread.
 * Errors:  -EAGAIN (no message), WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_try_recv(weft_broadcast_receiver *receiver,
                                                    void *message, uint64_t *missed);

/*
 * Receives up to most messages into consecutive memory. Waits only for the first one. Returns
 * the number received, 1 or more. Stores in *missed the number of messages missed before the
 * first one.
 *
 * Context:  fiber or plain thread.
 * Suspends: as weft_broadcast_recv().
 * Errors:   those of weft_broadcast_recv(); -EINVAL (most is 0).
 */
WEFT_API WEFT_NODISCARD int64_t weft_broadcast_recv_many(weft_broadcast_receiver *receiver,
                                                         void *messages, size_t most,
                                                         uint64_t *missed, weft_time deadline);

/*
 * Receives up to most messages if any are available.
 *
 * Context: any thread.
 * Errors:  those of weft_broadcast_try_recv(); -EINVAL (most is 0).
 */
WEFT_API WEFT_NODISCARD int64_t weft_broadcast_try_recv_many(weft_broadcast_receiver *receiver,
                                                             void *messages, size_t most,
                                                             uint64_t *missed);

/*
 * Prepares a receive. The future's result is that of weft_broadcast_recv().
 *
 * Context: any thread.
 */
WEFT_API void weft_broadcast_recv_init(weft_op *op, weft_broadcast_receiver *receiver,
                                       void *message, uint64_t *missed);

/* A snapshot of a broadcast's state. */
typedef struct weft_broadcast_info {
    size_t length; /* messages available to the given receiver; 0 for a sender */
    size_t capacity;
    size_t senders;
    size_t receivers;
    uint64_t sent; /* messages */
    bool is_closed;
} weft_broadcast_info;

/*
 * Returns a snapshot of the broadcast's state.
 *
 * Context: any thread.
 */
WEFT_API weft_broadcast_info weft_broadcast_sender_info(const weft_broadcast_sender *sender);

/*
 * Returns a snapshot of the broadcast's state.
 *
 * Context: any thread.
 */
WEFT_API weft_broadcast_info weft_broadcast_receiver_info(const weft_broadcast_receiver *receiver);

WEFT_EXTERN_C_END

/*
 * Defines a broadcast for messages of the given type: the handles name_sender and
 * name_receiver, and typed forms of the functions above:
 *
 *   name_make(&sender, &receiver, capacity)
 *   name_create(&sender, &receiver, &options)   (options->size is ignored)
 *   name_send(sender, message)                  name_recv(receiver, &message, &missed,
 *                                                         deadline)
 *   name_sender_clone(sender)                   name_try_recv(receiver, &message, &missed)
 *   name_sender_drop(sender)                    name_recv_init(op, receiver, &message,
 *                                                              &missed)
 *   name_subscribe(sender, &receiver)           name_receiver_clone(receiver, &copy)
 *                                               name_receiver_drop(receiver)
 *
 * The other functions take name_to(sender), a weft_broadcast_sender, or name_from(receiver), a
 * weft_broadcast_receiver.
 */
#define WEFT_BROADCAST(name, type)                                                                 \
    typedef struct name##_sender name##_sender;                                                    \
    typedef struct name##_receiver name##_receiver;                                                \
                                                                                                   \
    static inline __attribute__((unused)) weft_broadcast_sender *name##_to(name##_sender *sender_) \
    {                                                                                              \
        return (weft_broadcast_sender *)sender_;                                                   \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    weft_broadcast_receiver *name##_from(name##_receiver *receiver_)                               \
    {                                                                                              \
        return (weft_broadcast_receiver *)receiver_;                                               \
    }                                                                                              \
    static inline __attribute__((unused)) WEFT_NODISCARD int name##_make(                          \
        name##_sender **sender_, name##_receiver **receiver_, size_t capacity_)                    \
    {                                                                                              \
        weft_broadcast_sender *to_ = NULL;                                                         \
        weft_broadcast_receiver *from_ = NULL;                                                     \
        int err_ = weft_broadcast_make(&to_, &from_, sizeof(type), capacity_);                     \
        *sender_ = (name##_sender *)to_;                                                           \
        *receiver_ = (name##_receiver *)from_;                                                     \
        return err_;                                                                               \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_create(name##_sender **sender_, name##_receiver **receiver_,         \
                                     const weft_broadcast_options *options_)                       \
    {                                                                                              \
        weft_broadcast_sender *to_ = NULL;                                                         \
        weft_broadcast_receiver *from_ = NULL;                                                     \
        weft_broadcast_options typed_ = *options_;                                                 \
        typed_.size = sizeof(type);                                                                \
        int err_ = weft_broadcast_create(&to_, &from_, &typed_);                                   \
        *sender_ = (name##_sender *)to_;                                                           \
        *receiver_ = (name##_receiver *)from_;                                                     \
        return err_;                                                                               \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_send(name##_sender *sender_, type message_)                          \
    {                                                                                              \
        return weft_broadcast_send(name##_to(sender_), &message_);                                 \
    }                                                                                              \
    static inline __attribute__((unused)) WEFT_NODISCARD int name##_recv(                          \
        name##_receiver *receiver_, type *message_, uint64_t *missed_, weft_time deadline_)        \
    {                                                                                              \
        return weft_broadcast_recv(name##_from(receiver_), message_, missed_, deadline_);          \
    }                                                                                              \
    static inline __attribute__((unused)) WEFT_NODISCARD int name##_try_recv(                      \
        name##_receiver *receiver_, type *message_, uint64_t *missed_)                             \
    {                                                                                              \
        return weft_broadcast_try_recv(name##_from(receiver_), message_, missed_);                 \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_recv_init(                                   \
        weft_op *op_, name##_receiver *receiver_, type *message_, uint64_t *missed_)               \
    {                                                                                              \
        weft_broadcast_recv_init(op_, name##_from(receiver_), message_, missed_);                  \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD name##_sender *name##_sender_clone(name##_sender *sender_)                      \
    {                                                                                              \
        return (name##_sender *)weft_broadcast_sender_clone(name##_to(sender_));                   \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_subscribe(name##_sender *sender_, name##_receiver **receiver_)       \
    {                                                                                              \
        weft_broadcast_receiver *from_ = NULL;                                                     \
        int err_ = weft_broadcast_subscribe(name##_to(sender_), &from_);                           \
        *receiver_ = (name##_receiver *)from_;                                                     \
        return err_;                                                                               \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_receiver_clone(name##_receiver *receiver_, name##_receiver **copy_)  \
    {                                                                                              \
        weft_broadcast_receiver *from_ = NULL;                                                     \
        int err_ = weft_broadcast_receiver_clone(name##_from(receiver_), &from_);                  \
        *copy_ = (name##_receiver *)from_;                                                         \
        return err_;                                                                               \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_sender_drop(name##_sender *sender_)          \
    {                                                                                              \
        weft_broadcast_sender_drop(name##_to(sender_));                                            \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_receiver_drop(name##_receiver *receiver_)    \
    {                                                                                              \
        weft_broadcast_receiver_drop(name##_from(receiver_));                                      \
    }

#endif
