/* SPDX-License-Identifier: MIT */
/*
 * deque_model.c - src/queue/deque.c with two slots at first: an owner and one or two
 * thieves, in every order, each item is taken exactly once and seen whole.
 *
 * What catches what: a missing fence shows where top moves while the owner pops without
 * a CAS, so there are two items and two steals; an old slot or buffer shows only if top
 * has gone on meanwhile, so the owner pops the last item, or there is a second thief.
 */
#include "queue/deque.h"

#include "base/alloc.h"
#include "mc.h"

enum {
    ITEMS_MAX = 8,
};

static struct wf_deque deque;

static struct item {
    int payload; /* written by the owner before the push, read by the taker */
    int taken;
} items[ITEMS_MAX];

static void begin(void)
{
    mc_assert(wf_deque_init(&deque, &wf_alloc_default) == 0);
    mc_name(&deque.top, sizeof deque.top, "top");
    mc_name(&deque.bottom, sizeof deque.bottom, "bottom");
    mc_name(&deque.buffer, sizeof deque.buffer, "buffer");
}

static void push(unsigned i)
{
    items[i].payload = (int)i + 100;
    mc_assert(wf_deque_push(&deque, &items[i]) == 0);
}

/* A data race here is an item that two have taken, or one that is not whole. */
static void take(struct item *item)
{
    mc_assert(item >= items);
    mc_assert(item < items + ITEMS_MAX);
    mc_assert(item->payload == (int)(item - items) + 100);
    item->taken++;
}

static bool pop(void)
{
    struct item *item = wf_deque_pop(&deque);
    if (item != NULL) {
        take(item);
    }
    return item != NULL;
}

/* The newest item is this one, or thieves have taken all. */
static bool pop_newest(unsigned i)
{
    struct item *item = wf_deque_pop(&deque);
    if (item != NULL) {
        mc_assert(item == &items[i]);
        take(item);
    }
    return item != NULL;
}

static enum wf_steal steal(void)
{
    void *item = NULL;
    enum wf_steal got = wf_deque_steal(&deque, &item);
    mc_assert((got == WF_STEAL_SUCCESS) == (item != NULL));
    if (item != NULL) {
        take(item);
    }
    return got;
}

static void thief(void *arg)
{
    (void)arg;
    (void)steal();
}

static void eager_thief(void *arg)
{
    (void)arg;
    (void)steal();
    (void)steal();
}

/* Everybody is done: what is left is taken, nothing was lost or doubled, and the deque is
 * as good as new. */
static void end(unsigned count)
{
    while (pop()) {
    }
    mc_assert(steal() == WF_STEAL_EMPTY);
    for (unsigned i = 0; i < count; i++) {
        mc_assert(items[i].taken == 1);
    }
    push(count);
    mc_assert(pop_newest(count));
    wf_deque_fini(&deque);
}

/*
 * Goal:   owner and thief do not take the same item, and see it whole.
 * Method: the thief comes twice while the owner pushes and pops, so that the deque is
 *         empty and not; the owner does not read top before its pops.
 */
static void owner_and_one_thief(void)
{
    begin();
    mc_go(eager_thief, NULL);
    push(0);
    push(1);
    (void)pop_newest(1);
    (void)pop_newest(0);
    push(2);
    (void)pop_newest(2);
    mc_join();
    end(3);
}

/*
 * Goal:   an item that the owner pops without a CAS is nobody else's, also for a thief that
 *         knows top from another thief.
 * Method: two items, two thieves; the owner pops both.
 */
static void owner_and_two_thieves(void)
{
    begin();
    mc_go(thief, NULL);
    mc_go(thief, NULL);
    push(0);
    push(1);
    bool got_newer = pop_newest(1);
    bool got_older = pop_newest(0);
    mc_note(2 * got_newer + got_older);
    mc_join();
    end(2);
}

/* The same for longer: one thief comes twice, and the owner pushes in between. */
static void owner_and_an_eager_thief_and_one_more(void)
{
    begin();
    push(0);
    mc_go(eager_thief, NULL);
    mc_go(thief, NULL);
    push(1);
    (void)pop_newest(1);
    push(2);
    (void)pop_newest(2);
    mc_join();
    end(3);
}

static void noting_thief(void *arg)
{
    int *outcome = arg;
    *outcome = (int)steal();
}

/*
 * Goal:   the last item goes to one, and the other is told so. What is pushed then is not
 *         lost.
 * Method: one item, pop against one steal, all outcomes of both.
 */
static void last_item_against_one_thief(void)
{
    begin();
    push(0);
    int stolen = -1;
    mc_go(noting_thief, &stolen);
    bool popped = pop_newest(0);
    push(1);
    mc_join();
    mc_note(10 * popped + stolen);
    mc_assert(popped || stolen == WF_STEAL_SUCCESS);
    end(2);
}

/* The same against two: a thief that fails has an owner or a thief before it. */
static void last_item_against_two_thieves(void)
{
    begin();
    push(0);
    int stolen[2] = { -1, -1 };
    mc_go(noting_thief, &stolen[0]);
    mc_go(noting_thief, &stolen[1]);
    bool popped = pop_newest(0);
    mc_join();
    mc_assert(popped + (stolen[0] == WF_STEAL_SUCCESS) + (stolen[1] == WF_STEAL_SUCCESS) == 1);
    mc_note(100 * popped + 10 * stolen[0] + stolen[1]);
    end(1);
}

/*
 * Goal:   a thief that sees a bottom from a pop sees what is below it whole.
 * Method: the owner pushes two and pops one; the thief may know of that pop only.
 */
static void bottom_of_a_pop_publishes(void)
{
    begin();
    mc_go(thief, NULL);
    push(0);
    push(1);
    (void)pop_newest(1);
    mc_join();
    end(2);
}

/*
 * Goal:   a slot that is filled again is not taken as the item that was in it.
 * Method: the owner pops the last item and goes once round the two slots, while a thief
 *         that has seen the first item steals.
 */
static void slots_are_used_again(void)
{
    begin();
    push(0);
    mc_go(eager_thief, NULL);
    (void)pop_newest(0);
    push(1);
    push(2);
    mc_join();
    end(3);
}

/* The same where a second thief makes room. The owner has room, or it grows. */
static void slots_that_a_thief_has_emptied_are_used_again(void)
{
    begin();
    push(0);
    push(1);
    mc_go(eager_thief, NULL);
    mc_go(thief, NULL);
    push(2);
    push(3);
    mc_join();
    mc_note((int)wf_load_relaxed(&deque.top));
    end(4);
}

/*
 * Goal:   a thief with an old buffer takes what it should, or nothing.
 * Method: the deque is full, and grows while three steals are under way. Then the owner
 *         pops from the new buffer.
 */
static void growth_against_late_thieves(void)
{
    begin();
    push(0);
    push(1);
    mc_go(eager_thief, NULL);
    mc_go(thief, NULL);
    push(2);
    (void)pop_newest(2);
    mc_join();
    end(3);
}

/*
 * Goal:   an item that was never in the old buffer is not looked for there.
 * Method: the deque grows, is emptied by its owner, and gets a new item at an index that
 *         has another one in the old buffer.
 */
static void item_after_growth_is_in_the_new_buffer(void)
{
    begin();
    push(0);
    push(1);
    mc_go(thief, NULL);
    mc_go(thief, NULL);
    push(2);
    (void)pop_newest(2);
    (void)pop();
    (void)pop();
    push(3);
    mc_join();
    end(4);
}

/*
 * Goal:   growth finds the items that lie across the end of the buffer, and what is in the
 *         new one is whole.
 * Method: top is at 1 when the deque is full; the thieves come before that.
 */
static void growth_of_a_deque_that_wraps(void)
{
    begin();
    push(0);
    mc_assert(pop_newest(0));
    push(1);
    mc_go(thief, NULL);
    mc_go(thief, NULL);
    push(2);
    push(3);
    mc_join();
    end(4);
}

/*
 * Goal:   the same through two growths: a thief may have any of three buffers.
 * Method: one thief that comes twice, and one more; five items.
 */
static void two_growths_against_late_thieves(void)
{
    begin();
    push(0);
    mc_go(eager_thief, NULL);
    mc_go(thief, NULL);
    for (unsigned i = 1; i < 5; i++) {
        push(i);
    }
    mc_join();
    end(5);
}

static void second_owner(void *arg)
{
    _Atomic(uint32_t) *left = arg;
    mc_await_exchange(left, 1, 2);
    (void)pop_newest(1);
    push(2);
    (void)pop_newest(2);
}

/*
 * Goal:   the owner may be another thread later on.
 * Method: the first one pushes and leaves, in the way of the scheduler; the second one pops
 *         and pushes. The thief may know of either only.
 */
static void owner_goes_on_elsewhere(void)
{
    begin();
    static _Atomic(uint32_t) left;
    wf_store_relaxed(&left, 0u);
    mc_go(eager_thief, NULL);
    mc_go(second_owner, &left);
    push(0);
    push(1);
    wf_store_release(&left, 1u);
    mc_join();
    end(3);
}

static const struct mc_test tests[] = {
    { .name = "owner_and_one_thief", .run = owner_and_one_thief, .leaks = true },
    { .name = "owner_and_two_thieves",
      .run = owner_and_two_thieves,
      .leaks = true,
      .seen = MC_OUTCOMES(0, 2, 3),
      .seen_only = true },
    { .name = "owner_and_an_eager_thief_and_one_more",
      .run = owner_and_an_eager_thief_and_one_more,
      .leaks = true },
    /* Ten if the owner has the item; how the steal has ended, EMPTY, RETRY or SUCCESS. */
    { .name = "last_item_against_one_thief",
      .run = last_item_against_one_thief,
      .leaks = true,
      .seen = MC_OUTCOMES(2, 10, 11, 12),
      .seen_only = true },
    { .name = "last_item_against_two_thieves",
      .run = last_item_against_two_thieves,
      .leaks = true,
      .seen = MC_OUTCOMES(2, 12, 20, 21, 100, 101, 110, 111),
      .seen_only = true },
    { .name = "bottom_of_a_pop_publishes", .run = bottom_of_a_pop_publishes, .leaks = true },
    { .name = "slots_are_used_again", .run = slots_are_used_again, .leaks = true },
    { .name = "slots_that_a_thief_has_emptied_are_used_again",
      .run = slots_that_a_thief_has_emptied_are_used_again,
      .leaks = true,
      .seen = MC_OUTCOMES(2, 3),
      .seen_only = true },
    { .name = "growth_against_late_thieves", .run = growth_against_late_thieves, .leaks = true },
    { .name = "item_after_growth_is_in_the_new_buffer",
      .run = item_after_growth_is_in_the_new_buffer,
      .leaks = true },
    { .name = "growth_of_a_deque_that_wraps", .run = growth_of_a_deque_that_wraps, .leaks = true },
    { .name = "two_growths_against_late_thieves",
      .run = two_growths_against_late_thieves,
      .leaks = true },
    { .name = "owner_goes_on_elsewhere", .run = owner_goes_on_elsewhere, .leaks = true },
};

MC_MAIN(tests)
