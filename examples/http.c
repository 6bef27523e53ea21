/* SPDX-License-Identifier: MIT */
/*
 * http.c - HTTP/1.1 server: one fiber per connection, a strict parser (http_parser.h), and
 * limits on everything a client may do.
 *
 *     http tcp://127.0.0.1:8080      serves until SIGINT or SIGTERM
 *     http                           runs a self-test
 *
 * GET / says hello, POST /echo sends the body back. Requests may be pipelined: their answers
 * are collected, and written before the server waits for more.
 *
 * Memory: most connections of a server are idle. A fiber keeps its stack while it waits, and
 * all pages of a large frame stay in use, even if the buffers in it do not. So this server
 * allocates its buffers when a request arrives and frees them before it waits for the next one.
 * An idle connection needs one or two pages for its stack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft.h>

#include "http_parser.h"
#include "server.h"

static const weft_time idle_time = 30 * WEFT_S;    /* between two requests */
static const weft_time request_time = 10 * WEFT_S; /* from the first byte of a request to its
                                                    * last */
static const weft_time write_time = 10 * WEFT_S;   /* for the client to accept an answer */

/* State of a connection while it has requests. */
struct connection {
    weft_stream *peer;
    weft_reader reader;
    weft_writer writer;
    struct http_parser request;
    char in[HTTP_REQUEST_MAX];
    char out[4096];
};

/* --- Answers ---------------------------------------------------------------------------------- */

struct answer {
    int status;
    weft_text body;
    bool is_head; /* omits the body */
    bool closes;
    bool says_keep_alive; /* an HTTP/1.0 client would wait for the close otherwise */
};

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        { 200, "OK" },
        { 400, "Bad Request" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 408, "Request Timeout" },
        { 413, "Content Too Large" },
        { 414, "URI Too Long" },
        { 417, "Expectation Failed" },
        { 431, "Request Header Fields Too Large" },
        { 501, "Not Implemented" },
        { 505, "HTTP Version Not Supported" },
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].status == status) {
            return reasons[i].reason;
        }
    }
    return "Error";
}

static int write_answer(struct connection *self, const struct answer *answer)
{
    weft_time deadline = weft_after(write_time);
    char date[32];
    struct tm now;
    time_t seconds = time(NULL);
    (void)strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&seconds, &now));
    int err = weft_writer_print(&self->writer, deadline,
                                "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: text/plain\r\n"
                                "Content-Length: %zu\r\n%s%s\r\n",
                                answer->status, reason(answer->status), date, answer->body.size,
                                answer->status == 405 ? "Allow: GET, HEAD, POST\r\n" : "",
                                answer->closes            ? "Connection: close\r\n"
                                : answer->says_keep_alive ? "Connection: keep-alive\r\n"
                                                          : "");
    if (err != 0 || answer->is_head) {
        return err;
    }
    return weft_writer_write(&self->writer, answer->body.at, answer->body.size, deadline);
}

static struct answer plain(int status, const char *text)
{
    return (struct answer){ .status = status, .body = { text, strlen(text) } };
}

/* Handles a request. The body of the answer may point into the request. */
static struct answer serve(const struct http_parser *request, const char *data)
{
    bool is_head = http_is(data, request->method, "HEAD", false);
    bool is_get = is_head || http_is(data, request->method, "GET", false);
    bool is_post = http_is(data, request->method, "POST", false);
    bool is_root = request->path.size == 0 || http_is(data, request->path, "/", false);
    bool is_echo = http_is(data, request->path, "/echo", false);
    struct answer answer;
    if (!is_get && !is_post) {
        answer = plain(501, "there is no such method here\n");
    } else if (is_get && is_root) {
        answer = plain(200, "hello\n");
    } else if (is_post && is_echo) {
        answer = (struct answer){ .status = 200,
                                  .body = { data + request->body.at, request->body.size } };
    } else if (is_root || is_echo) {
        answer = plain(405, "not by this method\n");
    } else {
        answer = plain(404, "there is nothing here\n");
    }
    answer.is_head = is_head;
    answer.closes = !request->keeps_alive;
    answer.says_keep_alive = request->minor == 0;
    return answer;
}

/* --- One connection --------------------------------------------------------------------------- */

static int refuse(struct connection *self, int status)
{
    struct answer answer = plain(status, "");
    answer.closes = true;
    int err = write_answer(self, &answer);
    err = err != 0 ? err : weft_writer_flush(&self->writer, weft_after(write_time));
    if (err == 0) {
        server_linger(self->peer);
    }
    return err;
}

/* Asks a client that waits for 100 Continue to send its body. */
static int ask_for_body(struct connection *self)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    self->request.expects_continue = false;
    return weft_writer_write(&self->writer, text, sizeof text - 1, weft_after(write_time));
}

/*
 * Reads a request. Returns HTTP_COMPLETE or the status to reject it with; 0 if no request is
 * available now or the client has left; or an error.
 */
static int read_request(struct connection *self, weft_text *data)
{
    weft_time deadline = weft_after(request_time);
    int err = weft_reader_peek(&self->reader, 0, data, deadline);
    http_parser_init(&self->request);
    while (err == 0 && data->size > 0) {
        int status = http_parse(&self->request, data->at, data->size);
        if (status != HTTP_MORE) {
            return status;
        }
        if (self->request.is_body && self->request.expects_continue) {
            err = ask_for_body(self);
        }
        /* Every request so far has been answered. */
        err = err != 0 ? err : weft_writer_flush(&self->writer, weft_after(write_time));
        if (err != 0) {
            break;
        }
        size_t size = data->size;
        err = weft_reader_peek(&self->reader, size + 1, data, deadline);
        if (err == 0 && data->size == size) {
            return WEFT_EEND; /* The client left in the middle of a request. */
        }
        if (err == WEFT_ETIMEDOUT) {
            return 408;
        }
    }
    return err;
}

/*
 * Serves the requests that have arrived. Returns 0 if the connection is idle afterwards,
 * WEFT_EEND at the end of the stream, or an error.
 */
static int serve_requests(struct connection *self)
{
    weft_text data;
    int err = weft_reader_peek(&self->reader, 1, &data, weft_after(request_time));
    if (err != 0 || data.size == 0) {
        return err != 0 ? err : WEFT_EEND;
    }
    while ((err = read_request(self, &data)) == HTTP_COMPLETE) {
        struct answer answer = serve(&self->request, data.at);
        err = write_answer(self, &answer);
        weft_reader_take(&self->reader, http_length(&self->request));
        if (err == 0 && answer.closes) {
            err = weft_writer_flush(&self->writer, weft_after(write_time));
            server_linger(self->peer);
            return err != 0 ? err : WEFT_EEND;
        }
        if (err != 0) {
            return err;
        }
    }
    if (err > 0) {
        err = refuse(self, err);
        return err != 0 ? err : WEFT_EEND;
    }
    return err != 0 ? err : weft_writer_flush(&self->writer, weft_after(write_time));
}

/* Allocates the buffers, serves requests and frees the buffers again. */
static int serve_with_buffers(weft_stream *peer)
{
    struct connection *self = malloc(sizeof *self);
    if (self == NULL) {
        return -ENOMEM;
    }
    self->peer = peer;
    weft_reader_init(&self->reader, peer, self->in, sizeof self->in);
    weft_writer_init(&self->writer, peer, self->out, sizeof self->out);
    int err = serve_requests(self);
    free(self);
    return err;
}

static int talk(void *arg)
{
    weft_stream *peer = arg;
    int err;
    do {
        err = server_wait_for_data(peer, weft_after(idle_time));
        err = err != 0 ? err : serve_with_buffers(peer);
    } while (err == 0);
    weft_stream_close(peer);
    return err == WEFT_EEND ? 0 : err;
}

static int start(weft_stream *peer)
{
    return weft_go(NULL, talk, peer);
}

/* --- Self-test -------------------------------------------------------------------------------- */

/*
 * Sends the request, reads until the server closes, and returns the number of answers with this
 * status.
 */
static int count_answers(const char *place, const char *request, const char *status)
{
    char answers[4096];
    size_t size = 0;
    ssize_t n;
    weft_stream *stream;
    int err = weft_connect(&stream, place, NULL, weft_after(WEFT_S));
    if (err != 0) {
        return err;
    }
    n = weft_write_all(stream, request, strlen(request), weft_after(WEFT_S));
    while (n >= 0 && size < sizeof answers - 1) {
        n = weft_read(stream, answers + size, sizeof answers - 1 - size, weft_after(5 * WEFT_S));
        if (n <= 0) {
            break;
        }
        size += (size_t)n;
    }
    weft_stream_close(stream);
    answers[size] = '\0';
    int count = 0;
    for (const char *at = answers; (at = strstr(at, status)) != NULL; at += strlen(status)) {
        count++;
    }
    return n < 0 ? (int)n : count;
}

static int try_it(const char *place)
{
    static const struct {
        const char *request;
        const char *status;
        int count;
    } tries[] = {
        { "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK", 2 },
        { "GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "hello\n", 1 },
        { "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request", 1 },
        { "POST /echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nthere", "\r\n\r\nthere", 1 },
    };
    int err = 0;
    for (size_t i = 0; err == 0 && i < sizeof tries / sizeof tries[0]; i++) {
        int count = count_answers(place, tries[i].request, tries[i].status);
        (void)printf("%d of %d answers from %s\n", count, tries[i].count, place);
        err = count < 0 ? count : count != tries[i].count;
    }
    return err;
}

int main(int argc, char **argv)
{
    static const struct server server = { "http", start, try_it };
    return server_main(&server, argc, argv);
}
