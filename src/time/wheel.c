/* SPDX-License-Identifier: MIT */
/*
 * wheel.c - hierarchical timer wheel with millisecond ticks: 6 x 2 x 64 slots.
 *
 * Block b of level n is the 64^n ticks from b * 64^n on. An entry belongs to the lowest level
 * at which it is in the current block of the level above or in the block after that. At this
 * level each block has a slot, and the two halves of the slots alternate:
 *
 *   elapsed 1000    level 0   ticks  960 .. 1023, 1024 .. 1087
 *                   level 1   ticks 1088 .. 4095, 4096 .. 8191, in slots of 64
 *                   level 2   ticks 8192 .. , in slots of 4096, and so on
 *
 * Passing time. When elapsed enters a block of level n, the entries of the block after that one
 * belong further down. There may be many of them, and moving them all together would make
 * others late. So each new tick moves some, with the whole block, 64^n ticks, to finish. If
 * calls are so late that elapsed enters a block that still has entries, they are moved
 * immediately: the cascade.
 *
 * Invariant: no entry is below its level, and an entry above its level is in the block after
 * the current one of the level that holds it. So bitmaps alone find what comes first, and a
 * jump of any length costs no more than the entries that it passes.
 *
 * The top level also holds entries that are further away than its slots reach, in its last
 * slot. Entries that are still too far away when that slot comes near go to the last slot
 * again.
 *
 * A tick that has passed counts as elapsed: level 0, the current slot. Pop empties this slot
 * before it advances elapsed, so there is no list of due entries beside the wheel.
 *
 * The last remaining entry of a slot has the slot's head on both sides. So remove knows which
 * bit to clear, and entries need not record their slots.
 *
 * Rejected. One round of 64 slots in each level: half the memory, but all entries of a block
 * are moved when it begins, and a million timers in a second then stop the wheel for 10 ms
 * every 64 ms, and for 150 ms every 4 s. A slot by distance from now (deadline - now): time
 * then passes over other slots than those that hold the entries.
 */
#include "time/wheel.h"

#include "base/assert.h"
#include "base/clock.h"

enum {
    DIGIT_BITS = 6,
    TOP = WF_WHEEL_LEVELS - 1,
    MOVES_PER_TICK = 1024,
};

_Static_assert(2 << DIGIT_BITS == WF_WHEEL_SLOTS, "two rounds of a digit");
_Static_assert(WF_WHEEL_SLOTS == 128, "a level's bitmap is two words");

/* Later than the tick of any deadline or of now: these are below 2^44. */
#define NO_TICK UINT64_MAX

/* Unsigned arithmetic, in which rounding up cannot overflow. */
static uint64_t tick_due(int64_t deadline)
{
    return deadline <= 0 ? 0 : ((uint64_t)deadline + WF_WHEEL_TICK_NS - 1) / WF_WHEEL_TICK_NS;
}

static uint64_t tick_reached(int64_t now)
{
    return now <= 0 ? 0 : (uint64_t)now / WF_WHEEL_TICK_NS;
}

/* Returns the block of a level that contains a tick. */
static uint64_t block_of(uint64_t tick, unsigned level)
{
    return tick >> level * DIGIT_BITS;
}

static unsigned slot_index(unsigned level, uint64_t block)
{
    return level * WF_WHEEL_SLOTS + (unsigned)(block % WF_WHEEL_SLOTS);
}

/* Return the bitmap word that covers a slot, and the slot's bit in it. */
static uint64_t *bitmap_word(struct wf_wheel *wheel, unsigned index)
{
    return &wheel->occupied[index / WF_WHEEL_SLOTS][index / 64 % 2];
}

static uint64_t slot_bit(unsigned index)
{
    return UINT64_C(1) << index % 64;
}

void wf_wheel_init(struct wf_wheel *wheel, int64_t now)
{
    wheel->elapsed = tick_reached(now);
    wheel->count = 0;
    for (unsigned level = 0; level < WF_WHEEL_LEVELS; level++) {
        wheel->occupied[level][0] = 0;
        wheel->occupied[level][1] = 0;
    }
    for (unsigned i = 0; i < WF_WHEEL_LEVELS * WF_WHEEL_SLOTS; i++) {
        wf_list_init(&wheel->slots[i]);
    }
}

/* Returns the tick at which entries in this block of a level need attention: in level 0 their
 * own tick; otherwise when the block before it begins or, if that has begun, the next tick. */
static uint64_t look_at(const struct wf_wheel *wheel, unsigned level, uint64_t block)
{
    uint64_t start = level == 0 ? block : (block - 1) << level * DIGIT_BITS;
    return level == 0 || start > wheel->elapsed ? start : wheel->elapsed + 1;
}

static int64_t time_of(uint64_t tick)
{
    return tick > (uint64_t)(WF_NEVER / WF_WHEEL_TICK_NS) ? WF_NEVER
                                                          : (int64_t)tick * WF_WHEEL_TICK_NS;
}

/* Puts an entry where it belongs at elapsed. Returns the tick at which it needs attention. */
static uint64_t place(struct wf_wheel *wheel, struct wf_wheel_entry *entry)
{
    uint64_t tick = tick_due(entry->deadline);
    if (tick < wheel->elapsed) {
        tick = wheel->elapsed;
    }
    unsigned level = 0;
    while (level < TOP && block_of(tick, level + 1) - block_of(wheel->elapsed, level + 1) > 1) {
        level++;
    }
    uint64_t block = block_of(tick, level);
    uint64_t last = block_of(wheel->elapsed, level) + WF_WHEEL_SLOTS - 1;
    block = block < last ? block : last;
    unsigned index = slot_index(level, block);
    wf_list_push_back(&wheel->slots[index], &entry->link);
    *bitmap_word(wheel, index) |= slot_bit(index);
    return look_at(wheel, level, block);
}

int64_t wf_wheel_insert(struct wf_wheel *wheel, struct wf_wheel_entry *entry)
{
    wheel->count++;
    return time_of(place(wheel, entry));
}

void wf_wheel_remove(struct wf_wheel *wheel, struct wf_wheel_entry *entry)
{
    WF_DEBUG_ASSERT(wf_wheel_is_linked(entry));

    struct wf_list *next = entry->link.next;
    bool is_last = next == entry->link.prev;
    wf_list_remove(&entry->link);
    if (is_last) {
        unsigned index = (unsigned)(next - wheel->slots);
        WF_DEBUG_ASSERT(index < WF_WHEEL_LEVELS * WF_WHEEL_SLOTS);
        *bitmap_word(wheel, index) &= ~slot_bit(index);
    }
    wheel->count--;
}

/* Returns the first block, starting at from, whose slot is occupied; NO_TICK if none is. */
static uint64_t first_block(const uint64_t occupied[2], uint64_t from)
{
    unsigned half = (unsigned)(from / 64 % 2);
    unsigned at = (unsigned)(from % 64);
    uint64_t start = from - at;
    uint64_t here = occupied[half] >> at << at;
    if (here != 0) {
        return start + (unsigned)__builtin_ctzll(here);
    }
    if (occupied[!half] != 0) {
        return start + 64 + (unsigned)__builtin_ctzll(occupied[!half]);
    }
    /* Slots before at have wrapped around: they are far away, in the top level. */
    return occupied[half] != 0 ? start + 128 + (unsigned)__builtin_ctzll(occupied[half]) : NO_TICK;
}

/* Returns the first occupied block of a level. The current block is empty except in level 0. */
static uint64_t first_of_level(const struct wf_wheel *wheel, unsigned level)
{
    if ((wheel->occupied[level][0] | wheel->occupied[level][1]) == 0) {
        return NO_TICK;
    }
    return first_block(wheel->occupied[level], block_of(wheel->elapsed, level) + (level > 0));
}

/* Returns the tick at which the first occupied block starts. */
static uint64_t first_start(const struct wf_wheel *wheel)
{
    uint64_t first = NO_TICK;
    for (unsigned level = 0; level < WF_WHEEL_LEVELS; level++) {
        uint64_t block = first_of_level(wheel, level);
        if (block != NO_TICK && block << level * DIGIT_BITS < first) {
            first = block << level * DIGIT_BITS;
        }
    }
    return first;
}

int64_t wf_wheel_next(const struct wf_wheel *wheel)
{
    uint64_t next = NO_TICK;
    for (unsigned level = 0; level < WF_WHEEL_LEVELS; level++) {
        uint64_t block = first_of_level(wheel, level);
        if (block != NO_TICK) {
            uint64_t own = look_at(wheel, level, block);
            next = own < next ? own : next;
        }
    }
    return time_of(next);
}

static bool is_occupied(struct wf_wheel *wheel, unsigned index)
{
    return (*bitmap_word(wheel, index) & slot_bit(index)) != 0;
}

/* Empties a slot and places its entries again. */
static void empty(struct wf_wheel *wheel, unsigned index)
{
    struct wf_list *slot = &wheel->slots[index];
    struct wf_list *node = slot->next;
    wf_list_init(slot);
    *bitmap_word(wheel, index) &= ~slot_bit(index);
    while (node != slot) {
        struct wf_list *next = node->next;
        (void)place(wheel, wf_container_of(node, struct wf_wheel_entry, link));
        node = next;
    }
}

/* Moves entries down after elapsed has entered a block, possibly of several levels. */
static void cascade(struct wf_wheel *wheel)
{
    for (unsigned level = TOP; level > 0; level--) {
        unsigned index = slot_index(level, block_of(wheel->elapsed, level));
        if (is_occupied(wheel, index)) {
            empty(wheel, index);
        }
    }
}

/* At a new tick: moves down up to MOVES_PER_TICK entries of the blocks after the current ones. */
static void move_down(struct wf_wheel *wheel)
{
    unsigned left = MOVES_PER_TICK;
    for (unsigned level = 1; level < WF_WHEEL_LEVELS; level++) {
        unsigned index = slot_index(level, block_of(wheel->elapsed, level) + 1);
        struct wf_list *slot = &wheel->slots[index];
        while (left > 0 && is_occupied(wheel, index)) {
            struct wf_wheel_entry *entry = wf_container_of(slot->next, struct wf_wheel_entry, link);
            wf_wheel_remove(wheel, entry);
            (void)wf_wheel_insert(wheel, entry);
            left--;
        }
    }
}

/* Advances elapsed to the first due entry, but not beyond limit. Returns whether there is one. */
static bool find_due(struct wf_wheel *wheel, uint64_t limit)
{
    for (;;) {
        uint64_t start = first_start(wheel);
        if (start > limit) {
            wheel->elapsed = limit;
            return false;
        }
        wheel->elapsed = start;
        cascade(wheel);
        if (is_occupied(wheel, slot_index(0, start))) {
            return true;
        }
    }
}

bool wf_wheel_advance(struct wf_wheel *wheel, int64_t now)
{
    uint64_t before = wheel->elapsed;
    if (is_occupied(wheel, slot_index(0, before))) {
        return true; /* Usually the slot of the last popped entry holds more. */
    }
    uint64_t limit = tick_reached(now);
    if (limit <= before) {
        return false;
    }
    bool due = find_due(wheel, limit);
    if (wheel->elapsed != before) {
        move_down(wheel);
    }
    return due;
}

struct wf_wheel_entry *wf_wheel_pop(struct wf_wheel *wheel, int64_t now)
{
    if (!wf_wheel_advance(wheel, now)) {
        return NULL;
    }
    struct wf_list *slot = &wheel->slots[slot_index(0, wheel->elapsed)];
    struct wf_wheel_entry *entry = wf_container_of(slot->next, struct wf_wheel_entry, link);
    wf_wheel_remove(wheel, entry);
    return entry;
}

struct wf_wheel_entry *wf_wheel_take_any(struct wf_wheel *wheel)
{
    for (unsigned level = 0; level < WF_WHEEL_LEVELS; level++) {
        uint64_t block = first_of_level(wheel, level);
        if (block != NO_TICK) {
            struct wf_list *first = wheel->slots[slot_index(level, block)].next;
            struct wf_wheel_entry *entry = wf_container_of(first, struct wf_wheel_entry, link);
            wf_wheel_remove(wheel, entry);
            return entry;
        }
    }
    return NULL;
}
