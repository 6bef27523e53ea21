/* SPDX-License-Identifier: MIT */
/*
 * writer.c - buffered writer of a stream. A call that writes more than once stays a user of the
 * stream throughout, so that a close also ends it between two writes.
 */
#include <weft/buffered.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/source.h"
#include "io/transfer.h"
#include "sched/await.h"

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
    weft_io io;
    weft_writev_all_init(&io, writer->stream, &rest, 1);
    int err = wf_transfer_await(&io, deadline, "weft_writer_flush");
    writer->first = writer->end - rest.iov_len;
    if (err == 0) {
        writer->first = 0;
        writer->end = 0;
    }
    return err;
}

/* Starts every call that may write, even if the buffer has space. */
static int begin(weft_time *deadline, const char *call)
{
    return wf_await_begin(deadline, call, "write in a fiber");
}

static size_t room(const weft_writer *writer)
{
    return writer->size - writer->end;
}

/* Writes to the buffer, and flushes it first if there is no space. The caller is then a user of
 * the stream. */
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
    int err = begin(&deadline, "weft_writer_write");
    if (err != 0) {
        return err;
    }
    if (size <= room(writer)) {
        return write_data(writer, data, size, deadline);
    }
    struct wf_source *source;
    err = wf_source_enter(writer->stream, &source);
    if (err == 0) {
        err = write_data(writer, data, size, deadline);
        wf_source_leave(source);
    }
    return err;
}

/* Prints into the free space of the buffer. Returns the length of the whole text. */
static int print(weft_writer *writer, const char *format, va_list args)
{
    return vsnprintf(writer->buffer + writer->end, room(writer), format, args);
}

/* Prints a text that is as large as the buffer, which has no space for the zero that
 * vsnprintf() appends. Returns separate memory, which the caller frees, or NULL if out of
 * memory. */
static char *print_apart(size_t length, const char *format, va_list args)
{
    char *text = wf_alloc(&wf_alloc_default, length + 1, 1);
    if (text != NULL) {
        (void)vsnprintf(text, length + 1, format, args);
    }
    return text;
}

int weft_writer_print(weft_writer *writer, weft_time deadline, const char *format, ...)
{
    int err = begin(&deadline, "weft_writer_print");
    if (err != 0) {
        return err;
    }
    va_list args;
    va_start(args, format);
    int length = print(writer, format, args);
    va_end(args);
    if (length < 0) {
        return -EINVAL;
    }
    if ((size_t)length < room(writer)) {
        writer->end += (size_t)length;
        return 0;
    }
    if ((size_t)length > writer->size) {
        return -EMSGSIZE;
    }
    char *apart = NULL;
    if ((size_t)length == writer->size) {
        va_start(args, format);
        apart = print_apart((size_t)length, format, args);
        va_end(args);
        if (apart == NULL) {
            return -ENOMEM;
        }
    }
    err = weft_writer_flush(writer, deadline);
    if (err == 0 && apart != NULL) {
        memcpy(writer->buffer, apart, (size_t)length);
    } else if (err == 0) {
        va_start(args, format);
        (void)print(writer, format, args);
        va_end(args);
    }
    writer->end += err == 0 ? (size_t)length : 0;
    wf_free(&wf_alloc_default, apart, (size_t)length + 1, 1);
    return err;
}

int weft_write_frame(weft_writer *writer, unsigned bytes, const void *data, size_t size,
                     weft_time deadline)
{
    unsigned char length[8];
    int err = begin(&deadline, "weft_write_frame");
    if (err != 0) {
        return err;
    }
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
    struct wf_source *source;
    err = fits ? 0 : wf_source_enter(writer->stream, &source);
    if (err != 0) {
        return err;
    }
    err = write_data(writer, length, bytes, deadline);
    err = err != 0 ? err : write_data(writer, data, size, deadline);
    if (!fits) {
        wf_source_leave(source);
    }
    return err;
}
