/* SPDX-License-Identifier: MIT */
/*
 * spin.c - loops that wait by reading.
 *
 * Problem. A loop that reads until something changes has infinitely many
 * executions. But a round that reads the same values as the one before tells
 * nobody anything, so all that matters is which new value ends the loop, and
 * whether the loop ends without one, because it counts its rounds.
 *
 * A thread spins when two rounds in a row, between which it did nothing that
 * others can see, read the same values at the same places, and a third begins.
 * A round is found as a repetition in the log of its reads. There are then two
 * ways on, both explored:
 *
 *   wait    Blocked until a word of the round has a message that the thread has
 *           not seen. Then the first changed read is chosen among the words that
 *           have one; reads before it in the round repeat the old values.
 *   again   Reads the same values without being scheduled, until the loop ends
 *           by itself. If it does not end within AGAIN_MAX reads, it never does,
 *           and the executions are those of "wait": this one is cut.
 *
 * If every thread is blocked and one of them waits here, it is forced to go again.
 * Its loop ends by itself: then this execution is one of "again", and is cut. Or
 * it does not: a livelock.
 *
 * Not explored: a loop that counts its rounds, and sees a change in the fourth
 * round or later. Only the count tells that from the third.
 */
#include "spin.h"

#include <string.h>

#include "explore.h"
#include "memory.h"
#include "report.h"
#include "run.h"

enum {
    AGAIN_MAX = 400,
    HASH_AGAIN = 0x61,
    HASH_WAIT = 0x62,
};

static void stop(struct mc_spin *spin)
{
    spin->mode = MC_SPIN_NOT;
    spin->count = 0;
}

/* The loop has ended by itself. */
static void end_again(struct mc_spin *spin)
{
    bool is_known = spin->is_known && mc_explore.strategy->is_exhaustive;
    stop(spin);
    if (is_known) {
        mc_run_cut();
    }
}

void mc_spin_effect(void)
{
    struct mc_spin *spin = &mc_self->spin;
    if (spin->mode == MC_SPIN_AGAIN) {
        end_again(spin);
    }
    stop(spin);
}

static bool is_same_read(const struct mc_read *a, const struct mc_read *b)
{
    return a->pc == b->pc && a->addr == b->addr && a->value == b->value;
}

/* The length of the round that has just been repeated and whose next repetition
 * would begin with this read; 0 if there is none. */
static unsigned find_round(const struct mc_spin *spin, const void *pc, uintptr_t addr)
{
    for (unsigned period = 1; 2 * period <= spin->count; period++) {
        const struct mc_read *last = &spin->log[spin->count - period];
        bool is_same = last->pc == pc && last->addr == addr;
        for (unsigned i = 0; is_same && i < period; i++) {
            is_same = is_same_read(&last[i], &last[(int)i - (int)period]);
        }
        if (is_same) {
            return period;
        }
    }
    return 0;
}

static const struct mc_read *round_of(const struct mc_spin *spin)
{
    return &spin->log[spin->count - spin->period];
}

bool mc_spin_can_go(const struct mc_thread *thread)
{
    const struct mc_spin *spin = &thread->spin;
    if (spin->mode == MC_SPIN_AGAIN) {
        return true;
    }
    for (unsigned i = 0; i < spin->period; i++) {
        if (mc_memory_has_newer(thread, round_of(spin)[i].addr)) {
            return true;
        }
    }
    return false;
}

static void begin_again(struct mc_spin *spin, bool is_last, bool is_known)
{
    spin->mode = MC_SPIN_AGAIN;
    spin->is_last = is_last;
    spin->is_known = is_known;
    spin->left = AGAIN_MAX;
    spin->position = 0;
}

void mc_spin_force(struct mc_thread *thread)
{
    begin_again(&thread->spin, true, true);
}

/* Chooses the first read of the round that is going to see a change. */
static void choose_changed(struct mc_thread *self)
{
    struct mc_spin *spin = &self->spin;
    unsigned changed[MC_ROUND_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < spin->period; i++) {
        uintptr_t addr = round_of(spin)[i].addr;
        bool is_new = mc_memory_has_newer(self, addr);
        for (unsigned j = 0; is_new && j < i; j++) {
            is_new = round_of(spin)[j].addr != addr;
        }
        if (is_new) {
            changed[count++] = i;
        }
    }
    for (unsigned i = 0; i < spin->period; i++) {
        struct mc_location *location = mc_location_find(round_of(spin)[i].addr);
        if (location != NULL) {
            mc_did_access(location, MC_DID_READ);
        }
    }
    spin->changed = changed[mc_explore_choose(count)];
    spin->mode = MC_SPIN_SAME;
    spin->position = 0;
    mc_done(mc_mix(HASH_WAIT, spin->changed));
}

static void wait_for_change(struct mc_thread *self, const void *pc, uintptr_t addr)
{
    self->spin.mode = MC_SPIN_WAIT;
    mc_point(&(struct mc_op){ .kind = MC_OP_SPIN, .addr = addr, .pc = pc });
    if (self->spin.mode != MC_SPIN_AGAIN) {
        choose_changed(self);
    }
}

/* A round has been repeated. */
static void begin(struct mc_thread *self, unsigned period, const void *pc, uintptr_t addr)
{
    struct mc_spin *spin = &self->spin;
    spin->period = period;
    bool has_words = false;
    for (unsigned i = 0; i < period; i++) {
        has_words = has_words || round_of(spin)[i].addr != 0;
    }
    if (!has_words || mc_explore_choose(2) == 1) {
        self->hash = mc_mix(self->hash, HASH_AGAIN);
        begin_again(spin, !has_words, false);
        return;
    }
    wait_for_change(self, pc, addr);
}

/* It reads on and on. */
static void give_up_again(struct mc_thread *self, const void *pc, uintptr_t addr)
{
    if (self->spin.is_last) {
        mc_fail(MC_LIVELOCK, "a loop reads the same values for ever");
    }
    if (mc_explore.strategy->is_exhaustive) {
        mc_run_cut();
    }
    wait_for_change(self, pc, addr);
}

/* In a round: does this read belong to it? */
static enum mc_spin_verdict follow_round(struct mc_thread *self, const void *pc, uintptr_t addr)
{
    struct mc_spin *spin = &self->spin;
    const struct mc_read *expected = &round_of(spin)[spin->position];
    if (expected->pc != pc || expected->addr != addr) {
        mc_spin_effect();
        return MC_SPIN_READ_FREELY;
    }
    if (spin->mode == MC_SPIN_SAME && spin->position == spin->changed) {
        stop(spin);
        return MC_SPIN_READ_NEWER;
    }
    return MC_SPIN_READ_SAME;
}

enum mc_spin_verdict mc_spin_before(const void *pc, uintptr_t addr)
{
    struct mc_thread *self = mc_self;
    struct mc_spin *spin = &self->spin;
    if (spin->mode == MC_SPIN_NOT) {
        unsigned period = find_round(spin, pc, addr);
        if (period == 0) {
            return MC_SPIN_READ_FREELY;
        }
        begin(self, period, pc, addr);
    }
    if (spin->mode == MC_SPIN_AGAIN && spin->left-- == 0) {
        give_up_again(self, pc, addr);
    }
    return follow_round(self, pc, addr);
}

uint64_t mc_spin_expected(void)
{
    const struct mc_spin *spin = &mc_self->spin;
    return round_of(spin)[spin->position].value;
}

void mc_spin_after(const void *pc, uintptr_t addr, uint64_t value)
{
    struct mc_spin *spin = &mc_self->spin;
    if (spin->mode != MC_SPIN_NOT) {
        if (value == mc_spin_expected()) {
            spin->position = (spin->position + 1) % spin->period;
            return;
        }
        mc_spin_effect();
    }
    if (spin->count == 2 * MC_ROUND_MAX) {
        memmove(spin->log, &spin->log[MC_ROUND_MAX], MC_ROUND_MAX * sizeof spin->log[0]);
        spin->count = MC_ROUND_MAX;
    }
    spin->log[spin->count++] = (struct mc_read){ pc, addr, value };
}
