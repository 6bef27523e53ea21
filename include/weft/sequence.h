/* SPDX-License-Identifier: MIT */
/*
 * weft/sequence.h - sequences whose items are made when somebody asks for them.
 *
 *     int lines(weft_generator *to, void *arg);  // gives lines, with weft_give()
 *
 *     weft_sequence *sequence = weft_generate(sizeof(struct line), lines, file);
 *     sequence = weft_sequence_filter(sequence, is_request, NULL);
 *     sequence = weft_sequence_map(sequence, sizeof(struct reply), answer, NULL);
 *     sequence = weft_sequence_buffered(sequence, 16);
 *     err = weft_sequence_for_each(sequence, print, NULL);
 *
 * A sequence belongs to one who pulls at a time. A stage takes the sequence that it is made from,
 * also if it fails; without memory it gives NULL. A stage of NULL is NULL, and the functions
 * that end a sequence give -ENOMEM for NULL: so a chain is checked once, at its end. They end
 * the sequence, too, whatever happens.
 *
 * A generator, a buffer and a merge run on fibers of their own, and need a runtime; so does
 * whoever pulls from them.
 */
#ifndef WEFT_SEQUENCE_H
#define WEFT_SEQUENCE_H

#include "channel.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_sequence weft_sequence;

/*
 * Takes the next item. Returns 1, or 0: there is none any more.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: until there is one, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED: the item is still to come; or the sequence's own,
 *           which ends it.
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
 * Ends a sequence, and all that it is made from. NULL is allowed. The memory is freed: a second
 * drop is undefined.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: until its fibers, which are cancelled, have ended.
 */
WEFT_API void weft_sequence_drop(weft_sequence *sequence);

/*
 * A sequence of the items of an array, which must stay in place.
 *
 * Context: any thread.
 * Owns:    the caller: give it to a stage or an end, or weft_sequence_drop().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_of_array(const void *base, size_t count,
                                                              size_t size);

/*
 * A sequence of what a channel has, until it is closed. The receiver is the sequence's, which
 * drops it.
 *
 * Context: any thread.
 * Owns:    as above.
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_of_channel(weft_receiver *receiver,
                                                                size_t size);

/* Where a generator gives its items. */
typedef struct weft_generator weft_generator;

/*
 * A sequence of what a function gives, which runs on a fiber of its own: until it gives an item,
 * and on when that is taken. If it returns less than 0, that is the end of the sequence, with an
 * error.
 *
 * Context: a task, or a blocking job.
 * Owns:    as above.
 */
WEFT_API WEFT_NODISCARD weft_sequence *
weft_generate(size_t size, int (*function)(weft_generator *to, void *arg), void *arg);

/*
 * Gives an item, and waits until somebody has taken it.
 *
 * Context:  the function of a generator.
 * Suspends: until it is taken.
 * Errors:   WEFT_ECANCELED, WEFT_ECLOSED: nobody wants more; return then.
 */
WEFT_API WEFT_NODISCARD int weft_give(weft_generator *to, const void *item);

/*
 * Each item becomes another one: map(from, to, arg) writes it, and returns 0 or an error,
 * which ends the sequence.
 *
 * Context: any thread.
 * Owns:    the stage has the sequence, and the caller the stage.
 */
WEFT_API WEFT_NODISCARD weft_sequence *
weft_sequence_map(weft_sequence *sequence, size_t size,
                  int (*map)(const void *from, void *to, void *arg), void *arg);

/*
 * The items for which keep(item, arg) is true.
 *
 * Context: any thread.
 * Owns:    as weft_sequence_map().
 */
WEFT_API WEFT_NODISCARD weft_sequence *
weft_sequence_filter(weft_sequence *sequence, bool (*keep)(const void *item, void *arg), void *arg);

/*
 * The first so many.
 *
 * Context: any thread.
 * Owns:    as weft_sequence_map().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_take(weft_sequence *sequence, uint64_t count);

/*
 * All but the first so many.
 *
 * Context: any thread.
 * Owns:    as weft_sequence_map().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_skip(weft_sequence *sequence, uint64_t count);

/* Items that came one after the other. They are the stage's until its next item is asked
 * for. */
typedef struct weft_chunk {
    const void *items;
    size_t count;
} weft_chunk;

/*
 * Chunks of so many items, as weft_chunk; the last one may have fewer.
 *
 * Context: any thread.
 * Owns:    as weft_sequence_map().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_chunks(weft_sequence *sequence, size_t count);

/*
 * An item of each sequence, until one has none: zip(one, two, to, arg) makes one of both, and
 * returns 0 or an error, which ends the sequence.
 *
 * Context: any thread.
 * Owns:    the stage has both sequences, and the caller the stage.
 */
WEFT_API WEFT_NODISCARD weft_sequence *
weft_sequence_zip(weft_sequence *one, weft_sequence *two, size_t size,
                  int (*zip)(const void *one, const void *two, void *to, void *arg), void *arg);

/*
 * The items of both sequences, which are of one size, as they come. An error of one is the end.
 *
 * Context: a task, or a blocking job.
 * Owns:    as weft_sequence_zip().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_merge(weft_sequence *one, weft_sequence *two);

/*
 * A fiber pulls up to so many items ahead.
 *
 * Context: a task, or a blocking job.
 * Owns:    as weft_sequence_map().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_buffered(weft_sequence *sequence,
                                                              size_t count);

/*
 * Each item comes a period after the one before, or later.
 *
 * Context: any thread.
 * Owns:    as weft_sequence_map().
 */
WEFT_API WEFT_NODISCARD weft_sequence *weft_sequence_throttle(weft_sequence *sequence,
                                                              weft_time period);

/*
 * Calls function(item, arg) for each item, until it returns less than 0. Returns that, or an
 * error of the sequence, or 0.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: while the sequence does.
 * Errors:   -ENOMEM: the sequence is NULL; or those of weft_sequence_next().
 */
WEFT_API WEFT_NODISCARD int
weft_sequence_for_each(weft_sequence *sequence, int (*function)(void *item, void *arg), void *arg);

/*
 * Calls fold(value, item, arg) for each item, in their order. 0, or an error of the sequence.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: while the sequence does.
 * Errors:   as weft_sequence_for_each().
 */
WEFT_API WEFT_NODISCARD int
weft_sequence_fold(weft_sequence *sequence, void *value,
                   void (*fold)(void *value, const void *item, void *arg), void *arg);

/*
 * Copies items to memory, so many at most. Returns how many.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: while the sequence does.
 * Errors:   as weft_sequence_for_each().
 */
WEFT_API WEFT_NODISCARD int64_t weft_sequence_collect(weft_sequence *sequence, void *items,
                                                      size_t most);

/*
 * Sends all items to a channel for messages of that size. 0, WEFT_ECLOSED, or an error of the
 * sequence. The sender is still yours.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: while the sequence does, or the channel is full.
 * Errors:   as weft_sequence_for_each(), and weft_send().
 */
WEFT_API WEFT_NODISCARD int weft_sequence_send_to(weft_sequence *sequence, weft_sender *sender);

WEFT_EXTERN_C_END

#endif
