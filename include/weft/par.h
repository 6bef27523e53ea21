/* SPDX-License-Identifier: MIT */
/*
 * weft/par.h - fork-join parallelism: fork, join, and parallel scopes.
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
 * Fork a function that can run in parallel, do something else, then join it. A fork that no
 * worker steals costs a nanosecond or two, and its owner runs it at the join. So fork wherever
 * the problem divides, regardless of the number of workers. Idle workers steal the oldest
 * forks, which are the largest.
 *
 * A stolen fork runs on its own fiber: it may suspend, lock and sleep. It has its own
 * weft_local values and its own errno. It is canceled with the task that forked it, once that
 * task waits for it, and is covered by a shield that the task is in. Functions that the caller
 * runs itself, between fork and join or at the join, may suspend if the caller is a fiber or a
 * plain thread. They must not suspend if the caller is a stackless task. They then run inside
 * the task's poll, which has no stack to suspend, and an awaiting call aborts with a message.
 * The same holds for the callbacks of loops and algorithms. A stackless task that needs such
 * callbacks starts a fiber with weft_go(), which calls the algorithm, and awaits that fiber.
 *
 * Forks are joined in reverse order, each by the function that forked it, before that function
 * returns. In C++, an exception must not leave a function that has forked before its joins, nor
 * a function that is forked or was defined with WEFT_PARALLEL(); see weft/fiber.h.
 */
#ifndef WEFT_PAR_H
#define WEFT_PAR_H

#include "base.h"
#include "fork.h"
#include "loop.h"
#include "runtime.h"

WEFT_EXTERN_C_BEGIN

/*
 * Calls function(arg) on this thread and lets workers of the runtime steal its forks if it runs
 * for long. A short call wakes no worker. Returns the result of the function.
 *
 * Context:  any thread. On a worker it is a plain call. Up to 16 external threads at a time
 *           share their forks. Further ones run all forks themselves, at the joins. Aborts if
 *           the function ends its thread, by pthread_exit() or cancellation.
 * Suspends: no, but the thread sleeps in a join while a worker runs the fork.
 */
WEFT_API int weft_par_run(weft_runtime *rt, int (*function)(void *arg), void *arg);

/*
 * Calls function(arg) once on each worker of the runtime, on a fiber that is pinned to the
 * worker. weft_worker_current() returns which worker it is. Returns when all calls have
 * returned.
 *
 * Context:  fiber or plain thread.
 * Suspends: until all calls have returned. Cancellation does not end the wait, since the
 *           functions may use the caller's stack; it is passed on to them.
 * Errors:   the error of the lowest worker whose function failed; -ENOMEM or WEFT_ESHUTDOWN, in
 *           which case the calls that could be started have run.
 */
WEFT_API WEFT_NODISCARD int weft_par_broadcast(weft_runtime *rt, int (*function)(void *arg),
                                               void *arg);

WEFT_EXTERN_C_END

/* One fork, from weft_fork() to weft_fork_join(). Lives on the caller's stack. */
typedef struct weft_forked {
    weft_jobs *jobs;
    weft_job *job; /* NULL: no space, it runs at its join */
    void (*function)(void *arg);
    void *arg;
} weft_forked;

/* Runs a stolen fork. Called by the thief. */
static inline void weft_forked_run(weft_job *job) WEFT_NOEXCEPT
{
    job->words[0].function(job->words[1].pointer);
}

/* Writes the fork at the head of the fork stack and pushes it. */
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
 * Forks function(arg). From now on it may run on another worker. It runs in weft_fork_join() at
 * the latest.
 *
 * Context: any thread. Outside of tasks and weft_par_run() the function runs at the join.
 * Owns:    *forked, on the caller's stack, until weft_fork_join().
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
 * Joins the last fork that is not joined yet. When the call returns, the function has run, here
 * or on another worker.
 *
 * Suspends: if another worker is running the function. Cancellation does not end the wait,
 *           since the function may use the caller's stack.
 */
static inline void weft_fork_join(weft_forked *forked) WEFT_NOEXCEPT
{
    if (forked->job == NULL || weft_jobs_pop(forked->jobs, forked->job) ||
        weft_jobs_settle(forked->jobs, forked->job)) {
        forked->function(forked->arg);
    }
}

/* The arguments of a weft_join2() that moves to a fresh stack. */
typedef struct weft_both {
    void (*first)(void *arg);
    void *first_arg;
    void (*second)(void *arg);
    void *second_arg;
} weft_both;

/* Runs a weft_join2() whose caller has checked the stack. */
static inline void weft_both_run(void (*first)(void *arg), void *first_arg,
                                 void (*second)(void *arg), void *second_arg) WEFT_NOEXCEPT
{
    weft_forked forked;
    weft_fork(&forked, second, second_arg);
    first(first_arg);
    weft_fork_join(&forked);
}

static inline void weft_both_elsewhere(void *arg) WEFT_NOEXCEPT
{
    weft_both *both = (weft_both *)arg;
    weft_both_run(both->first, both->first_arg, both->second, both->second_arg);
}

/*
 * Runs both functions, in parallel if a worker is idle. Returns when both have returned.
 *
 * Recursion may go as deep as memory allows: when less than 16 KiB of a stack is left, the call
 * continues on another stack of 8 MiB. This holds on every thread, for weft_join2(), for the
 * functions name() and name_both() of WEFT_PARALLEL, and for all algorithms and loops whose
 * callbacks call an algorithm again. It does not hold for weft_fork() and weft_fork_join(), nor
 * for name_fork() and name_join(). What the recursion calls in between must get by with those
 * 16 KiB, of which an algorithm itself uses up to 11 KiB.
 *
 * Context:  any thread. Outside of tasks and weft_par_run(), and in a blocking job, a timer
 *           callback or weft_block_in_place(), the functions run one after the other.
 * Suspends: like weft_fork_join().
 */
static inline void weft_join2(void (*first)(void *arg), void *first_arg, void (*second)(void *arg),
                              void *second_arg) WEFT_NOEXCEPT
{
    if (__builtin_expect(weft_jobs_stack_is_low(weft_jobs_here()), 0)) {
        weft_both both = { first, first_arg, second, second_arg };
        weft_jobs_call_elsewhere(weft_both_elsewhere, &both);
        return;
    }
    weft_both_run(first, first_arg, second, second_arg);
}

/* A function and its argument. */
typedef struct weft_call {
    void (*function)(void *arg);
    void *arg;
} weft_call;

WEFT_EXTERN_C_BEGIN

/*
 * Runs any number of calls, like weft_join2().
 *
 * Context:  any thread. Outside of tasks and weft_par_run() they run one after the other.
 * Suspends: like weft_fork_join().
 */
WEFT_API void weft_join_n(const weft_call *calls, size_t count);

WEFT_EXTERN_C_END

/* A scope of functions that run in parallel. Lives on the stack of the function that begins
 * it. */
typedef struct weft_par_scope {
    uint64_t opaque[19];
} weft_par_scope;

WEFT_EXTERN_C_BEGIN

/*
 * Begins a scope. stop is a cancel flag that ends the scope early. It may be NULL.
 *
 * Context: any thread. A fiber ends its scopes in reverse order.
 */
WEFT_API void weft_par_scope_begin(weft_par_scope *scope, const weft_stop *stop);

/*
 * Spawns function(arg) in the scope. It runs on an idle worker, or at the end of the scope, and
 * may spawn further functions in the same scope. If a function returns an error, functions that
 * have not started yet do not run.
 *
 * Context:  any thread, between begin and end or inside a spawned function. Outside of tasks and
 *           weft_par_run(), or if memory is exhausted, the function is called immediately.
 * Suspends: if the caller has been spawning for long and other tasks wait for its worker; not
 *           for cancellation.
 */
WEFT_API void weft_par_spawn(weft_par_scope *scope, int (*function)(void *arg), void *arg);

/*
 * Ends the scope: returns when all spawned functions have finished. The function that began a
 * scope must end it exactly once. Ending a scope twice, and returning from a fiber with an open
 * scope, abort with a message.
 *
 * Suspends: while other workers run spawned functions. Cancellation does not end the wait.
 * Errors:   the first error that a function returned; WEFT_ECANCELED: stop was set.
 */
WEFT_API WEFT_NODISCARD int weft_par_scope_end(weft_par_scope *scope);

WEFT_EXTERN_C_END

/*
 * Defines a function that can run in parallel, with typed arguments and a result. Its body
 * follows:
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
 * This defines
 * - fib(n), an ordinary function;
 * - fib_both(&first, n, &second, m), the counterpart of weft_join2(), which stores the results
 *   of two calls;
 * - fib_fork(&forked, n) and fib_join(&forked), the counterparts of weft_fork() and
 *   weft_fork_join(). forked is a fib_forked, and the join returns the result.
 *
 * All are static. A fork that is not stolen is called directly, so the compiler may inline it.
 *
 * The function takes one to four arguments, each preceded by its type. The arguments, and the
 * result, must fit into 48 bytes.
 */
#define WEFT_PARALLEL(result, name, ...)                                                           \
    WEFT_PARALLEL_PICK(__VA_ARGS__, WEFT_PARALLEL_4, , WEFT_PARALLEL_3, , WEFT_PARALLEL_2, ,       \
                       WEFT_PARALLEL_1, )                                                          \
    (result, name, __VA_ARGS__)

/* Implementation of WEFT_PARALLEL. */
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
