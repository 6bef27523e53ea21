/* SPDX-License-Identifier: MIT */
/*
 * calls.h - table of all awaiting calls of the public API.
 *
 * An entry knows how to bring its object into a state in which the call waits, how to make the
 * object ready, how to close it, and how to return what the call has acquired. The tests combine
 * entries with contexts and conditions (tests/integration/calls.c), and check each outcome
 * against the order of precedence: canceled, the object's answer, the deadline, a wait.
 *
 * tidy checks that every awaiting call of the headers is in the table.
 */
#ifndef TEST_CALLS_H
#define TEST_CALLS_H

#include <sched.h>

#include <weft.h>

enum {
    CALL_NO_DEADLINE = 1 << 0,      /* takes no deadline */
    CALL_NEVER_CANCELED = 1 << 1,   /* is documented as uncancelable */
    CALL_NEVER_WAITS = 1 << 2,      /* its object is always ready */
    CALL_NEVER_READY = 1 << 3,      /* always waits first */
    CALL_READY_BEFORE = 1 << 4,     /* cannot be made ready while a call waits */
    CALL_FIBERS_ONLY = 1 << 5,      /* not for plain threads */
    CALL_TASKS_ONLY = 1 << 6,       /* needs a runtime: not for plain threads without one */
    CALL_PREPARED_ONLY = 1 << 7,    /* has no blocking form */
    CALL_WAITS_FOR_THREAD = 1 << 8, /* waits briefly even if ready: a deadline may pass */
    CALL_ENDS = 1 << 9,             /* ends its object even if it is canceled or late */
    CALL_STARTS_TASKS = 1 << 10,    /* its tasks begin canceled if the deadline has passed */
    CALL_ALSO_IN_BODY = 1 << 11,    /* never suspends: also for stackless tasks and callbacks */
    CALL_PREPARED_ANEW = 1 << 12,   /* its future cannot be awaited again */
};

struct call {
    const char *name;
    unsigned flags;
    int64_t ready; /* the result when the object is ready */
    int64_t also;  /* another result that counts as success, or 0 */
    /* On a fiber, with a zeroed state: creates the object such that the call would wait. */
    void (*setup)(void *state);
    /* On a plain thread: makes the next call, or the waiting one, complete immediately. */
    void (*make_ready)(void *state);
    /* On a plain thread, after make_ready, if no call waits: buffers what has arrived. May be
     * NULL. */
    void (*prefetch)(void *state);
    int64_t (*call)(void *state, weft_time deadline);
    /* Prepares the same call. NULL if it has no prepared form. */
    weft_future *(*prep)(void *state);
    /* On a plain thread, after a success: checks what has arrived, and restores the state in
     * which the call waits. NULL: nothing to do. */
    void (*undo)(void *state);
    /* On a plain thread: closes the object; the result is then closed. NULL if it cannot be
     * closed. */
    void (*close)(void *state);
    int64_t closed;
    /* On a fiber. NULL: nothing to do. */
    void (*teardown)(void *state);
};

struct call_group {
    const struct call *calls;
    size_t count;
};

/* One group per subject. */
extern const struct call_group calls_sync;
extern const struct call_group calls_chan;
extern const struct call_group calls_flow;
extern const struct call_group calls_time;
extern const struct call_group calls_io;
extern const struct call_group calls_net;

/* Calls that return without a ready object: the arguments are invalid, or there is nothing to
 * do. */
extern const struct call_group calls_early;

enum {
    CALL_STATE_SIZE = 2048,
};

/* The runtime of the current test. */
extern weft_runtime *calls_runtime;

/* On a plain thread: waits until other threads have made the condition true. */
#define calls_wait_until(condition)                                                                \
    do {                                                                                           \
        while (!(condition)) {                                                                     \
            (void)sched_yield();                                                                   \
        }                                                                                          \
    } while (0)

/* Starts a fiber on the runtime of the test. */
weft_task *calls_go(int (*function)(void *arg), void *arg);

#define CALL_STATE(type) _Static_assert(sizeof(type) <= CALL_STATE_SIZE, "CALL_STATE_SIZE")
#define CALL_GROUP(name, table)                                                                    \
    const struct call_group name = { table, sizeof(table) / sizeof((table)[0]) }

#endif
