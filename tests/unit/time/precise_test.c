/* SPDX-License-Identifier: MIT */
/*
 * precise_test.c - the pairing heap of precise timers, against a reference that scans an array.
 *
 * put, drop and pop_due do the same to the heap and to the reference and then compare the two.
 * The order of equal deadlines is unspecified, so a popped entry is checked by its deadline.
 */
#include "time/precise.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "test.h"

enum {
    ITEMS = 64,
    /* Enough that the test times out if each pop is O(n). */
    MANY = 1000000
};

struct item {
    struct wf_precise_entry entry;
    bool is_in;
};

static struct wf_precise heap;
static struct item items[ITEMS];

static void reset(void)
{
    wf_precise_init(&heap);
    for (int i = 0; i < ITEMS; i++) {
        items[i].is_in = false;
        wf_precise_entry_init(&items[i].entry);
    }
}

static void check_next(void)
{
    int64_t earliest = WF_NEVER;
    bool is_empty = true;
    for (int i = 0; i < ITEMS; i++) {
        CHECK_EQ(wf_precise_is_linked(&items[i].entry), items[i].is_in);
        if (items[i].is_in) {
            is_empty = false;
            int64_t deadline = items[i].entry.deadline;
            earliest = deadline < earliest ? deadline : earliest;
        }
    }
    CHECK_EQ(wf_precise_next(&heap), earliest);
    CHECK_EQ(wf_precise_is_empty(&heap), is_empty);
}

static void put(struct item *item, int64_t deadline)
{
    item->is_in = true;
    item->entry.deadline = deadline;
    wf_precise_insert(&heap, &item->entry);
    check_next();
}

static void drop(struct item *item)
{
    item->is_in = false;
    wf_precise_remove(&heap, &item->entry);
    check_next();
}

/* Pops an entry that is due at now, or returns NULL. */
static struct item *pop_due(int64_t now)
{
    int64_t earliest = wf_precise_next(&heap);
    bool is_due = !wf_precise_is_empty(&heap) && earliest <= now;
    struct wf_precise_entry *entry = wf_precise_pop(&heap, now);
    CHECK_EQ(entry != NULL, is_due);
    if (entry == NULL) {
        check_next();
        return NULL;
    }
    struct item *item = (struct item *)(void *)entry;
    CHECK(item->is_in);
    CHECK_EQ(entry->deadline, earliest);
    item->is_in = false;
    check_next();
    return item;
}

static void drain(int64_t now)
{
    while (pop_due(now) != NULL) {
    }
}

static void new_heap_is_empty(void)
{
    memset(&heap, 0xA5, sizeof heap);
    reset();
    check_next();
    CHECK(pop_due(INT64_MAX) == NULL);
}

static void entry_pops_at_deadline_and_not_before(void)
{
    static const int64_t deadlines[] = { INT64_MIN + 1, -1, 0, 1, 999999, 1000000, INT64_MAX };
    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++) {
        reset();
        put(&items[0], deadlines[i]);
        CHECK(pop_due(INT64_MIN) == NULL);
        CHECK(pop_due(deadlines[i] - 1) == NULL);
        CHECK(pop_due(deadlines[i]) == &items[0]);
        CHECK(pop_due(INT64_MAX) == NULL);
    }
}

static void entries_pop_by_deadline_for_any_insertion_order(void)
{
    for (int step = 1; step < ITEMS; step += 2) {
        reset();
        for (int i = 0; i < ITEMS; i++) {
            put(&items[i], i * step % ITEMS);
        }
        for (int now = 0; now < ITEMS; now++) {
            CHECK(pop_due(now) != NULL);
            CHECK(pop_due(now) == NULL);
        }
    }
}

static void deadlines_across_int64_pop_in_order(void)
{
    static const int64_t sorted[] = { INT64_MIN, INT64_MIN + 1, INT32_MIN,  -1,       0,
                                      1,         INT32_MAX,     UINT32_MAX, INT64_MAX };
    enum {
        SORTED = sizeof sorted / sizeof sorted[0]
    };
    reset();
    for (int i = 0; i < SORTED; i++) {
        put(&items[i * 4 % SORTED], sorted[i * 4 % SORTED]);
    }
    for (int i = 0; i < SORTED; i++) {
        CHECK(pop_due(sorted[i]) == &items[i]);
    }
}

static void entries_with_equal_deadlines_all_pop(void)
{
    reset();
    for (int i = 0; i < ITEMS; i++) {
        put(&items[i], i % 2);
    }
    drain(0);
    for (int i = 0; i < ITEMS; i++) {
        CHECK_EQ(items[i].is_in, i % 2);
    }
    drain(1);
    CHECK(wf_precise_is_empty(&heap));
}

/*
 * Goal:   removing any entry leaves the others in place and in order.
 * Method: pops in between give the tree depth. The removed entries include the root and first,
 *         middle and last children, with and without children of their own.
 */
static void remove_of_any_entry_keeps_others_in_order(void)
{
    for (int pops = 0; pops < 20; pops++) {
        for (int gone = 0; gone < ITEMS; gone++) {
            reset();
            for (int i = 0; i < ITEMS; i++) {
                put(&items[i], i * 29 % ITEMS);
            }
            for (int i = 0; i < pops; i++) {
                CHECK(pop_due(INT64_MAX) != NULL);
            }
            if (items[gone].is_in) {
                drop(&items[gone]);
            }
            drain(INT64_MAX);
            CHECK(wf_precise_is_empty(&heap));
        }
    }
}

static void removed_entry_can_be_inserted_again(void)
{
    reset();
    for (int i = 0; i < ITEMS; i++) {
        put(&items[i], i);
    }
    for (int i = ITEMS - 1; i >= 0; i--) {
        drop(&items[i]);
        put(&items[i], -i);
    }
    for (int i = ITEMS - 1; i >= 0; i--) {
        CHECK(pop_due(0) == &items[i]);
    }
}

static void remove_unlinked_entry(void)
{
    wf_precise_entry_init(&items[0].entry);
    wf_precise_remove(&heap, &items[0].entry);
}

static void remove_from_wrong_heap(void)
{
    struct wf_precise other;
    wf_precise_init(&other);
    wf_precise_insert(&other, &items[0].entry);
    wf_precise_remove(&heap, &items[0].entry);
}

static void remove_of_unlinked_entry_aborts(void)
{
    reset();
    CHECK_ABORTS(remove_unlinked_entry, "wf_precise_is_linked(entry)");
    CHECK_ABORTS(remove_from_wrong_heap, "entry == heap->root");
}

static void random_operations_match_reference(void)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 1);
    for (uint64_t run = test_scale(2000); run > 0; run--) {
        reset();
        uint32_t range = 1 + wf_rng_below(&rng, 200);
        uint32_t pops = wf_rng_below(&rng, 4);
        for (int i = 0; i < 1000; i++) {
            struct item *item = &items[wf_rng_below(&rng, ITEMS)];
            if (wf_rng_below(&rng, 8) < pops) {
                (void)pop_due(wf_rng_below(&rng, range));
            } else if (item->is_in) {
                drop(item);
            } else {
                put(item, wf_rng_below(&rng, range));
            }
        }
        drain(INT64_MAX);
    }
}

enum shape {
    ASCENDING,  /* all others are children of the root */
    DESCENDING, /* each entry is the only child of the next */
    RANDOM,
    SHAPES
};

/* Goal: no shape of the tree overflows the stack or makes most calls O(n). */
static void million_entries_of_any_shape_pop_in_order(void)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 2);
    struct wf_precise_entry *entries = calloc(MANY, sizeof *entries);
    CHECK(entries != NULL);
    for (int shape = 0; shape < SHAPES; shape++) {
        wf_precise_init(&heap);
        for (int i = 0; i < MANY; i++) {
            entries[i].deadline = shape == ASCENDING    ? i
                                  : shape == DESCENDING ? MANY - i
                                                        : (int64_t)wf_rng_next(&rng);
            wf_precise_insert(&heap, &entries[i]);
        }
        int left = MANY;
        for (int i = 0; i < MANY; i += 1 + (int)wf_rng_below(&rng, 9)) {
            wf_precise_remove(&heap, &entries[i]);
            left--;
        }
        int64_t previous = -1;
        for (; left > 0; left--) {
            int64_t next = wf_precise_next(&heap);
            CHECK(wf_precise_pop(&heap, next - 1) == NULL);
            CHECK_EQ(wf_precise_pop(&heap, next)->deadline, next);
            CHECK_LE(previous, next);
            previous = next;
        }
        CHECK(wf_precise_is_empty(&heap));
    }
    free(entries);
}

TEST_MAIN({
    TEST(new_heap_is_empty),
    TEST(entry_pops_at_deadline_and_not_before),
    TEST(entries_pop_by_deadline_for_any_insertion_order),
    TEST(deadlines_across_int64_pop_in_order),
    TEST(entries_with_equal_deadlines_all_pop),
    TEST(remove_of_any_entry_keeps_others_in_order),
    TEST(removed_entry_can_be_inserted_again),
    TEST_DEBUG(remove_of_unlinked_entry_aborts),
    TEST(random_operations_match_reference),
    TEST(million_entries_of_any_shape_pop_in_order),
})
