/* SPDX-License-Identifier: MIT */
/*
 * resp.c - fuzz target for the parser of the Redis protocol.
 *
 * The result is the same whether the input arrives whole or in parts. An accepted command is
 * complete with its last byte and not earlier, obeys the limits, and has one canonical form: an
 * array serializes to the same bytes, an inline command to the same words.
 */
#include "resp.h"

#include "fuzz.h"

static int parse_at_once(struct resp_parser *parser, const char *text, size_t size)
{
    char *copy = fuzz_copy(text, size);
    resp_parser_init(parser);
    int result = resp_parse(parser, copy, size);
    free(copy);
    return result;
}

static int parse_in_parts(struct resp_parser *parser, const char *text, size_t size, uint8_t choice)
{
    struct fuzz_parts parts = fuzz_parts_of(choice, size);
    size_t have = 0;
    int result;
    resp_parser_init(parser);
    do {
        size_t part = fuzz_next_part(&parts);
        have = size - have < part ? size : have + part;
        char *copy = fuzz_copy(text, have);
        result = resp_parse(parser, copy, have);
        free(copy);
        FUZZ_CHECK(result != RESP_MORE || have < RESP_COMMAND_MAX);
    } while (result == RESP_MORE && have < size);
    return result;
}

static void check_same(const char *a_text, const struct resp_parser *a, const char *b_text,
                       const struct resp_parser *b)
{
    FUZZ_CHECK(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        FUZZ_CHECK(a->words[i].size == b->words[i].size);
        FUZZ_CHECK(memcmp(a_text + a->words[i].at, b_text + b->words[i].at, a->words[i].size) == 0);
    }
}

static void check_limits(const struct resp_parser *parser, const char *text)
{
    size_t end = 0;
    FUZZ_CHECK(parser->count <= RESP_WORDS_MAX);
    for (size_t i = 0; i < parser->count; i++) {
        FUZZ_CHECK(parser->words[i].at >= end);
        FUZZ_CHECK(parser->words[i].size <= RESP_WORD_MAX);
        end = parser->words[i].at + parser->words[i].size;
    }
    FUZZ_CHECK(end < parser->length);
    FUZZ_CHECK(parser->length <= (text[0] == '*' ? RESP_COMMAND_MAX : RESP_LINE_MAX));
    FUZZ_CHECK(text[parser->length - 1] == '\n');
}

/* Serializes the command as an array and parses it again. */
static void check_again(const struct resp_parser *parser, const char *text)
{
    static char written[2 * RESP_COMMAND_MAX];
    static struct resp_parser again;
    size_t at = (size_t)sprintf(written, "*%zu\r\n", parser->count);
    for (size_t i = 0; i < parser->count; i++) {
        at += (size_t)sprintf(written + at, "$%zu\r\n", parser->words[i].size);
        memcpy(written + at, text + parser->words[i].at, parser->words[i].size);
        at += parser->words[i].size;
        written[at++] = '\r';
        written[at++] = '\n';
    }
    if (text[0] == '*') {
        FUZZ_CHECK(parser->length == at && memcmp(text, written, at) == 0);
    }
    FUZZ_CHECK(parse_at_once(&again, written, at) == RESP_COMPLETE);
    FUZZ_CHECK(again.length == at);
    check_same(text, parser, written, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct resp_parser whole;
    static struct resp_parser parts;
    if (size < 2) {
        return 0;
    }
    const char *text = (const char *)data + 1;
    size--;
    int result = parse_at_once(&whole, text, size);
    FUZZ_CHECK(parse_in_parts(&parts, text, size, data[0]) == result);
    FUZZ_CHECK(result >= RESP_TOO_LARGE && result <= RESP_COMPLETE);
    FUZZ_CHECK(strlen(resp_error(result)) > 0);
    if (result == RESP_COMPLETE) {
        FUZZ_CHECK(whole.length <= size && parts.length == whole.length);
        check_same(text, &whole, text, &parts);
        check_limits(&whole, text);
        check_again(&whole, text);
        FUZZ_CHECK(parse_at_once(&parts, text, whole.length) == RESP_COMPLETE);
        FUZZ_CHECK(parse_at_once(&parts, text, whole.length - 1) == RESP_MORE);
    }
    return 0;
}
