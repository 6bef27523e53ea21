/* SPDX-License-Identifier: MIT */
/*
 * bulk.c - the floor of bulk transfers: plain blocking calls, one thread per connection, with
 * the same buffer size and checksum as weft's server.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "block.h"
#include "server.h"

struct connection {
    int fd;
    enum echo_bulk bulk;
    unsigned char block[BLOCK_SIZE];
};

struct acceptor {
    int listener;
    enum echo_bulk bulk;
};

static bool send_all(int fd, const void *data, size_t size)
{
    const char *bytes = data;
    while (size > 0) {
        ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);
        if (n < 0) {
            return false;
        }
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

static void sink(struct connection *connection)
{
    struct block_sum sum = { 0 };
    ssize_t n;
    while ((n = recv(connection->fd, connection->block, BLOCK_SIZE, 0)) > 0) {
        block_sum_add(&sum, connection->block, (size_t)n);
    }
    struct block_reply reply = block_sum_reply(&sum);
    (void)send_all(connection->fd, &reply, sizeof reply);
}

/* Sends until the peer closes the connection. */
static void source(struct connection *connection)
{
    uint64_t number = 0;
    block_fill(connection->block);
    do {
        block_set_number(connection->block, number++);
    } while (send_all(connection->fd, connection->block, BLOCK_SIZE));
}

static void *serve(void *arg)
{
    struct connection *connection = arg;
    if (connection->bulk == ECHO_BULK_SINK) {
        sink(connection);
    } else {
        source(connection);
    }
    (void)close(connection->fd);
    free(connection);
    return NULL;
}

static void start_thread(void *(*function)(void *arg), void *arg)
{
    pthread_t thread;
    int err = pthread_create(&thread, NULL, function, arg);
    if (err == 0) {
        err = pthread_detach(thread);
    }
    if (err != 0) {
        echo_fail("thread", err);
    }
}

static void *accept_all(void *arg)
{
    const struct acceptor *acceptor = arg;
    for (;;) {
        int fd = accept4(acceptor->listener, NULL, NULL, SOCK_CLOEXEC);
        struct connection *connection = malloc(sizeof *connection);
        if (fd < 0 || connection == NULL) {
            echo_fail("accept", errno);
        }
        connection->fd = fd;
        connection->bulk = acceptor->bulk;
        echo_set_nodelay(fd);
        start_thread(serve, connection);
    }
}

int main(int argc, char **argv)
{
    static struct acceptor acceptor; /* static: its thread outlives main */
    struct echo_options options = echo_parse(argc, argv, ECHO_HAS_BULK);
    if (options.bulk == ECHO_BULK_NONE) {
        echo_fail("--bulk sink or --bulk source", 0);
    }
    acceptor.listener = echo_listen(options.port, 0);
    acceptor.bulk = options.bulk;
    start_thread(accept_all, &acceptor);
    echo_announce_socket(acceptor.listener);
    echo_wait_for_stdin();
    return 0;
}
