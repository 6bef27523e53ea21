/* SPDX-License-Identifier: MIT */
/*
 * http_parser.c - incremental parser for HTTP/1.1 requests.
 *
 * A line is parsed once its end has arrived or it is too long, so the result does not depend on
 * how the data is split. No byte is examined twice.
 */
#include "http_parser.h"

#include <string.h>

enum {
    BAD_REQUEST = 400,
    TOO_LARGE = 413,
    TARGET_TOO_LONG = 414,
    EXPECTATION_FAILED = 417,
    HEADERS_TOO_LARGE = 431,
    NOT_IMPLEMENTED = 501,
    VERSION_NOT_SUPPORTED = 505,
};

/* --- Characters ------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_one_of(char c, const char *others)
{
    return c != '\0' && strchr(others, c) != NULL;
}

/* Character of a method or a header name. */
static bool is_token(char c)
{
    return is_digit(c) || is_letter(c) || is_one_of(c, "!#$%&'*+-.^_`|~");
}

static bool is_visible(char c)
{
    return c > ' ' && c < 127;
}

/* A target has no fragment: fragments stay on the client. */
static bool is_target(char c)
{
    return is_visible(c) && c != '#';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Character of a header value: no control characters except tabs. */
static bool is_text(char c)
{
    return is_space(c) || is_visible(c) || (unsigned char)c >= 128;
}

static bool is_host(char c)
{
    return is_digit(c) || is_letter(c) || is_one_of(c, "-._~%!$&'()*+,;=:[]");
}

static bool all(const char *data, struct http_span span, bool (*is_allowed)(char c))
{
    for (size_t i = 0; i < span.size; i++) {
        if (!is_allowed(data[span.at + i])) {
            return false;
        }
    }
    return true;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool http_is(const char *data, struct http_span span, const char *text, bool is_name)
{
    if (span.size != strlen(text)) {
        return false;
    }
    for (size_t i = 0; i < span.size; i++) {
        char c = data[span.at + i];
        if (c != text[i] && !(is_name && lower(c) == lower(text[i]))) {
            return false;
        }
    }
    return true;
}

/* --- Request line ----------------------------------------------------------------------------- */

/* Splits off the word before the next space, and the space. Returns false if there is no space. */
static bool take_word(const char *data, struct http_span *line, struct http_span *word)
{
    const char *space = memchr(data + line->at, ' ', line->size);
    if (space == NULL) {
        return false;
    }
    *word = (struct http_span){ line->at, (size_t)(space - (data + line->at)) };
    line->at += word->size + 1;
    line->size -= word->size + 1;
    return true;
}

static int parse_version(struct http_parser *parser, const char *data, struct http_span version)
{
    const char *at = data + version.at;
    if (version.size != 8 || memcmp(at, "HTTP/", 5) != 0 || !is_digit(at[5]) || at[6] != '.' ||
        !is_digit(at[7])) {
        return BAD_REQUEST;
    }
    if (at[5] != '1') {
        return VERSION_NOT_SUPPORTED;
    }
    parser->minor = at[7] == '0' ? 0 : 1; /* A later minor version can be answered as 1.1. */
    parser->keeps_alive = parser->minor > 0;
    return HTTP_MORE;
}

/*
 * Parses "/path?query" or the form for proxies, "http://host/path?query", whose path may be
 * missing.
 */
static bool parse_target(struct http_parser *parser, const char *data)
{
    static const char scheme[] = "http://";
    struct http_span path = parser->target;
    if (!all(data, path, is_target)) {
        return false;
    }
    if (path.size > sizeof scheme - 1 &&
        http_is(data, (struct http_span){ path.at, sizeof scheme - 1 }, scheme, true)) {
        struct http_span host = { path.at + sizeof scheme - 1, 0 };
        size_t end = path.at + path.size;
        while (host.at + host.size < end && !is_one_of(data[host.at + host.size], "/?")) {
            host.size++;
        }
        if (host.size == 0 || !all(data, host, is_host)) {
            return false;
        }
        path = (struct http_span){ host.at + host.size, end - host.at - host.size };
    } else if (path.size == 0 || data[path.at] != '/') {
        return false;
    }
    const char *query = path.size > 0 ? memchr(data + path.at, '?', path.size) : NULL;
    path.size = query != NULL ? (size_t)(query - (data + path.at)) : path.size;
    parser->path = path;
    return true;
}

static int parse_request_line(struct http_parser *parser, const char *data, struct http_span line)
{
    if (!take_word(data, &line, &parser->method) || !take_word(data, &line, &parser->target)) {
        return BAD_REQUEST;
    }
    if (parser->method.size == 0 || !all(data, parser->method, is_token)) {
        return BAD_REQUEST;
    }
    bool is_all = http_is(data, parser->target, "*", false) &&
                  http_is(data, parser->method, "OPTIONS", false);
    if (is_all) {
        parser->path = parser->target;
    } else if (!parse_target(parser, data)) {
        return BAD_REQUEST;
    }
    return parse_version(parser, data, line);
}

/* --- Headers ---------------------------------------------------------------------------------- */

static struct http_span trim(const char *data, struct http_span span)
{
    while (span.size > 0 && is_space(data[span.at])) {
        span.at++;
        span.size--;
    }
    while (span.size > 0 && is_space(data[span.at + span.size - 1])) {
        span.size--;
    }
    return span;
}

/* Rejects a repeated length: the two could differ. */
static int read_length(struct http_parser *parser, const char *data, struct http_span value)
{
    if (parser->has_length || value.size == 0 || !all(data, value, is_digit)) {
        return BAD_REQUEST;
    }
    parser->has_length = true;
    for (size_t i = 0; i < value.size; i++) {
        parser->body.size = parser->body.size * 10 + (size_t)(data[value.at + i] - '0');
        if (parser->body.size > HTTP_BODY_MAX) {
            return TOO_LARGE;
        }
    }
    return HTTP_MORE;
}

/* Parses a comma-separated list. */
static void read_connection(struct http_parser *parser, const char *data, struct http_span value)
{
    while (value.size > 0) {
        const char *comma = memchr(data + value.at, ',', value.size);
        size_t size = comma != NULL ? (size_t)(comma - (data + value.at)) : value.size;
        struct http_span word = trim(data, (struct http_span){ value.at, size });
        if (http_is(data, word, "close", true)) {
            parser->closes = true;
        } else if (http_is(data, word, "keep-alive", true)) {
            parser->keeps_alive = true;
        }
        size += comma != NULL;
        value.at += size;
        value.size -= size;
    }
}

/* Interprets the headers that determine the end of the request and the fate of the connection. */
static int read_header(struct http_parser *parser, const char *data, struct http_header header)
{
    if (http_is(data, header.name, "content-length", true)) {
        return read_length(parser, data, header.value);
    }
    if (http_is(data, header.name, "transfer-encoding", true)) {
        parser->has_coding = true;
    } else if (http_is(data, header.name, "host", true)) {
        if (parser->has_host || !all(data, header.value, is_host)) {
            return BAD_REQUEST;
        }
        parser->has_host = true;
    } else if (http_is(data, header.name, "connection", true)) {
        read_connection(parser, data, header.value);
    } else if (http_is(data, header.name, "expect", true)) {
        if (!http_is(data, header.value, "100-continue", true)) {
            return EXPECTATION_FAILED;
        }
        parser->expects_continue = parser->minor > 0;
    }
    return HTTP_MORE;
}

static int parse_header(struct http_parser *parser, const char *data, struct http_span line)
{
    struct http_header header;
    const char *colon = memchr(data + line.at, ':', line.size);
    if (colon == NULL) {
        return BAD_REQUEST;
    }
    header.name = (struct http_span){ line.at, (size_t)(colon - (data + line.at)) };
    header.value = trim(data, (struct http_span){ line.at + header.name.size + 1,
                                                  line.size - header.name.size - 1 });
    /* A folded line starts with a space, which is not a valid character of a name. */
    if (header.name.size == 0 || !all(data, header.name, is_token) ||
        !all(data, header.value, is_text)) {
        return BAD_REQUEST;
    }
    if (parser->header_count == HTTP_HEADERS_MAX) {
        return HEADERS_TOO_LARGE;
    }
    parser->headers[parser->header_count++] = header;
    return read_header(parser, data, header);
}

/* Checks the headers after the empty line. */
static int end_head(struct http_parser *parser)
{
    if (parser->minor > 0 && !parser->has_host) {
        return BAD_REQUEST;
    }
    if (parser->has_coding) {
        return parser->has_length || parser->minor == 0 ? BAD_REQUEST : NOT_IMPLEMENTED;
    }
    parser->keeps_alive = parser->keeps_alive && !parser->closes;
    parser->body.at = parser->next;
    parser->is_body = true;
    return HTTP_MORE;
}

/* --- Lines ------------------------------------------------------------------------------------ */

/*
 * Takes the next line, without its end. Returns HTTP_COMPLETE, HTTP_MORE, or a status if it is
 * too long.
 */
static int take_line(struct http_parser *parser, const char *data, size_t size,
                     struct http_span *line)
{
    bool is_first = parser->head == 0;
    size_t limit = is_first ? HTTP_LINE_MAX : parser->head + HTTP_HEAD_MAX;
    size_t end = size < limit ? size : limit;
    size_t from = parser->next + parser->seen;
    const char *newline = end > from ? memchr(data + from, '\n', end - from) : NULL;
    if (newline == NULL) {
        parser->seen = end - parser->next;
        return end < limit ? HTTP_MORE : is_first ? TARGET_TOO_LONG : HEADERS_TOO_LARGE;
    }
    size_t length = (size_t)(newline - data) - parser->next;
    if (length == 0 || newline[-1] != '\r') {
        return BAD_REQUEST;
    }
    *line = (struct http_span){ parser->next, length - 1 };
    parser->next += length + 1;
    parser->seen = 0;
    return HTTP_COMPLETE;
}

static int parse_line(struct http_parser *parser, const char *data, struct http_span line)
{
    if (parser->head == 0) {
        parser->head = parser->next;
        return parse_request_line(parser, data, line);
    }
    return line.size == 0 ? end_head(parser) : parse_header(parser, data, line);
}

void http_parser_init(struct http_parser *parser)
{
    memset(parser, 0, sizeof *parser);
}

int http_parse(struct http_parser *parser, const char *data, size_t size)
{
    while (parser->status == HTTP_MORE && !parser->is_body) {
        struct http_span line;
        int status = take_line(parser, data, size, &line);
        if (status == HTTP_MORE) {
            return HTTP_MORE;
        }
        parser->status = status == HTTP_COMPLETE ? parse_line(parser, data, line) : status;
    }
    if (parser->status == HTTP_MORE && size - parser->body.at >= parser->body.size) {
        parser->status = HTTP_COMPLETE;
    }
    return parser->status;
}

size_t http_length(const struct http_parser *parser)
{
    return parser->body.at + parser->body.size;
}
