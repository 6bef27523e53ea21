/* SPDX-License-Identifier: MIT */
/*
 * resp.h - commands of the Redis protocol, taken out of a buffer as they come in.
 *
 *     struct resp_parser parser;
 *     resp_parser_init(&parser);
 *     int result = resp_parse(&parser, data, size);      RESP_MORE: with more data again
 *
 * A command is an array of strings, "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n", or words on a line, for
 * who types: "ECHO hi\n". Numbers are written in one way only: digits, without a sign, and
 * without zeros before them.
 */
#ifndef EXAMPLES_RESP_H
#define EXAMPLES_RESP_H

#include <stdbool.h>
#include <stddef.h>

enum {
    RESP_WORDS_MAX = 64,
    RESP_WORD_MAX = 16384, /* bytes */
    RESP_LINE_MAX = 1024,  /* bytes of a command that is a line, with its end */
    RESP_COMMAND_MAX = 32768,
};

/* What is known so far; or what is wrong. */
enum {
    RESP_MORE = 0,
    RESP_COMPLETE = 1,
    RESP_BAD_COUNT = -1,  /* of words: no number, or too many */
    RESP_BAD_WORD = -2,   /* no '$' before it, or no CR LF behind it */
    RESP_BAD_LENGTH = -3, /* of a word: no number, or too many bytes */
    RESP_BAD_LINE = -4,   /* too long, too many words, or bytes that nobody types */
    RESP_TOO_LARGE = -5,  /* the whole */
};

/* A part of the data: it moves with the buffer. */
struct resp_span {
    size_t at;
    size_t size;
};

/* A command, as far as it was read. */
struct resp_parser {
    size_t count; /* of words; 0: an empty command, which has no answer */
    struct resp_span words[RESP_WORDS_MAX];
    size_t length; /* of the command, if it is complete */
    int result;    /* RESP_MORE, or the end of it */
    size_t wanted; /* words, if it is an array */
    size_t next;   /* what was not read yet */
    size_t seen;   /* of that: so many bytes are not the end of a line */
    bool is_array;
    bool is_word; /* a word is next, of words[count].size bytes */
};

void resp_parser_init(struct resp_parser *parser);

/*
 * Goes on with a command that begins at data and of which size bytes are there. Those that were
 * there before are the same.
 */
int resp_parse(struct resp_parser *parser, const char *data, size_t size);

/* A sentence for what is wrong. */
const char *resp_error(int result);

#endif
