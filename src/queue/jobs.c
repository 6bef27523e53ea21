/* SPDX-License-Identifier: MIT */
/*
 * jobs.c - fork stack of one fork context: private forks on top, public ones below.
 *
 * A fork context forks and joins billions of times and is stolen from a few thousand times. So
 * a fork is private at first: no other thread looks at it, and pushing and popping it takes no
 * atomic instruction. A thief that finds no public fork posts a request. The owner answers at
 * its next fork or join by publishing its oldest forks, which are the largest.
 *
 *   publish   owner: their states = 0; split += n by fetch_add [J1]
 *   steal     thief: CAS tail + 1 [J1]; the fork is then the thief's to read and run
 *   finish    thief: exchange the state for DONE [J2]
 *   reclaim   owner, for the public fork h = split - 1: split -= n by fetch_sub. If tail was
 *             already beyond that, split = tail by fetch_add. Which thread has h?
 *               tail <= h   the owner
 *               tail  > h   a thief, and thieves have everything below, too
 *   joined    owner, after a thief has finished h: word = { h, h }
 *
 * A thief's CAS takes the fork that is in the slot at that time. If the word is unchanged, the
 * slot may have been joined and forked again meanwhile. Then the thief takes the new fork, and
 * sees it, since the CAS reads from the last fetch_add. So neither the slots nor the whole
 * stack need a version: a late thief on a stack that another fork context uses by now steals
 * from that context, which is as good. It is not as good for a thief that wants forks of one
 * context only. For such thieves the stack has a name. The name changes while the stack is
 * empty, and with it the version in the word:
 *
 *   Rename, owner                    Steal by name, thief
 *   R1  name = new [J5]              S1  read the word; it is not empty [J1]
 *   R2  version + 1                  S2  read the name [J5]; give up if it differs
 *                                    S3  CAS tail + 1
 *
 * The name read in S2 is not older than the forks seen in S1, since these were published after
 * R1. If it is newer, these forks are gone, and S3 fails.
 *
 * Between the two steps of a reclaim, split is below tail, and the stack looks empty. It also
 * looks empty at { h, h }, where the tail has gone back from h + 1 to h. Thieves cannot tell,
 * since they do not steal from an empty stack.
 *
 * Requests. At each fork and join the owner compares with two limits. A requester changes the
 * limits so that the comparison fails, and adds what it wants to reasons. The owner restores
 * the limits after it has answered, and may thereby overwrite those of a concurrent requester:
 *
 *   Ask, any thread                  Open, owner
 *   A1  reasons |= r                 O1  restore the limits
 *   A2  full fence [J4]              O2  full fence [J4]
 *   A3  limits: asked                O3  any reasons? Then limits: asked
 *
 * If O1 overwrites A3, then O2 comes after A2, and O3 sees the reason. A requester that finds
 * its reason already set leaves the rest to the requester that set it.
 *
 * Edges.
 * [J1] publish releases the word, steal acquires it: the thief sees the fork as it was written.
 * [J2] finish releases the state, the joiner acquires it: the joiner sees what the fork did.
 * [J3] wait releases the state, finish acquires it: the thief sees the waiter initialized.
 * [J4] the fences of A2 and O2, as above.
 * [J5] rename releases the name, steal by name acquires it: a thief that sees the new name sees
 *      that the stack was empty.
 *
 * Rejected. A deque of pointers (deque.c): a full fence in each join. A lock for thieves: a
 * thief that is preempted while it holds the lock stops the others. Publishing every fork
 * immediately: the owner pays an atomic instruction for each.
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
    /* relaxed: only a flag; the owner reads no other data because of it. */
    wf_store_relaxed(&jobs->fork_limit, (struct wf_job *)NULL);
    /* relaxed: only a flag, like the other limit. */
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
    /* relaxed: the stack is not shared yet. */
    wf_store_relaxed(&jobs->reasons, 0u);
    wf_jobs_close(jobs);
}

void wf_jobs_rename(struct wf_jobs *jobs, const void *name)
{
    WF_DEBUG_ASSERT(wf_jobs_len(jobs) == 0);
    /* release [J5]: the stack is empty. */
    wf_store_release(&jobs->name, name);
    jobs->version++;
    /* relaxed: the stack looks empty before and after, so no thief changes the word. */
    wf_store_relaxed(&jobs->word, pack(jobs->version, 0, 0));
}

bool wf_jobs_has_public(const struct wf_jobs *jobs)
{
    /* relaxed: a snapshot; thieves take forks by CAS. */
    uint64_t word = wf_load_relaxed(&jobs->word);
    return tail_of(word) < split_of(word);
}

void wf_jobs_publish(struct wf_jobs *jobs, uint32_t count)
{
    WF_DEBUG_ASSERT(count <= wf_jobs_private(jobs));
    for (uint32_t i = 0; i < count; i++) {
        /* relaxed: [J1] below publishes it to thieves. */
        wf_store_relaxed(&jobs->slots[jobs->split + i].state, (uintptr_t)0);
    }
    jobs->split += count;
    wf_jobs_close(jobs);
    /* release [J1]: the forks are written. */
    (void)wf_fetch_add_release(&jobs->word, (uint64_t)count);
}

bool wf_jobs_reclaim(struct wf_jobs *jobs, struct wf_job *job)
{
    uint32_t at = (uint32_t)(job - jobs->slots);
    if (at >= jobs->split) {
        return true;
    }
    /* The forks above have been joined. */
    WF_DEBUG_ASSERT(at == jobs->split - 1);
    /* relaxed: a guess; the next step returns the real tail. */
    uint32_t tail = tail_of(wf_load_relaxed(&jobs->word));
    /* The older half stays public, and the next few joins take the fast path. */
    uint32_t split = tail < at ? tail + (at - tail) / 2 : at;
    /* relaxed: the reclaimed forks never belonged to another thread. */
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
    /* relaxed: the stack looks empty before and after, so no thief changes the word. */
    wf_store_relaxed(&jobs->word, pack(jobs->version, at, at));
}

uint32_t wf_jobs_take_reasons(struct wf_jobs *jobs)
{
    /* relaxed: only requests; no other data comes with them. */
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
    /* relaxed: O3, ordered by the fence. */
    if (wf_load_relaxed(&jobs->reasons) != 0) {
        wf_jobs_close(jobs);
    }
}

/* Steals the oldest public fork if the word is still the given one. */
static enum wf_steal steal(struct wf_jobs *jobs, uint64_t word, struct wf_job **out)
{
    uint32_t tail = tail_of(word);
    if (tail >= split_of(word)) {
        return WF_STEAL_EMPTY;
    }
    /* acquire [J1]: sees the fork as it was written. */
    if (!wf_cas_acquire(&jobs->word, &word, word + TAIL)) {
        return WF_STEAL_RETRY;
    }
    *out = &jobs->slots[tail];
    return WF_STEAL_SUCCESS;
}

enum wf_steal wf_jobs_steal(struct wf_jobs *jobs, struct wf_job **out)
{
    /* relaxed: the CAS verifies the value. */
    return steal(jobs, wf_load_relaxed(&jobs->word), out);
}

enum wf_steal wf_jobs_steal_of(struct wf_jobs *jobs, const void *name, struct wf_job **out)
{
    /* acquire [J1], S1: the name read below is not older than these forks. */
    uint64_t word = wf_load_acquire(&jobs->word);
    /* acquire [J5]: if it is newer, the jobs are gone, S2. */
    if (wf_load_acquire(&jobs->name) != name) {
        return WF_STEAL_EMPTY;
    }
    return steal(jobs, word, out);
}

bool wf_jobs_is_asked(const struct wf_jobs *jobs, uint32_t reason)
{
    /* relaxed: a caller that finds it set relies on the thread that set it. */
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
