/* SPDX-License-Identifier: MIT */
struct node {
    struct node *first;
    struct node *next;
};
extern struct node *root;
extern size_t words;
extern int count_words(struct node *node, void *arg);
