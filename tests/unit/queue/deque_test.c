/* SPDX-License-Identifier: MIT */
/*
 * deque_test.c - the deque on one thread, out of memory, and with concurrent thieves.
 */
#include "queue/deque.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "ledger.h"
#include "test.h"

enum {
    SLOTS = WF_DEQUE_SLOTS,
    NUMBERS = 8 * SLOTS,
};

static struct wf_deque deque;
static int numbers[NUMBERS]; /* an item is a pointer to its number */

static void set_up(void)
{
    CHECK_EQ(wf_deque_init(&deque, &wf_alloc_default), 0);
}

/* Empties the deque and sets its next index. */
static void reset_to_index(int64_t index)
{
    wf_store_relaxed(&deque.top, index);
    wf_store_relaxed(&deque.bottom, index);
}

static void push_range(int first, int end)
{
    for (int i = first; i < end; i++) {
        CHECK_EQ(wf_deque_push(&deque, &numbers[i]), 0);
    }
}

static void check_pop(int number)
{
    CHECK(wf_deque_pop(&deque) == &numbers[number]);
}

static void check_steal(int number)
{
    void *item = NULL;
    CHECK_EQ(wf_deque_steal(&deque, &item), WF_STEAL_SUCCESS);
    CHECK(item == &numbers[number]);
}

static void check_empty(void)
{
    void *item = &deque;
    CHECK_EQ(wf_deque_steal(&deque, &item), WF_STEAL_EMPTY);
    CHECK(item == &deque);
    CHECK(wf_deque_pop(&deque) == NULL);
    CHECK_EQ(wf_deque_steal(&deque, &item), WF_STEAL_EMPTY);
    CHECK(wf_load_relaxed(&deque.top) == wf_load_relaxed(&deque.bottom));
}

/* --- one thread --- */

static void new_deque_is_empty(void)
{
    set_up();
    check_empty();
    check_empty();
    wf_deque_fini(&deque);
}

static void fini_of_zeroed_deque_does_nothing(void)
{
    struct wf_deque zeroed = { 0 };
    wf_deque_fini(&zeroed);
    wf_deque_fini(&zeroed);
}

static void pop_returns_newest_item(void)
{
    set_up();
    push_range(0, NUMBERS);
    for (int i = NUMBERS; i-- > 0;) {
        check_pop(i);
    }
    check_empty();
    wf_deque_fini(&deque);
}

static void steal_returns_oldest_item(void)
{
    set_up();
    push_range(0, NUMBERS);
    for (int i = 0; i < NUMBERS; i++) {
        check_steal(i);
    }
    check_empty();
    wf_deque_fini(&deque);
}

static void pop_and_steal_meet_in_middle(void)
{
    set_up();
    push_range(0, 6);
    check_steal(0);
    check_pop(5);
    check_steal(1);
    check_pop(4);
    push_range(6, 7);
    check_steal(2);
    check_pop(6);
    check_pop(3);
    check_empty();
    wf_deque_fini(&deque);
}

/* If a pop of the last item left bottom below top, every other push would be lost. */
static void pop_of_last_item_leaves_deque_usable(void)
{
    set_up();
    for (int i = 0; i < NUMBERS; i++) {
        push_range(i, i + 1);
        check_pop(i);
        CHECK(wf_load_relaxed(&deque.top) == wf_load_relaxed(&deque.bottom));
    }
    check_empty();
    push_range(0, 1);
    check_steal(0);
    check_empty();
    push_range(1, 3);
    check_pop(2);
    check_steal(1);
    check_empty();
    wf_deque_fini(&deque);
}

static void push_null(void)
{
    set_up();
    (void)!wf_deque_push(&deque, NULL);
}

static void push_of_null_aborts(void)
{
    CHECK_ABORTS(push_null, "'item != ");
}

/* --- growth --- */

/*
 * Goal:   growth keeps all items in order, wherever in the buffer they start, also when indices
 *         need more than 32 bits.
 * Method: fill the buffer from each start index, push one more item so that it grows, then take
 *         items from both ends.
 */
static void check_growth_from(int64_t index)
{
    set_up();
    reset_to_index(index);
    push_range(0, SLOTS + 1);
    int oldest = 0;
    int newest = SLOTS;
    while (oldest < newest) {
        check_steal(oldest++);
        check_pop(newest--);
    }
    check_pop(oldest);
    check_empty();
    wf_deque_fini(&deque);
}

static void growth_keeps_items_that_wrap_around(void)
{
    for (int64_t index = 0; index <= SLOTS; index++) {
        check_growth_from(index);
        check_growth_from(UINT32_MAX - SLOTS / 2 + index);
        check_growth_from(((int64_t)1 << 62) - SLOTS / 2 + index);
    }
}

static void repeated_growth_keeps_all_items(void)
{
    set_up();
    reset_to_index(SLOTS / 2 + 1);
    push_range(0, SLOTS);
    check_steal(0);
    check_steal(1);
    push_range(SLOTS, NUMBERS); /* grows to 2, 4 and 8 times SLOTS */
    for (int i = 2; i < NUMBERS / 2; i++) {
        check_steal(i);
    }
    for (int i = NUMBERS; i-- > NUMBERS / 2;) {
        check_pop(i);
    }
    check_empty();
    wf_deque_fini(&deque);
}

static void full_deque_reuses_freed_slots_without_growing(void)
{
    struct ledger ledger = { 0 };
    weft_allocator allocator = ledger_allocator(&ledger);
    CHECK_EQ(wf_deque_init(&deque, &allocator), 0);
    for (int round = 0; round < 5; round++) {
        push_range(0, SLOTS);
        for (int i = 0; i < SLOTS / 2; i++) {
            check_steal(i);
        }
        push_range(SLOTS, SLOTS + SLOTS / 2);
        for (int i = SLOTS + SLOTS / 2; i-- > SLOTS / 2;) {
            check_pop(i);
        }
        check_empty();
    }
    CHECK_EQ(ledger.calls, 1);
    wf_deque_fini(&deque);
    CHECK_EQ(ledger.bytes, 0);
}

static void fini_frees_every_buffer(void)
{
    struct ledger ledger = { 0 };
    weft_allocator allocator = ledger_allocator(&ledger);
    CHECK_EQ(wf_deque_init(&deque, &allocator), 0);
    int64_t at_first = ledger.bytes;
    CHECK_GE(at_first, (int64_t)(SLOTS * sizeof(void *)));
    push_range(0, 4 * SLOTS + 1);
    CHECK_EQ(ledger.calls, 4);
    CHECK_GE(ledger.bytes, (int64_t)((1 + 2 + 4 + 8) * SLOTS * sizeof(void *)));
    wf_deque_fini(&deque);
    CHECK_EQ(ledger.bytes, 0);
}

/* --- out of memory --- */

static void init_without_memory_returns_enomem(void)
{
    struct ledger ledger = { .fail_at = 1 };
    weft_allocator allocator = ledger_allocator(&ledger);
    CHECK_EQ(wf_deque_init(&deque, &allocator), -ENOMEM);
    CHECK_EQ(ledger.bytes, 0);
}

static void push_without_memory_leaves_deque_unchanged(void)
{
    for (int growth = 0; growth < 3; growth++) {
        struct ledger ledger = { .fail_at = 2 + growth };
        weft_allocator allocator = ledger_allocator(&ledger);
        CHECK_EQ(wf_deque_init(&deque, &allocator), 0);
        reset_to_index(SLOTS - 3);
        int count = SLOTS << growth;
        push_range(0, count);
        int64_t bytes = ledger.bytes;

        CHECK_EQ(wf_deque_push(&deque, &numbers[count]), -ENOMEM);
        CHECK_EQ(ledger.bytes, bytes);
        CHECK_EQ(wf_load_relaxed(&deque.top), SLOTS - 3);
        CHECK_EQ(wf_load_relaxed(&deque.bottom), SLOTS - 3 + count);

        /* Memory is available again, and the next push succeeds. */
        push_range(count + 1, count + 2);
        check_pop(count + 1);
        for (int i = 0; i < count / 2; i++) {
            check_steal(i);
        }
        for (int i = count; i-- > count / 2;) {
            check_pop(i);
        }
        check_empty();
        wf_deque_fini(&deque);
        CHECK_EQ(ledger.bytes, 0);
    }
}

static void push_after_enomem_succeeds_once_slot_is_free(void)
{
    struct ledger ledger = { .fail_at = 2 };
    weft_allocator allocator = ledger_allocator(&ledger);
    CHECK_EQ(wf_deque_init(&deque, &allocator), 0);
    push_range(0, SLOTS);
    CHECK_EQ(wf_deque_push(&deque, &numbers[SLOTS]), -ENOMEM);
    check_steal(0);
    push_range(SLOTS, SLOTS + 1);
    CHECK_EQ(ledger.calls, 2);
    check_pop(SLOTS);
    wf_deque_fini(&deque);
    CHECK_EQ(ledger.bytes, 0);
}

/* --- with thieves --- */

enum {
    THIEVES = 3,
};

struct item {
    _Atomic(uint32_t) taken; /* incremented by takers */
    uint64_t number;         /* written before the push, cleared by the taker [Q1] */
};

struct rig {
    struct item *items;
    uint64_t item_count;
    struct wf_rng rng;
    _Atomic(uint64_t) taken_count;  /* incremented by takers */
    _Atomic(uint64_t) stolen_count; /* incremented by thieves */
    _Atomic(uint64_t) thief_count;  /* thieves that have started */
};

static struct rig rig;

static void consume(struct item *item)
{
    CHECK_EQ(wf_fetch_add_relaxed(&item->taken, 1), 0);
    CHECK_EQ(item->number, (uint64_t)(item - rig.items) + 1);
    item->number = 0;
    (void)wf_fetch_add_relaxed(&rig.taken_count, 1);
}

/* Each thief gets items in push order: the top is always the oldest item. */
static void *steal_items(void *arg)
{
    (void)arg;
    (void)wf_fetch_add_relaxed(&rig.thief_count, 1);
    uint64_t last_number = 0;
    while (wf_load_relaxed(&rig.taken_count) < rig.item_count) {
        void *item = NULL;
        enum wf_steal got = wf_deque_steal(&deque, &item);
        if (got == WF_STEAL_SUCCESS) {
            uint64_t number = ((struct item *)item)->number;
            CHECK_LT(last_number, number);
            last_number = number;
            consume(item);
            (void)wf_fetch_add_relaxed(&rig.stolen_count, 1);
        } else if (got == WF_STEAL_EMPTY) {
            (void)sched_yield();
        }
    }
    return NULL;
}

static void push_item(uint64_t i)
{
    rig.items[i].number = i + 1;
    CHECK_EQ(wf_deque_push(&deque, &rig.items[i]), 0);
}

static void pop_items(uint64_t count)
{
    struct item *item;
    while (count-- > 0 && (item = wf_deque_pop(&deque)) != NULL) {
        consume(item);
    }
}

/* Leaves all items to the thieves, which get few otherwise on a busy machine. */
static void wait_for_thieves(uint64_t pushed)
{
    while (wf_load_relaxed(&rig.taken_count) < pushed) {
        (void)sched_yield();
    }
}

/*
 * Pushes all items in bursts. After each burst it pops some, pops all, or leaves them to the
 * thieves. Bursts get longer, up to burst_max, so the deque is often empty and grows while
 * thieves steal from it. The last item is left to a thief.
 */
static void push_and_pop_all(uint64_t burst_max)
{
    uint64_t last = rig.item_count - 1;
    for (uint64_t pushed = 0; pushed < last;) {
        uint32_t most = 1 + (uint32_t)(burst_max * pushed / rig.item_count);
        uint64_t burst = 1 + wf_rng_below(&rig.rng, most);
        while (burst-- > 0 && pushed < last) {
            push_item(pushed++);
        }
        uint32_t dice = wf_rng_below(&rig.rng, 16);
        if (dice == 0) {
            wait_for_thieves(pushed);
        } else if (dice < 8) {
            pop_items(UINT64_MAX);
        } else {
            pop_items(wf_rng_below(&rig.rng, most + 2));
        }
    }
    push_item(last);
    wait_for_thieves(rig.item_count);
}

static void run_with_thieves(uint64_t item_count, uint64_t burst_max)
{
    set_up();
    rig = (struct rig){ .item_count = item_count };
    wf_rng_seed(&rig.rng, test_seed(), burst_max);
    rig.items = calloc(item_count, sizeof *rig.items);
    CHECK(rig.items != NULL);
    pthread_t thieves[THIEVES];
    for (int i = 0; i < THIEVES; i++) {
        CHECK_EQ(pthread_create(&thieves[i], NULL, steal_items, NULL), 0);
    }
    test_wait_for(&rig.thief_count, THIEVES);
    push_and_pop_all(burst_max);
    for (int i = 0; i < THIEVES; i++) {
        CHECK_EQ(pthread_join(thieves[i], NULL), 0);
    }
    check_empty();
    CHECK_LT(0, wf_load_relaxed(&rig.stolen_count));
    for (uint64_t i = 0; i < item_count; i++) {
        CHECK_EQ(wf_load_relaxed(&rig.items[i].taken), 1);
    }
    free(rig.items);
    wf_deque_fini(&deque);
}

/*
 * Goal:   with an owner and three thieves each item is taken once, with its contents visible,
 *         and each thief gets items in push order.
 * Method: few items at a time, so that the owner and the thieves race for the last one all the
 *         time. Items count their takers and carry their number.
 */
static void race_for_last_item_has_one_winner(void)
{
    run_with_thieves(test_scale(1000000), 3);
}

/*
 * Goal:   same as race_for_last_item_has_one_winner, while the deque keeps growing.
 * Method: bursts of pushes that get longer.
 */
static void growth_under_thieves_loses_no_item(void)
{
    for (int round = 0; round < 10; round++) {
        run_with_thieves(test_scale(100000), 16 * SLOTS);
    }
}

TEST_MAIN({
    TEST(new_deque_is_empty),
    TEST(fini_of_zeroed_deque_does_nothing),
    TEST(pop_returns_newest_item),
    TEST(steal_returns_oldest_item),
    TEST(pop_and_steal_meet_in_middle),
    TEST(pop_of_last_item_leaves_deque_usable),
    TEST_DEBUG(push_of_null_aborts),
    TEST(growth_keeps_items_that_wrap_around),
    TEST(repeated_growth_keeps_all_items),
    TEST(full_deque_reuses_freed_slots_without_growing),
    TEST(fini_frees_every_buffer),
    TEST(init_without_memory_returns_enomem),
    TEST(push_without_memory_leaves_deque_unchanged),
    TEST(push_after_enomem_succeeds_once_slot_is_free),
    TEST(race_for_last_item_has_one_winner),
    TEST(growth_under_thieves_loses_no_item),
})
