/* SPDX-License-Identifier: MIT */
/*
 * weft/stream.h - sequences whose items are made when somebody asks for them.
 *
 *     static int lines(weft_generator *to, void *arg);   gives lines, with weft_give()
 *
 *     weft_stream *stream = weft_generate(sizeof(struct line), lines, file);
 *     stream = weft_stream_filter(stream, is_request, NULL);
 *     stream = weft_stream_map(stream, sizeof(struct reply), answer, NULL);
 *     stream = weft_stream_buffered(stream, 16);
 *     err = weft_stream_for_each(stream, print, NULL);
 *
 * A stream belongs to one who pulls at a time. A stage takes the stream that it is made from,
 * also if it fails; without memory it gives NULL. A stage of NULL is NULL, and the functions
 * that end a stream give -ENOMEM for NULL: so a chain is checked once, at its end. They end
 * the stream, too, whatever happens.
 *
 * A generator, a buffer and a merge run on fibers of their own, and need a runtime; so does
 * whoever pulls from them.
 */
#ifndef WEFT_STREAM_H
#define WEFT_STREAM_H

#include "channel.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_stream weft_stream;

/*
 * Takes the next item. Returns 1, or 0: there is none any more.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: until there is one, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED: the item is still to come; or the stream's own,
 *           which ends it.
 */
WEFT_API WEFT_NODISCARD int weft_stream_next(weft_stream *stream, void *item, weft_time deadline);

/*
 * Returns the size of an item.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_stream_size(const weft_stream *stream);

/*
 * Ends a stream, and all that it is made from. NULL is allowed.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: until its fibers, which are cancelled, have ended.
 */
WEFT_API void weft_stream_drop(weft_stream *stream);

/*
 * A stream of the items of an array, which must stay in place.
 *
 * Context: any thread.
 * Owns:    the caller: give it to a stage or an end, or weft_stream_drop().
 */
WEFT_API WEFT_NODISCARD weft_stream *weft_stream_of_array(const void *base, size_t count,
                                                          size_t size);

/*
 * A stream of what a channel has, until it is closed. The receiver is the stream's, which
 * drops it.
 *
 * Context: any thread.
 * Owns:    as above.
 */
WEFT_API WEFT_NODISCARD weft_stream *weft_stream_of_channel(weft_receiver *receiver, size_t size);

/* Where a generator gives its items. */
typedef struct weft_generator weft_generator;

/*
 * A stream of what a function gives, which runs on a fiber of its own: until it gives an item,
 * and on when that is taken. If it returns less than 0, that is the end of the stream, with an
 * error.
 *
 * Context: a task, or a blocking job.
 * Owns:    as above.
 */
WEFT_API WEFT_NODISCARD weft_stream *
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
 * which ends the stream.
 *
 * Context: any thread.
 * Owns:    the stage has the stream, and the caller the stage.
 */
WEFT_API WEFT_NODISCARD weft_stream *
weft_stream_map(weft_stream *stream, size_t size, int (*map)(const void *from, void *to, void *arg),
                void *arg);

/*
 * The items for which keep(item, arg) is true.
 *
 * Context: any thread.
 * Owns:    as weft_stream_map().
 */
WEFT_API WEFT_NODISCARD weft_stream *
weft_stream_filter(weft_stream *stream, bool (*keep)(const void *item, void *arg), void *arg);

/*
 * The first so many.
 *
 * Context: any thread.
 * Owns:    as weft_stream_map().
 */
WEFT_API WEFT_NODISCARD weft_stream *weft_stream_take(weft_stream *stream, uint64_t count);

/*
 * All but the first so many.
 *
 * Context: any thread.
 * Owns:    as weft_stream_map().
 */
WEFT_API WEFT_NODISCARD weft_stream *weft_stream_skip(weft_stream *stream, uint64_t count);

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
 * Owns:    as weft_stream_map().
 */
WEFT_API WEFT_NODISCARD weft_stream *weft_stream_chunks(weft_stream *stream, size_t count);

/*
 * An item of each stream, until one has none: zip(one, two, to, arg) makes one of both, and
 * returns 0 or an error, which ends the stream.
 *
 * Context: any thread.
 * Owns:    the stage has both streams, and the caller the stage.
 */
WEFT_API WEFT_NODISCARD weft_stream *
weft_stream_zip(weft_stream *one, weft_stream *two, size_t size,
                int (*zip)(const void *one, const void *two, void *to, void *arg), void *arg);

/*
 * The items of both streams, which are of one size, as they come. An error of one is the end.
 *
 * Context: a task, or a blocking job.
 * Owns:    as weft_stream_zip().
 */
WEFT_API WEFT_NODISCARD weft_stream *weft_stream_merge(weft_stream *one, weft_stream *two);

/*
 * A fiber pulls up to so many items ahead.
 *
 * Context: a task, or a blocking job.
 * Owns:    as weft_stream_map().
 */
WEFT_API WEFT_NODISCARD weft_stream *weft_stream_buffered(weft_stream *stream, size_t count);

/*
 * Each item comes a period after the one before, or later.
 *
 * Context: any thread.
 * Owns:    as weft_stream_map().
 */
WEFT_API WEFT_NODISCARD weft_stream *weft_stream_throttle(weft_stream *stream, weft_time period);

/*
 * Calls function(item, arg) for each item, until it returns less than 0. Returns that, or an
 * error of the stream, or 0.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: while the stream does.
 * Errors:   -ENOMEM: the stream is NULL; or those of weft_stream_next().
 */
WEFT_API WEFT_NODISCARD int weft_stream_for_each(weft_stream *stream,
                                                 int (*function)(void *item, void *arg), void *arg);

/*
 * Calls fold(value, item, arg) for each item, in their order. 0, or an error of the stream.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: while the stream does.
 * Errors:   as weft_stream_for_each().
 */
WEFT_API WEFT_NODISCARD int weft_stream_fold(weft_stream *stream, void *value,
                                             void (*fold)(void *value, const void *item, void *arg),
                                             void *arg);

/*
 * Copies items to memory, so many at most. Returns how many.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: while the stream does.
 * Errors:   as weft_stream_for_each().
 */
WEFT_API WEFT_NODISCARD int64_t weft_stream_collect(weft_stream *stream, void *items, size_t most);

/*
 * Sends all items to a channel for messages of that size. 0, WEFT_ECLOSED, or an error of the
 * stream. The sender is still yours.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: while the stream does, or the channel is full.
 * Errors:   as weft_stream_for_each(), and weft_send().
 */
WEFT_API WEFT_NODISCARD int weft_stream_send_to(weft_stream *stream, weft_sender *sender);

WEFT_EXTERN_C_END

#endif
