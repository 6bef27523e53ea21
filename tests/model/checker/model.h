/* SPDX-License-Identifier: MIT */
/*
 * model.h - the state of one execution: its threads, and where they stand.
 *
 * Threads are coroutines on one OS thread. A thread runs until its next
 * operation that others can see, announces it, and gives control to the
 * scheduler (run.c); when it is picked it performs the operation and runs on.
 * Such a stretch is a step. What plain code does within a step is not scheduled:
 * if its order mattered it would be a data race, and shadow.c reports those.
 *
 * A view says what a thread, or whoever reads a message, knows: the first
 * entries are a vector clock (happens-before), then comes a timestamp for each
 * atomic location, below which messages are too old to be read.
 */
#ifndef MC_MODEL_H
#define MC_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "mc.h"

enum {
    MC_THREADS_MAX = 16,
    MC_LOCATIONS_MAX = 2048,
    MC_VIEW_MAX = MC_THREADS_MAX + MC_LOCATIONS_MAX,
    MC_KEYS_MAX = 16,
    MC_ROUND_MAX = 32, /* reads in one round of a spin loop */
};

/* The values of memory_order, as compilers pass them. */
enum mc_order {
    MC_RELAXED,
    MC_CONSUME,
    MC_ACQUIRE,
    MC_RELEASE,
    MC_ACQ_REL,
    MC_SEQ_CST,
    MC_NO_ORDER,
};

enum mc_kind {
    MC_OP_NONE,
    MC_OP_START, /* the first step of a thread */
    MC_OP_LOAD,
    MC_OP_STORE,
    MC_OP_RMW,
    MC_OP_CAS,
    MC_OP_FENCE,
    MC_OP_CREATE,
    MC_OP_JOIN,
    MC_OP_WAIT,  /* looks at a futex word and goes to sleep, or not */
    MC_OP_SLEEP, /* sleeps until woken */
    MC_OP_WAKE,
    MC_OP_AWAIT, /* waits for a value, and exchanges it */
    MC_OP_SPIN,  /* waits for a change of what its loop reads */
};

/* What a thread does next. */
struct mc_op {
    enum mc_kind kind;
    enum mc_order order;
    enum mc_order fail_order; /* CAS */
    bool is_weak;             /* CAS */
    uintptr_t addr;
    uint64_t expected; /* AWAIT, CAS */
    unsigned target;   /* JOIN */
    const void *pc;
};

struct mc_read {
    const void *pc;
    uintptr_t addr;
    uint64_t value;
};

enum mc_spin_mode {
    MC_SPIN_NOT,
    MC_SPIN_WAIT,  /* blocked until a word of the round has a newer message */
    MC_SPIN_SAME,  /* reads what it read, up to the word that has changed */
    MC_SPIN_AGAIN, /* goes on reading what it read */
};

/* The reads since the last effect that others can see; see spin.c. */
struct mc_spin {
    struct mc_read log[2 * MC_ROUND_MAX];
    unsigned count;
    unsigned period; /* reads in a round, once one has been repeated */
    unsigned position;
    unsigned changed; /* SAME: where in the round the newer value is read */
    unsigned left;    /* AGAIN: reads before it counts as for ever */
    enum mc_spin_mode mode;
    bool is_last;  /* AGAIN: nobody else can go on, so it must end */
    bool is_known; /* AGAIN: if it ends, another run has shown what follows */
};

enum mc_life {
    MC_LIFE_LIVE,
    MC_LIFE_DONE,
};

struct mc_thread {
    unsigned index;
    enum mc_life life;
    void *stack_pointer;
    char *tls; /* its copy of the program's thread-locals */
    void *(*function)(void *arg);
    void *arg;
    void *result;
    unsigned parent;

    struct mc_op op;   /* the operation it has announced */
    uint64_t hash;     /* of its history, see states.c */
    uint32_t op_count; /* names its messages, the same in all runs */
    uint32_t step_last;

    uintptr_t waits_at;  /* its next step, a store, is also the beginning of a sleep there */
    int64_t deadline;    /* SLEEP */
    bool woken;          /* SLEEP: by a wake */
    uint32_t woken_step; /* SLEEP: by whom */
    unsigned timeouts;   /* left */
    unsigned spurious_wakes;
    unsigned spurious_cas;
    int64_t clock_ns; /* its own part of the time */
    int64_t clock_floor_ns;

    /* Messages that were there before this count have been read in this place
     * by an earlier run (all.c); 0 if none. */
    uint32_t read_before;

    struct mc_spin spin;
    void *keys[MC_KEYS_MAX];

    uint64_t told_sum; /* of current, after the last seq_cst fence */
    bool has_release;  /* release is in use */
    uint32_t current[MC_VIEW_MAX];
    uint32_t acquire[MC_VIEW_MAX]; /* what an acquire fence would add */
    uint32_t release[MC_VIEW_MAX]; /* current at the last release fence */
};

/* What the scheduler and the strategies know of a step. */
struct mc_exec {
    const struct mc_test *test;
    struct mc_thread threads[MC_THREADS_MAX];
    unsigned thread_count;
    unsigned location_count;
    uint32_t step; /* the number of the step that runs */
    bool cut;      /* the rest is known from another run */
    uint32_t sc_view[MC_LOCATIONS_MAX];
    uint64_t generation; /* of this execution, in tables that are not cleared */
};

extern struct mc_exec mc_exec;

/* The thread that runs, or NULL outside of an execution. */
extern struct mc_thread *mc_self;

static inline uint32_t mc_view_size(void)
{
    return MC_THREADS_MAX + mc_exec.location_count;
}

static inline void mc_view_join(uint32_t *into, const uint32_t *from, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        into[i] = from[i] > into[i] ? from[i] : into[i];
    }
}

static inline uint64_t mc_mix(uint64_t hash, uint64_t value)
{
    uint64_t x = (value + 0x9e3779b97f4a7c15ull) ^ (hash * 0xd6e8feb86659fd93ull);
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

static inline bool mc_order_acquires(enum mc_order order)
{
    return order == MC_ACQUIRE || order == MC_CONSUME || order == MC_ACQ_REL || order == MC_SEQ_CST;
}

static inline bool mc_order_releases(enum mc_order order)
{
    return order == MC_RELEASE || order == MC_ACQ_REL || order == MC_SEQ_CST;
}

#endif
