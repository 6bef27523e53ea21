/* SPDX-License-Identifier: MIT */
/*
 * wheel.h - hierarchical timer wheel with millisecond ticks: 6 x 2 x 64 slots.
 *
 * A plain data structure: it has no clock and no lock, its user provides both. Times are
 * monotonic nanoseconds. The due tick of an entry is its deadline, rounded up to the
 * millisecond, so that it never comes out early:
 *
 *   deadline <= 0                   due immediately
 *   a tick that the wheel passed    due immediately, as if at the current tick
 *   the last ms before WF_NEVER,    never: no representable now reaches the
 *   and WF_NEVER itself             end of that millisecond
 *
 * So a deadline that is less than 1 ms in the past when it is inserted may still have to wait
 * for the end of its millisecond.
 *
 * Entries come out in the order of their due ticks and, within a tick, in the order of
 * insertion, unless there are thousands of them or they were years away.
 *
 *   insert, remove   O(1)
 *   next             O(1), reads bitmaps only
 *   pop              O(1); at each new tick, up to 1024 entries are also moved down a
 *                    level: each entry once per level, and once every 4 years
 */
#ifndef WF_TIME_WHEEL_H
#define WF_TIME_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/list.h"

#define WF_WHEEL_TICK_NS INT64_C(1000000)
#define WF_WHEEL_SLOTS   128 /* per level: two rounds of a digit in base 64 */
#ifndef WF_WHEEL_LEVELS
#define WF_WHEEL_LEVELS 6 /* models use fewer, but at least 2 */
#endif

/* Embedded in its owner, which sets the deadline before insert and must not change it while the
 * entry is in a wheel. */
struct wf_wheel_entry {
    struct wf_list link;
    int64_t deadline;
};

/* wf_wheel_next() reads only the first two cache lines; no slot straddles two. */
struct wf_wheel {
    _Alignas(WF_CACHE_LINE) uint64_t elapsed; /* the current tick; never goes back */
    uint64_t count;                           /* number of entries */
    uint64_t occupied[WF_WHEEL_LEVELS][2];    /* bit s of [l]: slot s of level l is not empty */
    struct wf_list slots[WF_WHEEL_LEVELS * WF_WHEEL_SLOTS]; /* level by level */
};

/* Initializes a wheel that starts at now. A time before 0 counts as 0, here and below. */
void wf_wheel_init(struct wf_wheel *wheel, int64_t now);

/* Inserts an entry with any deadline. It must not be in a wheel. Returns what wf_wheel_next()
 * would return if this were the only entry. */
int64_t wf_wheel_insert(struct wf_wheel *wheel, struct wf_wheel_entry *entry);

/* Removes an entry, due or not. It must be in this wheel. */
void wf_wheel_remove(struct wf_wheel *wheel, struct wf_wheel_entry *entry);

/*
 * Returns when wf_wheel_pop() must be called next; WF_NEVER if it need not be. That is when the
 * first entry is due, or earlier, when entries should be moved down and pop will return NULL. A
 * single entry causes at most 5 such calls, plus one for each 4 years. The result is not after
 * now if an entry is due.
 */
int64_t wf_wheel_next(const struct wf_wheel *wheel);

/*
 * Moves the wheel to now, or to the first entry that is due by then. Returns whether an entry
 * is due. wf_wheel_pop() does this, too. Worth a call before an insert: a wheel that has not
 * moved for a minute does not know that 5 ms from now is near, and would ask for a pop
 * immediately, only to cascade.
 */
bool wf_wheel_advance(struct wf_wheel *wheel, int64_t now);

/*
 * Removes and returns the first entry that is due at now; NULL if none is. now may be earlier
 * than in a previous call; then only entries that are due at the wheel's tick are found. Pop
 * until NULL before inserting any of them again: an entry that comes back with a deadline in
 * the past is due before those of later ticks, each time.
 */
struct wf_wheel_entry *wf_wheel_pop(struct wf_wheel *wheel, int64_t now);

/* Removes and returns some entry, due or not; NULL if the wheel is empty. */
struct wf_wheel_entry *wf_wheel_take_any(struct wf_wheel *wheel);

static inline bool wf_wheel_is_empty(const struct wf_wheel *wheel)
{
    return wheel->count == 0;
}

/* Needed only for an entry that may be passed to wf_wheel_is_linked() before it is inserted. */
static inline void wf_wheel_entry_init(struct wf_wheel_entry *entry)
{
    wf_list_init(&entry->link);
}

/* Returns whether the entry is in a wheel: true from insert to remove or pop. */
static inline bool wf_wheel_is_linked(const struct wf_wheel_entry *entry)
{
    return !wf_list_is_empty(&entry->link);
}

#endif
