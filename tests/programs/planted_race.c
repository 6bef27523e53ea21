/* SPDX-License-Identifier: MIT */
/*
 * planted_race.c - two tasks that write a plain variable without synchronization.
 *
 * A build with ThreadSanitizer must report it. This shows that the sanitizer works on this
 * machine and sees through the scheduler.
 */
#include <sched.h>
#include <stdio.h>

#include <weft.h>

static int shared;
static _Atomic(int) arrived;

static int racer(void *arg)
{
    (void)arg;
    arrived++;
    while (arrived < 2) {
        (void)sched_yield();
    }
    shared++;
    return 0;
}

static int app(void *arg)
{
    (void)arg;
    weft_task *tasks[2];
    for (int i = 0; i < 2; i++) {
        weft_fiber_spec spec = { .function = racer, .pinned = WEFT_PINNED_TO(i) };
        if (weft_go_with(&tasks[i], &spec) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (weft_join(tasks[i], NULL, WEFT_NEVER) != 0) {
            return 1;
        }
    }
    return 0;
}

int main(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    int result = weft_run(&config, app, NULL);
    (void)printf("%d\n", shared);
    return result;
}
