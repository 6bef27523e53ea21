/* SPDX-License-Identifier: MIT */
/*
 * join_set_model.c - src/flow/join_set.c, with plain threads as children and as callers: each
 * result is received once, no caller misses the last one, and no child touches a set that has
 * ended.
 *
 * A wait that is given up by its deadline takes the same path as a canceled one.
 */
#include <weft/join_set.h>

#include <stdlib.h>

#include "scope_rig.h"

enum {
    DEADLINE = 1000,
};

static weft_join_set *set;

/* --- Children --------------------------------------------------------------------------------- */

/* Plain: a caller that has received the result sees it, and so does the end of the set. */
static int done[CHILDREN_MAX];

static int end_at_once(void *arg)
{
    *(int *)arg = 1;
    return (int)((int *)arg - done);
}

/* Waits forever if it is not canceled. */
static int wait_for_cancel(void *arg)
{
    mc_assert(weft_event_wait(&current->told, WEFT_NEVER) == 0);
    return end_at_once(arg);
}

static void go(int (*function)(void *arg), unsigned child)
{
    mc_assert(weft_join_set_go(set, function, &done[child]) == 0);
}

/* --- Callers ---------------------------------------------------------------------------------- */

static _Atomic(unsigned) received; /* a bit for each child */

static int next(weft_time deadline)
{
    weft_joined joined = { 0 };
    int result = weft_join_set_next(set, &joined, deadline);
    if (result == 0) {
        int *arg = joined.arg;
        mc_assert(*arg == 1);
        mc_assert(joined.result == (int)(arg - done));
        unsigned bit = 1u << joined.result;
        mc_assert((wf_fetch_or_relaxed(&received, bit) & bit) == 0);
    }
    return result;
}

/* Receives results until the set has no more tasks. */
static void receive_rest(void *arg)
{
    (void)arg;
    int result;
    while ((result = next(WEFT_NEVER)) == 0) {
    }
    mc_assert(result == -ENOENT);
}

static void receive_or_give_up(void *arg)
{
    (void)arg;
    int result = next(DEADLINE);
    mc_assert(result == 0 || result == WEFT_ETIMEDOUT || result == -ENOENT);
    mc_note(result == 0 ? 1 : result == WEFT_ETIMEDOUT ? 2 : 3);
}

static void cancel_set(void *arg)
{
    (void)arg;
    weft_join_set_cancel(set);
}

/* --- Tests ------------------------------------------------------------------------------------ */

/* The set is in memory that is freed after its end. */
static void begin(size_t limit)
{
    weft_scope_options options = { .limit = limit };
    set = malloc(sizeof *set);
    mc_assert(set != NULL);
    mc_assert(weft_join_set_begin(set, &options) == 0);
}

static int end(unsigned children)
{
    int result = weft_join_set_end(set);
    for (unsigned i = 0; i < children; i++) {
        mc_assert(done[i] == 1);
    }
    free(set);
    mc_join();
    return result;
}

/* Ends a set whose results have all been received. No other thread uses the set any more. */
static void end_received(unsigned children)
{
    mc_assert(weft_join_set_count(set) == 0);
    mc_assert(wf_load_relaxed(&received) == (1u << children) - 1);
    mc_assert(end(children) == 0);
}

/*
 * Goal:   a child that ends while the owner waits for the next result wakes it.
 */
static void child_ends_while_owner_waits(void)
{
    begin(0);
    go(end_at_once, 0);
    go(end_at_once, 1);
    mc_assert(next(WEFT_NEVER) == 0);
    mc_assert(next(WEFT_NEVER) == 0);
    mc_assert(next(WEFT_NEVER) == -ENOENT);
    end_received(2);
}

/*
 * Goal:   a wait that is given up while a child ends loses no result.
 * Method: the owner asks again.
 */
static void owner_gives_up_while_child_ends(void)
{
    begin(0);
    go(end_at_once, 0);
    int result = next(DEADLINE);
    mc_assert(result == 0 || result == WEFT_ETIMEDOUT);
    mc_note(result == 0 ? 1 : 2);
    mc_assert(next(WEFT_NEVER) == (result == 0 ? -ENOENT : 0));
    end_received(1);
}

/* Other threads that use the set. The owner waits for them before it ends the set. */
struct other {
    void (*function)(void *arg);
    weft_event has_ended;
};

static struct other others[2];
static unsigned others_count;

static void run_other(void *arg)
{
    struct other *self = arg;
    self->function(NULL);
    weft_event_set(&self->has_ended);
}

static void go_other(void (*function)(void *arg))
{
    struct other *other = &others[others_count++];
    other->function = function;
    mc_go(run_other, other);
}

static void await_others(void)
{
    for (unsigned i = 0; i < others_count; i++) {
        mc_assert(weft_event_wait(&others[i].has_ended, WEFT_NEVER) == 0);
    }
}

/*
 * Goal:   the wake of a caller that gives up is not lost for another caller, and the caller that
 *         receives the last result wakes the others.
 * Method: one child for two callers, of which one may give up.
 */
static void one_of_two_callers_gives_up(void)
{
    begin(0);
    go(end_at_once, 0);
    go_other(receive_or_give_up);
    receive_rest(NULL);
    await_others();
    end_received(1);
}

/*
 * Goal:   two results go to two callers, which both find the end of the set.
 */
static void two_callers_share_two_results(void)
{
    begin(0);
    go(end_at_once, 0);
    go(end_at_once, 1);
    go_other(receive_rest);
    receive_rest(NULL);
    await_others();
    end_received(2);
}

/*
 * Goal:   a task waits for capacity, which a child that ends frees, whether or not its result was
 *         received.
 */
static void task_waits_for_capacity(void)
{
    begin(1);
    go(end_at_once, 0);
    go(end_at_once, 1);
    receive_rest(NULL);
    end_received(2);
}

/*
 * Goal:   a task that is refused while it waits for capacity does not count: a caller that waits
 *         for its result finds the set empty.
 */
static void set_is_canceled_while_task_waits_for_capacity(void)
{
    begin(1);
    go(wait_for_cancel, 0);
    go_other(receive_rest);
    go_other(cancel_set);
    mc_assert(weft_join_set_go(set, end_at_once, &done[1]) == WEFT_ECANCELED);
    await_others();
    mc_assert(wf_load_relaxed(&received) == 1);
    mc_assert(end(1) == WEFT_ECANCELED);
}

/*
 * Goal:   the end of a set waits for its children, which do not touch it afterwards. Results that
 *         were not received are dropped.
 */
static void set_ends_while_children_end(void)
{
    begin(0);
    go(end_at_once, 0);
    go(end_at_once, 1);
    mc_assert(end(2) == 0);
}

static void set_ends_after_one_of_two_results(void)
{
    begin(0);
    go(end_at_once, 0);
    go(end_at_once, 1);
    mc_assert(next(WEFT_NEVER) == 0);
    mc_assert(end(2) == 0);
}

#define SAMPLED .mode = MC_PCT, .runs = 20000, .leaks = true

static const struct mc_test tests[] = {
    { .name = "child_ends_while_owner_waits", .run = child_ends_while_owner_waits, SAMPLED },
    { .name = "owner_gives_up_while_child_ends",
      .run = owner_gives_up_while_child_ends,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2),
      SAMPLED },
    { .name = "one_of_two_callers_gives_up",
      .run = one_of_two_callers_gives_up,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2, 3),
      SAMPLED },
    { .name = "two_callers_share_two_results", .run = two_callers_share_two_results, SAMPLED },
    { .name = "task_waits_for_capacity", .run = task_waits_for_capacity, SAMPLED },
    { .name = "set_is_canceled_while_task_waits_for_capacity",
      .run = set_is_canceled_while_task_waits_for_capacity,
      SAMPLED },
    { .name = "set_ends_while_children_end", .run = set_ends_while_children_end, SAMPLED },
    { .name = "set_ends_after_one_of_two_results",
      .run = set_ends_after_one_of_two_results,
      SAMPLED },
};

MC_MAIN(tests)
