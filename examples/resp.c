/* SPDX-License-Identifier: MIT */
/*
 * resp.c - incremental parser for commands of the Redis protocol (RESP).
 *
 * A step consumes a line once its end has arrived or it is too long, or a word once all of it
 * has arrived. So the result does not depend on how the data is split. No byte is examined
 * twice.
 */
#include "resp.h"

#include <string.h>

enum {
    NUMBER_LINE_MAX = 10, /* bytes of a line like "$16384\r\n" */
};

/*
 * Takes the next line of up to limit bytes, without its LF. Returns RESP_COMPLETE, RESP_MORE or
 * error.
 */
static int take_line(struct resp_parser *parser, const char *data, size_t size, size_t limit,
                     int error, struct resp_span *line)
{
    size_t end = size - parser->next < limit ? size : parser->next + limit;
    size_t from = parser->next + parser->seen;
    const char *newline = end > from ? memchr(data + from, '\n', end - from) : NULL;
    if (newline == NULL) {
        parser->seen = end - parser->next;
        return parser->seen < limit ? RESP_MORE : error;
    }
    *line = (struct resp_span){ parser->next, (size_t)(newline - data) - parser->next };
    parser->next += line->size + 1;
    parser->seen = 0;
    return RESP_COMPLETE;
}

/* Parses a number up to max in a line like "*12\r", after its first character. */
static bool parse_number(const char *data, struct resp_span line, size_t max, size_t *number)
{
    const char *at = data + line.at;
    size_t value = 0;
    if (line.size < 3 || at[line.size - 1] != '\r' || (at[1] == '0' && line.size > 3)) {
        return false;
    }
    for (size_t i = 1; i < line.size - 1; i++) {
        if (at[i] < '0' || at[i] > '9') {
            return false;
        }
        value = value * 10 + (size_t)(at[i] - '0'); /* The line is too short for an overflow. */
    }
    *number = value;
    return value <= max;
}

static int complete(struct resp_parser *parser)
{
    parser->length = parser->next;
    return RESP_COMPLETE;
}

/* --- Inline commands -------------------------------------------------------------------------- */

static int split(struct resp_parser *parser, const char *data, struct resp_span line)
{
    size_t end = line.at + line.size;
    if (line.size > 0 && data[end - 1] == '\r') {
        end--;
    }
    for (size_t at = line.at; at < end;) {
        if (data[at] == ' ') {
            at++;
            continue;
        }
        size_t first = at;
        while (at < end && data[at] != ' ') {
            /* Rejects quotes, whose meaning is not agreed on, and control characters. */
            if ((unsigned char)data[at] < ' ' || data[at] == '"' || data[at] == '\'') {
                return RESP_BAD_LINE;
            }
            at++;
        }
        if (parser->count == RESP_WORDS_MAX) {
            return RESP_BAD_LINE;
        }
        parser->words[parser->count++] = (struct resp_span){ first, at - first };
    }
    return complete(parser);
}

static int parse_typed(struct resp_parser *parser, const char *data, size_t size)
{
    struct resp_span line;
    int result = take_line(parser, data, size, RESP_LINE_MAX, RESP_BAD_LINE, &line);
    return result == RESP_COMPLETE ? split(parser, data, line) : result;
}

/* --- Arrays ----------------------------------------------------------------------------------- */

/*
 * Each of these functions is a step. It returns RESP_COMPLETE if the next step can follow,
 * RESP_MORE, or an error.
 */

static int parse_count(struct resp_parser *parser, const char *data, size_t size)
{
    struct resp_span line;
    int result = take_line(parser, data, size, NUMBER_LINE_MAX, RESP_BAD_COUNT, &line);
    if (result != RESP_COMPLETE) {
        return result;
    }
    parser->is_array = true;
    return parse_number(data, line, RESP_WORDS_MAX, &parser->wanted) ? RESP_COMPLETE
                                                                     : RESP_BAD_COUNT;
}

static int parse_length(struct resp_parser *parser, const char *data, size_t size)
{
    struct resp_span line;
    struct resp_span *word = &parser->words[parser->count];
    if (parser->next + NUMBER_LINE_MAX + 2 > RESP_COMMAND_MAX) {
        return RESP_TOO_LARGE;
    }
    if (size > parser->next && data[parser->next] != '$') {
        return RESP_BAD_WORD;
    }
    int result = take_line(parser, data, size, NUMBER_LINE_MAX, RESP_BAD_LENGTH, &line);
    if (result != RESP_COMPLETE) {
        return result;
    }
    if (!parse_number(data, line, RESP_WORD_MAX, &word->size)) {
        return RESP_BAD_LENGTH;
    }
    word->at = parser->next;
    parser->is_word = true;
    return word->at + word->size + 2 <= RESP_COMMAND_MAX ? RESP_COMPLETE : RESP_TOO_LARGE;
}

static int parse_word(struct resp_parser *parser, const char *data, size_t size)
{
    struct resp_span word = parser->words[parser->count];
    size_t end = word.at + word.size;
    if (size < end + 2) {
        return RESP_MORE;
    }
    if (data[end] != '\r' || data[end + 1] != '\n') {
        return RESP_BAD_WORD;
    }
    parser->count++;
    parser->next = end + 2;
    parser->is_word = false;
    return RESP_COMPLETE;
}

static int parse_array(struct resp_parser *parser, const char *data, size_t size)
{
    int result = parser->is_array ? RESP_COMPLETE : parse_count(parser, data, size);
    while (result == RESP_COMPLETE && parser->count < parser->wanted) {
        result =
            parser->is_word ? parse_word(parser, data, size) : parse_length(parser, data, size);
    }
    return result == RESP_COMPLETE ? complete(parser) : result;
}

/* --- Interface -------------------------------------------------------------------------------- */

void resp_parser_init(struct resp_parser *parser)
{
    memset(parser, 0, sizeof *parser);
}

int resp_parse(struct resp_parser *parser, const char *data, size_t size)
{
    if (parser->result == RESP_MORE && size > 0) {
        parser->result =
            data[0] == '*' ? parse_array(parser, data, size) : parse_typed(parser, data, size);
    }
    return parser->result;
}

const char *resp_error(int result)
{
    switch (result) {
    case RESP_BAD_COUNT:
        return "invalid multibulk length";
    case RESP_BAD_WORD:
        return "expected '$', a length and CR LF around each word";
    case RESP_BAD_LENGTH:
        return "invalid bulk length";
    case RESP_BAD_LINE:
        return "invalid inline request";
    case RESP_TOO_LARGE:
        return "too big request";
    default:
        return "no error";
    }
}
