/* SPDX-License-Identifier: MIT */
/*
 * libuv.c - echo server with libuv, written for speed.
 *
 * It calls uv_try_write() right after the read, so all connections share one buffer and nothing
 * is allocated. Bytes that cannot be sent immediately are copied and written by uv_write(), and
 * reading pauses meanwhile. A loop is one thread, regardless of the requested number of
 * workers.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "server.h"

static char buffer[ECHO_BUFFER_SIZE];

/* A write that could not finish immediately, with its remaining bytes. */
struct rest {
    uv_write_t request;
    char bytes[];
};

static void check(int err, const char *what)
{
    if (err < 0) {
        echo_fail(what, -err);
    }
}

static void on_closed(uv_handle_t *peer)
{
    free(peer);
}

static void drop(uv_stream_t *peer)
{
    uv_close((uv_handle_t *)peer, on_closed);
}

static void give_buffer(uv_handle_t *peer, size_t suggested, uv_buf_t *out)
{
    (void)peer;
    (void)suggested;
    *out = uv_buf_init(buffer, sizeof buffer);
}

static void on_read(uv_stream_t *peer, ssize_t n, const uv_buf_t *read);

static void on_rest_written(uv_write_t *request, int status)
{
    uv_stream_t *peer = request->handle;
    free(request->data);
    if (status == UV_ECANCELED) {
        return; /* the connection is being closed */
    }
    if (status < 0) {
        drop(peer);
        return;
    }
    check(uv_read_start(peer, give_buffer, on_read), "uv_read_start");
}

static void write_rest(uv_stream_t *peer, const char *bytes, size_t size)
{
    struct rest *rest = malloc(sizeof *rest + size);
    if (rest == NULL) {
        echo_fail("no memory", 0);
    }
    memcpy(rest->bytes, bytes, size);
    rest->request.data = rest;
    uv_buf_t out = uv_buf_init(rest->bytes, (unsigned)size);
    (void)uv_read_stop(peer);
    if (uv_write(&rest->request, peer, &out, 1, on_rest_written) < 0) {
        free(rest);
        drop(peer);
    }
}

static void on_read(uv_stream_t *peer, ssize_t n, const uv_buf_t *read)
{
    (void)read;
    if (n < 0) {
        drop(peer);
    } else if (n > 0) {
        uv_buf_t out = uv_buf_init(buffer, (unsigned)n);
        int written = uv_try_write(peer, &out, 1);
        if (written < 0 && written != UV_EAGAIN) {
            drop(peer);
        } else if (written < n) {
            size_t begin = written > 0 ? (size_t)written : 0;
            write_rest(peer, buffer + begin, (size_t)n - begin);
        }
    }
}

static void on_connection(uv_stream_t *listener, int status)
{
    check(status, "accept");
    uv_tcp_t *peer = malloc(sizeof *peer);
    if (peer == NULL) {
        echo_fail("no memory", 0);
    }
    check(uv_tcp_init(listener->loop, peer), "uv_tcp_init");
    check(uv_accept(listener, (uv_stream_t *)peer), "uv_accept");
    check(uv_tcp_nodelay(peer, 1), "uv_tcp_nodelay");
    check(uv_read_start((uv_stream_t *)peer, give_buffer, on_read), "uv_read_start");
}

static void on_stdin(uv_poll_t *poll, int status, int events)
{
    (void)events;
    if (status < 0 || echo_stdin_ended()) {
        uv_stop(poll->loop);
    }
}

int main(int argc, char **argv)
{
    struct echo_options options = echo_parse(argc, argv, 0);
    uv_loop_t *loop = uv_default_loop();
    uv_tcp_t listener;
    uv_poll_t input;
    check(uv_tcp_init(loop, &listener), "uv_tcp_init");
    check(uv_tcp_open(&listener, echo_listen(options.port, SOCK_NONBLOCK)), "uv_tcp_open");
    check(uv_listen((uv_stream_t *)&listener, ECHO_BACKLOG, on_connection), "uv_listen");
    check(uv_poll_init(loop, &input, STDIN_FILENO), "stdin must be a pipe");
    check(uv_poll_start(&input, UV_READABLE | UV_DISCONNECT, on_stdin), "uv_poll_start");

    uv_os_fd_t fd;
    check(uv_fileno((uv_handle_t *)&listener, &fd), "uv_fileno");
    echo_announce_socket(fd);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    return 0; /* connections are closed when the process exits */
}
