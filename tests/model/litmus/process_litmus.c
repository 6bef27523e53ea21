/* SPDX-License-Identifier: MIT */
/*
 * process_litmus.c - what a program takes for granted: globals are fresh at the
 * start of each execution, thread-locals are each thread's own, addresses do not
 * depend on the schedule, memory is used again for other things.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "litmus.h"

static int counter;
static int initialised = 7;
static char large[65536];
static atomic_int x;
static _Thread_local int own = 5;
static _Thread_local int zeroed;

static void change_x(void *arg)
{
    (void)arg;
    store(&x, 1, RLX);
}

/* It has several executions, and each must begin alike. */
static void globals_are_fresh(void)
{
    mc_assert(counter == 0);
    mc_assert(initialised == 7);
    mc_assert(large[sizeof large - 1] == 0);
    mc_go(change_x, NULL);
    counter += 1 + load(&x, RLX);
    initialised = 8;
    large[sizeof large - 1] = 1;
    mc_join();
}

static void use_locals(void *arg)
{
    (void)arg;
    mc_assert(own == 5);
    mc_assert(zeroed == 0);
    own++;
    (void)fetch_add(&x, 1, RLX);
    zeroed++;
    (void)fetch_add(&x, 1, RLX);
    mc_assert(own == 6);
    mc_assert(zeroed == 1);
}

static void locals_are_own(void)
{
    own = 1;
    mc_go(use_locals, NULL);
    mc_go(use_locals, NULL);
    mc_join();
    mc_assert(own == 1);
}

static uintptr_t addresses[2];

static void allocate(void *arg)
{
    uintptr_t *address = arg;
    (void)fetch_add(&x, 1, RLX);
    void *memory = malloc(16);
    *address = (uintptr_t)memory;
    (void)fetch_add(&x, 1, RLX);
    free(memory);
}

/* Over all executions there is one pair of addresses. */
static void addresses_do_not_depend_on_order(void)
{
    mc_go(allocate, &addresses[0]);
    mc_go(allocate, &addresses[1]);
    mc_join();
    mc_note((int)(addresses[0] * 31 + addresses[1]) & 0xffff ? 1 : 2);
    mc_assert(addresses[0] != addresses[1]);
}

static void use_as_atomic(atomic_int *word)
{
    store(word, 3, RLX);
    (void)fetch_add(word, 1, RLX);
}

/* Memory that was atomic, is plain, and atomic again: the old messages are gone. */
static void atomic_memory_is_reused(void)
{
    union {
        atomic_int atomic;
        int plain;
    } memory;
    use_as_atomic(&memory.atomic);
    memset(&memory, 0, sizeof memory);
    mc_assert(load(&memory.atomic, RLX) == 0);
    *(volatile int *)&memory.plain = 9;
    mc_assert(load(&memory.atomic, RLX) == 9);
    use_as_atomic(&memory.atomic);
    mc_assert(*(volatile int *)&memory.plain == 4);
}

static void *return_arg(void *arg)
{
    if (counter != 0) {
        pthread_exit(arg);
    }
    return arg;
}

static void join_returns_the_result(void)
{
    counter = (int)mc_choose(2);
    pthread_t thread;
    pthread_create(&thread, NULL, return_arg, &x);
    mc_assert(!pthread_equal(thread, pthread_self()));
    void *result;
    pthread_join(thread, &result);
    mc_assert(result == &x);
}

static void each_choice_is_made(void)
{
    unsigned first = mc_choose(3);
    unsigned second = mc_choose(2);
    mc_note((int)(10 * first + second));
}

static void note_arg(void)
{
    mc_note(*(const int *)mc_arg());
}

/* As many threads as there can be. */
static void many_threads(void)
{
    for (int i = 0; i < 15; i++) {
        mc_go(change_x, NULL);
    }
    mc_join();
    mc_assert(load(&x, RLX) == 1);
}

static const struct mc_test tests[] = {
    { .name = "globals_are_fresh", .run = globals_are_fresh, .cross_check = true },
    { .name = "locals_are_own", .run = locals_are_own, .cross_check = true },
    { .name = "addresses_do_not_depend_on_order",
      .run = addresses_do_not_depend_on_order,
      .leaks = true },
    { .name = "atomic_memory_is_reused", .run = atomic_memory_is_reused },
    { .name = "join_returns_the_result", .run = join_returns_the_result },
    { .name = "each_choice_is_made",
      .run = each_choice_is_made,
      .seen = MC_OUTCOMES(0, 1, 10, 11, 20, 21),
      .seen_only = true,
      .cross_check = true },
    { .name = "arg_is_given", .run = note_arg, .arg = &(const int){ 4 }, .seen = MC_OUTCOMES(4) },
    { .name = "many_threads", .run = many_threads, .mode = MC_RANDOM, .runs = 100 },
};

MC_MAIN(tests)
