/* SPDX-License-Identifier: MIT */
/*
 * clock_race_test.c - pausing, advancing and resuming the clock while other threads read it and
 * sleep on it.
 *
 * The other clock tests are in tests/unit/base/clock_test.c.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/rng.h"
#include "step.h"
#include "test.h"
#include "timing.h"

/* Returns when a race that starts now has run long enough, on the machine's clock. */
static int64_t race_end(void)
{
    return wf_clock_real() + (int64_t)test_scale(test_is_sanitized() ? 6000 : 300) * WEFT_MS;
}

static void spin(uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        wf_cpu_relax();
    }
}

struct readers {
    _Atomic(uint64_t) stop;
    _Atomic(uint64_t) reads;
};

static void *read_clock(void *arg)
{
    struct readers *readers = arg;
    weft_time last = weft_now();
    uint64_t reads = 0;
    while (atomic_load_explicit(&readers->stop, memory_order_relaxed) == 0) {
        weft_time now = weft_now();
        CHECK_LE(last, now);
        last = now;
        reads++;
    }
    atomic_fetch_add(&readers->reads, reads);
    return NULL;
}

/*
 * Goal:   no thread sees time go backward while another thread pauses and resumes the clock.
 * Method: more readers than cores, so some are preempted in the middle of reading the clock. A
 *         pause lasts longer than the clock is advanced by, so the time that a paused clock has
 *         lost shows.
 */
static void time_never_goes_backward_for_any_reader(void)
{
    struct readers readers = { 0 };
    pthread_t threads[4];
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, read_clock, &readers), 0);
    }
    for (int64_t end = race_end(); wf_clock_real() < end;) {
        weft_clock_pause();
        spin(wf_rng_below(&rng, 1u << wf_rng_below(&rng, 9)));
        weft_clock_advance(wf_rng_below(&rng, 100));
        weft_clock_resume();
        spin(wf_rng_below(&rng, 1u << wf_rng_below(&rng, 9)));
    }
    atomic_store(&readers.stop, 1);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_LT(0, readers.reads);
}

/* --- Races ------------------------------------------------------------------------------ */

struct race {
    weft_time length; /* of one sleep */
    _Atomic(uint64_t) stop;
    _Atomic(uint64_t) round;
    _Atomic(uint64_t) begun;
    _Atomic(uint64_t) ended;
};

static void *sleep_each_round(void *arg)
{
    struct race *race = arg;
    struct wf_rng rng;
    _Atomic(uint32_t) word = 0;
    wf_rng_seed(&rng, test_seed(), (uint64_t)(uintptr_t)&rng);
    for (uint64_t round = 1;; round++) {
        test_spin_for(&race->round, round);
        if (atomic_load(&race->stop) != 0) {
            return NULL;
        }
        weft_time deadline = weft_after(race->length);
        atomic_fetch_add(&race->begun, 1);
        spin(wf_rng_below(&rng, 1u << wf_rng_below(&rng, 5)));
        if (round % 2 == 0) {
            CHECK_EQ(weft_sleep_until(deadline), 0);
        } else {
            while (wf_clock_futex_wait(&word, 0, deadline) != -ETIMEDOUT) {
            }
        }
        CHECK_GE(weft_now(), deadline);
        atomic_fetch_add(&race->ended, 1);
    }
}

/* Takes the clock's lock every now and then, to hold up the others. */
static void *disturb(void *arg)
{
    struct race *race = arg;
    _Atomic(uint32_t) word = 0;
    while (atomic_load(&race->stop) == 0) {
        CHECK_EQ(wf_clock_futex_wait(&word, 0, 0), -ETIMEDOUT);
    }
    return NULL;
}

/* Runs rounds in which each sleeper starts on a paused clock and move() ends its sleep. */
static void run_sleeper_race(struct race *race, int count, void (*move)(struct race *race))
{
    pthread_t threads[8];
    pthread_t disturber;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    CHECK_EQ(pthread_create(&disturber, NULL, disturb, race), 0);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, sleep_each_round, race), 0);
    }
    uint64_t rounds = 0;
    for (int64_t end = race_end(); wf_clock_real() < end;) {
        weft_clock_pause();
        atomic_store(&race->round, ++rounds);
        test_spin_for(&race->begun, rounds * (uint64_t)count);
        spin(wf_rng_below(&rng, 1u << wf_rng_below(&rng, 5)));
        move(race);
        test_spin_for(&race->ended, rounds * (uint64_t)count);
        weft_clock_resume();
    }
    atomic_store(&race->stop, 1);
    atomic_store(&race->round, UINT64_MAX);
    CHECK_EQ(pthread_join(disturber, NULL), 0);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

static void advance_past_deadline(struct race *race)
{
    weft_clock_advance(race->length);
}

/*
 * Goal:   a thread on its way to sleep does not miss an advance of the clock.
 * Method: the clock is advanced past the deadline while the thread reads the clock, joins the
 *         list of sleepers, or is in the kernel. The thread has no other deadline, so a lost
 *         wake-up hangs the test.
 */
static void advance_at_any_moment_ends_sleep(void)
{
    for (int count = 1; count <= 4; count += 3) {
        struct race race = { .length = 1 };
        run_sleeper_race(&race, count, advance_past_deadline);
    }
}

static void resume_before_deadline(struct race *race)
{
    (void)race;
    weft_clock_resume();
}

/*
 * Goal:   a thread on its way to sleep does not miss that the clock runs again.
 * Method: same as advance_at_any_moment_ends_sleep, but the machine's clock ends the sleep,
 *         soon after.
 */
static void resume_at_any_moment_lets_sleep_end(void)
{
    for (int count = 1; count <= 4; count += 3) {
        struct race race = { .length = 20 * WEFT_US };
        run_sleeper_race(&race, count, resume_before_deadline);
    }
}

/* --- Step by step ------------------------------------------------------------------------ */

enum {
    STEPPED_MIN = 50,
};

/* A sleep that is stopped after some of its instructions. Another thread moves the clock,
 * because the stopped one may hold a lock that the clock needs. */
static struct {
    void (*move)(void);
    _Atomic(uint32_t) word;
    weft_time deadline;
    _Atomic(uint64_t) begun;
    _Atomic(uint64_t) asked;
    _Atomic(uint64_t) moved;
    _Atomic(uint64_t) unasked; /* rounds in which the sleep began before the requested step */
} stepped;

static void sleep_stepped(void)
{
    while (wf_clock_futex_wait(&stepped.word, 0, stepped.deadline) != -ETIMEDOUT) {
    }
}

/* Waits until the move has ended, unless the move itself waits for the sleeper. */
static void request_move(void)
{
    uint64_t round = atomic_load(&stepped.begun);
    atomic_store(&stepped.asked, round);
    int64_t until = wf_clock_real() + WEFT_MS;
    while (atomic_load(&stepped.moved) < round && wf_clock_real() < until) {
        (void)sched_yield();
    }
}

/* Returns whether the main thread, which is stepped, is blocked in its sleep system call. */
static bool sleeper_is_asleep(void)
{
    char text[512] = { 0 };
    FILE *file = fopen("/proc/self/stat", "r");
    CHECK(file != NULL);
    CHECK_LT(0, fread(text, 1, sizeof text - 1, file));
    (void)fclose(file);
    const char *name_end = strrchr(text, ')');
    CHECK(name_end != NULL);
    return name_end[1] == ' ' && name_end[2] == 'S';
}

/* Moves the clock when requested, or when the sleeper is asleep. */
static void *move_each_round(void *arg)
{
    (void)arg;
    for (uint64_t round = 1;; round++) {
        test_spin_for(&stepped.begun, round);
        if (stepped.move == NULL) {
            return NULL;
        }
        while (atomic_load(&stepped.asked) < round && !sleeper_is_asleep()) {
            (void)sched_yield();
        }
        atomic_fetch_add(&stepped.unasked, atomic_load(&stepped.asked) < round);
        stepped.move();
        atomic_store(&stepped.moved, round);
    }
}

static void check_each_step(void (*move)(void), weft_time length)
{
    atomic_store(&stepped.begun, 0);
    atomic_store(&stepped.asked, 0);
    atomic_store(&stepped.moved, 0);
    atomic_store(&stepped.unasked, 0);
    stepped.move = move;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, move_each_round, NULL), 0);
    uint64_t round = 0;
    bool reached = true;
    while (reached && atomic_load(&stepped.unasked) == 0) {
        weft_clock_pause();
        stepped.deadline = weft_after(length);
        atomic_store(&stepped.begun, ++round);
        reached = test_interrupt_after(2 * (int)round, sleep_stepped, request_move);
        test_wait_for(&stepped.moved, round);
    }
    CHECK_GE(round, STEPPED_MIN);
    stepped.move = NULL;
    atomic_store(&stepped.begun, round + 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    weft_clock_resume();
}

static void advance_by_one(void)
{
    weft_clock_advance(1);
}

/*
 * Goal:   at whatever step of its way to sleep, a thread does not miss that the clock is
 *         advanced past its deadline, or runs again.
 * Method: the sleeper is stopped after every second instruction, and the clock is moved there.
 *         It has no other deadline, so a lost wake-up hangs the test.
 */
static void sleeper_interrupted_at_any_step_is_not_lost(void)
{
    check_each_step(advance_by_one, 1);
    check_each_step(weft_clock_resume, 2 * WEFT_MS);
}

TEST_MAIN({
    TEST(time_never_goes_backward_for_any_reader),
    TEST(advance_at_any_moment_ends_sleep),
    TEST(resume_at_any_moment_lets_sleep_end),
    TEST_STEPS(sleeper_interrupted_at_any_step_is_not_lost),
})
