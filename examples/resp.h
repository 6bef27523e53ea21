/* SPDX-License-Identifier: MIT */
/*
 * resp.h - incremental parser for commands of the Redis protocol (RESP).
 *
 *     struct resp_parser parser;
 *     resp_parser_init(&parser);
 *     int result = resp_parse(&parser, data, size);      RESP_MORE: call again with more data
 *
 * A command is an array of strings, "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n", or words on a line, for
 * interactive use: "ECHO hi\n". Numbers have only one form: digits, without a sign and without
 * leading zeros.
 */
#ifndef EXAMPLES_RESP_H
#define EXAMPLES_RESP_H

#include <stdbool.h>
#include <stddef.h>

enum {
    RESP_WORDS_MAX = 64,
    RESP_WORD_MAX = 16384, /* bytes */
    RESP_LINE_MAX = 1024,  /* bytes of an inline command, with its line end */
    RESP_COMMAND_MAX = 32768,
};

/* Result of parsing: the progress so far, or the error. */
enum {
    RESP_MORE = 0,
    RESP_COMPLETE = 1,
    RESP_BAD_COUNT = -1,  /* number of words: not a number, or too large */
    RESP_BAD_WORD = -2,   /* no '$' before a word, or no CR LF after it */
    RESP_BAD_LENGTH = -3, /* size of a word: not a number, or too large */
    RESP_BAD_LINE = -4,   /* too long, too many words, or unexpected bytes */
    RESP_TOO_LARGE = -5,  /* the whole command */
};

/* A range of the data, as an offset: it stays valid when the buffer moves. */
struct resp_span {
    size_t at;
    size_t size;
};

/* A command, as far as it has been parsed. */
struct resp_parser {
    size_t count; /* of words; 0: an empty command, which has no answer */
    struct resp_span words[RESP_WORDS_MAX];
    size_t length; /* of the command, once it is complete */
    int result;    /* RESP_MORE, or the final result */
    size_t wanted; /* number of words, if it is an array */
    size_t next;   /* offset of the first unparsed byte */
    size_t seen;   /* number of bytes from there that contain no line end */
    bool is_array;
    bool is_word; /* next is a word of words[count].size bytes */
};

void resp_parser_init(struct resp_parser *parser);

/*
 * Continues to parse a command that starts at data and of which size bytes have arrived. The
 * bytes of earlier calls must be unchanged.
 */
int resp_parse(struct resp_parser *parser, const char *data, size_t size);

/* Returns an error message. */
const char *resp_error(int result);

#endif
