/* SPDX-License-Identifier: MIT */
/*
 * wake.c - rows for wake-ups: of an idle runtime and between workers, with a bare futex as the
 * floor.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"

enum {
    SAMPLES = 2000,
    PAUSE_US = 300, /* long enough for every thread to go to sleep */
    ROUND_TRIPS = 100000,
};

static void futex_wait(_Atomic(uint32_t) *word, uint32_t value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic(uint32_t) *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

/* The sleeper's answer to the waker: the time at which it ran. */
struct answer {
    _Atomic(uint32_t) ready;
    weft_time at;
};

static void give_answer(struct answer *answer)
{
    answer->at = weft_now();
    atomic_store(&answer->ready, 1);
    futex_wake(&answer->ready);
}

static weft_time take_answer(struct answer *answer)
{
    while (atomic_load(&answer->ready) == 0) {
        futex_wait(&answer->ready, 0);
    }
    atomic_store(&answer->ready, 0);
    return answer->at;
}

/* sched.wake_outside: a plain thread wakes a task that is pending. */

struct sleeper {
    _Atomic(uint32_t) calls; /* number of times it may run */
    _Atomic(weft_waker *) waker;
    struct answer answer;
};

static int sleeper_body(weft_co *co, void *state)
{
    struct sleeper *s = *(struct sleeper **)state;
    (void)co;
    uint32_t calls = atomic_load(&s->calls);
    if (calls > SAMPLES) {
        weft_waker_drop(atomic_load(&s->waker));
        return 0;
    }
    if (calls > 0) {
        give_answer(&s->answer);
    } else {
        atomic_store(&s->waker, weft_waker_current());
    }
    return WEFT_PENDING;
}

static double wake_outside(const struct bench_run *run)
{
    struct sleeper sleeper = { 0 };
    struct sleeper *state = &sleeper;
    weft_task *task;
    weft_spec spec = { .body = sleeper_body, .state = &state, .state_size = sizeof state };
    BENCH_CHECK(weft_runtime_spawn(run->rt, &task, &spec) == 0);
    while (atomic_load(&sleeper.waker) == NULL) {
    }
    double *latencies = malloc(SAMPLES * sizeof *latencies);
    BENCH_CHECK(latencies != NULL);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        bench_wait_until(weft_now() + PAUSE_US * WEFT_US);
        atomic_store(&sleeper.calls, i + 1);
        weft_time start = weft_now();
        weft_waker_wake(atomic_load(&sleeper.waker));
        latencies[i] = (double)(take_answer(&sleeper.answer) - start);
    }
    atomic_store(&sleeper.calls, SAMPLES + 1);
    weft_waker_wake(atomic_load(&sleeper.waker));
    BENCH_CHECK(weft_join(task, NULL, WEFT_NEVER) == 0);
    double p50 = bench_median(latencies, SAMPLES);
    free(latencies);
    return p50;
}

/* floor.futex_wake: the same between two plain threads, with a bare futex. */

struct futex_sleeper {
    _Atomic(uint32_t) calls;
    struct answer answer;
};

static void *futex_sleeper_main(void *arg)
{
    struct futex_sleeper *s = arg;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        while (atomic_load(&s->calls) == i) {
            futex_wait(&s->calls, i);
        }
        give_answer(&s->answer);
    }
    return NULL;
}

static double futex_floor(const struct bench_run *run)
{
    (void)run;
    struct futex_sleeper sleeper = { 0 };
    pthread_t thread;
    BENCH_CHECK(pthread_create(&thread, NULL, futex_sleeper_main, &sleeper) == 0);
    double *latencies = malloc(SAMPLES * sizeof *latencies);
    BENCH_CHECK(latencies != NULL);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        bench_wait_until(weft_now() + PAUSE_US * WEFT_US);
        weft_time start = weft_now();
        atomic_store(&sleeper.calls, i + 1);
        futex_wake(&sleeper.calls);
        latencies[i] = (double)(take_answer(&sleeper.answer) - start);
    }
    (void)pthread_join(thread, NULL);
    double p50 = bench_median(latencies, SAMPLES);
    free(latencies);
    return p50;
}

/*
 * sched.cross_wake: two tasks wake each other alternately; the figure is per round trip. The
 * pinned variant keeps them on two workers, so that every wake-up crosses threads.
 */

struct player {
    struct table *table;
    uint32_t me;
    uint32_t turns;
};

struct table {
    _Atomic(uint32_t) turn;
    _Atomic(weft_waker *) wakers[2];
};

static int player_body(weft_co *co, void *state)
{
    struct player *s = state;
    (void)co;
    struct table *table = s->table;
    if (atomic_load(&table->wakers[s->me]) == NULL) {
        atomic_store(&table->wakers[s->me], weft_waker_current());
    }
    weft_waker *other = atomic_load(&table->wakers[1 - s->me]);
    if (other == NULL) {
        weft_waker_fire(weft_waker_current());
        return WEFT_PENDING;
    }
    if (atomic_load(&table->turn) != s->me) {
        return WEFT_PENDING;
    }
    s->turns++;
    atomic_store(&table->turn, 1 - s->me);
    weft_waker_wake(other);
    return s->turns == ROUND_TRIPS ? 0 : WEFT_PENDING;
}

static double play(const struct bench_run *run, bool pinned)
{
    struct table table = { 0 };
    weft_task *tasks[2];
    weft_time start = weft_now();
    for (uint32_t i = 0; i < 2; i++) {
        struct player player = { .table = &table, .me = i };
        weft_spec spec = { .body = player_body,
                           .state = &player,
                           .state_size = sizeof player,
                           .pinned = pinned ? WEFT_PINNED_TO(i % run->workers) : 0 };
        BENCH_CHECK(weft_runtime_spawn(run->rt, &tasks[i], &spec) == 0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        int result;
        BENCH_CHECK(weft_join(tasks[i], &result, WEFT_NEVER) == 0);
        BENCH_CHECK(result == 0);
    }
    double ns = (double)(weft_now() - start);
    weft_waker_drop(atomic_load(&table.wakers[0]));
    weft_waker_drop(atomic_load(&table.wakers[1]));
    return ns / ROUND_TRIPS;
}

static double cross_wake(const struct bench_run *run)
{
    return play(run, false);
}

static double cross_wake_pinned(const struct bench_run *run)
{
    return play(run, true);
}

const struct bench_row bench_wake_rows[] = {
    { .name = "sched.cross_wake", .unit = "ns", .run = cross_wake, .warmups = 2 },
    { .name = "sched.cross_wake_pinned",
      .unit = "ns",
      .run = cross_wake_pinned,
      .warmups = 1,
      .workers_min = 2 },
    { .name = "sched.wake_outside",
      .unit = "ns",
      .run = wake_outside,
      .warmups = 1,
      .reps_max = 9 },
    { .name = "floor.futex_wake",
      .unit = "ns",
      .run = futex_floor,
      .warmups = 1,
      .reps_max = 9,
      .without_runtime = true },
    { 0 },
};
