/* SPDX-License-Identifier: MIT */
/*
 * hello - the smallest program: a task, and its result.
 */
#include <stdio.h>
#include <weft.h>

static int add(weft_co *co, void *state)
{
    (void)co;
    const int *terms = state;
    return terms[0] + terms[1];
}

static int app(void *arg)
{
    (void)arg;
    int terms[2] = { 40, 2 }, sum;
    weft_task *task;
    int err =
        weft_spawn(&task, &(weft_spec){ .body = add, .state = terms, .state_size = sizeof terms });
    if (err == 0) {
        err = weft_join(task, &sum, WEFT_NEVER);
    }
    if (err == 0) {
        printf("%d\n", sum);
    }
    return err;
}

int main(void)
{
    return weft_run(NULL, app, NULL) == 0 ? 0 : 1;
}
