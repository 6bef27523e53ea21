/* SPDX-License-Identifier: MIT */
/*
 * flow.h - known bytes that go one way through a stream, where any call may fail: each is checked
 * by its place, and it is counted what was accepted and what has arrived.
 *
 * Who is told of a want of memory calls again, since nothing was done; any other error is the end.
 */
#ifndef TEST_FLOW_H
#define TEST_FLOW_H

#include <weft.h>

enum {
    FLOW_BYTES = 80 * 1000, /* more than a pipe holds */
    FLOW_PART = 8000,       /* of one call */
};

/* All zeros but the seed, and the streams before they are used. */
struct flow {
    uint64_t seed;
    weft_stream *to;
    weft_stream *from;
    bool is_cut; /* who has passed it on has failed: then an end says nothing */
    /* Its writer's. */
    uint64_t written;      /* accepted for certain */
    uint64_t written_most; /* a call that failed may have written so much */
    uint64_t part_end;
    int write_err;
    unsigned write_retries;
    unsigned writes;
    struct iovec out[2]; /* what is left of the call under way */
    unsigned char out_bytes[FLOW_PART];
    weft_io write_io;
    weft_co_future write_co;
    /* Its reader's. */
    uint64_t arrived;
    int read_err;
    unsigned read_retries;
    unsigned reads;
    bool has_ended; /* the end was read */
    struct iovec in[2];
    unsigned char in_bytes[FLOW_PART];
    weft_io read_io;
    weft_co_future read_co;
};

/* Until all is written, or read to the end; or an error, which is returned. On a fiber, or a plain
 * thread. */
int flow_write(struct flow *flow);
int flow_read(struct flow *flow);

/* The same as bodies; the state is the flow. */
int flow_write_body(weft_co *co, void *state);
int flow_read_body(weft_co *co, void *state);

/* When nobody uses it any more: what has arrived is what was written, or its beginning. */
void flow_check(const struct flow *flow);

/* Counts an error that a call has told of, of all results that are given to it. */
void flow_note(int result);
uint64_t flow_errors(void);

/* The same; and is it worth to call again? */
bool flow_may_retry(int result, unsigned *retries);

#endif
