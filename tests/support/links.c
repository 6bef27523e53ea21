/* SPDX-License-Identifier: MIT */
/*
 * links.c - two streams that are connected to each other.
 */
#include "links.h"

#include <dirent.h>
#include <stdatomic.h>

#include "io/source.h"
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
            /* The first use opens what the runtime needs itself. */
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

void source_wait_for_calls(const struct wf_source *source, uint32_t count)
{
    while ((atomic_load(&source->users) & INT32_MAX) != count + 1) {
        CHECK_EQ(weft_yield(), 0);
    }
}

void link_wait_for_calls(const weft_stream *stream, uint32_t count)
{
    /* All of ours are in the room of a source. */
    source_wait_for_calls(wf_container_of(stream, struct wf_source, room), count);
}

unsigned link_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;
    CHECK(folder != NULL);
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count;
}
