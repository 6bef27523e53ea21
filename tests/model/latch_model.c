/* SPDX-License-Identifier: MIT */
/*
 * latch_model.c - src/base/latch.c: one at a time has the latch, with the object's bits, and
 * who sleeps is woken.
 */
#include "base/latch.h"

#include <stdlib.h>

#include "mc.h"

enum {
    ONE = 1 << WF_LATCH_SHIFT,
};

struct object {
    _Atomic(uint32_t) word;
    int guarded; /* plain: a race is a latch that two have */
};

static struct object object;

static void add_one(void *arg)
{
    (void)arg;
    uint32_t bits = wf_latch_lock(&object.word);
    object.guarded++;
    wf_latch_unlock(&object.word, bits + ONE);
}

static void add_two(void *arg)
{
    add_one(arg);
    add_one(arg);
}

/* As a quick operation does. */
static void add_quickly(void *arg)
{
    (void)arg;
    uint32_t word = wf_load_relaxed(&object.word);
    if (!wf_latch_is_open(word) || !wf_cas_relaxed(&object.word, &word, word + ONE)) {
        uint32_t bits = wf_latch_lock(&object.word);
        wf_latch_unlock(&object.word, bits + ONE);
    }
}

static void end(int guarded, uint32_t bits)
{
    mc_join();
    mc_assert(object.guarded == guarded);
    mc_assert(wf_load_relaxed(&object.word) == bits * ONE);
}

/*
 * Goal:   one at a time, and each sees what the last one wrote, and its bits.
 * Method: two threads twice each; three threads, one of which may be left asleep by a mistake.
 */
static void two_threads_twice(void)
{
    mc_go(add_two, NULL);
    add_two(NULL);
    end(4, 4);
}

static void three_threads(void)
{
    mc_go(add_one, NULL);
    mc_go(add_one, NULL);
    add_one(NULL);
    end(3, 3);
}

/*
 * Goal:   bits that change by a CAS while the latch is open are not lost.
 * Method: a quick operation beside two others.
 */
static void quick_operations(void)
{
    mc_go(add_quickly, NULL);
    mc_go(add_one, NULL);
    add_one(NULL);
    end(2, 3);
}

/*
 * Goal:   an unlock is the last access to the object.
 * Method: the last one who needs it frees it.
 */
static void give_up_one(void *arg)
{
    struct object *counted = arg;
    uint32_t bits = wf_latch_lock(&counted->word) - ONE;
    wf_latch_unlock(&counted->word, bits);
    if (bits == 0) {
        free(counted);
    }
}

static void the_last_one_frees_it(void)
{
    struct object *counted = calloc(1, sizeof *counted);
    wf_store_relaxed(&counted->word, 2u * ONE);
    mc_go(give_up_one, counted);
    give_up_one(counted);
    mc_join();
}

static const struct mc_test tests[] = {
    { .name = "two_threads_twice", .run = two_threads_twice },
    { .name = "three_threads", .run = three_threads, .preemptions = 3 },
    { .name = "quick_operations", .run = quick_operations, .preemptions = 3 },
    { .name = "the_last_one_frees_it", .run = the_last_one_frees_it, .leaks = true },
};

MC_MAIN(tests)
