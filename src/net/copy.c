/* SPDX-License-Identifier: MIT */
/*
 * copy.c - from one stream to another.
 */
#include <weft/buffered.h>

#include <weft/fiber.h>
#include <weft/task.h>

#include "io/splice.h"
#include "io/stream.h"

enum {
    PART = 16 * 1024, /* on the stack; more makes it no faster */
    FULL_ENOUGH = 4,  /* full parts in a row: what comes is much, and goes on inside the kernel */
};

/* Until the end, or -EAGAIN: there is much. */
static int copy_parts(weft_stream *from, weft_stream *to, uint64_t *copied, bool to_the_end,
                      weft_time deadline)
{
    char buffer[PART];
    unsigned full = 0;
    ssize_t n;
    while ((n = weft_read(from, buffer, sizeof buffer, deadline)) > 0) {
        struct iovec rest = { buffer, (size_t)n };
        int err = weft_writev_all(to, &rest, 1, deadline);
        *copied += (uint64_t)n - rest.iov_len;
        if (err != 0) {
            return err;
        }
        full = n == PART ? full + 1 : 0;
        if (full == FULL_ENOUGH && !to_the_end) {
            return -EAGAIN;
        }
    }
    return (int)n;
}

static int copy_all(weft_stream *from, weft_stream *to, uint64_t *copied, weft_time deadline)
{
    int err = copy_parts(from, to, copied, false, deadline);
    if (err == -EAGAIN) {
        err = wf_splice(from, to, copied, deadline);
        if (err == -EOPNOTSUPP) {
            err = copy_parts(from, to, copied, true, deadline);
        }
    }
    return err;
}

/* It is at both streams all the while: who closes one of them ends it, wherever it waits. */
int weft_copy(weft_stream *from, weft_stream *to, uint64_t *copied, weft_time deadline)
{
    static const char call[] = "weft_copy";
    uint64_t all = 0;
    int err = from->ops->enter(from, call);
    if (err == 0) {
        err = to->ops->enter(to, call);
        if (err == 0) {
            err = copy_all(from, to, &all, deadline);
            to->ops->leave(to);
        }
        from->ops->leave(from);
    }
    if (copied != NULL) {
        *copied = all;
    }
    return err;
}

/* One direction. */
struct direction {
    weft_stream *from;
    weft_stream *to;
    weft_time deadline;
};

static int copy_one_way(void *arg)
{
    const struct direction *direction = arg;
    int err = weft_copy(direction->from, direction->to, NULL, direction->deadline);
    if (err == 0) {
        int shut = weft_stream_shutdown(direction->to, WEFT_WRITE_SIDE);
        /* The peer may have gone already: that is no error of ours. */
        err = shut == -ENOTCONN || shut == -EOPNOTSUPP ? 0 : shut;
    }
    if (err != 0) {
        /* So that the other direction ends, too; what is shut already is. */
        int from = weft_stream_shutdown(direction->from, WEFT_BOTH_SIDES);
        int to = weft_stream_shutdown(direction->to, WEFT_BOTH_SIDES);
        (void)from;
        (void)to;
    }
    return err;
}

int weft_copy_both(weft_stream *one, weft_stream *other, weft_time deadline)
{
    struct direction there = { one, other, deadline };
    struct direction back = { other, one, deadline };
    weft_task *task;
    int there_result = 0;
    int err = weft_go(&task, copy_one_way, &there);
    if (err != 0) {
        return err;
    }
    int result = copy_one_way(&back);
    /* The other one uses this frame. It may go on for long: a cancel is meant for it, too. */
    err = weft_join(task, &there_result, WEFT_NEVER);
    if (err != 0) {
        weft_cancel(task);
        weft_shield_enter();
        int joined = weft_join(task, &there_result, WEFT_NEVER);
        weft_shield_leave();
        err = joined != 0 ? joined : err;
    }
    return result != 0 ? result : err != 0 ? err : there_result;
}
