/* SPDX-License-Identifier: MIT */
/*
 * weft/broadcast.h - messages that every receiver gets.
 *
 *     WEFT_BROADCAST(news, struct item)
 *
 *     news_sender *to;
 *     news_receiver *from;
 *     err = news_make(&to, &from, 64);
 *
 *     err = news_send(to, item);                          // a sender
 *     err = news_recv(from, &item, &missed, WEFT_NEVER);  // each receiver
 *
 * Sending never waits: the last so many messages are kept, and a receiver that is slower
 * misses the oldest ones, and is told how many. Handles are counted: when the last sender is
 * dropped, receivers get WEFT_ECLOSED as soon as they have received what is left.
 *
 * The functions below take messages as memory of the size that the broadcast was made with;
 * WEFT_BROADCAST() makes functions of the same names for a type.
 */
#ifndef WEFT_BROADCAST_H
#define WEFT_BROADCAST_H

#include "clock.h"
#include "op.h"

WEFT_EXTERN_C_BEGIN

/* A broadcast, as its senders see it; and one receiver, which knows what it has received. */
typedef struct weft_broadcast_sender weft_broadcast_sender;
typedef struct weft_broadcast_receiver weft_broadcast_receiver;

/* What a broadcast is like. */
typedef struct weft_broadcast_options {
    size_t size;     /* of a message, in bytes; see weft_broadcast_make() */
    size_t capacity; /* messages that are kept, 1 or more */
    /* For messages with pointers to what is counted; each may be NULL. retain is called with the
     * copy that a receiver gets, before the receiver has it: it adds a reference. It is short, and
     * must not call the library. drop is called with a pointer to the broadcast's own copy when it
     * is replaced, on the thread that sends, and when the last handle is dropped, on that thread;
     * before that call returns, and without a lock: it may use the library, but must not wait. */
    void (*retain)(void *message, void *arg);
    void (*drop)(void *message, void *arg);
    void *arg; /* of both */
} weft_broadcast_options;

/*
 * Creates a broadcast.
 *
 * Context: any thread.
 * Owns:    the caller, both handles: weft_broadcast_sender_drop(),
 *          weft_broadcast_receiver_drop().
 * Errors:  -ENOMEM; -EINVAL: the capacity is 0, or it and the size are too large.
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_create(weft_broadcast_sender **sender,
                                                  weft_broadcast_receiver **receiver,
                                                  const weft_broadcast_options *options);

/*
 * Makes a broadcast for messages of this size, of which so many are kept. With size 0 the
 * pointers to messages are not accessed and may be NULL.
 *
 * Context: any thread.
 * Owns:    the caller, both handles: weft_broadcast_sender_drop(),
 *          weft_broadcast_receiver_drop().
 * Errors:  -ENOMEM; -EINVAL: the capacity is 0, or it and the size are too large.
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_make(weft_broadcast_sender **sender,
                                                weft_broadcast_receiver **receiver, size_t size,
                                                size_t capacity);

/*
 * Counts one more sender, and returns it.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD weft_broadcast_sender *
weft_broadcast_sender_clone(weft_broadcast_sender *sender);

/*
 * Makes a receiver, which gets what is sent from now on.
 *
 * Context: any thread.
 * Owns:    the caller: weft_broadcast_receiver_drop().
 * Errors:  -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_subscribe(weft_broadcast_sender *sender,
                                                     weft_broadcast_receiver **receiver);

/*
 * Makes a receiver, which gets all that this one has not received yet.
 *
 * Context: any thread.
 * Owns:    the caller: weft_broadcast_receiver_drop().
 * Errors:  -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_receiver_clone(const weft_broadcast_receiver *receiver,
                                                          weft_broadcast_receiver **copy);

/*
 * Drops a sender. The last one closes the broadcast. NULL is allowed. One drop too many aborts with
 * a sentence while there are receivers. After the last handle of all the memory is freed, and
 * another drop is undefined.
 *
 * Context: any thread.
 */
WEFT_API void weft_broadcast_sender_drop(weft_broadcast_sender *sender);

/*
 * Drops a receiver, with which no operation waits. NULL is allowed. A second drop is as that of
 * a sender.
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
 * Sends a message to all receivers that there are; to none, if there are none.
 *
 * Context: anywhere.
 * Errors:  WEFT_ECLOSED; -ENOMEM: the broadcast has a drop function, and messages of more than 128
 *          bytes. The message is still the caller's.
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_send(weft_broadcast_sender *sender, const void *message);

/*
 * Receives the next message. *missed, if missed is not NULL, is how many before it are gone,
 * which this receiver has not received; mostly 0.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_broadcast_recv_init().
 * Suspends: until there is one, or the deadline.
 * Errors:   WEFT_ECLOSED: it is closed, and all was received; WEFT_ETIMEDOUT, WEFT_ECANCELED;
 *           -ENOMEM (on a thread's first wait). *message is unchanged then.
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_recv(weft_broadcast_receiver *receiver, void *message,
                                                uint64_t *missed, weft_time deadline);

/*
 * Receives the next message if there is one.
 *
 * Context: anywhere.
 * Errors:  -EAGAIN: there is none; WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_broadcast_try_recv(weft_broadcast_receiver *receiver,
                                                    void *message, uint64_t *missed);

/*
 * Receives up to so many messages, one after the other in memory, and waits for the first.
 * Returns how many, 1 or more. *missed is how many before the first are gone.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: as weft_broadcast_recv().
 * Errors:   as weft_broadcast_recv(); -EINVAL: none are wanted.
 */
WEFT_API WEFT_NODISCARD int64_t weft_broadcast_recv_many(weft_broadcast_receiver *receiver,
                                                         void *messages, size_t most,
                                                         uint64_t *missed, weft_time deadline);

/*
 * Receives up to so many messages if there are some.
 *
 * Context: anywhere.
 * Errors:  as weft_broadcast_try_recv(); -EINVAL: none are wanted.
 */
WEFT_API WEFT_NODISCARD int64_t weft_broadcast_try_recv_many(weft_broadcast_receiver *receiver,
                                                             void *messages, size_t most,
                                                             uint64_t *missed);

/*
 * Prepares to receive: the result of the future is that of weft_broadcast_recv().
 *
 * Context: any thread.
 */
WEFT_API void weft_broadcast_recv_init(weft_op *op, weft_broadcast_receiver *receiver,
                                       void *message, uint64_t *missed);

/* What is known of a broadcast at one moment. */
typedef struct weft_broadcast_info {
    size_t length; /* messages that the receiver who asks could receive; 0 for a sender */
    size_t capacity;
    size_t senders;
    size_t receivers;
    uint64_t sent; /* messages */
    bool is_closed;
} weft_broadcast_info;

/*
 * Tells what is known of a broadcast.
 *
 * Context: any thread.
 */
WEFT_API weft_broadcast_info weft_broadcast_sender_info(const weft_broadcast_sender *sender);

/*
 * Tells what is known of a broadcast.
 *
 * Context: any thread.
 */
WEFT_API weft_broadcast_info weft_broadcast_receiver_info(const weft_broadcast_receiver *receiver);

WEFT_EXTERN_C_END

/*
 * Defines a broadcast for messages of a type: the handles name_sender and name_receiver, and
 * functions that do what those above do,
 *
 *   name_make(&sender, &receiver, capacity)
 *   name_create(&sender, &receiver, &options)   whose size is that of the type
 *   name_send(sender, message)                  name_recv(receiver, &message, &missed,
 *                                                         deadline)
 *   name_sender_clone(sender)                   name_try_recv(receiver, &message, &missed)
 *   name_sender_drop(sender)                    name_recv_init(op, receiver, &message,
 *                                                              &missed)
 *   name_subscribe(sender, &receiver)           name_receiver_clone(receiver, &copy)
 *                                               name_receiver_drop(receiver)
 *
 * The other functions take name_to(sender), a weft_broadcast_sender, or name_from(receiver),
 * a weft_broadcast_receiver.
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
