/* SPDX-License-Identifier: MIT */
/*
 * futex.c - the floor of sched.wake_outside: two plain threads and one futex.
 *
 * The main thread sleeps for a moment, reads the clock and wakes the other thread, which reads
 * the clock as soon as it runs. No runtime whose workers sleep can wake one of them faster than
 * this. The command line and the output are those of weft-bench. --workers is only repeated in
 * the output.
 *
 *   ask      main writes, the sleeper reads: the number of the wake-up
 *   answer   the sleeper writes, main reads: the same number, once it has run
 *   ran_at   the sleeper writes before answer, main reads after it
 *
 * [F1] main releases ask, the sleeper acquires it: the sleeper sees everything that main did
 *      before the wake-up.
 * [F2] the sleeper releases answer, main acquires it: ran_at is set.
 */

#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BENCH_NAME "floor.futex_wake"

enum {
    SAMPLE_COUNT = 2000,
    WARMUP_COUNT = 2,
    PAUSE_NS = 300 * 1000,
    REPS_MAX = 1000,
    LINE_BYTES = 128,
};

struct word {
    _Alignas(LINE_BYTES) _Atomic uint32_t value;
};

struct bell {
    struct word ask;
    struct word answer;
    uint64_t ran_at;
    uint32_t wake_count; /* Total number of wake-ups. */
};

struct options {
    bool json;
    const char *filter;
    long workers;
    long reps;
};

_Noreturn static void fail(const char *message)
{
    fprintf(stderr, "rival-futex: %s\n", message);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Stores the number in the word and wakes the thread that waits for it. */
static void word_set(struct word *word, uint32_t number)
{
    /* release [F1] [F2]: the waiter sees everything this thread did before. */
    atomic_store_explicit(&word->value, number, memory_order_release);
    syscall(SYS_futex, &word->value, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Sleeps until the word holds the number. */
static void word_wait(struct word *word, uint32_t number)
{
    for (;;) {
        /* acquire [F1] [F2]: pairs with word_set(). */
        uint32_t seen = atomic_load_explicit(&word->value, memory_order_acquire);
        if (seen == number) {
            return;
        }
        if (seen != number - 1) {
            fail("a wake-up was missed");
        }
        syscall(SYS_futex, &word->value, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    }
}

static void *sleeper_main(void *arg)
{
    struct bell *bell = arg;
    for (uint32_t number = 1; number <= bell->wake_count; number++) {
        word_wait(&bell->ask, number);
        bell->ran_at = now_ns();
        word_set(&bell->answer, number);
    }
    return NULL;
}

/* Measures one wake-up, from just before it until the sleeper runs. */
static double wake_once(struct bell *bell, uint32_t number)
{
    nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    uint64_t woken_at = now_ns();
    word_set(&bell->ask, number);
    word_wait(&bell->answer, number);
    if (bell->ran_at < woken_at) {
        fail("the sleeper ran before its wake-up");
    }
    return (double)(bell->ran_at - woken_at);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Fills samples with the p50 of each repetition, without the warm-ups. */
static void measure(double *samples, long reps)
{
    static struct bell bell;
    static double latencies[SAMPLE_COUNT];
    bell.wake_count = (uint32_t)((WARMUP_COUNT + reps) * SAMPLE_COUNT);

    pthread_t sleeper;
    if (pthread_create(&sleeper, NULL, sleeper_main, &bell) != 0) {
        fail("cannot start a thread");
    }
    uint32_t number = 0;
    for (long rep = -WARMUP_COUNT; rep < reps; rep++) {
        for (int i = 0; i < SAMPLE_COUNT; i++) {
            latencies[i] = wake_once(&bell, ++number);
        }
        qsort(latencies, SAMPLE_COUNT, sizeof(latencies[0]), compare);
        if (rep >= 0) {
            samples[rep] = latencies[SAMPLE_COUNT / 2];
        }
    }
    pthread_join(sleeper, NULL);
    if (number != bell.wake_count) {
        fail("not every wake-up was made");
    }
}

static void report(const struct options *options, double *samples)
{
    long n = options->reps;
    qsort(samples, (size_t)n, sizeof(samples[0]), compare);
    double median = (samples[(n - 1) / 2] + samples[n / 2]) / 2;
    double min = samples[0];
    double max = samples[n - 1];
    if (options->json) {
        printf("{\"bench\":\"%s\",\"workers\":%ld,\"unit\":\"ns\",\"median\":%.2f,"
               "\"min\":%.2f,\"max\":%.2f,\"n\":%ld}\n",
               BENCH_NAME, options->workers, median, min, max, n);
    } else {
        printf("%-20s %3ld %14.2f ns    [%.2f - %.2f] n=%ld\n", BENCH_NAME, options->workers,
               median, min, max, n);
    }
}

static long positive(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*end != '\0' || number < 1 || number > REPS_MAX) {
        fail("a number from 1 to 1000 is wanted");
    }
    return number;
}

static struct options parse_options(int argc, char **argv)
{
    struct options options = { .filter = "", .workers = 1, .reps = 7 };
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0) {
            options.json = true;
        } else if (strcmp(argv[i], "--workers") == 0 && has_value) {
            options.workers = positive(argv[++i]);
        } else if (strcmp(argv[i], "--filter") == 0 && has_value) {
            options.filter = argv[++i];
        } else if (strcmp(argv[i], "--reps") == 0 && has_value) {
            options.reps = positive(argv[++i]);
        } else {
            fail("usage: rival-futex [--json] [--workers N] [--filter NAME] [--reps R]");
        }
    }
    return options;
}

int main(int argc, char **argv)
{
    struct options options = parse_options(argc, argv);
    if (strncmp(BENCH_NAME, options.filter, strlen(options.filter)) != 0) {
        fail("the only row is " BENCH_NAME);
    }
    static double samples[REPS_MAX];
    measure(samples, options.reps);
    report(&options, samples);
    return 0;
}
