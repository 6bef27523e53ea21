/* SPDX-License-Identifier: MIT */
/*
 * idle.c - a runtime that has worked and is now idle.
 *
 * Writes BEGIN and END to stderr around the idle time, so that a tracer can see what happened
 * in between. Arguments: seconds, workers.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <weft.h>

static int nothing(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return 0;
}

static void wait_ms(long ms)
{
    struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* Returns the number of context switches of all threads but this one. */
static long switches(void)
{
    struct rusage all;
    struct rusage own;
    (void)getrusage(RUSAGE_SELF, &all);
    (void)getrusage(RUSAGE_THREAD, &own);
    return all.ru_nvcsw + all.ru_nivcsw - own.ru_nvcsw - own.ru_nivcsw;
}

/* Returns once hardly any other thread has run for a while, so that searching and the monitor
 * are done, however busy the machine is. Gives up after a minute. */
static void settle(void)
{
    long before;
    int rounds = 0;
    do {
        before = switches();
        wait_ms(200);
    } while (switches() > before + 2 && ++rounds < 300);
}

static void mark(const char *text, size_t length)
{
    if (write(STDERR_FILENO, text, length) < 0) {
        abort();
    }
}

int main(int argc, char **argv)
{
    weft_config config = WEFT_CONFIG_INIT;
    long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    config.workers = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    weft_runtime *rt;
    if (weft_runtime_create(&rt, &config) != 0) {
        return 1;
    }
    for (int i = 0; i < 1000; i++) {
        weft_task *task;
        if (weft_runtime_spawn(rt, &task, &(weft_spec){ .body = nothing }) != 0 ||
            weft_join(task, NULL, WEFT_NEVER) != 0) {
            return 1;
        }
    }
    settle();
    mark("BEGIN\n", 6);
    wait_ms(seconds * 1000);
    mark("END\n", 4);
    weft_runtime_destroy(rt);
    return 0;
}
