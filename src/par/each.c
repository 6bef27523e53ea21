/* SPDX-License-Identifier: MIT */
/*
 * each.c - parallel loops over array elements, chunks and windows.
 */
#include "par/array.h"
#include "par/pause.h"

struct each {
    char *base;
    size_t count;
    size_t size;
    size_t chunk;
    weft_piece_fn body;
    void *arg;
};

static int run_piece(size_t first, size_t end, void *arg)
{
    const struct each *each = arg;
    return each->body(each->base + first * each->size, end - first, first, each->arg);
}

int weft_for_each(void *base, size_t count, size_t size, weft_piece_fn body, void *arg,
                  const weft_par_options *options)
{
    wf_pause_call();
    struct each each = { base, count, size, 0, body, arg };
    int err = wf_array_check(count, size);
    return err != 0 ? err : weft_for(0, count, run_piece, &each, options);
}

/* Calls the body for a range of chunks. */
static int run_chunks(size_t first, size_t end, void *arg)
{
    const struct each *each = arg;
    int err = 0;
    for (size_t number = first; err == 0 && number < end; number++) {
        size_t at = number * each->chunk;
        size_t left = each->count - at;
        err = each->body(each->base + at * each->size, left < each->chunk ? left : each->chunk, at,
                         each->arg);
        wf_pause(1);
    }
    return err;
}

int weft_for_chunks(void *base, size_t count, size_t size, size_t chunk, weft_piece_fn body,
                    void *arg, const weft_par_options *options)
{
    wf_pause_call();
    struct each each = { base, count, size, chunk, body, arg };
    int err = chunk == 0 ? -EINVAL : wf_array_check(count, size);
    if (err != 0) {
        return err;
    }
    size_t chunks = count / chunk + (count % chunk != 0);
    return weft_for(0, chunks, run_chunks, &each, options);
}

struct windows {
    const char *base;
    size_t size;
    weft_window_fn body;
    void *arg;
};

static int run_windows(size_t first, size_t end, void *arg)
{
    const struct windows *windows = arg;
    int err = 0;
    while (err == 0 && first < end) {
        size_t next = wf_pause_next(first, end, WF_PAUSE_CALLS);
        for (size_t i = first; err == 0 && i < next; i++) {
            err = windows->body(windows->base + i * windows->size, i, windows->arg);
        }
        wf_pause(next - first);
        first = next;
    }
    return err;
}

int weft_for_windows(const void *base, size_t count, size_t size, size_t window,
                     weft_window_fn body, void *arg, const weft_par_options *options)
{
    wf_pause_call();
    struct windows windows = { base, size, body, arg };
    int err = window == 0 ? -EINVAL : wf_array_check(count, size);
    if (err != 0) {
        return err;
    }
    size_t positions = window <= count ? count - window + 1 : 0;
    return weft_for(0, positions, run_windows, &windows, options);
}
