/* SPDX-License-Identifier: MIT */
/*
 * inject_model.c - src/queue/inject.c, the shared queue. Its lock is taken in one
 * step; lock_model.c is about that.
 *
 * What catches what: the lock orders everything but the length, which others read
 * without it; so the length is looked at from outside, and must be right behind a
 * fence, and at the end.
 */
#include "queue/inject.h"

#include "mc.h"

enum {
    ITEMS = 6,
    CAPACITY = 2,
};

struct item {
    struct wf_qnode node;
    int payload; /* written by the pusher, read by the taker */
    int taken;
};

static struct wf_inject queue;
static struct item items[ITEMS];

static void begin(void)
{
    wf_inject_init(&queue, CAPACITY);
    mc_name(&queue, sizeof queue, "queue");
}

static struct item *prepared(unsigned i)
{
    items[i].payload = (int)i + 100;
    return &items[i];
}

static size_t take(size_t max)
{
    struct wf_qlist list = { 0 };
    wf_inject_pop(&queue, max, &list);
    mc_assert(list.count <= max);
    size_t count = 0;
    for (struct wf_qnode *node = wf_qlist_pop(&list); node != NULL; node = wf_qlist_pop(&list)) {
        struct item *item = (struct item *)node;
        mc_assert(item->payload == (int)(item - items) + 100);
        item->taken++;
        count++;
    }
    return count;
}

/* Everybody is done: the length is right, and all of items was taken once. */
static void end(unsigned count, size_t left)
{
    mc_assert(wf_inject_len(&queue) == left);
    mc_assert(take(ITEMS) == left);
    mc_assert(wf_inject_len(&queue) == 0);
    for (unsigned i = 0; i < count; i++) {
        mc_assert(items[i].taken == 1);
    }
}

static void push_one(void *arg)
{
    (void)arg;
    wf_inject_push(&queue, &prepared(0)->node);
}

static void push_list(void *arg)
{
    (void)arg;
    struct wf_qlist list = { 0 };
    wf_qlist_push(&list, &prepared(1)->node);
    wf_qlist_push(&list, &prepared(2)->node);
    wf_inject_push_list(&queue, &list);
    mc_assert(list.count == 0);
}

/*
 * Goal:   every node is taken once and whole, and the length is right.
 * Method: one pushes a node, one a list, while a third takes two at a time.
 */
static void pushers_and_a_taker(void)
{
    begin();
    mc_go(push_one, NULL);
    mc_go(push_list, NULL);
    size_t taken = take(2);
    taken += take(2);
    mc_join();
    end(3, 3 - taken);
}

static void take_one(void *arg)
{
    (void)arg;
    (void)take(1);
}

/*
 * Goal:   two takers do not get the same node.
 * Method: both come while one node is pushed beside one that is there.
 */
static void two_takers(void)
{
    begin();
    wf_inject_push(&queue, &prepared(1)->node);
    mc_go(take_one, NULL);
    mc_go(take_one, NULL);
    wf_inject_push(&queue, &prepared(0)->node);
    mc_join();
    end(2, wf_inject_len(&queue));
}

static enum wf_admit verdicts[3];

/* The newcomer whose item it is. */
static void admit(void *arg)
{
    unsigned i = (unsigned)((struct item *)arg - items);
    verdicts[i] = wf_inject_admit(&queue, &prepared(i)->node);
}

/*
 * Goal:   admit never goes beyond the capacity, and refuses nobody below it.
 * Method: three come, there is room for two.
 */
static void admit_keeps_the_capacity(void)
{
    begin();
    mc_go(admit, &items[0]);
    mc_go(admit, &items[1]);
    admit(&items[2]);
    mc_join();
    unsigned full = 0;
    for (unsigned i = 0; i < 3; i++) {
        full += verdicts[i] == WF_ADMIT_FULL;
    }
    mc_assert(full == 1);
    mc_assert(wf_inject_admitted(&queue) == CAPACITY);
    mc_assert(!wf_inject_has_room(&queue));
    end(0, CAPACITY);
}

static void admit_elsewhere(void *arg)
{
    (void)arg;
    verdicts[1] = wf_inject_admit_elsewhere(&queue);
}

/*
 * Goal:   close returns the number of all that ever were admitted, so whoever
 *         waits for them waits for the right number.
 * Method: two kinds of newcomers come while a third thread closes.
 */
static void close_counts_all_who_came_in(void)
{
    begin();
    mc_go(admit, &items[0]);
    mc_go(admit_elsewhere, NULL);
    uint64_t admitted = wf_inject_close(&queue);
    mc_join();
    uint64_t in = (verdicts[0] == WF_ADMIT_OK) + (verdicts[1] == WF_ADMIT_OK);
    mc_assert(admitted == in);
    mc_assert(wf_inject_admitted(&queue) == in);
    mc_assert(wf_inject_len(&queue) == (verdicts[0] == WF_ADMIT_OK));
    mc_note((int)admitted);
}

static _Atomic(int) sleeps;

static void push_and_look(void *arg)
{
    bool *seen = arg;
    wf_inject_push(&queue, &prepared(0)->node);
    wf_fence_full();
    *seen = wf_load_relaxed(&sleeps) != 0;
}

/*
 * Goal:   of a pusher and one who goes to sleep, at least one sees the other: the
 *         length is published before the fence.
 * Method: both, each with a fence of its own, as in idle.c.
 */
static void length_is_seen_behind_a_fence(void)
{
    static bool seen;
    begin();
    mc_go(push_and_look, &seen);
    wf_store_relaxed(&sleeps, 1);
    wf_fence_full();
    bool has_work = wf_inject_len(&queue) > 0;
    mc_join();
    mc_assert(has_work || seen);
    end(1, 1);
}

static const struct mc_test tests[] = {
    { .name = "pushers_and_a_taker", .run = pushers_and_a_taker },
    { .name = "two_takers", .run = two_takers },
    { .name = "admit_keeps_the_capacity", .run = admit_keeps_the_capacity },
    { .name = "close_counts_all_who_came_in",
      .run = close_counts_all_who_came_in,
      .seen = MC_OUTCOMES(0, 1, 2),
      .seen_only = true },
    { .name = "length_is_seen_behind_a_fence", .run = length_is_seen_behind_a_fence },
};

MC_MAIN(tests)
