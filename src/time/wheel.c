/* SPDX-License-Identifier: MIT */
/*
 * wheel.c - timers to the millisecond: a hierarchical wheel of 6 x 64 slots.
 *
 * Read ticks as numbers in base 64, digit 0 on the right. An entry belongs to
 * the level of the highest digit in which its tick differs from elapsed, and
 * there to the slot which that digit names:
 *
 *             digit  5   4   3   2   1   0
 *   elapsed          0   0   7   2  17   5
 *   tick             0   0   7   2  40  33     level 1, slot 40
 *   tick             0   0   7   2  17   5     level 0, slot 5: due
 *
 * The slot is a matter of the tick, not of how far away it is, so an entry need
 * not move while time passes below its level.
 *
 * What stays true: each entry is where the rule above puts it for the elapsed
 * of this moment, not just of its insertion. Elapsed moves in two ways.
 *   To the start of the first occupied slot. If that is of level 0, its entries
 *   have become due where they are. If not, they now agree with elapsed in this
 *   digit and are placed anew, further down: the cascade. All others differ
 *   from the new elapsed where they differed from the old one.
 *   To a tick before the first start. No entry's digit was reached.
 *
 * It follows that a whole level is earlier than the next, and within a level
 * slots are in order of time, so bitmaps alone find the first start; that
 * entries of one tick are always in one list, in order of insertion; and that
 * a jump of any length costs no more than the entries it passes.
 *
 * The top level also takes the ticks that differ from elapsed above digit 5. Its
 * slots come round every 64^6 ms, and the one of elapsed's own digit is the last
 * of the round, not the first. What is there for a later round is placed into
 * the same slot again.
 *
 * A tick that has passed counts as elapsed: level 0, the current slot. Pop empties
 * this slot before it moves elapsed on, so there is no list of due entries beside
 * the wheel.
 *
 * The last entry of a slot has the slot's head on both sides. So remove knows
 * which bit to clear, and entries need not say where they are.
 *
 * Rejected. A slot by distance from now (deadline - now): the slots that time
 * walks over are then others than those that entries are in. Eight levels, which
 * would hold every int64: 2 kB more per worker, for timers of centuries.
 */
#include "time/wheel.h"

#include "base/assert.h"
#include "base/clock.h"

enum {
    DIGIT_BITS = 6,
    TOP = WF_WHEEL_LEVELS - 1
};

_Static_assert(1 << DIGIT_BITS == WF_WHEEL_SLOTS, "a slot for each value of a digit");
_Static_assert(WF_WHEEL_SLOTS == 64, "a level's bitmap is one word");

/* Later than any tick of a deadline or of now: these are below 2^44. */
#define NO_TICK UINT64_MAX

/* In unsigned arithmetic rounding up cannot overflow. */
static uint64_t tick_due(int64_t deadline)
{
    return deadline <= 0 ? 0 : ((uint64_t)deadline + WF_WHEEL_TICK_NS - 1) / WF_WHEEL_TICK_NS;
}

static uint64_t tick_reached(int64_t now)
{
    return now <= 0 ? 0 : (uint64_t)now / WF_WHEEL_TICK_NS;
}

static unsigned slot_index(unsigned level, uint64_t tick)
{
    return level * WF_WHEEL_SLOTS + (unsigned)(tick >> level * DIGIT_BITS) % WF_WHEEL_SLOTS;
}

static uint64_t slot_bit(unsigned index)
{
    return UINT64_C(1) << index % WF_WHEEL_SLOTS;
}

void wf_wheel_init(struct wf_wheel *wheel, int64_t now)
{
    wheel->elapsed = tick_reached(now);
    wheel->count = 0;
    for (unsigned level = 0; level < WF_WHEEL_LEVELS; level++) {
        wheel->occupied[level] = 0;
    }
    for (unsigned i = 0; i < WF_WHEEL_LEVELS * WF_WHEEL_SLOTS; i++) {
        wf_list_init(&wheel->slots[i]);
    }
}

/* Puts an entry where elapsed wants it. */
static void place(struct wf_wheel *wheel, struct wf_wheel_entry *entry)
{
    uint64_t tick = tick_due(entry->deadline);
    if (tick < wheel->elapsed) {
        tick = wheel->elapsed;
    }

    /* With digit 0 set there is a highest bit, and level 0 stays level 0. */
    uint64_t differs = (tick ^ wheel->elapsed) | (WF_WHEEL_SLOTS - 1);
    unsigned level = (63u - (unsigned)__builtin_clzll(differs)) / DIGIT_BITS;
    if (level > TOP) {
        level = TOP;
    }

    unsigned index = slot_index(level, tick);
    wf_list_push_back(&wheel->slots[index], &entry->link);
    wheel->occupied[level] |= slot_bit(index);
}

void wf_wheel_insert(struct wf_wheel *wheel, struct wf_wheel_entry *entry)
{
    place(wheel, entry);
    wheel->count++;
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
        wheel->occupied[index / WF_WHEEL_SLOTS] &= ~slot_bit(index);
    }
    wheel->count--;
}

static uint64_t rotate_right(uint64_t word, unsigned count)
{
    return word >> count % 64 | word << (64 - count % 64) % 64;
}

/* The tick at which the first occupied slot starts, and its level. */
static uint64_t first_start(const struct wf_wheel *wheel, unsigned *level)
{
    for (unsigned i = 0; i < WF_WHEEL_LEVELS; i++) {
        uint64_t occupied = wheel->occupied[i];
        if (occupied != 0) {
            /* The current slot is the first of level 0, and the last of the
             * top. In between it is empty. */
            unsigned shift = i * DIGIT_BITS;
            uint64_t from = (wheel->elapsed >> shift) + (i > 0);
            unsigned away = (unsigned)__builtin_ctzll(rotate_right(occupied, (unsigned)from));
            *level = i;
            return (from + away) << shift;
        }
    }
    *level = 0;
    return NO_TICK;
}

int64_t wf_wheel_next(const struct wf_wheel *wheel)
{
    unsigned level;
    uint64_t start = first_start(wheel, &level);
    return start > (uint64_t)(WF_NEVER / WF_WHEEL_TICK_NS) ? WF_NEVER
                                                           : (int64_t)start * WF_WHEEL_TICK_NS;
}

/* Places anew what is in a slot that elapsed has just reached. */
static void cascade(struct wf_wheel *wheel, unsigned index)
{
    struct wf_list *slot = &wheel->slots[index];
    struct wf_list *node = slot->next;
    wf_list_init(slot);
    wheel->occupied[index / WF_WHEEL_SLOTS] &= ~slot_bit(index);

    /* The old chain still ends at the slot, even if some of it is put back. */
    while (node != slot) {
        struct wf_list *next = node->next;
        place(wheel, wf_container_of(node, struct wf_wheel_entry, link));
        node = next;
    }
}

bool wf_wheel_advance(struct wf_wheel *wheel, int64_t now)
{
    uint64_t limit = tick_reached(now);
    if (limit < wheel->elapsed) {
        limit = wheel->elapsed;
    }

    unsigned level;
    for (;;) {
        uint64_t start = first_start(wheel, &level);
        if (start > limit) {
            wheel->elapsed = limit;
            return false;
        }
        wheel->elapsed = start;
        if (level == 0) {
            return true;
        }
        cascade(wheel, slot_index(level, start));
    }
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
        if (wheel->occupied[level] != 0) {
            unsigned slot = (unsigned)__builtin_ctzll(wheel->occupied[level]);
            struct wf_list *first = wheel->slots[level * WF_WHEEL_SLOTS + slot].next;
            struct wf_wheel_entry *entry = wf_container_of(first, struct wf_wheel_entry, link);
            wf_wheel_remove(wheel, entry);
            return entry;
        }
    }
    return NULL;
}
