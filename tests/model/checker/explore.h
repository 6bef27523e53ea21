/* SPDX-License-Identifier: MIT */
/*
 * explore.h - who decides: the strategies, and what they are told.
 *
 * An execution is a sequence of decisions: which thread takes the next step, and
 * within a step which message a load reads, which sleeper is woken, and so on.
 * A strategy makes them, and after each execution says whether there is another
 * one to run. Whatever it decides is logged, so that any execution can be
 * replayed by its log alone.
 */
#ifndef MC_EXPLORE_H
#define MC_EXPLORE_H

#include "location.h"
#include "model.h"

enum {
    MC_PICK_NONE = -1, /* cut: every execution from here on is known */
};

struct mc_strategy {
    const char *name;
    bool is_exhaustive;
    void (*start)(void); /* of a test */
    void (*begin)(void); /* of an execution */
    /* One of the ready threads takes the next step. */
    int (*pick)(uint32_t ready, unsigned last);
    /* A number below count, which is at least 2. */
    unsigned (*choose)(unsigned count);
    /* A step has ended; may be NULL. */
    void (*stepped)(void);
    /* A thread takes a step that disturbs nobody; may be NULL. */
    void (*stepping_local)(unsigned thread);
    /* An execution has ended: prepares the next one, false if there is none. */
    bool (*next)(void);
};

extern const struct mc_strategy mc_strategy_all;
extern const struct mc_strategy mc_strategy_states;
extern const struct mc_strategy mc_strategy_random;
extern const struct mc_strategy mc_strategy_pct;
extern const struct mc_strategy mc_strategy_replay;

/* What a strategy needs of the test's options. */
struct mc_limits {
    unsigned preemptions; /* UINT32_MAX for no bound */
    unsigned changes;
    uint64_t runs;
    uint64_t seed;
};

struct mc_explore {
    const struct mc_strategy *strategy;
    struct mc_limits limits;
    uint64_t executions;
    uint64_t cuts;
    uint64_t states;
    bool is_unfit; /* MC_ALL cannot do this test, MC_STATES must */
};

extern struct mc_explore mc_explore;

/* Decides within a step. */
unsigned mc_explore_choose(unsigned count);

/* The same among some of total alternatives: the numbers in open. The others
 * are known from earlier executions. Returns one of these numbers. */
uint32_t mc_explore_choose_from(uint32_t total, const uint32_t *open, uint32_t open_count);

/* The log of decisions, as text; valid until the next call. */
void mc_explore_log_reset(void);
void mc_explore_log_pick(unsigned thread);
const char *mc_explore_log_text(void);

/* The text that mc_strategy_replay follows. */
void mc_explore_replay(const char *text);

/* --- What a step has done, for the reduction in all.c ----------------------- */

enum {
    MC_DID_READ = 1 << 0,
    MC_DID_WRITE = 1 << 1,
    MC_DID_NEWEST = 1 << 2, /* it could only have read the newest message */
    MC_DID_SC = 1 << 3,
    MC_DID_WAIT = 1 << 4,
    MC_DID_WAKE = 1 << 5,
    MC_DID_TIMEOUT = 1 << 6,
    MC_DID_FENCE = 1 << 7,
    MC_DID_AWAIT = 1 << 8, /* it was blocked until the word had its value */
    MC_DID_FAIL = 1 << 9,  /* a CAS that might have written in another order */
};

/* It has accessed an atomic word, or slept or woken there. */
void mc_did_access(struct mc_location *location, unsigned flags);

/* It has read (and written) the order of seq_cst operations. */
void mc_did_sc(unsigned flags);

/* It could not have come before this step. */
void mc_did_follow(uint32_t step);

/* It has kept a sleeper from ending its sleep by itself. */
void mc_did_prevent(unsigned thread);

#endif
