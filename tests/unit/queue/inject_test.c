/* SPDX-License-Identifier: MIT */
#include "queue/inject.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "test.h"

enum {
    NODES = 8,
    CAPACITY = 4
};

static struct wf_inject queue;
static struct wf_qlist list;
static struct wf_qnode nodes[NODES];

static void reset(size_t capacity)
{
    wf_inject_init(&queue, capacity);
    list = (struct wf_qlist){ 0 };
}

static void push_range(int first, int end)
{
    for (int i = first; i < end; i++) {
        wf_inject_push(&queue, &nodes[i]);
    }
}

/* Checks that the list holds nodes[first] to nodes[end - 1], and empties it. */
static void check_list_is(int first, int end)
{
    CHECK_EQ(list.count, end - first);
    for (int i = first; i < end; i++) {
        CHECK(wf_qlist_pop(&list) == &nodes[i]);
    }
    CHECK(wf_qlist_pop(&list) == NULL);
}

static void new_queue_is_empty_and_open(void)
{
    reset(CAPACITY);
    CHECK_EQ(wf_inject_len(&queue), 0);
    CHECK_EQ(wf_inject_admitted(&queue), 0);
    CHECK(wf_inject_has_room(&queue));
    wf_inject_pop(&queue, NODES, &list);
    check_list_is(0, 0);
    CHECK_EQ(wf_inject_len(&queue), 0);
}

static void pop_returns_oldest_across_push_kinds(void)
{
    reset(CAPACITY);
    struct wf_qlist batch = { 0 };
    CHECK_EQ(wf_inject_admit(&queue, &nodes[0]), WF_ADMIT_OK);
    wf_inject_push(&queue, &nodes[1]);
    wf_qlist_push(&batch, &nodes[2]);
    wf_qlist_push(&batch, &nodes[3]);
    wf_inject_push_list(&queue, &batch);
    wf_inject_push(&queue, &nodes[4]);
    wf_inject_pop(&queue, NODES, &list);
    check_list_is(0, 5);
}

static void pop_removes_at_most_max_and_appends(void)
{
    reset(CAPACITY);
    push_range(0, 5);
    wf_inject_pop(&queue, 0, &list);
    CHECK_EQ(list.count, 0);
    CHECK_EQ(wf_inject_len(&queue), 5);
    wf_inject_pop(&queue, 1, &list);
    CHECK_EQ(list.count, 1);
    CHECK_EQ(wf_inject_len(&queue), 4);
    wf_inject_pop(&queue, 2, &list);
    CHECK_EQ(list.count, 3);
    CHECK_EQ(wf_inject_len(&queue), 2);
    wf_inject_pop(&queue, SIZE_MAX, &list);
    CHECK_EQ(wf_inject_len(&queue), 0);
    check_list_is(0, 5);
}

static void emptied_queue_can_be_used_again(void)
{
    reset(CAPACITY);
    push_range(0, 2);
    wf_inject_pop(&queue, 2, &list);
    check_list_is(0, 2);
    push_range(2, 4);
    wf_inject_pop(&queue, NODES, &list);
    check_list_is(2, 4);
}

static void push_list_moves_all_nodes(void)
{
    reset(CAPACITY);
    struct wf_qlist batch = { 0 };
    wf_inject_push_list(&queue, &batch);
    CHECK_EQ(wf_inject_len(&queue), 0);
    for (int i = 0; i < NODES; i++) {
        wf_qlist_push(&batch, &nodes[i]);
    }
    wf_inject_push_list(&queue, &batch);
    CHECK_EQ(batch.count, 0);
    CHECK(wf_qlist_pop(&batch) == NULL);
    CHECK_EQ(wf_inject_len(&queue), NODES);
    wf_inject_pop(&queue, NODES, &list);
    check_list_is(0, NODES);
}

static void admit_at_capacity_is_refused(void)
{
    reset(CAPACITY);
    for (int i = 0; i < CAPACITY; i++) {
        CHECK(wf_inject_has_room(&queue));
        CHECK_EQ(wf_inject_admit(&queue, &nodes[i]), WF_ADMIT_OK);
        CHECK_EQ(wf_inject_len(&queue), i + 1);
    }
    CHECK(!wf_inject_has_room(&queue));
    CHECK_EQ(wf_inject_admit(&queue, &nodes[CAPACITY]), WF_ADMIT_FULL);
    CHECK_EQ(wf_inject_len(&queue), CAPACITY);
    CHECK_EQ(wf_inject_admitted(&queue), CAPACITY);

    wf_inject_pop(&queue, 1, &list);
    CHECK(wf_inject_has_room(&queue));
    CHECK_EQ(wf_inject_admit(&queue, &nodes[CAPACITY]), WF_ADMIT_OK);
    wf_inject_pop(&queue, NODES, &list);
    check_list_is(0, CAPACITY + 1);
}

static void push_is_never_refused(void)
{
    reset(1);
    struct wf_qlist batch = { 0 };
    push_range(0, 3);
    wf_qlist_push(&batch, &nodes[3]);
    wf_inject_push_list(&queue, &batch);
    CHECK_EQ(wf_inject_len(&queue), 4);
    CHECK(!wf_inject_has_room(&queue));
    CHECK_EQ(wf_inject_admit(&queue, &nodes[4]), WF_ADMIT_FULL);
    (void)wf_inject_close(&queue);
    wf_inject_push(&queue, &nodes[4]);
    wf_inject_pop(&queue, NODES, &list);
    check_list_is(0, 5);
}

static void capacity_zero_refuses_every_admit(void)
{
    reset(0);
    CHECK(!wf_inject_has_room(&queue));
    CHECK_EQ(wf_inject_admit(&queue, &nodes[0]), WF_ADMIT_FULL);
    CHECK_EQ(wf_inject_len(&queue), 0);
}

static void close_refuses_admits_and_keeps_queued_nodes(void)
{
    reset(CAPACITY);
    CHECK_EQ(wf_inject_admit(&queue, &nodes[0]), WF_ADMIT_OK);
    CHECK_EQ(wf_inject_admit(&queue, &nodes[1]), WF_ADMIT_OK);
    CHECK_EQ(wf_inject_close(&queue), 2);
    CHECK_EQ(wf_inject_admit(&queue, &nodes[2]), WF_ADMIT_CLOSED);
    CHECK_EQ(wf_inject_admit_elsewhere(&queue), WF_ADMIT_CLOSED);
    CHECK_EQ(wf_inject_close(&queue), 2);
    CHECK_EQ(wf_inject_admitted(&queue), 2);
    wf_inject_pop(&queue, NODES, &list);
    check_list_is(0, 2);
}

static void admit_to_closed_and_full_returns_closed(void)
{
    reset(1);
    CHECK_EQ(wf_inject_admit(&queue, &nodes[0]), WF_ADMIT_OK);
    CHECK_EQ(wf_inject_admit(&queue, &nodes[1]), WF_ADMIT_FULL);
    (void)wf_inject_close(&queue);
    CHECK_EQ(wf_inject_admit(&queue, &nodes[1]), WF_ADMIT_CLOSED);
}

static void admitted_counts_admits_only(void)
{
    reset(2);
    push_range(0, 1);
    CHECK_EQ(wf_inject_admitted(&queue), 0);
    CHECK_EQ(wf_inject_admit(&queue, &nodes[1]), WF_ADMIT_OK);
    CHECK_EQ(wf_inject_admitted(&queue), 1);
    CHECK_EQ(wf_inject_admit(&queue, &nodes[2]), WF_ADMIT_FULL);
    CHECK_EQ(wf_inject_admitted(&queue), 1);
    wf_inject_pop(&queue, NODES, &list);
    CHECK_EQ(wf_inject_admitted(&queue), 1);
    CHECK_EQ(wf_inject_close(&queue), 1);
}

static void admit_elsewhere_counts_without_node(void)
{
    reset(1);
    CHECK_EQ(wf_inject_admit(&queue, &nodes[0]), WF_ADMIT_OK);
    CHECK_EQ(wf_inject_admit_elsewhere(&queue), WF_ADMIT_OK);
    CHECK_EQ(wf_inject_admit_elsewhere(&queue), WF_ADMIT_OK);
    CHECK_EQ(wf_inject_len(&queue), 1);
    CHECK_EQ(wf_inject_close(&queue), 3);
}

/* A second wf_lock() by this thread would abort. */
static void length_is_read_without_lock(void)
{
    reset(CAPACITY);
    push_range(0, 2);
    wf_lock(&queue.lock);
    CHECK_EQ(wf_inject_len(&queue), 2);
    CHECK(wf_inject_has_room(&queue));
    wf_unlock(&queue.lock);
}

/* Which call to make with the lock held. A call that locks aborts. */
static int call;

static void make_call_with_lock_held(void)
{
    reset(CAPACITY);
    wf_qlist_push(&list, &nodes[1]);
    wf_lock(&queue.lock);
    switch (call) {
    case 0:
        (void)wf_inject_admit(&queue, &nodes[0]);
        break;
    case 1:
        (void)wf_inject_admit_elsewhere(&queue);
        break;
    case 2:
        wf_inject_push(&queue, &nodes[0]);
        break;
    case 3:
        wf_inject_push_list(&queue, &list);
        break;
    case 4:
        wf_inject_pop(&queue, 1, &list);
        break;
    case 5:
        (void)wf_inject_close(&queue);
        break;
    default:
        (void)wf_inject_admitted(&queue);
        break;
    }
}

static void all_other_calls_take_lock(void)
{
    for (call = 0; call <= 6; call++) {
        CHECK_ABORTS(make_call_with_lock_held, "'inject' is taken while 'inject' is held");
    }
}

/* Threads that send parcels through the queue. */
enum {
    SENDERS = 3,
    POPPERS = 2
};

struct parcel {
    struct wf_qnode node; /* first: a node is its parcel */
    uint32_t sender;
    uint64_t number;
    _Atomic(uint32_t) popped; /* incremented by poppers */
};

struct sender {
    pthread_t thread;
    uint32_t index;
    uint64_t admitted; /* number of calls that returned WF_ADMIT_OK */
    struct parcel *parcels;
};

static struct sender senders[SENDERS];
static uint64_t parcels_each;
static pthread_barrier_t start;        /* for the senders */
static _Atomic(uint64_t) popped_count; /* incremented by poppers */

static void start_senders(void *(*run)(void *), uint64_t parcels)
{
    parcels_each = parcels;
    CHECK_EQ(pthread_barrier_init(&start, NULL, SENDERS), 0);
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){ .index = i };
        senders[i].parcels = calloc(parcels, sizeof *senders[i].parcels);
        CHECK(senders[i].parcels != NULL);
        for (uint64_t n = 0; n < parcels; n++) {
            senders[i].parcels[n].sender = i;
            senders[i].parcels[n].number = n;
        }
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        CHECK_EQ(pthread_create(&senders[i].thread, NULL, run, &senders[i]), 0);
    }
}

/* Returns the number of admitted parcels. */
static uint64_t join_senders(void)
{
    uint64_t admitted = 0;
    for (int i = 0; i < SENDERS; i++) {
        CHECK_EQ(pthread_join(senders[i].thread, NULL), 0);
        admitted += senders[i].admitted;
    }
    return admitted;
}

static void free_senders(void)
{
    for (int i = 0; i < SENDERS; i++) {
        free(senders[i].parcels);
    }
    CHECK_EQ(pthread_barrier_destroy(&start), 0);
}

static void *admit_all(void *arg)
{
    struct sender *self = arg;
    (void)pthread_barrier_wait(&start);
    for (uint64_t i = 0; i < parcels_each;) {
        enum wf_admit verdict = wf_inject_admit(&queue, &self->parcels[i].node);
        if (verdict == WF_ADMIT_FULL) {
            (void)sched_yield();
            continue;
        }
        CHECK_EQ(verdict, WF_ADMIT_OK);
        self->admitted++;
        i++;
    }
    return NULL;
}

/*
 * Goal:   the parcels of three senders arrive once and in order per sender, and admission never
 *         exceeds the capacity.
 * Method: this thread pops a few parcels at a time, checks that each is the next one of its
 *         sender, and keeps checking the length.
 */
static void concurrent_admits_arrive_once_and_in_order(void)
{
    uint64_t next[SENDERS] = { 0 };
    reset(CAPACITY);
    start_senders(admit_all, test_scale(30000));
    for (uint64_t left = SENDERS * parcels_each; left > 0;) {
        CHECK_LE(wf_inject_len(&queue), CAPACITY);
        wf_inject_pop(&queue, 1 + left % 3, &list);
        if (list.count == 0) {
            (void)sched_yield();
        }
        for (struct wf_qnode *node; (node = wf_qlist_pop(&list)) != NULL; left--) {
            struct parcel *parcel = (struct parcel *)node;
            CHECK_EQ(parcel->number, next[parcel->sender]);
            next[parcel->sender]++;
        }
    }
    CHECK_EQ(join_senders(), SENDERS * parcels_each);
    CHECK_EQ(wf_inject_admitted(&queue), SENDERS * parcels_each);
    CHECK_EQ(wf_inject_len(&queue), 0);
    free_senders();
}

/* Two senders push single nodes, the third pushes lists of three. */
static void *push_all(void *arg)
{
    struct sender *self = arg;
    struct wf_qlist batch = { 0 };
    (void)pthread_barrier_wait(&start);
    for (uint64_t i = 0; i < parcels_each; i++) {
        if (self->index < 2) {
            wf_inject_push(&queue, &self->parcels[i].node);
            continue;
        }
        wf_qlist_push(&batch, &self->parcels[i].node);
        if (batch.count == 3 || i + 1 == parcels_each) {
            wf_inject_push_list(&queue, &batch);
        }
    }
    return NULL;
}

static void *pop_all(void *arg)
{
    uint64_t total = SENDERS * parcels_each;
    while (wf_load_relaxed(&popped_count) < total) {
        struct wf_qlist got = { 0 };
        wf_inject_pop(&queue, 1 + wf_inject_len(&queue) / 2, &got);
        if (got.count == 0) {
            (void)sched_yield();
        }
        for (struct wf_qnode *node; (node = wf_qlist_pop(&got)) != NULL;) {
            (void)wf_fetch_add_relaxed(&((struct parcel *)node)->popped, 1);
            (void)wf_fetch_add_relaxed(&popped_count, 1);
        }
    }
    return arg;
}

/*
 * Goal:   with several pushers and poppers each parcel is popped once.
 * Method: three threads push single nodes or lists, and two pop half of the queue at a time.
 *         Each parcel counts how often it was popped.
 */
static void concurrent_pops_get_each_node_once(void)
{
    pthread_t poppers[POPPERS];
    reset(CAPACITY);
    wf_store_relaxed(&popped_count, 0u);
    start_senders(push_all, test_scale(150000));
    for (int i = 0; i < POPPERS; i++) {
        CHECK_EQ(pthread_create(&poppers[i], NULL, pop_all, NULL), 0);
    }
    CHECK_EQ(join_senders(), 0);
    for (int i = 0; i < POPPERS; i++) {
        CHECK_EQ(pthread_join(poppers[i], NULL), 0);
    }
    for (int i = 0; i < SENDERS; i++) {
        for (uint64_t n = 0; n < parcels_each; n++) {
            CHECK_EQ(wf_load_relaxed(&senders[i].parcels[n].popped), 1);
        }
    }
    CHECK_EQ(wf_load_relaxed(&popped_count), SENDERS * parcels_each);
    CHECK_EQ(wf_inject_len(&queue), 0);
    CHECK_EQ(wf_inject_admitted(&queue), 0);
    free_senders();
}

/* The first sender uses wf_inject_admit_elsewhere(), the others the list. */
static void *admit_until_closed(void *arg)
{
    struct sender *self = arg;
    (void)pthread_barrier_wait(&start);
    for (uint64_t i = 0; i < parcels_each; i++) {
        enum wf_admit verdict = self->index == 0 ? wf_inject_admit_elsewhere(&queue)
                                                 : wf_inject_admit(&queue, &self->parcels[i].node);
        if (verdict == WF_ADMIT_CLOSED) {
            break;
        }
        CHECK_EQ(verdict, WF_ADMIT_OK);
        self->admitted++;
    }
    CHECK_LE(self->admitted, parcels_each);
    return NULL;
}

/*
 * Goal:   close returns the exact number of admits, and none is admitted later.
 * Method: senders admit parcels until they are refused. This thread closes the queue meanwhile,
 *         early in some rounds and late in others.
 */
static void close_returns_exact_number_of_admits(void)
{
    for (uint64_t round = 0; round < test_scale(400); round++) {
        uint64_t enough = round % 400;
        reset(SIZE_MAX);
        start_senders(admit_until_closed, 400);
        while (wf_inject_admitted(&queue) < enough) {
            (void)sched_yield();
        }
        uint64_t closed_at = wf_inject_close(&queue);
        CHECK_GE(closed_at, enough);
        CHECK_EQ(join_senders(), closed_at);
        CHECK_EQ(wf_inject_admitted(&queue), closed_at);
        CHECK_EQ(wf_inject_len(&queue), senders[1].admitted + senders[2].admitted);
        free_senders();
    }
}

TEST_MAIN({ TEST(new_queue_is_empty_and_open), TEST(pop_returns_oldest_across_push_kinds),
            TEST(pop_removes_at_most_max_and_appends), TEST(emptied_queue_can_be_used_again),
            TEST(push_list_moves_all_nodes), TEST(admit_at_capacity_is_refused),
            TEST(push_is_never_refused), TEST(capacity_zero_refuses_every_admit),
            TEST(close_refuses_admits_and_keeps_queued_nodes),
            TEST(admit_to_closed_and_full_returns_closed), TEST(admitted_counts_admits_only),
            TEST(admit_elsewhere_counts_without_node), TEST(length_is_read_without_lock),
            TEST_DEBUG(all_other_calls_take_lock), TEST(concurrent_admits_arrive_once_and_in_order),
            TEST(concurrent_pops_get_each_node_once), TEST(close_returns_exact_number_of_admits) })
