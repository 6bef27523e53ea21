/* SPDX-License-Identifier: MIT */
/*
 * copy.c - copying from one stream to another, in one direction or both.
 */
#include <weft/buffered.h>

#include <weft/fiber.h>
#include <weft/task.h>

#include "base/atomic.h"
#include "io/source.h"
#include "io/splice.h"
#include "io/transfer.h"
#include "sched/await.h"
#include "sched/fiber.h"

enum {
    PART = 16 * 1024, /* on the stack; a larger one is not faster */
    FULL_ENOUGH = 4,  /* full parts in a row: a bulk transfer, which continues inside the kernel */
};

static const char call[] = "weft_copy";

/* Copies until the end. Returns -EAGAIN when it detects a bulk transfer, unless to_the_end. */
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

/* --- One direction -------------------------------------------------------------------------- */

/* A future that is immediately ready, to get the waker of the task or thread that awaits it. */
struct introduction {
    weft_future future;
    weft_waker *waker;
};

static int introduce(weft_future *future)
{
    ((struct introduction *)future)->waker = weft_waker_current();
    return 0;
}

static int get_waker(weft_waker **waker, weft_time deadline, const char *caller)
{
    static const weft_future_ops introduce_ops = { .poll = introduce };
    struct introduction introduction = { .future.ops = &introduce_ops };
    int err = wf_await(&introduction.future, deadline, caller, "copy in a fiber");
    if (err != 0) {
        weft_waker_drop(introduction.waker);
        introduction.waker = NULL;
    }
    *waker = introduction.waker;
    return err;
}

/* The conditions that end a copy early. */
struct ending {
    weft_time deadline;
    _Atomic(int) *error; /* any thread: the first error, of a close or either direction, or 0 */
    weft_waker *waker;   /* of the copying task */
};

/*
 * Copies as a user of both streams. If the stream that the copy does not currently wait for is
 * closed, a guard notifies the copy.
 */
static int copy_guarded(weft_stream *from, weft_stream *to, struct wf_source **sources,
                        uint64_t *copied, const struct ending *ending)
{
    const struct wf_transfer_end end = { ending->deadline, ending->error };
    struct wf_source_guard guards[2];
    for (unsigned i = 0; i < 2; i++) {
        guards[i] = (struct wf_source_guard){ .waker = weft_waker_clone(ending->waker),
                                              .stop = ending->error };
        wf_source_guard_add(sources[i], &guards[i]);
    }
    int err = copy_all(from, to, copied, &end);
    for (unsigned i = 0; i < 2; i++) {
        wf_source_guard_remove(sources[i], &guards[i]);
    }
    /* relaxed: a number; the wake by which the transfer has noticed it orders it. */
    int first = wf_load_relaxed(ending->error);
    return err == WEFT_ECANCELED && first != 0 ? first : err;
}

static int copy(weft_stream *from, weft_stream *to, uint64_t *copied, const struct ending *ending)
{
    struct wf_source *sources[2];
    int err = wf_source_enter(from, &sources[0]);
    if (err == 0) {
        err = wf_source_enter(to, &sources[1]);
        if (err == 0) {
            err = copy_guarded(from, to, sources, copied, ending);
            wf_source_leave(sources[1]);
        }
        wf_source_leave(sources[0]);
    }
    return err;
}

int weft_copy(weft_stream *from, weft_stream *to, uint64_t *copied, weft_time deadline)
{
    _Atomic(int) error = 0;
    struct ending ending = { .deadline = deadline, .error = &error };
    uint64_t all = 0;
    int err = wf_await_begin(&deadline, "weft_copy", "copy in a fiber");
    if (err == 0) {
        err = get_waker(&ending.waker, WEFT_NEVER, call);
    }
    if (err == 0) {
        err = copy(from, to, &all, &ending);
        weft_waker_drop(ending.waker);
    }
    if (copied != NULL) {
        *copied = all;
    }
    return err;
}

/* --- Both directions -------------------------------------------------------------------- */

/*
 * The caller copies in one direction, a fiber in the other. The direction that fails first sets
 * the error and ends the other one: the caller cancels the fiber; the fiber stops the transfers
 * of the caller, whose task it must not cancel.
 */
struct both {
    weft_stream *one;
    weft_stream *other;
    weft_time deadline;
    _Atomic(int) error; /* both write: error of the direction that failed first, or 0 */
    weft_waker *caller;
};

/* Copies in one direction, then shuts down the write side of the target. */
static int copy_one_way(weft_stream *from, weft_stream *to, const struct ending *ending)
{
    uint64_t copied = 0;
    int err = copy(from, to, &copied, ending);
    if (err == 0) {
        err = weft_stream_shutdown(to, WEFT_WRITE_SIDE);
        /* The peer may already be gone, which is not an error here. */
        err = err == -ENOTCONN || err == -EOPNOTSUPP ? 0 : err;
    }
    return err;
}

/* Records the failure of one direction. Returns whether it was the first. */
static bool leave_error(struct both *both, int err)
{
    int none = 0;
    /* relaxed: a number, and the wake or the join that follows orders it. */
    return wf_cas_relaxed(&both->error, &none, err);
}

static int copy_there(void *arg)
{
    struct both *both = arg;
    struct ending ending = { .deadline = both->deadline, .error = &both->error };
    int err = get_waker(&ending.waker, WEFT_NEVER, call);
    if (err == 0) {
        err = copy_one_way(both->one, both->other, &ending);
        weft_waker_drop(ending.waker);
    }
    if (err != 0 && leave_error(both, err)) {
        weft_waker_wake(both->caller);
    }
    return 0;
}

/* Waits for the fiber, which uses this frame. The wait may be long, so a cancellation of the
 * caller is passed on to the fiber. */
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
    struct both both = { .one = one, .other = other, .deadline = deadline };
    int err = get_waker(&both.caller, deadline, "weft_copy_both");
    if (err != 0) { /* It was already canceled. */
        return err;
    }
    struct wf_task *there;
    err = wf_fiber_go_along(&there, copy_there, &both, "weft_copy_both");
    if (err == 0) {
        weft_task *task = (weft_task *)there;
        const struct ending ending = { deadline, &both.error, both.caller };
        int back = copy_one_way(other, one, &ending);
        if (back != 0) {
            (void)leave_error(&both, back);
            weft_cancel(task);
        }
        err = join_there(task, &both);
        /* relaxed: the fiber has ended, and was joined. */
        int first = wf_load_relaxed(&both.error);
        err = first != 0 ? first : err;
    }
    weft_waker_drop(both.caller);
    return err;
}
