/* SPDX-License-Identifier: MIT */
/*
 * chance.c - some executions, for tests that are too large to run all.
 *
 * Random: every ready thread is as likely as any other.
 *
 * PCT (Burckhardt and others, ASPLOS 2010): every thread has a priority and the
 * highest one that is ready runs; at a few random steps the thread that runs
 * falls to the bottom. A bug that needs d such changes in n steps of k threads is
 * found with a probability of at least 1 in k * n^d per run, however unlikely it
 * is under an even scheduler.
 *
 * Both prefer the newest message of a load half of the time.
 */
#include "explore.h"

#include "report.h"

enum {
    CHANGES_MAX = 16,
    PRIORITY_BASE = 1 << 16, /* above all that have fallen */
};

static uint64_t run;
static uint64_t state;
static uint32_t steps;      /* picks in this execution */
static uint32_t steps_last; /* picks in the longest one */
static uint32_t priorities[MC_THREADS_MAX];
static uint32_t change_at[CHANGES_MAX];
static uint32_t changes_done;

static uint32_t random_below(uint32_t count)
{
    /* splitmix64 */
    state += 0x9e3779b97f4a7c15ull;
    return (uint32_t)(mc_mix(0, state) >> 32) % count;
}

static void start(void)
{
    run = 0;
    steps = 0;
    steps_last = 0;
}

static void random_begin(void)
{
    state = mc_mix(mc_explore.limits.seed, run);
}

static void pct_begin(void)
{
    random_begin();
    steps_last = steps > steps_last ? steps : steps_last;
    steps = 0;
    changes_done = 0;
    for (unsigned i = 0; i < MC_THREADS_MAX; i++) {
        priorities[i] = PRIORITY_BASE + random_below(PRIORITY_BASE);
    }
    for (unsigned i = 0; i < mc_explore.limits.changes && i < CHANGES_MAX; i++) {
        change_at[i] = random_below(steps_last + 1);
    }
}

/* Threads that would end their sleep by themselves should mostly go on
 * sleeping, or they would never be woken. */
static uint32_t leave_asleep(uint32_t ready)
{
    uint32_t active = ready;
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        if (mc_exec.threads[i].op.kind == MC_OP_SLEEP && random_below(8) != 0) {
            active &= ~(1u << i);
        }
    }
    return active != 0 ? active : ready;
}

static int random_pick(uint32_t ready, unsigned last)
{
    (void)last;
    ready = leave_asleep(ready);
    unsigned skip = random_below((uint32_t)__builtin_popcount(ready));
    while (skip-- > 0) {
        ready &= ready - 1;
    }
    return __builtin_ctz(ready);
}

static int highest(uint32_t ready)
{
    int best = -1;
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        if ((ready & 1u << i) && (best < 0 || priorities[i] > priorities[best])) {
            best = (int)i;
        }
    }
    return best;
}

static int pct_pick(uint32_t ready, unsigned last)
{
    (void)last;
    ready = leave_asleep(ready);
    int best = highest(ready);
    for (unsigned i = 0; i < mc_explore.limits.changes && i < CHANGES_MAX; i++) {
        if (change_at[i] == steps) {
            priorities[best] = PRIORITY_BASE - ++changes_done;
            best = highest(ready);
        }
    }
    steps++;
    return best;
}

static unsigned choose(unsigned count)
{
    return random_below(2) == 0 ? 0 : random_below(count);
}

static bool next(void)
{
    return ++run < mc_explore.limits.runs;
}

const struct mc_strategy mc_strategy_random = {
    .name = "random",
    .start = start,
    .begin = random_begin,
    .pick = random_pick,
    .choose = choose,
    .next = next,
};

const struct mc_strategy mc_strategy_pct = {
    .name = "pct",
    .start = start,
    .begin = pct_begin,
    .pick = pct_pick,
    .choose = choose,
    .next = next,
};
