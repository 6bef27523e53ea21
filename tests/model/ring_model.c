/* SPDX-License-Identifier: MIT */
/*
 * ring_model.c - src/queue/ring.c with four slots: an owner and one or two thieves,
 * in every order, each node is taken exactly once.
 *
 * What catches what: with one push the loss of a release or acquire is not seen,
 * since nothing is in the slots before; with one thief neither is a claim that two
 * thieves share, nor an overflow that the second thief meets.
 */
#include "queue/ring.h"

#include "mc.h"

enum {
    NODES = 10,
    THIEVES_MAX = 2,
};

struct item {
    struct wf_qnode node;
    int payload; /* written by the owner before the push, read by the taker */
    int taken;
};

static struct wf_ring ring; /* the owner's */
static struct wf_ring loot[THIEVES_MAX];
static struct item items[NODES];

/* Where the positions begin: so that they wrap around 32 bits. */
static const uint32_t start = UINT32_MAX - 1;

static void start_ring(struct wf_ring *of)
{
    wf_ring_init(of);
    wf_store_relaxed(&of->head, wf_ring_pack(start, start));
    wf_store_relaxed(&of->tail, start);
}

static void begin(void)
{
    start_ring(&ring);
    for (unsigned i = 0; i < THIEVES_MAX; i++) {
        start_ring(&loot[i]);
    }
    mc_name(&ring, sizeof ring, "ring");
    mc_name(&loot[0], sizeof loot[0], "loot0");
    mc_name(&loot[1], sizeof loot[1], "loot1");
}

static bool push(unsigned i)
{
    items[i].payload = (int)i + 100;
    return wf_ring_push(&ring, &items[i].node);
}

static void fill(void)
{
    for (unsigned i = 0; i < WF_RING_SLOTS; i++) {
        mc_assert(push(i));
    }
}

/* A data race here is a node that two have taken. */
static void take(struct wf_qnode *node)
{
    struct item *item = (struct item *)node;
    unsigned i = (unsigned)(item - items);
    mc_assert(item->payload == (int)i + 100);
    item->taken++;
}

static void take_all(struct wf_qlist *list)
{
    for (struct wf_qnode *node = wf_qlist_pop(list); node != NULL; node = wf_qlist_pop(list)) {
        take(node);
    }
}

static bool pop(struct wf_ring *from)
{
    struct wf_qnode *node = wf_ring_pop(from);
    if (node != NULL) {
        take(node);
    }
    return node != NULL;
}

/* Steals once. What it got beyond the first stays in its own ring. */
static void thief(void *arg)
{
    struct wf_ring *into = arg;
    uint32_t taken;
    struct wf_qnode *node = wf_ring_steal(&ring, into, &taken);
    mc_assert((node != NULL) == (taken > 0));
    if (node != NULL) {
        take(node);
        mc_assert(wf_ring_len(into) <= WF_RING_SLOTS);
    }
}

/* No claim is left, which would close the ring to thieves; takes what is there. */
static void empty(struct wf_ring *left)
{
    uint64_t head = wf_load_relaxed(&left->head);
    mc_assert(wf_ring_steal_of(head) == wf_ring_real_of(head));
    while (pop(left)) {
    }
}

/* Everybody is done: what is left is taken, and nothing was lost or doubled. */
static void end(unsigned count)
{
    empty(&ring);
    for (unsigned i = 0; i < THIEVES_MAX; i++) {
        empty(&loot[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        mc_assert(items[i].taken == 1);
    }
}

/*
 * Goal:   owner and thief do not take the same node, and see it whole.
 * Method: the thief comes while the owner pushes two and pops two.
 */
static void owner_and_one_thief(void)
{
    begin();
    mc_go(thief, &loot[0]);
    mc_assert(push(0));
    mc_assert(push(1));
    (void)pop(&ring);
    mc_assert(push(2));
    (void)pop(&ring);
    mc_join();
    end(3);
}

/*
 * Goal:   two thieves do not share a claim.
 * Method: three nodes are there; both come while the owner pops.
 */
static void owner_and_two_thieves(void)
{
    begin();
    mc_assert(push(0));
    mc_assert(push(1));
    mc_assert(push(2));
    mc_go(thief, &loot[0]);
    mc_go(thief, &loot[1]);
    (void)pop(&ring);
    mc_join();
    end(3);
}

/*
 * Goal:   a slot is not filled again before its thief has read it.
 * Method: the ring is full and wraps while the thief copies.
 */
static void push_waits_for_the_copy(void)
{
    begin();
    fill();
    mc_go(thief, &loot[0]);
    unsigned count = WF_RING_SLOTS;
    (void)pop(&ring);
    for (unsigned i = 0; i < 2; i++) {
        count += push(count);
    }
    mc_join();
    end(count);
}

static void push_or_overflow(unsigned i)
{
    struct wf_qlist out = { 0 };
    if (!push(i)) {
        wf_ring_overflow(&ring, &items[i].node, &out);
    }
    take_all(&out);
}

/*
 * Goal:   overflow takes nothing that a thief has, also if a second thief comes
 *         with a tail from before it.
 * Method: the ring is full; two thieves come while the owner pushes one more.
 */
static void overflow_against_two_thieves(void)
{
    begin();
    fill();
    mc_go(thief, &loot[0]);
    mc_go(thief, &loot[1]);
    push_or_overflow(WF_RING_SLOTS);
    mc_join();
    end(WF_RING_SLOTS + 1);
}

static void two_steals(void *arg)
{
    thief(arg);
    thief(arg);
}

/*
 * Goal:   the same for one thief that comes twice, and the tail that overflow has
 *         moved on is seen rightly.
 * Method: the owner overflows and goes on pushing.
 */
static void overflow_and_on_against_two_steals(void)
{
    begin();
    fill();
    mc_go(two_steals, &loot[0]);
    push_or_overflow(WF_RING_SLOTS);
    push_or_overflow(WF_RING_SLOTS + 1);
    mc_join();
    end(WF_RING_SLOTS + 2);
}

/*
 * Goal:   with the head that overflow leaves comes the tail that it belongs to.
 * Method: the thief has seen nothing yet when the owner fills the ring and
 *         overflows, so it may still read any tail.
 */
static void overflow_against_a_thief_with_an_old_tail(void)
{
    begin();
    mc_go(thief, &loot[0]);
    fill();
    push_or_overflow(WF_RING_SLOTS);
    mc_join();
    end(WF_RING_SLOTS + 1);
}

/* Steals from the first thief's ring. */
static void thief_of_the_thief(void *arg)
{
    struct wf_ring *into = arg;
    uint32_t taken;
    struct wf_qnode *node = wf_ring_steal(&loot[0], into, &taken);
    if (node != NULL) {
        take(node);
    }
}

/*
 * Goal:   what a thief has put into its own ring is whole for the next thief.
 * Method: one thief takes two of four, and keeps one; another comes for that.
 */
static void steal_of_what_was_stolen(void)
{
    begin();
    fill();
    mc_go(thief, &loot[0]);
    mc_go(thief_of_the_thief, &loot[1]);
    mc_join();
    end(WF_RING_SLOTS);
}

/*
 * Goal:   a thief takes no more than its own ring has room for.
 * Method: its ring has one free slot, or none; another thief steals from it
 *         meanwhile.
 */
static void steal_into_a_nearly_full_ring(void)
{
    begin();
    fill();
    unsigned count = 2 * WF_RING_SLOTS - mc_choose(2);
    for (unsigned i = WF_RING_SLOTS; i < count; i++) {
        items[i].payload = (int)i + 100;
        mc_assert(wf_ring_push(&loot[0], &items[i].node));
    }
    mc_go(thief, &loot[0]);
    mc_go(thief_of_the_thief, &loot[1]);
    (void)pop(&ring);
    mc_join();
    end(count);
}

static void look(void *arg)
{
    (void)arg;
    mc_assert(wf_ring_len(&ring) <= 2);
}

/*
 * Goal:   the length that others see is never negative, which would read as full.
 * Method: it is read while the owner pushes two and pops two.
 */
static void length_is_at_most_what_was_pushed(void)
{
    begin();
    mc_go(look, NULL);
    mc_assert(push(0));
    mc_assert(push(1));
    (void)pop(&ring);
    (void)pop(&ring);
    mc_join();
    end(2);
}

static void look_at_most_slots(void *arg)
{
    (void)arg;
    mc_assert(wf_ring_len(&ring) <= WF_RING_SLOTS);
}

/*
 * Goal:   the length that others see is never more than the ring holds.
 * Method: it is read while the owner pops two of a full ring and pushes two, so an
 *         old head may meet a new tail.
 */
static void length_is_at_most_the_slots(void)
{
    begin();
    fill();
    mc_go(look_at_most_slots, NULL);
    (void)pop(&ring);
    (void)pop(&ring);
    mc_assert(push(WF_RING_SLOTS));
    mc_assert(push(WF_RING_SLOTS + 1));
    mc_join();
    end(WF_RING_SLOTS + 2);
}

/*
 * Goal:   a list is seen whole or not at all.
 * Method: a thief steals half while three are pushed at once.
 */
static void list_comes_at_once(void)
{
    begin();
    struct wf_qlist list = { 0 };
    for (unsigned i = 0; i < 3; i++) {
        items[i].payload = (int)i + 100;
        wf_qlist_push(&list, &items[i].node);
    }
    mc_go(thief, &loot[0]);
    wf_ring_push_list(&ring, &list);
    (void)pop(&ring);
    mc_join();
    uint32_t left = wf_ring_len(&ring) + wf_ring_len(&loot[0]);
    mc_note((int)left);
    end(3);
}

static const struct mc_test tests[] = {
    { .name = "owner_and_one_thief", .run = owner_and_one_thief },
    { .name = "owner_and_two_thieves", .run = owner_and_two_thieves },
    { .name = "push_waits_for_the_copy", .run = push_waits_for_the_copy },
    { .name = "overflow_against_two_thieves", .run = overflow_against_two_thieves },
    { .name = "overflow_and_on_against_two_steals", .run = overflow_and_on_against_two_steals },
    { .name = "overflow_against_a_thief_with_an_old_tail",
      .run = overflow_against_a_thief_with_an_old_tail },
    { .name = "steal_of_what_was_stolen", .run = steal_of_what_was_stolen },
    { .name = "length_is_at_most_what_was_pushed", .run = length_is_at_most_what_was_pushed },
    { .name = "length_is_at_most_the_slots", .run = length_is_at_most_the_slots },
    { .name = "steal_into_a_nearly_full_ring", .run = steal_into_a_nearly_full_ring },
    /* The thief takes two, or it found nothing: never one of one. */
    { .name = "list_comes_at_once",
      .run = list_comes_at_once,
      .seen = MC_OUTCOMES(1, 2),
      .seen_only = true },
};

MC_MAIN(tests)
