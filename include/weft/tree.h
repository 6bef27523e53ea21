/* SPDX-License-Identifier: MIT */
/*
 * weft/tree.h - parallel tree traversal.
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
 * A tree may have any shape: as deep as a list, as wide as a list, or unbalanced. Idle workers
 * steal the oldest pending nodes, which have the largest subtrees. A small tree is traversed by
 * the caller alone and wakes no worker.
 */
#ifndef WEFT_TREE_H
#define WEFT_TREE_H

#include "base.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/* The state of a walk, as passed to a visit. */
typedef struct weft_walk_state weft_walk_state;

/* Visits a node. Reports the node's children with weft_walk_child(). Returns 0, or an error,
 * which ends the walk. It may suspend, unless a stackless task has called weft_walk()
 * (weft/par.h). */
typedef int (*weft_visit_fn)(void *node, weft_walk_state *walk, void *arg);

/*
 * Visits the root and every node that a visit reports as a child. A node is visited as often as
 * it is reported. Parents are visited before their children, otherwise the order is
 * unspecified. If root is NULL, there are no nodes.
 *
 * The walk needs memory for the pending nodes. options->piece is the number of visits between
 * checks for cancellation and for requests for work. By default it is measured.
 *
 * Context:  any thread.
 * Suspends: while other workers visit nodes. Cancellation does not end the wait.
 * Errors:   the first error that a visit returned; -ENOMEM; WEFT_ECANCELED: options->stop was
 *           set. Visits that had started have returned, and no others start.
 */
WEFT_API WEFT_NODISCARD int weft_walk(void *root, weft_visit_fn visit, void *arg,
                                      const weft_par_options *options);

/*
 * Adds a node to the walk. Ignores NULL, so a binary tree needs no check. If there is no memory
 * for the node, the walk ends with -ENOMEM.
 *
 * Context: owner only: the visit that received this state, any number of times, but not its
 *          forks.
 */
WEFT_API void weft_walk_child(weft_walk_state *walk, void *child);

WEFT_EXTERN_C_END

#endif
