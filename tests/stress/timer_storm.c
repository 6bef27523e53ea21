/* SPDX-License-Identifier: MIT */
/*
 * timer_storm.c - as many timers as asked for, of every kind of deadline, half of them
 * stopped or started anew from elsewhere: none calls early, twice, or after its stop.
 * How late they are is printed.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

#include "base/rng.h"
#include "rt.h"
#include "test.h"

enum {
    HELPERS = 4, /* fibers that stop and start what others have started */
};

struct entry {
    weft_timer timer;
    weft_time deadline;
    bool exact;   /* to be called between the start of the run and its end */
    bool never;   /* hours, or the end of time */
    bool stopped; /* before it was called */
    _Atomic(uint32_t) calls;
};

static struct entry *entries;
static uint64_t count;
static weft_time begin; /* everything is started and changed before */
static _Atomic(uint64_t) calls;
static _Atomic(uint64_t) late; /* by over 2 ms */
static _Atomic(int64_t) latest;
static bool in_order; /* one worker: calls come in the order of their milliseconds */
static weft_time last_tick;

static void note_lateness(weft_time lateness)
{
    if (lateness > 2 * WEFT_MS) {
        atomic_fetch_add(&late, 1);
    }
    int64_t before = atomic_load(&latest);
    while (lateness > before && !atomic_compare_exchange_weak(&latest, &before, lateness)) {
    }
}

static void called(void *arg)
{
    struct entry *entry = arg;
    weft_time now = weft_now();
    CHECK_GE(now, entry->deadline);
    CHECK_EQ(atomic_fetch_add(&entry->calls, 1), 0);
    CHECK(!entry->never);
    if (entry->exact) {
        note_lateness(now - entry->deadline);
        if (in_order) {
            weft_time tick = (entry->deadline + WEFT_MS - 1) / WEFT_MS;
            CHECK_GE(tick, last_tick);
            last_tick = tick;
        }
    }
    atomic_fetch_add(&calls, 1);
}

/* Some time in the second after the beginning; on a slow machine that may be now. */
static void choose_soon(struct entry *entry, struct wf_rng *rng)
{
    entry->deadline = begin + (weft_time)(1 + wf_rng_below(rng, 1000)) * WEFT_MS +
                      (weft_time)wf_rng_below(rng, 1000000);
    entry->exact = entry->deadline > weft_now() + 2 * WEFT_MS;
}

static void choose_deadline(struct entry *entry, struct wf_rng *rng)
{
    switch (wf_rng_below(rng, 10)) {
    case 0:
        entry->deadline = 0;
        break;
    case 1:
        entry->deadline = weft_now() + 1;
        break;
    case 2:
        entry->deadline = weft_now() + (weft_time)(1 + wf_rng_below(rng, 100)) * 3600 * WEFT_S;
        entry->never = true;
        break;
    case 3:
        entry->deadline = INT64_MAX;
        entry->never = true;
        break;
    default:
        choose_soon(entry, rng);
    }
}

/* The part of the entries that is the worker's. */
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
        weft_timer_start(&entry->timer, entry->deadline, 0, called, entry);
        CHECK(yield_sometimes(i));
    }
    return 0;
}

/* Every second timer that waits for its call is stopped, or starts anew. */
static int change_part(void *arg)
{
    const struct part *part = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed() + 1, part->index);
    for (uint64_t i = part->index; i < count; i += part->parts) {
        struct entry *entry = &entries[i];
        if (wf_rng_below(&rng, 2) == 0 || entry->deadline < begin) {
            continue;
        }
        if (weft_timer_stop(&entry->timer)) {
            entry->stopped = true;
            entry->exact = false;
        }
        if (entry->stopped && wf_rng_below(&rng, 2) == 0) {
            entry->stopped = false;
            entry->never = false;
            choose_soon(entry, &rng);
            weft_timer_start(&entry->timer, entry->deadline, 0, called, entry);
        }
        CHECK(yield_sometimes(i));
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

static int sleep_until(void *arg)
{
    return weft_sleep_until(*(const weft_time *)arg);
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

static void storm(unsigned workers)
{
    count = test_scale(20000);
    entries = calloc(count, sizeof *entries);
    CHECK(entries != NULL);
    in_order = workers == 1;
    last_tick = 0;
    atomic_store(&calls, 0);
    atomic_store(&late, 0);
    atomic_store(&latest, 0);
    weft_runtime *rt = test_start(workers);
    begin = weft_now() + (weft_time)(50 + count / 1000) * WEFT_MS;
    run_parts(rt, workers, true, start_part);
    run_parts(rt, HELPERS, false, change_part);
    bool in_time = weft_now() < begin;
    weft_time end = begin + 1100 * WEFT_MS;
    CHECK_EQ(test_run(rt, sleep_until, &end), 0);
    check_calls();
    stop_all();
    printf("%llu timers, %u workers: %llu calls, %llu late by over 2 ms, the latest by %.2f ms%s\n",
           (unsigned long long)count, workers, (unsigned long long)atomic_load(&calls),
           (unsigned long long)atomic_load(&late), (double)atomic_load(&latest) / WEFT_MS,
           in_time ? "" : " (and the start was late)");
    weft_runtime_destroy(rt);
    free(entries);
}

static void timers_of_every_kind(void)
{
    storm(test_workers(2));
}

static void calls_come_in_order(void)
{
    storm(1);
}

TEST_MAIN({
    TEST(timers_of_every_kind),
    TEST(calls_come_in_order),
})
