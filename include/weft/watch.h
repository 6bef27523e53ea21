/* SPDX-License-Identifier: MIT */
/*
 * weft/watch.h - one value that changes, and those who want to know the latest.
 *
 *     WEFT_WATCH(level, int)
 *
 *     level_sender *set;
 *     level_receiver *seen;
 *     err = level_make(&set, &seen, 1);
 *     err = level_send(set, 2);
 *
 *     err = level_recv(seen, &now, WEFT_NEVER);  // waits for a value that it has not seen
 *     now = level_get(seen);                     // the latest one, seen or not
 *
 * A receiver that is slow misses values in between, never the last one. Handles are counted:
 * when the last sender is dropped, receivers get WEFT_ECLOSED as soon as they have seen the
 * last value.
 *
 * The functions below take values as memory of the size that the watch was made with;
 * WEFT_WATCH() makes functions of the same names for a type.
 */
#ifndef WEFT_WATCH_H
#define WEFT_WATCH_H

#include "clock.h"
#include "op.h"

WEFT_EXTERN_C_BEGIN

/* A watch, as its senders see it; and one receiver, which knows what it has seen. */
typedef struct weft_watch_sender weft_watch_sender;
typedef struct weft_watch_receiver weft_watch_receiver;

/* What a watch is like. */
typedef struct weft_watch_options {
    size_t size;       /* of a value, in bytes; see weft_watch_make() */
    const void *first; /* the first value, which is copied */
    /* For messages with pointers to what is counted; each may be NULL. retain is called with the
     * copy that a receiver gets, before the receiver has it: it adds a reference. It is short, and
     * must not call the library. drop is called with a pointer to the watch's own copy when it is
     * replaced, on the thread that sends, and when the last handle is dropped, on that thread;
     * before that call returns, and without a lock: it may use the library, but must not wait. */
    void (*retain)(void *value, void *arg);
    void (*drop)(void *value, void *arg);
    void *arg; /* of both */
} weft_watch_options;

/*
 * Creates a watch, with a first value, which counts as seen by the receiver. If it fails, the
 * first value is not dropped.
 *
 * Context: any thread.
 * Owns:    the caller, both handles: weft_watch_sender_drop(), weft_watch_receiver_drop().
 * Errors:  -ENOMEM; -EINVAL: the size is too large.
 */
WEFT_API WEFT_NODISCARD int weft_watch_create(weft_watch_sender **sender,
                                              weft_watch_receiver **receiver,
                                              const weft_watch_options *options);

/*
 * Makes a watch for values of this size, with a first one, which counts as seen by the
 * receiver. With size 0 the pointers to values are not accessed and may be NULL.
 *
 * Context: any thread.
 * Owns:    the caller, both handles: weft_watch_sender_drop(), weft_watch_receiver_drop().
 * Errors:  -ENOMEM; -EINVAL: the size is too large.
 */
WEFT_API WEFT_NODISCARD int weft_watch_make(weft_watch_sender **sender,
                                            weft_watch_receiver **receiver, size_t size,
                                            const void *first);

/*
 * Counts one more sender, and returns it.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD weft_watch_sender *weft_watch_sender_clone(weft_watch_sender *sender);

/*
 * Makes a receiver, which has seen the latest value.
 *
 * Context: any thread.
 * Owns:    the caller: weft_watch_receiver_drop().
 * Errors:  -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_watch_subscribe(weft_watch_sender *sender,
                                                 weft_watch_receiver **receiver);

/*
 * Makes a receiver that has seen what this one has.
 *
 * Context: any thread.
 * Owns:    the caller: weft_watch_receiver_drop().
 * Errors:  -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_watch_receiver_clone(const weft_watch_receiver *receiver,
                                                      weft_watch_receiver **copy);

/*
 * Drops a sender. The last one closes the watch. NULL is allowed. One drop too many aborts with a
 * sentence while there are receivers. After the last handle of all the memory is freed, and
 * another drop is undefined.
 *
 * Context: any thread.
 */
WEFT_API void weft_watch_sender_drop(weft_watch_sender *sender);

/*
 * Drops a receiver, with which no operation waits. NULL is allowed. A second drop is as that of
 * a sender.
 *
 * Context: any thread.
 */
WEFT_API void weft_watch_receiver_drop(weft_watch_receiver *receiver);

/*
 * Closes the watch before the last sender is dropped.
 *
 * Context: any thread.
 */
WEFT_API void weft_watch_close(weft_watch_sender *sender);

/*
 * Sets a new value, and wakes receivers that wait for one; also if it is equal to the last.
 *
 * Context: anywhere.
 * Errors:  WEFT_ECLOSED; -ENOMEM: the watch has a drop function, and values of more than 128
 *          bytes. The value is still the caller's.
 */
WEFT_API WEFT_NODISCARD int weft_watch_send(weft_watch_sender *sender, const void *value);

/* Changes a value in place, or answers false: it has not changed. Short; it must not call
 * the library. */
typedef bool (*weft_watch_change_fn)(void *value, void *arg);

/*
 * Changes the value in place, while nobody else sees it. Returns 1 if it has changed, else 0. The
 * drop function of the watch is not called: change() ends what it replaces.
 *
 * Context: anywhere.
 * Errors:  WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_watch_change(weft_watch_sender *sender,
                                              weft_watch_change_fn change, void *arg);

/*
 * Copies the latest value, which is seen then.
 *
 * Context: anywhere.
 */
WEFT_API void weft_watch_get(weft_watch_receiver *receiver, void *value);

/*
 * Is there a value that this receiver has not seen?
 *
 * Context: anywhere.
 */
WEFT_API bool weft_watch_has_changed(const weft_watch_receiver *receiver);

/*
 * Waits for a value that this receiver has not seen, and copies the latest one. value may be
 * NULL: it has changed, that is all.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_watch_recv_init().
 * Suspends: until there is one, or the deadline.
 * Errors:   WEFT_ECLOSED: there will be none; WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM (on a
 *           thread's first wait). Nothing was seen then.
 */
WEFT_API WEFT_NODISCARD int weft_watch_recv(weft_watch_receiver *receiver, void *value,
                                            weft_time deadline);

/*
 * Prepares to receive: the result of the future is that of weft_watch_recv().
 *
 * Context: any thread.
 */
WEFT_API void weft_watch_recv_init(weft_op *op, weft_watch_receiver *receiver, void *value);

/* Is this the value to wait for? Short; it must not call the library. */
typedef bool (*weft_watch_wanted_fn)(const void *value, void *arg);

/*
 * Waits until the latest value is wanted, seen or not, and copies it.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_watch_wait_for_init().
 * Suspends: until there is one, or the deadline.
 * Errors:   as weft_watch_recv().
 */
WEFT_API WEFT_NODISCARD int weft_watch_wait_for(weft_watch_receiver *receiver,
                                                weft_watch_wanted_fn is_wanted, void *arg,
                                                void *value, weft_time deadline);

/*
 * Prepares to wait: the result of the future is that of weft_watch_wait_for().
 *
 * Context: any thread.
 */
WEFT_API void weft_watch_wait_for_init(weft_op *op, weft_watch_receiver *receiver,
                                       weft_watch_wanted_fn is_wanted, void *arg, void *value);

/* What is known of a watch at one moment. */
typedef struct weft_watch_info {
    size_t senders;
    size_t receivers;
    uint64_t sent; /* values, the first one not counted */
    bool is_closed;
} weft_watch_info;

/*
 * Tells what is known of a watch.
 *
 * Context: any thread.
 */
WEFT_API weft_watch_info weft_watch_sender_info(const weft_watch_sender *sender);

/*
 * Tells what is known of a watch.
 *
 * Context: any thread.
 */
WEFT_API weft_watch_info weft_watch_receiver_info(const weft_watch_receiver *receiver);

WEFT_EXTERN_C_END

/*
 * Defines a watch for values of a type: the handles name_sender and name_receiver, and
 * functions that do what those above do,
 *
 *   name_make(&sender, &receiver, first)
 *   name_create(&sender, &receiver, &options)   whose size is that of the type
 *   name_send(sender, value)                    name_recv(receiver, &value, deadline)
 *   name_get(receiver)                          name_recv_init(op, receiver, &value)
 *   name_sender_clone(sender)                   name_receiver_clone(receiver, &copy)
 *   name_sender_drop(sender)                    name_receiver_drop(receiver)
 *   name_subscribe(sender, &receiver)
 *
 * The other functions take name_to(sender), a weft_watch_sender, or name_from(receiver), a
 * weft_watch_receiver.
 */
#define WEFT_WATCH(name, type)                                                                     \
    typedef struct name##_sender name##_sender;                                                    \
    typedef struct name##_receiver name##_receiver;                                                \
                                                                                                   \
    static inline __attribute__((unused)) weft_watch_sender *name##_to(name##_sender *sender_)     \
    {                                                                                              \
        return (weft_watch_sender *)sender_;                                                       \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    weft_watch_receiver *name##_from(name##_receiver *receiver_)                                   \
    {                                                                                              \
        return (weft_watch_receiver *)receiver_;                                                   \
    }                                                                                              \
    static inline __attribute__((unused)) WEFT_NODISCARD int name##_make(                          \
        name##_sender **sender_, name##_receiver **receiver_, type first_)                         \
    {                                                                                              \
        weft_watch_sender *to_ = NULL;                                                             \
        weft_watch_receiver *from_ = NULL;                                                         \
        int err_ = weft_watch_make(&to_, &from_, sizeof(type), &first_);                           \
        *sender_ = (name##_sender *)to_;                                                           \
        *receiver_ = (name##_receiver *)from_;                                                     \
        return err_;                                                                               \
    }                                                                                              \
    static inline __attribute__((unused)) WEFT_NODISCARD int name##_create(                        \
        name##_sender **sender_, name##_receiver **receiver_, const weft_watch_options *options_)  \
    {                                                                                              \
        weft_watch_sender *to_ = NULL;                                                             \
        weft_watch_receiver *from_ = NULL;                                                         \
        weft_watch_options typed_ = *options_;                                                     \
        typed_.size = sizeof(type);                                                                \
        int err_ = weft_watch_create(&to_, &from_, &typed_);                                       \
        *sender_ = (name##_sender *)to_;                                                           \
        *receiver_ = (name##_receiver *)from_;                                                     \
        return err_;                                                                               \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_send(name##_sender *sender_, type value_)                            \
    {                                                                                              \
        return weft_watch_send(name##_to(sender_), &value_);                                       \
    }                                                                                              \
    static inline __attribute__((unused)) type name##_get(name##_receiver *receiver_)              \
    {                                                                                              \
        type value_;                                                                               \
        weft_watch_get(name##_from(receiver_), &value_);                                           \
        return value_;                                                                             \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_recv(name##_receiver *receiver_, type *value_, weft_time deadline_)  \
    {                                                                                              \
        return weft_watch_recv(name##_from(receiver_), value_, deadline_);                         \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_recv_init(                                   \
        weft_op *op_, name##_receiver *receiver_, type *value_)                                    \
    {                                                                                              \
        weft_watch_recv_init(op_, name##_from(receiver_), value_);                                 \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD name##_sender *name##_sender_clone(name##_sender *sender_)                      \
    {                                                                                              \
        return (name##_sender *)weft_watch_sender_clone(name##_to(sender_));                       \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_subscribe(name##_sender *sender_, name##_receiver **receiver_)       \
    {                                                                                              \
        weft_watch_receiver *from_ = NULL;                                                         \
        int err_ = weft_watch_subscribe(name##_to(sender_), &from_);                               \
        *receiver_ = (name##_receiver *)from_;                                                     \
        return err_;                                                                               \
    }                                                                                              \
    static inline __attribute__((unused))                                                          \
    WEFT_NODISCARD int name##_receiver_clone(name##_receiver *receiver_, name##_receiver **copy_)  \
    {                                                                                              \
        weft_watch_receiver *from_ = NULL;                                                         \
        int err_ = weft_watch_receiver_clone(name##_from(receiver_), &from_);                      \
        *copy_ = (name##_receiver *)from_;                                                         \
        return err_;                                                                               \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_sender_drop(name##_sender *sender_)          \
    {                                                                                              \
        weft_watch_sender_drop(name##_to(sender_));                                                \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_receiver_drop(name##_receiver *receiver_)    \
    {                                                                                              \
        weft_watch_receiver_drop(name##_from(receiver_));                                          \
    }

#endif
