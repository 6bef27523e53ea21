/* SPDX-License-Identifier: MIT */
/*
 * weft/sequence.h - lazy sequences: generators, stages such as map and filter, and consumers.
 *
 *     int lines(weft_generator *to, void *arg);  // yields lines with weft_give()
 *
 *     weft_sequence *sequence = weft_generate(sizeof(struct line), lines, file);
 *     sequence = weft_sequence_filter(sequence, is_request, NULL);
 *     sequence = weft_sequence_map(sequence, sizeof(struct reply), answer, NULL);
 *     sequence = weft_sequence_buffered(sequence, 16);
 *     err = weft_sequence_for_each(sequence, print, NULL);
 *
 * Items are produced on demand. Only one task at a time may pull from a sequence. A stage takes
 * ownership of the sequence that it is built on, even if it fails; it returns NULL if it is out
 * of memory. A stage built on NULL is NULL, and the functions that consume a sequence return
 * -ENOMEM for NULL, so a chain is checked once, at its end. These functions free the sequence
 * in every case.
 *
 * Generators, buffers and merges run on fibers of their own. They need a runtime, and so do the
 * callers that pull from them.
 */
#ifndef WEFT_SEQUENCE_H
#define WEFT_SEQUENCE_H

#include "channel.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_sequence weft_sequence;

/*
 * Pulls the next item. Returns 1, or 0 at the end of the sequence.
 *
 * Context:  fiber or plain thread.
 * Suspends: until the item is available or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED (no item is lost; pull again); or the sequence's
 *           own, which ends it.
 */
WEFT_API WEFT_NODISCARD int weft_sequence_next(weft_sequence *sequence, void *item,
                                               weft_time deadline);

/*
 * Returns the size of an item.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_sequence_size(const weft_sequence *sequence);

/*
 * Frees a sequence and all the sequences that it is built on. NULL is allowed. A second drop is
 * undefined behavior.
 *
 * Context:  fiber or plain thread.
 * Suspends: until its fibers, which are canceled, have ended.
 */
WEFT_API void weft_sequence_drop(weft_sequence *sequence);

/*
 * Returns a sequence of the items of an array, which must stay in place.
 *
 * Context: any thread.
 * Owns:    the caller owns the sequence and passes it to a stage or a consumer, or drops it
 *          with weft_sequence_drop().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_of_array(const void *base, size_t count,
                                                              size_t size);

/*
 * Returns a sequence of the messages of a channel, until it is closed. The sequence takes the
 * receiver and drops it.
 *
 * Context: any thread.
 * Owns:    as weft_sequence_of_array().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_of_channel(weft_receiver *receiver,
                                                                size_t size);

/* The endpoint to which a generator gives its items. */
typedef struct weft_generator weft_generator;

/*
 * Returns a sequence of the items that a function gives. The function runs on a fiber of its
 * own: up to the next item that it gives, then on again when that item is pulled. If it returns
 * a negative error, the sequence ends with that error.
 *
 * Context: any task or blocking job. Aborts in a stackless task.
 * Owns:    as weft_sequence_of_array().
 */
WEFT_API WEFT_NODISCARD weft_sequence *
weft_generate(size_t size, int (*function)(weft_generator *to, void *arg), void *arg);

/*
 * Gives an item to the consumer and waits until it is pulled.
 *
 * Context:  the function of a generator.
 * Suspends: until the item is pulled.
 * Errors:   WEFT_ECANCELED, WEFT_ECLOSED (no more items are wanted; the function must return).
 */
WEFT_API WEFT_NODISCARD int weft_give(weft_generator *to, const void *item);

/*
 * Returns a sequence of converted items: map(from, to, arg) writes the new item and returns 0,
 * or an error, which ends the sequence.
 *
 * Context: any thread.
 * Owns:    the stage owns the sequence, and the caller owns the stage.
 */
WEFT_API WEFT_NODISCARD weft_sequence *
weft_sequence_map(weft_sequence *sequence, size_t size,
                  int (*map)(const void *from, void *to, void *arg), void *arg);

/*
 * Returns a sequence of the items for which keep(item, arg) is true.
 *
 * Context: any thread.
 * Owns:    as weft_sequence_map().
 */
WEFT_API WEFT_NODISCARD weft_sequence *
weft_sequence_filter(weft_sequence *sequence, bool (*keep)(const void *item, void *arg), void *arg);

/*
 * Returns a sequence of the first count items.
 *
 * Context: any thread.
 * Owns:    as weft_sequence_map().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_take(weft_sequence *sequence, uint64_t count);

/*
 * Returns a sequence of all items but the first count.
 *
 * Context: any thread.
 * Owns:    as weft_sequence_map().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_skip(weft_sequence *sequence, uint64_t count);

/* Consecutive items. They belong to the stage and are valid until its next item is pulled. */
typedef struct weft_chunk {
    const void *items;
    size_t count;
} weft_chunk;

/*
 * Returns a sequence of chunks of count items, as weft_chunk; the last one may have fewer.
 *
 * Context: any thread.
 * Owns:    as weft_sequence_map().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_chunks(weft_sequence *sequence, size_t count);

/*
 * Returns a sequence of pairs, until one of the sequences ends: zip(one, two, to, arg) combines
 * an item of each and returns 0, or an error, which ends the sequence.
 *
 * Context: any thread.
 * Owns:    the stage owns both sequences, and the caller owns the stage.
 */
WEFT_API WEFT_NODISCARD weft_sequence *
weft_sequence_zip(weft_sequence *one, weft_sequence *two, size_t size,
                  int (*zip)(const void *one, const void *two, void *to, void *arg), void *arg);

/*
 * Returns a sequence of the items of both sequences, in the order in which they become
 * available. Their items must have the same size. An error of one sequence ends the merge.
 *
 * Context: any task or blocking job. Aborts in a stackless task.
 * Owns:    as weft_sequence_zip().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_merge(weft_sequence *one, weft_sequence *two);

/*
 * Returns a sequence whose fiber pulls up to count items ahead.
 *
 * Context: any task or blocking job. Aborts in a stackless task.
 * Owns:    as weft_sequence_map().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_buffered(weft_sequence *sequence,
                                                              size_t count);

/*
 * Returns a sequence that delivers each item at least one period after the previous one.
 *
 * Context: any thread.
 * Owns:    as weft_sequence_map().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_throttle(weft_sequence *sequence,
                                                              weft_time period);

/*
 * Calls function(item, arg) for each item, until it returns a negative error. Returns that
 * error, an error of the sequence, or 0.
 *
 * Context:  fiber or plain thread.
 * Suspends: while the sequence does.
 * Errors:   -ENOMEM (also if the sequence is NULL), or those of weft_sequence_next().
 */
WEFT_API WEFT_NODISCARD int
weft_sequence_for_each(weft_sequence *sequence, int (*function)(void *item, void *arg), void *arg);

/*
 * Calls fold(value, item, arg) for each item, in order. Returns 0, or an error of the sequence.
 *
 * Context:  fiber or plain thread.
 * Suspends: while the sequence does.
 * Errors:   those of weft_sequence_for_each().
 */
WEFT_API WEFT_NODISCARD int
weft_sequence_fold(weft_sequence *sequence, void *value,
                   void (*fold)(void *value, const void *item, void *arg), void *arg);

/*
 * Copies items to memory, up to most of them. Returns the number of items.
 *
 * Context:  fiber or plain thread.
 * Suspends: while the sequence does.
 * Errors:   those of weft_sequence_for_each().
 */
WEFT_API WEFT_NODISCARD int64_t weft_sequence_collect(weft_sequence *sequence, void *items,
                                                      size_t most);

/*
 * Sends all items to a channel whose messages have the size of an item. Returns 0,
 * WEFT_ECLOSED, or an error of the sequence. The caller keeps the sender.
 *
 * Context:  fiber or plain thread.
 * Suspends: while the sequence does, or while the channel is full.
 * Errors:   those of weft_sequence_for_each() and weft_send().
 */
WEFT_API WEFT_NODISCARD int weft_sequence_send_to(weft_sequence *sequence, weft_sender *sender);

WEFT_EXTERN_C_END

#endif
