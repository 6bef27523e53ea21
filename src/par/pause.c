/* SPDX-License-Identifier: MIT */
/*
 * pause.c - safe points of callers that have no strand yet.
 *
 * A strand costs as much as a few short calls, so a task gets one when it has done some work. What
 * was done without one is counted for the thread. Some callers get none: a plain thread, a timer's
 * function, a blocking job, and a task when memory is short. They ask again now and then, since
 * another caller may run on that thread by then; but to be refused may take a long time.
 */
#include "par/pause.h"

#include "base/clock.h"
#include "base/tls.h"

enum {
    DETACHED_STEPS = 64,   /* then a caller should have a strand */
    REFUSED_STEPS = 1024,  /* then one that was refused looks at the clock */
    RETRY_NS = 1000 * 1000 /* between two failures */
};

WF_TLS_DEFINE(intptr_t, wf_tls_pause_steps) = DETACHED_STEPS;
WF_TLS_DEFINE(int64_t, wf_tls_pause_retry);

bool wf_pause_attach_now(int64_t now)
{
    if (now < WF_TLS_LOAD(wf_tls_pause_retry)) {
        return false;
    }
    /* A task that let others run has had a strand, though it may have left it. */
    bool attached = wf_job_safe_point_at(now) || weft_jobs_here()->head != NULL;
    if (!attached) {
        WF_TLS_STORE(wf_tls_pause_retry, now + RETRY_NS);
    }
    return attached;
}

bool wf_pause_detached_at(int64_t now)
{
    bool tries = now >= WF_TLS_LOAD(wf_tls_pause_retry);
    if (tries) {
        (void)wf_pause_attach_now(now);
    }
    return tries;
}

void wf_pause_now(size_t steps)
{
    if (weft_jobs_here()->head != NULL) {
        weft_jobs_safe_point();
        return;
    }
    intptr_t left = WF_TLS_LOAD(wf_tls_pause_steps) - (intptr_t)steps;
    if (left <= 0) {
        left = wf_pause_attach_now(wf_clock_real()) ? DETACHED_STEPS : REFUSED_STEPS;
    }
    WF_TLS_STORE(wf_tls_pause_steps, left);
}

void wf_pause_large(void *to, const void *from, size_t size)
{
    wf_pause_copy(to, from, size);
}
