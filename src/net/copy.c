/* SPDX-License-Identifier: MIT */
/*
 * copy.c - from one stream to another.
 */
#include <weft/buffered.h>

#include <weft/fiber.h>
#include <weft/task.h>

#include "base/atomic.h"
#include "io/source.h"
#include "io/splice.h"
#include "io/transfer.h"
#include "sched/await.h"

enum {
    PART = 16 * 1024, /* on the stack; more makes it no faster */
    FULL_ENOUGH = 4,  /* full parts in a row: what comes is much, and goes on inside the kernel */
};

static const char call[] = "weft_copy";

/* Until the end, or -EAGAIN: there is much. */
static int copy_parts(weft_stream *from, weft_stream *to, uint64_t *copied, bool to_the_end,
                      const struct wf_transfer_end *end)
{
    char buffer[PART];
    weft_io io;
    unsigned full = 0;
    int n;
    for (;;) {
        weft_read_init(&io, from, buffer, sizeof buffer);
        n = wf_transfer_await_end(&io, end, call);
        if (n <= 0) {
            return n;
        }
        struct iovec rest = { buffer, (size_t)n };
        weft_writev_all_init(&io, to, &rest, 1);
        int err = wf_transfer_await_end(&io, end, call);
        *copied += (uint64_t)n - rest.iov_len;
        if (err != 0) {
            return err;
        }
        full = n == PART ? full + 1 : 0;
        if (full == FULL_ENOUGH && !to_the_end) {
            return -EAGAIN;
        }
    }
}

static int copy_all(weft_stream *from, weft_stream *to, uint64_t *copied,
                    const struct wf_transfer_end *end)
{
    int err = copy_parts(from, to, copied, false, end);
    if (err == -EAGAIN) {
        err = wf_splice(from, to, copied, end);
        if (err == -EOPNOTSUPP) {
            err = copy_parts(from, to, copied, true, end);
        }
    }
    return err;
}

/* It is at both streams all the while: who closes one of them ends it, wherever it waits. */
static int copy(weft_stream *from, weft_stream *to, uint64_t *copied,
                const struct wf_transfer_end *end)
{
    struct wf_source *sources[2];
    int err = wf_source_enter(from, &sources[0]);
    if (err == 0) {
        err = wf_source_enter(to, &sources[1]);
        if (err == 0) {
            err = copy_all(from, to, copied, end);
            wf_source_leave(sources[1]);
        }
        wf_source_leave(sources[0]);
    }
    return err;
}

int weft_copy(weft_stream *from, weft_stream *to, uint64_t *copied, weft_time deadline)
{
    const struct wf_transfer_end end = { .deadline = deadline };
    uint64_t all = 0;
    int err = wf_await_begin(&deadline, "weft_copy", "copy in a fiber");
    err = err == 0 ? copy(from, to, &all, &end) : err;
    if (copied != NULL) {
        *copied = all;
    }
    return err;
}

/* --- Both ways -------------------------------------------------------------------------- */

/*
 * The caller copies one way, and a fiber the other. The direction that fails first leaves its
 * error, and ends the other one: the caller cancels the fiber, and the fiber stops the transfers of
 * the caller, whose task it must not cancel.
 */
struct both {
    weft_stream *one;
    weft_stream *other;
    weft_time deadline;
    _Atomic(int) error; /* both write: of the direction that failed first, or 0 */
    weft_waker *caller;
};

/* Copies one way, and tells the other side when there is no more. */
static int copy_one_way(weft_stream *from, weft_stream *to, const struct wf_transfer_end *end)
{
    uint64_t copied = 0;
    int err = copy(from, to, &copied, end);
    if (err == 0) {
        err = weft_stream_shutdown(to, WEFT_WRITE_SIDE);
        /* The peer may have gone already: that is no error of ours. */
        err = err == -ENOTCONN || err == -EOPNOTSUPP ? 0 : err;
    }
    return err;
}

/* One direction has failed. Was it the first? */
static bool leave_error(struct both *both, int err)
{
    int none = 0;
    /* relaxed: a number, and the wake or the join that follows orders it. */
    return wf_cas_relaxed(&both->error, &none, err);
}

static int copy_there(void *arg)
{
    struct both *both = arg;
    const struct wf_transfer_end end = { .deadline = both->deadline };
    int err = copy_one_way(both->one, both->other, &end);
    if (err != 0 && leave_error(both, err)) {
        weft_waker_wake(both->caller);
    }
    return 0;
}

/* A future that is ready at once: for the waker of who awaits it, on whatever it waits. */
struct introduction {
    weft_future future;
    weft_waker *waker;
};

static int introduce(weft_future *future)
{
    ((struct introduction *)future)->waker = weft_waker_current();
    return 0;
}

/* Waits for the fiber, which uses this frame. It may take long: a cancel is meant for it, too. */
static int join_there(weft_task *task, struct both *both)
{
    int err = weft_join(task, NULL, WEFT_NEVER);
    if (err == 0) {
        return 0;
    }
    (void)leave_error(both, err);
    weft_cancel(task);
    weft_shield_enter();
    err = weft_join(task, NULL, WEFT_NEVER);
    weft_shield_leave();
    return err;
}

int weft_copy_both(weft_stream *one, weft_stream *other, weft_time deadline)
{
    static const weft_future_ops introduce_ops = { .poll = introduce };
    struct introduction introduction = { .future.ops = &introduce_ops };
    int err = wf_await(&introduction.future, deadline, "weft_copy_both", "copy in a fiber");
    if (err != 0) { /* It was cancelled before. */
        weft_waker_drop(introduction.waker);
        return err;
    }
    struct both both = { one, other, deadline, 0, introduction.waker };
    weft_task *task;
    err = weft_go(&task, copy_there, &both);
    if (err == 0) {
        const struct wf_transfer_end end = { deadline, &both.error };
        int back = copy_one_way(other, one, &end);
        if (back != 0 && leave_error(&both, back)) {
            weft_cancel(task);
        }
        err = join_there(task, &both);
        /* relaxed: the fiber has ended, and was joined. */
        int first = wf_load_relaxed(&both.error);
        err = first != 0 ? first : err;
    }
    weft_waker_drop(introduction.waker);
    return err;
}
