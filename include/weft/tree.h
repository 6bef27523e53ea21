/* SPDX-License-Identifier: MIT */
/*
 * weft/tree.h - walks over trees, in parallel.
 *
 *     static int visit(void *at, weft_walk_state *walk, void *arg)
 *     {
 *         struct node *node = (struct node *)at;
 *         for (struct node *child = node->first; child != NULL; child = child->next) {
 *             weft_walk_child(walk, child);
 *         }
 *         return count_words(node, arg);
 *     }
 *
 *     err = weft_walk(root, visit, &words, NULL);
 *
 * A tree may have any shape: as deep as a list, as wide as one, or uneven. Idle workers get
 * the oldest of the nodes that wait for their visit, which have the most below them. A
 * small tree is walked where it is, and wakes nobody.
 */
#ifndef WEFT_TREE_H
#define WEFT_TREE_H

#include "base.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/* A walk, as a visit sees it. */
typedef struct weft_walk_state weft_walk_state;

/* What is done with a node. It says what the node's children are, and returns 0, or an
 * error, which ends the walk. It may wait, but not if a stackless task has called
 * weft_walk() (weft/par.h). */
typedef int (*weft_visit_fn)(void *node, weft_walk_state *walk, void *arg);

/*
 * Visits the root, and every node that a visit has called a child: each as often as it was
 * called so, a parent before its children, and otherwise in any order. root may be NULL:
 * there is no node.
 *
 * It needs memory for the nodes that wait for their visit. options->piece is after how many
 * visits it looks whether it was stopped and whether others could help; by default that is
 * measured.
 *
 * Context:  anywhere.
 * Suspends: while other workers are at parts of it; not for cancellation.
 * Errors:   what a visit returns, the first one that did; -ENOMEM; WEFT_ECANCELED: stopped.
 *           Visits that had begun have returned, and no others begin.
 */
WEFT_API WEFT_NODISCARD int weft_walk(void *root, weft_visit_fn visit, void *arg,
                                      const weft_par_options *options);

/*
 * Says that a node is to be visited, too. NULL is none, so a binary tree needs no test. If
 * there is no memory for it, the walk will end with -ENOMEM.
 *
 * Context: the visit that was given this walk, and not what it forks; as often as it likes.
 */
WEFT_API void weft_walk_child(weft_walk_state *walk, void *child);

WEFT_EXTERN_C_END

#endif
