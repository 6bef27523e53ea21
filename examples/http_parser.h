/* SPDX-License-Identifier: MIT */
/*
 * http_parser.h - requests of HTTP/1.1, taken out of a buffer as they come in.
 *
 *     struct http_parser parser;
 *     http_parser_init(&parser);
 *     int status = http_parse(&parser, data, size);      HTTP_MORE: with more data again
 *
 * It is strict: what two readers could understand in different ways is refused. Lines end with
 * CR LF, and neither occurs elsewhere; a header is not folded, and has no space before its
 * colon; a body has one length, and no transfer coding.
 */
#ifndef EXAMPLES_HTTP_PARSER_H
#define EXAMPLES_HTTP_PARSER_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HTTP_LINE_MAX = 4096, /* bytes of the first line, with its end: else 414 */
    HTTP_HEAD_MAX = 8192, /* bytes of all headers, with the empty line: else 431 */
    HTTP_HEADERS_MAX = 64,
    HTTP_BODY_MAX = 16384, /* bytes: else 413 */
    HTTP_REQUEST_MAX = HTTP_LINE_MAX + HTTP_HEAD_MAX + HTTP_BODY_MAX,
};

/* What is known so far. Every other answer is the status to refuse the request with: 400, 413,
 * 414, 417, 431, 501, 505. */
enum {
    HTTP_MORE = 0,     /* there is more to come */
    HTTP_COMPLETE = 1, /* this is a whole request */
};

/* A part of the data: it moves with the buffer. */
struct http_span {
    size_t at;
    size_t size;
};

struct http_header {
    struct http_span name;
    struct http_span value; /* without spaces around it */
};

/* A request, as far as it was read. */
struct http_parser {
    struct http_span method;
    struct http_span target;
    struct http_span path; /* of the target, without host and query; may be empty: as "/" */
    unsigned minor;        /* of the version: 0 or 1 */
    size_t header_count;
    struct http_header headers[HTTP_HEADERS_MAX];
    struct http_span body;
    bool keeps_alive;      /* the connection, as far as the client is concerned */
    bool closes;           /* it has said so */
    bool expects_continue; /* before it sends the body */
    bool has_length;       /* a Content-Length was there; how much is body.size */
    bool has_coding;       /* a Transfer-Encoding was there */
    bool has_host;
    bool is_body; /* the head is complete */
    int status;   /* HTTP_MORE, or the end of it */
    size_t next;  /* where the line begins that was not read yet */
    size_t seen;  /* in that line: so many bytes are not its end */
    size_t head;  /* where the headers begin */
};

void http_parser_init(struct http_parser *parser);

/*
 * Goes on with a request that begins at data and of which size bytes are there. Those that were
 * there before are the same. Of a whole request, data has http_length() bytes.
 */
int http_parse(struct http_parser *parser, const char *data, size_t size);

/* How long a whole request is: what follows is the next one. */
size_t http_length(const struct http_parser *parser);

/* The text is this, without regard to case if is_name: as names of headers are. */
bool http_is(const char *data, struct http_span span, const char *text, bool is_name);

#endif
