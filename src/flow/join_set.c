/* SPDX-License-Identifier: MIT */
/*
 * join_set.c - tasks whose results come in the order in which they end.
 *
 * Results go through a channel without a limit. Room is reserved before a task is started, so
 * that it can report when there is no memory any more.
 */
#include <weft/join_set.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "flow/scope.h"

static _Atomic(uint64_t) *count_of(const weft_join_set *set)
{
    return (_Atomic(uint64_t) *)(uintptr_t)&set->opaque_[0];
}

int weft_join_set_begin(weft_join_set *set, const weft_scope_options *options)
{
    int err = weft_channel_make(&set->sender, &set->receiver, sizeof(weft_joined), WEFT_UNBOUNDED);
    if (err == 0) {
        /* relaxed: nobody else has seen the set. */
        wf_store_relaxed(count_of(set), (uint64_t)0);
        weft_scope_begin(&set->scope, options);
    }
    return err;
}

static void report(void *to, void *arg, int result)
{
    weft_join_set *set = to;
    weft_joined joined = { arg, result };
    weft_send_reserved(set->sender, &joined);
}

int weft_join_set_go(weft_join_set *set, int (*function)(void *arg), void *arg)
{
    weft_fiber_spec spec = { .function = function, .arg = arg };
    struct wf_scope_report reporting = { report, set };
    int err = weft_try_reserve(set->sender);
    if (err != 0) {
        return err;
    }
    /* relaxed: it is counted before its message can come. */
    (void)wf_fetch_add_relaxed(count_of(set), 1);
    err = wf_scope_go(&set->scope, &spec, &reporting);
    if (err != 0) {
        weft_unreserve(set->sender);
        /* relaxed: only who starts tasks, or waits for them, looks at it. */
        (void)wf_fetch_sub_relaxed(count_of(set), 1);
    }
    return err;
}

int weft_join_set_next(weft_join_set *set, weft_joined *joined, weft_time deadline)
{
    if (weft_join_set_count(set) == 0) {
        return weft_cancelled() ? WEFT_ECANCELED : -ENOENT;
    }
    int err = weft_recv(set->receiver, joined, deadline);
    if (err == 0) {
        /* relaxed: only who starts tasks, or waits for them, looks at it. */
        (void)wf_fetch_sub_relaxed(count_of(set), 1);
    }
    return err;
}

size_t weft_join_set_count(const weft_join_set *set)
{
    /* relaxed: a message that is received was counted before. */
    return (size_t)wf_load_relaxed(count_of(set));
}

void weft_join_set_cancel(weft_join_set *set)
{
    weft_scope_cancel(&set->scope);
}

int weft_join_set_end(weft_join_set *set)
{
    if (wf_unlikely(set->sender == NULL)) {
        wf_fatal("weft_join_set_end: this set was ended before");
    }
    int result = weft_scope_end(&set->scope);
    weft_sender_drop(set->sender);
    weft_receiver_drop(set->receiver);
    set->sender = NULL;
    return result;
}
