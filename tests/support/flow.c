/* SPDX-License-Identifier: MIT */
/*
 * flow.c - known bytes sent one way through a stream.
 */
#include "flow.h"

#include <errno.h>
#include <stdatomic.h>

#include "links.h"
#include "test.h"

enum {
    SMALL = 70, /* bytes per call, for some calls */
    RETRIES_MAX = 50,
};

static _Atomic(uint64_t) errors; /* errors returned by calls */

void flow_note(int result)
{
    if (result < 0) {
        atomic_fetch_add(&errors, 1);
    }
}

uint64_t flow_errors(void)
{
    return atomic_load(&errors);
}

bool flow_may_retry(int result, unsigned *retries)
{
    flow_note(result);
    return (result == -ENOMEM || result == -ENOBUFS) && ++*retries <= RETRIES_MAX;
}

/* The calls that write and read, in rotation. */
enum manner {
    WHOLE,   /* weft_write_all; weft_read */
    VECTORS, /* weft_writev_all; weft_readv */
    SOME,    /* weft_write; weft_readv_exact */
    MANNERS,
};

static size_t left_of(const struct iovec vectors[2])
{
    return vectors[0].iov_len + vectors[1].iov_len;
}

static enum manner write_manner(const struct flow *flow)
{
    return (enum manner)((flow->writes + flow->seed) % MANNERS);
}

static enum manner read_manner(const struct flow *flow)
{
    return (enum manner)((flow->reads + flow->seed) % MANNERS);
}

/* Returns whether the next call has something to write. */
static bool prepare_write(struct flow *flow)
{
    if (flow->write_err != 0 || flow->written == FLOW_BYTES) {
        return false;
    }
    if (left_of(flow->out) > 0) {
        return true; /* Repeats the call. */
    }
    flow->writes++;
    size_t most = write_manner(flow) == SOME ? SMALL : FLOW_PART - flow->writes % 7;
    size_t size = FLOW_BYTES - flow->written < most ? FLOW_BYTES - flow->written : most;
    link_fill(flow->out_bytes, size, flow->seed, flow->written);
    size_t first = write_manner(flow) == VECTORS ? size / 3 : size;
    flow->out[0] = (struct iovec){ flow->out_bytes, first };
    flow->out[1] = (struct iovec){ flow->out_bytes + first, size - first };
    flow->part_end = flow->written + size;
    return true;
}

/* Handles the result of the call. */
static void conclude_write(struct flow *flow, int result)
{
    enum manner manner = write_manner(flow);
    if (manner == SOME && result > 0) {
        CHECK_LE(result, flow->out[0].iov_len);
        flow->out[0].iov_base = (char *)flow->out[0].iov_base + result;
        flow->out[0].iov_len -= (size_t)result;
        result = 0;
    } else if (manner == SOME) {
        CHECK_NE(result, 0);
    } else if (manner == WHOLE && result == 0) {
        flow->out[0].iov_len = 0;
    }
    if (result == 0 && manner != SOME) {
        CHECK_EQ(left_of(flow->out), 0);
    }
    flow->written = flow->part_end - left_of(flow->out);
    /* If writing a whole part fails, it is unknown how much was written. */
    flow->written_most = manner == WHOLE && result < 0 ? flow->part_end : flow->written;
    if (result < 0 && (!flow_may_retry(result, &flow->write_retries) || manner == WHOLE)) {
        flow->write_err = result;
    }
}

static void prepare_read(struct flow *flow)
{
    flow->reads++;
    size_t size = read_manner(flow) == SOME ? SMALL : FLOW_PART / 2;
    size_t first = read_manner(flow) == WHOLE ? size : size / 4;
    flow->in[0] = (struct iovec){ flow->in_bytes, first };
    flow->in[1] = (struct iovec){ flow->in_bytes + first, size - first };
}

/* Returns whether more is to come. */
static bool conclude_read(struct flow *flow, int result)
{
    size_t count = result > 0 ? (size_t)result : 0;
    if (read_manner(flow) == SOME) {
        count = SMALL - left_of(flow->in);
        flow->has_ended = result == WEFT_EEND;
        result = flow->has_ended ? 0 : result;
    } else {
        flow->has_ended = result == 0;
    }
    CHECK_LE(count, FLOW_PART);
    link_check(flow->in_bytes, count, flow->seed, flow->arrived);
    flow->arrived += count;
    if (result < 0 && !flow_may_retry(result, &flow->read_retries)) {
        flow->read_err = result;
    }
    return !flow->has_ended && flow->read_err == 0;
}

/* For fibers and threads. */
int flow_write(struct flow *flow)
{
    while (prepare_write(flow)) {
        int result;
        if (write_manner(flow) == WHOLE) {
            result = weft_write_all(flow->to, flow->out_bytes, flow->out[0].iov_len, WEFT_NEVER);
        } else if (write_manner(flow) == VECTORS) {
            result = weft_writev_all(flow->to, flow->out, 2, WEFT_NEVER);
        } else {
            result =
                (int)weft_write(flow->to, flow->out[0].iov_base, flow->out[0].iov_len, WEFT_NEVER);
        }
        conclude_write(flow, result);
    }
    return flow->write_err;
}

int flow_read(struct flow *flow)
{
    int result;
    do {
        prepare_read(flow);
        if (read_manner(flow) == WHOLE) {
            result = (int)weft_read(flow->from, flow->in_bytes, flow->in[0].iov_len, WEFT_NEVER);
        } else if (read_manner(flow) == VECTORS) {
            result = (int)weft_readv(flow->from, flow->in, 2, WEFT_NEVER);
        } else {
            result = weft_readv_exact(flow->from, flow->in, 2, WEFT_NEVER);
        }
    } while (conclude_read(flow, result));
    return flow->read_err;
}

/* For stackless tasks. */
static void write_init(struct flow *flow)
{
    if (write_manner(flow) == WHOLE) {
        weft_write_all_init(&flow->write_io, flow->to, flow->out_bytes, flow->out[0].iov_len);
    } else if (write_manner(flow) == VECTORS) {
        weft_writev_all_init(&flow->write_io, flow->to, flow->out, 2);
    } else {
        weft_write_init(&flow->write_io, flow->to, flow->out[0].iov_base, flow->out[0].iov_len);
    }
}

int flow_write_body(weft_co *co, void *state)
{
    struct flow *flow = state;
    int result;
    WEFT_BEGIN(co);
    while (prepare_write(flow)) {
        write_init(flow);
        WEFT_AWAIT(co, result, &flow->write_io.future);
        conclude_write(flow, result);
    }
    WEFT_END(co, flow->write_err);
}

static void read_init(struct flow *flow)
{
    prepare_read(flow);
    if (read_manner(flow) == WHOLE) {
        weft_read_init(&flow->read_io, flow->from, flow->in_bytes, flow->in[0].iov_len);
    } else if (read_manner(flow) == VECTORS) {
        weft_readv_init(&flow->read_io, flow->from, flow->in, 2);
    } else {
        weft_readv_exact_init(&flow->read_io, flow->from, flow->in, 2);
    }
}

int flow_read_body(weft_co *co, void *state)
{
    struct flow *flow = state;
    int result;
    WEFT_BEGIN(co);
    do {
        read_init(flow);
        WEFT_AWAIT(co, result, &flow->read_io.future);
    } while (conclude_read(flow, result));
    WEFT_END(co, flow->read_err);
}

void flow_check(const struct flow *flow)
{
    CHECK_LE(flow->arrived, flow->written_most);
    if (flow->has_ended && !flow->is_cut) {
        CHECK_LE(flow->written, flow->arrived);
    }
    if (flow->writes > 0 && flow->write_err == 0) {
        CHECK_EQ(flow->written, FLOW_BYTES);
    }
}
