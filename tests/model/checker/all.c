/* SPDX-License-Identifier: MIT */
/*
 * all.c - every execution, once: dynamic partial-order reduction.
 *
 * Two steps of different threads that do not influence each other can be taken in
 * either order, and one order is enough. So a thread other than the one that ran is
 * tried only where it matters: when a step turns out to race with an earlier step of
 * another thread, a later run must let it go first, and the earlier step's to-do list
 * gets a thread that leads there (source sets: Abdulla and others, POPL 2014). What
 * has been tried sleeps until a step comes that it depends on, so that no execution
 * is run twice (sleep sets: Godefroid 1996). A run in which only sleepers are left is
 * cut.
 *
 * When a step must be tried before an earlier one, "first" meaning earlier:
 *
 *   first reads a word, second writes it     it might have read that
 *   both write a word                        their order is the modification order
 *   first writes, second reads the newest    RMW and CAS see nothing older
 *   both seq_cst on a word, one writes       a SC load sees nothing older
 *   one is a seq_cst fence that makes        the other is a fence or seq_cst access
 *     something known
 *   sleep and wake, wake and wake on a word
 *
 * A load that comes after a store need not be tried before it: it can choose the
 * older message anyway. That a load of a message which was there before sleeps on
 * while others store to its word is the other half of this: only the messages that
 * are new are read when it is picked then. read_before of the thread says which.
 *
 * With .early_stores an RMW may read and a store may go before older messages, so
 * there the same holds for them. But what a seq_cst load might have read in another
 * order then depends on too much: a test with .early_stores and seq_cst accesses is
 * handed over to states.c. (Fences are no problem.)
 */
#include "explore.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "report.h"

enum {
    AWAKE = 0,
    ASLEEP = UINT16_MAX,
    /* Between: asleep for messages born before this number, minus one. */
};

struct frame {
    uint8_t thread; /* that takes this step */
    bool is_local;  /* a step without alternatives */
    uint32_t ready;
    uint32_t todo;
    uint32_t done;
    uint32_t choices_first;         /* of this step, in choices */
    uint16_t number;                /* of this step among its thread's, from 1 */
    uint16_t sleep[MC_THREADS_MAX]; /* before this step */
    uint16_t clock[MC_THREADS_MAX]; /* the steps this one depends on */
};

struct choice {
    uint32_t count;
    uint32_t taken;
};

struct access {
    uint32_t step;
    unsigned flags;
    int32_t previous; /* access to the same word, or -1 */
    int32_t location; /* or -1 for the order of seq_cst operations */
};

static struct frame *frames;
static size_t frame_count;
static size_t frame_capacity;
static size_t fresh_from; /* from here on the steps differ from the last run's */

static struct choice *choices;
static size_t choice_count;
static size_t choice_capacity;
static size_t choice_at;

static struct access *accesses;
static size_t access_count;
static size_t access_capacity;
static size_t step_accesses; /* where those of the running step begin */

static int32_t sc_last;                     /* last access to the seq_cst order */
static uint16_t step_clock[MC_THREADS_MAX]; /* edges into the running step */
static uint16_t next_sleep[MC_THREADS_MAX];
static int64_t last_step[MC_THREADS_MAX]; /* of each thread, -1 before the first */

static void start(void)
{
    frame_count = 0;
    fresh_from = 0;
    choice_count = 0;
}

static void begin(void)
{
    choice_at = 0;
    access_count = 0;
    step_accesses = 0;
    sc_last = -1;
    memset(step_clock, 0, sizeof step_clock);
    memset(next_sleep, 0, sizeof next_sleep);
    for (unsigned i = 0; i < MC_THREADS_MAX; i++) {
        last_step[i] = -1;
    }
}

static bool is_active(void)
{
    return mc_explore.strategy == &mc_strategy_all;
}

/* --- What a step has done --------------------------------------------------- */

static void note(int32_t location, int32_t *last, unsigned flags)
{
    if (*last >= 0) {
        const struct access *before = &accesses[*last];
        if (before->step == mc_exec.step && (flags & ~before->flags) == 0) {
            return;
        }
    }
    MC_GROW(accesses, access_count, access_capacity);
    accesses[access_count] = (struct access){ mc_exec.step, flags, *last, location };
    *last = (int32_t)access_count++;
}

void mc_did_access(struct mc_location *location, unsigned flags)
{
    if (is_active()) {
        mc_explore.is_unfit =
            mc_explore.is_unfit || (mc_exec.test->early_stores && (flags & MC_DID_SC) != 0);
        note((int32_t)location->index, &location->last_access, flags);
    }
}

void mc_did_sc(unsigned flags)
{
    if (is_active()) {
        note(-1, &sc_last, flags);
    }
}

static void join_clock(uint16_t *into, const uint16_t *from)
{
    for (unsigned i = 0; i < MC_THREADS_MAX; i++) {
        into[i] = from[i] > into[i] ? from[i] : into[i];
    }
}

void mc_did_follow(uint32_t step)
{
    if (is_active()) {
        join_clock(step_clock, frames[step].clock);
    }
}

void mc_did_prevent(unsigned thread)
{
    if (is_active()) {
        frames[mc_exec.step].todo |= 1u << thread;
    }
}

/* --- Races ------------------------------------------------------------------ */

/* Must the second be tried before the first? See the table above. A CAS that has
 * failed counts as a write, since in another order it might not have. */
static bool races_on_word(unsigned first, unsigned second)
{
    const unsigned write = MC_DID_WRITE | MC_DID_FAIL;
    bool is_early = mc_exec.test->early_stores;
    bool is_sc = (first & MC_DID_SC) && (second & MC_DID_SC);
    if ((first & MC_DID_READ) && (second & write)) {
        return true;
    }
    if ((first & write) && ((second & MC_DID_NEWEST) || (is_sc && (second & MC_DID_READ)))) {
        return true;
    }
    if ((first & write) && (second & write)) {
        return is_sc || !is_early;
    }
    if (first & MC_DID_WAKE) {
        return (second & (MC_DID_WAIT | MC_DID_WAKE | MC_DID_TIMEOUT)) != 0;
    }
    return (first & (MC_DID_WAIT | MC_DID_TIMEOUT)) && (second & MC_DID_WAKE);
}

static bool races_on_sc(unsigned first, unsigned second)
{
    return ((first | second) & MC_DID_FENCE) && ((first | second) & MC_DID_WRITE);
}

static bool depends_on(const uint16_t *clock, const struct frame *frame)
{
    return clock[frame->thread] >= frame->number;
}

/*
 * The step that runs, whose edges so far are in clock, should be tried before the
 * one at index. What led to it, that is, all later steps that do not depend on the
 * one at index, must then go first. Returns the threads that can begin with that:
 * those whose first such step depends on no other of them.
 */
static uint32_t find_initials(size_t index, unsigned self, const uint16_t *clock)
{
    const uint16_t *firsts[MC_THREADS_MAX] = { 0 };
    uint16_t numbers[MC_THREADS_MAX] = { 0 };
    for (size_t i = index + 1; i < mc_exec.step; i++) {
        unsigned thread = frames[i].thread;
        if (firsts[thread] == NULL && !depends_on(frames[i].clock, &frames[index])) {
            firsts[thread] = frames[i].clock;
            numbers[thread] = frames[i].number;
        }
    }
    if (firsts[self] == NULL) {
        firsts[self] = clock;
        numbers[self] = UINT16_MAX;
    }
    uint32_t initials = 0;
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        bool is_initial = firsts[i] != NULL;
        for (unsigned j = 0; is_initial && j < mc_exec.thread_count; j++) {
            is_initial = i == j || firsts[j] == NULL || firsts[i][j] < numbers[j];
        }
        initials |= is_initial ? 1u << i : 0;
    }
    return initials;
}

static void add_todo(size_t index, unsigned self, const uint16_t *clock)
{
    struct frame *frame = &frames[index];
    uint32_t initials = find_initials(index, self, clock) & frame->ready;
    uint32_t asleep = 0;
    for (unsigned i = 0; i < MC_THREADS_MAX; i++) {
        asleep |= frame->sleep[i] == ASLEEP ? 1u << i : 0;
    }
    if (initials == 0) {
        frame->todo |= frame->ready;
    } else if ((initials & (frame->todo | asleep)) == 0) {
        frame->todo |= initials & -initials;
    }
}

/* Finds the earlier steps that race with one access of the running step. */
static void find_races(const struct access *access, const uint16_t *before, uint16_t *clock)
{
    unsigned self = frames[mc_exec.step].thread;
    uint16_t seen[MC_THREADS_MAX];
    memcpy(seen, before, sizeof seen);
    /* The store that lets an await go cannot come after it. */
    bool skip_write = (access->flags & MC_DID_AWAIT) != 0;
    for (int32_t at = access->previous; at >= 0; at = accesses[at].previous) {
        const struct access *first = &accesses[at];
        const struct frame *frame = &frames[first->step];
        bool is_race = access->location < 0 ? races_on_sc(first->flags, access->flags)
                                            : races_on_word(first->flags, access->flags);
        if (!is_race || first->step == mc_exec.step) {
            continue;
        }
        if (skip_write && (first->flags & MC_DID_WRITE)) {
            skip_write = false;
            continue;
        }
        if (frame->thread != self && !depends_on(seen, frame)) {
            add_todo(first->step, self, clock);
        }
        join_clock(seen, frame->clock);
        join_clock(clock, frame->clock);
        /* Whatever came before this store depends on nothing later. */
        if ((first->flags & MC_DID_WRITE) && !mc_exec.test->early_stores &&
            (access->flags & MC_DID_WRITE) && access->location >= 0) {
            break;
        }
    }
}

/* --- Sleep ------------------------------------------------------------------ */

/* A thread sleeps, and a step has made this access: does it go on sleeping? */
static uint16_t sleep_after(uint16_t sleep, const struct mc_thread *thread,
                            const struct access *access)
{
    const struct mc_op *op = &thread->op;
    unsigned flags = access->flags;
    if (access->location < 0) {
        bool is_involved =
            op->kind == MC_OP_FENCE || (op->order == MC_SEQ_CST && (flags & MC_DID_FENCE) != 0);
        return is_involved ? AWAKE : sleep;
    }
    const struct mc_location *location = mc_location_get((unsigned)access->location);
    if (op->kind == MC_OP_SPIN) {
        return flags & MC_DID_WRITE ? AWAKE : sleep;
    }
    if (thread->waits_at == location->addr && (flags & MC_DID_WAKE) != 0) {
        return AWAKE;
    }
    if (op->addr != location->addr) {
        return sleep;
    }
    bool is_sc = op->order == MC_SEQ_CST && (flags & MC_DID_SC) != 0;
    bool writes = (flags & MC_DID_WRITE) != 0;
    bool can_read_older = op->kind == MC_OP_LOAD || op->kind == MC_OP_CAS ||
                          (op->kind == MC_OP_RMW && mc_exec.test->early_stores);
    if (can_read_older) {
        if (!writes) {
            return is_sc && op->kind != MC_OP_LOAD ? AWAKE : sleep;
        }
        uint32_t before = location->born - 1;
        if (is_sc || before + 1 >= ASLEEP) {
            return AWAKE;
        }
        return sleep == ASLEEP ? (uint16_t)(before + 1) : sleep;
    }
    switch (op->kind) {
    case MC_OP_STORE:
        return is_sc || (writes && !mc_exec.test->early_stores) ? AWAKE : sleep;
    case MC_OP_WAIT:
        return writes || (flags & MC_DID_WAKE) ? AWAKE : sleep;
    case MC_OP_WAKE:
        return flags & (MC_DID_WAIT | MC_DID_WAKE | MC_DID_TIMEOUT) ? AWAKE : sleep;
    case MC_OP_SLEEP:
        return flags & MC_DID_WAKE ? AWAKE : sleep;
    default:
        return writes || is_sc ? AWAKE : sleep;
    }
}

static void find_sleepers(const struct frame *frame)
{
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        uint16_t sleep = frame->done & 1u << i ? ASLEEP : frame->sleep[i];
        for (size_t at = step_accesses; sleep != AWAKE && at < access_count; at++) {
            sleep = sleep_after(sleep, &mc_exec.threads[i], &accesses[at]);
        }
        next_sleep[i] = i == frame->thread ? AWAKE : sleep;
    }
}

/* --- The strategy ----------------------------------------------------------- */

static struct frame *push_frame(uint32_t ready)
{
    MC_GROW(frames, frame_count, frame_capacity);
    struct frame *frame = &frames[frame_count++];
    *frame = (struct frame){ .ready = ready, .choices_first = (uint32_t)choice_count };
    memcpy(frame->sleep, next_sleep, sizeof next_sleep);
    return frame;
}

static void begin_step(const struct frame *frame)
{
    step_accesses = access_count;
    struct mc_thread *thread = &mc_exec.threads[frame->thread];
    uint16_t sleep = frame->sleep[frame->thread];
    thread->read_before = sleep == AWAKE ? 0 : sleep - 1u;
    memset(step_clock, 0, sizeof step_clock);
}

static uint32_t find_awake(struct frame *frame)
{
    uint32_t awake = 0;
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        if ((frame->ready & 1u << i) == 0) {
            continue;
        }
        uint16_t *sleep = &frame->sleep[i];
        if (*sleep != AWAKE && *sleep != ASLEEP &&
            !mc_memory_can_read_new(&mc_exec.threads[i], *sleep - 1u)) {
            *sleep = ASLEEP;
        }
        awake |= *sleep != ASLEEP ? 1u << i : 0;
    }
    return awake;
}

/* Sleeping threads that could end their sleep by themselves come last. */
static unsigned first_choice(uint32_t awake, unsigned last)
{
    uint32_t active = 0;
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        active |= mc_exec.threads[i].op.kind != MC_OP_SLEEP ? 1u << i : 0;
    }
    if (awake & active) {
        awake &= active;
    }
    return awake & 1u << last ? last : (unsigned)__builtin_ctz(awake);
}

static int pick(uint32_t ready, unsigned last)
{
    struct frame *frame;
    if (mc_exec.step < frame_count) {
        frame = &frames[mc_exec.step];
    } else {
        frame = push_frame(ready);
        uint32_t awake = find_awake(frame);
        if (awake == 0) {
            frame_count--;
            return MC_PICK_NONE;
        }
        frame->thread = (uint8_t)first_choice(awake, last);
        frame->todo = 1u << frame->thread;
    }
    begin_step(frame);
    return frame->thread;
}

static void stepping_local(unsigned thread)
{
    if (mc_exec.step >= frame_count) {
        struct frame *frame = push_frame(0);
        frame->thread = (uint8_t)thread;
        frame->is_local = true;
    }
    begin_step(&frames[mc_exec.step]);
}

static unsigned choose(unsigned count)
{
    if (choice_at == choice_count) {
        MC_GROW(choices, choice_count, choice_capacity);
        choices[choice_count++] = (struct choice){ .count = count };
    }
    if (choices[choice_at].count != count) {
        mc_report_limit("the test does not repeat itself: it depends on something other than its "
                        "schedule");
    }
    return choices[choice_at++].taken;
}

static void stepped(void)
{
    struct frame *frame = &frames[mc_exec.step];
    if (mc_exec.step >= fresh_from) {
        static const uint16_t none[MC_THREADS_MAX];
        int64_t last = last_step[frame->thread];
        const uint16_t *before = last < 0 ? none : frames[last].clock;
        uint16_t clock[MC_THREADS_MAX];
        memcpy(clock, before, sizeof clock);
        join_clock(clock, step_clock);
        for (size_t at = step_accesses; at < access_count; at++) {
            find_races(&accesses[at], before, clock);
        }
        if (before[frame->thread] == UINT16_MAX - 1) {
            mc_report_limit("a thread takes more steps than MC_ALL can count; lower steps_max");
        }
        frame->number = (uint16_t)(before[frame->thread] + 1);
        clock[frame->thread] = frame->number;
        memcpy(frame->clock, clock, sizeof clock);
    }
    last_step[frame->thread] = mc_exec.step;
    find_sleepers(frame);
}

/* Another thread for the last frame: one that is on its list, and awake. */
static bool next_thread(struct frame *frame)
{
    frame->done |= 1u << frame->thread;
    if (frame->is_local) {
        return false;
    }
    for (unsigned i = 0; i < MC_THREADS_MAX; i++) {
        uint32_t bit = 1u << i;
        if ((frame->todo & bit) && (frame->done & bit) == 0 && frame->sleep[i] != ASLEEP) {
            frame->thread = (uint8_t)i;
            return true;
        }
    }
    return false;
}

static bool next(void)
{
    while (frame_count > 0) {
        struct frame *frame = &frames[frame_count - 1];
        fresh_from = frame_count - 1;
        while (choice_count > frame->choices_first) {
            struct choice *choice = &choices[choice_count - 1];
            if (++choice->taken < choice->count) {
                return true;
            }
            choice_count--;
        }
        if (next_thread(frame)) {
            return true;
        }
        frame_count--;
    }
    return false;
}

const struct mc_strategy mc_strategy_all = {
    .name = "all",
    .is_exhaustive = true,
    .start = start,
    .begin = begin,
    .pick = pick,
    .choose = choose,
    .stepped = stepped,
    .stepping_local = stepping_local,
    .next = next,
};
