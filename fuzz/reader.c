/* SPDX-License-Identifier: MIT */
/*
 * reader.c - fuzz target for buffered readers, over a stream in memory.
 *
 * The stream delivers its data in parts and times out now and then. The input consists of a
 * buffer size, a choice of parts, a number of calls, the calls, and the data of the stream.
 * Each call is repeated until it does not time out. Its result must be that of a model that
 * sees the whole stream at once.
 */
#include <weft/buffered.h>

#include <stdbool.h>

#include "fuzz.h"
#include "io/stream.h"
#include "sched/await.h"

/* --- Stream ----------------------------------------------------------------------------------- */

/* The handle names the only source of the table, which is otherwise unused. */
enum {
    INDEX = 1,
};

#define HANDLE ((weft_stream *)(uintptr_t)INDEX)

static struct wf_source sources[INDEX + 1];
_Atomic(struct wf_source *) wf_source_chunks[WF_SOURCE_CHUNKS_MAX] = { sources };

struct memory {
    const char *data;
    size_t size;
    size_t at;
    struct fuzz_parts parts;
};

static struct memory memory;

/* The source stays open: no call is refused, and the last user never leaves. */
int wf_source_enter_late(uint64_t users, uint64_t open)
{
    (void)users;
    (void)open;
    FUZZ_CHECK(false);
    return WEFT_ECLOSED;
}

void wf_source_end(struct wf_source *source)
{
    (void)source;
    FUZZ_CHECK(false);
}

int wf_await_begin(weft_time *deadline, const char *call, const char *instead)
{
    (void)deadline;
    (void)call;
    (void)instead;
    return 0;
}

ssize_t weft_read(weft_stream *handle, void *buffer, size_t size, weft_time deadline)
{
    struct memory *stream = &memory;
    (void)deadline;
    FUZZ_CHECK(handle == HANDLE);
    FUZZ_CHECK(size > 0);
    size_t part = fuzz_next_part(&stream->parts);
    if (part % 5 == 4) {
        return WEFT_ETIMEDOUT;
    }
    size_t left = stream->size - stream->at;
    part = part < left ? part : left;
    part = part < size ? part : size;
    if (part > 0) {
        memcpy(buffer, stream->data + stream->at, part);
    }
    stream->at += part;
    return (ssize_t)part;
}

/* Never times out: a call that times out may lose bytes. */
int weft_read_exact(weft_stream *stream, void *buffer, size_t size, weft_time deadline)
{
    size_t have = 0;
    while (have < size) {
        ssize_t n = weft_read(stream, (char *)buffer + have, size - have, deadline);
        if (n == 0) {
            return WEFT_EEND;
        }
        have += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* --- Model ------------------------------------------------------------------------------------ */

struct rig {
    weft_reader reader;
    size_t room; /* of the buffer */
    size_t at;   /* offset in the stream; everything before it was consumed */
};

static const char *rest(const struct rig *rig)
{
    return memory.data + rig->at;
}

static size_t left(const struct rig *rig)
{
    return memory.size - rig->at;
}

static void check_text(const struct rig *rig, weft_text text, size_t skip, size_t size)
{
    FUZZ_CHECK(text.size == size);
    FUZZ_CHECK(size == 0 || memcmp(text.at, rest(rig) + skip, size) == 0);
}

/* Computes the result of weft_read_until() and the number of bytes it consumes. */
static int model_until(const struct rig *rig, char delimiter, size_t *size, size_t *taken)
{
    const char *found = left(rig) > 0 ? memchr(rest(rig), delimiter, left(rig)) : NULL;
    *size = found != NULL ? (size_t)(found - rest(rig)) : left(rig);
    *taken = *size + (found != NULL);
    if (*taken > rig->room || (found == NULL && *size == rig->room && *size > 0)) {
        return -EMSGSIZE;
    }
    return *taken > 0;
}

/* Computes the result of weft_read_frame() and the size of the frame. */
static int model_frame(const struct rig *rig, unsigned bytes, size_t *size)
{
    uint64_t length = 0;
    if (bytes < 1 || bytes > 8) {
        return -EINVAL;
    }
    if (bytes > rig->room) {
        return -EMSGSIZE;
    }
    if (left(rig) < bytes) {
        return left(rig) == 0 ? 0 : WEFT_EEND;
    }
    for (unsigned i = 0; i < bytes; i++) {
        length = length << 8 | (unsigned char)rest(rig)[i];
    }
    if (length > rig->room - bytes) {
        return -EMSGSIZE;
    }
    *size = (size_t)length;
    return left(rig) < bytes + *size ? WEFT_EEND : 1;
}

/* --- Calls ------------------------------------------------------------------------------------ */

static void call_until(struct rig *rig, bool is_line, char delimiter)
{
    weft_text text = { NULL, 0 };
    size_t size;
    size_t taken;
    int result;
    do {
        result = is_line ? weft_read_line(&rig->reader, &text, WEFT_NEVER)
                         : weft_read_until(&rig->reader, delimiter, &text, WEFT_NEVER);
    } while (result == WEFT_ETIMEDOUT);
    FUZZ_CHECK(result == model_until(rig, is_line ? '\n' : delimiter, &size, &taken));
    if (result == 1) {
        if (is_line && size > 0 && rest(rig)[size - 1] == '\r') {
            size--;
        }
        check_text(rig, text, 0, size);
        rig->at += taken;
    }
}

static void call_frame(struct rig *rig, unsigned bytes)
{
    weft_text text = { NULL, 0 };
    size_t size = 0;
    int result;
    do {
        result = weft_read_frame(&rig->reader, bytes, &text, WEFT_NEVER);
    } while (result == WEFT_ETIMEDOUT);
    FUZZ_CHECK(result == model_frame(rig, bytes, &size));
    if (result == 1) {
        check_text(rig, text, bytes, size);
        rig->at += bytes + size;
    }
}

static void call_exact(struct rig *rig, size_t size)
{
    char *data = malloc(size > 0 ? size : 1);
    FUZZ_CHECK(data != NULL);
    int result;
    do {
        result = weft_reader_exact(&rig->reader, data, size, WEFT_NEVER);
    } while (result == WEFT_ETIMEDOUT);
    FUZZ_CHECK(result == (size <= left(rig) ? 0 : WEFT_EEND));
    bool is_kept = result == 0 || size <= rig->room;
    if (result == 0) {
        FUZZ_CHECK(size == 0 || memcmp(data, rest(rig), size) == 0);
        rig->at += size;
    } else if (!is_kept) {
        rig->at = memory.size; /* The bytes read so far are lost. */
    }
    free(data);
}

static void call_read(struct rig *rig, size_t size)
{
    char *data = malloc(size > 0 ? size : 1);
    FUZZ_CHECK(data != NULL);
    ssize_t n;
    do {
        n = weft_reader_read(&rig->reader, data, size, WEFT_NEVER);
    } while (n == WEFT_ETIMEDOUT);
    FUZZ_CHECK(n >= 0 && (size_t)n <= size && (size_t)n <= left(rig));
    FUZZ_CHECK(n > 0 || size == 0 || left(rig) == 0);
    FUZZ_CHECK(n == 0 || memcmp(data, rest(rig), (size_t)n) == 0);
    rig->at += (size_t)n;
    free(data);
}

static void call_peek(struct rig *rig, size_t least, size_t take)
{
    weft_text text = { NULL, 0 };
    int result;
    do {
        result = weft_reader_peek(&rig->reader, least, &text, WEFT_NEVER);
    } while (result == WEFT_ETIMEDOUT);
    FUZZ_CHECK(result == (least > rig->room ? -EMSGSIZE : 0));
    if (result != 0) {
        return;
    }
    FUZZ_CHECK(text.size <= rig->room && text.size <= left(rig));
    FUZZ_CHECK(text.size >= least || text.size == left(rig));
    check_text(rig, text, 0, text.size);
    take = take < text.size ? take : text.size;
    weft_reader_take(&rig->reader, take);
    rig->at += take;
}

static void call(struct rig *rig, uint8_t what)
{
    size_t argument = what >> 3;
    switch (what & 7) {
    case 0:
    case 1:
        call_until(rig, true, '\n');
        break;
    case 2:
        call_until(rig, false, (char)argument);
        break;
    case 3:
        call_frame(rig, (unsigned)argument % 10);
        break;
    case 4:
        call_exact(rig, argument * 2);
        break;
    case 5:
        call_read(rig, argument * 2);
        break;
    default:
        call_peek(rig, argument, argument / 2);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) {
        return 0;
    }
    struct rig rig = { .room = data[0] % 48 + 1 };
    size_t calls = data[2] % 64;
    const uint8_t *whats = data + 3;
    size -= 3;
    calls = calls < size ? calls : size;
    memory = (struct memory){ .data = (const char *)data + 3 + calls,
                              .size = size - calls,
                              .parts = fuzz_parts_of(data[1], size) };
    /* relaxed: only one thread exists. */
    wf_store_relaxed(&sources[INDEX].users, WF_SOURCE_OPEN + 1);
    memory.parts.most += 4; /* So that some parts are timeouts. */
    char *buffer = malloc(rig.room);
    FUZZ_CHECK(buffer != NULL);
    weft_reader_init(&rig.reader, HANDLE, buffer, rig.room);
    for (size_t i = 0; i < calls; i++) {
        call(&rig, whats[i]);
        /* relaxed: as above. Every call has left the source. */
        FUZZ_CHECK(wf_load_relaxed(&sources[INDEX].users) == WF_SOURCE_OPEN + 1);
    }
    free(buffer);
    return 0;
}
