/* SPDX-License-Identifier: MIT */
/*
 * rmw_litmus.c - read-modify-write: nothing comes between, release sequences, and
 * what a failed exchange sees.
 */
#include "litmus.h"

struct orders {
    int rmw;
    int fail;
};

static atomic_int x;
static atomic_int y;
static int data;
static int r0;
static int r1;

static const struct orders *orders(void)
{
    return mc_arg();
}

/* --- Atomicity ----------------------------------------------------------------- */

static void add_one(void *arg)
{
    (void)arg;
    (void)fetch_add(&x, 1, orders()->rmw);
}

static void adds_are_not_lost(void)
{
    mc_go(add_one, NULL);
    mc_go(add_one, NULL);
    mc_go(add_one, NULL);
    mc_join();
    mc_note(load(&x, RLX));
}

static void take_token(void *arg)
{
    int *got = arg;
    *got = exchange(&x, 0, orders()->rmw);
}

static void exchange_takes_once(void)
{
    store(&x, 1, RLX);
    mc_go(take_token, &r0);
    mc_go(take_token, &r1);
    mc_join();
    mc_note(10 * r0 + r1);
}

static void win(void *arg)
{
    int *won = arg;
    *won = cas(&x, 0, 1, orders()->rmw) == 0;
}

static void cas_has_one_winner(void)
{
    mc_go(win, &r0);
    mc_go(win, &r1);
    mc_join();
    mc_note(10 * r0 + r1);
}

static void store_five(void *arg)
{
    (void)arg;
    store(&x, 5, RLX);
}

/* A store is before the RMW, or after it, never between its two halves. */
static void store_and_add(void)
{
    mc_go(add_one, NULL);
    mc_go(store_five, NULL);
    mc_join();
    mc_note(load(&x, RLX));
}

/* --- Release sequences ---------------------------------------------------------- */

static void publish(void *arg)
{
    (void)arg;
    data = 1;
    store(&y, 1, REL);
}

static void publish_by_fence(void *arg)
{
    (void)arg;
    data = 1;
    fence(REL);
    store(&y, 1, RLX);
}

/* A store of the same thread after the release. In C11 it continues the release
 * sequence, in C++20 it does not. */
static void publish_and_store_again(void *arg)
{
    publish(arg);
    store(&y, 2, RLX);
}

static void add_to_flag(void *arg)
{
    (void)arg;
    (void)fetch_add(&y, 1, RLX);
}

static void store_to_flag(void *arg)
{
    (void)arg;
    if (load(&y, RLX) == 1) {
        store(&y, 2, RLX);
    }
}

static void read_two(void *arg)
{
    (void)arg;
    if (load(&y, ACQ) == 2) {
        mc_assert(data == 1);
        mc_note(1);
    }
}

static void read_three(void *arg)
{
    (void)arg;
    if (load(&y, ACQ) == 3) {
        mc_assert(data == 1);
        mc_note(1);
    }
}

static void through_an_rmw(void)
{
    mc_go(publish, NULL);
    mc_go(add_to_flag, NULL);
    mc_go(read_two, NULL);
    mc_join();
}

static void through_two_rmws(void)
{
    mc_go(publish, NULL);
    mc_go(add_to_flag, NULL);
    mc_go(add_to_flag, NULL);
    mc_go(read_three, NULL);
    mc_join();
}

static void fence_through_an_rmw(void)
{
    mc_go(publish_by_fence, NULL);
    mc_go(add_to_flag, NULL);
    mc_go(read_two, NULL);
    mc_join();
}

static void broken_by_a_store(void)
{
    mc_go(publish, NULL);
    mc_go(store_to_flag, NULL);
    mc_go(read_two, NULL);
    mc_join();
}

static void broken_by_own_store(void)
{
    mc_go(publish_and_store_again, NULL);
    mc_go(read_two, NULL);
    mc_join();
}

/* --- Failed exchanges ----------------------------------------------------------- */

static void publish_x(void *arg)
{
    (void)arg;
    data = 1;
    store(&x, 1, REL);
}

static void fail_to_exchange(void *arg)
{
    (void)arg;
    int expected = 7;
    if (orders()->fail == ACQ) {
        atomic_compare_exchange_strong_explicit(&x, &expected, 8, memory_order_acquire,
                                                memory_order_acquire);
    } else if (orders()->fail == AR) {
        /* The order of a failure may be the stronger one, since C17. */
        atomic_compare_exchange_strong_explicit(&x, &expected, 8, memory_order_release,
                                                memory_order_acquire);
    } else {
        atomic_compare_exchange_strong_explicit(&x, &expected, 8, memory_order_acq_rel,
                                                memory_order_relaxed);
    }
    if (expected == 1) {
        mc_assert(data == 1);
    }
    mc_note(expected);
}

static void failed_exchange(void)
{
    mc_go(publish_x, NULL);
    mc_go(fail_to_exchange, NULL);
    mc_join();
}

static void store_both(void *arg)
{
    (void)arg;
    store(&x, 1, RLX);
    store(&y, 1, RLX);
}

static void read_then_fail(void *arg)
{
    (void)arg;
    r0 = load(&y, RLX);
    r1 = cas(&x, 7, 8, RLX);
}

/* It may see an old value, like a load. */
static void failed_exchange_is_a_load(void)
{
    mc_go(store_both, NULL);
    mc_go(read_then_fail, NULL);
    mc_join();
    mc_note(10 * r0 + r1);
}

/* --- Weak exchanges --------------------------------------------------------------- */

static void weak_exchange(void)
{
    int expected = 0;
    bool done = atomic_compare_exchange_weak_explicit(&x, &expected, 1, memory_order_relaxed,
                                                      memory_order_relaxed);
    mc_assert(expected == 0);
    mc_note(done);
}

static void strong_exchange(void)
{
    mc_note(cas(&x, 0, 1, RLX) == 0);
}

/* --- Every operation, in every size ------------------------------------------------- */

#define COMPUTES(type)                                                                             \
    do {                                                                                           \
        static _Atomic(type) word;                                                                 \
        mc_assert(atomic_exchange(&word, (type) ~(type)0) == 0);                                   \
        mc_assert(atomic_fetch_add(&word, 7) == (type) ~(type)0);                                  \
        mc_assert(atomic_fetch_sub(&word, 2) == 6);                                                \
        mc_assert(atomic_fetch_or(&word, 3) == 4);                                                 \
        mc_assert(atomic_fetch_and(&word, 5) == 7);                                                \
        mc_assert(atomic_fetch_xor(&word, 6) == 5);                                                \
        type expected = 4;                                                                         \
        mc_assert(!atomic_compare_exchange_strong(&word, &expected, 9));                           \
        mc_assert(atomic_compare_exchange_strong(&word, &expected, 9));                            \
        mc_assert(atomic_load(&word) == 9);                                                        \
    } while (0)

static void operations_compute(void)
{
    COMPUTES(uint8_t);
    COMPUTES(uint16_t);
    COMPUTES(uint32_t);
    COMPUTES(uint64_t);
}

#define ORDERS(...)                                                                                \
    &(const struct orders)                                                                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

#define ROW(test, suffix, list, ...)                                                               \
    {                                                                                              \
        .name = #test suffix, .run = test, .arg = list, __VA_ARGS__                                \
    }

static const struct mc_test tests[] = {
    ROW(adds_are_not_lost, "_rlx", ORDERS(.rmw = RLX), .seen = MC_OUTCOMES(3), .seen_only = true),
    ROW(adds_are_not_lost, "_sc", ORDERS(.rmw = SC), .seen = MC_OUTCOMES(3), .seen_only = true),
    ROW(adds_are_not_lost, "_early", ORDERS(.rmw = RLX), .early_stores = true,
        .seen = MC_OUTCOMES(3), .seen_only = true),
    ROW(exchange_takes_once, "_rlx", ORDERS(.rmw = RLX), .seen = MC_OUTCOMES(1, 10),
        .seen_only = true),
    ROW(cas_has_one_winner, "_rlx", ORDERS(.rmw = RLX), .seen = MC_OUTCOMES(1, 10),
        .seen_only = true),
    ROW(cas_has_one_winner, "_ar", ORDERS(.rmw = AR), .seen = MC_OUTCOMES(1, 10),
        .seen_only = true),
    ROW(store_and_add, "_rlx", ORDERS(.rmw = RLX), .seen = MC_OUTCOMES(5, 6), .seen_only = true),
    ROW(store_and_add, "_early", ORDERS(.rmw = RLX), .early_stores = true,
        .seen = MC_OUTCOMES(5, 6), .seen_only = true),

    ROW(through_an_rmw, "", NULL, .seen = MC_OUTCOMES(1)),
    ROW(through_two_rmws, "", NULL, .seen = MC_OUTCOMES(1)),
    ROW(fence_through_an_rmw, "", NULL, .seen = MC_OUTCOMES(1)),
    ROW(broken_by_a_store, "", NULL, .expect = MC_RACE),
    ROW(broken_by_own_store, "", NULL, .expect = MC_RACE),

    ROW(failed_exchange, "_acquire", ORDERS(.fail = ACQ), .seen = MC_OUTCOMES(0, 1)),
    ROW(failed_exchange, "_acquire_only", ORDERS(.fail = AR), .seen = MC_OUTCOMES(0, 1)),
    ROW(failed_exchange, "_relaxed", ORDERS(.fail = RLX), .expect = MC_RACE),
    ROW(failed_exchange_is_a_load, "", NULL, .seen = MC_OUTCOMES(0, 1, 10, 11)),

    ROW(operations_compute, "", NULL, .seen_only = true),

    ROW(weak_exchange, "_may_fail", NULL, .spurious_cas = 1, .seen = MC_OUTCOMES(0, 1)),
    ROW(weak_exchange, "_if_told_so", NULL, .seen = MC_OUTCOMES(1), .seen_only = true),
    ROW(strong_exchange, "_never_fails", NULL, .spurious_cas = 1, .seen = MC_OUTCOMES(1),
        .seen_only = true),
};

MC_MAIN(tests)
