/* SPDX-License-Identifier: MIT */
/*
 * writer.c - writing to a stream through a buffer. A call that writes more than once is at the
 * stream all the while, so that a close ends it, also in between.
 */
#include <weft/buffered.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "io/stream.h"

void weft_writer_init(weft_writer *writer, weft_stream *stream, void *buffer, size_t size)
{
    if (size == 0) {
        wf_fatal("weft_writer_init: a buffer of no bytes; write to the stream itself instead");
    }
    *writer = (weft_writer){ .stream = stream, .buffer = buffer, .size = size };
}

int weft_writer_flush(weft_writer *writer, weft_time deadline)
{
    struct iovec rest = { writer->buffer + writer->first, writer->end - writer->first };
    int err = weft_writev_all(writer->stream, &rest, 1, deadline);
    writer->first = writer->end - rest.iov_len;
    if (err == 0) {
        writer->first = 0;
        writer->end = 0;
    }
    return err;
}

static int enter(const weft_writer *writer, const char *call)
{
    return writer->stream->ops->enter(writer->stream, call);
}

static void leave(const weft_writer *writer)
{
    writer->stream->ops->leave(writer->stream);
}

static size_t room(const weft_writer *writer)
{
    return writer->size - writer->end;
}

/* At the stream all the while, if there is no room. */
static int write_data(weft_writer *writer, const void *data, size_t size, weft_time deadline)
{
    if (size > room(writer)) {
        int err = weft_writer_flush(writer, deadline);
        if (err != 0 || size >= writer->size) {
            return err != 0 ? err : weft_write_all(writer->stream, data, size, deadline);
        }
    }
    if (size > 0) {
        memcpy(writer->buffer + writer->end, data, size);
        writer->end += size;
    }
    return 0;
}

int weft_writer_write(weft_writer *writer, const void *data, size_t size, weft_time deadline)
{
    if (size <= room(writer)) {
        return write_data(writer, data, size, deadline);
    }
    int err = enter(writer, "weft_writer_write");
    if (err == 0) {
        err = write_data(writer, data, size, deadline);
        leave(writer);
    }
    return err;
}

/* Prints into the room there is: how long the text is. */
static int print(weft_writer *writer, const char *format, va_list args)
{
    return vsnprintf(writer->buffer + writer->end, room(writer), format, args);
}

int weft_writer_print(weft_writer *writer, weft_time deadline, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = print(writer, format, args);
    va_end(args);
    if (length < 0) {
        return -EINVAL;
    }
    if ((size_t)length >= room(writer)) {
        if ((size_t)length >= writer->size) {
            return -EMSGSIZE;
        }
        int err = weft_writer_flush(writer, deadline);
        if (err != 0) {
            return err;
        }
        va_start(args, format);
        (void)print(writer, format, args);
        va_end(args);
    }
    writer->end += (size_t)length;
    return 0;
}

int weft_write_frame(weft_writer *writer, unsigned bytes, const void *data, size_t size,
                     weft_time deadline)
{
    unsigned char length[8];
    if (bytes < 1 || bytes > 8) {
        return -EINVAL;
    }
    if (bytes < 8 && (uint64_t)size >> (8 * bytes) != 0) {
        return -EMSGSIZE;
    }
    for (unsigned i = 0; i < bytes; i++) {
        length[i] = (unsigned char)((uint64_t)size >> (8 * (bytes - 1 - i)));
    }
    bool fits = bytes <= room(writer) && size <= room(writer) - bytes;
    int err = fits ? 0 : enter(writer, "weft_write_frame");
    if (err != 0) {
        return err;
    }
    err = write_data(writer, length, bytes, deadline);
    err = err != 0 ? err : write_data(writer, data, size, deadline);
    if (!fits) {
        leave(writer);
    }
    return err;
}
