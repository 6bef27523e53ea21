/* SPDX-License-Identifier: MIT */
/*
 * http.c - fuzz target for the HTTP request parser.
 *
 * The result is the same whether the input arrives whole or in parts. An accepted request
 * means the same to every implementation: its head has no CR, LF or zero except the CR LF of
 * its lines, it has one length and no transfer coding, it is complete with its last byte and
 * not earlier, and serializing and parsing it again gives the same request.
 */
#include "http_parser.h"

#include <stdbool.h>

#include "fuzz.h"

/* --- The result does not depend on how the input is split ------------------------------------- */

static int parse_at_once(struct http_parser *parser, const char *text, size_t size)
{
    char *copy = fuzz_copy(text, size);
    http_parser_init(parser);
    int status = http_parse(parser, copy, size);
    free(copy);
    return status;
}

static int parse_in_parts(struct http_parser *parser, const char *text, size_t size, uint8_t choice)
{
    struct fuzz_parts parts = fuzz_parts_of(choice, size);
    size_t have = 0;
    int status;
    http_parser_init(parser);
    do {
        size_t part = fuzz_next_part(&parts);
        have = size - have < part ? size : have + part;
        char *copy = fuzz_copy(text, have);
        status = http_parse(parser, copy, have);
        free(copy);
        FUZZ_CHECK(status != HTTP_MORE || have < HTTP_REQUEST_MAX);
    } while (status == HTTP_MORE && have < size);
    return status;
}

static bool is_same_span(const char *a_text, struct http_span a, const char *b_text,
                         struct http_span b)
{
    return a.size == b.size && memcmp(a_text + a.at, b_text + b.at, a.size) == 0;
}

static void check_same(const char *a_text, const struct http_parser *a, const char *b_text,
                       const struct http_parser *b)
{
    FUZZ_CHECK(a->minor == b->minor);
    FUZZ_CHECK(is_same_span(a_text, a->method, b_text, b->method));
    FUZZ_CHECK(is_same_span(a_text, a->target, b_text, b->target));
    FUZZ_CHECK(is_same_span(a_text, a->path, b_text, b->path));
    FUZZ_CHECK(is_same_span(a_text, a->body, b_text, b->body));
    FUZZ_CHECK(a->header_count == b->header_count);
    for (size_t i = 0; i < a->header_count; i++) {
        FUZZ_CHECK(is_same_span(a_text, a->headers[i].name, b_text, b->headers[i].name));
        FUZZ_CHECK(is_same_span(a_text, a->headers[i].value, b_text, b->headers[i].value));
    }
    FUZZ_CHECK(a->keeps_alive == b->keeps_alive);
    FUZZ_CHECK(a->expects_continue == b->expects_continue);
}

/* --- Properties of an accepted request -------------------------------------------------------- */

static void check_head(const struct http_parser *parser, const char *text)
{
    size_t lines = 0;
    for (size_t i = 0; i < parser->body.at; i++) {
        FUZZ_CHECK(text[i] != '\0');
        if (text[i] == '\r') {
            FUZZ_CHECK(i + 1 < parser->body.at && text[i + 1] == '\n');
            lines++;
        }
        FUZZ_CHECK(text[i] != '\n' || (i > 0 && text[i - 1] == '\r'));
    }
    FUZZ_CHECK(lines == parser->header_count + 2);
    FUZZ_CHECK(parser->path.at >= parser->target.at);
    FUZZ_CHECK(parser->path.at + parser->path.size <= parser->target.at + parser->target.size);
    FUZZ_CHECK(parser->body.at <= HTTP_LINE_MAX + HTTP_HEAD_MAX);
    FUZZ_CHECK(parser->body.size <= HTTP_BODY_MAX);
}

static void check_headers(const struct http_parser *parser, const char *text)
{
    size_t hosts = 0;
    size_t lengths = 0;
    for (size_t i = 0; i < parser->header_count; i++) {
        struct http_span name = parser->headers[i].name;
        struct http_span value = parser->headers[i].value;
        FUZZ_CHECK(text[name.at + name.size] == ':');
        FUZZ_CHECK(!http_is(text, name, "transfer-encoding", true));
        hosts += http_is(text, name, "host", true);
        if (http_is(text, name, "content-length", true)) {
            char *digits = fuzz_copy(text + value.at, value.size + 1);
            digits[value.size] = '\0';
            FUZZ_CHECK(strtoull(digits, NULL, 10) == parser->body.size);
            free(digits);
            lengths++;
        }
    }
    FUZZ_CHECK(hosts == 1 || (hosts == 0 && parser->minor == 0));
    FUZZ_CHECK(lengths == 1 || (lengths == 0 && parser->body.size == 0));
}

static size_t put(char *to, size_t at, const char *text, struct http_span span)
{
    memcpy(to + at, text + span.at, span.size);
    return at + span.size;
}

/* Serializes the request without optional spaces and parses it again. */
static void check_again(const struct http_parser *parser, const char *text)
{
    static char written[HTTP_REQUEST_MAX];
    static struct http_parser again;
    size_t at = put(written, 0, text, parser->method);
    written[at++] = ' ';
    at = put(written, at, text, parser->target);
    at += (size_t)sprintf(written + at, " HTTP/1.%u\r\n", parser->minor);
    for (size_t i = 0; i < parser->header_count; i++) {
        at = put(written, at, text, parser->headers[i].name);
        written[at++] = ':';
        at = put(written, at, text, parser->headers[i].value);
        written[at++] = '\r';
        written[at++] = '\n';
    }
    written[at++] = '\r';
    written[at++] = '\n';
    at = put(written, at, text, parser->body);
    FUZZ_CHECK(parse_at_once(&again, written, at) == HTTP_COMPLETE);
    FUZZ_CHECK(http_length(&again) == at);
    check_same(text, parser, written, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_parser whole;
    static struct http_parser parts;
    if (size < 2) {
        return 0;
    }
    const char *text = (const char *)data + 1;
    size--;
    int status = parse_at_once(&whole, text, size);
    FUZZ_CHECK(parse_in_parts(&parts, text, size, data[0]) == status);
    if (status == HTTP_COMPLETE) {
        size_t length = http_length(&whole);
        FUZZ_CHECK(length <= size);
        check_same(text, &whole, text, &parts);
        check_head(&whole, text);
        check_headers(&whole, text);
        check_again(&whole, text);
        FUZZ_CHECK(parse_at_once(&parts, text, length) == HTTP_COMPLETE);
        FUZZ_CHECK(parse_at_once(&parts, text, length - 1) == HTTP_MORE);
    } else {
        FUZZ_CHECK(status == HTTP_MORE || (status >= 400 && status < 600));
    }
    return 0;
}
