/* SPDX-License-Identifier: MIT */
/*
 * weft/buffered.h - buffered readers and writers: lines, fields, frames; and stream copy.
 *
 *     char room[4096];
 *     weft_reader reader;
 *     weft_text line;
 *     weft_reader_init(&reader, stream, room, sizeof room);
 *     while ((err = weft_read_line(&reader, &line, WEFT_NEVER)) == 1) {
 *         printf("%.*s\n", (int)line.size, line.at);
 *     }
 *
 * A reader belongs to one task at a time, and so does a writer. If a call times out or is
 * canceled, the bytes that were read and not consumed stay in the buffer, and the next call
 * continues with them. A text that a call returns points into the buffer and is valid until the
 * next call.
 *
 * If another task closes the stream, a call that needs the stream returns WEFT_ECLOSED. Until
 * then a reader returns the contents of its buffer, and a writer accepts data that fits into
 * its buffer.
 *
 * The calls that may wait have no prepared forms, and abort in a stackless task.
 */
#ifndef WEFT_BUFFERED_H
#define WEFT_BUFFERED_H

#include "base.h"
#include "clock.h"
#include "io.h"

WEFT_EXTERN_C_BEGIN

/* A slice of bytes in memory that belongs to another object. */
typedef struct weft_text {
    const char *at;
    size_t size;
} weft_text;

/* A buffered reader. The fields are private. */
typedef struct weft_reader {
    weft_stream *stream;
    char *buffer;
    size_t size;
    size_t first; /* start of the unconsumed bytes */
    size_t end;
    size_t seen; /* unconsumed bytes already searched for the delimiter */
    char delimiter;
    bool has_ended;
} weft_reader;

/*
 * Initializes a reader of a stream, with a buffer of at least one byte. Stream and buffer must
 * stay in place.
 *
 * Context: any thread.
 */
WEFT_API void weft_reader_init(weft_reader *reader, weft_stream *stream, void *buffer, size_t size);

/*
 * Reads like weft_read(), first from the buffer.
 *
 * Context: fiber or plain thread.
 * Errors:  those of weft_read().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_reader_read(weft_reader *reader, void *data, size_t size,
                                                 weft_time deadline);

/*
 * Reads exactly size bytes into data. On an error, bytes that were already read stay in the
 * buffer if size bytes fit into it. Otherwise they are lost, as with weft_read_exact().
 *
 * Context: fiber or plain thread.
 * Errors:  those of weft_read(); WEFT_EEND (the stream ended early).
 */
WEFT_API WEFT_NODISCARD int weft_reader_exact(weft_reader *reader, void *data, size_t size,
                                              weft_time deadline);

/*
 * Gets the next bytes without consuming them: least bytes or more, and fewer only at the end of
 * the stream. weft_reader_take() consumes them.
 *
 * Context: fiber or plain thread.
 * Errors:  those of weft_read(); -EMSGSIZE (least exceeds the buffer).
 */
WEFT_API WEFT_NODISCARD int weft_reader_peek(weft_reader *reader, size_t least, weft_text *text,
                                             weft_time deadline);

/*
 * Consumes size bytes of the buffer. Aborts if it has fewer.
 *
 * Context: any thread; owner only.
 */
WEFT_API void weft_reader_take(weft_reader *reader, size_t size);

/*
 * Reads up to a delimiter, which is consumed and is not part of the text. Returns 1, or 0 at
 * the end of the stream. The last text before the end may lack its delimiter.
 *
 * Context: fiber or plain thread.
 * Errors:  those of weft_read(); -EMSGSIZE (no delimiter within the size of the buffer; nothing
 *          was consumed).
 */
WEFT_API WEFT_NODISCARD int weft_read_until(weft_reader *reader, char delimiter, weft_text *text,
                                            weft_time deadline);

/*
 * Reads a line, without its line ending "\n" or "\r\n". Otherwise like weft_read_until().
 *
 * Context: fiber or plain thread.
 */
WEFT_API WEFT_NODISCARD int weft_read_line(weft_reader *reader, weft_text *line,
                                           weft_time deadline);

/*
 * Reads a length-prefixed frame: a big-endian length of 1 to 8 bytes, then that many bytes of
 * data. bytes is the size of the length. Returns 1, or 0 if the stream ended between two
 * frames.
 *
 * Context: fiber or plain thread.
 * Errors:  those of weft_read(); WEFT_EEND (the stream ended within a frame), -EMSGSIZE (the
 *          frame does not fit into the buffer), -EINVAL (bytes is not 1 to 8). Nothing was
 *          consumed.
 */
WEFT_API WEFT_NODISCARD int weft_read_frame(weft_reader *reader, unsigned bytes, weft_text *frame,
                                            weft_time deadline);

/* A buffered writer. The fields are private. */
typedef struct weft_writer {
    weft_stream *stream;
    char *buffer;
    size_t size;
    size_t first; /* start of the bytes to write */
    size_t end;
} weft_writer;

/*
 * Initializes a writer to a stream, with a buffer of at least one byte. Stream and buffer must
 * stay in place.
 *
 * Context: any thread.
 */
WEFT_API void weft_writer_init(weft_writer *writer, weft_stream *stream, void *buffer, size_t size);

/*
 * Writes size bytes to the buffer, and to the stream if they do not fit.
 *
 * Context: fiber or plain thread.
 * Errors:  those of weft_write(). Some of the bytes may have been written and the rest not; do
 *          not write more.
 */
WEFT_API WEFT_NODISCARD int weft_writer_write(weft_writer *writer, const void *data, size_t size,
                                              weft_time deadline);

/*
 * Writes text formatted as by printf().
 *
 * Context: fiber or plain thread.
 * Errors:  those of weft_writer_write(); -EINVAL (printf() would fail: the text exceeds INT_MAX
 *          bytes, or a wide character has no encoding), -EMSGSIZE (the text exceeds the buffer),
 *          -ENOMEM (only for a text of exactly the buffer's size). With these three nothing was
 *          written.
 */
WEFT_API WEFT_NODISCARD int weft_writer_print(weft_writer *writer, weft_time deadline,
                                              const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/*
 * Writes a frame in the format that weft_read_frame() reads.
 *
 * Context: fiber or plain thread.
 * Errors:  those of weft_writer_write(); -EMSGSIZE (size does not fit into the length), -EINVAL
 *          (bytes is not 1 to 8).
 */
WEFT_API WEFT_NODISCARD int weft_write_frame(weft_writer *writer, unsigned bytes, const void *data,
                                             size_t size, weft_time deadline);

/*
 * Writes the contents of the buffer to the stream. After an error it may be called again and
 * continues where it stopped.
 *
 * Context: fiber or plain thread.
 * Errors:  those of weft_write().
 */
WEFT_API WEFT_NODISCARD int weft_writer_flush(weft_writer *writer, weft_time deadline);

/*
 * Copies from one stream to another until the first one ends. The second one stays open. Stores
 * the number of bytes in *copied, if copied is not NULL, also after an error. On a fiber, bulk
 * data from a file, a socket or a pipe is moved to a socket or a pipe inside the kernel
 * (sendfile, splice). That uses two more descriptors, if available, while it lasts.
 *
 * Context:  fiber or plain thread.
 * Suspends: until the end of the stream or the deadline.
 * Errors:   those of weft_read() and weft_write(). Bytes that were read and not written are
 *           lost.
 */
WEFT_API WEFT_NODISCARD int weft_copy(weft_stream *from, weft_stream *to, uint64_t *copied,
                                      weft_time deadline);

/*
 * Copies in both directions between two streams until both have ended. When one direction ends,
 * its destination is half-closed (WEFT_WRITE_SIDE), and the other direction continues. An error
 * in one direction ends both, for any kind of stream. It neither closes nor shuts down the
 * streams.
 *
 * Context:  fiber, blocking job.
 * Suspends: until both directions have ended or the deadline passes.
 * Errors:   those of weft_copy(), for the direction that failed first; -ENOMEM and others of
 *           weft_go().
 */
WEFT_API WEFT_NODISCARD int weft_copy_both(weft_stream *one, weft_stream *other,
                                           weft_time deadline);

WEFT_EXTERN_C_END

#endif
