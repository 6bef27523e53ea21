/* SPDX-License-Identifier: MIT */
/*
 * join_set.c - join set: returns results of tasks in completion order.
 *
 * Results go through an unbounded channel. Capacity is reserved before a task starts, so that
 * the task can report its result even when memory runs out. Callers do not wait for the channel,
 * since a caller must also wake when another caller has received the last result. So the set has
 * a wait queue of its own, under its latch, and counts the tasks whose results are still to be
 * received:
 *
 *   Caller                                 Task
 *   J1  latch: no tasks: -ENOENT           T1  send the result
 *   J2  a result: receive it; the last     T2  latch: claim one caller
 *       one claims all other callers
 *       with -ENOENT
 *   J3  otherwise wait; when woken, J1
 *
 * T1 precedes T2, and J2 and J3 are in one critical section: a caller that finds no result is in
 * the queue when T2 looks. A caller that is woken but finds that another caller was faster waits
 * again.
 *
 * Checked by tests/model/join_set_model.c.
 */
#include <weft/join_set.h>

#include "base/assert.h"
#include "base/latch.h"
#include "flow/scope.h"
#include "sched/op.h"

struct results {
    _Atomic(uint32_t) word; /* latch only; guards all fields below */
    size_t count;           /* tasks whose results are still to be received */
    struct wf_waitq waiters;
};

_Static_assert(sizeof(struct results) <= sizeof(((weft_join_set *)NULL)->opaque_), "");

static struct results *results_of(weft_join_set *set)
{
    return (struct results *)(void *)set->opaque_;
}

int weft_join_set_begin(weft_join_set *set, const weft_scope_options *options)
{
    int err = weft_channel_make(&set->sender, &set->receiver, sizeof(weft_joined), WEFT_UNBOUNDED);
    if (err == 0) {
        *results_of(set) = (struct results){ .count = 0 };
        weft_scope_begin(&set->scope, options);
    }
    return err;
}

/* T1 and T2. */
static void report(void *to, void *arg, int result)
{
    weft_join_set *set = to;
    weft_joined joined = { arg, result };
    weft_send_reserved(set->sender, &joined);
    struct wf_turn turn;
    wf_turn_begin(&turn, results_of(set));
    (void)wf_turn_claim(&turn, &results_of(set)->waiters);
    wf_turn_end(&turn);
}

static void add_task(struct results *results)
{
    (void)wf_latch_lock(&results->word);
    results->count++;
    wf_latch_unlock(&results->word, 0);
}

/* With the latch held: removes one task. If it was the last one, all waiters get -ENOENT. */
static void remove_task(struct results *results, struct wf_turn *turn)
{
    results->count--;
    if (results->count == 0) {
        wf_turn_claim_all(turn, &results->waiters, -ENOENT);
    }
}

int weft_join_set_go(weft_join_set *set, int (*function)(void *arg), void *arg)
{
    weft_fiber_spec spec = { .function = function, .arg = arg };
    struct wf_scope_report reporting = { report, set };
    int err = weft_try_reserve(set->sender);
    if (err != 0) {
        return err;
    }
    add_task(results_of(set)); /* Before its result can arrive. */
    err = wf_scope_go(&set->scope, &spec, &reporting, "weft_join_set_go");
    if (err != 0) {
        struct wf_turn turn;
        weft_unreserve(set->sender);
        wf_turn_begin(&turn, results_of(set));
        remove_task(results_of(set), &turn);
        wf_turn_end(&turn);
    }
    return err;
}

/* J1 and J2. The operation's data points to the storage for the result. */
static int next_take(struct wf_op *op, struct wf_turn *turn)
{
    struct results *results = op->object;
    const weft_join_set *set = wf_container_of((uint64_t(*)[4])op->object, weft_join_set, opaque_);
    if (results->count == 0) {
        return -ENOENT;
    }
    int result = weft_try_recv(set->receiver, op->data);
    if (result == 0) {
        remove_task(results, turn);
    }
    return result == -EAGAIN ? WEFT_PENDING : result;
}

/* J3: woken by a task, or because the set is empty. */
static int next_end(struct wf_op *op)
{
    if (op->result != 0) {
        return op->result;
    }
    struct wf_turn turn;
    wf_turn_begin(&turn, op->object);
    int result = next_take(op, &turn);
    wf_turn_end(&turn);
    return result;
}

static const struct wf_op_ops next_ops = { .future = WF_OP_FUTURE,
                                           .take = next_take,
                                           .queue = offsetof(struct results, waiters),
                                           .end = next_end };

int weft_join_set_next(weft_join_set *set, weft_joined *joined, weft_time deadline)
{
    weft_op op;
    wf_op_init(&op, &next_ops, results_of(set))->data = joined;
    int err = wf_await_begin(&deadline, "weft_join_set_next", "call it on a fiber");
    return err == 0 ? wf_op_await_slowly(&op, deadline) : err;
}

size_t weft_join_set_count(const weft_join_set *set)
{
    struct results *results = results_of((weft_join_set *)(uintptr_t)set);
    (void)wf_latch_lock(&results->word);
    size_t count = results->count;
    wf_latch_unlock(&results->word, 0);
    return count;
}

void weft_join_set_cancel(weft_join_set *set)
{
    weft_scope_cancel(&set->scope);
}

int weft_join_set_end(weft_join_set *set)
{
    wf_await_must_suspend("weft_join_set_end", "call it on a fiber");
    if (wf_unlikely(set->sender == NULL)) {
        wf_fatal("weft_join_set_end: this set was ended before");
    }
    int result = wf_scope_end(&set->scope, "weft_join_set_end");
    weft_sender_drop(set->sender);
    weft_receiver_drop(set->receiver);
    set->sender = NULL;
    return result;
}
