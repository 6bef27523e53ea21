/* SPDX-License-Identifier: MIT */
/*
 * timer_storm.c - many timers with every kind of deadline, half of them stopped or restarted by
 * other tasks.
 *
 * Goal:   no timer fires early, late, twice, or after its stop. On one worker, timers fire in
 *         deadline order.
 * Method: the clock is paused. While timers are started and changed, a thread advances the
 *         clock, so that stops race with calls. After that the clock advances by one
 *         millisecond at a time and stands still until the workers have done everything that is
 *         due, so a call that sees another time is late.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

#include "../unit/time/virtual.h"
#include "base/rng.h"
#include "rt.h"
#include "test.h"

enum {
    HELPERS = 4, /* fibers that stop and restart the timers of others */
    STEPS = 20000,
};

struct entry {
    weft_timer timer;
    weft_time deadline;
    bool exact;   /* due after begin, so the time of the call is known */
    bool never;   /* hours away, or the end of time */
    bool stopped; /* before it fired */
    _Atomic(uint32_t) calls;
};

static struct entry *entries;
static uint64_t count;
static weft_time begin; /* everything is started and changed before this time */
static _Atomic(uint64_t) calls;
static _Atomic(uint64_t) stops;
static _Atomic(uint64_t) restarts;
static atomic_bool is_changed;
static bool in_order; /* one worker: timers fire in the order of their milliseconds */
static weft_time last_due;

/* Returns when a timer is due: at the end of its millisecond. */
static weft_time due_time(const struct entry *entry)
{
    return (entry->deadline + WEFT_MS - 1) / WEFT_MS * WEFT_MS;
}

static void on_timer(void *arg)
{
    struct entry *entry = arg;
    weft_time now = weft_now();
    CHECK_GE(now, entry->deadline);
    CHECK_EQ(atomic_fetch_add(&entry->calls, 1), 0);
    CHECK(!entry->never);
    if (entry->exact) {
        CHECK_EQ(now, due_time(entry));
    }
    if (entry->exact && in_order) {
        CHECK_LE(last_due, due_time(entry));
        last_due = due_time(entry);
    }
    atomic_fetch_add(&calls, 1);
}

/* Chooses a deadline in the second after begin. */
static void choose_soon(struct entry *entry, struct wf_rng *rng)
{
    entry->deadline = begin + (weft_time)(1 + wf_rng_below(rng, 1000)) * WEFT_MS +
                      (weft_time)wf_rng_below(rng, 1000000);
    entry->exact = true;
}

/* Chooses a deadline before begin, which the clock may pass while the timer is changed. */
static void choose_before(struct entry *entry, struct wf_rng *rng)
{
    weft_time now = weft_now();
    entry->deadline = now + 1 + (weft_time)wf_rng_below(rng, (uint32_t)(begin - now + 1));
    entry->deadline = entry->deadline < begin ? entry->deadline : begin - 1;
}

static void choose_deadline(struct entry *entry, struct wf_rng *rng)
{
    switch (wf_rng_below(rng, 10)) {
    case 0:
        entry->deadline = 0;
        break;
    case 1:
    case 2:
        choose_before(entry, rng);
        break;
    case 3:
        entry->deadline = weft_now() + (weft_time)(1 + wf_rng_below(rng, 100)) * 3600 * WEFT_S;
        entry->never = true;
        break;
    case 4:
        entry->deadline = INT64_MAX;
        entry->never = true;
        break;
    default:
        choose_soon(entry, rng);
    }
}

/* The share of one worker in the entries. */
struct part {
    unsigned index;
    unsigned parts;
};

static bool yield_sometimes(uint64_t at)
{
    return at % 64 != 0 || weft_yield() == 0;
}

static int start_part(void *arg)
{
    const struct part *part = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), part->index);
    for (uint64_t i = part->index; i < count; i += part->parts) {
        struct entry *entry = &entries[i];
        choose_deadline(entry, &rng);
        weft_timer_start(&entry->timer, entry->deadline, 0, on_timer, entry);
        CHECK(yield_sometimes(i));
    }
    return 0;
}

/* Stops every second timer, and restarts half of those that had not fired. */
static int change_part(void *arg)
{
    const struct part *part = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed() + 1, part->index);
    for (uint64_t i = part->index; i < count; i += part->parts) {
        struct entry *entry = &entries[i];
        CHECK(yield_sometimes(i));
        if (wf_rng_below(&rng, 2) == 0) {
            continue;
        }
        entry->stopped = weft_timer_stop(&entry->timer);
        CHECK_EQ(atomic_load(&entry->calls), !entry->stopped);
        CHECK(entry->stopped || entry->deadline < begin);
        atomic_fetch_add(&stops, entry->stopped);
        if (entry->stopped && wf_rng_below(&rng, 2) == 0) {
            atomic_fetch_add(&restarts, 1);
            entry->stopped = false;
            entry->never = false;
            choose_soon(entry, &rng);
            weft_timer_start(&entry->timer, entry->deadline, 0, on_timer, entry);
        }
    }
    return 0;
}

static void run_parts(weft_runtime *rt, unsigned parts, bool pinned, int (*function)(void *arg))
{
    struct part *list = calloc(parts, sizeof *list);
    weft_task **tasks = calloc(parts, sizeof *tasks);
    CHECK(list != NULL && tasks != NULL);
    for (unsigned i = 0; i < parts; i++) {
        list[i] = (struct part){ .index = i, .parts = parts };
        weft_fiber_spec spec = { .function = function,
                                 .arg = &list[i],
                                 .pinned = pinned ? WEFT_PINNED_TO(i) : 0 };
        CHECK_EQ(weft_runtime_go(rt, &tasks[i], &spec), 0);
    }
    for (unsigned i = 0; i < parts; i++) {
        CHECK_EQ(test_join(tasks[i]), 0);
    }
    free(tasks);
    free(list);
}

static void check_calls(void)
{
    for (uint64_t i = 0; i < count; i++) {
        struct entry *entry = &entries[i];
        bool wanted = !entry->never && !entry->stopped;
        CHECK_EQ(atomic_load(&entry->calls), wanted);
    }
}

static void stop_all(void)
{
    for (uint64_t i = 0; i < count; i++) {
        bool waits = entries[i].never && !entries[i].stopped;
        CHECK_EQ(weft_timer_stop(&entries[i].timer), waits);
    }
}

/* Advances the clock toward begin while timers are started and changed. */
static void *move_clock(void *arg)
{
    weft_time step = (begin - weft_now()) / STEPS;
    (void)arg;
    while (!atomic_load(&is_changed)) {
        if (weft_now() + step < begin) {
            weft_clock_advance(step);
        }
        (void)sched_yield();
    }
    return NULL;
}

static void start_and_change(weft_runtime *rt, unsigned workers)
{
    pthread_t mover;
    atomic_store(&is_changed, false);
    CHECK_EQ(pthread_create(&mover, NULL, move_clock, NULL), 0);
    run_parts(rt, workers, true, start_part);
    run_parts(rt, HELPERS, false, change_part);
    atomic_store(&is_changed, true);
    CHECK_EQ(pthread_join(mover, NULL), 0);
}

static void storm(unsigned workers)
{
    count = test_scale(20000);
    entries = calloc(count, sizeof *entries);
    CHECK(entries != NULL);
    in_order = workers == 1;
    last_due = 0;
    atomic_store(&calls, 0);
    atomic_store(&stops, 0);
    atomic_store(&restarts, 0);
    begin = virtual_begin() + 50 * WEFT_MS;
    weft_runtime *rt = test_start(workers);
    start_and_change(rt, workers);
    for (weft_time time = begin; time <= begin + 1002 * WEFT_MS; time += WEFT_MS) {
        virtual_go_to(rt, time);
    }
    check_calls();
    stop_all();
    printf("%llu timers, %u workers: %llu calls, %llu stops, %llu restarts\n",
           (unsigned long long)count, workers, (unsigned long long)atomic_load(&calls),
           (unsigned long long)atomic_load(&stops), (unsigned long long)atomic_load(&restarts));
    /* Most timers are due after begin, and half of these are stopped. */
    CHECK_GE(atomic_load(&calls), count / 4);
    CHECK_GE(atomic_load(&stops), count / 8);
    CHECK_GE(atomic_load(&restarts), count / 16);
    weft_runtime_destroy(rt);
    virtual_end();
    free(entries);
}

static void timers_of_every_kind(void)
{
    storm(test_workers(2));
}

static void timers_of_one_worker_fire_in_deadline_order(void)
{
    storm(1);
}

TEST_MAIN({
    TEST(timers_of_every_kind),
    TEST(timers_of_one_worker_fire_in_deadline_order),
})
