/* SPDX-License-Identifier: MIT */
/*
 * axioms.h - which outcomes of a small program do the axioms allow?
 *
 * Knows nothing of the checker: see axioms.c.
 */
#ifndef AXIOMS_H
#define AXIOMS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    AX_WORDS_MAX = 3,
    AX_THREADS_MAX = 4,
    AX_OPS_MAX = 4,
    AX_OUTCOMES_MAX = 512,
};

enum ax_kind {
    AX_LOAD,
    AX_STORE,
    AX_EXCHANGE,
    AX_ADD,  /* 16 */
    AX_CAS,  /* expects 0 */
    AX_WEAK, /* the same, weak */
    AX_FENCE,
    AX_READ, /* of a plain variable */
    AX_WRITE,
};

struct ax_op {
    enum ax_kind kind;
    int word;
    int order;
    int fail_order; /* AX_CAS, AX_WEAK */
    int value;
};

struct ax_program {
    unsigned threads;
    unsigned ops; /* of each thread */
    unsigned words;
    bool early_stores;
    struct ax_op op[AX_THREADS_MAX][AX_OPS_MAX];
};

struct ax_result {
    int outcomes[AX_OUTCOMES_MAX + 1];
    unsigned count;
    bool is_racy;
    bool is_strict; /* RC11 allows more, see axioms.c */
};

/* Returns false if there is too much to try. */
bool ax_solve(const struct ax_program *program, struct ax_result *result);

/* A number for what was read, 0 where nothing was, and for the last values. What a
 * weak exchange has read counts twice, and one if it was exchanged. */
static inline int ax_outcome(const struct ax_program *program,
                             int results[AX_THREADS_MAX][AX_OPS_MAX], const int *last)
{
    uint64_t hash = 1;
    for (unsigned i = 0; i < program->threads; i++) {
        for (unsigned j = 0; j < program->ops; j++) {
            hash = hash * 1000003 + (uint64_t)results[i][j];
        }
    }
    for (unsigned i = 0; i < program->words; i++) {
        hash = hash * 1000003 + (uint64_t)last[i];
    }
    return (int)((hash ^ hash >> 31) & 0x3fffffff);
}

#endif
