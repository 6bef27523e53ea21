/* SPDX-License-Identifier: MIT */
/*
 * sequence.c - lazy sequences: common part of all stages, and the consumers at their end.
 */
#include "flow/sequence.h"

#include "base/alloc.h"
#include "sched/await.h"

static const char instead[] = "pull from a fiber";

weft_sequence *wf_sequence_make(const struct wf_sequence_ops *ops, size_t size, size_t inner_count,
                                weft_sequence *one, weft_sequence *two)
{
    bool is_whole = (inner_count < 1 || one != NULL) && (inner_count < 2 || two != NULL);
    weft_sequence *self = NULL;
    if (is_whole) {
        self = wf_alloc_zeroed(&wf_alloc_default, ops->bytes, _Alignof(max_align_t));
    }
    if (self == NULL) {
        weft_sequence_drop(one);
        weft_sequence_drop(two);
        return NULL;
    }
    self->ops = ops;
    self->size = size;
    self->inner[0] = one;
    self->inner[1] = two;
    self->end = 1;
    return self;
}

/* weft_sequence_next() on behalf of the named call. */
static int next(weft_sequence *sequence, void *item, weft_time deadline, const char *call)
{
    int err = wf_await_begin(&deadline, call, instead);
    if (err != 0) {
        return err;
    }
    if (sequence->end != 1) {
        return sequence->end;
    }
    int result = sequence->ops->next(sequence, item, deadline);
    if (result != 1 && result != WEFT_ETIMEDOUT && result != WEFT_ECANCELED) {
        sequence->end = result;
    }
    return result;
}

int weft_sequence_next(weft_sequence *sequence, void *item, weft_time deadline)
{
    return next(sequence, item, deadline, "weft_sequence_next");
}

size_t weft_sequence_size(const weft_sequence *sequence)
{
    return sequence->size;
}

void weft_sequence_drop(weft_sequence *sequence)
{
    if (sequence == NULL) {
        return;
    }
    if (sequence->ops->drop != NULL) {
        sequence->ops->drop(sequence);
    }
    weft_sequence_drop(sequence->inner[0]);
    weft_sequence_drop(sequence->inner[1]);
    wf_free(&wf_alloc_default, sequence, sequence->ops->bytes, _Alignof(max_align_t));
}

/* --- Consumers -------------------------------------------------------------------------------- */

/* An item may be a bare event of size 0. */
static size_t bytes_of(size_t count, size_t size)
{
    return count * (size > 0 ? size : 1);
}

void *wf_sequence_items(size_t count, size_t size)
{
    if (count > PTRDIFF_MAX / (size > 0 ? size : 1)) {
        return NULL;
    }
    return wf_alloc(&wf_alloc_default, bytes_of(count, size), _Alignof(max_align_t));
}

void wf_sequence_free_items(void *items, size_t count, size_t size)
{
    wf_free(&wf_alloc_default, items, bytes_of(count, size), _Alignof(max_align_t));
}

int wf_sequence_run(weft_sequence *sequence, int (*function)(void *item, void *arg), void *arg,
                    const char *call)
{
    void *item = wf_sequence_items(1, sequence->size);
    int result = item != NULL ? 1 : -ENOMEM;
    while (result > 0) {
        result = next(sequence, item, WEFT_NEVER, call);
        if (result > 0) {
            int err = function(item, arg);
            result = err < 0 ? err : 1;
        }
    }
    wf_sequence_free_items(item, 1, sequence->size);
    return result;
}

/* The result for a sequence that could not be created. */
static int without_memory(const char *call)
{
    weft_time never = WEFT_NEVER;
    int err = wf_await_begin(&never, call, instead);
    return err != 0 ? err : -ENOMEM;
}

static int run_all(weft_sequence *sequence, int (*function)(void *item, void *arg), void *arg,
                   const char *call)
{
    if (sequence == NULL) {
        return without_memory(call);
    }
    int result = wf_sequence_run(sequence, function, arg, call);
    weft_sequence_drop(sequence);
    return result;
}

int weft_sequence_for_each(weft_sequence *sequence, int (*function)(void *item, void *arg),
                           void *arg)
{
    return run_all(sequence, function, arg, "weft_sequence_for_each");
}

struct folding {
    void *value;
    void (*fold)(void *value, const void *item, void *arg);
    void *arg;
};

static int fold_item(void *item, void *arg)
{
    const struct folding *folding = arg;
    folding->fold(folding->value, item, folding->arg);
    return 0;
}

int weft_sequence_fold(weft_sequence *sequence, void *value,
                       void (*fold)(void *value, const void *item, void *arg), void *arg)
{
    struct folding folding = { value, fold, arg };
    return run_all(sequence, fold_item, &folding, "weft_sequence_fold");
}

int64_t weft_sequence_collect(weft_sequence *sequence, void *items, size_t most)
{
    static const char call[] = "weft_sequence_collect";
    weft_time never = WEFT_NEVER;
    if (sequence == NULL) {
        return without_memory(call);
    }
    size_t count = 0;
    int result = most == 0 ? wf_await_begin(&never, call, instead) : 1;
    while (result > 0 && count < most) {
        result = next(sequence, (char *)items + count * sequence->size, never, call);
        count += result > 0;
    }
    weft_sequence_drop(sequence);
    return result < 0 ? result : (int64_t)count;
}

static int send_item(void *item, void *arg)
{
    return weft_send(arg, item, WEFT_NEVER);
}

int weft_sequence_send_to(weft_sequence *sequence, weft_sender *sender)
{
    return run_all(sequence, send_item, sender, "weft_sequence_send_to");
}
