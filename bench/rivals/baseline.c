/* SPDX-License-Identifier: MIT */
/*
 * baseline.c - a hand-written parallel loop without any library: a pool of threads that wait
 * for work, and one of two ways to share a range among them.
 *
 * With BASELINE_STATIC each thread gets an equal part of the range. With BASELINE_LOCKED the
 * threads take indices from a shared counter, under a lock, until none is left.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "../work.h"
#include "driver.h"

enum {
    WORKERS_MAX = 64,
};

typedef void (*loop_fn)(size_t i);

static struct pool {
    pthread_mutex_t lock;
    pthread_cond_t begun; /* a loop has started */
    pthread_cond_t over;  /* the last thread has finished its part */
    unsigned workers;
    unsigned running;
    uint64_t loops; /* started so far */
    loop_fn body;
    size_t next; /* first index that no thread has taken */
    size_t end;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER,
           .begun = PTHREAD_COND_INITIALIZER,
           .over = PTHREAD_COND_INITIALIZER };

#ifdef BASELINE_STATIC
#define PROGRAM "rival-static"

static void run_share(unsigned worker)
{
    size_t first = pool.end * worker / pool.workers;
    size_t end = pool.end * (worker + 1) / pool.workers;
    for (size_t i = first; i < end; i++) {
        pool.body(i);
    }
}
#else
#define PROGRAM "rival-locked"

static bool take(size_t *i)
{
    (void)pthread_mutex_lock(&pool.lock);
    bool is_left = pool.next < pool.end;
    *i = pool.next;
    pool.next += is_left;
    (void)pthread_mutex_unlock(&pool.lock);
    return is_left;
}

static void run_share(unsigned worker)
{
    (void)worker;
    size_t i;
    while (take(&i)) {
        pool.body(i);
    }
}
#endif

static void *worker_main(void *arg)
{
    unsigned worker = (unsigned)(uintptr_t)arg;
    for (uint64_t loop = 1;; loop++) {
        (void)pthread_mutex_lock(&pool.lock);
        while (pool.loops < loop) {
            (void)pthread_cond_wait(&pool.begun, &pool.lock);
        }
        (void)pthread_mutex_unlock(&pool.lock);
        run_share(worker);
        (void)pthread_mutex_lock(&pool.lock);
        if (--pool.running == 0) {
            (void)pthread_cond_signal(&pool.over);
        }
        (void)pthread_mutex_unlock(&pool.lock);
    }
    return NULL;
}

/* The threads live as long as the process. The caller is one of the workers. */
static void start(unsigned workers)
{
    DRIVER_CHECK(workers <= WORKERS_MAX);
    DRIVER_CHECK(pool.workers == 0 || pool.workers == workers);
    for (unsigned i = 1; pool.workers == 0 && i < workers; i++) {
        pthread_t thread;
        DRIVER_CHECK(pthread_create(&thread, NULL, worker_main, (void *)(uintptr_t)i) == 0);
    }
    pool.workers = workers;
}

static void run_loop(size_t end, loop_fn body)
{
    (void)pthread_mutex_lock(&pool.lock);
    pool.body = body;
    pool.next = 0;
    pool.end = end;
    pool.running = pool.workers - 1;
    pool.loops++;
    (void)pthread_cond_broadcast(&pool.begun);
    (void)pthread_mutex_unlock(&pool.lock);
    run_share(0);
    (void)pthread_mutex_lock(&pool.lock);
    while (pool.running > 0) {
        (void)pthread_cond_wait(&pool.over, &pool.lock);
    }
    (void)pthread_mutex_unlock(&pool.lock);
}

static uint64_t results[WORK_UNITS];

static void even_unit(size_t i)
{
    results[i] = work_unit(i, WORK_UNIT_ROUNDS);
}

static void uneven_unit(size_t i)
{
    results[i] = work_unit(i, work_uneven_rounds(i));
}

static double run_units(unsigned workers, loop_fn body, uint64_t wanted)
{
    start(workers);
    int64_t begun = work_now_ns();
    run_loop(WORK_UNITS, body);
    double ms = driver_ms_since(begun);
    DRIVER_CHECK(work_sum_units(results) == wanted);
    return ms;
}

static double even(unsigned workers)
{
    return run_units(workers, even_unit, WORK_EVEN_RESULT);
}

static double uneven(unsigned workers)
{
    return run_units(workers, uneven_unit, WORK_UNEVEN_RESULT);
}

static const struct driver_row rows[] = {
    { .name = "par.even", .unit = "ms", .run = even, .warmups = 1 },
    { .name = "par.uneven", .unit = "ms", .run = uneven, .warmups = 1 },
    { .name = NULL },
};

int main(int argc, char **argv)
{
    struct driver driver = { .program = PROGRAM, .rows = rows, .workers_max = WORKERS_MAX };
    return driver_main(&driver, argc, argv);
}
