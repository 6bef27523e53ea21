/* SPDX-License-Identifier: MIT */
/*
 * resolve_model.c - src/net/resolve.c: the caller of a resolver and the thread that asks the
 * system share a request; the last one frees it.
 *
 * The pool is one thread for each job, which may find that the job was cancelled before it has
 * begun, and the system knows one name. A join orders the end of the job before what follows; one
 * that gives up orders nothing.
 */
#include <weft/net.h>
#include <weft/task.h>

#include <netdb.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "mc.h"
#include "sched/await.h"
#include "sched/blocking.h"
#include "sched/thread.h"

enum {
    DEADLINE = 1000,
    /* Of the job. */
    QUEUED = 0,
    RUNNING,
    CANCELLED,
    ENDED,
};

static struct wf_pool_spec spec;
static _Atomic(uint32_t) state;
static int job_result; /* plain: written before it has ENDED */
static int found;      /* what the system finds: 0 or EAI_NONAME */

/* --- What is not there ------------------------------------------------------------------ */

struct wf_sched *wf_thread_must_sched(const char *call)
{
    (void)call;
    return NULL;
}

int wf_await_begin(weft_time *deadline, const char *call, const char *instead)
{
    (void)deadline;
    (void)call;
    (void)instead;
    return 0;
}

void wf_await_must_suspend(const char *call, const char *instead)
{
    (void)call;
    (void)instead;
}

int *weft_errno_location(void)
{
    static _Thread_local int value;
    return &value;
}

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **out)
{
    static struct sockaddr_in address = { .sin_family = AF_INET };
    static struct addrinfo answer = { .ai_addr = (struct sockaddr *)&address,
                                      .ai_addrlen = sizeof address };
    mc_assert(strcmp(host, "name") == 0);
    mc_assert(strcmp(port, "80") == 0);
    mc_assert(hints->ai_socktype == SOCK_STREAM);
    *out = &answer;
    return found;
}

void freeaddrinfo(struct addrinfo *list)
{
    (void)list;
}

static void run_job(void *arg)
{
    (void)arg;
    uint32_t queued = QUEUED;
    if (wf_cas_relaxed(&state, &queued, (uint32_t)RUNNING)) {
        job_result = spec.function(spec.arg);
    } else {
        spec.dropped(spec.arg);
        job_result = WEFT_ECANCELED;
    }
    wf_store_release(&state, (uint32_t)ENDED);
    (void)mc_futex_wake(&state, 1);
}

int wf_pool_spawn(struct wf_sched *sched, struct wf_task **out, const struct wf_pool_spec *job)
{
    (void)sched;
    *out = NULL;
    if (mc_arg() != NULL) {
        return WEFT_ECLOSED;
    }
    spec = *job;
    mc_go(run_job, NULL);
    return 0;
}

int weft_join(weft_task *task, int *result, weft_time deadline)
{
    (void)task;
    uint32_t now = wf_load_acquire(&state);
    while (now != ENDED) {
        if (mc_futex_wait(&state, now, deadline) != 0) {
            return WEFT_ETIMEDOUT;
        }
        now = wf_load_acquire(&state);
    }
    *result = job_result;
    return 0;
}

void weft_cancel(weft_task *task)
{
    (void)task;
    uint32_t queued = QUEUED;
    (void)wf_cas_relaxed(&state, &queued, (uint32_t)CANCELLED);
}

void weft_detach(weft_task *task)
{
    (void)task;
}

/* --- Tests ------------------------------------------------------------------------------ */

static int resolve(weft_time deadline)
{
    weft_address address;
    int count = weft_resolve(&address, 1, "name:80", deadline);
    mc_assert(count != 1 || address.size == sizeof(struct sockaddr_in));
    return count;
}

/*
 * Goal:   what the other thread has found is there, and the request is freed once.
 */
static void a_name_is_resolved(void)
{
    mc_assert(resolve(WEFT_NEVER) == 1);
    mc_join();
}

static void a_name_is_not_known(void)
{
    found = EAI_NONAME;
    mc_assert(resolve(WEFT_NEVER) == WEFT_ENONAME);
    mc_join();
}

/*
 * Goal:   who goes away leaves the request to the other thread, or frees what that has filled.
 * Method: the deadline comes before the job has begun, while it runs, or when it has ended.
 */
static void the_deadline_comes(void)
{
    int count = resolve(DEADLINE);
    mc_assert(count == 1 || count == WEFT_ETIMEDOUT);
    mc_note(count);
    mc_join();
}

static void the_pool_takes_no_more(void)
{
    mc_assert(resolve(WEFT_NEVER) == WEFT_ECLOSED);
}

static const struct mc_test tests[] = {
    { .name = "a_name_is_resolved", .run = a_name_is_resolved, .leaks = true },
    { .name = "a_name_is_not_known", .run = a_name_is_not_known, .leaks = true },
    { .name = "the_deadline_comes",
      .run = the_deadline_comes,
      .leaks = true,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, WEFT_ETIMEDOUT),
      .seen_only = true },
    { .name = "the_pool_takes_no_more",
      .run = the_pool_takes_no_more,
      .arg = "closed",
      .leaks = true },
};

MC_MAIN(tests)
