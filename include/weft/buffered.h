/* SPDX-License-Identifier: MIT */
/*
 * weft/buffered.h - reading and writing streams through a buffer of one's own: lines, fields,
 * frames; and copying from one stream to another.
 *
 *     char room[4096];
 *     weft_reader reader;
 *     weft_text line;
 *     weft_reader_init(&reader, stream, room, sizeof room);
 *     while ((err = weft_read_line(&reader, &line, WEFT_NEVER)) == 1) {
 *         printf("%.*s\n", (int)line.size, line.at);
 *     }
 *
 * A reader belongs to one task at a time, and so does a writer. What was read and not taken yet
 * stays in the buffer when a call times out or is cancelled, and the next call goes on with it.
 * What a call gives lies in the buffer, and is there until the next call.
 *
 * When another task closes the stream, a call that needs the stream returns WEFT_ECLOSED. A reader
 * first gives what is in its buffer, and a writer takes what fits into its buffer.
 */
#ifndef WEFT_BUFFERED_H
#define WEFT_BUFFERED_H

#include "base.h"
#include "clock.h"
#include "io.h"

WEFT_EXTERN_C_BEGIN

/* Some bytes that lie somewhere else. */
typedef struct weft_text {
    const char *at;
    size_t size;
} weft_text;

/* Reads ahead. Its members are not to be touched. */
typedef struct weft_reader {
    weft_stream *stream;
    char *buffer;
    size_t size;
    size_t first; /* of what was read and not taken */
    size_t end;
    size_t seen; /* of it, without the delimiter that was looked for */
    char delimiter;
    bool has_ended;
} weft_reader;

/*
 * Makes a reader of a stream, with a buffer of at least one byte. Both must stay in place.
 *
 * Context: any thread.
 */
WEFT_API void weft_reader_init(weft_reader *reader, weft_stream *stream, void *buffer, size_t size);

/*
 * Reads as weft_read(), first what is in the buffer.
 *
 * Context: as weft_read().
 * Errors:  as weft_read().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_reader_read(weft_reader *reader, void *data, size_t size,
                                                 weft_time deadline);

/*
 * Reads size bytes into data. Those of an error stay in the buffer as far as they fit; else they
 * are lost, as by weft_read_exact().
 *
 * Context: as weft_read().
 * Errors:  as weft_read(); WEFT_EEND: the stream has ended before.
 */
WEFT_API WEFT_NODISCARD int weft_reader_exact(weft_reader *reader, void *data, size_t size,
                                              weft_time deadline);

/*
 * Looks at the next bytes, at least so many of them, without taking them; at the end of the stream
 * there may be fewer. weft_reader_take() takes some.
 *
 * Context: as weft_read().
 * Errors:  as weft_read(); -EMSGSIZE: the buffer is smaller.
 */
WEFT_API WEFT_NODISCARD int weft_reader_peek(weft_reader *reader, size_t least, weft_text *text,
                                             weft_time deadline);

/*
 * Takes so many bytes out of the buffer, which are there. Aborts if they are not.
 *
 * Context: as the reader.
 */
WEFT_API void weft_reader_take(weft_reader *reader, size_t size);

/*
 * Reads up to a delimiter, which is taken and not part of the text. Returns 1; or 0: the stream
 * has ended, and there is nothing more. What comes last may lack its delimiter.
 *
 * Context: as weft_read().
 * Errors:  as weft_read(); -EMSGSIZE: there is none in as much as the buffer holds; nothing was
 *          taken.
 */
WEFT_API WEFT_NODISCARD int weft_read_until(weft_reader *reader, char delimiter, weft_text *text,
                                            weft_time deadline);

/*
 * Reads a line, without its end, which is "\n" or "\r\n". Otherwise as weft_read_until().
 *
 * Context: as weft_read().
 */
WEFT_API WEFT_NODISCARD int weft_read_line(weft_reader *reader, weft_text *line,
                                           weft_time deadline);

/*
 * Reads a frame: so many bytes (1 to 8) with its length, the highest first, and then that many.
 * Returns 1; or 0: the stream has ended, between two frames.
 *
 * Context: as weft_read().
 * Errors:  as weft_read(); WEFT_EEND: the stream has ended within one; -EMSGSIZE: it is longer than
 *          the buffer holds; -EINVAL: bytes is not 1 to 8. Nothing was taken.
 */
WEFT_API WEFT_NODISCARD int weft_read_frame(weft_reader *reader, unsigned bytes, weft_text *frame,
                                            weft_time deadline);

/* Collects what is written. Its members are not to be touched. */
typedef struct weft_writer {
    weft_stream *stream;
    char *buffer;
    size_t size;
    size_t first; /* of what is to be written */
    size_t end;
} weft_writer;

/*
 * Makes a writer to a stream, with a buffer of at least one byte. Both must stay in place.
 *
 * Context: any thread.
 */
WEFT_API void weft_writer_init(weft_writer *writer, weft_stream *stream, void *buffer, size_t size);

/*
 * Writes size bytes: into the buffer, and to the stream what does not fit.
 *
 * Context: as weft_write().
 * Errors:  as weft_write(). Some of the bytes may have been written, and the rest were not: write
 *          no more.
 */
WEFT_API WEFT_NODISCARD int weft_writer_write(weft_writer *writer, const void *data, size_t size,
                                              weft_time deadline);

/*
 * Writes text as printf() does.
 *
 * Context: as weft_write().
 * Errors:  as weft_writer_write(); -EMSGSIZE: it is longer than the buffer; -ENOMEM: for a text of
 *          exactly the buffer's size. Nothing was written then.
 */
WEFT_API WEFT_NODISCARD int weft_writer_print(weft_writer *writer, weft_time deadline,
                                              const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/*
 * Writes a frame, as weft_read_frame() reads it.
 *
 * Context: as weft_write().
 * Errors:  as weft_writer_write(); -EMSGSIZE: its length does not fit; -EINVAL: bytes is not 1
 *          to 8.
 */
WEFT_API WEFT_NODISCARD int weft_write_frame(weft_writer *writer, unsigned bytes, const void *data,
                                             size_t size, weft_time deadline);

/*
 * Writes what is in the buffer to the stream. After an error it may be called again, and goes on
 * where it was.
 *
 * Context: as weft_write().
 * Errors:  as weft_write().
 */
WEFT_API WEFT_NODISCARD int weft_writer_flush(weft_writer *writer, weft_time deadline);

/*
 * Copies from one stream to another until the first has ended; the second one stays open.
 * *copied, if it is not NULL, is how many bytes that were, also after an error. On a fiber, much
 * that comes from a file, a socket or a pipe goes to a socket or a pipe inside the kernel
 * (sendfile, splice), which takes two descriptors while it lasts, if there are any.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: until the end, or the deadline.
 * Errors:   as weft_read() and weft_write(): what was read and not written is lost.
 */
WEFT_API WEFT_NODISCARD int weft_copy(weft_stream *from, weft_stream *to, uint64_t *copied,
                                      weft_time deadline);

/*
 * Copies both ways between two streams, until both have ended. When one direction has ended, the
 * other side is told so (WEFT_WRITE_SIDE is shut), and the other direction goes on. An error of one
 * direction ends both, whatever the streams are; it does not close the streams, nor shut them.
 *
 * Context:  a fiber.
 * Suspends: until then, or the deadline.
 * Errors:   as weft_copy(), of the direction that failed first; -ENOMEM, and others of weft_go().
 */
WEFT_API WEFT_NODISCARD int weft_copy_both(weft_stream *one, weft_stream *other,
                                           weft_time deadline);

WEFT_EXTERN_C_END

#endif
