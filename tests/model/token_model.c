/* SPDX-License-Identifier: MIT */
/*
 * token_model.c - src/flow/token.c, with plain threads: whoever waits for a token, or comes
 * into a tree, during a cancel is not passed over; a function is called once or taken back,
 * and not called after that.
 */
#include <weft/token.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "sync_rig.h"

static weft_token root;
static weft_token child;
static int written; /* plain: before the cancel */

void weft_cancel(weft_task *task)
{
    (void)task;
    mc_assert(!"no task");
}

static void cancel_root(void *arg)
{
    (void)arg;
    written = 1;
    weft_token_cancel(&root);
}

static void cancel_child(void *arg)
{
    (void)arg;
    weft_token_cancel(&child);
}

/* --- Waiting ---------------------------------------------------------------------------------- */

static void wait_for_root(void *arg)
{
    (void)arg;
    mc_assert(weft_token_wait(&root, WEFT_NEVER) == 0);
    mc_assert(written == 1);
}

static void wait_for_child(void *arg)
{
    (void)arg;
    mc_assert(weft_token_wait(&child, WEFT_NEVER) == 0);
    mc_assert(weft_token_is_cancelled(&root) && written == 1);
}

static void wait_in_time(void *arg)
{
    (void)arg;
    int err = weft_token_wait(&root, DEADLINE);
    mc_assert(err == 0 ? written == 1 : err == WEFT_ETIMEDOUT);
    mc_note(err == 0 ? 1 : 2);
}

static void one_waits(void)
{
    RIG_RUN(cancel_root, wait_for_root);
}

static void one_waits_below(void)
{
    weft_token_init(&child, &root);
    RIG_RUN(cancel_root, wait_for_child);
    weft_token_fini(&child);
}

static void one_gives_up(void)
{
    RIG_RUN(cancel_root, wait_in_time, wait_for_root);
}

/* --- Coming and going ------------------------------------------------------------------------- */

static void come_and_wait(void *arg)
{
    weft_token_init(&child, &root);
    wait_for_child(arg);
    weft_token_fini(&child);
}

static void one_comes(void)
{
    RIG_RUN(cancel_root, come_and_wait);
}

static void come_and_go(void *arg)
{
    (void)arg;
    weft_token_init(&child, &root);
    mc_note(weft_token_is_cancelled(&child) ? 1 : 2);
    weft_token_fini(&child);
}

static void one_goes(void)
{
    RIG_RUN(cancel_root, come_and_go);
    weft_token_fini(&root);
}

/* --- Functions -------------------------------------------------------------------------------- */

static int calls; /* plain: who has removed it sees what it did */

static void count_call(void *arg)
{
    (void)arg;
    calls++;
}

static void add_and_remove(void *arg)
{
    (void)arg;
    weft_on_cancel on_cancel;
    weft_on_cancel_add(&on_cancel, &child, count_call, NULL);
    bool is_in_time = weft_on_cancel_remove(&on_cancel);
    mc_assert(calls == (is_in_time ? 0 : 1));
    mc_note(is_in_time ? 1 : 2);
}

static void a_function_is_called_or_not(void)
{
    weft_token_init(&child, &root);
    RIG_RUN(cancel_root, add_and_remove);
    weft_token_fini(&child);
}

static void two_cancel(void)
{
    weft_token_init(&child, &root);
    RIG_RUN(cancel_root, cancel_child, add_and_remove);
    mc_assert(calls <= 1);
    weft_token_fini(&child);
}

/* --- Functions that remove each other, and themselves ----------------------------------------- */

static weft_token trees[2];
static weft_on_cancel *crossed[2];
static int ended[2];

static void remove_other(void *arg)
{
    size_t self = (size_t)arg;
    (void)weft_on_cancel_remove(crossed[1 - self]);
    ended[self]++;
}

static void cancel_tree(void *arg)
{
    weft_token_cancel(&trees[(size_t)arg]);
}

static void cancel_first(void *arg)
{
    (void)arg;
    cancel_tree((void *)0);
}

static void cancel_second(void *arg)
{
    (void)arg;
    cancel_tree((void *)1);
}

/* Goal: a wait that closes the cycle is a deadlock, and none is lost. */
static void two_functions_remove_each_other(void)
{
    weft_on_cancel both[2];
    for (size_t i = 0; i < 2; i++) {
        crossed[i] = &both[i];
        weft_on_cancel_add(&both[i], &trees[i], remove_other, (void *)i);
    }
    RIG_RUN(cancel_first, cancel_second);
    for (size_t i = 0; i < 2; i++) {
        (void)weft_on_cancel_remove(&both[i]);
        weft_token_fini(&trees[i]);
    }
    mc_assert(ended[0] <= 1 && ended[1] <= 1);
    mc_note(ended[0] + ended[1]);
}

static weft_on_cancel *own;

static void remove_itself(void *arg)
{
    (void)arg;
    mc_assert(!weft_on_cancel_remove(own));
    wf_free(&wf_alloc_default, own, sizeof *own, _Alignof(weft_on_cancel));
}

/* Goal: a function that has removed itself may free its registration. */
static void a_function_removes_itself(void)
{
    own = wf_alloc_zeroed(&wf_alloc_default, sizeof *own, _Alignof(weft_on_cancel));
    weft_on_cancel_add(own, &root, remove_itself, NULL);
    RIG_RUN(cancel_root, wait_for_root);
    weft_token_fini(&root);
}

static void remove_itself_and_count(void *arg)
{
    mc_assert(!weft_on_cancel_remove(arg));
    calls++;
}

static void remove_from_outside(void *arg)
{
    if (!weft_on_cancel_remove(arg)) {
        mc_assert(calls == 1); /* It has returned. */
    }
}

/* Goal: a remover waits for a function that has removed itself and still runs. */
static void removed_by_itself_and_from_outside(void)
{
    static weft_on_cancel twice;
    weft_on_cancel_add(&twice, &root, remove_itself_and_count, &twice);
    mc_go(cancel_root, NULL);
    remove_from_outside(&twice);
    mc_join();
    weft_token_fini(&root);
}

#define SAMPLED .mode = MC_PCT, .runs = 20000, .leaks = true

static const struct mc_test tests[] = {
    { .name = "one_waits", .run = one_waits, SAMPLED },
    { .name = "one_waits_below", .run = one_waits_below, SAMPLED },
    { .name = "one_gives_up",
      .run = one_gives_up,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2),
      SAMPLED },
    { .name = "one_comes", .run = one_comes, SAMPLED },
    { .name = "one_goes", .run = one_goes, .seen = MC_OUTCOMES(1, 2), SAMPLED },
    { .name = "a_function_is_called_or_not",
      .run = a_function_is_called_or_not,
      .seen = MC_OUTCOMES(1, 2),
      SAMPLED },
    { .name = "two_cancel", .run = two_cancel, .seen = MC_OUTCOMES(1, 2), SAMPLED },
    { .name = "two_functions_remove_each_other",
      .run = two_functions_remove_each_other,
      .seen = MC_OUTCOMES(1, 2),
      SAMPLED },
    { .name = "a_function_removes_itself", .run = a_function_removes_itself, SAMPLED },
    { .name = "removed_by_itself_and_from_outside",
      .run = removed_by_itself_and_from_outside,
      SAMPLED },
};

MC_MAIN(tests)
