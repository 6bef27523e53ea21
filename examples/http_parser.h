/* SPDX-License-Identifier: MIT */
/*
 * http_parser.h - incremental parser for HTTP/1.1 requests.
 *
 *     struct http_parser parser;
 *     http_parser_init(&parser);
 *     int status = http_parse(&parser, data, size);      HTTP_MORE: call again with more data
 *
 * It is strict: it rejects anything that two implementations could interpret differently. Lines
 * end with CR LF, and neither character occurs elsewhere. A header is not folded and has no
 * space before its colon. A body has exactly one length and no transfer coding.
 */
#ifndef EXAMPLES_HTTP_PARSER_H
#define EXAMPLES_HTTP_PARSER_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HTTP_LINE_MAX = 4096, /* bytes of the request line, with its end; else 414 */
    HTTP_HEAD_MAX = 8192, /* bytes of all headers, with the empty line; else 431 */
    HTTP_HEADERS_MAX = 64,
    HTTP_BODY_MAX = 16384, /* bytes; else 413 */
    HTTP_REQUEST_MAX = HTTP_LINE_MAX + HTTP_HEAD_MAX + HTTP_BODY_MAX,
};

/*
 * Result of parsing. Any other value is the status to reject the request with: 400, 413, 414,
 * 417, 431, 501, 505.
 */
enum {
    HTTP_MORE = 0,     /* the request is incomplete */
    HTTP_COMPLETE = 1, /* the request is complete */
};

/* A range of the data, as an offset: it stays valid when the buffer moves. */
struct http_span {
    size_t at;
    size_t size;
};

struct http_header {
    struct http_span name;
    struct http_span value; /* without surrounding whitespace */
};

/* A request, as far as it has been parsed. */
struct http_parser {
    struct http_span method;
    struct http_span target;
    struct http_span path; /* the target without host and query; empty means "/" */
    unsigned minor;        /* minor version: 0 or 1 */
    size_t header_count;
    struct http_header headers[HTTP_HEADERS_MAX];
    struct http_span body;
    bool keeps_alive;      /* whether the client wants to keep the connection */
    bool closes;           /* has a "Connection: close" */
    bool expects_continue; /* the client waits for 100 Continue before the body */
    bool has_length;       /* has a Content-Length; its value is body.size */
    bool has_coding;       /* has a Transfer-Encoding */
    bool has_host;
    bool is_body; /* the head is complete */
    int status;   /* HTTP_MORE, or the final result */
    size_t next;  /* offset of the first unparsed line */
    size_t seen;  /* number of bytes of that line that contain no line end */
    size_t head;  /* offset of the headers */
};

void http_parser_init(struct http_parser *parser);

/*
 * Continues to parse a request that starts at data and of which size bytes have arrived. The
 * bytes of earlier calls must be unchanged. A complete request has http_length() bytes.
 */
int http_parse(struct http_parser *parser, const char *data, size_t size);

/* Returns the length of a complete request. The next request follows it. */
size_t http_length(const struct http_parser *parser);

/* Returns whether the span equals the text, ignoring case if is_name (as for header names). */
bool http_is(const char *data, struct http_span span, const char *text, bool is_name);

#endif
