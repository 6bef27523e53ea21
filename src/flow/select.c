/* SPDX-License-Identifier: MIT */
/*
 * select.c - select: waits for the first of several operations and futures.
 *
 * The operations among the branches share one wait (waitq.h), with a node in the queue of each
 * object. A granter claims the wait, so at most one operation is granted. Other futures (sleeps,
 * joins, stackless tasks) are polled. A future that has a result wins, so it must not be polled
 * while an operation can be granted. Therefore select proceeds in rounds:
 *
 *   R1  Nothing is enqueued. Try each branch, in random order: an operation takes what is
 *       available, a future is polled. A branch with a result wins.
 *   R2  Lock the latches of all objects, in the order of their addresses. Each operation tries
 *       again; one with a result wins. Otherwise start the wait, enqueue all operations, and
 *       unlock the latches.
 *   R3  Woken. If an operation was granted, it wins. Otherwise another future has news: abandon
 *       the wait, remove all operations from their queues, one latch at a time, and go to R1.
 *
 * Why R2 holds all latches at the same time: an operation that finds nothing may be enqueued
 * only if the operations after it find nothing either. And if an operation meets another select
 * in a queue (both want to rendezvous on an unbuffered channel), it claims only the other
 * select's wait: its own wait cannot be claimed in the meantime.
 *
 * From the claim of the wait until its operations leave their queues (R3, or the end), the
 * queues contain nodes of a decided wait. A granter drops such a node and continues. If no
 * granter reaches the node, the waiters behind it proceed when the operation leaves.
 *
 * At the end the losing futures are canceled and awaited. They are not polled after that, so a
 * join that completes too late does not take the result. A future that has consumed something all
 * the same gives it back (WEFT_FUTURE_GIVES_BACK).
 *
 * Edges: latch.h's [E1] and waitq.h's.
 *
 * Checked by tests/model/select_model.c.
 */
#include <weft/select.h>

#include "base/assert.h"
#include "base/rng.h"
#include "sched/await.h"
#include "sched/op.h"
#include "sched/thread.h"

enum {
    NO_WINNER = WEFT_PENDING,
};

enum stage {
    FRESH,
    WAITS,  /* until a branch is ready */
    ENDING, /* the result is known; losers may need time */
};

struct branch {
    weft_future *future;
    int result;
    uint32_t lot;            /* slot i: index of the i-th branch to try */
    uint32_t place;          /* slot i: branch of the i-th latch to lock */
    bool is_polled;          /* a future that was polled and is pending */
    struct wf_turn *turn_at; /* R2: the turn at its object */
    struct wf_turn turn;     /* used by the first branch of each object */
};

struct select {
    weft_future future;
    struct branch *branches;
    size_t count;
    unsigned flags;
    uint32_t ops;     /* number of branches that are operations */
    uint32_t futures; /* number of branches that are other futures */
    int winner;       /* index of the winner, an error, or NO_WINNER */
    uint8_t stage;
    bool is_cancelled;
    struct wf_wait wait;
};

_Static_assert(sizeof(struct branch) == sizeof(weft_branch), "weft_branch has another size");
_Static_assert(offsetof(struct branch, result) == offsetof(weft_branch, result), "");
_Static_assert(sizeof(struct select) <= sizeof(weft_select_future), "weft_select_future is small");
_Static_assert(offsetof(struct select, count) == offsetof(weft_select_future, count), "");
_Static_assert(offsetof(struct select, flags) == offsetof(weft_select_future, flags), "");

/* --- Order of branches and latches ---------------------------------------------------------- */

static uint32_t random_below(uint32_t bound)
{
    static _Atomic(uint64_t) seed;
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        return wf_rng_below(&worker->rng, bound);
    }
    /* relaxed: a counter; each caller gets a distinct number. */
    uint64_t mixed = wf_rng_mix(wf_fetch_add_relaxed(&seed, 1) + 1);
    return (uint32_t)(((mixed >> 32) * bound) >> 32);
}

static void draw_lots(struct select *select)
{
    struct branch *branches = select->branches;
    bool is_ordered = (select->flags & WEFT_SELECT_ORDERED) != 0;
    for (uint32_t i = 0; i < select->count; i++) {
        uint32_t other = is_ordered ? i : random_below(i + 1);
        branches[i].lot = branches[other].lot;
        branches[other].lot = i;
    }
}

/* Returns the object of the i-th operation in latch order. */
static uintptr_t object_at(const struct branch *branches, uint32_t i)
{
    return (uintptr_t)((struct wf_op *)branches[branches[i].place].future)->object;
}

static void swap_places(struct branch *branches, uint32_t i, uint32_t j)
{
    uint32_t place = branches[j].place;
    branches[j].place = branches[i].place;
    branches[i].place = place;
}

/* Returns the i-th future by address. Used before draw_lots(), so lot is free. */
static uintptr_t future_at(const struct branch *branches, uint32_t i)
{
    return (uintptr_t)branches[branches[i].lot].future;
}

static void swap_lots(struct branch *branches, uint32_t i, uint32_t j)
{
    uint32_t lot = branches[j].lot;
    branches[j].lot = branches[i].lot;
    branches[i].lot = lot;
}

/* Shellsort: in place, and fast enough for thousands of branches. */
static inline __attribute__((always_inline)) void
sort(struct branch *branches, size_t count, uintptr_t (*at)(const struct branch *, uint32_t),
     void (*swap)(struct branch *, uint32_t, uint32_t))
{
    for (uint32_t gap = (uint32_t)count / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (uint32_t i = gap; i < count; i++) {
            for (uint32_t j = i; j >= gap && at(branches, j - gap) > at(branches, j); j -= gap) {
                swap(branches, j - gap, j);
            }
        }
    }
}

static void sort_places(struct select *select)
{
    sort(select->branches, select->ops, object_at, swap_places);
}

static void must_be_distinct(struct select *select)
{
    struct branch *branches = select->branches;
    for (uint32_t i = 0; i < select->count; i++) {
        branches[i].lot = i;
    }
    sort(branches, select->count, future_at, swap_lots);
    for (uint32_t i = 1; i < select->count; i++) {
        if (wf_unlikely(future_at(branches, i) == future_at(branches, i - 1) &&
                        future_at(branches, i) != 0)) {
            wf_fatal("weft_select: the operation of branch %u stands in branch %u, too; prepare "
                     "one for each branch",
                     branches[i - 1].lot, branches[i].lot);
        }
    }
}

static void prepare(struct select *select)
{
    for (uint32_t i = 0; i < select->count; i++) {
        struct branch *branch = &select->branches[i];
        branch->is_polled = false;
        if (branch->future == NULL) {
            continue;
        }
        struct wf_op *op = wf_op_of(branch->future);
        if (op == NULL) {
            select->futures++;
            continue;
        }
        if (wf_unlikely(wf_op_ops_of(op)->is_alone)) {
            wf_fatal("weft_select: branch %u waits at a barrier, which cannot be a branch", i);
        }
        wf_wait_node_init(&op->node, &select->wait, i);
        select->branches[select->ops].place = i;
        select->ops++;
    }
    sort_places(select);
    must_be_distinct(select);
    draw_lots(select);
}

/* --- Operations ----------------------------------------------------------------------------- */

static struct wf_op *op_at(const struct select *select, uint32_t place)
{
    return (struct wf_op *)select->branches[select->branches[place].place].future;
}

/* R2: locks the latch of each object once. */
static void begin_turns(struct select *select)
{
    struct wf_turn *turn = NULL;
    for (uint32_t i = 0; i < select->ops; i++) {
        struct branch *branch = &select->branches[select->branches[i].place];
        void *object = ((struct wf_op *)branch->future)->object;
        if (turn == NULL || (void *)turn->word != object) {
            turn = &branch->turn;
            wf_turn_begin(turn, object);
        }
        branch->turn_at = turn;
    }
}

/* Wakes waiters only after the last latch is unlocked. */
static void end_turns(struct select *select)
{
    for (uint32_t i = 0; i < select->ops; i++) {
        struct branch *branch = &select->branches[select->branches[i].place];
        if (branch->turn_at == &branch->turn) {
            wf_latch_unlock(branch->turn.word, branch->turn.bits);
        }
    }
    for (uint32_t i = 0; i < select->ops; i++) {
        struct branch *branch = &select->branches[select->branches[i].place];
        if (branch->turn_at == &branch->turn) {
            wf_turn_fire(&branch->turn);
        }
    }
}

static int take_alone(struct wf_op *op)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, op->object);
    int result = wf_op_ops_of(op)->take(op, &turn);
    wf_turn_end(&turn);
    return result;
}

static void enlist_all(struct select *select)
{
    wf_wait_start(&select->wait, wf_thread_waiter());
    for (uint32_t i = 0; i < select->ops; i++) {
        struct branch *branch = &select->branches[select->branches[i].place];
        struct wf_op *op = (struct wf_op *)branch->future;
        op->result = 0;
        wf_op_wait(op, branch->turn_at);
    }
}

/* The wait is decided: removes all operations except the granted one from their queues. */
static void leave_all(struct select *select, const struct wf_op *granted)
{
    for (uint32_t i = 0; i < select->ops; i++) {
        struct wf_op *op = op_at(select, i);
        if (op != granted) {
            struct wf_turn turn;
            wf_turn_begin(&turn, op->object);
            wf_op_leave(op, &turn);
            wf_turn_end(&turn);
        }
    }
}

/* --- Rounds --------------------------------------------------------------------------------- */

static void decide(struct select *select, uint32_t index, int result)
{
    select->branches[index].result = result;
    select->branches[index].is_polled = false;
    select->winner = (int)index;
}

/* R1. */
static bool try_each(struct select *select)
{
    for (uint32_t i = 0; i < select->count; i++) {
        uint32_t index = select->branches[i].lot;
        struct branch *branch = &select->branches[index];
        if (branch->future == NULL) {
            continue;
        }
        struct wf_op *op = wf_op_of(branch->future);
        int result = op != NULL ? take_alone(op) : branch->future->ops->poll(branch->future);
        if (result != WEFT_PENDING) {
            decide(select, index, result);
            return true;
        }
        branch->is_polled = op == NULL;
    }
    return false;
}

/* R2. */
static void take_one_or_enlist_all(struct select *select)
{
    begin_turns(select);
    for (uint32_t i = 0; i < select->count && select->winner == NO_WINNER; i++) {
        uint32_t index = select->branches[i].lot;
        struct branch *branch = &select->branches[index];
        struct wf_op *op = branch->future != NULL ? wf_op_of(branch->future) : NULL;
        if (op != NULL) {
            int result = wf_op_ops_of(op)->take(op, branch->turn_at);
            if (result != WEFT_PENDING) {
                decide(select, index, result);
            }
        }
    }
    if (select->winner == NO_WINNER) {
        enlist_all(select);
    }
    end_turns(select);
}

/* R1 and R2. */
static void run_round(struct select *select)
{
    if (try_each(select)) {
        return;
    }
    if ((select->flags & WEFT_SELECT_TRY) != 0) {
        select->winner = -EAGAIN;
    } else if (select->ops > 0) {
        take_one_or_enlist_all(select);
    }
}

/* The wait has ended with a grant to this branch. The branch wins, unless it finds that another
 * caller was faster; then the select starts over. */
static void receive_grant(struct select *select, uint32_t index)
{
    struct wf_op *op = (struct wf_op *)select->branches[index].future;
    leave_all(select, op);
    int result = wf_op_end(op);
    if (result != WEFT_PENDING) {
        decide(select, index, result);
    } else if (select->is_cancelled) {
        select->winner = WEFT_ECANCELED;
    } else {
        run_round(select);
    }
}

/* R3. */
static void look_again(struct select *select)
{
    uint32_t index = 0;
    if (select->ops == 0) {
        run_round(select);
        return;
    }
    wf_thread_must_await(select->wait.task);
    if (wf_wait_look(&select->wait, &index) == WF_WAIT_DONE) {
        receive_grant(select, index);
    } else if (select->futures > 0 && wf_wait_abandon(&select->wait, WF_WAIT_CANCELLED)) {
        if (wf_wait_look(&select->wait, &index) == WF_WAIT_DONE) {
            receive_grant(select, index);
        } else {
            leave_all(select, NULL);
            run_round(select);
        }
    }
}

/* Cancels the polled futures. As long as no branch has won, one of them still can. Returns false
 * if a future needs time to end. */
static bool end_futures(struct select *select)
{
    bool have_ended = true;
    for (uint32_t i = 0; i < select->count && select->futures > 0; i++) {
        struct branch *branch = &select->branches[i];
        if (!branch->is_polled) {
            continue;
        }
        if (!branch->future->ops->cancel(branch->future)) {
            have_ended = false;
            continue;
        }
        branch->is_polled = false;
        const weft_future_ops *ops = branch->future->ops;
        if (select->winner < 0 || (ops->flags & WF_FUTURE_RENEWS) != 0) {
            int result = ops->poll(branch->future);
            if (result != WEFT_ECANCELED) {
                decide(select, i, result);
            }
        } else if ((ops->flags & WEFT_FUTURE_GIVES_BACK) != 0) {
            ops->drop(branch->future);
        }
    }
    return have_ended;
}

static int select_poll(weft_future *future)
{
    struct select *select = (struct select *)future;
    if (select->stage == FRESH) {
        select->stage = WAITS;
        prepare(select);
        run_round(select);
    } else if (select->stage == WAITS) {
        look_again(select);
    }
    if (select->winner == NO_WINNER) {
        return WEFT_PENDING;
    }
    select->stage = ENDING;
    return end_futures(select) ? select->winner : WEFT_PENDING;
}

static bool select_cancel(weft_future *future)
{
    struct select *select = (struct select *)future;
    uint32_t index = 0;
    select->is_cancelled = true;
    if (select->stage == WAITS) {
        if (select->ops > 0 && !wf_wait_abandon(&select->wait, WF_WAIT_CANCELLED)) {
            return false;
        }
        if (select->ops > 0 && wf_wait_look(&select->wait, &index) == WF_WAIT_DONE) {
            receive_grant(select, index);
        } else {
            leave_all(select, NULL);
            select->winner = WEFT_ECANCELED;
        }
        select->stage = ENDING;
    }
    return end_futures(select);
}

static const weft_future_ops select_ops = { .poll = select_poll, .cancel = select_cancel };

void weft_select_init(weft_select_future *future, weft_branch *branches, size_t count,
                      unsigned flags)
{
    struct select *select = (struct select *)future;
    if (wf_unlikely(count > WF_WAIT_BRANCHES_MAX)) {
        wf_fatal("weft_select: %zu branches; %d are the most", count, WF_WAIT_BRANCHES_MAX);
    }
    *select = (struct select){ .future.ops = &select_ops,
                               .branches = (struct branch *)branches,
                               .count = count,
                               .flags = flags,
                               .winner = NO_WINNER };
    wf_wait_init(&select->wait);
}

int weft_select(weft_branch *branches, size_t count, unsigned flags, weft_time deadline)
{
    weft_select_future select;
    weft_select_init(&select, branches, count, flags);
    return wf_await(&select.future, deadline, "weft_select",
                    "await a weft_select_future in a body");
}
