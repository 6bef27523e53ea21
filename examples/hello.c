/* SPDX-License-Identifier: MIT */
/*
 * hello.c - the smallest program: a fiber and its result.
 */
#include <stdio.h>
#include <weft.h>

static int greet(void *arg)
{
    int err = weft_sleep(10 * WEFT_MS); /* Blocks no thread. */
    if (err == 0) {
        printf("hello from %s\n", (const char *)arg);
    }
    return err;
}

static int app(void *arg)
{
    (void)arg;
    static char name[] = "a fiber";
    int result;
    weft_task *task;
    int err = weft_go(&task, greet, name);
    if (err == 0) {
        err = weft_join(task, &result, WEFT_NEVER);
    }
    return err != 0 ? err : result;
}

int main(void)
{
    int err = weft_run(NULL, app, NULL);
    if (err != 0) {
        fprintf(stderr, "hello: %s\n", weft_strerror(err));
    }
    return err != 0;
}
