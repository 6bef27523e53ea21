/* SPDX-License-Identifier: MIT */
/*
 * waitq.h - the one way to wait.
 *
 * A wait is one suspending call of one task. It has a word that is decided
 * once, by whoever wins a CAS on it, and the task to wake. It has a
 * node in the list of each object that may end it: one for a lock, several for
 * a select. Both live in the waiter's frame or future; waiting never allocates.
 *
 *   WAITING --claim--> CLAIMED --finish--> DONE      granted by one branch
 *      |                                             (the word keeps which)
 *      +-----abandon-> CANCELLED or TIMED_OUT        the waiter gave up
 *
 * Granter, under its object's lock          Waiter
 *   G1  claim: CAS WAITING to CLAIMED         W1  link its nodes, each under its
 *   G2  take what is granted, fill the            object's lock, and suspend
 *       node, take the waker out              W2  DONE: unlink the other nodes,
 *   G3  finish: see that the task stays,          one object lock at a time
 *       then store DONE [W1]                  W3  to give up: CAS WAITING to
 *   G4  unlock, then wake the task                CANCELLED; then as W2
 *
 * Nothing is taken from anywhere before G1 is won, so nothing is lost when the
 * waiter was faster. After G3 neither node nor wait is touched: the waiter may
 * have returned from the frame they live in, and its task may have ended. Before G3 it
 * cannot: it waits for DONE. So the granter takes a reference on the task in G3, and G4 is
 * safe. Or it has given up its lock before, makes an IDLE task RUNNING in G3, and queues it in
 * G4: nobody else can run it in between (state.h).
 *
 * A waiter whose W3 fails against CLAIMED does nothing: the wake of G4 is on
 * its way, and the call then ends with what was granted.
 *
 * A granter that loses G1 has met a node of a wait that is decided; it drops
 * the node from its list and goes on to the next. W2 finds it unlinked.
 *
 * Edges.
 * [W1] finish releases the word, the waiter acquires it: what was granted is
 *      seen, and the granter is done with node and wait.
 * [W2] the start of a wait releases the word, claim acquires it: a granter sees
 *      the waker. (An object's lock orders this as well; a wait with branches
 *      in several objects is linked into the first before it is whole.)
 *
 * Checked by tests/model/waitq_model.c.
 */
#ifndef WF_SCHED_WAITQ_H
#define WF_SCHED_WAITQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/list.h"
#include "sched/task.h"

enum wf_wait_state {
    WF_WAIT_UNUSED, /* zeroed, or never started */
    WF_WAIT_WAITING,
    WF_WAIT_CLAIMED,
    WF_WAIT_CANCELLED,
    WF_WAIT_TIMED_OUT,
    WF_WAIT_DONE,
};

struct wf_wait {
    _Atomic(uint32_t) word; /* state in the low byte, the winning branch above */
    struct wf_task *task;   /* the waiter's */
};

struct wf_wait_node {
    struct wf_list link; /* under the object's lock */
    struct wf_wait *wait;
    uint32_t branch;
};

/* A list of waiters, for an object that guards it with a lock of its own. Zero is empty. */
struct wf_waitq {
    struct wf_list nodes;
};

#define WF_WAIT_BRANCH_SHIFT 8
#define WF_WAIT_BRANCHES_MAX (1 << 24)

static inline enum wf_wait_state wf_wait_state_of(uint32_t word)
{
    return (enum wf_wait_state)(word & 0xff);
}

/* Waiter: a wait that was not started. */
static inline void wf_wait_init(struct wf_wait *wait)
{
    /* relaxed: nobody else has seen the wait. */
    wf_store_relaxed(&wait->word, (uint32_t)WF_WAIT_UNUSED);
}

/* Waiter: begins a wait for the given task, which is its own. */
static inline void wf_wait_start(struct wf_wait *wait, struct wf_task *task)
{
    wait->task = task;
    /* release [W2]: a granter that claims it sees the task. */
    wf_store_release(&wait->word, (uint32_t)WF_WAIT_WAITING);
}

/* Waiter: what has become of it. *branch is set when it is DONE. */
static inline enum wf_wait_state wf_wait_look(struct wf_wait *wait, uint32_t *branch)
{
    /* acquire [W1]: if it is DONE, what was granted is seen. */
    uint32_t word = wf_load_acquire(&wait->word);
    if (wf_wait_state_of(word) == WF_WAIT_DONE) {
        *branch = word >> WF_WAIT_BRANCH_SHIFT;
    }
    return wf_wait_state_of(word);
}

/* Waiter: was it started? */
static inline bool wf_wait_is_started(const struct wf_wait *wait)
{
    /* relaxed: the waiter itself starts it. */
    return wf_load_relaxed(&wait->word) != WF_WAIT_UNUSED;
}

/* Waiter, under the lock of the only object that may end it: is it not decided? */
static inline bool wf_wait_is_waiting(const struct wf_wait *wait)
{
    /* relaxed: it is decided under the lock. */
    return wf_load_relaxed(&wait->word) == WF_WAIT_WAITING;
}

/* Waiter, for the poll of a future that was started: 0 if it was granted,
 * WEFT_ECANCELED if it was given up, or WEFT_PENDING. */
int wf_wait_poll(struct wf_wait *wait);

/*
 * Waiter: gives up, with verdict CANCELLED or TIMED_OUT. Returns true if the
 * wait is over (given up now, or DONE before): unlink every node, then it may
 * go away. Returns false if a granter has claimed it: a wake is coming.
 */
bool wf_wait_abandon(struct wf_wait *wait, enum wf_wait_state verdict);

/* Waiter, before the wait was ever seen by anybody: ends it. */
static inline void wf_wait_retract(struct wf_wait *wait)
{
    /* relaxed: nobody else has seen the wait. */
    wf_store_relaxed(&wait->word, (uint32_t)WF_WAIT_UNUSED);
}

static inline void wf_wait_node_init(struct wf_wait_node *node, struct wf_wait *wait,
                                     uint32_t branch)
{
    wf_list_init(&node->link);
    node->wait = wait;
    node->branch = branch;
}

/* Granter, under the object's lock: may I grant to this node's wait? */
static inline bool wf_wait_claim(struct wf_wait_node *node)
{
    uint32_t word = WF_WAIT_WAITING;
    uint32_t claimed = WF_WAIT_CLAIMED | node->branch << WF_WAIT_BRANCH_SHIFT;
    /* acquire [W2]: see the task to wake. */
    return wf_cas_acquire(&node->wait->word, &word, claimed);
}

/* Granter: the same for a wait that only this object can end, and that is given up under the
 * object's lock only. */
static inline void wf_wait_claim_sole(struct wf_wait *wait)
{
    /* relaxed: the lock orders it. */
    WF_DEBUG_ASSERT(wf_load_relaxed(&wait->word) == WF_WAIT_WAITING);
    wf_store_relaxed(&wait->word, (uint32_t)WF_WAIT_CLAIMED);
}

/* G3, the last step. */
static inline void wf_wait_done(struct wf_wait *wait)
{
    /* relaxed: CLAIMED by this thread; nobody else writes it now. */
    uint32_t word = wf_load_relaxed(&wait->word);
    WF_ASSERT(wf_wait_state_of(word) == WF_WAIT_CLAIMED);
    /* release [W1]: the grant is whole; wait and node are the waiter's again. */
    wf_store_release(&wait->word, (word & ~0xffu) | WF_WAIT_DONE);
}

/* Granter, after a claim: ends the wait. Returns the counted task, which the
 * caller wakes with wf_task_wake() once it holds no lock. */
static inline struct wf_task *wf_wait_finish(struct wf_wait *wait)
{
    struct wf_task *task = wait->task;
    wf_task_retain(task);
    wf_wait_done(wait);
    return task;
}

/* Granter, after a claim, without a lock: ends the wait, and wakes the task. */
void wf_wait_grant(struct wf_wait *wait);

/* All under the object's lock. */
void wf_waitq_init(struct wf_waitq *queue);

static inline bool wf_waitq_is_empty(const struct wf_waitq *queue)
{
    return queue->nodes.next == NULL || wf_list_is_empty(&queue->nodes);
}

/* An object that is all zeros has a queue that was never initialised. */
static inline struct wf_list *wf_waitq_nodes(struct wf_waitq *queue)
{
    if (wf_unlikely(queue->nodes.next == NULL)) {
        wf_list_init(&queue->nodes);
    }
    return &queue->nodes;
}

static inline void wf_waitq_add(struct wf_waitq *queue, struct wf_wait_node *node)
{
    wf_list_push_back(wf_waitq_nodes(queue), &node->link);
}

static inline void wf_waitq_add_first(struct wf_waitq *queue, struct wf_wait_node *node)
{
    wf_list_push_front(wf_waitq_nodes(queue), &node->link);
}

/* Takes the node off its list; false if it is on none. */
static inline bool wf_waitq_remove(struct wf_wait_node *node)
{
    bool is_linked = !wf_list_is_empty(&node->link);
    wf_list_remove(&node->link);
    return is_linked;
}

/* The first node, which may be of a wait that is decided; or NULL. */
struct wf_wait_node *wf_waitq_first(const struct wf_waitq *queue);

/* Takes the first node off whose wait could be claimed, or returns NULL. */
struct wf_wait_node *wf_waitq_claim_first(struct wf_waitq *queue);

#endif
