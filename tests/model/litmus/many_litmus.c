/* SPDX-License-Identifier: MIT */
/*
 * many_litmus.c - the litmus tests of three and four threads, with each order.
 *
 * The outcome of a test is its results as the digits of a number, r0 first.
 */
#include "litmus.h"

/* The order of stores, of loads, and of the fence between two accesses. */
struct orders {
    int store;
    int load;
    int fence;
};

static atomic_int x;
static atomic_int y;
static atomic_int z;
static int r[4];

static const struct orders *orders(void)
{
    return mc_arg();
}

static void note(unsigned count)
{
    int outcome = 0;
    for (unsigned i = 0; i < count; i++) {
        outcome = 10 * outcome + r[i];
    }
    mc_note(outcome);
}

static void store_x(void *arg)
{
    (void)arg;
    store(&x, 1, orders()->store);
}

static void store_y(void *arg)
{
    (void)arg;
    store(&y, 1, orders()->store);
}

/* --- IRIW: two writers, and two readers that may disagree about their order --- */

static void read_xy(void *arg)
{
    (void)arg;
    r[0] = load(&x, orders()->load);
    fence(orders()->fence);
    r[1] = load(&y, orders()->load);
}

static void read_yx(void *arg)
{
    (void)arg;
    r[2] = load(&y, orders()->load);
    fence(orders()->fence);
    r[3] = load(&x, orders()->load);
}

static void iriw(void)
{
    mc_go(store_x, NULL);
    mc_go(store_y, NULL);
    mc_go(read_xy, NULL);
    mc_go(read_yx, NULL);
    mc_join();
    note(4);
}

/* --- WRC: x=1 || r0=x; y=1 || r1=y; r2=x --------------------------------------- */

static void wrc2(void *arg)
{
    (void)arg;
    r[0] = load(&x, orders()->load);
    fence(orders()->fence);
    store(&y, 1, orders()->store);
}

static void wrc3(void *arg)
{
    (void)arg;
    r[1] = load(&y, orders()->load);
    fence(orders()->fence);
    r[2] = load(&x, orders()->load);
}

static void wrc(void)
{
    mc_go(store_x, NULL);
    mc_go(wrc2, NULL);
    mc_go(wrc3, NULL);
    mc_join();
    note(3);
}

/* --- ISA2: x=1; y=1 || r0=y; z=1 || r1=z; r2=x --------------------------------- */

static void isa1(void *arg)
{
    (void)arg;
    store(&x, 1, RLX);
    fence(orders()->fence);
    store(&y, 1, orders()->store);
}

static void isa2_(void *arg)
{
    (void)arg;
    r[0] = load(&y, orders()->load);
    fence(orders()->fence);
    store(&z, 1, orders()->store);
}

static void isa3(void *arg)
{
    (void)arg;
    r[1] = load(&z, orders()->load);
    fence(orders()->fence);
    r[2] = load(&x, RLX);
}

static void isa2(void)
{
    mc_go(isa1, NULL);
    mc_go(isa2_, NULL);
    mc_go(isa3, NULL);
    mc_join();
    note(3);
}

/* --- RWC: x=1 || r0=x; r1=y || y=1; r2=x --------------------------------------- */

static void rwc3(void *arg)
{
    (void)arg;
    store(&y, 1, orders()->store);
    fence(orders()->fence);
    r[2] = load(&x, orders()->load);
}

static void rwc(void)
{
    mc_go(store_x, NULL);
    mc_go(read_xy, NULL);
    mc_go(rwc3, NULL);
    mc_join();
    note(3);
}

/* --- W+RWC: x=1; y=1 || r0=y; r1=z || z=1; r2=x, the first store always released - */

static void wrwc1(void *arg)
{
    (void)arg;
    store(&x, 1, RLX);
    store(&y, 1, REL);
}

static void wrwc2(void *arg)
{
    (void)arg;
    r[0] = load(&y, ACQ);
    fence(orders()->fence);
    r[1] = load(&z, RLX);
}

static void wrwc3(void *arg)
{
    (void)arg;
    store(&z, 1, RLX);
    fence(SC);
    r[2] = load(&x, RLX);
}

static void wrwc(void)
{
    mc_go(wrwc1, NULL);
    mc_go(wrwc2, NULL);
    mc_go(wrwc3, NULL);
    mc_join();
    note(3);
}

/* --- A chain: x=1; F; y=1 || r0=y; z=1 || r1=z; F; r2=x, relaxed but for the fences -- */

static void chain1(void *arg)
{
    (void)arg;
    store(&x, 1, RLX);
    fence(orders()->fence);
    store(&y, 1, RLX);
}

static void chain2(void *arg)
{
    (void)arg;
    r[0] = load(&y, RLX);
    store(&z, 1, RLX);
}

static void chain3(void *arg)
{
    (void)arg;
    r[1] = load(&z, RLX);
    fence(orders()->fence);
    r[2] = load(&x, RLX);
}

static void chain(void)
{
    mc_go(chain1, NULL);
    mc_go(chain2, NULL);
    mc_go(chain3, NULL);
    mc_join();
    note(3);
}

/* --- Coherence of two writers: all readers see one order ------------------------ */

static void store_x2(void *arg)
{
    (void)arg;
    store(&x, 2, orders()->store);
}

static void read_twice(void *arg)
{
    int *into = arg;
    into[0] = load(&x, orders()->load);
    into[1] = load(&x, orders()->load);
}

static void one_order(void)
{
    mc_go(store_x, NULL);
    mc_go(store_x2, NULL);
    mc_go(read_twice, &r[0]);
    mc_go(read_twice, &r[2]);
    mc_join();
    mc_note(1000 * r[0] + 100 * r[1] + 10 * r[2] + r[3]);
}

#define ORDERS(...)                                                                                \
    &(const struct orders)                                                                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

#define ROW(test, suffix, list, ...)                                                               \
    {                                                                                              \
        .name = #test "_" suffix, .run = test, .arg = list, __VA_ARGS__                            \
    }

static const struct mc_test tests[] = {
    ROW(iriw, "rlx", ORDERS(RLX, RLX, NO), .seen = MC_OUTCOMES(1010)),
    ROW(iriw, "rel_acq", ORDERS(REL, ACQ, NO), .seen = MC_OUTCOMES(1010)),
    ROW(iriw, "ar_fence", ORDERS(REL, ACQ, AR), .seen = MC_OUTCOMES(1010)),
    ROW(iriw, "sc", ORDERS(SC, SC, NO), .seen = MC_OUTCOMES(1011, 1110, 1111),
        .never = MC_OUTCOMES(1010)),
    ROW(iriw, "sc_fence", ORDERS(RLX, RLX, SC), .seen = MC_OUTCOMES(1011, 1110, 1111),
        .never = MC_OUTCOMES(1010)),
    /* C11 allows it, C++20 does not: the loads are ordered by nothing but what
     * they read. */
    ROW(iriw, "sc_loads_only", ORDERS(REL, SC, NO), .seen = MC_OUTCOMES(1010)),

    ROW(wrc, "rlx", ORDERS(RLX, RLX, NO), .seen = MC_OUTCOMES(110)),
    ROW(wrc, "rel_acq", ORDERS(REL, ACQ, NO), .seen = MC_OUTCOMES(111, 11, 10),
        .never = MC_OUTCOMES(110)),
    ROW(wrc, "fences", ORDERS(RLX, RLX, AR), .seen = MC_OUTCOMES(111), .never = MC_OUTCOMES(110)),
    ROW(wrc, "sc", ORDERS(SC, SC, NO), .seen = MC_OUTCOMES(111), .never = MC_OUTCOMES(110)),

    ROW(wrc, "sc_fence", ORDERS(RLX, RLX, SC), .seen = MC_OUTCOMES(111), .never = MC_OUTCOMES(110)),
    ROW(wrc, "rel_only", ORDERS(REL, RLX, NO), .seen = MC_OUTCOMES(110)),
    ROW(wrc, "acq_only", ORDERS(RLX, ACQ, NO), .seen = MC_OUTCOMES(110)),

    ROW(isa2, "rlx", ORDERS(RLX, RLX, NO), .seen = MC_OUTCOMES(110)),
    ROW(isa2, "rel_acq", ORDERS(REL, ACQ, NO), .seen = MC_OUTCOMES(111), .never = MC_OUTCOMES(110)),
    ROW(isa2, "fences", ORDERS(RLX, RLX, AR), .seen = MC_OUTCOMES(111), .never = MC_OUTCOMES(110)),
    ROW(isa2, "sc", ORDERS(SC, SC, NO), .seen = MC_OUTCOMES(111), .never = MC_OUTCOMES(110)),

    ROW(isa2, "sc_fence", ORDERS(RLX, RLX, SC), .seen = MC_OUTCOMES(111),
        .never = MC_OUTCOMES(110)),
    ROW(isa2, "rel_only", ORDERS(REL, RLX, NO), .seen = MC_OUTCOMES(110)),
    ROW(isa2, "acq_only", ORDERS(RLX, ACQ, NO), .seen = MC_OUTCOMES(110)),

    ROW(rwc, "rlx", ORDERS(RLX, RLX, NO), .seen = MC_OUTCOMES(100)),
    ROW(rwc, "rel_acq", ORDERS(REL, ACQ, NO), .seen = MC_OUTCOMES(100)),
    ROW(rwc, "ar_fence", ORDERS(REL, ACQ, AR), .seen = MC_OUTCOMES(100)),
    ROW(rwc, "sc", ORDERS(SC, SC, NO), .seen = MC_OUTCOMES(101, 110, 111),
        .never = MC_OUTCOMES(100)),
    ROW(rwc, "sc_fence", ORDERS(RLX, RLX, SC), .seen = MC_OUTCOMES(101, 110, 111),
        .never = MC_OUTCOMES(100)),

    ROW(wrwc, "one_sc_fence", ORDERS(.fence = NO), .seen = MC_OUTCOMES(100)),
    ROW(wrwc, "two_sc_fences", ORDERS(.fence = SC), .seen = MC_OUTCOMES(101, 110, 111),
        .never = MC_OUTCOMES(100)),

    ROW(chain, "ar_fence", ORDERS(.fence = AR), .seen = MC_OUTCOMES(110)),
    /* C11 allows 110: the second thread's store may come before its load, which this
     * checker never shows. */
    ROW(chain, "sc_fence", ORDERS(.fence = SC), .seen = MC_OUTCOMES(111),
        .never = MC_OUTCOMES(110)),

    ROW(one_order, "rlx", ORDERS(RLX, RLX, NO), .seen = MC_OUTCOMES(1212, 2121),
        .never = MC_OUTCOMES(1221, 2112)),
    ROW(one_order, "early", ORDERS(RLX, RLX, NO), .early_stores = true,
        .seen = MC_OUTCOMES(1212, 2121), .never = MC_OUTCOMES(1221, 2112)),
};

MC_MAIN(tests)
