/* SPDX-License-Identifier: MIT */
/*
 * scope_model.c - src/flow/scope.c, with plain threads as children: who ends a scope has seen
 * what all children did, and nobody touches it after that; who runs when it is cancelled is
 * told, and who comes later is, too.
 */
#include <weft/scope.h>

#include <stdlib.h>

#include "scope_rig.h"

/* --- Children --------------------------------------------------------------------------------- */

static int done[CHILDREN_MAX]; /* plain: who ends the scope sees it */

static int end_at_once(void *arg)
{
    *(int *)arg = 1;
    return 0;
}

static int fail(void *arg)
{
    *(int *)arg = 1;
    return -EIO;
}

/* If nobody tells it, it waits for ever. */
static int wait_to_be_told(void *arg)
{
    mc_assert(weft_event_wait(&current->told, WEFT_NEVER) == 0);
    *(int *)arg = 1;
    return WEFT_ECANCELED;
}

/* The scope is in memory that is freed behind its end. */
static weft_scope *begin(size_t limit)
{
    weft_scope_options options = { .limit = limit };
    weft_scope *scope = malloc(sizeof *scope);
    mc_assert(scope != NULL);
    weft_scope_begin(scope, &options);
    return scope;
}

static int end(weft_scope *scope, unsigned children)
{
    int result = weft_scope_end(scope);
    for (unsigned i = 0; i < children; i++) {
        mc_assert(done[i] == 1);
    }
    free(scope);
    mc_join();
    return result;
}

static void two_children_end(void)
{
    weft_scope *scope = begin(0);
    mc_assert(weft_scope_go(scope, end_at_once, &done[0]) == 0);
    mc_assert(weft_scope_go(scope, end_at_once, &done[1]) == 0);
    mc_assert(end(scope, 2) == 0);
}

static void one_waits_for_room(void)
{
    weft_scope *scope = begin(1);
    mc_assert(weft_scope_go(scope, end_at_once, &done[0]) == 0);
    mc_assert(weft_scope_go(scope, end_at_once, &done[1]) == 0);
    mc_assert(end(scope, 2) == 0);
}

/* One fails, while the other one may not have begun. */
static void one_child_fails(void)
{
    weft_scope *scope = begin(0);
    mc_assert(weft_scope_go(scope, fail, &done[0]) == 0);
    int gone = weft_scope_go(scope, wait_to_be_told, &done[1]);
    mc_assert(gone == 0 || gone == WEFT_ECANCELED);
    mc_note(gone == 0 ? 1 : 2);
    mc_assert(end(scope, gone == 0 ? 2 : 1) == -EIO);
}

static void it_is_cancelled(void)
{
    weft_scope *scope = begin(0);
    mc_assert(weft_scope_go(scope, wait_to_be_told, &done[0]) == 0);
    mc_assert(weft_scope_go(scope, end_at_once, &done[1]) == 0);
    weft_scope_cancel(scope);
    mc_assert(end(scope, 2) == WEFT_ECANCELED);
}

static void two_are_told(void)
{
    weft_scope *scope = begin(0);
    mc_assert(weft_scope_go(scope, wait_to_be_told, &done[0]) == 0);
    mc_assert(weft_scope_go(scope, wait_to_be_told, &done[1]) == 0);
    weft_scope_cancel(scope);
    mc_assert(end(scope, 2) == WEFT_ECANCELED);
}

#define SAMPLED .mode = MC_PCT, .runs = 20000, .leaks = true

static const struct mc_test tests[] = {
    { .name = "two_children_end", .run = two_children_end, SAMPLED },
    { .name = "one_waits_for_room", .run = one_waits_for_room, SAMPLED },
    { .name = "one_child_fails", .run = one_child_fails, .seen = MC_OUTCOMES(1, 2), SAMPLED },
    { .name = "it_is_cancelled", .run = it_is_cancelled, SAMPLED },
    { .name = "two_are_told", .run = two_are_told, SAMPLED },
};

MC_MAIN(tests)
