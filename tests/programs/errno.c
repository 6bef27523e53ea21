/* SPDX-License-Identifier: MIT */
/*
 * errno.c - checks that a fiber that resumes on another worker keeps its errno and knows where
 * it runs.
 *
 * Exits with 1 on failure. tests/scripts/errno.sh builds it in many ways, because what a
 * compiler keeps of a thread across a wait depends on its optimization options.
 *
 * There are two workers. The traveler sets errno and waits. When it has left its worker, a
 * guard runs there, changes errno, and keeps the worker until the traveler has resumed and
 * checked its errno. It must resume on the other worker, because there is no third. So the
 * traveler moves at each wait, back and forth, and an address that the compiler kept is that of
 * the guard's errno.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

enum {
    TRIPS = 10,     /* three waits each */
    TOO_LONG_S = 30 /* a longer wait is considered a hang */
};

/* Ready once it is opened. */
struct hop {
    weft_future future;
    _Atomic(weft_waker *) waker;
    atomic_bool open;
};

static struct hop hop;
static atomic_int departed;        /* waits that the traveler has begun */
static atomic_int departed_from;   /* the worker that it left */
static atomic_int arrived;         /* waits that have ended and were checked */
static atomic_int guards_in_place; /* guards that are running */
static atomic_int failures;

static int hop_poll(weft_future *future)
{
    (void)future;
    if (atomic_load(&hop.open)) {
        return 0;
    }
    weft_waker_drop(atomic_exchange(&hop.waker, weft_waker_current()));
    return WEFT_PENDING;
}

static bool hop_cancel(weft_future *future)
{
    (void)future;
    return false;
}

static const weft_future_ops hop_ops = { .poll = hop_poll, .cancel = hop_cancel };

static void fail(const char *text, int is, int wanted)
{
    (void)fprintf(stderr, "errno: %s is %d, wanted %d\n", text, is, wanted);
    atomic_fetch_add(&failures, 1);
}

/* Called by the traveler. Returns on the other worker. */
static void move(void)
{
    atomic_store(&hop.open, false);
    atomic_store(&departed_from, weft_worker_current());
    atomic_fetch_add(&departed, 1);
    if (weft_await(&hop.future, WEFT_NEVER) != 0) {
        abort();
    }
}

/* The compiler sees all uses of errno in one function. Only the waits are calls. */
static int travel(void *arg)
{
    (void)arg;
    for (int i = 0; i < TRIPS; i++) {
        int first = weft_worker_current();
        errno = 100 + i;
        move();
        int seen = errno;
        int second = weft_worker_current();
        if (seen != 100 + i) {
            fail("errno after the first wait", seen, 100 + i);
        }
        atomic_fetch_add(&arrived, 1);
        move();
        if (errno != 100 + i) {
            fail("errno after the second wait", errno, 100 + i);
        }
        int third = weft_worker_current();
        errno = 200 + i;
        atomic_fetch_add(&arrived, 1);
        move();
        if (errno != 200 + i) {
            fail("errno after the third wait", errno, 200 + i);
        }
        int fourth = weft_worker_current();
        if (second != 1 - first || third != first || fourth != second) {
            fail("the worker", second * 100 + third * 10 + fourth, (1 - first) * 101 + first * 10);
        }
        atomic_fetch_add(&arrived, 1);
    }
    return 0;
}

/* Keeps a worker, with its own errno there, until the traveler has arrived on the other one. */
static int hold_worker(void *arg)
{
    int number = *(int *)arg;
    errno = 300;
    atomic_fetch_add(&guards_in_place, 1);
    while (atomic_load(&arrived) < number) {
        errno = 301;
        (void)sched_yield();
    }
    return 0;
}

/* Runs on the other worker first and leaves an errno there. */
static int pass_through(void *arg)
{
    (void)arg;
    errno = 400;
    return 0;
}

static void must(int err)
{
    if (err != 0) {
        (void)fprintf(stderr, "errno: %s\n", weft_strerror(err));
        _Exit(1);
    }
}

static void wait_for(atomic_int *count, int number)
{
    weft_time deadline = weft_after(TOO_LONG_S * WEFT_S);
    while (atomic_load(count) < number) {
        must(weft_now() < deadline ? 0 : WEFT_ETIMEDOUT);
        (void)sched_yield();
    }
}

static weft_task *go(weft_runtime *rt, int (*function)(void *arg), void *arg, uint32_t pinned)
{
    weft_task *task;
    weft_fiber_spec spec = { .function = function, .arg = arg, .pinned = pinned };
    must(weft_runtime_go(rt, &task, &spec));
    return task;
}

static void join(weft_task *task)
{
    int result;
    must(weft_join(task, &result, weft_after(TOO_LONG_S * WEFT_S)));
    must(result);
}

/* Lets the traveler wait once, from one worker to the other. */
static void move_once(weft_runtime *rt, int number)
{
    wait_for(&departed, number);
    int from = atomic_load(&departed_from);
    join(go(rt, pass_through, NULL, WEFT_PINNED_TO(1 - from)));
    weft_task *guard = go(rt, hold_worker, &number, WEFT_PINNED_TO(from));
    wait_for(&guards_in_place, number);
    atomic_store(&hop.open, true);
    weft_waker_fire(atomic_exchange(&hop.waker, NULL));
    wait_for(&arrived, number);
    join(guard);
}

int main(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    weft_runtime *rt;
    must(weft_runtime_create(&rt, &config));
    hop.future.ops = &hop_ops;
    weft_task *traveller = go(rt, travel, NULL, 0);
    for (int number = 1; number <= 3 * TRIPS; number++) {
        move_once(rt, number);
    }
    join(traveller);
    weft_runtime_destroy(rt);
    return atomic_load(&failures) == 0 ? 0 : 1;
}
