/* SPDX-License-Identifier: MIT */
/*
 * mc.h - a model checker for small concurrent C11 programs.
 *
 * It runs a test again and again, through every order of its threads and every
 * value that C11 lets an atomic load return, and stops at the first failure with
 * the schedule that leads to it. docs/model.md says how to use it, and what it
 * does not see.
 *
 *     static void *writer(void *arg) { ... }
 *
 *     static void flag_publishes_data(void)
 *     {
 *         pthread_t thread;
 *         pthread_create(&thread, NULL, writer, NULL);
 *         ...
 *         mc_assert(data == 42);
 *         pthread_join(thread, NULL);
 *     }
 *
 *     static const struct mc_test tests[] = {
 *         { .name = "flag_publishes_data", .run = flag_publishes_data },
 *     };
 *     MC_MAIN(tests)
 */
#ifndef MC_H
#define MC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MC_API __attribute__((visibility("default")))
#else
#define MC_API
#endif

/* What can be wrong with an execution. */
enum mc_fault {
    MC_NONE,
    MC_ASSERTION,      /* mc_assert(), assert(), abort(), or a forbidden outcome */
    MC_RACE,           /* plain memory accessed by two threads, one of them writing */
    MC_DEADLOCK,       /* every thread waits: a lost wake-up */
    MC_LIVELOCK,       /* a thread spins for ever, or the steps have run out */
    MC_USE_AFTER_FREE, /* or unordered with the free, or beside an allocation */
    MC_BAD_FREE,       /* freed twice, or never allocated */
    MC_LEAK,           /* only with .leaks */
    MC_CRASH,          /* SIGSEGV, SIGBUS, SIGFPE, SIGILL */
    MC_ANY,            /* for .expect with .cross_check: both modes find one, or none */
};

/* How the executions of a test are found. */
enum mc_mode {
    MC_ALL,    /* every execution, once: dynamic partial-order reduction */
    MC_STATES, /* every state, once; the mode for .preemptions */
    MC_RANDOM, /* .runs executions, each choice by chance */
    MC_PCT,    /* .runs executions by priorities that change at random places */
};

struct mc_test {
    const char *name;
    void (*run)(void);
    const void *arg; /* for mc_arg(): one function, several tests */

    enum mc_fault expect; /* the test succeeds if this fault is found */

    /* Outcomes, reported by mc_note(). Lists are made by MC_OUTCOMES(). */
    const int *seen;  /* each must come up in some execution */
    const int *never; /* none may come up */
    bool seen_only;   /* nothing but those in seen may come up */
    bool cross_check; /* MC_ALL and MC_STATES must find the same */

    enum mc_mode mode;
    unsigned preemptions;      /* bound, 0 for none; makes the mode MC_STATES */
    unsigned deep_preemptions; /* with DEEP=1; 0 for none at all */
    unsigned runs;             /* of MC_RANDOM and MC_PCT; 0 for 10000 */
    unsigned changes;          /* of priority in a run of MC_PCT; 0 for 3 */
    unsigned steps_max;        /* of one execution; 0 for 5000 */
    unsigned seconds_max;      /* of the whole test; 0 for 120 */

    bool leaks;              /* what was allocated must have been freed */
    bool early_stores;       /* a store may go before newer ones that it has not seen */
    bool weak_seq_cst;       /* seq_cst accesses, not fences, are no more than acq_rel */
    unsigned timeouts;       /* deadlines that may fire early, per thread */
    unsigned spurious_wakes; /* sleeps that may end for no reason, per thread */
    unsigned spurious_cas;   /* weak exchanges that may fail so, per thread */
    bool moving_clock;       /* the test calls mc_clock_advance() */
    int64_t clock_step_ns;   /* what each look at the clock adds, per thread */
};

#define MC_END INT32_MIN
#define MC_OUTCOMES(...)                                                                           \
    (const int[])                                                                                  \
    {                                                                                              \
        __VA_ARGS__, MC_END                                                                        \
    }

/*
 * Runs the tests and prints a line for each, and "N passed, N failed". Returns
 * what main() must return: 0, 1 after a failure, 2 for a wrong option.
 */
MC_API int mc_run_all(const struct mc_test *tests, size_t count, int argc, char **argv);

#define MC_MAIN(tests)                                                                             \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return mc_run_all((tests), sizeof(tests) / sizeof(tests)[0], argc, argv);                  \
    }

/* --- For the code of a test ------------------------------------------------ */

#define mc_assert(condition)                                                                       \
    ((condition) ? (void)0 : mc_fail(MC_ASSERTION, "%s:%d: %s", __FILE__, __LINE__, #condition))

/* Ends the execution as wrong. */
MC_API _Noreturn void mc_fail(enum mc_fault fault, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Counts an outcome of this execution. */
MC_API void mc_note(int outcome);

/* The test's .arg. */
MC_API const void *mc_arg(void);

/* True with DEEP=1: a test may then be larger. */
MC_API bool mc_is_deep(void);

/* Each of 0 to count - 1 in turn, in executions of its own. */
MC_API unsigned mc_choose(unsigned count);

/* Starts a thread; mc_join() waits for all that this thread has started. */
MC_API void mc_go(void (*function)(void *arg), void *arg);
MC_API void mc_join(void);

/* Gives memory a name for the schedule that is printed on failure. */
MC_API void mc_name(const volatile void *memory, size_t size, const char *name);

/* --- What a program waits and sleeps with ---------------------------------- */

/*
 * Sleeps while *word equals expected, until a wake; until the deadline only if
 * the test has .timeouts. Returns 0 or -ETIMEDOUT. INT64_MAX is no deadline.
 */
MC_API int mc_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline_ns);

/* Wakes at most count sleepers; which ones is a choice. Returns how many. */
MC_API int mc_futex_wake(_Atomic(uint32_t) *word, int count);

/* Blocks until *word equals expected, and exchanges it with acquire order: a
 * lock in one step, for tests that are not about the lock. */
MC_API void mc_await_exchange(_Atomic(uint32_t) *word, uint32_t expected, uint32_t desired);

/* Virtual time. It stands still but for mc_clock_advance(), .clock_step_ns, and,
 * for the thread it wakes, a deadline that fires. */
MC_API int64_t mc_clock_now(void);
MC_API void mc_clock_advance(int64_t ns);

/* A weak compare-and-exchange; for weak_cas.h. */
MC_API bool mc_cas_weak(volatile void *word, void *expected, const void *desired, size_t size,
                        int order, int fail_order);

#endif
