/* SPDX-License-Identifier: MIT */
/*
 * steal.c - rows for the single steps of fork-join: a fork, a join of a fork that was not
 * stolen, a steal, and waking a worker for a fork.
 *
 * The same steps are measured for the deque, which forks do not use
 * (docs/adr/0011-forks-of-a-strand.md).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "harness.h"
#include "queue/deque.h"
#include "queue/jobs.h"
#include "work.h"

enum {
    FORKS = 200, /* in a row, followed by as many joins */
    ROUNDS = 10000,
    STEALS = 60000, /* from one full fork stack */
    WAKES = 200,
};

/* --- Forks and joins -------------------------------------------------------------------- */

static __attribute__((noinline)) void nothing(void *arg)
{
    __asm__ volatile("" : : "r"(arg) : "memory");
}

struct steps {
    double fork_ns;
    double join_ns;
};

/* The call of the forked function is subtracted from the cost of a join. */
static int steps_main(void *arg)
{
    static weft_forked forks[FORKS];
    struct steps *steps = arg;
    weft_time forking = 0;
    weft_time joining = 0;
    weft_time calling = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        weft_time start = weft_now();
        for (unsigned i = 0; i < FORKS; i++) {
            weft_fork(&forks[i], nothing, &forks[i]);
        }
        weft_time forked = weft_now();
        for (unsigned i = FORKS; i-- > 0;) {
            weft_fork_join(&forks[i]);
        }
        weft_time joined = weft_now();
        for (unsigned i = FORKS; i-- > 0;) {
            nothing(&forks[i]);
        }
        forking += forked - start;
        joining += joined - forked;
        calling += weft_now() - joined;
    }
    steps->fork_ns = (double)forking / FORKS / ROUNDS;
    steps->join_ns = (double)(joining - calling) / FORKS / ROUNDS;
    return 0;
}

static double fork_step(const struct bench_run *run)
{
    struct steps steps;
    bench_run_fiber(run, steps_main, &steps);
    return steps.fork_ns;
}

static double join_step(const struct bench_run *run)
{
    struct steps steps;
    bench_run_fiber(run, steps_main, &steps);
    return steps.join_ns;
}

/* A pop has a full fence, which forks avoid. */
static double deque_steps(double *pop_ns)
{
    static int items[FORKS];
    struct wf_deque deque;
    weft_time pushing = 0;
    weft_time popping = 0;
    BENCH_CHECK(wf_deque_init(&deque, &wf_alloc_default) == 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        weft_time start = weft_now();
        for (unsigned i = 0; i < FORKS; i++) {
            BENCH_CHECK(wf_deque_push(&deque, &items[i]) == 0);
        }
        weft_time pushed = weft_now();
        for (unsigned i = FORKS; i-- > 0;) {
            BENCH_CHECK(wf_deque_pop(&deque) == &items[i]);
        }
        pushing += pushed - start;
        popping += weft_now() - pushed;
    }
    wf_deque_fini(&deque);
    *pop_ns = (double)popping / FORKS / ROUNDS;
    return (double)pushing / FORKS / ROUNDS;
}

static double deque_push(const struct bench_run *run)
{
    double pop_ns;
    (void)run;
    return deque_steps(&pop_ns);
}

static double deque_pop(const struct bench_run *run)
{
    double pop_ns;
    (void)run;
    (void)deque_steps(&pop_ns);
    return pop_ns;
}

/* --- Steals ----------------------------------------------------------------------------- */

static struct wf_jobs jobs;
static struct wf_deque deque;

struct thief {
    enum wf_steal (*steal)(void);
    pthread_barrier_t *start;
    uint64_t taken;
    weft_time took;
    pthread_t thread;
};

static enum wf_steal steal_job(void)
{
    struct wf_job *job;
    return wf_jobs_steal(&jobs, &job);
}

static enum wf_steal steal_item(void)
{
    void *item;
    return wf_deque_steal(&deque, &item);
}

static void *thief_main(void *arg)
{
    struct thief *thief = arg;
    (void)pthread_barrier_wait(thief->start);
    weft_time start = weft_now();
    enum wf_steal answer;
    do {
        answer = thief->steal();
        thief->taken += answer == WF_STEAL_SUCCESS;
    } while (answer != WF_STEAL_EMPTY);
    thief->took = weft_now() - start;
    return NULL;
}

/* Returns the cost of a steal for each thief, with the given number of thieves at the same time. */
static double steal_all(unsigned thieves, enum wf_steal (*steal)(void))
{
    pthread_barrier_t start;
    struct thief all[2];
    BENCH_CHECK(pthread_barrier_init(&start, NULL, thieves) == 0);
    for (unsigned i = 0; i < thieves; i++) {
        all[i] = (struct thief){ .steal = steal, .start = &start };
        BENCH_CHECK(pthread_create(&all[i].thread, NULL, thief_main, &all[i]) == 0);
    }
    uint64_t taken = 0;
    double ns = 0;
    for (unsigned i = 0; i < thieves; i++) {
        BENCH_CHECK(pthread_join(all[i].thread, NULL) == 0);
        taken += all[i].taken;
        ns += (double)all[i].took;
    }
    BENCH_CHECK(taken == STEALS);
    (void)pthread_barrier_destroy(&start);
    return ns / STEALS;
}

static double steal_jobs(unsigned thieves)
{
    struct wf_job *slots = calloc(STEALS, sizeof *slots);
    BENCH_CHECK(slots != NULL);
    wf_jobs_init(&jobs, slots, STEALS);
    jobs.head = slots + STEALS;
    wf_jobs_publish(&jobs, STEALS);
    double ns = steal_all(thieves, steal_job);
    free(slots);
    return ns;
}

static double steal_by_one(const struct bench_run *run)
{
    (void)run;
    return steal_jobs(1);
}

static double steal_by_two(const struct bench_run *run)
{
    (void)run;
    return steal_jobs(2);
}

static double steal_items(unsigned thieves)
{
    static int item;
    BENCH_CHECK(wf_deque_init(&deque, &wf_alloc_default) == 0);
    for (unsigned i = 0; i < STEALS; i++) {
        BENCH_CHECK(wf_deque_push(&deque, &item) == 0);
    }
    double ns = steal_all(thieves, steal_item);
    wf_deque_fini(&deque);
    return ns;
}

static double deque_steal(const struct bench_run *run)
{
    (void)run;
    return steal_items(1);
}

static double deque_steal_by_two(const struct bench_run *run)
{
    (void)run;
    return steal_items(2);
}

/* --- Wake-ups --------------------------------------------------------------------------- */

struct wake {
    weft_time forked;
    _Atomic(weft_time) begun;
};

static void note_begin(void *arg)
{
    struct wake *wake = arg;
    atomic_store(&wake->begun, weft_now());
}

/*
 * par.wake: from a fork until a worker that was asleep starts to run it. The forking worker
 * computes for a while first. If it slept instead, Linux would often wake the other worker on
 * the same CPU, where it would have to wait.
 */
static int wake_main(void *arg)
{
    double samples[WAKES];
    for (unsigned i = 0; i < WAKES; i++) {
        struct wake wake = { 0 };
        weft_forked forked;
        work_busy(WEFT_MS); /* By then the other worker sleeps. */
        wake.forked = weft_now();
        weft_fork(&forked, note_begin, &wake);
        while (atomic_load_explicit(&wake.begun, memory_order_relaxed) == 0) {
        }
        weft_fork_join(&forked);
        samples[i] = (double)(atomic_load(&wake.begun) - wake.forked);
    }
    *(double *)arg = bench_median(samples, WAKES);
    return 0;
}

static double wake(const struct bench_run *run)
{
    double ns;
    bench_run_fiber(run, wake_main, &ns);
    return ns;
}

const struct bench_row bench_steal_rows[] = {
    { .name = "par.fork", .unit = "ns", .run = fork_step, .warmups = 1, .workers_max = 1 },
    { .name = "par.join_own", .unit = "ns", .run = join_step, .warmups = 1, .workers_max = 1 },
    { .name = "par.steal", .unit = "ns", .run = steal_by_one, .warmups = 1, .workers_max = 1 },
    { .name = "par.steal2", .unit = "ns", .run = steal_by_two, .warmups = 1, .workers_min = 2 },
    { .name = "par.wake", .unit = "ns", .run = wake, .warmups = 1, .workers_min = 2 },
    { .name = "par.deque_push", .unit = "ns", .run = deque_push, .warmups = 1, .workers_max = 1 },
    { .name = "par.deque_pop", .unit = "ns", .run = deque_pop, .warmups = 1, .workers_max = 1 },
    { .name = "par.deque_steal", .unit = "ns", .run = deque_steal, .warmups = 1, .workers_max = 1 },
    { .name = "par.deque_steal2",
      .unit = "ns",
      .run = deque_steal_by_two,
      .warmups = 1,
      .workers_min = 2 },
    { 0 },
};
