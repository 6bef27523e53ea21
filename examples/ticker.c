/* SPDX-License-Identifier: MIT */
/*
 * ticker.c - timers: a fiber that ticks, its watchdog, and an overall deadline.
 */
#include <stdio.h>
#include <weft.h>

static void bark(void *arg)
{
    fprintf(stderr, "ticker: no tick from %s for a second\n", (const char *)arg);
}

/* Ticks until it is canceled. Returns the number of ticks. */
static int tick(void *arg)
{
    const char *name = arg;
    weft_timer watchdog = { 0 };
    weft_interval interval;
    weft_interval_init(&interval, weft_now(), 20 * WEFT_MS, WEFT_INTERVAL_SKIP);
    int ticks = 0;
    while (weft_interval_tick(&interval) > 0) {
        weft_timer_start(&watchdog, weft_after(WEFT_S), 0, bark, arg);
        printf("%s: tick %d\n", name, ++ticks);
    }
    (void)weft_timer_stop(&watchdog); /* The timer is in this stack frame. */
    return ticks;
}

static int app(void *arg)
{
    (void)arg;
    static char name[] = "ticker";
    weft_task *task;
    int ticks;
    int err = weft_go(&task, tick, name);
    if (err != 0) {
        return err;
    }
    err = weft_join(task, &ticks, weft_after(110 * WEFT_MS));
    if (err == WEFT_ETIMEDOUT) {
        weft_cancel(task); /* Its current or next wait returns WEFT_ECANCELED. */
        err = weft_join(task, &ticks, WEFT_NEVER);
    }
    if (err == 0) {
        printf("%d ticks in 110 ms\n", ticks);
    }
    return err;
}

int main(void)
{
    int err = weft_run(NULL, app, NULL);
    if (err != 0) {
        fprintf(stderr, "ticker: %s\n", weft_strerror(err));
    }
    return err != 0;
}
