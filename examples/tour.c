/* SPDX-License-Identifier: MIT */
/*
 * tour.c - the scheduler at work, and its counters.
 *
 * Counts the primes below 3 000 000: a root task spawns one task per block, joins them in
 * order, and runs a blocking function at the same time. Then it prints the counters of each
 * worker.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

enum {
    BLOCKS = 300,
    BLOCK_SIZE = 10000
};

static bool is_prime(int n)
{
    for (int d = 2; d * d <= n; d++) {
        if (n % d == 0) {
            return false;
        }
    }
    return n >= 2;
}

/* Handles one block, without any await. The task's result is the number of primes. */
static int block_body(weft_co *co, void *state)
{
    (void)co;
    int first = *(const int *)state;
    int primes = 0;
    for (int n = first; n < first + BLOCK_SIZE; n++) {
        primes += is_prime(n);
    }
    return primes;
}

/* State that must survive an await. */
struct count {
    weft_task *blocks[BLOCKS];
    weft_join_future join;
    int result;
    int i;
    int primes;
};

static int count_body(weft_co *co, void *state)
{
    struct count *s = state;
    int err;
    WEFT_BEGIN(co);
    for (s->i = 0; s->i < BLOCKS; s->i++) {
        int first = s->i * BLOCK_SIZE;
        weft_spec spec = {
            .body = block_body, .state = &first, .state_size = sizeof first, .name = "block"
        };
        err = weft_spawn(&s->blocks[s->i], &spec);
        if (err < 0) {
            return err;
        }
    }
    for (s->i = 0; s->i < BLOCKS; s->i++) {
        weft_join_init(&s->join, s->blocks[s->i], &s->result);
        WEFT_AWAIT(co, err, &s->join.future);
        if (err < 0) {
            return err;
        }
        s->primes += s->result;
    }
    WEFT_END(co, s->primes);
}

/* Blocking calls belong on the blocking pool, not on a worker. */
static int read_kernel_name(void *arg)
{
    FILE *file = fopen("/proc/sys/kernel/osrelease", "r");
    if (file == NULL) {
        return -1;
    }
    char *name = arg;
    int ok = fscanf(file, "%63s", name) == 1;
    (void)fclose(file);
    return ok ? 0 : -1;
}

static void print_counters(weft_runtime *rt)
{
    static const char *const states[] = { "running", "searching", "parked", "stopped" };
    printf("\n%-7s %8s %7s %7s %7s %7s %7s %7s %9s  %s\n", "worker", "polls", "lifo", "steals",
           "stolen", "inject", "parks", "wakes", "busy ms", "now");
    for (unsigned i = 0; i < weft_runtime_workers(rt); i++) {
        weft_worker_stats s;
        if (weft_worker_stats_read(rt, i, &s) != 0) {
            continue;
        }
        printf("%-7u %8llu %7llu %7llu %7llu %7llu %7llu %7llu %9.1f  %s\n", i,
               (unsigned long long)s.polls, (unsigned long long)s.lifo_hits,
               (unsigned long long)s.steals, (unsigned long long)s.stolen_tasks,
               (unsigned long long)s.injected_tasks, (unsigned long long)s.parks,
               (unsigned long long)s.wakes, (double)s.running_ns / 1e6, states[s.state]);
    }
    weft_stats total;
    weft_runtime_stats(rt, &total);
    printf("\n%llu tasks spawned, %llu alive, %u of %u workers parked\n",
           (unsigned long long)total.tasks_spawned, (unsigned long long)total.tasks_alive,
           total.parked, total.workers);
}

static int tour(void *arg)
{
    (void)arg;
    weft_task *count;
    weft_task *kernel;
    int primes = 0;
    int ok = -1;
    char name[64] = "";
    weft_time start = weft_now();

    weft_spec spec = { .body = count_body, .state_size = sizeof(struct count), .name = "count" };
    int err = weft_spawn(&count, &spec);
    if (err < 0) {
        return err;
    }
    err = weft_spawn_blocking(&kernel, read_kernel_name, name);
    if (err < 0) {
        return err;
    }
    err = weft_join(kernel, &ok, WEFT_NEVER);
    if (err < 0) {
        return err;
    }
    err = weft_join(count, &primes, WEFT_NEVER);
    if (err < 0) {
        return err;
    }
    printf("weft %s on Linux %s, %u workers\n", weft_version(), ok == 0 ? name : "?",
           weft_runtime_workers(weft_runtime_current()));
    printf("%d primes below %d in %.1f ms\n", primes, BLOCKS * BLOCK_SIZE,
           (double)(weft_now() - start) / 1e6);
    print_counters(weft_runtime_current());
    return primes == 216816 ? 0 : EXIT_FAILURE;
}

int main(void)
{
    int result = weft_run(NULL, tour, NULL);
    if (result < 0) {
        fprintf(stderr, "tour: %s\n", weft_strerror(result));
    }
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
