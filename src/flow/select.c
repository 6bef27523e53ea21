/* SPDX-License-Identifier: MIT */
/*
 * select.c - waiting for the first of several things.
 *
 * The operations among the branches share one wait (waitq.h), with a node in each of their
 * objects: who grants one of them claims the wait, so no other is granted. Other futures
 * (sleeps, joins, bodies) are polled: one that has a result has won, and must not have been
 * polled while an operation could be granted. So it goes in rounds:
 *
 *   R1  Nothing is enlisted. Each branch is tried, in an order that is drawn by lot: an
 *       operation takes what it can have, a future is polled. One that has a result wins.
 *   R2  A turn at all objects at once, their latches taken in the order of their addresses.
 *       Each operation tries again to take; one that has a result wins. Else the wait
 *       starts, all are enlisted, and the latches are given up.
 *   R3  Woken. An operation was granted: it has won. Else some other future has news: the
 *       wait is abandoned; all operations leave, one latch at a time; and R1.
 *
 * Why all at once in R2: an operation that finds nothing may be enlisted only if those after
 * it find nothing, too. And one that meets another select in a queue (both want to meet at a
 * channel without room) claims the other's wait alone: its own cannot be claimed meanwhile.
 *
 * Between the claim of the wait and the time when its operations leave (R3, or the end),
 * nodes of a wait that is decided are in queues. Granters drop them and go on; or do not get
 * to them, and then what they hold up goes on when the operation leaves.
 *
 * At the end the losers among the other futures are cancelled and awaited. They are not
 * polled after that, so a join that has come too late does not take the result.
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
    uint32_t lot;            /* the i-th to be tried has this index; of branch i */
    uint32_t place;          /* the i-th latch to be taken is of this one; of branch i */
    bool is_polled;          /* a future that is pending */
    struct wf_turn *turn_at; /* R2: at its object */
    struct wf_turn turn;     /* of the first branch with the same object */
};

struct select {
    weft_future future;
    struct branch *branches;
    size_t count;
    unsigned flags;
    uint32_t ops;     /* branches that are operations */
    uint32_t futures; /* branches that are not */
    int winner;       /* or an error, or NO_WINNER */
    uint8_t stage;
    bool is_cancelled;
    struct wf_wait wait;
};

_Static_assert(sizeof(struct branch) == sizeof(weft_branch), "weft_branch has another size");
_Static_assert(offsetof(struct branch, result) == offsetof(weft_branch, result), "");
_Static_assert(sizeof(struct select) <= sizeof(weft_select_future), "weft_select_future is small");
_Static_assert(offsetof(struct select, count) == offsetof(weft_select_future, count), "");
_Static_assert(offsetof(struct select, flags) == offsetof(weft_select_future, flags), "");

/* --- The order of things -------------------------------------------------------------------- */

static uint32_t random_below(uint32_t bound)
{
    static _Atomic(uint64_t) seed;
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        return wf_rng_below(&worker->rng, bound);
    }
    /* relaxed: a counter; each gets another number. */
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

/* The object of the i-th operation in the order of latches. */
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

/* The i-th future by address; the lots are not drawn yet. */
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

/* Shell's sort: in place, and good enough for thousands. */
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

/* R2: begins a turn at each object. */
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

/* Nobody is woken before the last latch is given up. */
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

/* The wait is decided: all operations leave, but for the one that was granted. */
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

/* The wait has ended with a grant to this branch: it has won; or it finds that another was
 * faster, and all begins again. */
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

/* Ends the futures that were polled. While nothing has won, one of them still can. False: one
 * needs time. */
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
        if (select->winner < 0 || (branch->future->ops->flags & WF_FUTURE_RENEWS) != 0) {
            int result = branch->future->ops->poll(branch->future);
            if (result != WEFT_ECANCELED) {
                decide(select, i, result);
            }
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
