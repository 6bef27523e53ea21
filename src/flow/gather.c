/* SPDX-License-Identifier: MIT */
/*
 * gather.c - join-many: waits for several tasks; runs one function on many fibers.
 *
 * A join-many future polls one join per task. Once its outcome is decided, it cancels the
 * remaining tasks, once, and continues until all tasks are joined. The task that ends first
 * decides. If several tasks have ended when the future is polled, the first of them in array
 * order decides.
 */
#include <weft/gather.h>

#include <weft/scope.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "sched/await.h"

/* The join of one task, and storage for its result. */
struct joining {
    weft_join_future join;
    int result;
};

struct gather {
    weft_future future;
    weft_gather_mode mode;
    weft_task **tasks;
    size_t count;
    int *results;
    struct joining *joins; /* NULL before the first poll */
    size_t left;           /* tasks not joined yet */
    size_t winner;         /* index of the winner, or of the task with the error */
    int error;
    bool is_decided;
    bool has_failed; /* a task could not be joined */
    bool is_over;
};

_Static_assert(sizeof(struct gather) <= sizeof(weft_gather_future), "weft_gather_future is small");
_Static_assert(offsetof(struct gather, results) == offsetof(weft_gather_future, results), "");

static bool is_for_all(const struct gather *gather)
{
    return gather->mode == WEFT_GATHER_ALL || gather->mode == WEFT_GATHER_TRY_ALL;
}

/* --- Deciding --------------------------------------------------------------------------------- */

static void cancel_others(struct gather *gather)
{
    gather->is_decided = true;
    for (size_t i = 0; i < gather->count; i++) {
        if (gather->tasks[i] != NULL) {
            weft_cancel(gather->tasks[i]);
        }
    }
}

/* A task has ended before the outcome was decided. */
static void decide(struct gather *gather, size_t index, int result)
{
    bool has_failed = result < 0;
    switch (gather->mode) {
    case WEFT_GATHER_ALL:
        if (has_failed && (gather->error == 0 || index < gather->winner)) {
            gather->error = result;
            gather->winner = index;
        }
        break;
    case WEFT_GATHER_TRY_ALL:
        if (has_failed) {
            gather->error = result;
            cancel_others(gather);
        }
        break;
    case WEFT_GATHER_FIRST_SUCCESS:
        gather->error = has_failed ? result : 0;
        if (has_failed) {
            break;
        }
        WEFT_FALLTHROUGH;
    case WEFT_GATHER_RACE:
        gather->winner = index;
        if (gather->results != NULL) {
            *gather->results = result;
        }
        cancel_others(gather);
        break;
    }
}

static void take_result(struct gather *gather, size_t index, int result)
{
    gather->tasks[index] = NULL;
    gather->left--;
    if (is_for_all(gather) && gather->results != NULL) {
        gather->results[index] = result;
    }
    if (!gather->is_decided) {
        decide(gather, index, result);
    }
}

/* Returns the result once all tasks have ended. */
static int verdict(struct gather *gather)
{
    if (is_for_all(gather)) {
        return gather->error;
    }
    return gather->is_decided ? (int)gather->winner : gather->error;
}

/* --- The future ------------------------------------------------------------------------------- */

static size_t tasks_of(const struct gather *gather)
{
    size_t count = 0;
    for (size_t i = 0; i < gather->count; i++) {
        count += gather->tasks[i] != NULL;
    }
    return count;
}

static int begin(struct gather *gather)
{
    if (gather->count > (size_t)INT_MAX) {
        return -EINVAL;
    }
    gather->left = tasks_of(gather);
    if (gather->left == 0) {
        return is_for_all(gather) ? 0 : -EINVAL;
    }
    gather->joins = wf_alloc(&wf_alloc_default, gather->count * sizeof(struct joining),
                             _Alignof(struct joining));
    if (gather->joins == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < gather->count; i++) {
        if (gather->tasks[i] != NULL) {
            struct joining *joining = &gather->joins[i];
            weft_join_init(&joining->join, gather->tasks[i], &joining->result);
        }
    }
    return WEFT_PENDING;
}

static int finish(struct gather *gather)
{
    wf_free(&wf_alloc_default, gather->joins, gather->count * sizeof(struct joining),
            _Alignof(struct joining));
    gather->joins = NULL;
    if (gather->has_failed) {
        return gather->error;
    }
    return gather->left == 0 ? verdict(gather) : WEFT_ECANCELED;
}

/* Stops waiting for the remaining tasks; the caller keeps their handles. */
static bool cancel_joins(struct gather *gather)
{
    bool have_ended = true;
    for (size_t i = 0; i < gather->count; i++) {
        if (gather->tasks[i] != NULL) {
            weft_future *join = &gather->joins[i].join.future;
            have_ended = join->ops->cancel(join) && have_ended;
        }
    }
    return have_ended;
}

/* Joins the tasks that have ended. Stops at a task that cannot be joined. */
static void poll_joins(struct gather *gather)
{
    for (size_t i = 0; i < gather->count && !gather->has_failed; i++) {
        if (gather->tasks[i] == NULL) {
            continue;
        }
        struct joining *joining = &gather->joins[i];
        int result = joining->join.future.ops->poll(&joining->join.future);
        if (result == 0) {
            take_result(gather, i, joining->result);
        } else if (result != WEFT_PENDING) {
            gather->has_failed = true;
            gather->error = result;
        }
    }
}

/* Makes progress. Returns whether the wait is over. */
static bool advance(struct gather *gather, bool is_cancelled)
{
    poll_joins(gather);
    if (gather->left > 0 && (is_cancelled || gather->has_failed)) {
        return cancel_joins(gather);
    }
    return gather->left == 0;
}

static int gather_poll(weft_future *future)
{
    struct gather *gather = (struct gather *)future;
    if (gather->joins == NULL) {
        int result = begin(gather);
        if (result != WEFT_PENDING) {
            return result;
        }
    }
    gather->is_over = gather->is_over || advance(gather, false);
    return gather->is_over ? finish(gather) : WEFT_PENDING;
}

static bool gather_cancel(weft_future *future)
{
    struct gather *gather = (struct gather *)future;
    gather->is_over = gather->is_over || advance(gather, true);
    return gather->is_over;
}

static const weft_future_ops gather_ops = { .poll = gather_poll, .cancel = gather_cancel };

void weft_gather_init(weft_gather_future *future, weft_gather_mode mode, weft_task **tasks,
                      size_t count, int *results)
{
    struct gather *gather = (struct gather *)future;
    *gather = (struct gather){
        .future.ops = &gather_ops, .mode = mode, .tasks = tasks, .count = count, .results = results
    };
}

static int await_gather(weft_gather_mode mode, weft_task **tasks, size_t count, int *results,
                        weft_time deadline, const char *call)
{
    weft_gather_future gather;
    weft_gather_init(&gather, mode, tasks, count, results);
    int result = wf_await(&gather.future, deadline, call, "await a weft_gather_future in a body");
    /* The last task ended with WEFT_ECANCELED just after the deadline: its result counts, so that
     * a caller whose deadline has passed always has a task left to join. */
    struct gather *self = (struct gather *)&gather;
    return result == WEFT_ETIMEDOUT && self->is_over && self->left == 0 ? verdict(self) : result;
}

int weft_join_all(weft_task **tasks, size_t count, int *results, weft_time deadline)
{
    return await_gather(WEFT_GATHER_ALL, tasks, count, results, deadline, "weft_join_all");
}

int weft_try_join_all(weft_task **tasks, size_t count, int *results, weft_time deadline)
{
    return await_gather(WEFT_GATHER_TRY_ALL, tasks, count, results, deadline, "weft_try_join_all");
}

int weft_race(weft_task **tasks, size_t count, int *result, weft_time deadline)
{
    return await_gather(WEFT_GATHER_RACE, tasks, count, result, deadline, "weft_race");
}

int weft_first_success(weft_task **tasks, size_t count, int *result, weft_time deadline)
{
    return await_gather(WEFT_GATHER_FIRST_SUCCESS, tasks, count, result, deadline,
                        "weft_first_success");
}

/* --- One function, many calls ----------------------------------------------------------------- */

enum {
    LIMIT_DEFAULT = 16,
};

static const char instead[] = "call it on a fiber";

struct each {
    int (*function)(size_t index, void *arg);
    void *arg;
    size_t count;
    _Atomic(size_t) next;
};

/* Each call of the function uses the poll budget and checks for cancellation: the function
 * itself need not wait for anything. */
static int call_next(void *arg)
{
    struct each *each = arg;
    weft_time never = WEFT_NEVER;
    int result;
    while ((result = wf_await_begin(&never, "weft_go_each", instead)) == 0) {
        /* relaxed: only distributes the indices. */
        size_t index = wf_fetch_add_relaxed(&each->next, 1);
        if (index >= each->count) {
            break;
        }
        result = each->function(index, each->arg);
        if (result < 0) {
            break;
        }
    }
    return result;
}

int weft_go_each(size_t count, size_t limit, int (*function)(size_t index, void *arg), void *arg,
                 weft_time deadline)
{
    struct each each = { .function = function, .arg = arg, .count = count };
    weft_scope_options options = { .deadline = deadline != 0 ? deadline : 1 };
    size_t fibers = limit != 0 ? limit : LIMIT_DEFAULT;
    weft_scope scope;
    int err = wf_await_begin(&deadline, "weft_go_each", instead);
    if (err != 0) {
        return err;
    }
    weft_scope_begin(&scope, &options);
    for (size_t i = 0; i < fibers && i < count && err == 0; i++) {
        err = weft_scope_go(&scope, call_next, &each);
        if (err != 0 && i > 0) {
            err = 0; /* The fibers already started do all the work. */
            break;
        }
    }
    int end = weft_scope_end(&scope);
    return end != 0 ? end : err;
}

struct call {
    int (*function)(void *arg);
    void *arg;
    int result;
};

static int call_it(void *arg)
{
    struct call *call = arg;
    call->result = call->function(call->arg);
    return 0;
}

int weft_call_until(int (*function)(void *arg), void *arg, weft_time deadline)
{
    struct call call = { function, arg, WEFT_ECANCELED };
    weft_scope_options options = { .deadline = deadline != 0 ? deadline : 1 };
    weft_scope scope;
    int err = wf_await_begin(&deadline, "weft_call_until", instead);
    if (err != 0) {
        return err;
    }
    weft_scope_begin(&scope, &options);
    err = weft_scope_go(&scope, call_it, &call);
    int end = weft_scope_end(&scope);
    if (err != 0 && err != WEFT_ECANCELED) {
        return err;
    }
    return call.result == WEFT_ECANCELED && end == WEFT_ETIMEDOUT ? WEFT_ETIMEDOUT : call.result;
}
