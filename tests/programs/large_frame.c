/* SPDX-License-Identifier: MIT */
/*
 * large_frame.c - a fiber with a frame that is larger than its stack and guard together.
 *
 * The compiler flags that come with the library make the compiler touch each page of the frame,
 * so that the overflow is caught and reported.
 */
#include <alloca.h>
#include <stddef.h>

#include <weft.h>

static volatile size_t frame_size = 600 * 1024;

static int overflow(void *arg)
{
    volatile char *bytes = alloca(frame_size);
    (void)arg;
    bytes[0] = 1;
    return bytes[0] - 1;
}

static int app(void *arg)
{
    weft_fiber_spec spec = { .function = overflow, .stack_size = 256 * 1024, .name = "large" };
    weft_task *task;
    int result = 0;
    (void)arg;
    int err = weft_go_with(&task, &spec);
    if (err == 0) {
        err = weft_join(task, &result, WEFT_NEVER);
    }
    return err != 0 ? err : result;
}

int main(void)
{
    return weft_run(NULL, app, NULL) == 0 ? 0 : 1;
}
