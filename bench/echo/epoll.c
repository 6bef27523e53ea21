/* SPDX-License-Identifier: MIT */
/*
 * epoll.c - echo server without a runtime: one thread, one epoll instance, one read and one
 * write per message.
 *
 * Its cost is that of the kernel alone, so it is the floor that runtimes are measured against.
 *
 * It is level-triggered, which was as fast as edge-triggered and needs no second read to find
 * that no more data is available. All connections share one buffer, which is empty again before
 * the next read unless the peer accepts less than it sent. In that rare case the rest is set
 * aside, and nothing more is read from this peer until the rest has been sent. No second thread
 * waits for the end of stdin: a shared descriptor table would make every call slower.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server.h"

/* Bytes that a peer has not accepted yet. */
struct rest {
    size_t begin;
    size_t end;
    char bytes[ECHO_BUFFER_SIZE];
};

static struct rest *rests[ECHO_FDS_MAX]; /* by descriptor; NULL: none */
static int epoll;

static void watch(int fd, int operation, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.fd = fd };
    if (epoll_ctl(epoll, operation, fd, &event) != 0) {
        echo_fail(fd == STDIN_FILENO ? "stdin must be a pipe" : "epoll_ctl", errno);
    }
}

static void drop(int fd)
{
    free(rests[fd]);
    rests[fd] = NULL;
    (void)close(fd);
}

static void accept_all(int listener)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (fd >= ECHO_FDS_MAX) {
            echo_fail("too many connections", 0);
        }
        echo_set_nodelay(fd);
        watch(fd, EPOLL_CTL_ADD, EPOLLIN);
    }
    if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
        echo_fail("accept", errno);
    }
}

static void set_aside(int fd, const char *bytes, size_t size)
{
    struct rest *rest = malloc(sizeof *rest);
    if (rest == NULL) {
        echo_fail("no memory", 0);
    }
    rest->begin = 0;
    rest->end = size;
    memcpy(rest->bytes, bytes, size);
    rests[fd] = rest;
    watch(fd, EPOLL_CTL_MOD, EPOLLOUT);
}

static void send_rest(int fd)
{
    struct rest *rest = rests[fd];
    ssize_t n = send(fd, rest->bytes + rest->begin, rest->end - rest->begin, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) {
        drop(fd);
        return;
    }
    rest->begin += n > 0 ? (size_t)n : 0;
    if (rest->begin == rest->end) {
        free(rest);
        rests[fd] = NULL;
        watch(fd, EPOLL_CTL_MOD, EPOLLIN);
    }
}

static void echo(int fd)
{
    static char buffer[ECHO_BUFFER_SIZE];
    ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EAGAIN) {
        return;
    }
    if (n <= 0) {
        drop(fd);
        return;
    }
    ssize_t sent = send(fd, buffer, (size_t)n, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
        drop(fd);
    } else if (sent < n) {
        size_t begin = sent > 0 ? (size_t)sent : 0;
        set_aside(fd, buffer + begin, (size_t)n - begin);
    }
}

int main(int argc, char **argv)
{
    struct echo_options options = echo_parse(argc, argv, 0);
    struct epoll_event events[ECHO_EVENTS_MAX];
    int listener = echo_listen(options.port, SOCK_NONBLOCK);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) {
        echo_fail("epoll_create1", errno);
    }
    watch(listener, EPOLL_CTL_ADD, EPOLLIN);
    watch(STDIN_FILENO, EPOLL_CTL_ADD, EPOLLIN);
    echo_announce_socket(listener);
    for (;;) {
        int n = epoll_wait(epoll, events, ECHO_EVENTS_MAX, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                accept_all(listener);
            } else if (fd == STDIN_FILENO) {
                if (echo_stdin_ended()) {
                    return 0;
                }
            } else if (rests[fd] != NULL) {
                send_rest(fd);
            } else {
                echo(fd);
            }
        }
    }
}
