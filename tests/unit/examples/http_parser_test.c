/* SPDX-License-Identifier: MIT */
/*
 * http_parser_test.c - the HTTP example's parser: accepted input, rejected input and its
 * status, and limits. Results must not depend on how the input is fragmented.
 */
#include "http_parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* --- Fragmented input ------------------------------------------------------------------------- */

/* Parses a text that arrives in parts of step bytes. Bytes that have not arrived yet are
 * outside the allocation, so a sanitizer reports a read of them. */
static int feed(struct http_parser *parser, const char *text, size_t size, size_t step)
{
    int status = HTTP_MORE;
    http_parser_init(parser);
    for (size_t have = 0; status == HTTP_MORE && have < size;) {
        have = size - have < step ? size : have + step;
        char *data = malloc(have);
        CHECK(data != NULL);
        memcpy(data, text, have);
        status = http_parse(parser, data, have);
        free(data);
    }
    return status;
}

static void check_same(const struct http_parser *a, const struct http_parser *b)
{
    CHECK_EQ(a->minor, b->minor);
    CHECK_EQ(a->method.size, b->method.size);
    CHECK_EQ(a->target.at, b->target.at);
    CHECK_EQ(a->target.size, b->target.size);
    CHECK_EQ(a->path.at, b->path.at);
    CHECK_EQ(a->path.size, b->path.size);
    CHECK_EQ(a->header_count, b->header_count);
    for (size_t i = 0; i < a->header_count; i++) {
        CHECK_EQ(a->headers[i].name.at, b->headers[i].name.at);
        CHECK_EQ(a->headers[i].name.size, b->headers[i].name.size);
        CHECK_EQ(a->headers[i].value.at, b->headers[i].value.at);
        CHECK_EQ(a->headers[i].value.size, b->headers[i].value.size);
    }
    CHECK_EQ(a->body.at, b->body.at);
    CHECK_EQ(a->body.size, b->body.size);
    CHECK_EQ(a->keeps_alive, b->keeps_alive);
    CHECK_EQ(a->expects_continue, b->expects_continue);
}

/* Returns the status of a text, parsed whole and in parts of 1 to 7 bytes. */
static int parse_every_way(struct http_parser *parser, const char *text, size_t size)
{
    int status = feed(parser, text, size, size);
    for (size_t step = 1; step <= 7; step++) {
        struct http_parser parts;
        int again = feed(&parts, text, size, step);
        if (again != status) {
            test_fail(__FILE__, __LINE__, "%d at once, %d by %zu bytes: %.*s", status, again, step,
                      (int)size, text);
        }
        if (status == HTTP_COMPLETE) {
            check_same(parser, &parts);
        }
    }
    return status;
}

static void check_span(const char *data, struct http_span span, const char *wanted)
{
    CHECK_EQ(span.size, strlen(wanted));
    CHECK_EQ(memcmp(data + span.at, wanted, span.size), 0);
}

/* --- Accepted and rejected input -------------------------------------------------------------- */

#define HOST "Host: a\r\n"

/* Includes embedded zero bytes. */
#define TEXT(literal) literal, sizeof(literal) - 1

static const struct {
    const char *text;
    size_t size;
    int status;
} cases[] = {
    /* Complete and incomplete requests. */
    { TEXT("GET / HTTP/1.1\r\n" HOST "\r\n"), HTTP_COMPLETE },
    { TEXT("GET / HTTP/1.0\r\n\r\n"), HTTP_COMPLETE },
    { TEXT("GET / HTTP/1.9\r\n" HOST "\r\n"), HTTP_COMPLETE },
    { TEXT("GET http://a/ HTTP/1.1\r\n" HOST "\r\n"), HTTP_COMPLETE },
    { TEXT("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), HTTP_COMPLETE },
    { TEXT("GET / HTTP/1.1\r\nHost:\r\n\r\n"), HTTP_COMPLETE },
    { TEXT("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), HTTP_COMPLETE },
    { TEXT("GET / HTTP/1.1\r\n" HOST "A: \t b c \t\r\n\r\n"), HTTP_COMPLETE },
    { TEXT("GET / HTTP/1.1\r\n" HOST "A: \303\244\r\n\r\n"), HTTP_COMPLETE },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"), HTTP_COMPLETE },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length: 0003\r\n\r\nabc"), HTTP_COMPLETE },
    { TEXT("GET / HTTP/1.1\r\n" HOST "\r\nGET / HTTP/1.1\r\n"), HTTP_COMPLETE },
    { TEXT("G"), HTTP_MORE },
    { TEXT("GET / HTTP/1.1\r\n" HOST "\r"), HTTP_MORE },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nabc"), HTTP_MORE },
    /* The request line. */
    { TEXT("\r\nGET / HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("\n"), 400 },
    { TEXT("GET / HTTP/1.1\n" HOST "\r\n"), 400 },
    { TEXT("GET /\r\n\r\n"), 400 },
    { TEXT("GET  / HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("GET /  HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("GET / HTTP/1.1 \r\n" HOST "\r\n"), 400 },
    { TEXT(" GET / HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("GET\t/ HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("G(T / HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("GET a HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("GET * HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("GET /\177 HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("GET /\303\244 HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("GET /a\rb HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("GET /\0 HTTP/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("GET / http/1.1\r\n" HOST "\r\n"), 400 },
    { TEXT("GET / HTTP/1.10\r\n" HOST "\r\n"), 400 },
    { TEXT("GET / HTTP/1\r\n" HOST "\r\n"), 400 },
    { TEXT("GET / HTTP/2.0\r\n" HOST "\r\n"), 505 },
    { TEXT("GET / HTTP/0.9\r\n" HOST "\r\n"), 505 },
    /* Headers. */
    { TEXT("GET / HTTP/1.1\r\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\n" HOST HOST "\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\n" HOST "\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\n" HOST "A\r\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\n" HOST " A: b\r\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\n" HOST "A: b\r\r\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\n" HOST "A: \0\r\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\n" HOST "A\0: b\r\n\r\n"), 400 },
    { TEXT("GET / HTTP/1.1\r\n" HOST "A\303\244: b\r\n\r\n"), 400 },
    /* Bodies. */
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"), 400 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n"), 400 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n"), 400 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\n"), 400 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n"), 400 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length: 1 1\r\n\r\n"), 400 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\ncontent-length: 2\r\n\r\n"), 400 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length: 16385\r\n\r\n"), 413 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551617\r\n\r\n"), 413 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"), 501 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"), 501 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
      400 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "TRANSFER-ENCODING: x\r\nContent-Length: 1\r\n\r\n"), 400 },
    { TEXT("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400 },
    { TEXT("POST / HTTP/1.1\r\n" HOST "Expect: wonders\r\n\r\n"), 417 },
};

static void parser_status_does_not_depend_on_fragmentation(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct http_parser parser;
        int status = parse_every_way(&parser, cases[i].text, cases[i].size);
        if (status != cases[i].status) {
            test_fail(__FILE__, __LINE__, "%d, wanted %d: %.*s", status, cases[i].status,
                      (int)cases[i].size, cases[i].text);
        }
    }
}

static void request_is_split_into_fields(void)
{
    static const char text[] = "POST /a?b=c HTTP/1.1\r\nhOsT: example.org:80\r\nX-One:  two three "
                               "\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\nhelloGET";
    struct http_parser parser;
    CHECK_EQ(parse_every_way(&parser, text, sizeof text - 1), HTTP_COMPLETE);
    check_span(text, parser.method, "POST");
    check_span(text, parser.target, "/a?b=c");
    CHECK_EQ(parser.minor, 1);
    CHECK_EQ(parser.header_count, 4);
    check_span(text, parser.headers[0].name, "hOsT");
    check_span(text, parser.headers[0].value, "example.org:80");
    check_span(text, parser.headers[1].value, "two three");
    check_span(text, parser.body, "hello");
    CHECK(parser.keeps_alive);
    CHECK(parser.expects_continue);
    check_span(text, (struct http_span){ http_length(&parser), 3 }, "GET");
}

static void target_of_each_form_yields_its_path(void)
{
    static const struct {
        const char *target;
        const char *path; /* NULL: the target is rejected */
    } targets[] = {
        { "/", "/" },
        { "/a/b?c?d=/e", "/a/b" },
        { "/?", "/" },
        { "//", "//" },
        { "http://a", "" },
        { "http://a?b/c", "" },
        { "http://a/", "/" },
        { "HTTP://a.org:80/b?c", "/b" },
        { "http://[::1]:80/b", "/b" },
        { "http://a//b", "//b" },
        { "http://", NULL },
        { "http:///", NULL },
        { "http://?", NULL },
        { "http://a@b/", NULL },
        { "http:/a", NULL },
        { "https://a/", NULL },
        { "/a#b", NULL },
        { "http://a/#b", NULL },
        { "a/b", NULL },
        { "?a", NULL },
    };
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        struct http_parser parser;
        char text[128];
        int size =
            snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" HOST "\r\n", targets[i].target);
        int status = parse_every_way(&parser, text, (size_t)size);
        CHECK_EQ(status, targets[i].path != NULL ? HTTP_COMPLETE : 400);
        if (targets[i].path != NULL) {
            check_span(text, parser.path, targets[i].path);
        }
    }
}

static void connection_header_decides_keep_alive(void)
{
    static const struct {
        const char *text;
        bool keeps_alive;
    } connections[] = {
        { "GET / HTTP/1.1\r\n" HOST "\r\n", true },
        { "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", false },
        { "GET / HTTP/1.1\r\n" HOST "Connection: a , CLOSE\r\n\r\n", false },
        { "GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n", true },
        { "GET / HTTP/1.1\r\n" HOST "Connection: close, keep-alive\r\n\r\n", false },
        { "GET / HTTP/1.0\r\n\r\n", false },
        { "GET / HTTP/1.0\r\nConnection: ,Keep-Alive,\r\n\r\n", true },
    };
    for (size_t i = 0; i < sizeof connections / sizeof connections[0]; i++) {
        struct http_parser parser;
        const char *text = connections[i].text;
        CHECK_EQ(parse_every_way(&parser, text, strlen(text)), HTTP_COMPLETE);
        CHECK_EQ(parser.keeps_alive, connections[i].keeps_alive);
    }
}

/* --- Limits ----------------------------------------------------------------------------------- */

static char *room; /* buffer for a request and more */
static size_t used;

static void put(const char *text)
{
    size_t size = strlen(text);
    memcpy(room + used, text, size);
    used += size;
}

static void fill(char c, size_t count)
{
    memset(room + used, c, count);
    used += count;
}

/* Same as parse_every_way(), with fewer step sizes: these requests are long. */
static int parse_buffer(struct http_parser *parser)
{
    int status = feed(parser, room, used, used);
    static const size_t steps[] = { 1, 1000, 4095, 4096, 4097 };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct http_parser parts;
        int again = HTTP_MORE;
        http_parser_init(&parts);
        for (size_t have = 0; again == HTTP_MORE && have < used;) {
            have = used - have < steps[i] ? used : have + steps[i];
            again = http_parse(&parts, room, have);
        }
        CHECK_EQ(again, status);
    }
    return status;
}

/* Parses a request line of the given number of bytes. */
static int parse_line_of(size_t bytes)
{
    struct http_parser parser;
    used = 0;
    put("GET /");
    fill('a', bytes - strlen("GET / HTTP/1.0\r\n"));
    put(" HTTP/1.0\r\n\r\n");
    return parse_buffer(&parser);
}

/* Parses headers of the given number of bytes, including the empty line. */
static int parse_head_of(size_t bytes)
{
    struct http_parser parser;
    used = 0;
    put("GET / HTTP/1.0\r\nA: ");
    fill('a', bytes - strlen("A: \r\n\r\n"));
    put("\r\n\r\n");
    return parse_buffer(&parser);
}

static int parse_headers(size_t count)
{
    struct http_parser parser;
    used = 0;
    put("GET / HTTP/1.0\r\n");
    for (size_t i = 0; i < count; i++) {
        put("A: b\r\n");
    }
    put("\r\n");
    return parse_buffer(&parser);
}

static int parse_body_of(size_t bytes)
{
    struct http_parser parser;
    char length[64];
    used = 0;
    put("POST / HTTP/1.0\r\n");
    (void)snprintf(length, sizeof length, "Content-Length: %zu\r\n\r\n", bytes);
    put(length);
    fill('x', bytes);
    return parse_buffer(&parser);
}

static void each_limit_is_exact(void)
{
    room = malloc(4 * HTTP_REQUEST_MAX);
    CHECK(room != NULL);
    CHECK_EQ(parse_line_of(HTTP_LINE_MAX), HTTP_COMPLETE);
    CHECK_EQ(parse_line_of(HTTP_LINE_MAX + 1), 414);
    CHECK_EQ(parse_line_of(3 * HTTP_LINE_MAX), 414);
    CHECK_EQ(parse_head_of(HTTP_HEAD_MAX), HTTP_COMPLETE);
    CHECK_EQ(parse_head_of(HTTP_HEAD_MAX + 1), 431);
    CHECK_EQ(parse_head_of(3 * HTTP_HEAD_MAX), 431);
    CHECK_EQ(parse_headers(HTTP_HEADERS_MAX), HTTP_COMPLETE);
    CHECK_EQ(parse_headers(HTTP_HEADERS_MAX + 1), 431);
    CHECK_EQ(parse_body_of(HTTP_BODY_MAX), HTTP_COMPLETE);
    CHECK_EQ(parse_body_of(HTTP_BODY_MAX + 1), 413);
    free(room);
}

TEST_MAIN({
    TEST(parser_status_does_not_depend_on_fragmentation),
    TEST(request_is_split_into_fields),
    TEST(target_of_each_form_yields_its_path),
    TEST(connection_header_decides_keep_alive),
    TEST(each_limit_is_exact),
})
