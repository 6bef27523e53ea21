/* SPDX-License-Identifier: MIT */
/*
 * mpsc_model.c - src/queue/mpsc.h, a worker's inbox: many push, one takes all.
 *
 * What catches what: a second pusher is needed to see that a push keeps what is
 * there; a taker that comes twice, that it leaves nothing behind twice.
 */
#include "queue/mpsc.h"

#include "mc.h"

enum {
    PUSHERS_MAX = 3,
    EACH = 2,
    ITEMS = PUSHERS_MAX * EACH,
};

struct item {
    struct wf_qnode node;
    int payload; /* written by the pusher, read by the taker */
    int taken;
};

static struct wf_mpsc inbox;
static struct item items[ITEMS];
static int last_taken[PUSHERS_MAX]; /* the taker's: order of each pusher's items */

static bool push(unsigned i)
{
    items[i].payload = (int)i + 100;
    return wf_mpsc_push(&inbox, &items[i].node);
}

/* Takes everything once; what one pusher has pushed comes in its order. */
static void take_all(void)
{
    struct wf_qlist list = { 0 };
    wf_mpsc_take_all(&inbox, &list);
    for (struct wf_qnode *node = wf_qlist_pop(&list); node != NULL; node = wf_qlist_pop(&list)) {
        struct item *item = (struct item *)node;
        int i = (int)(item - items);
        mc_assert(item->payload == i + 100);
        mc_assert(i >= last_taken[i / EACH]);
        last_taken[i / EACH] = i;
        item->taken++;
    }
}

static void end(unsigned count)
{
    take_all();
    mc_assert(wf_mpsc_is_empty(&inbox));
    for (unsigned i = 0; i < count; i++) {
        mc_assert(items[i].taken == 1);
    }
}

/* The pusher whose first item it is. */
static void push_two(void *arg)
{
    unsigned first = (unsigned)((struct item *)arg - items);
    (void)push(first);
    (void)push(first + 1);
}

static void push_one(void *arg)
{
    (void)push((unsigned)((struct item *)arg - items));
}

/*
 * Goal:   every item is taken once, whole, and in the order of its pusher.
 * Method: two push two each while the owner takes all twice.
 */
static void two_pushers_and_the_owner(void)
{
    mc_name(&inbox, sizeof inbox, "inbox");
    mc_go(push_two, &items[0]);
    mc_go(push_two, &items[EACH]);
    take_all();
    take_all();
    mc_join();
    end(2 * EACH);
}

/*
 * Goal:   the same with more pushers than two, and weak exchanges that fail.
 * Method: three push one each while the owner takes all once.
 */
static void three_pushers(void)
{
    for (unsigned i = 0; i < PUSHERS_MAX; i++) {
        mc_go(push_one, &items[i * EACH]);
    }
    take_all();
    mc_join();
    take_all();
    for (unsigned i = 0; i < PUSHERS_MAX; i++) {
        mc_assert(items[i * EACH].taken == 1);
    }
}

static bool was_empty[ITEMS];

static void push_and_tell(void *arg)
{
    unsigned i = (unsigned)((struct item *)arg - items);
    was_empty[i] = push(i);
}

/*
 * Goal:   of two that push into an empty inbox, one is told that it was empty.
 * Method: nobody takes.
 */
static void one_push_finds_it_empty(void)
{
    mc_go(push_and_tell, &items[0]);
    mc_go(push_and_tell, &items[EACH]);
    mc_join();
    mc_assert(was_empty[0] != was_empty[EACH]);
}

static const struct mc_test tests[] = {
    { .name = "two_pushers_and_the_owner", .run = two_pushers_and_the_owner },
    { .name = "three_pushers", .run = three_pushers, .spurious_cas = 1 },
    { .name = "one_push_finds_it_empty", .run = one_push_finds_it_empty },
};

MC_MAIN(tests)
