/* SPDX-License-Identifier: MIT */
/*
 * proxy_test.c - sockets with their own address: the kernel closes them together with the
 * process.
 */
#include "io/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft.h>

#include "links.h"
#include "ports.h"
#include "rt.h"
#include "test.h"

enum {
    ROUNDS = 40, /* Without proxies about one in four fails. */
};

/* --- A killed process ------------------------------------------------------------------- */

/* How a child waits on an address. */
struct way {
    const char *place;
    int (*wait)(void *way);
};

static weft_address bound; /* its address */

static int wait_in_accept(void *arg)
{
    const struct way *way = arg;
    weft_listener *listener;
    weft_stream *peer;
    CHECK_EQ(weft_listen(&listener, way->place, NULL), 0);
    CHECK_EQ(weft_listener_address(listener, &bound), 0);
    return weft_accept(listener, &peer, WEFT_NEVER);
}

static int wait_in_receive(void *arg)
{
    const struct way *way = arg;
    weft_datagram *socket;
    char byte;
    CHECK_EQ(weft_datagram_open(&socket, way->place, NULL), 0);
    CHECK_EQ(weft_datagram_address(socket, &bound), 0);
    return (int)weft_datagram_receive(socket, &byte, 1, WEFT_NEVER);
}

/* The listener of another library. */
static int wait_for_foreign(void *arg)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    weft_fd *handle;
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)arg;
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&any, sizeof any), 0);
    CHECK_EQ(listen(fd, 5), 0);
    socklen_t size = sizeof bound.to;
    CHECK_EQ(getsockname(fd, &bound.to.any, &size), 0);
    bound.size = size;
    CHECK_EQ(weft_fd_open(&handle, fd), 0);
    return weft_fd_wait(handle, WEFT_READABLE, WEFT_NEVER);
}

/* Runs in a child: waits on an address and reports it. */
static void wait_to_be_killed(const struct way *way, int out)
{
    weft_runtime *rt = test_start(1);
    (void)test_go(rt, way->wait, (void *)(uintptr_t)way);
    test_settle(rt);
    test_wait_until_asleep(rt); /* The poll is pending in the kernel. */
    CHECK_EQ(write(out, &bound, sizeof bound), sizeof bound);
    for (;;) {
        (void)pause();
    }
}

/* Binds like a restarted program. */
static int bind_again(const weft_address *address, bool is_stream)
{
    int one = 1;
    int fd = socket(address->to.any.sa_family, is_stream ? SOCK_STREAM : SOCK_DGRAM, 0);
    if (is_stream) {
        CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    }
    int err = bind(fd, &address->to.any, address->size) == 0 ? 0 : -errno;
    CHECK_EQ(close(fd), 0);
    return err;
}

static int kill_and_bind_again(const struct way *way)
{
    weft_address address;
    int ends[2];
    int status;
    CHECK_EQ(pipe(ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        wait_to_be_killed(way, ends[1]);
    }
    CHECK_EQ(close(ends[1]), 0); /* The read ends if the child fails. */
    CHECK_EQ(read(ends[0], &address, sizeof address), sizeof address);
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    int err = bind_again(&address, way->wait != wait_in_receive);
    CHECK_EQ(close(ends[0]), 0);
    return err;
}

/*
 * Goal:   once the parent has reaped a killed process, its addresses are free.
 * Method: kill children that wait on an address; the parent binds it immediately.
 */
static void killed_process_leaves_its_address_free(void)
{
    struct place stream_name = port_name("unix:");
    struct place datagram_name = port_name("unixgram:");
    const struct way ways[] = {
        { "tcp://127.0.0.1:0", wait_in_accept },
        { stream_name.text, wait_in_accept },
        { "udp://127.0.0.1:0", wait_in_receive },
        { datagram_name.text, wait_in_receive },
        { NULL, wait_for_foreign },
    };
    for (unsigned i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        for (unsigned round = 0; round < ROUNDS; round++) {
            CHECK_EQ(kill_and_bind_again(&ways[i]), 0);
        }
    }
}

/* --- Proxies ---------------------------------------------------------------------------- */

static struct wf_source source;

/* One proxy per direction, which is readable when the descriptor is ready. */
static void proxy_is_readable_when_descriptor_is_ready(void)
{
    unsigned before = link_fds();
    source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int reading = wf_proxy_open(&source, 0, POLLIN | POLLRDHUP);
    int writing = wf_proxy_open(&source, 1, POLLOUT);
    CHECK(reading >= 0 && reading != source.fd && wf_proxy_is_open(&source, 0));
    CHECK(writing >= 0 && writing != source.fd && wf_proxy_is_open(&source, 1));
    CHECK_EQ(wf_proxy_open(&source, 0, POLLIN | POLLRDHUP), reading);
    struct pollfd looks[] = { { .fd = reading, .events = POLLIN },
                              { .fd = writing, .events = POLLIN } };
    CHECK_EQ(poll(looks, 2, 0), 1);
    CHECK_EQ(looks[1].revents, POLLIN);
    CHECK_EQ(eventfd_write(source.fd, 1), 0);
    CHECK_EQ(poll(looks, 2, 0), 2);
    wf_proxy_close(&source, 0);
    wf_proxy_close(&source, 1);
    wf_proxy_close(&source, 1);
    CHECK(!wf_proxy_is_open(&source, 0));
    CHECK_EQ(close(source.fd), 0);
    CHECK_EQ(link_fds(), before);
}

static void proxy_without_free_descriptor_is_descriptor_itself(void)
{
    struct rlimit limit;
    source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit none = { .rlim_cur = 0, .rlim_max = limit.rlim_max };
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    int fd = wf_proxy_open(&source, 0, POLLIN);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(fd, source.fd);
    CHECK(!wf_proxy_is_open(&source, 0));
    CHECK_EQ(close(source.fd), 0);
}

static void proxy_of_unpollable_descriptor_fails(void)
{
    unsigned before = link_fds();
    FILE *file = tmpfile();
    CHECK(file != NULL);
    source.fd = fileno(file);
    CHECK_EQ(wf_proxy_open(&source, 0, POLLIN), -EPERM);
    CHECK(!wf_proxy_is_open(&source, 0));
    CHECK_EQ(fclose(file), 0);
    CHECK_EQ(link_fds(), before);
}

static int leave_open(void *arg)
{
    weft_listener *listener;
    weft_datagram *socket;
    weft_stream *peer;
    weft_fd *handle;
    char byte;
    int *fd = arg;
    CHECK_EQ(weft_listen(&listener, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(weft_accept(listener, &peer, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_datagram_open(&socket, "udp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(weft_datagram_receive(socket, &byte, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_fd_open(&handle, *fd), 0);
    CHECK_EQ(weft_fd_wait(handle, WEFT_READABLE, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    return 0;
}

static void runtime_closes_descriptors_left_open(void)
{
    unsigned before = link_fds();
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, leave_open, &fd), 0);
    weft_runtime_destroy(rt);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(link_fds(), before);
}

TEST_MAIN({
    TEST(killed_process_leaves_its_address_free),
    TEST(proxy_is_readable_when_descriptor_is_ready),
    TEST(proxy_without_free_descriptor_is_descriptor_itself),
    TEST(proxy_of_unpollable_descriptor_fails),
    TEST(runtime_closes_descriptors_left_open),
})
