/* SPDX-License-Identifier: MIT */
/*
 * jobs.c - the stack of one strand's forks: private on top, public below.
 *
 * A strand forks and joins billions of times and is stolen from a few thousand
 * times. So what it has forked is private at first: nobody else looks at it, and to
 * push and pop it takes no atomic instruction. When a thief finds nothing public it
 * asks; the owner answers at its next fork or join by making its oldest jobs, which
 * are the largest, public.
 *
 *   publish   owner: their states = 0; split += n by fetch_add [J1]
 *   steal     thief: CAS tail + 1 [J1]; then the job is its own, to read and run
 *   finish    thief: exchange of the state for DONE [J2]
 *   reclaim   owner, job h = split - 1 is public: split -= n by fetch_sub. If the tail had
 *             come further than that, split = tail by fetch_add. Whose is h?
 *               tail <= h   the owner's
 *               tail  > h   a thief's, and so is everything below
 *   joined    owner, h has ended at a thief: word = { h, h }
 *
 * A thief's CAS names the job that is there now: if the word is as it was, the slot may
 * have been joined and forked again meanwhile, but then it is the new job that it takes,
 * and sees, since the CAS reads from the last fetch_add. So neither slots nor the whole
 * stack need a version: a late thief of a stack that another strand uses by now steals
 * from that one, which is as good. But not for who wants jobs of one strand only. For
 * those the stack has a name, which changes while it is empty, and with it the version
 * in the word:
 *
 *   Rename, owner                    Steal of, thief
 *   R1  name = new [J5]              S1  read the word; it is not empty [J1]
 *   R2  version + 1                  S2  read the name [J5]: is it the one?
 *                                    S3  CAS tail + 1
 *
 * The name in S2 is not older than the jobs that S1 has seen, since these were published
 * after R1; and if it is newer, these jobs are gone, and S3 fails.
 *
 * While split is below tail, between the two steps of a reclaim, the stack looks empty.
 * At { h, h } it does, too, and h + 1 jobs less have been stolen than the tail had
 * counted: nobody can tell, since thieves do not take from an empty one.
 *
 * Asking. The owner compares with two limits at each fork and join; whoever wants
 * something changes them, so that the comparison fails. What it wants is in reasons. The
 * owner puts the limits back when it has answered, and may so overwrite the limits of
 * one who asks just now:
 *
 *   Ask, any thread                  Open, owner
 *   A1  reasons |= r                 O1  limits as they should be
 *   A2  full fence [J4]              O2  full fence [J4]
 *   A3  limits: asked                O3  any reasons? Then limits: asked
 *
 * If O1 overwrites A3, then O2 comes after A2, and O3 sees the reason. Who finds its
 * reason set leaves the rest to who has set it.
 *
 * Edges.
 * [J1] publish releases the word, steal acquires it: the job is seen as forked.
 * [J2] finish releases the state, the joiner acquires it: what the job did is seen.
 * [J3] wait releases the state, finish acquires it: the waiter is seen whole.
 * [J4] the fences of A2 and O2, as above.
 * [J5] rename releases the name, steal-of acquires it: who sees the new one sees that the
 *      stack was empty.
 *
 * Rejected. A deque of pointers (deque.c): a full fence in each join. A lock for
 * thieves: one that is preempted with it stops the others. Making all jobs public as
 * they are forked: the owner pays an atomic instruction for each.
 *
 * Checked by tests/model/jobs_model.c.
 */
#include "queue/jobs.h"

#include "base/assert.h"

#define TAIL    (UINT64_C(1) << WF_JOBS_POSITION_BITS)
#define VERSION (TAIL << WF_JOBS_POSITION_BITS)

static uint64_t pack(uint64_t version, uint32_t tail, uint32_t split)
{
    return version * VERSION + tail * TAIL + split;
}

static uint32_t tail_of(uint64_t word)
{
    return (uint32_t)(word % VERSION / TAIL);
}

static uint32_t split_of(uint64_t word)
{
    return (uint32_t)(word % TAIL);
}

void wf_jobs_close(struct wf_jobs *jobs)
{
    /* relaxed: the owner reads nothing because of it. */
    wf_store_relaxed(&jobs->fork_limit, (struct wf_job *)NULL);
    /* relaxed: the owner reads nothing because of this one, either. */
    wf_store_relaxed(&jobs->join_floor, WF_JOBS_ASKED);
}

void wf_jobs_init(struct wf_jobs *jobs, struct wf_job *slots, uint32_t count)
{
    jobs->head = slots;
    jobs->stack_floor = NULL;
    jobs->steps_left = 0;
    jobs->slots = slots;
    jobs->end = slots + count;
    jobs->split = 0;
    jobs->version = 0;
    WF_ASSERT(count <= WF_JOBS_SLOTS_MAX);
    /* relaxed: the stack is not shared yet. */
    wf_store_relaxed(&jobs->word, (uint64_t)0);
    /* relaxed: the stack is not shared yet. */
    wf_store_relaxed(&jobs->name, (const void *)NULL);
    /* relaxed: it is not shared yet. */
    wf_store_relaxed(&jobs->reasons, 0u);
    wf_jobs_close(jobs);
}

void wf_jobs_rename(struct wf_jobs *jobs, const void *name)
{
    WF_DEBUG_ASSERT(wf_jobs_len(jobs) == 0);
    /* release [J5]: it is empty. */
    wf_store_release(&jobs->name, name);
    jobs->version++;
    /* relaxed: it looks empty before and after; no thief changes it. */
    wf_store_relaxed(&jobs->word, pack(jobs->version, 0, 0));
}

bool wf_jobs_has_public(const struct wf_jobs *jobs)
{
    /* relaxed: a snapshot; who takes does so by CAS. */
    uint64_t word = wf_load_relaxed(&jobs->word);
    return tail_of(word) < split_of(word);
}

void wf_jobs_publish(struct wf_jobs *jobs, uint32_t count)
{
    WF_DEBUG_ASSERT(count <= wf_jobs_private(jobs));
    for (uint32_t i = 0; i < count; i++) {
        /* relaxed: [J1] below brings it to thieves. */
        wf_store_relaxed(&jobs->slots[jobs->split + i].state, (uintptr_t)0);
    }
    jobs->split += count;
    wf_jobs_close(jobs);
    /* release [J1]: the jobs are filled. */
    (void)wf_fetch_add_release(&jobs->word, (uint64_t)count);
}

bool wf_jobs_reclaim(struct wf_jobs *jobs, struct wf_job *job)
{
    uint32_t at = (uint32_t)(job - jobs->slots);
    if (at >= jobs->split) {
        return true;
    }
    /* What is above has been joined. */
    WF_DEBUG_ASSERT(at == jobs->split - 1);
    /* relaxed: a guess; the next step tells. */
    uint32_t tail = tail_of(wf_load_relaxed(&jobs->word));
    /* The older half stays public, and the next few joins are quick. */
    uint32_t split = tail < at ? tail + (at - tail) / 2 : at;
    /* relaxed: what is taken back was never anybody else's. */
    tail = tail_of(wf_fetch_sub_relaxed(&jobs->word, (uint64_t)(jobs->split - split)));
    if (tail > split) {
        /* relaxed: it publishes nothing. */
        (void)wf_fetch_add_relaxed(&jobs->word, (uint64_t)(tail - split));
        split = tail;
    }
    jobs->split = split;
    if (tail > at) {
        jobs->head = job + 1;
    }
    return tail <= at;
}

void wf_jobs_joined(struct wf_jobs *jobs, struct wf_job *job)
{
    uint32_t at = (uint32_t)(job - jobs->slots);
    WF_DEBUG_ASSERT(jobs->split == at + 1);
    jobs->split = at;
    jobs->head = job;
    /* relaxed: it looks empty before and after; no thief changes it. */
    wf_store_relaxed(&jobs->word, pack(jobs->version, at, at));
}

uint32_t wf_jobs_take_reasons(struct wf_jobs *jobs)
{
    /* relaxed: a request, nothing comes with it. */
    return wf_xchg_relaxed(&jobs->reasons, 0u);
}

void wf_jobs_open(struct wf_jobs *jobs)
{
    /* relaxed: before the fence, O1. */
    wf_store_relaxed(&jobs->join_floor, jobs->slots + jobs->split);
    /* relaxed: before the fence, O1. */
    wf_store_relaxed(&jobs->fork_limit, jobs->end);
    /* fence [J4], O2: reasons of who has lost its limits are seen. */
    wf_fence_full();
    /* relaxed: behind the fence. */
    if (wf_load_relaxed(&jobs->reasons) != 0) {
        wf_jobs_close(jobs);
    }
}

/* If the word still is what it was: takes the oldest job. */
static enum wf_steal steal(struct wf_jobs *jobs, uint64_t word, struct wf_job **out)
{
    uint32_t tail = tail_of(word);
    if (tail >= split_of(word)) {
        return WF_STEAL_EMPTY;
    }
    /* acquire [J1]: the job is seen as it was forked. */
    if (!wf_cas_acquire(&jobs->word, &word, word + TAIL)) {
        return WF_STEAL_RETRY;
    }
    *out = &jobs->slots[tail];
    return WF_STEAL_SUCCESS;
}

enum wf_steal wf_jobs_steal(struct wf_jobs *jobs, struct wf_job **out)
{
    /* relaxed: the CAS checks the value. */
    return steal(jobs, wf_load_relaxed(&jobs->word), out);
}

enum wf_steal wf_jobs_steal_of(struct wf_jobs *jobs, const void *name, struct wf_job **out)
{
    /* acquire [J1]: the name is not older, S1. */
    uint64_t word = wf_load_acquire(&jobs->word);
    /* acquire [J5]: if it is newer, the jobs are gone, S2. */
    if (wf_load_acquire(&jobs->name) != name) {
        return WF_STEAL_EMPTY;
    }
    return steal(jobs, word, out);
}

bool wf_jobs_is_asked(const struct wf_jobs *jobs, uint32_t reason)
{
    /* relaxed: who finds it set has been asked for already. */
    return (wf_load_relaxed(&jobs->reasons) & reason) == reason;
}

void wf_jobs_ask(struct wf_jobs *jobs, uint32_t reason)
{
    if (wf_jobs_is_asked(jobs, reason)) {
        return;
    }
    /* relaxed: before the fence, A1. */
    (void)wf_fetch_or_relaxed(&jobs->reasons, reason);
    /* fence [J4], A2: an owner that overwrites the limits sees the reason. */
    wf_fence_full();
    wf_jobs_close(jobs);
}
