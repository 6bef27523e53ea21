/* SPDX-License-Identifier: MIT */
/*
 * two_litmus.c - the litmus tests of two threads, with each order: what C11 allows
 * must be seen, what it forbids must not.
 *
 * The outcome of a test is its results as the digits of a number, r0 first. Shapes
 * and names are those of "Herding Cats" (Alglave and others, TOPLAS 2014).
 */
#include "litmus.h"

/* The orders of a test: T1's two accesses and the fence between, then T2's. */
struct orders {
    int first1;
    int fence1;
    int second1;
    int first2;
    int fence2;
    int second2;
};

static atomic_int x;
static atomic_int y;
static atomic_int z;
static int r0;
static int r1;

static const struct orders *orders(void)
{
    return mc_arg();
}

static void run_two(void (*one)(void *), void (*two)(void *))
{
    mc_go(one, NULL);
    mc_go(two, NULL);
    mc_join();
}

/* --- SB: store buffering. x=1; r0=y || y=1; r1=x ----------------------------- */

static void sb1(void *arg)
{
    (void)arg;
    store(&x, 1, orders()->first1);
    fence(orders()->fence1);
    r0 = load(&y, orders()->second1);
}

static void sb2(void *arg)
{
    (void)arg;
    store(&y, 1, orders()->first2);
    fence(orders()->fence2);
    r1 = load(&x, orders()->second2);
}

static void sb(void)
{
    run_two(sb1, sb2);
    mc_note(10 * r0 + r1);
}

/* With an RMW instead of the fence; on one word, or on one each. */
static void sb_rmw1(void *arg)
{
    (void)arg;
    store(&x, 1, RLX);
    (void)fetch_add(&z, 1, orders()->fence1);
    r0 = load(&y, RLX);
}

static atomic_int other;

static void sb_rmw2(void *arg)
{
    (void)arg;
    store(&y, 1, RLX);
    (void)fetch_add(orders()->first2 == NO ? &other : &z, 1, orders()->fence2);
    r1 = load(&x, RLX);
}

static void sb_rmw(void)
{
    run_two(sb_rmw1, sb_rmw2);
    mc_note(10 * r0 + r1);
}

/* --- MP: message passing. x=1; y=1 || r0=y; r1=x ------------------------------ */

static void mp1(void *arg)
{
    (void)arg;
    store(&x, 1, orders()->first1);
    fence(orders()->fence1);
    store(&y, 1, orders()->second1);
}

static void mp2(void *arg)
{
    (void)arg;
    r0 = load(&y, orders()->first2);
    fence(orders()->fence2);
    r1 = load(&x, orders()->second2);
}

static void mp(void)
{
    run_two(mp1, mp2);
    mc_note(10 * r0 + r1);
}

/* --- LB: load buffering. r0=x; y=1 || r1=y; x=1 ------------------------------- */

static void lb1(void *arg)
{
    (void)arg;
    r0 = load(&x, orders()->first1);
    fence(orders()->fence1);
    store(&y, 1, orders()->second1);
}

static void lb2(void *arg)
{
    (void)arg;
    r1 = load(&y, orders()->first2);
    fence(orders()->fence2);
    store(&x, 1, orders()->second2);
}

static void lb(void)
{
    run_two(lb1, lb2);
    mc_note(10 * r0 + r1);
}

/* --- S: x=2; y=1 || r0=y; x=1, and the last x --------------------------------- */

static void s1(void *arg)
{
    (void)arg;
    store(&x, 2, orders()->first1);
    fence(orders()->fence1);
    store(&y, 1, orders()->second1);
}

static void s2(void *arg)
{
    (void)arg;
    r0 = load(&y, orders()->first2);
    fence(orders()->fence2);
    store(&x, 1, orders()->second2);
}

static void s(void)
{
    run_two(s1, s2);
    mc_note(10 * r0 + load(&x, RLX));
}

/* --- R: x=1; y=1 || y=2; r0=x, and the last y --------------------------------- */

static void r1_writes(void *arg)
{
    (void)arg;
    store(&x, 1, orders()->first1);
    fence(orders()->fence1);
    store(&y, 1, orders()->second1);
}

static void r2_reads(void *arg)
{
    (void)arg;
    store(&y, 2, orders()->first2);
    fence(orders()->fence2);
    r0 = load(&x, orders()->second2);
}

static void r(void)
{
    run_two(r1_writes, r2_reads);
    mc_note(10 * r0 + load(&y, RLX));
}

/* --- 2+2W: x=1; y=2 || y=1; x=2, and the last x and y ------------------------- */

static void w1(void *arg)
{
    (void)arg;
    store(&x, 1, orders()->first1);
    fence(orders()->fence1);
    store(&y, 2, orders()->second1);
}

static void w2(void *arg)
{
    (void)arg;
    store(&y, 1, orders()->first2);
    fence(orders()->fence2);
    store(&x, 2, orders()->second2);
}

static void two_plus_two(void)
{
    run_two(w1, w2);
    mc_note(10 * load(&x, RLX) + load(&y, RLX));
}

/* --- Coherence ---------------------------------------------------------------- */

static void co_writer(void *arg)
{
    (void)arg;
    store(&x, 1, orders()->first1);
    store(&x, 2, orders()->second1);
}

static void co_reader(void *arg)
{
    (void)arg;
    r0 = load(&x, orders()->first2);
    r1 = load(&x, orders()->second2);
}

/* CoRR: two reads do not go back. */
static void corr(void)
{
    run_two(co_writer, co_reader);
    mc_note(10 * r0 + r1);
}

/* CoWW: the last store of a thread is its last. */
static void coww(void)
{
    run_two(co_writer, co_reader);
    mc_note(load(&x, RLX));
}

static void store_then_load(void *arg)
{
    (void)arg;
    store(&x, 1, orders()->first1);
    r0 = load(&x, orders()->second1);
}

static void store_two(void *arg)
{
    (void)arg;
    store(&x, 2, orders()->first2);
}

/* CoWR: a thread does not read what was before its own store. */
static void cowr(void)
{
    run_two(store_then_load, store_two);
    mc_note(10 * r0 + load(&x, RLX));
}

static void load_then_store(void *arg)
{
    (void)arg;
    r0 = load(&x, orders()->first1);
    store(&x, 1, orders()->second1);
}

/* CoRW: a thread does not store before what it has read. */
static void corw(void)
{
    run_two(load_then_store, store_two);
    mc_note(10 * r0 + load(&x, RLX));
}

/* --- The table ---------------------------------------------------------------- */

#define ORDERS(...)                                                                                \
    &(const struct orders)                                                                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

#define ROW(test, suffix, list, ...)                                                               \
    {                                                                                              \
        .name = #test "_" suffix, .run = test, .arg = list, .seen_only = true, __VA_ARGS__         \
    }

static const struct mc_test tests[] = {
    ROW(sb, "rlx", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(sb, "rel_acq", ORDERS(REL, NO, ACQ, REL, NO, ACQ), .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(sb, "ar_fence", ORDERS(RLX, AR, RLX, RLX, AR, RLX), .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(sb, "sc", ORDERS(SC, NO, SC, SC, NO, SC), .seen = MC_OUTCOMES(1, 10, 11)),
    ROW(sb, "weak_sc", ORDERS(SC, NO, SC, SC, NO, SC), .weak_seq_cst = true,
        .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(sb, "sc_fence", ORDERS(RLX, SC, RLX, RLX, SC, RLX), .seen = MC_OUTCOMES(1, 10, 11)),
    ROW(sb, "sc_fence_and_sc", ORDERS(RLX, SC, RLX, SC, NO, SC), .seen = MC_OUTCOMES(1, 10, 11)),
    ROW(sb, "sc_one_fence", ORDERS(RLX, SC, RLX, RLX, NO, RLX), .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(sb, "sc_one_store_rel", ORDERS(SC, NO, SC, REL, NO, SC), .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(sb, "sc_one_load_acq", ORDERS(SC, NO, ACQ, SC, NO, SC), .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(sb_rmw, "ar_same_word", ORDERS(.fence1 = AR, .fence2 = AR), .seen = MC_OUTCOMES(1, 10, 11)),
    ROW(sb_rmw, "rlx_same_word", ORDERS(.fence1 = RLX, .fence2 = RLX),
        .seen = MC_OUTCOMES(0, 1, 10, 11)),
    /* A seq_cst RMW is not a fence. */
    ROW(sb_rmw, "sc_two_words", ORDERS(.fence1 = SC, .fence2 = SC, .first2 = NO),
        .seen = MC_OUTCOMES(0, 1, 10, 11)),

    ROW(mp, "rlx", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(mp, "rel_acq", ORDERS(RLX, NO, REL, ACQ, NO, RLX), .seen = MC_OUTCOMES(0, 1, 11)),
    ROW(mp, "sc", ORDERS(RLX, NO, SC, SC, NO, RLX), .seen = MC_OUTCOMES(0, 1, 11)),
    ROW(mp, "rel_rlx", ORDERS(RLX, NO, REL, RLX, NO, RLX), .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(mp, "rlx_acq", ORDERS(RLX, NO, RLX, ACQ, NO, RLX), .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(mp, "sc_rlx", ORDERS(RLX, NO, SC, RLX, NO, RLX), .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(mp, "rlx_sc", ORDERS(RLX, NO, RLX, SC, NO, RLX), .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(mp, "fences", ORDERS(RLX, REL, RLX, RLX, ACQ, RLX), .seen = MC_OUTCOMES(0, 1, 11)),
    ROW(mp, "ar_fences", ORDERS(RLX, AR, RLX, RLX, AR, RLX), .seen = MC_OUTCOMES(0, 1, 11)),
    ROW(mp, "sc_fences", ORDERS(RLX, SC, RLX, RLX, SC, RLX), .seen = MC_OUTCOMES(0, 1, 11)),
    ROW(mp, "rel_store_acq_fence", ORDERS(RLX, NO, REL, RLX, ACQ, RLX),
        .seen = MC_OUTCOMES(0, 1, 11)),
    ROW(mp, "rel_fence_acq_load", ORDERS(RLX, REL, RLX, ACQ, NO, RLX),
        .seen = MC_OUTCOMES(0, 1, 11)),
    ROW(mp, "rel_fence_only", ORDERS(RLX, REL, RLX, RLX, NO, RLX),
        .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(mp, "acq_fence_only", ORDERS(RLX, NO, RLX, RLX, ACQ, RLX),
        .seen = MC_OUTCOMES(0, 1, 10, 11)),
    /* The fences are the wrong way round. */
    ROW(mp, "acq_rel_swapped", ORDERS(RLX, ACQ, RLX, RLX, REL, RLX),
        .seen = MC_OUTCOMES(0, 1, 10, 11)),

    /* C11 allows 10 here: the seq_cst load may come before the seq_cst store in their
     * order. This checker has one order for that and for what is executed. */
    ROW(mp, "sc_data_rlx_flag", ORDERS(SC, NO, RLX, RLX, NO, SC), .seen = MC_OUTCOMES(0, 1, 11)),
    ROW(mp, "weak_sc_data_rlx_flag", ORDERS(SC, NO, RLX, RLX, NO, SC), .weak_seq_cst = true,
        .seen = MC_OUTCOMES(0, 1, 10, 11)),
    ROW(mp, "sc_data", ORDERS(SC, NO, RLX, RLX, NO, RLX), .seen = MC_OUTCOMES(0, 1, 10, 11)),

    /* C11 allows 11 for relaxed accesses; this checker never shows it. */
    ROW(lb, "rlx", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .seen = MC_OUTCOMES(0, 1, 10)),
    ROW(lb, "rel_acq", ORDERS(ACQ, NO, REL, ACQ, NO, REL), .seen = MC_OUTCOMES(0, 1, 10)),
    ROW(lb, "ar_fence", ORDERS(RLX, AR, RLX, RLX, AR, RLX), .seen = MC_OUTCOMES(0, 1, 10)),
    ROW(lb, "sc", ORDERS(SC, NO, SC, SC, NO, SC), .seen = MC_OUTCOMES(0, 1, 10)),

    ROW(s, "rlx", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(1, 2, 11, 12)),
    ROW(s, "rlx_in_order", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .seen = MC_OUTCOMES(1, 2, 11)),
    ROW(s, "rel_acq", ORDERS(RLX, NO, REL, ACQ, NO, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(1, 2, 11)),
    ROW(s, "fences", ORDERS(RLX, REL, RLX, RLX, ACQ, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(1, 2, 11)),

    ROW(s, "rel_rlx", ORDERS(RLX, NO, REL, RLX, NO, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(1, 2, 11, 12)),
    ROW(s, "rlx_acq", ORDERS(RLX, NO, RLX, ACQ, NO, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(1, 2, 11, 12)),
    ROW(s, "sc", ORDERS(SC, NO, SC, SC, NO, SC), .early_stores = true,
        .seen = MC_OUTCOMES(1, 2, 11)),
    ROW(s, "sc_fences", ORDERS(RLX, SC, RLX, RLX, SC, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(1, 2, 11)),

    ROW(r, "rlx", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .seen = MC_OUTCOMES(1, 2, 11, 12)),
    ROW(r, "rel_acq", ORDERS(RLX, NO, REL, REL, NO, ACQ), .seen = MC_OUTCOMES(1, 2, 11, 12)),
    ROW(r, "ar_fence", ORDERS(RLX, AR, RLX, RLX, AR, RLX), .seen = MC_OUTCOMES(1, 2, 11, 12)),
    ROW(r, "one_sc_fence", ORDERS(RLX, NO, RLX, RLX, SC, RLX), .seen = MC_OUTCOMES(1, 2, 11, 12)),
    ROW(r, "sc", ORDERS(SC, NO, SC, SC, NO, SC), .seen = MC_OUTCOMES(1, 11, 12)),
    ROW(r, "sc_early", ORDERS(SC, NO, SC, SC, NO, SC), .early_stores = true,
        .seen = MC_OUTCOMES(1, 11, 12)),
    ROW(r, "sc_fences", ORDERS(RLX, SC, RLX, RLX, SC, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(1, 11, 12)),

    ROW(two_plus_two, "rlx", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(11, 12, 21, 22)),
    ROW(two_plus_two, "rel", ORDERS(REL, NO, REL, REL, NO, REL), .early_stores = true,
        .seen = MC_OUTCOMES(11, 12, 21, 22)),
    ROW(two_plus_two, "ar_fence", ORDERS(RLX, AR, RLX, RLX, AR, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(11, 12, 21, 22)),
    ROW(two_plus_two, "one_sc_fence", ORDERS(RLX, SC, RLX, RLX, NO, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(11, 12, 21, 22)),
    ROW(two_plus_two, "rlx_in_order", ORDERS(RLX, NO, RLX, RLX, NO, RLX),
        .seen = MC_OUTCOMES(12, 21, 22)),
    ROW(two_plus_two, "sc", ORDERS(SC, NO, SC, SC, NO, SC), .early_stores = true,
        .seen = MC_OUTCOMES(12, 21, 22)),
    ROW(two_plus_two, "sc_fences", ORDERS(RLX, SC, RLX, RLX, SC, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(12, 21, 22)),

    ROW(corr, "rlx", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .seen = MC_OUTCOMES(0, 1, 2, 11, 12, 22)),
    ROW(corr, "early", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(0, 1, 2, 11, 12, 22)),
    ROW(corr, "sc", ORDERS(SC, NO, SC, SC, NO, SC), .seen = MC_OUTCOMES(0, 1, 2, 11, 12, 22)),
    ROW(coww, "rlx", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .seen = MC_OUTCOMES(2)),
    ROW(coww, "early", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(2)),
    ROW(cowr, "rlx", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .seen = MC_OUTCOMES(11, 12, 22)),
    ROW(cowr, "early", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(11, 12, 22)),
    ROW(corw, "rlx", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .seen = MC_OUTCOMES(1, 2, 21)),
    ROW(corw, "early", ORDERS(RLX, NO, RLX, RLX, NO, RLX), .early_stores = true,
        .seen = MC_OUTCOMES(1, 2, 21)),
};

MC_MAIN(tests)
