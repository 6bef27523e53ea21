/* SPDX-License-Identifier: MIT */
/*
 * await.c - sched/await.h and what else belongs to fibers, in models without any.
 */
#include "sched/await.h"

#include <weft/future.h>

#include "sched/local.h"
#include "sched/thread.h"

WF_TLS_DEFINE(int64_t, wf_tls_deadline);

void (*wf_await_hook)(weft_time *deadline);

int weft_await(weft_future *future, weft_time deadline)
{
    return wf_thread_await(future, deadline);
}

int wf_await(weft_future *future, weft_time deadline, const char *call, const char *instead)
{
    (void)call;
    (void)instead;
    return weft_await(future, deadline);
}

int wf_await_pending(struct wf_fiber *self, weft_future *future, weft_time deadline)
{
    (void)self;
    return weft_await(future, deadline);
}

int wf_await_enter_slowly(const char *call, const char *instead)
{
    (void)instead;
    return wf_thread_enter(call);
}

void wf_await_spend_slowly(const char *call, const char *instead)
{
    (void)call;
    (void)instead;
}

int wf_await_begin(weft_time *deadline, const char *call, const char *instead)
{
    (void)deadline;
    return wf_await_enter_slowly(call, instead);
}

void wf_await_must_suspend(const char *call, const char *instead)
{
    (void)call;
    (void)instead;
}

void wf_local_end(void ***locals)
{
    (void)locals;
}

int *weft_errno_location(void)
{
    static int value;
    return &value;
}
