/* SPDX-License-Identifier: MIT */
/*
 * ports.c - endpoints to listen on and to connect to.
 */
#include "ports.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "links.h"
#include "rt.h"
#include "test.h"

void port_run(unsigned workers, int (*function)(void *arg), const void *arg)
{
    weft_runtime *rt = test_start(workers);
    weft_io_info info;
    CHECK_EQ(weft_runtime_io(rt, &info), 0); /* Now the runtime has its own descriptors. */
    unsigned before = link_fds();
    CHECK_EQ(test_run(rt, function, (void *)(uintptr_t)arg), 0);
    CHECK_EQ(link_fds(), before);
    weft_runtime_destroy(rt);
}

void port_run_all(int (*function)(void *arg), const void *arg)
{
    port_run(1, function, arg);
    port_run(2, function, arg);
    port_run(8, function, arg);
}

weft_listener *port_listen(const char *place, struct place *where)
{
    weft_listener *listener;
    weft_address address;
    CHECK_EQ(weft_listen(&listener, place, NULL), 0);
    CHECK_EQ(weft_listener_address(listener, &address), 0);
    CHECK_LT(weft_address_print(&address, where->text, sizeof where->text), sizeof where->text);
    return listener;
}

int port_nobody(struct place *where)
{
    weft_address address = port_address("127.0.0.1:0");
    socklen_t size = sizeof address.to;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_GE(fd, 0);
    CHECK_EQ(bind(fd, &address.to.any, address.size), 0);
    CHECK_EQ(getsockname(fd, &address.to.any, &size), 0);
    CHECK_LT(weft_address_print(&address, where->text, sizeof where->text), sizeof where->text);
    return fd;
}

static struct place make_place(const char *kind, const char *before)
{
    static _Atomic(unsigned) count;
    struct place place;
    (void)snprintf(place.text, sizeof place.text, "%s%sweft-test-%d-%u", kind, before,
                   (int)getpid(), atomic_fetch_add(&count, 1));
    return place;
}

struct place port_path(const char *kind)
{
    struct place place = make_place(kind, "/tmp/");
    (void)unlink(port_path_of(&place));
    return place;
}

struct place port_name(const char *kind)
{
    return make_place(kind, "@");
}

const char *port_path_of(const struct place *place)
{
    return strchr(place->text, ':') + 1;
}

bool port_exists(const struct place *place)
{
    struct stat status;
    return lstat(port_path_of(place), &status) == 0;
}

bool port_has_v6(void)
{
    weft_address address = port_address("[::1]:0");
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, &address.to.any, address.size) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (!has) {
        test_skip("there is no [::1]");
    }
    return has;
}

weft_address port_address(const char *text)
{
    weft_address address;
    CHECK_EQ(weft_address_parse(&address, text), 0);
    return address;
}

/* A Unix socket returns EAGAIN. On the network there is no answer; if there is one, it comes
 * soon. */
static bool is_connected(int fd, const weft_address *address)
{
    struct pollfd answer = { .fd = fd, .events = POLLOUT };
    if (connect(fd, &address->to.any, address->size) == 0) {
        return true;
    }
    CHECK(errno == EAGAIN || errno == EINPROGRESS);
    return errno == EINPROGRESS && poll(&answer, 1, 500) == 1;
}

struct full port_fill(const weft_address *address)
{
    struct full full = { .count = 0 };
    bool is_full = false;
    while (!is_full) {
        CHECK_LT(full.count, PORT_FULL_MAX);
        int fd = socket(address->to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        CHECK_GE(fd, 0);
        is_full = !is_connected(fd, address);
        full.fds[full.count++] = fd;
    }
    (void)close(full.fds[--full.count]);
    return full;
}

void port_empty(struct full *full)
{
    for (unsigned i = 0; i < full->count; i++) {
        (void)close(full->fds[i]);
    }
    full->count = 0;
}

static struct rlimit limit_before;

void port_end_fds(void)
{
    int next = dup(STDERR_FILENO); /* The lowest free number. */
    CHECK_GE(next, 0);
    (void)close(next);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit_before), 0);
    struct rlimit none = { (rlim_t)next, limit_before.rlim_max };
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    CHECK_EQ(dup(STDERR_FILENO), -1);
}

void port_mend_fds(void)
{
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit_before), 0);
}

void port_check_end(weft_stream *stream)
{
    char byte;
    ssize_t n = weft_read(stream, &byte, 1, WEFT_NEVER);
    CHECK(n == 0 || n == -ECONNRESET);
}

void port_check_link(weft_stream *one, weft_stream *other)
{
    char buffer[4];
    CHECK_EQ(weft_write_all(one, "ping", 4, WEFT_NEVER), 0);
    CHECK_EQ(weft_read_exact(other, buffer, 4, WEFT_NEVER), 0);
    CHECK_EQ(memcmp(buffer, "ping", 4), 0);
    CHECK_EQ(weft_write_all(other, "pong", 4, WEFT_NEVER), 0);
    CHECK_EQ(weft_read_exact(one, buffer, 4, WEFT_NEVER), 0);
    CHECK_EQ(memcmp(buffer, "pong", 4), 0);
}
