/* SPDX-License-Identifier: MIT */
/*
 * weft/watch.h - watch channel: a single value, of which receivers see the latest version.
 *
 *     WEFT_WATCH(level, int)
 *
 *     level_sender *set;
 *     level_receiver *seen;
 *     err = level_make(&set, &seen, 1);
 *     err = level_send(set, 2);
 *
 *     err = level_recv(seen, &now, WEFT_NEVER);  // waits for a value not seen before
 *     now = level_get(seen);                     // the latest one, seen or not
 *
 * A slow receiver misses intermediate values, but never the last one. Handles are counted.
 * After the last sender is dropped, receivers that have seen the last value get WEFT_ECLOSED.
 *
 * The functions below take values as memory of the size given at the watch's creation.
 * WEFT_WATCH() defines typed functions of the same names.
 */
#ifndef WEFT_WATCH_H
#define WEFT_WATCH_H

#include "clock.h"
#include "op.h"

WEFT_EXTERN_C_BEGIN

/* The sending handle of a watch, and a receiver, which keeps track of the version it has seen. */
typedef struct weft_watch_sender weft_watch_sender;
typedef struct weft_watch_receiver weft_watch_receiver;

/* Options of a watch. */
typedef struct weft_watch_options {
    size_t size;       /* of a value, in bytes; see weft_watch_make() */
    const void *first; /* the initial value, which is copied */
    /* For values that hold reference-counted pointers; each may be NULL. retain is called with
     * the copy for a receiver, before the receiver gets it, and adds a reference. It must be
     * short and must not call the library. drop is called with a pointer to the watch's own
     * copy: when the copy is replaced, on the sending thread, and when the last handle is
     * dropped, on that thread. It is called before that call returns and without a lock: it may
     * use the library, but must not wait. */
    void (*retain)(void *value, void *arg);
    void (*drop)(void *value, void *arg);
    void *arg; /* of both */
} weft_watch_options;

/*
 * Creates a watch with an initial value, which counts as seen by the receiver. On failure the
 * initial value is not dropped.
 *
 * Context: any thread.
 * Owns:    the caller owns both handles and drops them with weft_watch_sender_drop() and
 *          weft_watch_receiver_drop().
 * Errors:  -ENOMEM, -EINVAL (the size is too large).
 */
WEFT_API WEFT_NODISCARD int weft_watch_create(weft_watch_sender **sender,
                                              weft_watch_receiver **receiver,
                                              const weft_watch_options *options);

/*
 * Creates a watch for values of the given size, with an initial value, which counts as seen by
 * the receiver. If size is 0, the pointers to values are not accessed and may be NULL.
 *
 * Context: any thread.
 * Owns:    the caller owns both handles and drops them with weft_watch_sender_drop() and
 *          weft_watch_receiver_drop().
 * Errors:  -ENOMEM, -EINVAL (the size is too large).
 */
WEFT_API WEFT_NODISCARD int weft_watch_make(weft_watch_sender **sender,
                                            weft_watch_receiver **receiver, size_t size,
                                            const void *first);

/*
 * Adds a reference to the sender and returns it.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD weft_watch_sender *weft_watch_sender_clone(weft_watch_sender *sender);

/*
 * Creates a receiver for which the latest value counts as seen.
 *
 * Context: any thread.
 * Owns:    the caller owns the receiver and drops it with weft_watch_receiver_drop().
 * Errors:  -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_watch_subscribe(weft_watch_sender *sender,
                                                 weft_watch_receiver **receiver);

/*
 * Creates a receiver that has seen the same values as the given one.
 *
 * Context: any thread.
 * Owns:    the caller owns the receiver and drops it with weft_watch_receiver_drop().
 * Errors:  -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_watch_receiver_clone(const weft_watch_receiver *receiver,
                                                      weft_watch_receiver **copy);

/*
 * Drops a sender. Dropping the last one closes the watch. NULL is allowed. An extra drop aborts
 * with a message while the watch has receivers. The memory is freed with the last handle of
 * either kind; another drop after that is undefined behavior.
 *
 * Context: any thread.
 */
WEFT_API void weft_watch_sender_drop(weft_watch_sender *sender);

/*
 * Drops a receiver, which must have no pending operation. NULL is allowed. A second drop is
 * treated as in weft_watch_sender_drop().
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
 * Sets a new value and wakes the receivers that wait for one, even if it is equal to the last
 * value.
 *
 * Context: any thread.
 * Errors:  WEFT_ECLOSED, -ENOMEM (only if the watch has a drop function and values of more than
 *          128 bytes). The caller keeps the value.
 */
WEFT_API WEFT_NODISCARD int weft_watch_send(weft_watch_sender *sender, const void *value);

/* Changes a value in place. Returns whether it did. Must be short and must not call the
 * library. */
typedef bool (*weft_watch_change_fn)(void *value, void *arg);

/*
 * Changes the value in place, while no other caller sees it. Returns 1 if it has changed,
 * otherwise 0. The watch's drop function is not called: change() frees what it replaces.
 *
 * Context: any thread.
 * Errors:  WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_watch_change(weft_watch_sender *sender,
                                              weft_watch_change_fn change, void *arg);

/*
 * Copies the latest value and marks it as seen.
 *
 * Context: any thread.
 */
WEFT_API void weft_watch_get(weft_watch_receiver *receiver, void *value);

/*
 * Returns whether there is a value that this receiver has not seen.
 *
 * Context: any thread.
 */
WEFT_API bool weft_watch_has_changed(const weft_watch_receiver *receiver);

/*
 * Waits for a value that this receiver has not seen, copies the latest one and marks it as
 * seen. If value is NULL, nothing is copied.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_watch_recv_init().
 * Suspends: until there is a new value or the deadline passes.
 * Errors:   WEFT_ECLOSED (there will be no new value), WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM
 *           (first wait of a thread). No value was marked as seen.
 */
WEFT_API WEFT_NODISCARD int weft_watch_recv(weft_watch_receiver *receiver, void *value,
                                            weft_time deadline);

/*
 * Prepares a receive. The future's result is that of weft_watch_recv().
 *
 * Context: any thread.
 */
WEFT_API void weft_watch_recv_init(weft_op *op, weft_watch_receiver *receiver, void *value);

/* Returns whether a value is the one to wait for. Must be short and must not call the library. */
typedef bool (*weft_watch_wanted_fn)(const void *value, void *arg);

/*
 * Waits until is_wanted() accepts the latest value, seen or not, and copies that value.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_watch_wait_for_init().
 * Suspends: until a value is accepted or the deadline passes.
 * Errors:   those of weft_watch_recv().
 */
WEFT_API WEFT_NODISCARD int weft_watch_wait_for(weft_watch_receiver *receiver,
                                                weft_watch_wanted_fn is_wanted, void *arg,
                                                void *value, weft_time deadline);

/*
 * Prepares a wait. The future's result is that of weft_watch_wait_for().
 *
 * Context: any thread.
 */
WEFT_API void weft_watch_wait_for_init(weft_op *op, weft_watch_receiver *receiver,
                                       weft_watch_wanted_fn is_wanted, void *arg, void *value);

/* A snapshot of a watch's state. */
typedef struct weft_watch_info {
    size_t senders;
    size_t receivers;
    uint64_t sent; /* values, not counting the initial one */
    bool is_closed;
} weft_watch_info;

/*
 * Returns a snapshot of the watch's state.
 *
 * Context: any thread.
 */
WEFT_API weft_watch_info weft_watch_sender_info(const weft_watch_sender *sender);

/*
 * Returns a snapshot of the watch's state.
 *
 * Context: any thread.
 */
WEFT_API weft_watch_info weft_watch_receiver_info(const weft_watch_receiver *receiver);

WEFT_EXTERN_C_END

/*
 * Defines a watch for values of the given type: the handles name_sender and name_receiver, and
 * typed forms of the functions above:
 *
 *   name_make(&sender, &receiver, first)
 *   name_create(&sender, &receiver, &options)   (options->size is ignored)
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
