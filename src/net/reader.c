/* SPDX-License-Identifier: MIT */
/*
 * reader.c - buffered reader of a stream.
 *
 * Bytes that were read and not yet consumed are at [first, end). They move to the start of the
 * buffer only when there is no space behind them. A call that reads more than once stays a user
 * of the stream throughout, so that a close also ends it between two reads.
 */
#include <weft/buffered.h>

#include <string.h>

#include "base/assert.h"
#include "io/source.h"
#include "sched/await.h"

void weft_reader_init(weft_reader *reader, weft_stream *stream, void *buffer, size_t size)
{
    if (size == 0) {
        wf_fatal("weft_reader_init: a buffer of no bytes; a line or a frame must fit into it");
    }
    *reader = (weft_reader){ .stream = stream, .buffer = buffer, .size = size };
}

static size_t available(const weft_reader *reader)
{
    return reader->end - reader->first;
}

static void take(weft_reader *reader, size_t size)
{
    reader->first += size;
    reader->seen = 0;
    if (reader->first == reader->end) {
        reader->first = 0;
        reader->end = 0;
    }
}

void weft_reader_take(weft_reader *reader, size_t size)
{
    if (size > available(reader)) {
        wf_fatal("weft_reader_take: %zu bytes of %zu; take what was looked at", size,
                 available(reader));
    }
    take(reader, size);
}

/* Starts every call that may read, even if the buffer already holds the data. */
static int begin(weft_time *deadline, const char *call)
{
    return wf_await_begin(deadline, call, "read in a fiber");
}

/* Reads more into the buffer. Returns 1, 0 if the stream has ended, or an error. */
static int read_more(weft_reader *reader, weft_time deadline)
{
    if (reader->has_ended) {
        return 0;
    }
    if (reader->end == reader->size) {
        if (reader->first == 0) {
            return -EMSGSIZE;
        }
        memmove(reader->buffer, reader->buffer + reader->first, available(reader));
        reader->end -= reader->first;
        reader->first = 0;
    }
    ssize_t n = weft_read(reader->stream, reader->buffer + reader->end, reader->size - reader->end,
                          deadline);
    if (n < 0) {
        return (int)n;
    }
    reader->has_ended = n == 0;
    reader->end += (size_t)n;
    return n > 0;
}

ssize_t weft_reader_read(weft_reader *reader, void *data, size_t size, weft_time deadline)
{
    int err = begin(&deadline, "weft_reader_read");
    if (err != 0) {
        return err;
    }
    size_t have = available(reader);
    if (have == 0) {
        /* Directly into the caller's memory, if that is at least as large as the buffer. */
        if (size >= reader->size && !reader->has_ended) {
            return weft_read(reader->stream, data, size, deadline);
        }
        int more = size > 0 ? read_more(reader, deadline) : 0;
        if (more <= 0) {
            return more;
        }
        have = available(reader);
    }
    size_t part = have < size ? have : size;
    memcpy(data, reader->buffer + reader->first, part);
    take(reader, part);
    return (ssize_t)part;
}

/* Reads until the buffer has at least this many bytes, or the stream ends. */
static int read_until_least(weft_reader *reader, size_t least, weft_time deadline)
{
    struct wf_source *source;
    int more = reader->has_ended ? 0 : wf_source_enter(reader->stream, &source);
    if (more != 0 || reader->has_ended) {
        return more;
    }
    do {
        more = read_more(reader, deadline);
    } while (more == 1 && available(reader) < least);
    wf_source_leave(source);
    return more < 0 ? more : 0;
}

static int peek(weft_reader *reader, size_t least, weft_text *text, weft_time deadline)
{
    if (least > reader->size) {
        return -EMSGSIZE;
    }
    int err = available(reader) < least ? read_until_least(reader, least, deadline) : 0;
    if (err != 0) {
        return err;
    }
    *text = (weft_text){ reader->buffer + reader->first, available(reader) };
    return 0;
}

int weft_reader_exact(weft_reader *reader, void *data, size_t size, weft_time deadline)
{
    int err = begin(&deadline, "weft_reader_exact");
    if (err != 0) {
        return err;
    }
    if (size <= reader->size) {
        weft_text text;
        err = peek(reader, size, &text, deadline);
        if (err != 0 || text.size < size) {
            return err != 0 ? err : WEFT_EEND;
        }
        memcpy(data, text.at, size);
        take(reader, size);
        return 0;
    }
    size_t have = available(reader);
    memcpy(data, reader->buffer + reader->first, have);
    take(reader, have);
    return reader->has_ended
               ? WEFT_EEND
               : weft_read_exact(reader->stream, (char *)data + have, size - have, deadline);
}

int weft_reader_peek(weft_reader *reader, size_t least, weft_text *text, weft_time deadline)
{
    int err = begin(&deadline, "weft_reader_peek");
    return err != 0 ? err : peek(reader, least, text, deadline);
}

/* Returns the position of the delimiter, or NULL. Skips bytes that were already searched for
 * the same delimiter. */
static const char *look_for(weft_reader *reader, char delimiter)
{
    if (reader->delimiter != delimiter) {
        reader->delimiter = delimiter;
        reader->seen = 0;
    }
    const char *from = reader->buffer + reader->first + reader->seen;
    size_t size = available(reader) - reader->seen;
    const char *found = size > 0 ? memchr(from, delimiter, size) : NULL;
    if (found == NULL) {
        reader->seen = available(reader);
    }
    return found;
}

/* Reads until the delimiter is found, or the stream ends. */
static int read_until_found(weft_reader *reader, char delimiter, const char **found,
                            weft_time deadline)
{
    struct wf_source *source;
    int more = reader->has_ended ? 0 : wf_source_enter(reader->stream, &source);
    if (more != 0 || reader->has_ended) {
        return more;
    }
    do {
        more = read_more(reader, deadline);
    } while (more == 1 && (*found = look_for(reader, delimiter)) == NULL);
    wf_source_leave(source);
    return more < 0 ? more : 0;
}

/* Implements weft_read_until() for the call of the given name. */
static int read_until(weft_reader *reader, char delimiter, weft_text *text, weft_time deadline,
                      const char *call)
{
    int err = begin(&deadline, call);
    if (err != 0) {
        return err;
    }
    const char *found = look_for(reader, delimiter);
    err = found == NULL ? read_until_found(reader, delimiter, &found, deadline) : 0;
    if (err != 0) {
        return err;
    }
    const char *at = reader->buffer + reader->first;
    size_t size = found != NULL ? (size_t)(found - at) : available(reader);
    if (found == NULL && size == 0) {
        return 0;
    }
    *text = (weft_text){ at, size };
    take(reader, found != NULL ? size + 1 : size);
    return 1;
}

int weft_read_until(weft_reader *reader, char delimiter, weft_text *text, weft_time deadline)
{
    return read_until(reader, delimiter, text, deadline, "weft_read_until");
}

int weft_read_line(weft_reader *reader, weft_text *line, weft_time deadline)
{
    int result = read_until(reader, '\n', line, deadline, "weft_read_line");
    if (result == 1 && line->size > 0 && line->at[line->size - 1] == '\r') {
        line->size--;
    }
    return result;
}

/* Returns the length of a frame that starts with these bytes. */
static uint64_t length_of(const char *at, unsigned bytes)
{
    uint64_t length = 0;
    for (unsigned i = 0; i < bytes; i++) {
        length = length << 8 | (unsigned char)at[i];
    }
    return length;
}

static int read_frame(weft_reader *reader, unsigned bytes, weft_text *frame, weft_time deadline)
{
    weft_text text;
    int err = peek(reader, bytes, &text, deadline);
    if (err != 0) {
        return err;
    }
    if (text.size < bytes) {
        return text.size == 0 ? 0 : WEFT_EEND;
    }
    uint64_t length = length_of(text.at, bytes);
    if (length > reader->size - bytes) {
        return -EMSGSIZE;
    }
    size_t whole = bytes + (size_t)length;
    err = peek(reader, whole, &text, deadline);
    if (err != 0 || text.size < whole) {
        return err != 0 ? err : WEFT_EEND;
    }
    *frame = (weft_text){ text.at + bytes, (size_t)length };
    take(reader, whole);
    return 1;
}

int weft_read_frame(weft_reader *reader, unsigned bytes, weft_text *frame, weft_time deadline)
{
    int result = begin(&deadline, "weft_read_frame");
    if (result != 0) {
        return result;
    }
    if (bytes < 1 || bytes > 8) {
        return -EINVAL;
    }
    if (available(reader) >= bytes || reader->has_ended) {
        return read_frame(reader, bytes, frame, deadline);
    }
    struct wf_source *source;
    result = wf_source_enter(reader->stream, &source);
    if (result == 0) {
        result = read_frame(reader, bytes, frame, deadline);
        wf_source_leave(source);
    }
    return result;
}
