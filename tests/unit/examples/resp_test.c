/* SPDX-License-Identifier: MIT */
/*
 * resp_test.c - the Redis example's parser: accepted input, rejected input and its error, and
 * limits. Results must not depend on how the input is fragmented.
 */
#include "resp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* Parses a text that arrives in parts of step bytes. Bytes that have not arrived yet are
 * outside the allocation, so a sanitizer reports a read of them. */
static int feed(struct resp_parser *parser, const char *text, size_t size, size_t step)
{
    int result = RESP_MORE;
    resp_parser_init(parser);
    for (size_t have = 0; result == RESP_MORE && have < size;) {
        have = size - have < step ? size : have + step;
        char *data = malloc(have);
        CHECK(data != NULL);
        memcpy(data, text, have);
        result = resp_parse(parser, data, have);
        free(data);
    }
    return result;
}

static int parse_by(struct resp_parser *parser, const char *text, size_t size, size_t first_step,
                    size_t last_step)
{
    int result = feed(parser, text, size, size);
    for (size_t step = first_step; step <= last_step; step++) {
        struct resp_parser parts;
        int again = feed(&parts, text, size, step);
        if (again != result) {
            test_fail(__FILE__, __LINE__, "%d at once, %d by %zu bytes: %.*s", result, again, step,
                      size < 200 ? (int)size : 200, text);
        }
        if (result == RESP_COMPLETE) {
            CHECK_EQ(parts.count, parser->count);
            CHECK_EQ(parts.length, parser->length);
            for (size_t i = 0; i < parts.count; i++) {
                CHECK_EQ(parts.words[i].at, parser->words[i].at);
                CHECK_EQ(parts.words[i].size, parser->words[i].size);
            }
        }
    }
    return result;
}

/* Parses a text whole and in parts of 1 to 7 bytes. */
static int parse_every_way(struct resp_parser *parser, const char *text, size_t size)
{
    return parse_by(parser, text, size, 1, 7);
}

/* Includes embedded zero bytes. */
#define TEXT(literal) literal, sizeof(literal) - 1

static const struct {
    const char *text;
    size_t size;
    int result;
    size_t count;  /* if complete */
    size_t length; /* if complete */
} cases[] = {
    /* Arrays. */
    { TEXT("*1\r\n$4\r\nPING\r\n"), RESP_COMPLETE, 1, 14 },
    { TEXT("*1\r\n$4\r\nPING\r\n*1\r\n"), RESP_COMPLETE, 1, 14 },
    { TEXT("*2\r\n$0\r\n\r\n$3\r\n\r\n\0\r\n"), RESP_COMPLETE, 2, 19 },
    { TEXT("*0\r\n"), RESP_COMPLETE, 0, 4 },
    { TEXT("*"), RESP_MORE, 0, 0 },
    { TEXT("*1\r"), RESP_MORE, 0, 0 },
    { TEXT("*1\r\n"), RESP_MORE, 0, 0 },
    { TEXT("*1\r\n$4\r\nPING\r"), RESP_MORE, 0, 0 },
    { TEXT("*\r\n"), RESP_BAD_COUNT, 0, 0 },
    { TEXT("*1\n"), RESP_BAD_COUNT, 0, 0 },
    { TEXT("*-1\r\n"), RESP_BAD_COUNT, 0, 0 },
    { TEXT("*+1\r\n"), RESP_BAD_COUNT, 0, 0 },
    { TEXT("*01\r\n"), RESP_BAD_COUNT, 0, 0 },
    { TEXT("* 1\r\n"), RESP_BAD_COUNT, 0, 0 },
    { TEXT("*1\r\r\n"), RESP_BAD_COUNT, 0, 0 },
    { TEXT("*65\r\n"), RESP_BAD_COUNT, 0, 0 },
    { TEXT("*1000000000\r\n"), RESP_BAD_COUNT, 0, 0 },
    { TEXT("*1000000000000000000000000000000000000000"), RESP_BAD_COUNT, 0, 0 },
    { TEXT("*1\r\n:1\r\n"), RESP_BAD_WORD, 0, 0 },
    { TEXT("*1\r\n\r\n"), RESP_BAD_WORD, 0, 0 },
    { TEXT("*1\r\n$4\r\nPINGS\r\n"), RESP_BAD_WORD, 0, 0 },
    { TEXT("*1\r\n$4\r\nPING\n\r"), RESP_BAD_WORD, 0, 0 },
    { TEXT("*1\r\n$4\r\nPING\n\n"), RESP_BAD_WORD, 0, 0 },
    { TEXT("*1\r\n$\r\n\r\n"), RESP_BAD_LENGTH, 0, 0 },
    { TEXT("*1\r\n$-1\r\n"), RESP_BAD_LENGTH, 0, 0 },
    { TEXT("*1\r\n$04\r\n"), RESP_BAD_LENGTH, 0, 0 },
    { TEXT("*1\r\n$4\nPING\r\n"), RESP_BAD_LENGTH, 0, 0 },
    { TEXT("*1\r\n$16385\r\n"), RESP_BAD_LENGTH, 0, 0 },
    { TEXT("*1\r\n$18446744073709551617\r\n"), RESP_BAD_LENGTH, 0, 0 },
    /* Lines. */
    { TEXT("PING\r\n"), RESP_COMPLETE, 1, 6 },
    { TEXT("PING\n"), RESP_COMPLETE, 1, 5 },
    { TEXT("  SET  a b  \r\nx"), RESP_COMPLETE, 3, 14 },
    { TEXT("\r\n"), RESP_COMPLETE, 0, 2 },
    { TEXT("\n"), RESP_COMPLETE, 0, 1 },
    { TEXT("   \n"), RESP_COMPLETE, 0, 4 },
    { TEXT("PING"), RESP_MORE, 0, 0 },
    { TEXT("PING\rX\r\n"), RESP_BAD_LINE, 0, 0 },
    { TEXT("PI\0NG\r\n"), RESP_BAD_LINE, 0, 0 },
    { TEXT("ECHO \"a b\"\r\n"), RESP_BAD_LINE, 0, 0 },
    { TEXT("ECHO it's\r\n"), RESP_BAD_LINE, 0, 0 },
    { TEXT("GET\ta\r\n"), RESP_BAD_LINE, 0, 0 },
};

static void parser_result_does_not_depend_on_fragmentation(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct resp_parser parser;
        int result = parse_every_way(&parser, cases[i].text, cases[i].size);
        if (result != cases[i].result) {
            test_fail(__FILE__, __LINE__, "%d, wanted %d: %.*s", result, cases[i].result,
                      (int)cases[i].size, cases[i].text);
        }
        if (result == RESP_COMPLETE) {
            CHECK_EQ(parser.count, cases[i].count);
            CHECK_EQ(parser.length, cases[i].length);
        }
    }
}

static void command_is_split_into_words(void)
{
    static const char text[] = "*3\r\n$3\r\nSET\r\n$4\r\n\r\n\r\n\r\n$1\r\nv\r\n";
    struct resp_parser parser;
    CHECK_EQ(parse_every_way(&parser, text, sizeof text - 1), RESP_COMPLETE);
    CHECK_EQ(parser.count, 3);
    CHECK_EQ(memcmp(text + parser.words[0].at, "SET", 3), 0);
    CHECK_EQ(parser.words[1].size, 4);
    CHECK_EQ(memcmp(text + parser.words[1].at, "\r\n\r\n", 4), 0);
    CHECK_EQ(memcmp(text + parser.words[2].at, "v", 1), 0);
}

/* --- Limits ----------------------------------------------------------------------------------- */

static char room[2 * RESP_COMMAND_MAX];
static size_t used;

static void put(const char *text)
{
    size_t size = strlen(text);
    memcpy(room + used, text, size);
    used += size;
}

static void put_word(size_t size)
{
    char length[16];
    (void)snprintf(length, sizeof length, "$%zu\r\n", size);
    put(length);
    memset(room + used, 'x', size);
    used += size;
    put("\r\n");
}

static int parse_words(size_t count, size_t size)
{
    struct resp_parser parser;
    char head[16];
    used = 0;
    (void)snprintf(head, sizeof head, "*%zu\r\n", count);
    put(head);
    for (size_t i = 0; i < count; i++) {
        put_word(size);
    }
    int result = parse_by(&parser, room, used, 1021, 1025);
    CHECK_LE(result == RESP_COMPLETE ? parser.length : 0, RESP_COMMAND_MAX);
    return result;
}

static int parse_line_of(size_t bytes)
{
    struct resp_parser parser;
    used = bytes;
    memset(room, 'x', bytes - 1);
    room[bytes - 1] = '\n';
    return parse_by(&parser, room, used, 1, 3);
}

static int parse_line_words(size_t count)
{
    struct resp_parser parser;
    used = 0;
    for (size_t i = 0; i < count; i++) {
        put("a ");
    }
    put("\r\n");
    return parse_by(&parser, room, used, 1, 3);
}

static void each_limit_is_exact(void)
{
    CHECK_EQ(parse_words(RESP_WORDS_MAX, 1), RESP_COMPLETE);
    CHECK_EQ(parse_words(RESP_WORDS_MAX + 1, 1), RESP_BAD_COUNT);
    CHECK_EQ(parse_words(1, RESP_WORD_MAX), RESP_COMPLETE);
    CHECK_EQ(parse_words(1, RESP_WORD_MAX + 1), RESP_BAD_LENGTH);
    CHECK_EQ(parse_words(2, RESP_WORD_MAX), RESP_TOO_LARGE);
    CHECK_EQ(parse_line_of(RESP_LINE_MAX), RESP_COMPLETE);
    CHECK_EQ(parse_line_of(RESP_LINE_MAX + 1), RESP_BAD_LINE);
    CHECK_EQ(parse_line_words(RESP_WORDS_MAX), RESP_COMPLETE);
    CHECK_EQ(parse_line_words(RESP_WORDS_MAX + 1), RESP_BAD_LINE);
}

/* A reader with a buffer of RESP_COMMAND_MAX bytes always has space for more input. */
static void incomplete_command_is_shorter_than_maximum(void)
{
    for (size_t size = RESP_COMMAND_MAX / 4 - 40; size < RESP_COMMAND_MAX / 4; size++) {
        struct resp_parser parser;
        used = 0;
        put("*5\r\n");
        for (int i = 0; i < 5; i++) {
            put_word(size);
        }
        int result = RESP_MORE;
        resp_parser_init(&parser);
        for (size_t have = RESP_COMMAND_MAX - 64; result == RESP_MORE; have++) {
            CHECK_LE(have, RESP_COMMAND_MAX);
            result = resp_parse(&parser, room, have);
        }
        CHECK_EQ(result, RESP_TOO_LARGE);
    }
}

static void each_error_has_message(void)
{
    CHECK_HAS(resp_error(RESP_BAD_COUNT), "multibulk");
    CHECK_HAS(resp_error(RESP_BAD_WORD), "'$'");
    CHECK_HAS(resp_error(RESP_BAD_LENGTH), "bulk length");
    CHECK_HAS(resp_error(RESP_BAD_LINE), "inline");
    CHECK_HAS(resp_error(RESP_TOO_LARGE), "too big");
    CHECK_HAS(resp_error(RESP_MORE), "no error");
}

TEST_MAIN({
    TEST(parser_result_does_not_depend_on_fragmentation),
    TEST(command_is_split_into_words),
    TEST(each_limit_is_exact),
    TEST(incomplete_command_is_shorter_than_maximum),
    TEST(each_error_has_message),
})
