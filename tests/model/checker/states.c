/* SPDX-License-Identifier: MIT */
/*
 * states.c - every state, once: depth first, cut at what was seen before.
 *
 * Two ways to the same execution graph (who has done what, which message was
 * read where, the modification orders) have the same future, so a state is known
 * by a hash of that. The cost goes with the number of states, which is far more
 * than that of executions (all.c); but it needs no theory of what depends on what,
 * so it can bound the number of preemptions, and the other mode is tested by it.
 */
#include "explore.h"

#include <stdlib.h>

#include "report.h"

struct decision {
    uint32_t count;
    uint32_t taken;
};

static struct decision *path;
static size_t path_count;
static size_t path_capacity;
static size_t path_at;

static uint64_t *seen; /* an open hash table; 0 is a free place */
static size_t seen_count;
static size_t seen_capacity;

static unsigned preemptions;

static void start(void)
{
    path_count = 0;
    free(seen);
    seen = NULL;
    seen_count = 0;
    seen_capacity = 0;
}

static void begin(void)
{
    path_at = 0;
    preemptions = 0;
}

static uint32_t decide(uint32_t count)
{
    if (path_at == path_count) {
        MC_GROW(path, path_count, path_capacity);
        path[path_count++] = (struct decision){ .count = count };
    }
    if (path[path_at].count != count) {
        mc_report_limit("the test does not repeat itself: it depends on something other than its "
                        "schedule");
    }
    return path[path_at++].taken;
}

/* --- The set of seen states ------------------------------------------------- */

static size_t place_of(const uint64_t *set, size_t capacity, uint64_t hash)
{
    size_t at = hash & (capacity - 1);
    while (set[at] != 0 && set[at] != hash) {
        at = (at + 1) & (capacity - 1);
    }
    return at;
}

static void grow_seen(void)
{
    size_t capacity = seen_capacity == 0 ? 1 << 12 : 2 * seen_capacity;
    uint64_t *set = calloc(capacity, sizeof *set);
    if (set == NULL) {
        mc_report_limit("out of memory for the states of MC_STATES");
    }
    for (size_t i = 0; i < seen_capacity; i++) {
        if (seen[i] != 0) {
            set[place_of(set, capacity, seen[i])] = seen[i];
        }
    }
    free(seen);
    seen = set;
    seen_capacity = capacity;
}

/* Returns true if it was there. */
static bool add_seen(uint64_t hash)
{
    if (2 * seen_count >= seen_capacity) {
        grow_seen();
    }
    hash = hash == 0 ? 1 : hash;
    size_t at = place_of(seen, seen_capacity, hash);
    if (seen[at] == hash) {
        return true;
    }
    seen[at] = hash;
    seen_count++;
    mc_explore.states++;
    return false;
}

static uint64_t hash_state(unsigned last)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        const struct mc_thread *thread = &mc_exec.threads[i];
        uint64_t place = (uint64_t)i << 32 | (uint64_t)thread->op.kind << 8 |
                         (uint64_t)thread->life << 1 | thread->woken;
        sum += mc_mix(place, thread->hash);
    }
    for (unsigned i = 0; i < mc_exec.location_count; i++) {
        const struct mc_location *location = mc_location_get(i);
        uint64_t order = mc_mix(location->hash, location->woken);
        sum += mc_mix(location->addr, mc_mix(order, mc_exec.sc_view[i]));
    }
    if (mc_explore.limits.preemptions != UINT32_MAX) {
        sum = mc_mix(sum, (uint64_t)last << 32 | preemptions);
    }
    return sum;
}

/* --- The strategy ----------------------------------------------------------- */

static int pick(uint32_t ready, unsigned last)
{
    uint32_t candidates = ready;
    bool last_is_ready = (ready & 1u << last) != 0 && mc_exec.threads[last].op.kind != MC_OP_SLEEP;
    if (last_is_ready && preemptions >= mc_explore.limits.preemptions) {
        candidates = 1u << last;
    }
    unsigned order[MC_THREADS_MAX];
    unsigned count = 0;
    if (last_is_ready) {
        order[count++] = last;
    }
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        if ((candidates & 1u << i) && !(last_is_ready && i == last)) {
            order[count++] = i;
        }
    }
    if (count == 1) {
        return (int)order[0];
    }
    if (path_at == path_count && add_seen(hash_state(last))) {
        return MC_PICK_NONE;
    }
    unsigned next = order[decide(count)];
    preemptions += last_is_ready && next != last;
    return (int)next;
}

static bool next(void)
{
    while (path_count > 0) {
        struct decision *decision = &path[path_count - 1];
        if (++decision->taken < decision->count) {
            return true;
        }
        path_count--;
    }
    return false;
}

const struct mc_strategy mc_strategy_states = {
    .name = "states",
    .is_exhaustive = true,
    .start = start,
    .begin = begin,
    .pick = pick,
    .choose = decide,
    .next = next,
};
