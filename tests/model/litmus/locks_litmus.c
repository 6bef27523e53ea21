/* SPDX-License-Identifier: MIT */
/*
 * locks_litmus.c - known mistakes in locks and in waiting: each must be found, and
 * the right version must pass.
 *
 * The .arg of a test is the mistake to make, or the way to do it right, or NULL.
 */
#include <pthread.h>
#include <string.h>

#include "litmus.h"

static bool is_way(const char *way)
{
    return mc_arg() != NULL && strcmp(mc_arg(), way) == 0;
}

static int data; /* a data race here is two threads in the critical section */

/* --- Dekker: each raises a flag and looks at the other's ---------------------------------- */

/*
 * no_fence   neither sees the other.
 * acq_rel    a fence that is not seq_cst is not enough.
 */
static atomic_int flags[2];

static void try_to_enter(void *arg)
{
    int me = (int)(intptr_t)arg;
    store(&flags[me], 1, RLX);
    fence(is_way("no_fence") ? NO : is_way("acq_rel") ? AR : SC);
    if (load(&flags[1 - me], RLX) == 0) {
        data++;
        mc_note(1);
    }
}

static void dekker(void)
{
    mc_go(try_to_enter, (void *)0);
    mc_go(try_to_enter, (void *)1);
    mc_join();
}

/* --- Peterson ----------------------------------------------------------------------------- */

/*
 * exchange    right: the turn is given by an RMW, whose second one sees the first.
 * seq_cst     right: all of it.
 * acq_rel     both enter.
 * one_fence   the turns may come in another order than the fences: both enter.
 */
static atomic_int turn;

static void lock_peterson(int me)
{
    int store_order = is_way("seq_cst") ? SC : is_way("one_fence") ? RLX : REL;
    int load_order = is_way("seq_cst") ? SC : ACQ;
    store(&flags[me], 1, is_way("exchange") ? RLX : store_order);
    if (is_way("exchange")) {
        (void)exchange(&turn, 1 - me, AR);
    } else {
        store(&turn, 1 - me, store_order);
    }
    fence(is_way("one_fence") ? SC : NO);
    while (load(&flags[1 - me], load_order) == 1 && load(&turn, load_order) == 1 - me) {
    }
}

static void enter_in_turn(void *arg)
{
    int me = (int)(intptr_t)arg;
    lock_peterson(me);
    data++;
    store(&flags[me], 0, is_way("seq_cst") ? SC : REL);
}

static void peterson(void)
{
    mc_go(enter_in_turn, (void *)0);
    mc_go(enter_in_turn, (void *)1);
    mc_join();
    mc_assert(data == 2);
}

/* --- A mutex on a futex ------------------------------------------------------------------- */

/*
 * As in "Futexes Are Tricky" (Drepper): 0 free, 1 taken, 2 taken and somebody may
 * sleep.
 *
 * forgets      who was woken takes it as 1, though others may sleep.
 * wake_first   wakes before it is free.
 * relaxed      unlocks without release.
 */
static _Atomic(uint32_t) mutex_word;

static void lock_mutex(void)
{
    uint32_t found = 0;
    if (atomic_compare_exchange_strong_explicit(&mutex_word, &found, 1, memory_order_acquire,
                                                memory_order_relaxed)) {
        return;
    }
    uint32_t mine = 2;
    while (atomic_exchange_explicit(&mutex_word, mine, memory_order_acquire) != 0) {
        (void)mc_futex_wait(&mutex_word, mine, INT64_MAX);
        mine = is_way("forgets") ? 1 : 2;
    }
}

static void unlock_mutex(void)
{
    if (is_way("wake_first")) {
        if (atomic_load_explicit(&mutex_word, memory_order_relaxed) == 2) {
            (void)mc_futex_wake(&mutex_word, 1);
        }
        atomic_store_explicit(&mutex_word, 0, memory_order_release);
        return;
    }
    uint32_t old = is_way("relaxed")
                       ? atomic_exchange_explicit(&mutex_word, 0, memory_order_relaxed)
                       : atomic_exchange_explicit(&mutex_word, 0, memory_order_release);
    if (old == 2) {
        (void)mc_futex_wake(&mutex_word, 1);
    }
}

static void add_under_mutex(void *arg)
{
    (void)arg;
    lock_mutex();
    data++;
    unlock_mutex();
}

static void mutex(void)
{
    mc_go(add_under_mutex, NULL);
    mc_go(add_under_mutex, NULL);
    mc_go(add_under_mutex, NULL);
    mc_join();
    mc_assert(data == 3);
}

/* --- A condition -------------------------------------------------------------------------- */

/*
 * if            looks once, and is woken for no reason.
 * no_lock       changes the condition without the lock: after the look, before the
 *               sleep.
 * signal        wakes one of two that wait for different things.
 */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_int stage;

static void wait_for_stage(void *arg)
{
    int wanted = (int)(intptr_t)arg;
    pthread_mutex_lock(&guard);
    if (is_way("if")) {
        if (load(&stage, RLX) < wanted) {
            pthread_cond_wait(&changed, &guard);
        }
    } else {
        while (load(&stage, RLX) < wanted) {
            pthread_cond_wait(&changed, &guard);
        }
    }
    mc_assert(load(&stage, RLX) >= wanted);
    pthread_mutex_unlock(&guard);
}

static void go_to_stage(int next)
{
    if (!is_way("no_lock")) {
        pthread_mutex_lock(&guard);
    }
    store(&stage, next, RLX);
    if (!is_way("no_lock")) {
        pthread_mutex_unlock(&guard);
    }
    if (is_way("signal")) {
        pthread_cond_signal(&changed);
    } else {
        pthread_cond_broadcast(&changed);
    }
}

static void condition(void)
{
    mc_go(wait_for_stage, (void *)1);
    mc_go(wait_for_stage, (void *)2);
    go_to_stage(1);
    go_to_stage(2);
    mc_join();
}

/* --- A sequence lock ---------------------------------------------------------------------- */

/*
 * no_fence     the reader's second look at the sequence goes before its reads.
 * no_release   the writer's stores go before its sequence is odd.
 */
static atomic_int sequence;
static atomic_int left;
static atomic_int right;

static void write_pair(void *arg)
{
    (void)arg;
    store(&sequence, 1, RLX);
    fence(is_way("no_release") ? NO : REL);
    store(&left, 1, RLX);
    store(&right, 1, RLX);
    store(&sequence, 2, REL);
}

static void read_pair(void *arg)
{
    (void)arg;
    int before = load(&sequence, ACQ);
    int a = load(&left, RLX);
    int b = load(&right, RLX);
    fence(is_way("no_fence") ? NO : ACQ);
    int after = load(&sequence, RLX);
    if (before == after && before % 2 == 0) {
        mc_assert(a == b);
        mc_note(a);
    }
}

static void seqlock(void)
{
    mc_go(write_pair, NULL);
    mc_go(read_pair, NULL);
    mc_join();
}

/* --- Two locks, and politeness ------------------------------------------------------------ */

/*
 * polite   each takes its own, gives it back if it cannot have the other, and
 *          begins again: for ever, if both do so in step.
 */
static atomic_int locks[2];

static void take_both(void *arg)
{
    int first = is_way("polite") ? (int)(intptr_t)arg : 0;
    for (;;) {
        while (cas(&locks[first], 0, 1, ACQ) != 0) {
        }
        if (cas(&locks[1 - first], 0, 1, ACQ) == 0) {
            break;
        }
        store(&locks[first], 0, REL);
    }
    data++;
    store(&locks[1 - first], 0, REL);
    store(&locks[first], 0, REL);
}

static void two_locks(void)
{
    mc_go(take_both, (void *)0);
    mc_go(take_both, (void *)1);
    mc_join();
    mc_assert(data == 2);
}

#define FINE(test, ...)                                                                            \
    {                                                                                              \
        .name = #test, .run = test, __VA_ARGS__                                                    \
    }
#define FINE_BY(test, way)                                                                         \
    {                                                                                              \
        .name = #test "_" way, .run = test, .arg = way                                             \
    }
#define WRONG(test, mistake, fault)                                                                \
    {                                                                                              \
        .name = #test "_" mistake, .run = test, .arg = mistake, .expect = fault                    \
    }

static const struct mc_test tests[] = {
    FINE(dekker, .seen = MC_OUTCOMES(1)),
    WRONG(dekker, "no_fence", MC_RACE),
    WRONG(dekker, "acq_rel", MC_RACE),
    FINE_BY(peterson, "seq_cst"),
    FINE_BY(peterson, "exchange"),
    WRONG(peterson, "acq_rel", MC_RACE),
    WRONG(peterson, "one_fence", MC_RACE),
    FINE(mutex, .cross_check = true),
    WRONG(mutex, "forgets", MC_DEADLOCK),
    WRONG(mutex, "wake_first", MC_DEADLOCK),
    WRONG(mutex, "relaxed", MC_RACE),
    FINE(condition, .spurious_wakes = 1),
    { .name = "condition_if",
      .run = condition,
      .arg = "if",
      .spurious_wakes = 1,
      .expect = MC_ASSERTION },
    WRONG(condition, "no_lock", MC_DEADLOCK),
    WRONG(condition, "signal", MC_DEADLOCK),
    FINE(seqlock, .seen = MC_OUTCOMES(0, 1), .seen_only = true, .cross_check = true),
    WRONG(seqlock, "no_fence", MC_ASSERTION),
    WRONG(seqlock, "no_release", MC_ASSERTION),
    FINE(two_locks, .cross_check = true),
    { .name = "two_locks_polite",
      .run = two_locks,
      .arg = "polite",
      .steps_max = 200,
      .expect = MC_LIVELOCK },
};

MC_MAIN(tests)
