/* SPDX-License-Identifier: MIT */
#include "queue/mpsc.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "test.h"

enum {
    NODES = 5,
    PUSHERS = 3
};

static struct wf_mpsc queue;
static struct wf_qlist list;
static struct wf_qnode nodes[NODES];

static void reset(void)
{
    wf_store_relaxed(&queue.head, (struct wf_qnode *)NULL);
    list = (struct wf_qlist){ 0 };
}

static void check_list_is(int first, int end)
{
    CHECK_EQ(list.count, end - first);
    for (int i = first; i < end; i++) {
        CHECK(wf_qlist_pop(&list) == &nodes[i]);
    }
    CHECK(wf_qlist_pop(&list) == NULL);
}

static void zeroed_queue_is_empty(void)
{
    reset();
    CHECK(wf_mpsc_is_empty(&queue));
    wf_mpsc_take_all(&queue, &list);
    check_list_is(0, 0);
}

static void push_returns_whether_queue_was_empty(void)
{
    reset();
    CHECK(wf_mpsc_push(&queue, &nodes[0]));
    CHECK(!wf_mpsc_push(&queue, &nodes[1]));
    CHECK(!wf_mpsc_push(&queue, &nodes[2]));
    wf_mpsc_take_all(&queue, &list);
    CHECK(wf_mpsc_push(&queue, &nodes[3]));
    CHECK(!wf_mpsc_push(&queue, &nodes[4]));
}

static void take_all_returns_all_oldest_first(void)
{
    reset();
    for (int i = 0; i < NODES; i++) {
        (void)wf_mpsc_push(&queue, &nodes[i]);
        CHECK(!wf_mpsc_is_empty(&queue));
    }
    wf_mpsc_take_all(&queue, &list);
    CHECK(wf_mpsc_is_empty(&queue));
    check_list_is(0, NODES);
}

static void take_all_of_one_node_clears_its_link(void)
{
    reset();
    nodes[0].next = &nodes[1];
    (void)wf_mpsc_push(&queue, &nodes[0]);
    wf_mpsc_take_all(&queue, &list);
    check_list_is(0, 1);
}

static void take_all_appends_to_list(void)
{
    reset();
    wf_qlist_push(&list, &nodes[0]);
    (void)wf_mpsc_push(&queue, &nodes[1]);
    (void)wf_mpsc_push(&queue, &nodes[2]);
    wf_mpsc_take_all(&queue, &list);
    wf_mpsc_take_all(&queue, &list);
    (void)wf_mpsc_push(&queue, &nodes[3]);
    wf_mpsc_take_all(&queue, &list);
    check_list_is(0, 4);
}

struct letter {
    struct wf_qnode node; /* first: a node is its letter */
    uint64_t number;      /* plain; [M1] makes it visible */
    unsigned pusher;
};

struct pusher {
    pthread_t thread;
    unsigned index;
    struct letter *letters;
    uint64_t was_empty; /* number of pushes that found the queue empty */
};

static struct pusher pushers[PUSHERS];
static uint64_t letters_each;
static pthread_barrier_t start;

static void *push_all(void *arg)
{
    struct pusher *self = arg;
    (void)pthread_barrier_wait(&start);
    for (uint64_t i = 0; i < letters_each; i++) {
        self->letters[i].number = i;
        self->letters[i].pusher = self->index;
        self->was_empty += wf_mpsc_push(&queue, &self->letters[i].node);
    }
    return NULL;
}

/* Takes batches until every letter has arrived, in order per pusher. Returns the number of
 * non-empty batches. */
static uint64_t take_until_complete(void)
{
    uint64_t next[PUSHERS] = { 0 };
    uint64_t batches = 0;
    for (uint64_t left = PUSHERS * letters_each; left > 0;) {
        wf_mpsc_take_all(&queue, &list);
        batches += list.count > 0;
        if (list.count == 0) {
            (void)sched_yield();
        }
        for (struct wf_qnode *node; (node = wf_qlist_pop(&list)) != NULL; left--) {
            struct letter *letter = (struct letter *)node;
            CHECK_LT(letter->pusher, PUSHERS);
            CHECK_EQ(letter->number, next[letter->pusher]);
            next[letter->pusher]++;
        }
    }
    for (int i = 0; i < PUSHERS; i++) {
        CHECK_EQ(next[i], letters_each);
    }
    return batches;
}

/*
 * Goal:   with three pushers every node arrives once and in order per pusher, and exactly one
 *         push per batch finds the queue empty.
 * Method: letters carry their pusher and number in plain fields. Each letter that arrives must
 *         be the next one of its pusher.
 */
static void concurrent_pushes_arrive_once_and_in_order(void)
{
    reset();
    letters_each = test_scale(300000);
    CHECK_EQ(pthread_barrier_init(&start, NULL, PUSHERS + 1), 0);
    for (unsigned i = 0; i < PUSHERS; i++) {
        struct letter *letters = calloc(letters_each, sizeof *letters);
        CHECK(letters != NULL);
        pushers[i] = (struct pusher){ .index = i, .letters = letters };
        CHECK_EQ(pthread_create(&pushers[i].thread, NULL, push_all, &pushers[i]), 0);
    }
    (void)pthread_barrier_wait(&start);
    uint64_t batches = take_until_complete();

    uint64_t was_empty = 0;
    for (unsigned i = 0; i < PUSHERS; i++) {
        CHECK_EQ(pthread_join(pushers[i].thread, NULL), 0);
        was_empty += pushers[i].was_empty;
        free(pushers[i].letters);
    }
    CHECK_EQ(was_empty, batches);
    CHECK(wf_mpsc_is_empty(&queue));
    CHECK_EQ(pthread_barrier_destroy(&start), 0);
}

TEST_MAIN({ TEST(zeroed_queue_is_empty), TEST(push_returns_whether_queue_was_empty),
            TEST(take_all_returns_all_oldest_first), TEST(take_all_of_one_node_clears_its_link),
            TEST(take_all_appends_to_list), TEST(concurrent_pushes_arrive_once_and_in_order) })
