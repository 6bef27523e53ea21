/* SPDX-License-Identifier: MIT */
/*
 * links.c - pairs of connected streams.
 */
#include "links.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "rt.h"
#include "test.h"

static struct link open_tcp(void)
{
    weft_listener *listener;
    weft_address address;
    struct link link;
    char place[WEFT_ADDRESS_TEXT_MAX];
    CHECK_EQ(weft_listen(&listener, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(weft_listener_address(listener, &address), 0);
    CHECK_LT(weft_address_print(&address, place, sizeof place), sizeof place);
    CHECK_EQ(weft_connect(&link.near, place, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_accept(listener, &link.far, WEFT_NEVER), 0);
    weft_listener_close(listener);
    return link;
}

struct link link_open(enum link_kind kind)
{
    struct link link = { 0 };
    switch (kind) {
    case LINK_TCP:
        link = open_tcp();
        break;
    case LINK_LOCAL:
        CHECK_EQ(weft_stream_pair(&link.near, &link.far), 0);
        break;
    case LINK_MEMORY:
        CHECK_EQ(weft_duplex(&link.near, &link.far, 65536), 0);
        break;
    default:
        CHECK_EQ(weft_pipe(&link.far, &link.near), 0);
        break;
    }
    return link;
}

void link_close(struct link *link)
{
    weft_stream_close(link->near);
    weft_stream_close(link->far);
    *link = (struct link){ 0 };
}

struct run {
    enum link_kind kind;
    int (*function)(void *link);
};

static int run_on_link(void *arg)
{
    const struct run *run = arg;
    struct link link = link_open(run->kind);
    CHECK_EQ(run->function(&link), 0);
    link_close(&link);
    return 0;
}

static void run_kinds(int (*function)(void *link), unsigned kinds)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        weft_runtime *rt = test_start(workers[i]);
        for (unsigned kind = 0; kind < kinds; kind++) {
            struct run run = { (enum link_kind)kind, function };
            unsigned before = link_fds();
            CHECK_EQ(test_run(rt, run_on_link, &run), 0);
            /* The first use opens the runtime's own descriptors. */
            CHECK(link_fds() == before || kind == 0);
        }
        weft_runtime_destroy(rt);
    }
}

void link_run_all(int (*function)(void *link))
{
    run_kinds(function, LINK_KINDS);
}

void link_run_both_ways(int (*function)(void *link))
{
    run_kinds(function, LINK_PIPE);
}

unsigned char link_byte(uint64_t seed, uint64_t i)
{
    uint64_t mixed = (i + seed * 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    return (unsigned char)(mixed >> 56);
}

void link_fill(void *buffer, size_t size, uint64_t seed, uint64_t first)
{
    unsigned char *bytes = buffer;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = link_byte(seed, first + i);
    }
}

void link_check(const void *buffer, size_t size, uint64_t seed, uint64_t first)
{
    const unsigned char *bytes = buffer;
    for (size_t i = 0; i < size; i++) {
        CHECK_EQ(bytes[i], link_byte(seed, first + i));
    }
}

int link_write_flow(void *stream)
{
    static unsigned char data[LINK_FLOW_SIZE];
    link_fill(data, sizeof data, 1, 0);
    int err = weft_write_all(stream, data, sizeof data, WEFT_NEVER);
    weft_stream_close(stream);
    return err;
}

int link_read_flow(void *stream)
{
    static unsigned char data[LINK_FLOW_SIZE];
    CHECK_EQ(weft_read_exact(stream, data, sizeof data, WEFT_NEVER), 0);
    link_check(data, sizeof data, 1, 0);
    CHECK_EQ(weft_read(stream, data, 1, WEFT_NEVER), 0);
    return 0;
}

void link_flow_begin(struct link_flow *flow, struct link *from, enum link_kind to)
{
    flow->to = link_open(to);
    CHECK_EQ(weft_go(&flow->writer, link_write_flow, from->near), 0);
    from->near = NULL;
    CHECK_EQ(weft_go(&flow->reader, link_read_flow, flow->to.far), 0);
}

void link_join(weft_task *end)
{
    int result;
    CHECK_EQ(weft_join(end, &result, WEFT_NEVER), 0);
    CHECK_EQ(result, 0);
}

void link_flow_end(struct link_flow *flow)
{
    weft_stream_close(flow->to.near);
    flow->to.near = NULL;
    link_join(flow->writer);
    link_join(flow->reader);
    link_close(&flow->to);
}

/* The C library opens system files briefly, for example when a thread starts to allocate memory:
 * those do not count. */
static bool is_ours(int folder, const char *name)
{
    char target[64];
    ssize_t size = readlinkat(folder, name, target, sizeof target);
    return size > 0 && strncmp(target, "/sys/", 5) != 0 && strncmp(target, "/proc/", 6) != 0;
}

unsigned link_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    unsigned count = 0;
    CHECK(folder != NULL);
    while ((entry = readdir(folder)) != NULL) {
        count += is_ours(dirfd(folder), entry->d_name);
    }
    (void)closedir(folder);
    return count;
}
