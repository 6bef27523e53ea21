/* SPDX-License-Identifier: MIT */
/*
 * links.h - pairs of connected streams, of each kind. Each call checks that it succeeds.
 */
#ifndef TEST_LINKS_H
#define TEST_LINKS_H

#include <weft.h>

enum link_kind {
    LINK_TCP,
    LINK_LOCAL,  /* a pair of Unix sockets */
    LINK_MEMORY, /* a duplex */
    LINK_PIPE,   /* written at near, read at far */
    LINK_KINDS,
};

struct link {
    weft_stream *near;
    weft_stream *far;
};

/* On a fiber. */
struct link link_open(enum link_kind kind);
void link_close(struct link *link);

/* Runs the function on a fiber, for each kind of link, with 1, 2 and 8 workers. Opens the link
 * before, and closes it afterwards, except for an end that the function has set to NULL. */
void link_run_all(int (*function)(void *link));

/* Same as link_run_all(), for the bidirectional kinds. */
void link_run_both_ways(int (*function)(void *link));

/* Known bytes: byte i of a stream with this seed. */
unsigned char link_byte(uint64_t seed, uint64_t i);
void link_fill(void *buffer, size_t size, uint64_t seed, uint64_t first);
void link_check(const void *buffer, size_t size, uint64_t seed, uint64_t first);

/* On a fiber: writes LINK_FLOW_SIZE known bytes to near of one link and closes it. All of them,
 * and the end, must arrive at far of another link. The test copies in between, from far of the
 * first link to near of the second, and then ends the flow, which closes the second link. */
enum {
    LINK_FLOW_SIZE = 700 * 1000 + 7,
};
struct link_flow {
    struct link to;
    weft_task *writer;
    weft_task *reader;
};
int link_write_flow(void *stream); /* functions of the fibers at both ends */
int link_read_flow(void *stream);
void link_join(weft_task *end);
void link_flow_begin(struct link_flow *flow, struct link *from, enum link_kind to);
void link_flow_end(struct link_flow *flow);

/* On a fiber: returns when count calls are in progress on a stream or a source. */
struct wf_source;
void link_wait_for_calls(const weft_stream *stream, uint32_t count);
void source_wait_for_calls(const struct wf_source *source, uint32_t count);

/* Returns the number of open descriptors of this process. */
unsigned link_fds(void);

#endif
