/* SPDX-License-Identifier: MIT */
/* owned_test.c - ownership of adopted descriptors by streams, listeners and sockets. */
#include "io/owned.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

static void claimed_descriptor_cannot_be_claimed_again(void)
{
    static const int fds[] = { 0, 63, 64, 100000, 32767, 32768 };
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        wf_owned_release(fds[i]);
        CHECK(wf_owned_claim(fds[i]));
        CHECK(!wf_owned_claim(fds[i]));
    }
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        wf_owned_release(fds[i]);
        CHECK(wf_owned_claim(fds[i]));
        wf_owned_release(fds[i]);
    }
}

static void impossible_descriptors_are_never_owned(void)
{
    CHECK(wf_owned_claim(-1));
    CHECK(wf_owned_claim(-1));
    CHECK(wf_owned_claim(INT_MAX));
    CHECK(wf_owned_claim(INT_MAX));
    wf_owned_release(-1);
    wf_owned_release(INT_MAX);
}

static atomic_uint claims;

static void *claim_all(void *arg)
{
    (void)arg;
    for (int fd = 500000; fd < 501000; fd++) {
        atomic_fetch_add(&claims, wf_owned_claim(fd));
    }
    return NULL;
}

static void one_of_several_threads_claims_descriptor(void)
{
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, claim_all, NULL), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(atomic_load(&claims), 1000);
}

/* Checks that each of the three adopt calls fails while the descriptor is owned. */
static void check_owned(int fd, bool is_datagram)
{
    weft_stream *stream;
    weft_listener *listener;
    weft_datagram *datagram;
    if (is_datagram) {
        CHECK_EQ(weft_datagram_adopt(&datagram, fd), -EEXIST);
    }
    CHECK_EQ(weft_stream_adopt(&stream, fd), -EEXIST);
    CHECK_LT(weft_listener_adopt(&listener, fd), 0);
}

static int adopt_owned(void *arg)
{
    weft_stream *one;
    weft_stream *other;
    weft_datagram *datagrams[2];
    weft_listener *listener;
    weft_listener *again;
    (void)arg;
    CHECK_EQ(weft_stream_pair(&one, &other), 0);
    check_owned(weft_stream_fd(one), false);
    int fd = weft_stream_release(one);
    CHECK_GE(fd, 0);
    CHECK_EQ(weft_stream_adopt(&one, fd), 0); /* It was released. */
    check_owned(fd, false);
    CHECK_EQ(weft_write(other, "x", 1, WEFT_NEVER), 1); /* The failed calls changed nothing. */
    weft_stream_close(one);
    weft_stream_close(other);

    CHECK_EQ(weft_datagram_pair(&datagrams[0], &datagrams[1]), 0);
    check_owned(weft_datagram_fd(datagrams[0]), true);
    weft_datagram_close(datagrams[0]);
    weft_datagram_close(datagrams[1]);

    CHECK_EQ(weft_listen(&listener, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(weft_listener_adopt(&again, weft_listener_fd(listener)), -EEXIST);
    check_owned(weft_listener_fd(listener), false);
    weft_listener_close(listener);
    return 0;
}

static int adopt_after_close(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 100; i++) { /* The same numbers over and over. */
        weft_stream *stream;
        int ends[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        CHECK_EQ(weft_stream_adopt(&stream, ends[0]), 0);
        weft_stream_close(stream);
        CHECK_EQ(close(ends[1]), 0);
    }
    return 0;
}

static int adopt_closed(void *arg)
{
    weft_stream *stream;
    (void)arg;
    int fd = dup(STDIN_FILENO);
    CHECK_GE(fd, 0);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(weft_stream_adopt(&stream, fd), -EBADF);
    CHECK(wf_owned_claim(fd));
    wf_owned_release(fd);
    return 0;
}

/* One worker, so that no other thread opens a descriptor in the meantime. */
static void failed_adoption_leaves_descriptor_unowned(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, adopt_closed, NULL), 0);
    weft_runtime_destroy(rt);
}

static void owned_descriptor_is_not_adopted(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, adopt_owned, NULL), 0);
    CHECK_EQ(test_run(rt, adopt_after_close, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({ TEST(claimed_descriptor_cannot_be_claimed_again),
            TEST(impossible_descriptors_are_never_owned),
            TEST(one_of_several_threads_claims_descriptor), TEST(owned_descriptor_is_not_adopted),
            TEST(failed_adoption_leaves_descriptor_unowned) })
