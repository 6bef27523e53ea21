/* SPDX-License-Identifier: MIT */
/*
 * flow.h - known bytes sent one way through a stream, where any call may fail. Each byte is
 * checked by its position; accepted and received bytes are counted.
 *
 * A call that reports a lack of memory is repeated, since it has done nothing. Any other error
 * ends the flow.
 */
#ifndef TEST_FLOW_H
#define TEST_FLOW_H

#include <weft.h>

enum {
    FLOW_BYTES = 80 * 1000, /* more than a pipe holds */
    FLOW_PART = 8000,       /* per call */
};

/* Zero-initialized, except for the seed; the streams are set before use. */
struct flow {
    uint64_t seed;
    weft_stream *to;
    weft_stream *from;
    bool is_cut; /* a relay has failed: then the end proves nothing */
    /* Writer only. */
    uint64_t written;      /* accepted for certain */
    uint64_t written_most; /* upper bound: a failed call may have written some */
    uint64_t part_end;
    int write_err;
    unsigned write_retries;
    unsigned writes;
    struct iovec out[2]; /* rest of the current call */
    unsigned char out_bytes[FLOW_PART];
    weft_io write_io;
    weft_co_future write_co;
    /* Reader only. */
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

/* Writes everything, or reads to the end. Returns 0 or an error. Runs on a fiber or a plain
 * thread. */
int flow_write(struct flow *flow);
int flow_read(struct flow *flow);

/* Same as flow_write() and flow_read(), for stackless tasks; the state is the flow. */
int flow_write_body(weft_co *co, void *state);
int flow_read_body(weft_co *co, void *state);

/* Once the flow is unused: checks that the received bytes are those written, or a prefix of
 * them. */
void flow_check(const struct flow *flow);

/* Counts the result if it is an error. */
void flow_note(int result);
uint64_t flow_errors(void);

/* Same as flow_note(); also returns whether the call should be retried. */
bool flow_may_retry(int result, unsigned *retries);

#endif
