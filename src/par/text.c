/* SPDX-License-Identifier: MIT */
/*
 * text.c - parallel iteration over the lines of a text.
 *
 * A text is divided into chunks by its length, even in the middle of a line. A line belongs to
 * the chunk in which it begins, and the worker that handles the chunk reads on past its end. At
 * the start of a chunk the worker checks the byte before it: unless that byte ends a line, it
 * skips to the first newline.
 *
 *   chunks   a b c \n d | e f g h | i \n \n j | k l
 *   lines    1        2                   3 4
 *
 * The table of lines takes two passes, if the caller can fork. The first counts the lines that
 * begin in each block. This gives the number of lines before each block, so the second pass can
 * write them.
 */
#include <weft/text.h>

#include <string.h>

#include "base/atomic.h"
#include "par/blocks.h"
#include "par/pause.h"
#include "par/stop.h"
#include "sched/job.h"

enum {
    UNIT = 64, /* bytes: about a line; a chunk has many */
    LANES = 32,
    BLOCK_LENGTH_MIN = 4096,
    BLOCKS_MAX = WF_VALUES_HERE / sizeof(size_t), /* their counts fit on the stack */
};

struct text {
    const char *at;
    size_t length;
};

/* The bytes from first to before end. */
struct piece {
    size_t first;
    size_t end;
};

/* Searches with safe points, since a line may be as long as the text. */
static const char *find_newline(const char *from, const char *end)
{
    const char *newline = NULL;
    while (newline == NULL && from < end) {
        size_t length = (size_t)(end - from);
        length = length < WF_PAUSE_BYTES ? length : WF_PAUSE_BYTES;
        newline = memchr(from, '\n', length);
        from += length;
        if (length == WF_PAUSE_BYTES) {
            wf_pause(length / WF_PAUSE_STEP_BYTES);
        }
    }
    return newline;
}

/* Returns the first line that begins in the chunk. If there is none, returns NULL or the
 * chunk's end. */
static const char *first_line(const struct text *text, struct piece piece)
{
    const char *first = text->at + piece.first;
    if (piece.first == 0 || first[-1] == '\n') {
        return first;
    }
    const char *newline = find_newline(first, text->at + piece.end);
    return newline != NULL ? newline + 1 : NULL;
}

/* Returns the end of the line, where its newline is or would be. */
static const char *line_end(const struct text *text, const char *line)
{
    const char *newline = find_newline(line, text->at + text->length);
    return newline != NULL ? newline : text->at + text->length;
}

/* --- Loop over lines -------------------------------------------------------------------- */

struct each {
    struct text text;
    size_t unit;
    weft_line_fn body;
    void *arg;
};

static struct piece piece_of_units(const struct text *text, size_t unit, size_t first, size_t end)
{
    struct piece piece = { first * unit, text->length };
    if (text->length / unit >= end) {
        piece.end = end * unit;
    }
    return piece;
}

static int call_for_lines(size_t first, size_t end, void *arg)
{
    const struct each *each = arg;
    struct piece piece = piece_of_units(&each->text, each->unit, first, end);
    const char *limit = each->text.at + piece.end;
    int err = 0;
    const char *line = first_line(&each->text, piece);
    while (err == 0 && line != NULL && line < limit) {
        const char *next = line_end(&each->text, line);
        err = each->body(line, (size_t)(next - line), each->arg);
        line = next + 1;
    }
    return err;
}

int weft_for_lines(const char *text, size_t length, weft_line_fn body, void *arg,
                   const weft_par_options *options)
{
    wf_pause_call();
    struct each each = { .text = { text, length }, .unit = UNIT, .body = body, .arg = arg };
    weft_par_options inner = { .stop = wf_stop_of(options) };
    if (options != NULL && options->piece != 0) {
        each.unit = options->piece;
        inner.piece = 1;
    }
    size_t units = length / each.unit + (length % each.unit != 0);
    return weft_for(0, units, call_for_lines, &each, &inner);
}

/* --- Count ------------------------------------------------------------------------------ */

/* Counts newlines in a few bytes, too few for a lane to overflow. The inner loop has a fixed
 * length, so that the compiler vectorizes it. */
static size_t count_some(const char *at, size_t rounds)
{
    uint8_t lanes[LANES] = { 0 };
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < LANES; i++) {
            lanes[i] = (uint8_t)(lanes[i] + (at[i] == '\n'));
        }
        at += LANES;
    }
    size_t count = 0;
    for (size_t i = 0; i < LANES; i++) {
        count += lanes[i];
    }
    return count;
}

static size_t count_newlines(const char *at, size_t length)
{
    size_t count = 0;
    while (length >= LANES) {
        size_t rounds = length / LANES < UINT8_MAX ? length / LANES : UINT8_MAX;
        count += count_some(at, rounds);
        at += rounds * LANES;
        length -= rounds * LANES;
        wf_pause(rounds * LANES / WF_PAUSE_STEP_BYTES);
    }
    for (size_t i = 0; i < length; i++) {
        count += at[i] == '\n';
    }
    return count;
}

/* Counts the lines that begin in the chunk: one after each newline except the text's last byte,
 * and one at the beginning of the text. */
static size_t count_lines(const struct text *text, struct piece piece)
{
    size_t first = piece.first > 0 ? piece.first - 1 : 0;
    return count_newlines(text->at + first, piece.end - 1 - first) + (piece.first == 0);
}

struct counting {
    struct text text;
    _Atomic(size_t) lines; /* any part adds to it */
};

static int count_piece(size_t first, size_t end, void *arg)
{
    struct counting *counting = arg;
    size_t lines = count_lines(&counting->text, piece_of_units(&counting->text, UNIT, first, end));
    /* relaxed: it is read after all parts have been joined. */
    (void)wf_fetch_add_relaxed(&counting->lines, lines);
    return 0;
}

int weft_count_lines(const char *text, size_t length, size_t *lines,
                     const weft_par_options *options)
{
    wf_pause_call();
    struct counting counting = { .text = { text, length } };
    weft_par_options inner = { .stop = wf_stop_of(options) };
    size_t units = length / UNIT + (length % UNIT != 0);
    int err = weft_for(0, units, count_piece, &counting, &inner);
    /* relaxed: all parts have been joined. */
    *lines = err == 0 ? wf_load_relaxed(&counting.lines) : 0;
    return err;
}

/* --- Table of lines --------------------------------------------------------------------- */

struct table {
    struct text text;
    struct wf_blocks blocks;
    weft_line *lines;
    size_t room;
    size_t before[BLOCKS_MAX]; /* lines of each block, later the lines before it */
};

static struct piece piece_of_block(const struct table *table, size_t block)
{
    return (struct piece){ wf_blocks_first(&table->blocks, block),
                           wf_blocks_end(&table->blocks, block) };
}

/* Writes the lines that begin in the block, as far as there is space. index is the number of
 * the first one. Returns the number of the line after them. */
static size_t write_block(const struct table *table, size_t block, size_t index)
{
    struct piece piece = piece_of_block(table, block);
    if (index >= table->room) {
        return index + count_lines(&table->text, piece);
    }
    const char *limit = table->text.at + piece.end;
    const char *line = first_line(&table->text, piece);
    while (line != NULL && line < limit) {
        const char *end = line_end(&table->text, line);
        if (index < table->room) {
            table->lines[index] = (weft_line){ line, (size_t)(end - line) };
        }
        index++;
        line = end + 1;
        wf_pause(1);
    }
    return index;
}

/* Writes all lines in one pass, without forking. */
static int write_alone(const struct table *table, size_t *found, const weft_stop *stop)
{
    size_t index = 0;
    for (size_t block = 0; block < table->blocks.count; block++) {
        if (wf_stop_is_set(stop)) {
            return WEFT_ECANCELED;
        }
        index = write_block(table, block, index);
    }
    *found = index;
    return 0;
}

static int count_blocks(size_t first, size_t end, void *arg)
{
    struct table *table = arg;
    for (size_t block = first; block < end; block++) {
        table->before[block] = count_lines(&table->text, piece_of_block(table, block));
    }
    return 0;
}

static int write_blocks(size_t first, size_t end, void *arg)
{
    const struct table *table = arg;
    for (size_t block = first; block < end && table->before[block] < table->room; block++) {
        (void)write_block(table, block, table->before[block]);
    }
    return 0;
}

/* Turns the lines of each block into the lines before it. Returns the total number of lines. */
static size_t add_up(struct table *table)
{
    size_t sum = 0;
    for (size_t block = 0; block < table->blocks.count; block++) {
        size_t lines = table->before[block];
        table->before[block] = sum;
        sum += lines;
    }
    return sum;
}

static int write_shared(struct table *table, size_t *found, const weft_stop *stop)
{
    weft_par_options options = { .stop = stop };
    int err = weft_for(0, table->blocks.count, count_blocks, table, &options);
    if (err != 0) {
        return err;
    }
    size_t sum = add_up(table);
    err = weft_for(0, table->blocks.count, write_blocks, table, &options);
    *found = err == 0 ? sum : 0;
    return err;
}

int weft_lines(const char *text, size_t length, weft_line *lines, size_t room, size_t *found,
               const weft_par_options *options)
{
    wf_pause_call();
    struct table table;
    size_t block_length = length / BLOCKS_MAX + 1;
    weft_par_options cut = {
        .piece = block_length > BLOCK_LENGTH_MIN ? block_length : BLOCK_LENGTH_MIN,
    };
    table.text = (struct text){ text, length };
    table.blocks = wf_blocks_of(0, length, &cut);
    table.lines = lines;
    table.room = room;
    *found = 0;
    int err = wf_job_may_fork() ? write_shared(&table, found, wf_stop_of(options))
                                : write_alone(&table, found, wf_stop_of(options));
    return err == 0 && *found > room ? -ENOSPC : err;
}
