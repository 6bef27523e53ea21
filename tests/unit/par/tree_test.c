/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "base/rng.h"
#include "inputs.h"
#include "memory.h"
#include "timing.h"

/* --- Trees ------------------------------------------------------------------------------- */

struct node {
    struct node *parent;
    struct node *first;
    struct node *next;
    _Atomic(unsigned) visits;
};

enum shape {
    LIST,
    WIDE,
    BINARY,
    RANDOM_TREE,
    COMB,  /* a list whose nodes each have another child, which comes first or last */
    BROOM, /* a list whose last node has many children */
    SHAPES,
};

/* Returns the number of node i's parent, which is less than i. */
static size_t parent_of(enum shape shape, size_t i, size_t count, struct wf_rng *rng)
{
    switch (shape) {
    case LIST:
        return i - 1;
    case WIDE:
        return 0;
    case BINARY:
        return (i - 1) / 2;
    case COMB:
        return i < 3 ? 0 : (i - 1) / 2 * 2 - (i / 2 % 2);
    case BROOM:
        return i < count / 2 ? i - 1 : count / 2 - 1;
    default:
        return wf_rng_below(rng, (uint32_t)i);
    }
}

/* Node 0 is the root. */
static struct node *make_tree(enum shape shape, size_t count)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), shape);
    struct node *nodes = calloc(count, sizeof *nodes);
    CHECK(nodes != NULL);
    for (size_t i = 1; i < count; i++) {
        struct node *parent = &nodes[parent_of(shape, i, count, &rng)];
        nodes[i].parent = parent;
        nodes[i].next = parent->first;
        parent->first = &nodes[i];
    }
    return nodes;
}

static int visit(void *at, weft_walk_state *walk, void *arg)
{
    struct node *node = at;
    (void)arg;
    CHECK(node->parent == NULL || atomic_load(&node->parent->visits) == 1);
    CHECK_EQ(atomic_fetch_add(&node->visits, 1), 0);
    for (struct node *child = node->first; child != NULL; child = child->next) {
        weft_walk_child(walk, child);
    }
    return 0;
}

static void check_visited_once(struct node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(nodes[i].visits, 1);
        atomic_store(&nodes[i].visits, 0);
    }
}

/* Tree sizes, up to several chunks of nodes. */
static const size_t counts[] = { 1, 2, 3, 4, 10, 126, 127, 128, 252, 253, 254, 1000, 10000 };

static int walk_all(void *arg)
{
    (void)arg;
    for (unsigned shape = 0; shape < SHAPES; shape++) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            struct node *nodes = make_tree(shape, counts[i]);
            CHECK_EQ(weft_walk(nodes, visit, NULL, NULL), 0);
            check_visited_once(nodes, counts[i]);
            for (size_t piece = 1; piece <= 1000; piece *= 10) {
                CHECK_EQ(weft_walk(nodes, visit, NULL, &(weft_par_options){ .piece = piece }), 0);
                check_visited_once(nodes, counts[i]);
            }
            free(nodes);
        }
    }
    CHECK_EQ(weft_walk(NULL, visit, NULL, NULL), 0);
    return 0;
}

static void each_node_is_visited_once_after_its_parent(void)
{
    test_run_everywhere(walk_all, NULL);
}

static int walk_large(void *arg)
{
    struct node *nodes = arg;
    size_t count = test_scale(1000000);
    CHECK_EQ(weft_walk(nodes, visit, NULL, NULL), 0);
    check_visited_once(nodes, count);
    return 0;
}

static void million_nodes_of_each_shape_are_visited_once(void)
{
    for (unsigned shape = 0; shape < SHAPES; shape++) {
        struct node *nodes = make_tree(shape, test_scale(1000000));
        weft_runtime *rt = test_start(1 + shape % 4);
        CHECK_EQ(walk_large(nodes), 0);
        CHECK_EQ(test_run(rt, walk_large, nodes), 0);
        weft_runtime_destroy(rt);
        free(nodes);
    }
}

static int visit_binary(void *at, weft_walk_state *walk, void *arg)
{
    struct node *node = at;
    (void)arg;
    atomic_fetch_add(&node->visits, 1);
    weft_walk_child(walk, node->first);
    weft_walk_child(walk, node->next);
    return 0;
}

static void null_child_is_ignored(void)
{
    struct node leaves[2] = { { 0 }, { 0 } };
    struct node root = { .next = &leaves[0] };
    leaves[0].first = &leaves[1];
    CHECK_EQ(weft_walk(&root, visit_binary, NULL, NULL), 0);
    CHECK_EQ(root.visits, 1);
    CHECK_EQ(leaves[0].visits, 1);
    CHECK_EQ(leaves[1].visits, 1);
}

/* --- Early ends -------------------------------------------------------------------------- */

enum {
    COUNT = 20000,
};

static _Atomic(uint64_t) visits;
static weft_stop stop;

struct bad {
    struct node *node;
    int error; /* 0: sets the cancel flag */
};

static int visit_until(void *at, weft_walk_state *walk, void *arg)
{
    const struct bad *bad = arg;
    atomic_fetch_add(&visits, 1);
    CHECK_EQ(visit(at, walk, NULL), 0);
    if (at == bad->node && bad->error == 0) {
        weft_stop_set(&stop);
    }
    return at == bad->node ? bad->error : 0;
}

static void walk_until(struct node *nodes, struct bad bad, int result)
{
    stop = (weft_stop){ 0 };
    atomic_store(&visits, 0);
    weft_par_options options = { .piece = 1, .stop = &stop };
    CHECK_EQ(weft_walk(nodes, visit_until, &bad, &options), result);
    CHECK_LE(atomic_load(&visits), COUNT);
    if (bad.node == nodes) {
        CHECK_EQ(atomic_load(&visits), 1);
    }
    for (size_t i = 0; i < COUNT; i++) {
        atomic_store(&nodes[i].visits, 0);
    }
}

static int end_early(void *arg)
{
    (void)arg;
    for (unsigned shape = 0; shape < SHAPES; shape++) {
        struct node *nodes = make_tree(shape, COUNT);
        for (size_t i = 0; i < COUNT; i += COUNT / 4) {
            walk_until(nodes, (struct bad){ &nodes[i], -44 }, -44);
            walk_until(nodes, (struct bad){ &nodes[i], 0 }, WEFT_ECANCELED);
        }
        free(nodes);
    }
    return 0;
}

static void errors_and_cancels_end_call(void)
{
    test_run_everywhere(end_early, NULL);
}

static int stop_before(void *arg)
{
    struct node node = { 0 };
    (void)arg;
    weft_stop_set(&stop);
    weft_par_options options = { .stop = &stop };
    CHECK_EQ(weft_walk(&node, visit, NULL, &options), WEFT_ECANCELED);
    CHECK_EQ(weft_walk(NULL, visit, NULL, &options), WEFT_ECANCELED);
    CHECK_EQ(node.visits, 0);
    return 0;
}

static void set_cancel_flag_prevents_calls(void)
{
    test_run_everywhere(stop_before, NULL);
}

static int walk_tree(void *arg)
{
    int err = 0;
    for (unsigned left = 0; left < 100; left += 9) {
        memory_ends_after(left);
        atomic_store(&((struct node *)arg)->visits, 0);
        err = weft_walk(arg, visit, NULL, NULL);
        CHECK(memory_mend() > 0);
        CHECK_EQ(err, -ENOMEM);
    }
    return err;
}

static void out_of_memory_returns_enomem(void)
{
    struct node *nodes = make_tree(WIDE, 1000000);
    CHECK_EQ(walk_tree(nodes), -ENOMEM);
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, walk_tree, nodes), -ENOMEM);
    CHECK_EQ(weft_par_run(rt, walk_tree, nodes), -ENOMEM);
    weft_runtime_destroy(rt);
    free(nodes);
}

/* --- Distribution among workers ---------------------------------------------------------- */

static _Atomic(uint64_t) begun;

static int meet(void *at, weft_walk_state *walk, void *arg)
{
    const struct node *node = at;
    CHECK_EQ(visit(at, walk, arg), 0);
    if (node->first == NULL) {
        atomic_fetch_add(&begun, 1);
        test_wait_for(&begun, 2);
    }
    return 0;
}

static int meet_at_leaves(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20; i++) {
        /* Two leaves, below the root or at the end of a list. */
        struct node *nodes = make_tree(BROOM, 4 + 10 * (i % 5));
        size_t last = i % 5 * 5 + 1;
        nodes[last].first->next->next = NULL;
        atomic_store(&begun, 0);
        CHECK_EQ(weft_walk(nodes, meet, NULL, NULL), 0);
        CHECK_EQ(begun, 2);
        free(nodes);
    }
    return 0;
}

/*
 * Goal:   nodes are shared even if there are few of them.
 * Method: each of two visits waits for the other one.
 */
static void two_long_visits_run_concurrently(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, meet_at_leaves, NULL), 0);
    CHECK_EQ(weft_par_run(rt, meet_at_leaves, NULL), 0);
    weft_runtime_destroy(rt);
}

enum {
    LEAVES = 16, /* more than are split off without a request */
};

static _Atomic(uint64_t) workers_seen;
static weft_time visit_time; /* of a node */

/* Records which workers visit leaves that are not children of the root. */
static int record_worker(void *at, weft_walk_state *walk, void *arg)
{
    const struct node *node = at;
    if (node->first == NULL && node->parent->parent != NULL) {
        atomic_fetch_or(&workers_seen, UINT64_C(1) << weft_worker_current());
        for (weft_time end = weft_now() + visit_time; weft_now() < end;) {
        }
    }
    return visit(at, walk, arg);
}

static int walk_until_both_workers_visit(void *arg)
{
    /* Repeats until both workers have visited such leaves. On a busy machine the other worker
     * needs time to wake up, so each walk takes longer than the last one. */
    visit_time = 2 * WEFT_US;
    for (atomic_store(&workers_seen, 0); atomic_load(&workers_seen) != 3;) {
        CHECK_EQ(weft_walk(arg, record_worker, NULL, NULL), 0);
        check_visited_once(arg, COUNT);
        visit_time = visit_time < 32 * WEFT_US ? 2 * visit_time : visit_time;
    }
    return 0;
}

/*
 * Goal:   a worker that requests nodes gets some after those split off without a request are
 *         used up.
 * Method: leaves at the root use them up. Then comes a list, and at its end many nodes. The
 *         walk is repeated until both workers have visited some of these.
 */
static void later_request_gets_nodes(void)
{
    struct node *nodes = make_tree(BROOM, COUNT);
    for (size_t i = 0; i < LEAVES; i++) {
        struct node *leaf = &nodes[COUNT - 1 - i];
        leaf->parent->first = leaf->next;
        leaf->parent = nodes;
        leaf->next = nodes->first->next;
        nodes->first->next = leaf;
    }
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, walk_until_both_workers_visit, nodes), 0);
    weft_runtime_destroy(rt);
    free(nodes);
}

static int walk_little(void *arg)
{
    CHECK_EQ(weft_walk(arg, visit, NULL, NULL), 0);
    check_visited_once(arg, 7);
    return 0;
}

static void short_walk_wakes_no_worker(void)
{
    struct node *nodes = make_tree(BINARY, 7);
    test_wakes_nobody(walk_little, nodes);
    free(nodes);
}

static int wait_and_visit(void *at, weft_walk_state *walk, void *arg)
{
    CHECK_EQ(weft_sleep(10 * WEFT_US), 0);
    CHECK_EQ(visit(at, walk, arg), 0);
    CHECK_EQ(weft_sleep(10 * WEFT_US), 0);
    return 0;
}

/* Each visit of a node walks another tree. */
static int walk_inside(void *at, weft_walk_state *walk, void *arg)
{
    struct node *nodes = make_tree(RANDOM_TREE, 20);
    CHECK_EQ(weft_walk(nodes, wait_and_visit, NULL, NULL), 0);
    check_visited_once(nodes, 20);
    free(nodes);
    return visit(at, walk, arg);
}

static int nest_walks(void *arg)
{
    (void)arg;
    struct node *nodes = make_tree(RANDOM_TREE, 20);
    CHECK_EQ(weft_walk(nodes, walk_inside, NULL, NULL), 0);
    check_visited_once(nodes, 20);
    free(nodes);
    return 0;
}

static void walks_nest_and_visits_may_wait(void)
{
    test_run_everywhere(nest_walks, NULL);
}

TEST_MAIN({
    TEST_DEBUG(out_of_memory_returns_enomem),
    TEST(each_node_is_visited_once_after_its_parent),
    TEST(million_nodes_of_each_shape_are_visited_once),
    TEST(null_child_is_ignored),
    TEST(errors_and_cancels_end_call),
    TEST(set_cancel_flag_prevents_calls),
    TEST(two_long_visits_run_concurrently),
    TEST(later_request_gets_nodes),
    TEST(short_walk_wakes_no_worker),
    TEST(walks_nest_and_visits_may_wait),
})
