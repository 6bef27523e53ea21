/* SPDX-License-Identifier: MIT */
#include "base/list.h"

#include "test.h"

struct item {
    int before;
    struct wf_list link;
    int number;
};

enum {
    ITEMS = 6
};

static struct wf_list list;
static struct wf_list other;
static struct item items[ITEMS];

static void reset(void)
{
    wf_list_init(&list);
    wf_list_init(&other);
    for (int i = 0; i < ITEMS; i++) {
        items[i].number = i;
        wf_list_init(&items[i].link);
    }
}

static void push_range(struct wf_list *to, int first, int end)
{
    for (int i = first; i < end; i++) {
        wf_list_push_back(to, &items[i].link);
    }
}

/* Checks that the circular list holds exactly these items, in both directions. */
static void check_list(const struct wf_list *head, const int *numbers, int count)
{
    const struct wf_list *node = head;
    for (int i = 0; i < count; i++) {
        CHECK(node->next->prev == node);
        node = node->next;
        CHECK(node == &items[numbers[i]].link);
    }
    CHECK(node->next == head);
    CHECK(head->prev == node);
    CHECK_EQ(wf_list_is_empty(head), count == 0);
}

#define CHECK_LIST(head, ...)                                                                      \
    check_list((head), (const int[]){ __VA_ARGS__ },                                               \
               (int)(sizeof(int[]){ __VA_ARGS__ } / sizeof(int)))

static void new_list_is_empty(void)
{
    reset();
    check_list(&list, NULL, 0);
    CHECK(wf_list_pop_front(&list) == NULL);
    check_list(&list, NULL, 0);
}

static void push_back_keeps_order(void)
{
    reset();
    push_range(&list, 0, 3);
    CHECK_LIST(&list, 0, 1, 2);
}

static void push_front_reverses_order(void)
{
    reset();
    for (int i = 0; i < 3; i++) {
        wf_list_push_front(&list, &items[i].link);
    }
    CHECK_LIST(&list, 2, 1, 0);
}

static void pop_front_removes_first_node_until_empty(void)
{
    reset();
    push_range(&list, 0, 2);
    CHECK(wf_list_pop_front(&list) == &items[0].link);
    CHECK(wf_list_is_empty(&items[0].link));
    CHECK_LIST(&list, 1);
    CHECK(wf_list_pop_front(&list) == &items[1].link);
    CHECK(wf_list_pop_front(&list) == NULL);
    check_list(&list, NULL, 0);
}

static void remove_works_at_both_ends_and_in_middle(void)
{
    reset();
    push_range(&list, 0, 5);
    wf_list_remove(&items[2].link);
    CHECK_LIST(&list, 0, 1, 3, 4);
    wf_list_remove(&items[0].link);
    CHECK_LIST(&list, 1, 3, 4);
    wf_list_remove(&items[4].link);
    CHECK_LIST(&list, 1, 3);
    wf_list_remove(&items[1].link);
    wf_list_remove(&items[3].link);
    check_list(&list, NULL, 0);
}

static void remove_of_unlinked_node_changes_nothing(void)
{
    reset();
    push_range(&list, 0, 2);
    wf_list_remove(&items[3].link);
    wf_list_remove(&items[0].link);
    wf_list_remove(&items[0].link);
    CHECK(wf_list_is_empty(&items[0].link));
    CHECK(wf_list_is_empty(&items[3].link));
    CHECK_LIST(&list, 1);
}

static void removed_node_can_be_pushed_again(void)
{
    reset();
    push_range(&list, 0, 2);
    wf_list_remove(&items[0].link);
    wf_list_push_back(&list, &items[0].link);
    CHECK_LIST(&list, 1, 0);
}

static void splice_appends_all_nodes_and_empties_source(void)
{
    reset();
    push_range(&list, 0, 2);
    push_range(&other, 2, 5);
    wf_list_splice_back(&list, &other);
    CHECK_LIST(&list, 0, 1, 2, 3, 4);
    check_list(&other, NULL, 0);
    wf_list_push_back(&other, &items[5].link);
    CHECK_LIST(&other, 5);
    CHECK_LIST(&list, 0, 1, 2, 3, 4);
}

static void splice_into_empty_list_moves_all_nodes(void)
{
    reset();
    push_range(&other, 0, 1);
    wf_list_splice_back(&list, &other);
    CHECK_LIST(&list, 0);
    check_list(&other, NULL, 0);
}

static void splice_of_empty_list_changes_nothing(void)
{
    reset();
    wf_list_splice_back(&list, &other);
    check_list(&list, NULL, 0);
    push_range(&list, 0, 2);
    wf_list_splice_back(&list, &other);
    CHECK_LIST(&list, 0, 1);
    check_list(&other, NULL, 0);
}

static void container_of_returns_enclosing_struct(void)
{
    reset();
    push_range(&list, 0, 2);
    struct item *first = wf_container_of(wf_list_pop_front(&list), struct item, link);
    CHECK(first == &items[0]);
    CHECK_EQ(first->number, 0);
}

TEST_MAIN({ TEST(new_list_is_empty), TEST(push_back_keeps_order), TEST(push_front_reverses_order),
            TEST(pop_front_removes_first_node_until_empty),
            TEST(remove_works_at_both_ends_and_in_middle),
            TEST(remove_of_unlinked_node_changes_nothing), TEST(removed_node_can_be_pushed_again),
            TEST(splice_appends_all_nodes_and_empties_source),
            TEST(splice_into_empty_list_moves_all_nodes),
            TEST(splice_of_empty_list_changes_nothing),
            TEST(container_of_returns_enclosing_struct) })
