/* SPDX-License-Identifier: MIT */
/*
 * idle.c - set of parked workers, and the rule for waking one.
 *
 * Problem. Submitting must cost next to nothing while some worker is already searching, yet no
 * task may wait in a queue while a worker is parked.
 *
 *   Submit, any thread                  Park, one worker
 *   S1  push the task                   P1  set own bit
 *   S2  full fence [I1]                 P2  counts: not searching, not unparked
 *   S3  a worker is searching, or       P3  full fence [I1]
 *       none is parked: done            P4  look at every queue once more
 *   S4  CAS counts: one more            P5  still nothing: park; an earlier wake
 *       searching, one more unparked        is remembered (park.c)
 *   S5  clear the bit of one worker     P6  awake: unpark, see below
 *   S6  wake that worker
 *
 * Found. A searcher that finds work stops searching (F1). If it was the last searcher, it looks
 * at every queue once more behind a fence (F2) and notifies (S3) if there is work, since
 * submitters relied on it and woke no worker.
 *
 * Why no wake-up is lost [I1]. Consider a task that was pushed and a worker that parks. One of
 * the two fences comes first. If S2 does, P4 sees the task. If P3 does, S3 sees P1 and P2. Then
 * S3 either wakes a worker, which searches, or does nothing because it saw a searcher X that
 * had not yet left by P2 or F1 when S3 looked. So X's own fence comes after S2, and its P4 or
 * F2 sees the task, or X finds that very task. This holds for every worker that parks, not only
 * for the last searcher: otherwise a worker that was refused by the cap could park beside a
 * task that the only searcher left behind.
 *
 * The RMW that clears a worker's bit decides which thread has claimed the worker. The counts go
 * up before a bit is cleared and down after it is set, so
 *
 *   bits = parked workers by the counts + claims and wake-ups in progress
 *
 * and a claim can fail (S5 finds no bit) only if the sleeper woke by itself: by a wake-up
 * addressed to it, by I/O, or by a timeout. The claimer then takes its counts back. Submitters
 * may have relied on them meanwhile, so this is done like F1: look behind a fence, and try
 * again if there is work. A worker that wakes by itself counts itself as unparked and clears
 * its own bit. If the bit was already clear, the claimer has counted the worker, and the worker
 * takes its own count back.
 *
 * Rejected. Waking a worker on each push: most of them find nothing. Waking the next worker
 * whenever the last searcher finds something (Tokio): one task submitted to a sleeping runtime
 * then wakes two workers, and looking first costs less than a useless wake-up. A seq_cst load
 * in S3: it is not a fence, so the push before it may still be invisible. Clearing the bit
 * before counting: a worker that wakes by itself could leave before it was counted. A summary
 * word over the words of bits: keeping it consistent is a protocol of its own, and 1024 workers
 * are 16 words, one cache line pair, read only when a worker is parked.
 *
 * Edges.
 * [I1] the fences of S2, P3 and F2, as above.
 * [I2] P2 releases counts, S4 acquires them: a claimer that sees the count sees the bit. All
 *      other changes of the counts are RMWs, which continue the release sequence.
 * [I3] setting a bit releases, clearing it acquires: the claimer sees what the worker did
 *      before it parked. Clearing releases as well: a worker that finds its bit clear comes
 *      after the claimer's count.
 * [I4] F1 releases counts, the fence after the F1 or P2 of the last searcher acquires them: a
 *      searcher that leaves earlier may have put tasks into its own ring and notifies no
 *      worker, because the last one looks.
 */
#include "sched/idle.h"

#include "base/assert.h"

#define SEARCHING (UINT64_C(1) << 32)
#define UNPARKED  UINT64_C(1)

static uint32_t searching_of(uint64_t counts)
{
    return (uint32_t)(counts >> 32);
}

static uint32_t unparked_of(uint64_t counts)
{
    return (uint32_t)counts;
}

void wf_idle_init(struct wf_idle *idle, uint32_t workers)
{
    WF_ASSERT(workers >= 1);
    WF_ASSERT(workers <= WF_IDLE_WORKERS_MAX);
    idle->workers = workers;
    /* relaxed: not shared yet. */
    wf_store_relaxed(&idle->counts, workers * UNPARKED);
    for (unsigned i = 0; i < WF_IDLE_WORDS; i++) {
        /* relaxed: not shared yet. */
        wf_store_relaxed(&idle->parked[i], (uint64_t)0);
    }
}

static uint64_t bit_of(uint32_t worker)
{
    return UINT64_C(1) << worker % 64;
}

static void set_bit(struct wf_idle *idle, uint32_t worker)
{
    /* release [I3]: the claimer sees what this worker did before. */
    (void)wf_fetch_or_release(&idle->parked[worker / 64], bit_of(worker));
}

/* Returns true if the bit was set: the caller has claimed the worker. */
static bool clear_bit(struct wf_idle *idle, uint32_t worker)
{
    /* acq_rel [I3]: of several threads that clear the bit, the RMW chooses one. */
    uint64_t old = wf_fetch_and_acq_rel(&idle->parked[worker / 64], ~bit_of(worker));
    return (old & bit_of(worker)) != 0;
}

/* Claims a parked worker. Returns its index, or WF_IDLE_NOBODY. */
static uint32_t claim_bit(struct wf_idle *idle)
{
    /* relaxed: a hint for which worker to try last. */
    uint32_t last = wf_load_relaxed(&idle->last) - 1;
    for (uint32_t at = 0; at <= (idle->workers - 1) / 64; at++) {
        /* relaxed: a hint for which worker to try; clearing the bit decides. S4 has acquired
         * the counts, so a counted bit is visible. */
        uint64_t bits = wf_load_relaxed(&idle->parked[at]);
        for (; bits != 0; bits &= bits - 1) {
            uint32_t worker = at * 64 + (uint32_t)__builtin_ctzll(bits);
            if (worker != last && clear_bit(idle, worker)) {
                return worker;
            }
        }
    }
    return last < idle->workers && clear_bit(idle, last) ? last : WF_IDLE_NOBODY;
}

void wf_idle_wake_last(struct wf_idle *idle, uint32_t worker)
{
    /* relaxed: a hint for claimers. */
    wf_store_relaxed(&idle->last, worker + 1);
}

/* S3 and S4. Returns whether the caller must claim a worker. */
static bool reserve_wake(struct wf_idle *idle)
{
    /* relaxed: behind the caller's fence [I1]; the CAS checks the value. */
    uint64_t counts = wf_load_relaxed(&idle->counts);
    do {
        if (searching_of(counts) != 0 || unparked_of(counts) >= idle->workers) {
            return false;
        }
        /* acquire [I2]: the bit that this count stands for is visible. */
    } while (!wf_cas_acquire(&idle->counts, &counts, counts + SEARCHING + UNPARKED));
    return true;
}

uint32_t wf_idle_notify(struct wf_idle *idle, bool (*has_work)(void *arg), void *arg)
{
    /* fence [I1], S2: the work is published before the counts are read. */
    wf_fence_full();
    while (reserve_wake(idle)) {
        uint32_t worker = claim_bit(idle);
        if (worker != WF_IDLE_NOBODY) {
            return worker;
        }
        /* relaxed: before the fence. The sleeper woke by itself, so the counts are taken back. */
        (void)wf_fetch_sub_relaxed(&idle->counts, SEARCHING + UNPARKED);
        /* fence [I1]: submitters that relied on this searcher have published by now. */
        wf_fence_full();
        if (!has_work(arg)) {
            break;
        }
    }
    return WF_IDLE_NOBODY;
}

bool wf_idle_try_search(struct wf_idle *idle)
{
    /* relaxed: the cap is a heuristic; a race may exceed it. */
    if (2 * wf_idle_searching(idle) >= idle->workers) {
        return false;
    }
    wf_idle_search(idle);
    return true;
}

void wf_idle_search(struct wf_idle *idle)
{
    /* relaxed: it publishes nothing. Submitters that rely on this searcher are covered by the
     * fence with which it stops searching. */
    (void)wf_fetch_add_relaxed(&idle->counts, SEARCHING);
}

bool wf_idle_found(struct wf_idle *idle)
{
    /* release [I4]: F1. Only the last searcher looks once more. */
    uint64_t old = wf_fetch_sub_release(&idle->counts, SEARCHING);
    WF_ASSERT(searching_of(old) > 0);
    if (searching_of(old) > 1) {
        return false;
    }
    /* fence [I1] [I4], F2: submitters that saw this searcher have published. */
    wf_fence_full();
    return true;
}

void wf_idle_park(struct wf_idle *idle, uint32_t worker, bool searching)
{
    set_bit(idle, worker);
    /* release [I2], P2: with the count comes the bit. */
    uint64_t old = wf_fetch_sub_release(&idle->counts, searching ? SEARCHING + UNPARKED : UNPARKED);
    WF_ASSERT(unparked_of(old) > 0);
    WF_ASSERT(!searching || searching_of(old) > 0);
    /* fence [I1] [I4], P3: the queues are checked after this. */
    wf_fence_full();
}

bool wf_idle_unpark(struct wf_idle *idle, uint32_t worker)
{
    /* relaxed: clearing the bit releases it [I3]. */
    (void)wf_fetch_add_relaxed(&idle->counts, UNPARKED);
    if (clear_bit(idle, worker)) {
        return false;
    }
    /* relaxed: the bit has told that the claimer has counted this worker [I3]. */
    (void)wf_fetch_sub_relaxed(&idle->counts, UNPARKED);
    return true;
}

bool wf_idle_is_parked(const struct wf_idle *idle, uint32_t worker)
{
    /* relaxed: behind the caller's fence [I1]. */
    return (wf_load_relaxed(&idle->parked[worker / 64]) & bit_of(worker)) != 0;
}

uint32_t wf_idle_searching(const struct wf_idle *idle)
{
    /* relaxed: a snapshot for the cap and the counters. */
    return searching_of(wf_load_relaxed(&idle->counts));
}

uint32_t wf_idle_unparked(const struct wf_idle *idle)
{
    /* relaxed: a snapshot; the monitor reads it behind a fence of its own. */
    return unparked_of(wf_load_relaxed(&idle->counts));
}
