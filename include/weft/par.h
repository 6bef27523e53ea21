/* SPDX-License-Identifier: MIT */
/*
 * weft/par.h - parallel computation: two things at once, and what is built of that.
 *
 *     struct half { const int *from; size_t count; long sum; };
 *
 *     static void sum(void *arg)
 *     {
 *         struct half *all = (struct half *)arg;
 *         if (all->count < 1000) {
 *             all->sum = sum_of(all->from, all->count);
 *             return;
 *         }
 *         struct half left = { all->from, all->count / 2, 0 };
 *         struct half right = { all->from + left.count, all->count - left.count, 0 };
 *         weft_join2(sum, &left, sum, &right);
 *         all->sum = left.sum + right.sum;
 *     }
 *
 * Fork what can be done meanwhile, do something else, join it. A fork that nobody takes
 * costs a nanosecond or two, and is run at its join by whoever has forked it; so fork as
 * the problem divides, and do not count workers. Idle workers take the oldest forks,
 * which are the largest ones.
 *
 * A fork that another worker takes runs on a fiber of its own: it may wait, lock and sleep.
 * Its values of weft_local and its errno are its own. What the caller runs itself, between
 * fork and join or at the join, may wait if the caller is a fiber or a plain thread. It must
 * not if the caller is a stackless task: it runs inside the task's poll then, which has no
 * stack to suspend, and an awaiting call aborts with a message. The same holds for the
 * functions that loops and algorithms are given. A stackless task that needs such functions
 * starts a fiber with weft_go(), which calls the algorithm, and awaits the end of that.
 *
 * Forks are joined in reverse order, and each by the function that has forked it, before
 * that returns. In C++, an exception must not leave the function that has forked before its joins,
 * nor a function that is forked or was made by WEFT_PARALLEL(); see weft/fiber.h.
 */
#ifndef WEFT_PAR_H
#define WEFT_PAR_H

#include "base.h"
#include "fork.h"
#include "loop.h"
#include "runtime.h"

WEFT_EXTERN_C_BEGIN

/*
 * Calls function(arg) on this thread, as a guest of the runtime: workers may take what it
 * forks, if it goes on for long. A call that is short wakes none of them. Returns what the
 * function returns.
 *
 * Context:  any thread. On a worker it is a plain call. Up to 16 threads at a time share
 *           their forks; further ones run them at their joins.
 * Suspends: no; but a thread sleeps in a join while a worker is at the fork.
 */
WEFT_API int weft_par_run(weft_runtime *rt, int (*function)(void *arg), void *arg);

/*
 * Calls function(arg) once on each worker of the runtime, on a fiber that is pinned there;
 * weft_worker_current() tells on which. Returns when all have returned.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: until all have returned; not for cancellation, since they may use what is on
 *           the caller's stack.
 * Errors:   what the functions return, that of the lowest worker; -ENOMEM or
 *           WEFT_ESHUTDOWN, and those that could be started have run.
 */
WEFT_API WEFT_NODISCARD int weft_par_broadcast(weft_runtime *rt, int (*function)(void *arg),
                                               void *arg);

WEFT_EXTERN_C_END

/* One fork, from weft_fork() to weft_fork_join(); on the caller's stack. */
typedef struct weft_forked {
    weft_jobs *jobs;
    weft_job *job; /* NULL: there was no room, it runs at its join */
    void (*function)(void *arg);
    void *arg;
} weft_forked;

/* What another worker calls. */
static inline void weft_forked_run(weft_job *job) WEFT_NOEXCEPT
{
    job->words[0].function(job->words[1].pointer);
}

/* Fills the job at the head, and forks it. */
static inline weft_job *weft_forked_push(weft_jobs *jobs, void (*function)(void *arg), void *arg)
{
    weft_job *job = jobs->head;
    job->run = weft_forked_run;
    job->words[0].function = function;
    job->words[1].pointer = arg;
    weft_jobs_push(jobs);
    return job;
}

/*
 * Forks function(arg): it may run on another worker from now on, and at the latest in
 * weft_fork_join().
 *
 * Context: anywhere. Outside of tasks and weft_par_run() it runs at its join.
 * Owns:    *forked, on the stack of the caller, until weft_fork_join().
 */
static inline void weft_fork(weft_forked *forked, void (*function)(void *arg), void *arg)
{
    weft_jobs *jobs = weft_jobs_here();
    forked->function = function;
    forked->arg = arg;
    if (__builtin_expect(!weft_jobs_must_ask(jobs), 1)) {
        forked->jobs = jobs;
        forked->job = weft_forked_push(jobs, function, arg);
        return;
    }
    jobs = weft_jobs_make_room(jobs);
    forked->jobs = jobs;
    forked->job = NULL;
    if (jobs != NULL) {
        forked->job = weft_forked_push(jobs, function, arg);
        weft_jobs_answer(jobs);
    }
}

/*
 * Joins a fork, the last one that was not joined yet: when it returns, the function has
 * run, here or elsewhere.
 *
 * Suspends: if another worker is at it; not for cancellation, since the function may use
 *           what is on the caller's stack.
 */
static inline void weft_fork_join(weft_forked *forked) WEFT_NOEXCEPT
{
    if (forked->job == NULL || weft_jobs_pop(forked->jobs, forked->job) ||
        weft_jobs_settle(forked->jobs, forked->job)) {
        forked->function(forked->arg);
    }
}

/* The two functions of a weft_join2() whose stack is nearly used up. */
typedef struct weft_both {
    void (*first)(void *arg);
    void *first_arg;
    void (*second)(void *arg);
    void *second_arg;
} weft_both;

static void weft_join2_elsewhere(void *arg);

/*
 * Runs both functions, at once if a worker is idle; returns when both have returned.
 *
 * Recursion may go as deep as memory allows: 16 KiB before a stack is used up, the call
 * continues on another one of 8 MiB. That holds on every thread, for weft_join2() and for
 * the functions that WEFT_PARALLEL makes. Functions that a recursion calls in between
 * must do with those 16 KiB.
 *
 * Context:  anywhere. Outside of tasks and weft_par_run(), and in a blocking job, a timer's
 *           function or weft_block_in_place(), they run one after the other.
 * Suspends: as weft_fork_join().
 */
static inline void weft_join2(void (*first)(void *arg), void *first_arg, void (*second)(void *arg),
                              void *second_arg) WEFT_NOEXCEPT
{
    if (__builtin_expect(weft_jobs_stack_is_low(weft_jobs_here()), 0)) {
        weft_both both = { first, first_arg, second, second_arg };
        weft_jobs_call_elsewhere(weft_join2_elsewhere, &both);
        return;
    }
    weft_forked forked;
    weft_fork(&forked, second, second_arg);
    first(first_arg);
    weft_fork_join(&forked);
}

static inline void weft_join2_elsewhere(void *arg)
{
    weft_both *both = (weft_both *)arg;
    weft_join2(both->first, both->first_arg, both->second, both->second_arg);
}

/* A function and its argument. */
typedef struct weft_call {
    void (*function)(void *arg);
    void *arg;
} weft_call;

WEFT_EXTERN_C_BEGIN

/*
 * As weft_join2(), for any number of calls.
 *
 * Context:  anywhere. Outside of tasks and weft_par_run() they run one after the other.
 * Suspends: as weft_fork_join().
 */
WEFT_API void weft_join_n(const weft_call *calls, size_t count);

WEFT_EXTERN_C_END

/* A scope for functions that run in parallel; on the stack of who begins it. */
typedef struct weft_par_scope {
    uint64_t opaque[14];
} weft_par_scope;

WEFT_EXTERN_C_BEGIN

/*
 * Begins a scope. stop, which may be NULL, ends it early.
 *
 * Context: anywhere. Scopes of one fiber are ended in reverse order.
 */
WEFT_API void weft_par_scope_begin(weft_par_scope *scope, const weft_stop *stop);

/*
 * Spawns function(arg) in the scope: it runs on an idle worker, or at the end of the
 * scope. It may spawn others there. An error ends the scope: what has not begun then is
 * not run.
 *
 * Context:  between begin and end, and inside what was spawned. Outside of tasks and
 *           weft_par_run(), and without memory, it is called at once.
 * Suspends: if the caller has spawned for long and other tasks wait for its worker; not for
 *           cancellation.
 */
WEFT_API void weft_par_spawn(weft_par_scope *scope, int (*function)(void *arg), void *arg);

/*
 * Returns when everything that was spawned is over. Each scope is ended once, by the function that
 * has begun it: a second end, and a fiber that returns with an open scope, abort with a sentence.
 *
 * Suspends: while other workers are at it; not for cancellation.
 * Errors:   the first one that a function has returned; WEFT_ECANCELED: stopped.
 */
WEFT_API WEFT_NODISCARD int weft_par_scope_end(weft_par_scope *scope);

WEFT_EXTERN_C_END

/*
 * Defines a function that can run in parallel, with its arguments and its result. What
 * follows is its body:
 *
 *     WEFT_PARALLEL(long, fib, int, n)
 *     {
 *         if (n < 2) {
 *             return n;
 *         }
 *         long first;
 *         long second;
 *         fib_both(&first, n - 1, &second, n - 2);
 *         return first + second;
 *     }
 *
 * It makes
 * - fib(n), a function like any other;
 * - fib_both(&first, n, &second, m), which is weft_join2() for it: the results of two calls;
 * - fib_fork(&forked, n) and fib_join(&forked), which are weft_fork() and weft_fork_join()
 *   for it; forked is a fib_forked, and the join returns the result.
 * All are static. What no other worker takes is called directly, and the compiler may
 * inline it.
 *
 * One to four arguments, each with its type before it; they and the result take up to
 * 48 bytes.
 */
#define WEFT_PARALLEL(result, name, ...)                                                           \
    WEFT_PARALLEL_PICK(__VA_ARGS__, WEFT_PARALLEL_4, , WEFT_PARALLEL_3, , WEFT_PARALLEL_2, ,       \
                       WEFT_PARALLEL_1, )                                                          \
    (result, name, __VA_ARGS__)

/* What follows is how. */
#define WEFT_PARALLEL_PICK(a, b, c, d, e, f, g, h, chosen, ...) chosen
#define WEFT_PARALLEL_BARE(...)                                 __VA_ARGS__

#define WEFT_PARALLEL_1(result, name, type1, arg1)                                                 \
    WEFT_PARALLEL_MAKE(result, name, (type1 arg1;), (type1 arg1), (type1 weft_other_##arg1),       \
                       (arg1), (weft_other_##arg1), (from->arg1))
#define WEFT_PARALLEL_2(result, name, type1, arg1, type2, arg2)                                    \
    WEFT_PARALLEL_MAKE(result, name, (type1 arg1; type2 arg2;), (type1 arg1, type2 arg2),          \
                       (type1 weft_other_##arg1, type2 weft_other_##arg2), (arg1, arg2),           \
                       (weft_other_##arg1, weft_other_##arg2), (from->arg1, from->arg2))
#define WEFT_PARALLEL_3(result, name, type1, arg1, type2, arg2, type3, arg3)                       \
    WEFT_PARALLEL_MAKE(                                                                            \
        result, name, (type1 arg1; type2 arg2; type3 arg3;), (type1 arg1, type2 arg2, type3 arg3), \
        (type1 weft_other_##arg1, type2 weft_other_##arg2, type3 weft_other_##arg3),               \
        (arg1, arg2, arg3), (weft_other_##arg1, weft_other_##arg2, weft_other_##arg3),             \
        (from->arg1, from->arg2, from->arg3))
#define WEFT_PARALLEL_4(result, name, type1, arg1, type2, arg2, type3, arg3, type4, arg4)          \
    WEFT_PARALLEL_MAKE(                                                                            \
        result, name, (type1 arg1; type2 arg2; type3 arg3; type4 arg4;),                           \
        (type1 arg1, type2 arg2, type3 arg3, type4 arg4),                                          \
        (type1 weft_other_##arg1, type2 weft_other_##arg2, type3 weft_other_##arg3,                \
         type4 weft_other_##arg4),                                                                 \
        (arg1, arg2, arg3, arg4),                                                                  \
        (weft_other_##arg1, weft_other_##arg2, weft_other_##arg3, weft_other_##arg4),              \
        (from->arg1, from->arg2, from->arg3, from->arg4))

#define WEFT_PARALLEL_MAKE(result, name, fields, parameters, others, values, other_values, stored) \
    typedef struct name##_args {                                                                   \
        WEFT_PARALLEL_BARE fields                                                                  \
    } name##_args;                                                                                 \
    typedef union name##_carried {                                                                 \
        name##_args args;                                                                          \
        result value;                                                                              \
    } name##_carried;                                                                              \
    typedef struct name##_forked {                                                                 \
        weft_jobs *jobs;                                                                           \
        weft_job *job;                                                                             \
        name##_args args;                                                                          \
    } name##_forked;                                                                               \
    typedef struct name##_pair {                                                                   \
        name##_args args[2];                                                                       \
        result *into[2];                                                                           \
    } name##_pair;                                                                                 \
    WEFT_STATIC_ASSERT(sizeof(name##_carried) <= sizeof(((weft_job *)0)->words),                   \
                       "the arguments of " #name " are too large: pass a pointer to them");        \
    WEFT_STATIC_ASSERT(__alignof__(name##_carried) <= 16,                                          \
                       "the arguments of " #name " are over-aligned: pass a pointer to them");     \
                                                                                                   \
    static result name##_body parameters;                                                          \
                                                                                                   \
    static inline result name##_with(const name##_args *from)                                      \
    {                                                                                              \
        return name##_body stored;                                                                 \
    }                                                                                              \
    static inline void name##_run(weft_job *job) WEFT_NOEXCEPT                                     \
    {                                                                                              \
        name##_carried *carried = (name##_carried *)weft_job_words(job);                           \
        carried->value = name##_with(&carried->args);                                              \
    }                                                                                              \
    static inline void name##_run_elsewhere(void *arg) WEFT_NOEXCEPT                               \
    {                                                                                              \
        name##_carried *carried = (name##_carried *)arg;                                           \
        carried->value = name##_with(&carried->args);                                              \
    }                                                                                              \
    static inline __attribute__((unused)) result name parameters WEFT_NOEXCEPT                     \
    {                                                                                              \
        if (__builtin_expect(weft_jobs_stack_is_low(weft_jobs_here()), 0)) {                       \
            name##_carried weft_carried = { { WEFT_PARALLEL_BARE values } };                       \
            weft_jobs_call_elsewhere(name##_run_elsewhere, &weft_carried);                         \
            return weft_carried.value;                                                             \
        }                                                                                          \
        return name##_body values;                                                                 \
    }                                                                                              \
                                                                                                   \
    static inline void name##_push(name##_forked *forked, weft_jobs *jobs)                         \
    {                                                                                              \
        weft_job *job = jobs->head;                                                                \
        forked->jobs = jobs;                                                                       \
        forked->job = job;                                                                         \
        job->run = name##_run;                                                                     \
        ((name##_carried *)weft_job_words(job))->args = forked->args;                              \
        weft_jobs_push(jobs);                                                                      \
    }                                                                                              \
    static inline void name##_fork_at(weft_jobs *jobs, name##_forked *forked)                      \
    {                                                                                              \
        if (__builtin_expect(!weft_jobs_must_ask(jobs), 1)) {                                      \
            name##_push(forked, jobs);                                                             \
            return;                                                                                \
        }                                                                                          \
        jobs = weft_jobs_make_room(jobs);                                                          \
        forked->job = NULL;                                                                        \
        if (jobs != NULL) {                                                                        \
            name##_push(forked, jobs);                                                             \
            weft_jobs_answer(jobs);                                                                \
        }                                                                                          \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_fork(name##_forked *weft_forked_at,          \
                                                           WEFT_PARALLEL_BARE parameters)          \
    {                                                                                              \
        name##_args weft_args = { WEFT_PARALLEL_BARE values };                                     \
        weft_forked_at->args = weft_args;                                                          \
        name##_fork_at(weft_jobs_here(), weft_forked_at);                                          \
    }                                                                                              \
    static inline __attribute__((unused)) result name##_join(name##_forked *forked) WEFT_NOEXCEPT  \
    {                                                                                              \
        if (forked->job == NULL || weft_jobs_pop(forked->jobs, forked->job) ||                     \
            weft_jobs_settle(forked->jobs, forked->job)) {                                         \
            return name##_with(&forked->args);                                                     \
        }                                                                                          \
        return ((name##_carried *)weft_job_words(forked->job))->value;                             \
    }                                                                                              \
                                                                                                   \
    static inline void name##_both_at(weft_jobs *jobs, const name##_pair *pair) WEFT_NOEXCEPT      \
    {                                                                                              \
        name##_forked forked;                                                                      \
        forked.args = pair->args[1];                                                               \
        name##_fork_at(jobs, &forked);                                                             \
        *pair->into[0] = name##_with(&pair->args[0]);                                              \
        *pair->into[1] = name##_join(&forked);                                                     \
    }                                                                                              \
    static inline void name##_both_elsewhere(void *arg) WEFT_NOEXCEPT                              \
    {                                                                                              \
        name##_both_at(weft_jobs_here(), (const name##_pair *)arg);                                \
    }                                                                                              \
    static inline __attribute__((unused)) void name##_both(                                        \
        result *weft_first, WEFT_PARALLEL_BARE parameters, result *weft_second,                    \
        WEFT_PARALLEL_BARE others) WEFT_NOEXCEPT                                                   \
    {                                                                                              \
        weft_jobs *weft_own = weft_jobs_here();                                                    \
        name##_pair weft_pair = { { { WEFT_PARALLEL_BARE values },                                 \
                                    { WEFT_PARALLEL_BARE other_values } },                         \
                                  { weft_first, weft_second } };                                   \
        if (__builtin_expect(weft_jobs_stack_is_low(weft_own), 0)) {                               \
            name##_pair weft_copy = weft_pair;                                                     \
            weft_jobs_call_elsewhere(name##_both_elsewhere, &weft_copy);                           \
            return;                                                                                \
        }                                                                                          \
        name##_both_at(weft_own, &weft_pair);                                                      \
    }                                                                                              \
                                                                                                   \
    static result name##_body parameters

#endif
