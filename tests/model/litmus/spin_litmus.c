/* SPDX-License-Identifier: MIT */
/*
 * spin_litmus.c - loops that wait by reading: they end, all their ends are seen,
 * and those that never end are found.
 */
#include <sched.h>

#include "litmus.h"

static atomic_int x;
static atomic_int y;
static int data;

/* --- Loops that end ----------------------------------------------------------------- */

static void publish(void *arg)
{
    (void)arg;
    data = 1;
    store(&x, 1, REL);
}

static void wait_for_x(void *arg)
{
    (void)arg;
    while (load(&x, ACQ) == 0) {
    }
    mc_assert(data == 1);
}

static void one_word(void)
{
    mc_go(wait_for_x, NULL);
    mc_go(publish, NULL);
    mc_join();
}

static void store_twice(void *arg)
{
    (void)arg;
    store(&x, 1, RLX);
    store(&x, 2, RLX);
}

static void note_first_change(void *arg)
{
    (void)arg;
    int seen;
    do {
        seen = load(&x, RLX);
    } while (seen == 0);
    mc_note(seen);
}

/* The loop may end with either value. */
static void each_change_is_seen(void)
{
    mc_go(note_first_change, NULL);
    mc_go(store_twice, NULL);
    mc_join();
}

static void store_both(void *arg)
{
    (void)arg;
    store(&x, 1, RLX);
    store(&y, 1, RLX);
}

static void wait_for_either(void *arg)
{
    (void)arg;
    int a;
    int b;
    do {
        a = load(&x, RLX);
        b = load(&y, RLX);
    } while (a == 0 && b == 0);
    mc_note(10 * a + b);
}

/* Also y alone, though x was stored before it. */
static void two_words(void)
{
    mc_go(wait_for_either, NULL);
    mc_go(store_both, NULL);
    mc_join();
}

static void lock_and_add(void *arg)
{
    (void)arg;
    while (cas(&x, 0, 1, ACQ) != 0) {
    }
    data++;
    store(&x, 0, REL);
}

static void lock_by_cas(void)
{
    mc_go(lock_and_add, NULL);
    mc_go(lock_and_add, NULL);
    mc_join();
    mc_assert(data == 2);
}

static void test_and_set(void *arg)
{
    (void)arg;
    while (exchange(&x, 1, ACQ) != 0) {
        (void)sched_yield();
    }
    data++;
    store(&x, 0, REL);
}

/* An exchange that changes nothing is a read. */
static void lock_by_exchange(void)
{
    mc_go(test_and_set, NULL);
    mc_go(test_and_set, NULL);
    mc_join();
    mc_assert(data == 2);
}

static void wait_behind_fences(void *arg)
{
    (void)arg;
    do {
        fence(SC);
    } while (load(&x, RLX) == 0);
    fence(ACQ);
    mc_assert(data == 1);
}

static void fence_in_the_loop(void)
{
    mc_go(wait_behind_fences, NULL);
    mc_go(publish, NULL);
    mc_join();
}

/* --- Loops that count ------------------------------------------------------------------ */

static void wait_a_while(void *arg)
{
    (void)arg;
    for (int i = 0; i < 64; i++) {
        if (load(&x, ACQ) != 0) {
            mc_note(1);
            return;
        }
    }
    mc_note(2);
}

/* Both ends of a loop that gives up. */
static void a_loop_may_give_up(void)
{
    mc_go(wait_a_while, NULL);
    mc_go(publish, NULL);
    mc_join();
}

static void give_up_alone(void)
{
    mc_go(wait_a_while, NULL);
    mc_join();
}

static void answer(void *arg)
{
    (void)arg;
    wait_a_while(NULL);
    store(&y, 1, RLX);
}

static void wait_for_answer(void *arg)
{
    (void)arg;
    while (load(&y, RLX) == 0) {
    }
}

/* The first gives up only because the second waits for it. */
static void a_loop_gives_up_for_others(void)
{
    mc_go(answer, NULL);
    mc_go(wait_for_answer, NULL);
    mc_join();
}

static void search_until(void *arg)
{
    (void)arg;
    int64_t end = mc_clock_now() + 1000;
    while (load(&x, ACQ) == 0) {
        if (mc_clock_now() >= end) {
            mc_note(2);
            return;
        }
        (void)sched_yield();
    }
    mc_note(1);
}

static void a_loop_may_run_out_of_time(void)
{
    mc_go(search_until, NULL);
    mc_go(publish, NULL);
    mc_join();
}

static void look_then_store(void *arg)
{
    (void)arg;
    (void)load(&x, SC);
    store(&x, 3, SC);
}

/* What clang makes of load(): one call for all orders. */
int __tsan_atomic32_load(const volatile int *word, int order);

static void look_a_while_then_exchange(void *arg)
{
    (void)arg;
    int seen = 0;
    for (int i = 0; i < 20 && seen == 0; i++) {
        seen = __tsan_atomic32_load((const volatile int *)&x, i < 10 ? ACQ : SC);
    }
    mc_note(10 * seen + exchange(&x, 6, SC));
}

/* The store may come after the loop has given up, though its last reads, which are
 * seq_cst, were no steps of their own. */
static void a_store_after_the_loop(void)
{
    mc_go(look_then_store, NULL);
    mc_go(look_a_while_then_exchange, NULL);
    mc_join();
}

/* --- Loops that do not end ---------------------------------------------------------------- */

static void wait_for_each_other(void)
{
    mc_go(wait_for_x, NULL);
    mc_go(wait_for_answer, NULL);
    mc_join();
}

static void yield_for_ever(void)
{
    for (;;) {
        (void)sched_yield();
    }
}

static void store_and_undo(void *arg)
{
    (void)arg;
    store(&x, 1, RLX);
    store(&x, 0, RLX);
}

/* The change may come and go while nobody looks. */
static void a_change_may_be_missed(void)
{
    mc_go(note_first_change, NULL);
    mc_go(store_and_undo, NULL);
    mc_join();
}

#define FINE(test, ...)                                                                            \
    {                                                                                              \
        .name = #test, .run = test, .cross_check = true, __VA_ARGS__                               \
    }
#define WRONG(test, fault)                                                                         \
    {                                                                                              \
        .name = #test, .run = test, .expect = fault                                                \
    }

static const struct mc_test tests[] = {
    FINE(one_word, .leaks = true),
    FINE(each_change_is_seen, .seen = MC_OUTCOMES(1, 2), .seen_only = true),
    FINE(two_words, .seen = MC_OUTCOMES(1, 10, 11), .seen_only = true),
    FINE(lock_by_cas, .leaks = true),
    FINE(lock_by_exchange, .leaks = true),
    FINE(fence_in_the_loop, .leaks = true),
    FINE(a_loop_may_give_up, .seen = MC_OUTCOMES(1, 2), .seen_only = true),
    FINE(give_up_alone, .seen = MC_OUTCOMES(2), .seen_only = true),
    FINE(a_loop_gives_up_for_others, .seen = MC_OUTCOMES(2), .seen_only = true),
    FINE(a_loop_may_run_out_of_time, .clock_step_ns = 100, .seen = MC_OUTCOMES(1, 2),
         .seen_only = true),
    FINE(a_store_after_the_loop, .seen = MC_OUTCOMES(0, 3, 33), .seen_only = true),
    WRONG(wait_for_each_other, MC_LIVELOCK),
    WRONG(yield_for_ever, MC_LIVELOCK),
    WRONG(a_change_may_be_missed, MC_LIVELOCK),
};

MC_MAIN(tests)
