/* SPDX-License-Identifier: MIT */
#include "queue/node.h"

#include "test.h"

enum {
    NODES = 6
};

static struct wf_qlist list;
static struct wf_qlist other;
static struct wf_qnode nodes[NODES];

static void reset(void)
{
    list = (struct wf_qlist){ 0 };
    other = (struct wf_qlist){ 0 };
}

static void push_range(struct wf_qlist *to, int first, int end)
{
    for (int i = first; i < end; i++) {
        wf_qlist_push(to, &nodes[i]);
    }
}

/* Pops nodes[first] to nodes[end - 1] and checks that the list is then empty. */
static void check_drains(struct wf_qlist *from, int first, int end)
{
    for (int i = first; i < end; i++) {
        CHECK_EQ(from->count, end - i);
        CHECK(wf_qlist_pop(from) == &nodes[i]);
    }
    CHECK_EQ(from->count, 0);
    CHECK(wf_qlist_pop(from) == NULL);
    CHECK_EQ(from->count, 0);
}

static void pop_from_empty_list_returns_null(void)
{
    reset();
    check_drains(&list, 0, 0);
}

static void pop_returns_oldest_node(void)
{
    reset();
    push_range(&list, 0, 4);
    check_drains(&list, 0, 4);
}

static void push_clears_old_link_of_node(void)
{
    reset();
    nodes[0].next = &nodes[5];
    wf_qlist_push(&list, &nodes[0]);
    CHECK(list.last->next == NULL);
    check_drains(&list, 0, 1);
}

static void emptied_list_can_be_used_again(void)
{
    reset();
    push_range(&list, 0, 2);
    check_drains(&list, 0, 2);
    push_range(&list, 2, 4);
    check_drains(&list, 2, 4);
}

static void append_moves_all_nodes_to_end(void)
{
    reset();
    push_range(&list, 0, 2);
    push_range(&other, 2, 5);
    wf_qlist_append(&list, &other);
    check_drains(&other, 0, 0);
    check_drains(&list, 0, 5);
}

static void append_to_empty_list_moves_all_nodes(void)
{
    reset();
    push_range(&other, 0, 3);
    wf_qlist_append(&list, &other);
    check_drains(&other, 0, 0);
    check_drains(&list, 0, 3);
}

static void append_to_emptied_list_leaves_old_nodes_untouched(void)
{
    reset();
    push_range(&list, 0, 1);
    check_drains(&list, 0, 1);
    push_range(&other, 1, 3);
    wf_qlist_append(&list, &other);
    CHECK(nodes[0].next == NULL);
    check_drains(&list, 1, 3);
}

static void append_of_empty_list_changes_nothing(void)
{
    reset();
    wf_qlist_append(&list, &other);
    check_drains(&list, 0, 0);

    push_range(&list, 0, 2);
    wf_qlist_append(&list, &other);
    wf_qlist_push(&list, &nodes[2]);
    check_drains(&list, 0, 3);
}

static void append_of_emptied_list_changes_nothing(void)
{
    reset();
    push_range(&other, 3, 4);
    check_drains(&other, 3, 4);
    push_range(&list, 0, 2);
    wf_qlist_append(&list, &other);
    wf_qlist_push(&list, &nodes[2]);
    check_drains(&list, 0, 3);
}

static void push_after_append_adds_to_end(void)
{
    reset();
    push_range(&list, 0, 1);
    push_range(&other, 1, 3);
    wf_qlist_append(&list, &other);
    push_range(&list, 3, 4);
    push_range(&other, 4, 6);
    check_drains(&list, 0, 4);
    check_drains(&other, 4, 6);
}

TEST_MAIN({ TEST(pop_from_empty_list_returns_null), TEST(pop_returns_oldest_node),
            TEST(push_clears_old_link_of_node), TEST(emptied_list_can_be_used_again),
            TEST(append_moves_all_nodes_to_end), TEST(append_to_empty_list_moves_all_nodes),
            TEST(append_to_emptied_list_leaves_old_nodes_untouched),
            TEST(append_of_empty_list_changes_nothing),
            TEST(append_of_emptied_list_changes_nothing), TEST(push_after_append_adds_to_end) })
