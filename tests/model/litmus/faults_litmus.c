/* SPDX-License-Identifier: MIT */
/*
 * faults_litmus.c - every kind of fault that the checker reports, and beside it the
 * nearest thing that is none.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "litmus.h"

static atomic_int flag;
static int plain;
static char bytes[16];
static int *shared;
static _Atomic(int *) published;

static void with(void (*function)(void *))
{
    mc_go(function, NULL);
    mc_join();
}

/* --- Data races ------------------------------------------------------------------ */

static void write_plain(void *arg)
{
    (void)arg;
    plain = 1;
}

static void read_plain(void *arg)
{
    (void)arg;
    mc_note(plain);
}

static void write_and_write(void)
{
    mc_go(write_plain, NULL);
    mc_go(write_plain, NULL);
    mc_join();
}

static void write_and_read(void)
{
    mc_go(write_plain, NULL);
    mc_go(read_plain, NULL);
    mc_join();
}

static void read_and_read(void)
{
    mc_go(read_plain, NULL);
    mc_go(read_plain, NULL);
    mc_join();
    plain = 2;
}

static void write_after_join(void)
{
    with(write_plain);
    with(write_plain);
}

static void store_flag(void *arg)
{
    (void)arg;
    store(&flag, 1, RLX);
}

static void plain_read_of_an_atomic(void)
{
    mc_go(store_flag, NULL);
    mc_note(*(volatile int *)&flag);
    mc_join();
}

static void load_flag(void *arg)
{
    (void)arg;
    (void)load(&flag, RLX);
}

static void plain_write_of_an_atomic(void)
{
    mc_go(load_flag, NULL);
    *(volatile int *)&flag = 1;
    mc_join();
}

static void plain_read_beside_atomic_reads(void)
{
    mc_go(load_flag, NULL);
    mc_note(*(volatile int *)&flag);
    mc_join();
}

static void write_byte(void *arg)
{
    *(char *)arg = 1;
}

static void neighbouring_bytes(void)
{
    mc_go(write_byte, &bytes[0]);
    mc_go(write_byte, &bytes[1]);
    mc_join();
}

static void fill_bytes(void *arg)
{
    (void)arg;
    memset(bytes, 2, mc_choose(2) + 4);
}

static void byte_and_memset(void)
{
    mc_go(write_byte, &bytes[4]);
    mc_go(fill_bytes, NULL);
    mc_join();
}

static void byte_beyond_memset(void)
{
    mc_go(write_byte, &bytes[5]);
    mc_go(fill_bytes, NULL);
    mc_join();
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void add_under_lock(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&mutex);
    plain++;
    pthread_mutex_unlock(&mutex);
}

static void under_a_mutex(void)
{
    mc_go(add_under_lock, NULL);
    mc_go(add_under_lock, NULL);
    mc_join();
    mc_assert(plain == 2);
}

/* --- Memory ----------------------------------------------------------------------- */

static void use_after_free(void)
{
    volatile int *volatile memory = malloc(sizeof *memory);
    *memory = 1;
    free((void *)memory);
    *memory = 2;
}

static void atomic_use_after_free(void)
{
    atomic_int *volatile memory = malloc(sizeof *memory);
    store(memory, 1, RLX);
    free(memory);
    store(memory, 2, RLX);
}

static void use_past_the_end(void)
{
    volatile char *volatile memory = malloc(3);
    memory[3] = 1;
    free((void *)memory);
}

static void use_shared(void *arg)
{
    (void)arg;
    *shared = 2;
}

static void use_and_tell(void *arg)
{
    use_shared(arg);
    store(&flag, 1, RLX);
}

/* The use has come first, but nothing orders it before the free. */
static void free_unordered(void)
{
    shared = malloc(sizeof *shared);
    mc_go(use_and_tell, NULL);
    if (load(&flag, RLX) == 1) {
        free(shared);
    }
    mc_join();
}

static void free_after_use(void)
{
    shared = malloc(sizeof *shared);
    with(use_shared);
    free(shared);
}

static void publish_unordered(void *arg)
{
    (void)arg;
    int *memory = malloc(sizeof *memory);
    atomic_store_explicit(&published, memory, memory_order_relaxed);
}

/* The reader has the address, but nothing says that the memory is there. */
static void use_before_allocation(void)
{
    mc_go(publish_unordered, NULL);
    int *memory = atomic_load_explicit(&published, memory_order_relaxed);
    if (memory != NULL) {
        *memory = 1;
    }
    mc_join();
}

static void double_free(void)
{
    void *volatile memory = malloc(8);
    free(memory);
    free(memory);
}

static void wild_free(void)
{
    char *volatile memory = malloc(8);
    char *volatile inside = memory + 4;
    free(inside);
}

static void forget_memory(void)
{
    shared = malloc(sizeof *shared);
}

static void free_memory(void)
{
    int *memory = calloc(1, sizeof *memory);
    mc_assert(*memory == 0);
    memory = realloc(memory, 64);
    mc_assert(*memory == 0);
    free(memory);
    free(NULL);
    char *aligned = aligned_alloc(128, 256);
    mc_assert((uintptr_t)aligned % 128 == 0);
    free(aligned);
}

/* --- Waiting for ever --------------------------------------------------------------- */

static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;

static void lock_two(void *arg)
{
    bool is_reversed = arg != NULL;
    pthread_mutex_lock(is_reversed ? &other : &mutex);
    pthread_mutex_lock(is_reversed ? &mutex : &other);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_unlock(&other);
}

static void locks_in_a_circle(void)
{
    mc_go(lock_two, NULL);
    mc_go(lock_two, &plain);
    mc_join();
}

static void locks_in_order(void)
{
    mc_go(lock_two, NULL);
    mc_go(lock_two, NULL);
    mc_join();
}

static void *join_root(void *arg)
{
    pthread_join(*(pthread_t *)arg, NULL);
    return NULL;
}

static void joins_in_a_circle(void)
{
    pthread_t self = pthread_self();
    pthread_t thread;
    pthread_create(&thread, NULL, join_root, &self);
    pthread_join(thread, NULL);
}

static void endless_steps(void)
{
    for (;;) {
        (void)fetch_add(&flag, 1, RLX);
    }
}

static void endless_spin(void)
{
    while (load(&flag, RLX) == 0) {
    }
}

/* --- Death ---------------------------------------------------------------------------- */

static void null_pointer(void)
{
    volatile int *volatile nothing = NULL;
    *nothing = 1;
}

static int deep(int depth)
{
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth == 0 ? 0 : deep(depth - 1) + frame[0];
}

static void stack_overflow(void)
{
    (void)deep(1000000);
}

static void failed_mc_assert(void)
{
    mc_assert(plain == 1);
}

static void failed_assert(void)
{
    assert(plain == 1);
}

static void aborts(void)
{
    abort();
}

static void forbidden_outcome(void)
{
    mc_note(3);
}

#define FINE(test, ...)                                                                            \
    {                                                                                              \
        .name = #test, .run = test, __VA_ARGS__                                                    \
    }
#define WRONG(test, fault)                                                                         \
    {                                                                                              \
        .name = #test, .run = test, .expect = fault                                                \
    }

static const struct mc_test tests[] = {
    WRONG(write_and_write, MC_RACE),
    WRONG(write_and_read, MC_RACE),
    FINE(read_and_read, .seen = MC_OUTCOMES(0)),
    FINE(write_after_join, .leaks = true),
    WRONG(plain_read_of_an_atomic, MC_RACE),
    WRONG(plain_write_of_an_atomic, MC_RACE),
    FINE(plain_read_beside_atomic_reads, .seen = MC_OUTCOMES(0)),
    FINE(neighbouring_bytes, .leaks = true),
    WRONG(byte_and_memset, MC_RACE),
    FINE(byte_beyond_memset, .leaks = true),
    FINE(under_a_mutex, .leaks = true),

    WRONG(use_after_free, MC_USE_AFTER_FREE),
    WRONG(atomic_use_after_free, MC_USE_AFTER_FREE),
    WRONG(use_past_the_end, MC_USE_AFTER_FREE),
    WRONG(free_unordered, MC_USE_AFTER_FREE),
    FINE(free_after_use, .leaks = true),
    WRONG(use_before_allocation, MC_RACE),
    WRONG(double_free, MC_BAD_FREE),
    WRONG(wild_free, MC_BAD_FREE),
    { .name = "leak", .run = forget_memory, .leaks = true, .expect = MC_LEAK },
    FINE(forget_memory, .leaks = false),
    FINE(free_memory, .leaks = true),

    WRONG(locks_in_a_circle, MC_DEADLOCK),
    FINE(locks_in_order, .leaks = true),
    WRONG(joins_in_a_circle, MC_DEADLOCK),
    WRONG(endless_steps, MC_LIVELOCK),
    WRONG(endless_spin, MC_LIVELOCK),

    WRONG(null_pointer, MC_CRASH),
    WRONG(stack_overflow, MC_CRASH),
    WRONG(failed_mc_assert, MC_ASSERTION),
    WRONG(failed_assert, MC_ASSERTION),
    WRONG(aborts, MC_ASSERTION),
    { .name = "forbidden_outcome",
      .run = forbidden_outcome,
      .never = MC_OUTCOMES(3),
      .expect = MC_ASSERTION },
};

MC_MAIN(tests)
