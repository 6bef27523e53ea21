/* SPDX-License-Identifier: MIT */
#include "base/futex.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "asleep.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "test.h"

#define MS INT64_C(1000000)

enum {
    SLEEPERS_MAX = 3
};

struct sleeper {
    pthread_t thread;
    _Atomic(uint64_t) tid;
    int result;
    int error; /* errno after the wait */
};

/* Threads that sleep on one word, once each. */
struct dormitory {
    _Atomic(uint32_t) word;
    int64_t deadline; /* constant */
    int count;        /* constant */
    struct sleeper sleepers[SLEEPERS_MAX];
    _Atomic(uint64_t) woken; /* incremented by the sleepers */
};

static struct dormitory dorm;

static void *sleep_once(void *arg)
{
    struct sleeper *self = arg;
    wf_store_release(&self->tid, own_tid());
    errno = EDOM;
    self->result = wf_futex_wait(&dorm.word, 7, dorm.deadline);
    self->error = errno;
    (void)wf_fetch_add_acq_rel(&dorm.woken, 1);
    return NULL;
}

/* Starts the sleepers and returns once all are asleep. */
static void dorm_open(int count, int64_t deadline)
{
    dorm = (struct dormitory){ .word = 7, .deadline = deadline, .count = count };
    for (int i = 0; i < count; i++) {
        struct sleeper *sleeper = &dorm.sleepers[i];
        CHECK_EQ(pthread_create(&sleeper->thread, NULL, sleep_once, sleeper), 0);
    }
    for (int i = 0; i < count; i++) {
        test_wait_for(&dorm.sleepers[i].tid, 1);
        wait_until_asleep(wf_load_relaxed(&dorm.sleepers[i].tid));
    }
    CHECK_EQ(wf_load_acquire(&dorm.woken), 0);
}

/* Joins the sleepers. Each was woken, and its errno is unchanged. */
static void dorm_close(void)
{
    for (int i = 0; i < dorm.count; i++) {
        CHECK_EQ(pthread_join(dorm.sleepers[i].thread, NULL), 0);
        CHECK_EQ(dorm.sleepers[i].result, 0);
        CHECK_EQ(dorm.sleepers[i].error, EDOM);
    }
}

static void value_mismatch_returns_immediately(void)
{
    _Atomic(uint32_t) word = 1;
    errno = EDOM;
    CHECK_EQ(wf_futex_wait(&word, 0, WF_NEVER), 0);
    CHECK_EQ(wf_futex_wait(&word, UINT32_MAX, WF_NEVER), 0);
    CHECK_EQ(wf_futex_wait(&word, 0, WF_NEVER - 1), 0);
    CHECK_EQ(errno, EDOM);
}

static void past_deadline_times_out(void)
{
    _Atomic(uint32_t) word = 1;
    int64_t start = wf_clock_now();
    errno = EDOM;
    CHECK_EQ(wf_futex_wait(&word, 1, start), -ETIMEDOUT);
    CHECK_EQ(wf_futex_wait(&word, 1, start - 1), -ETIMEDOUT);
    CHECK_EQ(wf_futex_wait(&word, 1, 1), -ETIMEDOUT);
    CHECK_EQ(wf_futex_wait(&word, 1, 0), -ETIMEDOUT);
    CHECK_EQ(errno, EDOM);
}

static void negative_deadline_times_out(void)
{
    _Atomic(uint32_t) word = 1;
    errno = EDOM;
    CHECK_EQ(wf_futex_wait(&word, 1, -1), -ETIMEDOUT);
    CHECK_EQ(wf_futex_wait(&word, 1, -1000000000), -ETIMEDOUT);
    CHECK_EQ(wf_futex_wait(&word, 1, INT64_MIN), -ETIMEDOUT);
    CHECK_EQ(errno, EDOM);
}

static void wait_lasts_until_deadline(void)
{
    _Atomic(uint32_t) word = 1;
    for (int64_t wait = 0; wait <= 16 * MS; wait += 4 * MS + 1) {
        int64_t deadline = wf_clock_now() + wait;
        errno = EDOM;
        int rc;
        do {
            rc = wf_futex_wait(&word, 1, deadline);
        } while (rc == 0); /* spurious wake-up */
        CHECK_EQ(rc, -ETIMEDOUT);
        CHECK_EQ(errno, EDOM);
        CHECK_GE(wf_clock_now(), deadline);
    }
}

static void wake_without_sleepers_does_nothing(void)
{
    _Atomic(uint32_t) word = 1;
    errno = EDOM;
    wf_futex_wake(&word, 1);
    wf_futex_wake(&word, INT_MAX);
    CHECK_EQ(errno, EDOM);
    CHECK_EQ(wf_load_relaxed(&word), 1);
    CHECK_EQ(wf_futex_wait(&word, 1, 0), -ETIMEDOUT);
}

/*
 * Goal:   a wake ends the sleep for any deadline in the future, even if the word has not
 *         changed.
 * Method: one thread sleeps. Once the kernel reports it asleep, wake it and join it.
 */
static void wake_ends_sleep_for_any_deadline(void)
{
    static const int64_t deadlines[] = { WF_NEVER, WF_NEVER - 1, WF_NEVER / 2 };
    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++) {
        dorm_open(1, deadlines[i]);
        errno = EDOM;
        wf_futex_wake(&dorm.word, 1);
        CHECK_EQ(errno, EDOM);
        dorm_close();
    }
}

/*
 * Goal:   a wake wakes at most count sleepers.
 * Method: three threads sleep. A wake takes effect before it returns, so after a wake of one
 *         the kernel still reports two threads asleep.
 */
static void wake_of_one_leaves_others_asleep(void)
{
    dorm_open(3, WF_NEVER);
    wf_futex_wake(&dorm.word, 1);
    int asleep = 0;
    for (int i = 0; i < 3; i++) {
        asleep += state_of(wf_load_relaxed(&dorm.sleepers[i].tid)) == 'S';
    }
    CHECK_GE(asleep, 2);
    test_wait_for(&dorm.woken, 1);
    CHECK_EQ(wf_load_acquire(&dorm.woken), 1);

    wf_futex_wake(&dorm.word, 2);
    dorm_close();
}

/*
 * Goal:   one call can wake all sleepers.
 * Method: three threads sleep; wake INT_MAX and join them.
 */
static void wake_of_int_max_wakes_all_sleepers(void)
{
    dorm_open(3, WF_NEVER);
    wf_futex_wake(&dorm.word, INT_MAX);
    dorm_close();
}

static void ignore_signal(int number)
{
    (void)number;
}

/*
 * Goal:   a signal causes a spurious wake-up, not an error.
 * Method: send a signal to a sleeper. Its handler does not restart system calls.
 */
static void signal_ends_sleep_without_error(void)
{
    struct sigaction action = { .sa_handler = ignore_signal };
    struct sigaction before;
    CHECK_EQ(sigaction(SIGUSR1, &action, &before), 0);
    for (int i = 0; i < 2; i++) {
        dorm_open(1, i == 0 ? WF_NEVER : WF_NEVER - 1);
        CHECK_EQ(pthread_kill(dorm.sleepers[0].thread, SIGUSR1), 0);
        dorm_close();
    }
    CHECK_EQ(sigaction(SIGUSR1, &before, NULL), 0);
}

static _Atomic(uint32_t) ball;
static uint32_t ball_rounds;

/* Hits the ball whenever its parity is this player's. */
static void play_ball(uint32_t parity)
{
    for (uint32_t hit = parity; hit < 2 * ball_rounds; hit += 2) {
        uint32_t seen;
        while ((seen = wf_load_acquire(&ball)) != hit) {
            CHECK_EQ(wf_futex_wait(&ball, seen, WF_NEVER), 0);
        }
        wf_store_release(&ball, hit + 1);
        wf_futex_wake(&ball, 1);
    }
}

static void *play_second(void *arg)
{
    play_ball(1);
    return arg;
}

/*
 * Goal:   a wake between the check of the word and the sleep is not lost.
 * Method: two threads pass a number back and forth. A lost wake-up would hang them.
 */
static void ping_pong_loses_no_wakeup(void)
{
    ball_rounds = (uint32_t)test_scale(5000);
    wf_store_relaxed(&ball, 0u);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, play_second, NULL), 0);
    play_ball(0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(wf_load_relaxed(&ball), 2 * ball_rounds);
}

static void mutex_init(pthread_mutex_t *mutex, int robust)
{
    pthread_mutexattr_t attributes;
    CHECK_EQ(pthread_mutexattr_init(&attributes), 0);
    CHECK_EQ(pthread_mutexattr_setrobust(&attributes, robust), 0);
    CHECK_EQ(pthread_mutex_init(mutex, &attributes), 0);
    CHECK_EQ(pthread_mutexattr_destroy(&attributes), 0);
}

static void robust_mutex_is_detected_while_held(void)
{
    pthread_mutex_t one;
    pthread_mutex_t two;
    mutex_init(&one, PTHREAD_MUTEX_ROBUST);
    mutex_init(&two, PTHREAD_MUTEX_ROBUST);
    const void *list = wf_futex_robust_list();
    CHECK(list != NULL);
    CHECK(!wf_futex_robust_held(list));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_mutex_lock(&one), 0);
        CHECK(wf_futex_robust_held(list));
        CHECK_EQ(pthread_mutex_lock(&two), 0);
        CHECK(wf_futex_robust_held(list));
        CHECK_EQ(pthread_mutex_unlock(&one), 0);
        CHECK(wf_futex_robust_held(list));
        CHECK_EQ(pthread_mutex_unlock(&two), 0);
        CHECK(!wf_futex_robust_held(list));
    }
    CHECK(wf_futex_robust_list() == list);
}

static void non_robust_mutex_is_not_detected(void)
{
    pthread_mutex_t mutex;
    mutex_init(&mutex, PTHREAD_MUTEX_STALLED);
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK(!wf_futex_robust_held(wf_futex_robust_list()));
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    CHECK(!wf_futex_robust_held(NULL));
}

static void *check_robust_lists(void *arg)
{
    CHECK(wf_futex_robust_list() != arg);
    CHECK(!wf_futex_robust_held(wf_futex_robust_list()));
    CHECK(wf_futex_robust_held(arg));
    return NULL;
}

static void each_thread_has_its_own_robust_list(void)
{
    pthread_mutex_t mutex;
    mutex_init(&mutex, PTHREAD_MUTEX_ROBUST);
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, check_robust_lists, (void *)wf_futex_robust_list()), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void unreadable_word_faults(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    errno = 77;
    CHECK(!wf_futex_faults(page));
    CHECK_EQ(mprotect(page, size, PROT_NONE), 0);
    CHECK(wf_futex_faults(page));
    CHECK_EQ(errno, 77);
    CHECK_EQ(munmap(page, size), 0);
}

TEST_MAIN({ TEST(value_mismatch_returns_immediately), TEST(unreadable_word_faults),
            TEST(past_deadline_times_out), TEST(negative_deadline_times_out),
            TEST(wait_lasts_until_deadline), TEST(wake_without_sleepers_does_nothing),
            TEST(wake_ends_sleep_for_any_deadline), TEST(wake_of_one_leaves_others_asleep),
            TEST(wake_of_int_max_wakes_all_sleepers), TEST(signal_ends_sleep_without_error),
            TEST(ping_pong_loses_no_wakeup),
            TEST_NATIVE(robust_mutex_is_detected_while_held, "has no robust mutexes"),
            TEST(non_robust_mutex_is_not_detected),
            TEST_NATIVE(each_thread_has_its_own_robust_list, "has no robust mutexes") })
