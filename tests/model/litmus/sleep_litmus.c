/* SPDX-License-Identifier: MIT */
/*
 * sleep_litmus.c - futexes, deadlines, the clock, conditions, once and keys.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "litmus.h"

static _Atomic(uint32_t) word;
static atomic_int x;
static int r0;
static int r1;

static uint32_t load_word(void)
{
    return atomic_load_explicit(&word, memory_order_acquire);
}

static void store_word(uint32_t value)
{
    atomic_store_explicit(&word, value, memory_order_release);
}

/* --- Futex ------------------------------------------------------------------------ */

static void wait_for_one(void *arg)
{
    (void)arg;
    while (load_word() == 0) {
        (void)mc_futex_wait(&word, 0, INT64_MAX);
    }
}

static void set_and_wake(void *arg)
{
    (void)arg;
    store_word(1);
    (void)mc_futex_wake(&word, 1);
}

static void wake_comes_through(void)
{
    mc_go(wait_for_one, NULL);
    mc_go(set_and_wake, NULL);
    mc_join();
}

static void set_only(void *arg)
{
    (void)arg;
    store_word(1);
}

static void nobody_wakes(void)
{
    mc_go(wait_for_one, NULL);
    mc_go(set_only, NULL);
    mc_join();
}

static void wake_then_set(void *arg)
{
    (void)arg;
    (void)mc_futex_wake(&word, 1);
    store_word(1);
}

static void wake_comes_too_early(void)
{
    mc_go(wait_for_one, NULL);
    mc_go(wake_then_set, NULL);
    mc_join();
}

static void sleep_once(void *arg)
{
    int *order = arg;
    (void)mc_futex_wait(&word, 0, INT64_MAX);
    *order = fetch_add(&x, 1, RLX) + 1;
    (void)mc_futex_wake(&word, 1);
}

static void wake_some(void *arg)
{
    (void)arg;
    store_word(1);
    mc_note(10 + mc_futex_wake(&word, 1));
}

/* Either of two sleepers may be the one that is woken. */
static void any_sleeper_is_woken(void)
{
    mc_go(sleep_once, &r0);
    mc_go(sleep_once, &r1);
    mc_go(wake_some, NULL);
    mc_join();
    mc_note(r0);
}

static void set_both(void *arg)
{
    (void)arg;
    atomic_store_explicit(&word, 1, memory_order_relaxed);
    store(&x, 1, RLX);
}

static void see_x_then_wait(void *arg)
{
    (void)arg;
    int seen = load(&x, RLX);
    if (seen == 1) {
        (void)mc_futex_wait(&word, 0, 0);
    }
}

/* The kernel, too, may see an old value of the word. */
static void wait_may_see_an_old_value(void)
{
    mc_go(set_both, NULL);
    mc_go(see_x_then_wait, NULL);
    mc_join();
}

/* But none that is older than a wake. */
static void set_wake_and_tell(void *arg)
{
    (void)arg;
    atomic_store_explicit(&word, 1, memory_order_relaxed);
    (void)mc_futex_wake(&word, 1);
    store(&x, 1, RLX);
}

static void wait_sees_what_was_woken_for(void)
{
    mc_go(set_wake_and_tell, NULL);
    mc_go(see_x_then_wait, NULL);
    mc_join();
}

/* Being woken orders nothing: the word must. */
static void woken_reads_plain(void *arg)
{
    (void)arg;
    while (atomic_load_explicit(&word, memory_order_relaxed) == 0) {
        (void)mc_futex_wait(&word, 0, INT64_MAX);
    }
    mc_note(r0);
}

static void write_and_wake(void *arg)
{
    r0 = 1;
    set_and_wake(arg);
}

static void wake_orders_no_memory(void)
{
    mc_go(woken_reads_plain, NULL);
    mc_go(write_and_wake, NULL);
    mc_join();
}

static long raw_futex(int operation, uint32_t value)
{
    return syscall(SYS_futex, &word, operation, value, NULL, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void raw_wait(void *arg)
{
    (void)arg;
    while (load_word() == 0) {
        long rc = raw_futex(FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0);
        mc_assert(rc == 0 || errno == EAGAIN);
    }
}

static void raw_wake(void *arg)
{
    (void)arg;
    store_word(1);
    (void)raw_futex(FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
}

static void system_calls_are_modelled(void)
{
    mc_go(raw_wait, NULL);
    mc_go(raw_wake, NULL);
    mc_join();
}

/* --- Deadlines ----------------------------------------------------------------------- */

static void wait_until(void *arg)
{
    (void)arg;
    int result = mc_futex_wait(&word, 0, 1000);
    if (result == -ETIMEDOUT) {
        mc_assert(mc_clock_now() >= 1000);
    }
    mc_note(result == 0 ? 0 : 1);
}

static void deadline(void)
{
    mc_go(wait_until, NULL);
    mc_go(set_and_wake, NULL);
    mc_join();
}

static void deadline_alone(void)
{
    mc_go(wait_until, NULL);
    mc_join();
}

static void wait_twice(void *arg)
{
    wait_until(arg);
    wait_until(arg);
}

/* There is always a first deadline to fire, also beyond the number that may fire
 * early. */
static void deadlines_end_the_wait(void)
{
    mc_go(wait_twice, NULL);
    mc_join();
}

static void wait_without_loop(void *arg)
{
    (void)arg;
    (void)mc_futex_wait(&word, 0, INT64_MAX);
    mc_note((int)load_word());
}

static void wakes_for_no_reason(void)
{
    mc_go(wait_without_loop, NULL);
    mc_go(set_and_wake, NULL);
    mc_join();
}

/* --- The clock ------------------------------------------------------------------------- */

static void time_stands_still(void)
{
    int64_t before = mc_clock_now();
    (void)load(&x, RLX);
    mc_assert(mc_clock_now() == before);
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    mc_assert(now.tv_sec == 0 && now.tv_nsec == before);
}

static void time_moves_by_steps(void)
{
    int64_t before = mc_clock_now();
    mc_assert(mc_clock_now() == before + 10);
}

static void advance(void *arg)
{
    (void)arg;
    mc_clock_advance(1000);
    store(&x, 1, REL);
}

static void look_at_clock(void *arg)
{
    (void)arg;
    int told = load(&x, ACQ);
    int64_t now = mc_clock_now();
    mc_assert(now == 0 || now == 1000);
    mc_note(10 * told + (now == 1000));
}

/* Who is told of the new time sees it; who is not may see either. */
static void time_is_advanced(void)
{
    mc_go(advance, NULL);
    mc_go(look_at_clock, NULL);
    mc_join();
}

/* --- Conditions, once, keys --------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void wait_on_cond(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&mutex);
    while (r0 == 0) {
        pthread_cond_wait(&cond, &mutex);
    }
    pthread_mutex_unlock(&mutex);
}

static void signal_cond(void *arg)
{
    pthread_mutex_lock(&mutex);
    r0 = 1;
    pthread_mutex_unlock(&mutex);
    if (arg == NULL) {
        pthread_cond_signal(&cond);
    } else {
        pthread_cond_broadcast(&cond);
    }
}

static void signal_wakes_one(void)
{
    mc_go(wait_on_cond, NULL);
    mc_go(signal_cond, NULL);
    mc_join();
}

static void signal_is_not_enough_for_two(void)
{
    mc_go(wait_on_cond, NULL);
    mc_go(wait_on_cond, NULL);
    mc_go(signal_cond, NULL);
    mc_join();
}

static void broadcast_wakes_two(void)
{
    mc_go(wait_on_cond, NULL);
    mc_go(wait_on_cond, NULL);
    mc_go(signal_cond, &r0);
    mc_join();
}

static void wait_without_look(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void signal_without_lock(void *arg)
{
    (void)arg;
    pthread_cond_signal(&cond);
}

/* A signal that comes before the wait is lost. */
static void signal_comes_too_early(void)
{
    mc_go(wait_without_look, NULL);
    mc_go(signal_without_lock, NULL);
    mc_join();
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count_once(void)
{
    r0++;
}

static void call_once(void *arg)
{
    (void)arg;
    pthread_once(&once, count_once);
    mc_assert(r0 == 1);
}

static void once_is_once(void)
{
    mc_go(call_once, NULL);
    mc_go(call_once, NULL);
    mc_join();
}

static pthread_key_t key;

static void count_destroyed(void *value)
{
    (void)fetch_add(&x, *(int *)value, RLX);
}

static void set_key(void *arg)
{
    mc_assert(pthread_getspecific(key) == NULL);
    pthread_setspecific(key, arg);
    mc_assert(pthread_getspecific(key) == arg);
}

static void keys_are_destroyed(void)
{
    static int one = 1;
    static int two = 2;
    pthread_key_create(&key, count_destroyed);
    mc_go(set_key, &one);
    mc_go(set_key, &two);
    mc_join();
    mc_assert(load(&x, RLX) == 3);
}

#define FINE(test, ...)                                                                            \
    {                                                                                              \
        .name = #test, .run = test, __VA_ARGS__                                                    \
    }
#define WRONG(test, fault)                                                                         \
    {                                                                                              \
        .name = #test, .run = test, .expect = fault                                                \
    }

static const struct mc_test tests[] = {
    FINE(wake_comes_through, .cross_check = true),
    WRONG(nobody_wakes, MC_DEADLOCK),
    WRONG(wake_comes_too_early, MC_DEADLOCK),
    FINE(any_sleeper_is_woken, .seen = MC_OUTCOMES(1, 2, 10, 11), .cross_check = true),
    WRONG(wait_may_see_an_old_value, MC_DEADLOCK),
    FINE(wait_sees_what_was_woken_for, .cross_check = true),
    WRONG(wake_orders_no_memory, MC_RACE),
    FINE(system_calls_are_modelled, .cross_check = true),

    FINE(deadline, .seen = MC_OUTCOMES(0), .seen_only = true),
    { .name = "deadline_does_not_fire_by_itself", .run = deadline_alone, .expect = MC_DEADLOCK },
    { .name = "deadline_may_fire",
      .run = deadline,
      .timeouts = 1,
      .seen = MC_OUTCOMES(0, 1),
      .cross_check = true },
    FINE(deadlines_end_the_wait, .timeouts = 1, .seen = MC_OUTCOMES(1), .seen_only = true),
    FINE(wakes_for_no_reason, .spurious_wakes = 1, .seen = MC_OUTCOMES(0, 1), .cross_check = true),
    { .name = "wakes_only_for_a_reason",
      .run = wakes_for_no_reason,
      .seen = MC_OUTCOMES(1),
      .seen_only = true },

    FINE(time_stands_still, .cross_check = true),
    FINE(time_moves_by_steps, .clock_step_ns = 10),
    FINE(time_is_advanced, .moving_clock = true, .seen = MC_OUTCOMES(0, 1, 11), .seen_only = true,
         .cross_check = true),
    { .name = "time_is_not_advanced_in_secret", .run = time_is_advanced, .expect = MC_ASSERTION },

    FINE(signal_wakes_one, .cross_check = true),
    WRONG(signal_is_not_enough_for_two, MC_DEADLOCK),
    WRONG(signal_comes_too_early, MC_DEADLOCK),
    FINE(broadcast_wakes_two, .cross_check = true),
    FINE(once_is_once, .cross_check = true),
    FINE(keys_are_destroyed, .cross_check = true),
};

MC_MAIN(tests)
