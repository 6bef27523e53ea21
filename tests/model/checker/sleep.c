/* SPDX-License-Identifier: MIT */
/*
 * sleep.c - futexes, and the clock that their deadlines are about.
 *
 * A futex wait looks at the word and goes to sleep in one step. The look may see
 * a value that is older than the newest one, as the kernel's may: only stores that
 * a waker knew of when it called wake are sure to be seen, by the look and by whom
 * it wakes. Waking orders no other memory; that is up to the word.
 *
 * A deadline never fires unless the test says so, since a timeout would hide a
 * lost wake-up. With .timeouts a thread may find its deadline passed at any time,
 * that many times; and when nothing else can happen, the first deadline fires.
 */
#include "sleep.h"

#include <errno.h>

#include "explore.h"
#include "heap.h"
#include "location.h"
#include "memory.h"
#include "report.h"
#include "run.h"
#include "spin.h"

#define PC __builtin_return_address(0)

enum {
    HASH_WOKEN = 0x81,
    HASH_TIMEOUT = 0x82,
    HASH_SPURIOUS = 0x83,
    HASH_WAKE = 0x84,
};

static void record(enum mc_kind kind, uintptr_t addr, uint64_t value, const char *text,
                   const void *pc)
{
    (void)mc_report_event(&(struct mc_event){
        .kind = kind,
        .order = MC_NO_ORDER,
        .addr = addr,
        .read = value,
        .from = UINT32_MAX,
        .text = text,
        .pc = pc,
    });
}

/* Nobody has woken it. */
static int end_sleep_alone(struct mc_thread *self, uintptr_t addr, const void *pc)
{
    struct mc_location *location = mc_location_find(addr);
    if (location != NULL) {
        mc_did_access(location, MC_DID_TIMEOUT);
    }
    bool can_time_out = self->timeouts > 0 && self->deadline != INT64_MAX;
    bool can_wake = self->spurious_wakes > 0;
    bool is_timeout = can_time_out && (!can_wake || mc_explore_choose(2) == 0);
    if (!is_timeout) {
        self->spurious_wakes--;
        record(MC_OP_SLEEP, addr, 0, "woken for no reason", pc);
        mc_done(HASH_SPURIOUS);
        return 0;
    }
    self->timeouts--;
    if (self->clock_floor_ns < self->deadline) {
        self->clock_floor_ns = self->deadline;
    }
    record(MC_OP_SLEEP, addr, 0, "timed out", pc);
    mc_done(HASH_TIMEOUT);
    return -ETIMEDOUT;
}

/* Who is woken knows of the word what the waker knew. */
static void see_wake(struct mc_thread *self, uintptr_t addr)
{
    const struct mc_location *location = mc_location_find(addr);
    if (location != NULL) {
        uint32_t *known = &self->current[MC_THREADS_MAX + location->index];
        *known = location->woken > *known ? location->woken : *known;
    }
}

int mc_sleep(uintptr_t addr, int64_t deadline, const void *pc)
{
    struct mc_thread *self = mc_self;
    mc_spin_effect();
    self->woken = false;
    self->deadline = deadline;
    mc_point(&(struct mc_op){ .kind = MC_OP_SLEEP, .addr = addr, .pc = pc });
    if (!self->woken) {
        return end_sleep_alone(self, addr, pc);
    }
    self->woken = false;
    mc_did_follow(self->woken_step);
    see_wake(self, addr);
    record(MC_OP_SLEEP, addr, 0, "woken", pc);
    mc_done(HASH_WOKEN);
    return 0;
}

static unsigned find_sleepers(uintptr_t addr, struct mc_thread **sleepers)
{
    unsigned count = 0;
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        struct mc_thread *thread = &mc_exec.threads[i];
        if (thread->life == MC_LIFE_LIVE && thread->op.kind == MC_OP_SLEEP &&
            thread->op.addr == addr && !thread->woken) {
            sleepers[count++] = thread;
        }
    }
    return count;
}

int mc_wake(uintptr_t addr, int count, const void *pc)
{
    mc_spin_effect();
    mc_point(&(struct mc_op){ .kind = MC_OP_WAKE, .addr = addr, .pc = pc });
    int woken = 0;
    while (woken < count) {
        struct mc_thread *sleepers[MC_THREADS_MAX];
        unsigned found = find_sleepers(addr, sleepers);
        if (found == 0) {
            break;
        }
        /* If all of them are woken their order is nothing. */
        unsigned which = found <= (unsigned)(count - woken) ? 0 : mc_explore_choose(found);
        sleepers[which]->woken = true;
        sleepers[which]->woken_step = mc_exec.step;
        woken++;
        if (sleepers[which]->spurious_wakes > 0 ||
            (sleepers[which]->timeouts > 0 && sleepers[which]->deadline != INT64_MAX)) {
            mc_did_prevent(sleepers[which]->index);
        }
    }
    struct mc_location *location = mc_location_find(addr);
    if (location == NULL && mc_heap_is_live(addr)) {
        location = mc_location_at(addr, sizeof(uint32_t));
    }
    if (location != NULL) {
        uint32_t known = mc_self->current[MC_THREADS_MAX + location->index];
        location->woken = known > location->woken ? known : location->woken;
        mc_did_access(location, MC_DID_WAKE);
    }
    record(MC_OP_WAKE, addr, (uint64_t)woken, NULL, pc);
    mc_done(mc_mix(HASH_WAKE, (uint64_t)woken));
    return woken;
}

int mc_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline_ns)
{
    uintptr_t addr = (uintptr_t)word;
    mc_spin_effect();
    mc_point(&(struct mc_op){ .kind = MC_OP_WAIT, .addr = addr, .pc = PC });
    if (!mc_memory_futex_equals(addr, expected, PC)) {
        return 0;
    }
    return mc_sleep(addr, deadline_ns, PC);
}

int mc_futex_wake(_Atomic(uint32_t) *word, int count)
{
    return mc_wake((uintptr_t)word, count, PC);
}

void mc_await_exchange(_Atomic(uint32_t) *word, uint32_t expected, uint32_t desired)
{
    mc_memory_await((uintptr_t)word, sizeof *word, expected, desired, PC);
}

/* --- The clock -------------------------------------------------------------- */

/* A word like any other, so that a thread may see an old time. */
static uint64_t clock_word;

void mc_sleep_reset(void)
{
    clock_word = 0;
}

static uint64_t add(uint64_t old, uint64_t operand)
{
    return old + operand;
}

int64_t mc_clock_now(void)
{
    struct mc_thread *self = mc_self;
    if (self == NULL) {
        return 0;
    }
    int64_t shared = 0;
    if (mc_exec.test->moving_clock) {
        uint64_t now = mc_memory_load((uintptr_t)&clock_word, sizeof clock_word, MC_RELAXED, PC);
        shared = (int64_t)now;
    }
    self->clock_ns += mc_exec.test->clock_step_ns;
    int64_t now = shared + self->clock_ns;
    return now > self->clock_floor_ns ? now : self->clock_floor_ns;
}

void mc_clock_advance(int64_t ns)
{
    if (!mc_exec.test->moving_clock) {
        mc_fail(MC_ASSERTION, "mc_clock_advance() is called by a test without .moving_clock");
    }
    (void)mc_memory_update((uintptr_t)&clock_word, sizeof clock_word, add, (uint64_t)ns, MC_RELAXED,
                           PC);
}
