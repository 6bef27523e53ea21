/* SPDX-License-Identifier: MIT */
/*
 * spsc_model.c - model test of spsc.c: every interleaving of its two threads, and every
 * value that C11 allows them to read.
 *
 * Built twice: unchanged, and with SPSC_BROKEN, where each test that depends on the
 * missing order must fail. A test that still passes is too small.
 */
#include <stdlib.h>

#include "mc.h"
#include "spsc.h"

#ifdef SPSC_BROKEN
#define FAULT MC_RACE
#else
#define FAULT MC_NONE
#endif

enum {
    ITEMS = 3, /* one more than there are slots, so that the queue gets full */
};

static struct spsc queue;

static void produce(void *arg)
{
    (void)arg;
    for (int i = 0; i < ITEMS; i++) {
        int *item = malloc(sizeof *item);
        *item = i;
        /* A loop that waits by reading is fine: see docs/model.md. */
        while (!spsc_push(&queue, item)) {
        }
    }
}

static int *wait_and_pop(void)
{
    int *item;
    do {
        item = spsc_pop(&queue);
    } while (item == NULL);
    return item;
}

/*
 * Goal:   each item arrives once, in order, with the value that it points to.
 * Method: more items than slots. They are allocated, so that the checker detects a use
 *         that is not ordered after the allocation, and a lost item.
 */
static void items_arrive_in_order(void)
{
    mc_name(&queue.head, sizeof queue.head, "head");
    mc_name(&queue.tail, sizeof queue.tail, "tail");
    mc_go(produce, NULL);
    for (int i = 0; i < ITEMS; i++) {
        int *item = wait_and_pop();
        mc_assert(*item == i);
        free(item);
    }
    mc_join();
    mc_assert(spsc_pop(&queue) == NULL);
}

static void try_to_push(void *arg)
{
    static int item;
    *(bool *)arg = spsc_push(&queue, &item);
}

/*
 * Goal:   a push concurrent with a pop of a full queue may find space or not, and both
 *         outcomes occur: the test is not blind.
 * Method: records the outcome; the table lists the outcomes that must occur.
 */
static void push_beside_pop(void)
{
    static int items[SPSC_SLOTS];
    for (int i = 0; i < SPSC_SLOTS; i++) {
        mc_assert(spsc_push(&queue, &items[i]));
    }
    bool pushed = false;
    mc_go(try_to_push, &pushed);
    mc_assert(spsc_pop(&queue) == &items[0]);
    mc_join();
    mc_note(pushed);
}

static const struct mc_test tests[] = {
    { .name = "items_arrive_in_order",
      .run = items_arrive_in_order,
      .leaks = true,
      .expect = FAULT },
    { .name = "push_beside_pop",
      .run = push_beside_pop,
      .seen = MC_OUTCOMES(0, 1),
      .seen_only = true },
};

MC_MAIN(tests)
