/* SPDX-License-Identifier: MIT */
/*
 * links.h - two streams that are connected to each other, of each kind. Each call checks
 * that it succeeds.
 */
#ifndef TEST_LINKS_H
#define TEST_LINKS_H

#include <weft.h>

enum link_kind {
    LINK_TCP,
    LINK_LOCAL,  /* a pair of Unix sockets */
    LINK_MEMORY, /* a duplex */
    LINK_PIPE,   /* what is written to near is read from far */
    LINK_KINDS,
};

struct link {
    weft_stream *near;
    weft_stream *far;
};

/* On a fiber. */
struct link link_open(enum link_kind kind);
void link_close(struct link *link);

/* Runs the function on a fiber, for each kind of link, with 1, 2 and 8 workers; the link is
 * opened before, and closed after unless the function has set an end of it to NULL. */
void link_run_all(int (*function)(void *link));

/* The same for the kinds that go both ways. */
void link_run_both_ways(int (*function)(void *link));

/* Bytes to know again: byte i of a stream with this seed. */
unsigned char link_byte(uint64_t seed, uint64_t i);
void link_fill(void *buffer, size_t size, uint64_t seed, uint64_t first);
void link_check(const void *buffer, size_t size, uint64_t seed, uint64_t first);

/* On a fiber: known bytes, LINK_FLOW_SIZE of them, are written to near of one link, which is
 * closed then; and all of them, and the end, must come at far of another. The test copies in
 * between, from far of the first to near of the second, and ends it: that closes the second. */
enum {
    LINK_FLOW_SIZE = 700 * 1000 + 7,
};
struct link_flow {
    struct link to;
    weft_task *writer;
    weft_task *reader;
};
int link_write_flow(void *stream); /* fibers: these are its ends */
int link_read_flow(void *stream);
void link_join(weft_task *end);
void link_flow_begin(struct link_flow *flow, struct link *from, enum link_kind to);
void link_flow_end(struct link_flow *flow);

/* On a fiber: returns when so many calls are under way at a stream, or at a source. */
struct wf_source;
void link_wait_for_calls(const weft_stream *stream, uint32_t count);
void source_wait_for_calls(const struct wf_source *source, uint32_t count);

/* How many descriptors this process has. */
unsigned link_fds(void);

#endif
