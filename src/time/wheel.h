/* SPDX-License-Identifier: MIT */
/*
 * wheel.h - timers to the millisecond: a hierarchical wheel of 6 x 2 x 64 slots.
 *
 * A plain data structure: it has no clock and no lock, its user brings both.
 * Times are monotonic nanoseconds. An entry's due tick is its deadline, rounded
 * up to the millisecond, so that it is never given out early:
 *
 *   deadline <= 0                   due at once
 *   a tick that the wheel passed    due at once, as if of the tick it is at
 *   the last ms before WF_NEVER,    never: no representable now reaches the
 *   and WF_NEVER itself             end of that millisecond
 *
 * So a deadline that is less than 1 ms in the past when it is inserted may still
 * have to wait for the end of its millisecond.
 *
 * Entries come out by due tick, and those of one tick in order of insertion, unless
 * there are thousands or they were years away.
 *
 *   insert, remove   O(1)
 *   next             O(1), looks at bitmaps only
 *   pop              O(1), and at each new tick up to 1024 entries are moved on their
 *                    way down: each of them once per level, and once every 4 years
 */
#ifndef WF_TIME_WHEEL_H
#define WF_TIME_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/list.h"

#define WF_WHEEL_TICK_NS INT64_C(1000000)
#define WF_WHEEL_SLOTS   128 /* in each level: two rounds of a digit in base 64 */
#ifndef WF_WHEEL_LEVELS
#define WF_WHEEL_LEVELS 6 /* fewer, but at least 2, for models */
#endif

/* Lives in its owner, who sets the deadline before insert and leaves it alone
 * until the entry is out again. */
struct wf_wheel_entry {
    struct wf_list link;
    int64_t deadline;
};

/* Next looks at the first two cache lines only; no slot straddles two. */
struct wf_wheel {
    _Alignas(WF_CACHE_LINE) uint64_t elapsed; /* the tick it is at; never goes back */
    uint64_t count;                           /* entries in the wheel */
    uint64_t occupied[WF_WHEEL_LEVELS][2];    /* bit s of [l]: slot s of level l is not empty */
    struct wf_list slots[WF_WHEEL_LEVELS * WF_WHEEL_SLOTS]; /* level by level */
};

/* The wheel starts at now; before 0 counts as 0, here and below. */
void wf_wheel_init(struct wf_wheel *wheel, int64_t now);

/* Any deadline. The entry must not be in a wheel. Returns what wf_wheel_next() would if
 * it were the only one. */
int64_t wf_wheel_insert(struct wf_wheel *wheel, struct wf_wheel_entry *entry);

/* The entry must be in this wheel, due or not. */
void wf_wheel_remove(struct wf_wheel *wheel, struct wf_wheel_entry *entry);

/*
 * Returns when wf_wheel_pop() must be called next, WF_NEVER if not at all. That
 * is when the first entry is due, or earlier: when entries should be moved down, and
 * pop will return NULL. A single entry asks for at most 5 such calls, plus one
 * for each 4 years. Not after now if something is due.
 */
int64_t wf_wheel_next(const struct wf_wheel *wheel);

/*
 * Moves the wheel to now, or to the first entry that is due by then, and says
 * whether there is one. Pop does this, too. Worth a call before an insert: a
 * wheel that has slept through a minute does not know that 5 ms from now is
 * near, and would ask for a pop at once only to cascade.
 */
bool wf_wheel_advance(struct wf_wheel *wheel, int64_t now);

/*
 * Takes out the first entry that is due at now; NULL if none is. A now before
 * one that was seen earlier is allowed and finds what is due at the wheel's tick.
 * Pop until NULL before you insert any of them again: one that comes back with a
 * deadline in the past is due before those of later ticks, each time.
 */
struct wf_wheel_entry *wf_wheel_pop(struct wf_wheel *wheel, int64_t now);

/* Takes out some entry, due or not; NULL if there is none. */
struct wf_wheel_entry *wf_wheel_take_any(struct wf_wheel *wheel);

static inline bool wf_wheel_is_empty(const struct wf_wheel *wheel)
{
    return wheel->count == 0;
}

/* For an entry that may be asked wf_wheel_is_linked() before it is inserted;
 * no other needs it. */
static inline void wf_wheel_entry_init(struct wf_wheel_entry *entry)
{
    wf_list_init(&entry->link);
}

/* True from insert to remove or pop. */
static inline bool wf_wheel_is_linked(const struct wf_wheel_entry *entry)
{
    return !wf_list_is_empty(&entry->link);
}

#endif
