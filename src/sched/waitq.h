/* SPDX-License-Identifier: MIT */
/*
 * waitq.h - wait queues: the protocol by which every task waits and is woken.
 *
 * A wait is one suspending call of one task. It has a word, which is decided once, by the
 * thread that wins a CAS on it, and the task to wake. It has a node in the list of each object
 * that may end it: one for a lock, several for a select. Wait and nodes live in the waiter's
 * frame or future; waiting never allocates.
 *
 *   WAITING --claim--> CLAIMED --finish--> DONE      granted by one branch
 *      |                                             (the word records which)
 *      +-----abandon-> CANCELLED or TIMED_OUT        the waiter gave up
 *
 * Granter, under its object's lock          Waiter
 *   G1  claim: CAS WAITING to CLAIMED         W1  link its nodes, each under its
 *   G2  take what is granted, fill the            object's lock, and suspend
 *       node, take the waker out              W2  DONE: unlink the other nodes,
 *   G3  finish: make sure the task stays,         one object lock at a time
 *       then store DONE [W1]                  W3  to give up: CAS WAITING to
 *   G4  unlock, then wake the task                CANCELLED; then as W2
 *
 * Nothing is taken from the object before G1 is won, so nothing is lost if the waiter was
 * faster. After G3 the granter touches neither node nor wait: the waiter may have returned from
 * the frame they live in, and its task may have ended. Before G3 it cannot, because it waits
 * for DONE. So the granter takes a reference on the task in G3, which makes G4 safe. A granter
 * that has already released its lock can instead make an IDLE task RUNNING in G3 and queue it
 * in G4: no other thread can run it in between (state.h).
 *
 * A waiter whose W3 fails against CLAIMED does nothing: the wake-up of G4 is on its way, and
 * the call then ends with what was granted.
 *
 * A granter that loses G1 has found a node of a wait that is already decided. It drops the node
 * from its list and continues with the next. W2 finds the node unlinked.
 *
 * Edges.
 * [W1] finish releases the word, the waiter acquires it: the waiter sees what was granted, and
 *      the granter is done with node and wait.
 * [W2] the start of a wait releases the word, claim acquires it: a granter sees the waker. (An
 *      object's lock orders this as well, but a wait with branches in several objects is linked
 *      into the first one before it is complete.)
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
    _Atomic(uint32_t) word; /* state in the low byte, winning branch above */
    struct wf_task *task;   /* the waiter's */
};

struct wf_wait_node {
    struct wf_list link; /* under the object's lock */
    struct wf_wait *wait;
    uint32_t branch;
};

/* A list of waiters, for an object that guards it with its own lock. A zeroed queue is empty. */
struct wf_waitq {
    struct wf_list nodes;
};

#define WF_WAIT_BRANCH_SHIFT 8
#define WF_WAIT_BRANCHES_MAX (1 << 24)

static inline enum wf_wait_state wf_wait_state_of(uint32_t word)
{
    return (enum wf_wait_state)(word & 0xff);
}

/* Waiter: initializes a wait that has not been started. */
static inline void wf_wait_init(struct wf_wait *wait)
{
    /* relaxed: no other thread has seen the wait. */
    wf_store_relaxed(&wait->word, (uint32_t)WF_WAIT_UNUSED);
}

/* Waiter: starts a wait of the given task, which is the waiter's own. */
static inline void wf_wait_start(struct wf_wait *wait, struct wf_task *task)
{
    wait->task = task;
    /* release [W2]: a granter that claims the wait sees the task. */
    wf_store_release(&wait->word, (uint32_t)WF_WAIT_WAITING);
}

/* Waiter: returns the state of the wait. Sets *branch if it is DONE. */
static inline enum wf_wait_state wf_wait_look(struct wf_wait *wait, uint32_t *branch)
{
    /* acquire [W1]: if it is DONE, what was granted is visible. */
    uint32_t word = wf_load_acquire(&wait->word);
    if (wf_wait_state_of(word) == WF_WAIT_DONE) {
        *branch = word >> WF_WAIT_BRANCH_SHIFT;
    }
    return wf_wait_state_of(word);
}

/* Waiter: returns whether the wait was started. */
static inline bool wf_wait_is_started(const struct wf_wait *wait)
{
    /* relaxed: the waiter itself starts it. */
    return wf_load_relaxed(&wait->word) != WF_WAIT_UNUSED;
}

/* Waiter, under the lock of the only object that may end it: returns whether the wait is still
 * undecided. */
static inline bool wf_wait_is_waiting(const struct wf_wait *wait)
{
    /* relaxed: the wait is decided under the lock. */
    return wf_load_relaxed(&wait->word) == WF_WAIT_WAITING;
}

/* Waiter, for the poll of a future that was started: returns 0 if the wait was granted,
 * WEFT_ECANCELED if it was given up, or WEFT_PENDING. */
int wf_wait_poll(struct wf_wait *wait);

/*
 * Waiter: gives up, with verdict CANCELLED or TIMED_OUT. Returns true if the wait is over
 * (given up now, or DONE before): the waiter unlinks every node, then the wait may go away.
 * Returns false if a granter has claimed it: a wake-up is coming.
 */
bool wf_wait_abandon(struct wf_wait *wait, enum wf_wait_state verdict);

/* Waiter, before any other thread has seen the wait: ends it. */
static inline void wf_wait_retract(struct wf_wait *wait)
{
    /* relaxed: no other thread has seen the wait. */
    wf_store_relaxed(&wait->word, (uint32_t)WF_WAIT_UNUSED);
}

static inline void wf_wait_node_init(struct wf_wait_node *node, struct wf_wait *wait,
                                     uint32_t branch)
{
    wf_list_init(&node->link);
    node->wait = wait;
    node->branch = branch;
}

/* Granter, under the object's lock: claims this node's wait. Returns whether the caller may
 * grant. */
static inline bool wf_wait_claim(struct wf_wait_node *node)
{
    uint32_t word = WF_WAIT_WAITING;
    uint32_t claimed = WF_WAIT_CLAIMED | node->branch << WF_WAIT_BRANCH_SHIFT;
    /* acquire [W2]: see the task to wake. */
    return wf_cas_acquire(&node->wait->word, &word, claimed);
}

/* Granter: same as wf_wait_claim(), for a wait that only this object can end and that is given
 * up only under the object's lock. */
static inline void wf_wait_claim_sole(struct wf_wait *wait)
{
    /* relaxed: the lock orders it. */
    WF_DEBUG_ASSERT(wf_load_relaxed(&wait->word) == WF_WAIT_WAITING);
    wf_store_relaxed(&wait->word, (uint32_t)WF_WAIT_CLAIMED);
}

/* Performs the last step of G3. */
static inline void wf_wait_done(struct wf_wait *wait)
{
    /* relaxed: CLAIMED by this thread; no other thread writes it now. */
    uint32_t word = wf_load_relaxed(&wait->word);
    WF_ASSERT(wf_wait_state_of(word) == WF_WAIT_CLAIMED);
    /* release [W1]: the grant is complete; wait and node are the waiter's again. */
    wf_store_release(&wait->word, (word & ~0xffu) | WF_WAIT_DONE);
}

/* Granter, after a claim: ends the wait. Returns the task with a reference. The caller wakes it
 * with wf_task_wake() once it holds no lock. */
static inline struct wf_task *wf_wait_finish(struct wf_wait *wait)
{
    struct wf_task *task = wait->task;
    wf_task_retain(task);
    wf_wait_done(wait);
    return task;
}

/* Granter, after a claim, without a lock: ends the wait and wakes the task. */
void wf_wait_grant(struct wf_wait *wait);

/* The following need the object's lock. */
void wf_waitq_init(struct wf_waitq *queue);

static inline bool wf_waitq_is_empty(const struct wf_waitq *queue)
{
    return queue->nodes.next == NULL || wf_list_is_empty(&queue->nodes);
}

/* Returns the list of nodes. Initializes it first if the object is zeroed. */
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

/* Unlinks the node. Returns false if it was not linked. */
static inline bool wf_waitq_remove(struct wf_wait_node *node)
{
    bool is_linked = !wf_list_is_empty(&node->link);
    wf_list_remove(&node->link);
    return is_linked;
}

/* Returns the first node, which may belong to a wait that is already decided; NULL if there is
 * none. */
struct wf_wait_node *wf_waitq_first(const struct wf_waitq *queue);

/* Unlinks and returns the first node whose wait could be claimed, or returns NULL. */
struct wf_wait_node *wf_waitq_claim_first(struct wf_waitq *queue);

#endif
