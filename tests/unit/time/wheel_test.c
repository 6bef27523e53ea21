/* SPDX-License-Identifier: MIT */
/*
 * wheel_test.c - the timer wheel against a reference that scans an array.
 *
 * All tests go through put, drop, advance and pop_due, which do the same to the wheel and to
 * the reference and then compare the results of next. So each test also checks that next is
 * never late, that the right entry is popped, and that it is popped neither early nor late.
 */
#include "time/wheel.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "test.h"

#define MS   INT64_C(1000000)
#define HOUR (3600 * 1000 * MS)
#define YEAR (365 * 24 * HOUR)
/* Span of one slot of the top level, and of the whole wheel: 12.4 days, 2.2 years. */
#define TOP_SLOT  (INT64_C(1) << 30)
#define ROUND     (64 * TOP_SLOT)
#define LAST_TICK (WF_NEVER / MS)

enum {
    ITEMS = 48
};

struct item {
    struct wf_wheel_entry entry;
    int64_t due;   /* in ticks; not before elapsed at insertion */
    int64_t order; /* insertion order */
    bool is_far;   /* too far away for its own slot at insertion */
    bool is_in;
};

static struct wf_wheel wheel;
static struct item items[ITEMS];
static int64_t elapsed; /* the wheel's time in ticks */
static int64_t order;

/* --- the reference --- */

static int64_t round_up(int64_t deadline)
{
    if (deadline <= 0) {
        return 0;
    }
    return deadline / MS + (deadline % MS != 0);
}

static int64_t round_down(int64_t now)
{
    return now < 0 ? 0 : now / MS;
}

/* Returns the tick at which the wheel must look at an item. That is its due tick if the item is
 * in the current block of 64 ticks or the next one. Otherwise it is one block before the item's
 * own block starts, for the smallest block size at which the item is that near. The top level
 * has 128 blocks. */
static int64_t start_of(const struct item *item)
{
    for (int64_t block = 1; block < TOP_SLOT; block *= 64) {
        if (item->due / (block * 64) - elapsed / (block * 64) <= 1) {
            return block == 1 ? item->due : (item->due / block - 1) * block;
        }
    }
    int64_t ahead = item->due / TOP_SLOT - elapsed / TOP_SLOT;
    return (elapsed / TOP_SLOT + (ahead < 127 ? ahead : 127) - 1) * TOP_SLOT;
}

static void check_next(void)
{
    int64_t start = LAST_TICK + 1;
    uint64_t count = 0;
    bool any_far = false;
    int64_t next = wf_wheel_next(&wheel);
    for (int i = 0; i < ITEMS; i++) {
        CHECK_EQ(wf_wheel_is_linked(&items[i].entry), items[i].is_in);
        if (items[i].is_in) {
            CHECK_LE(next / MS, items[i].due);
            int64_t own = start_of(&items[i]);
            start = own < start && !items[i].is_far ? own : start;
            any_far = any_far || items[i].is_far;
            count++;
        }
    }
    int64_t wanted = start > LAST_TICK ? WF_NEVER : start * MS;
    /* An entry beyond the reach of the wheel stays in the slot where it was put. */
    CHECK(next == wanted || (any_far && next < wanted && next / MS >= elapsed));
    CHECK_EQ(wheel.count, count);
    CHECK_EQ(wf_wheel_is_empty(&wheel), count == 0);
}

static struct item *first_due(int64_t now)
{
    struct item *first = NULL;
    int64_t limit = round_down(now) > elapsed ? round_down(now) : elapsed;
    for (int i = 0; i < ITEMS; i++) {
        struct item *item = &items[i];
        if (item->is_in && item->due <= limit &&
            (first == NULL || item->due < first->due ||
             (item->due == first->due && item->order < first->order))) {
            first = item;
        }
    }
    elapsed = first != NULL ? first->due : limit;
    return first;
}

/* --- the wheel and the reference together --- */

static void reset(int64_t now)
{
    wf_wheel_init(&wheel, now);
    elapsed = round_down(now);
    for (int i = 0; i < ITEMS; i++) {
        items[i].is_in = false;
        wf_wheel_entry_init(&items[i].entry);
    }
    check_next();
}

static void put(struct item *item, int64_t deadline)
{
    int64_t due = round_up(deadline);
    item->due = due > elapsed ? due : elapsed;
    item->is_far = item->due / TOP_SLOT - elapsed / TOP_SLOT > 127;
    item->order = order++;
    item->is_in = true;
    item->entry.deadline = deadline;
    int64_t look = wf_wheel_insert(&wheel, &item->entry);
    int64_t own = start_of(item);
    CHECK_EQ(look, own > LAST_TICK ? WF_NEVER : own * MS);
    check_next();
}

static void drop(struct item *item)
{
    item->is_in = false;
    wf_wheel_remove(&wheel, &item->entry);
    check_next();
}

static bool advance(int64_t now)
{
    struct item *first = first_due(now);
    CHECK_EQ(wf_wheel_advance(&wheel, now), first != NULL);
    check_next();
    return first != NULL;
}

/* Pops the entry that is due at now, or returns NULL. */
static struct item *pop_due(int64_t now)
{
    struct item *first = first_due(now);
    struct wf_wheel_entry *entry = wf_wheel_pop(&wheel, now);
    if (entry != NULL && first != NULL && entry != &first->entry) {
        /* An entry that was too far away for its own slot may pop after others of its tick. */
        struct item *other = wf_container_of(entry, struct item, entry);
        CHECK_EQ(other->due, first->due);
        CHECK(other->is_far || first->is_far);
        first = other;
    }
    CHECK(entry == (first != NULL ? &first->entry : NULL));
    if (first != NULL) {
        CHECK_LE(first->entry.deadline, elapsed * MS);
        first->is_in = false;
    }
    check_next();
    return first;
}

static void drain(int64_t now)
{
    while (pop_due(now) != NULL) {
    }
    int64_t next = wf_wheel_next(&wheel);
    CHECK(next > now || next == WF_NEVER);
}

/* Advances the time from one call that next requests to the following one. Returns the number
 * of calls until an entry popped. */
static int count_calls_until_pop(void)
{
    for (int calls = 1;; calls++) {
        int64_t now = wf_wheel_next(&wheel);
        CHECK_NE(now, WF_NEVER);
        if (pop_due(now) != NULL) {
            return calls;
        }
    }
}

/* Times whose digits are 0, 63 and in between. */
static const int64_t starts[] = {
    0,
    1,
    MS - 1,
    5 * MS,
    63 * MS + 1,
    64 * MS,
    4095 * MS + 7,
    HOUR + 12345678,
    (TOP_SLOT - 1) * MS,
    YEAR,
    (ROUND - 1) * MS,
    100 * YEAR + 1,
};

enum {
    STARTS = sizeof starts / sizeof starts[0]
};

/* Runs a check with deadlines around the boundaries of ticks, levels and rounds: 1, 2, 3, 64,
 * 128, 192, 4096 ... ms after the start. */
static void at_all_distances_from(int64_t start, void (*check)(int64_t start, int64_t deadline))
{
    static const int64_t around[] = { -MS - 1, -MS, 1 - MS, -1, 0, 1, MS - 1, MS, MS + 1 };
    for (int64_t block = 1; block <= ROUND; block *= 64) {
        for (int64_t times = 1; times <= 3; times++) {
            for (size_t i = 0; i < sizeof around / sizeof around[0]; i++) {
                reset(start);
                check(start, start + times * block * MS + around[i]);
            }
        }
    }
}

static void at_all_distances(void (*check)(int64_t start, int64_t deadline))
{
    for (int i = 0; i < STARTS; i++) {
        at_all_distances_from(starts[i], check);
    }
}

/* --- one entry --- */

static void new_wheel_is_empty(void)
{
    for (int i = 0; i < STARTS; i++) {
        memset(&wheel, 0xA5, sizeof wheel);
        reset(starts[i]);
        CHECK_EQ(wf_wheel_next(&wheel), WF_NEVER);
        CHECK(pop_due(starts[i]) == NULL);
        CHECK(pop_due(starts[i] + YEAR) == NULL);
        CHECK(pop_due(INT64_MAX) == NULL);
        CHECK(wf_wheel_is_empty(&wheel));
    }
}

static void check_pop_at_deadline(int64_t start, int64_t deadline)
{
    put(&items[0], deadline);
    int64_t due = items[0].due * MS;
    if (due > start) {
        CHECK(pop_due(start) == NULL);
        CHECK(pop_due(due - 1) == NULL);
        CHECK_EQ(wf_wheel_next(&wheel), due);
    }
    CHECK(pop_due(due) == &items[0]);
    CHECK(pop_due(due) == NULL); /* now may stay the same */
}

static void entry_pops_at_deadline_rounded_up_and_not_before(void)
{
    at_all_distances(check_pop_at_deadline);
}

static void check_calls_until_pop(int64_t start, int64_t deadline)
{
    put(&items[0], deadline);
    int64_t rounds = (items[0].due - round_down(start)) / ROUND;
    CHECK_LE(count_calls_until_pop(), WF_WHEEL_LEVELS + rounds);
    CHECK_EQ(wf_wheel_next(&wheel), WF_NEVER);
}

static void sleeper_until_next_wakes_at_most_once_per_level(void)
{
    at_all_distances(check_calls_until_pop);
}

static void check_late_pop(int64_t start, int64_t deadline)
{
    static const int64_t late[] = { 1, MS, 64 * MS, 4096 * MS + 1, HOUR, 2 * YEAR };
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++) {
        reset(start);
        put(&items[0], deadline);
        CHECK(pop_due(items[0].due * MS + late[i]) == &items[0]);
    }
}

static void entry_pops_however_late_call_is(void)
{
    at_all_distances(check_late_pop);
}

static void check_remove(int64_t start, int64_t deadline)
{
    put(&items[0], deadline);
    drop(&items[0]);
    CHECK_EQ(wf_wheel_next(&wheel), WF_NEVER);

    /* Half-way, the entry has moved down some levels. */
    put(&items[0], deadline);
    CHECK_EQ(advance(start + (deadline - start) / 2), items[0].due <= elapsed);
    drop(&items[0]);
    CHECK_EQ(wf_wheel_next(&wheel), WF_NEVER);
    CHECK(pop_due(deadline + MS) == NULL);
}

static void removed_entry_never_pops(void)
{
    at_all_distances(check_remove);
}

static void due_entry_can_be_removed(void)
{
    reset(0);
    put(&items[0], 100 * MS);
    put(&items[1], 100 * MS);
    put(&items[2], 100 * MS);
    CHECK(pop_due(100 * MS) == &items[0]);
    drop(&items[1]);
    CHECK(pop_due(100 * MS) == &items[2]);
    put(&items[0], 0);
    CHECK(advance(100 * MS));
    drop(&items[0]);
    CHECK(pop_due(100 * MS) == NULL);
}

static void removed_and_popped_entries_can_be_inserted_again(void)
{
    reset(0);
    for (int64_t now = 0; now < 5000 * MS; now += 7 * MS) {
        put(&items[0], now + 300 * MS);
        put(&items[1], now + MS);
        drop(&items[0]);
        put(&items[0], now + 2 * MS);
        CHECK(pop_due(now + 2 * MS) == &items[1]);
        CHECK(pop_due(now + 2 * MS) == &items[0]);
    }
}

static void remove_keeps_neighbors(void)
{
    for (int gone = 0; gone < 3; gone++) {
        reset(17 * MS);
        for (int i = 0; i < 3; i++) {
            put(&items[i], 9000 * MS);
        }
        drop(&items[gone]);
        CHECK(pop_due(9000 * MS) == &items[gone == 0]);
        CHECK(pop_due(9000 * MS) == &items[gone == 2 ? 1 : 2]);
        CHECK(pop_due(9000 * MS) == NULL);
    }
}

static void remove_unlinked_entry(void)
{
    wf_wheel_entry_init(&items[0].entry);
    wf_wheel_remove(&wheel, &items[0].entry);
}

static void remove_of_unlinked_entry_aborts(void)
{
    reset(0);
    CHECK_ABORTS(remove_unlinked_entry, "wf_wheel_is_linked(entry)");
}

/* --- limits of time --- */

static void past_deadlines_are_due_immediately(void)
{
    static const int64_t past[] = { INT64_MIN, INT64_MIN + 1, -YEAR, -MS, -1, 0, 1, MS, HOUR };
    enum {
        PAST = sizeof past / sizeof past[0]
    };
    reset(HOUR);
    for (int i = 0; i < PAST; i++) {
        put(&items[i], past[i]);
        CHECK_EQ(wf_wheel_next(&wheel), HOUR);
    }
    put(&items[PAST], HOUR + 1);
    for (int i = 0; i < PAST; i++) {
        CHECK(pop_due(HOUR) == &items[i]);
    }
    CHECK(pop_due(HOUR) == NULL);
    CHECK(pop_due(HOUR + MS) == &items[PAST]);
}

static void nonpositive_deadlines_are_due_at_time_zero(void)
{
    reset(INT64_MIN);
    put(&items[0], 1);
    put(&items[1], 0);
    put(&items[2], INT64_MIN);
    CHECK(pop_due(INT64_MIN) == &items[1]);
    CHECK(pop_due(0) == &items[2]);
    CHECK(pop_due(MS - 1) == NULL);
    CHECK(pop_due(MS) == &items[0]);
}

/* Goal: next does not overflow, and deadlines in the last millisecond round up to never. */
static void deadlines_beyond_last_tick_are_never_due(void)
{
    for (int i = 0; i < STARTS; i++) {
        reset(starts[i]);
        put(&items[0], INT64_MAX);
        put(&items[1], LAST_TICK * MS + 1);
        put(&items[2], LAST_TICK * MS);
        CHECK(pop_due(LAST_TICK * MS - 1) == NULL);
        CHECK_EQ(wf_wheel_next(&wheel), LAST_TICK * MS);
        CHECK(pop_due(LAST_TICK * MS) == &items[2]);
        CHECK(pop_due(INT64_MAX) == NULL);
        CHECK_EQ(wf_wheel_next(&wheel), WF_NEVER);
        CHECK(!wf_wheel_is_empty(&wheel));
        drop(&items[0]);
        drop(&items[1]);
        CHECK(wf_wheel_is_empty(&wheel));
    }
}

static void one_top_slot_holds_several_rounds(void)
{
    reset(0);
    for (int i = 0; i < 6; i++) {
        int64_t rounds = (i * 5 + 3) % 6;
        put(&items[i], (rounds * ROUND + 7 * TOP_SLOT + i) * MS);
    }
    for (int i = 0; i < 6; i++) {
        (void)count_calls_until_pop();
    }
    CHECK(wf_wheel_is_empty(&wheel));
}

/* Goal:   an entry of the next round in the current top slot pops last, although its slot looks
 *         like the first.
 * Method: deadlines two rounds (some 4 years) ahead, one of them a slot less, and a nearer one. */
static void entry_of_next_round_in_current_top_slot_pops_last(void)
{
    reset(20 * TOP_SLOT * MS + HOUR);
    put(&items[0], (20 + 128) * TOP_SLOT * MS);
    put(&items[1], 22 * TOP_SLOT * MS);
    put(&items[2], (19 + 128) * TOP_SLOT * MS);
    CHECK_EQ(wf_wheel_next(&wheel), 21 * TOP_SLOT * MS);
    static const int expected[] = { 1, 2, 0 };
    for (int i = 0; i < 3; i++) {
        CHECK_LE(count_calls_until_pop(), WF_WHEEL_LEVELS);
        CHECK(!items[expected[i]].is_in);
    }
    CHECK(wf_wheel_is_empty(&wheel));
}

/* --- time that jumps, stands still or goes backward --- */

static void now_going_backward_changes_nothing(void)
{
    reset(0);
    put(&items[0], 5000 * MS);
    put(&items[1], 5000 * MS);
    put(&items[2], 5001 * MS);
    CHECK(pop_due(4999 * MS) == NULL);
    CHECK(pop_due(10 * MS) == NULL);
    CHECK(pop_due(-1) == NULL);
    CHECK(pop_due(6000 * MS) == &items[0]);

    /* The wheel is at 5000, where that entry was due, and continues from there. */
    CHECK(pop_due(10 * MS) == &items[1]);
    CHECK(pop_due(10 * MS) == NULL);
    put(&items[3], 4000 * MS);
    CHECK(pop_due(10 * MS) == &items[3]);
    CHECK(pop_due(5001 * MS) == &items[2]);
}

/* Method: the access pattern that showed that the seed's wheel lost timers. 300 random delays
 * of up to 4 s, in batches, with a call every jump milliseconds. */
static void periodic_calls_pop_every_entry_on_time(void)
{
    static const int64_t jumps[] = { 1, 2, 63, 64, 65, 128, 4095, 4096, 4097 };
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 1);
    for (size_t j = 0; j < sizeof jumps / sizeof jumps[0]; j++) {
        int64_t now = wf_rng_below(&rng, 100000) * MS;
        reset(now);
        for (int batch = 0; batch < 300 / ITEMS + 1; batch++) {
            for (int i = 0; i < ITEMS; i++) {
                put(&items[i], now + (1 + wf_rng_below(&rng, 4000)) * MS);
            }
            while (!wf_wheel_is_empty(&wheel)) {
                now += jumps[j] * MS;
                drain(now);
            }
        }
    }
}

static void advance_updates_time_of_idle_wheel(void)
{
    reset(0);
    CHECK(!advance(HOUR));
    put(&items[0], HOUR + 5 * MS);
    CHECK_EQ(wf_wheel_next(&wheel), HOUR + 5 * MS);
    CHECK(advance(HOUR + 6 * MS));
    CHECK(pop_due(HOUR + 6 * MS) == &items[0]);
}

/* --- many entries --- */

static void entries_of_one_tick_pop_in_insertion_order(void)
{
    reset(0);
    int64_t due = 3 * TOP_SLOT + 5 * 64 * 64 * 64 + 6 * 64 * 64 + 7 * 64 + 8;
    int64_t before[] = { ROUND / 2, 1 << 25, 4 * 64 * 64, 80, 3, 1 };
    for (int level = 0; level < 6; level++) {
        drain(due - before[level] > 0 ? (due - before[level]) * MS : 0);
        for (int i = 0; i < 5; i++) {
            put(&items[level * 5 + i], due * MS - i);
        }
    }
    for (int i = 0; i < 30; i++) {
        CHECK(pop_due(due * MS) == &items[i]);
    }
}

static int64_t random_bits(struct wf_rng *rng, unsigned bits)
{
    uint64_t word = (uint64_t)wf_rng_next(rng) << 32 | wf_rng_next(rng);
    return (int64_t)(word >> 1 >> (63 - bits));
}

/* Mostly near, sometimes anywhere in int64, often on a boundary. */
static int64_t random_deadline(struct wf_rng *rng, int64_t now)
{
    int64_t away = random_bits(rng, wf_rng_below(rng, 60));
    switch (wf_rng_below(rng, 8)) {
    case 0:
        return now - away;
    case 1:
        return random_bits(rng, 63) - random_bits(rng, 63);
    case 2:
        return INT64_MAX - away / 1000;
    case 3:
        away = away / MS * MS + wf_rng_below(rng, 3) - 1;
        break;
    case 4:
        away = ((INT64_C(1) << wf_rng_below(rng, 38)) + wf_rng_below(rng, 3) - 1) * MS;
        break;
    default:
        break;
    }
    return away < INT64_MAX - now ? now + away : INT64_MAX;
}

static int64_t random_jump(struct wf_rng *rng)
{
    static const int64_t jumps[] = { 0, 1, MS - 1, MS, 63 * MS, 64 * MS, 65 * MS, 4096 * MS, HOUR };
    uint32_t dice = wf_rng_below(rng, 12);
    return dice < 9 ? jumps[dice] : random_bits(rng, dice == 9 ? 55 : 30);
}

static void random_operation(struct wf_rng *rng, int64_t *now)
{
    struct item *item = &items[wf_rng_below(rng, ITEMS)];
    uint32_t dice = wf_rng_below(rng, 16);
    if (dice < 9) {
        if (!item->is_in) {
            put(item, random_deadline(rng, *now));
        } else if (dice < 4) {
            drop(item);
        }
        return;
    }
    int64_t jump = random_jump(rng);
    int64_t then = dice == 9 ? *now - jump : jump < INT64_MAX - *now ? *now + jump : INT64_MAX;
    if (dice == 10) {
        (void)advance(then);
    } else if (dice < 14) {
        (void)pop_due(then);
    } else {
        drain(then);
    }
    *now = then > *now ? then : *now;
}

static void random_operations_match_reference(void)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 2);
    for (uint64_t run = test_scale(1000); run > 0; run--) {
        int64_t now = run % 2 ? random_bits(&rng, wf_rng_below(&rng, 62)) : 0;
        reset(now);
        for (int i = 0; i < 1000; i++) {
            random_operation(&rng, &now);
        }
        drain(LAST_TICK * MS);
    }
}

/* Pops count entries, with a call every step from now on. Checks that they pop in order, each
 * at the first call after it is due. */
static void pop_all(uint64_t count, int64_t step, int64_t now)
{
    int64_t previous = 0;
    while (count > 0) {
        struct wf_wheel_entry *entry = wf_wheel_pop(&wheel, now);
        if (entry == NULL) {
            CHECK(wf_wheel_next(&wheel) > now);
            now += step;
            continue;
        }
        CHECK_LE(previous, round_up(entry->deadline));
        CHECK_LE(round_up(entry->deadline), now / MS);
        CHECK_LT(now - step, round_up(entry->deadline) * MS);
        previous = round_up(entry->deadline);
        count--;
    }
    CHECK(wf_wheel_is_empty(&wheel));
    CHECK_EQ(wf_wheel_next(&wheel), WF_NEVER);
}

static size_t length_of(const struct wf_list *slot)
{
    size_t length = 0;
    for (const struct wf_list *node = slot->next; node != slot; node = node->next) {
        length++;
    }
    return length;
}

static void million_entries_pop_in_order(void)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 3);
    uint64_t count = test_scale(1000000);
    struct wf_wheel_entry *entries = calloc(count, sizeof *entries);
    CHECK(entries != NULL);
    for (unsigned bits = 32; bits <= 56; bits += 8) {
        reset(0);
        for (uint64_t i = 0; i < count; i++) {
            entries[i].deadline = 1 + random_bits(&rng, bits);
            (void)wf_wheel_insert(&wheel, &entries[i]);
        }
        uint64_t left = count;
        for (uint64_t i = 0; i < count; i += 1 + wf_rng_below(&rng, 3)) {
            wf_wheel_remove(&wheel, &entries[i]);
            left--;
        }
        CHECK_EQ(wheel.count, left);
        int64_t step = (INT64_C(1) << bits) / 10000;
        pop_all(left, step, step);
    }
    free(entries);
}

/*
 * Goal:   one tick moves a limited number of entries, and a block is empty when it begins.
 * Method: all entries are in block 5 of level 1. Its slot is checked after each tick.
 */
static void crowded_block_moves_down_in_small_batches(void)
{
    enum {
        CROWD = 50000,
        BLOCK = 5,
        MOVES_MAX = 1024,
    };
    struct wf_wheel_entry *entries = calloc(CROWD, sizeof *entries);
    CHECK(entries != NULL);
    reset(0);
    for (int i = 0; i < CROWD; i++) {
        entries[i].deadline = (BLOCK * 64 + i % 64) * MS;
        (void)wf_wheel_insert(&wheel, &entries[i]);
    }
    const struct wf_list *slot = &wheel.slots[WF_WHEEL_SLOTS + BLOCK];
    size_t left = CROWD;
    for (int64_t tick = 1; tick < BLOCK * 64; tick++) {
        CHECK(wf_wheel_pop(&wheel, tick * MS) == NULL);
        size_t now = length_of(slot);
        CHECK_LE(left - now, tick < (BLOCK - 1) * 64 ? 0 : MOVES_MAX);
        left = now;
    }
    CHECK_EQ(left, 0);
    pop_all(CROWD, MS, BLOCK * 64 * MS);
    free(entries);
}

TEST_MAIN({
    TEST(new_wheel_is_empty),
    TEST(entry_pops_at_deadline_rounded_up_and_not_before),
    TEST(sleeper_until_next_wakes_at_most_once_per_level),
    TEST(entry_pops_however_late_call_is),
    TEST(removed_entry_never_pops),
    TEST(due_entry_can_be_removed),
    TEST(removed_and_popped_entries_can_be_inserted_again),
    TEST(remove_keeps_neighbors),
    TEST_DEBUG(remove_of_unlinked_entry_aborts),
    TEST(past_deadlines_are_due_immediately),
    TEST(nonpositive_deadlines_are_due_at_time_zero),
    TEST(deadlines_beyond_last_tick_are_never_due),
    TEST(one_top_slot_holds_several_rounds),
    TEST(entry_of_next_round_in_current_top_slot_pops_last),
    TEST(now_going_backward_changes_nothing),
    TEST(periodic_calls_pop_every_entry_on_time),
    TEST(advance_updates_time_of_idle_wheel),
    TEST(entries_of_one_tick_pop_in_insertion_order),
    TEST(random_operations_match_reference),
    TEST(million_entries_pop_in_order),
    TEST(crowded_block_moves_down_in_small_batches),
})
