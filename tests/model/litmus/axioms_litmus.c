/* SPDX-License-Identifier: MIT */
/*
 * axioms_litmus.c - the checker against the axioms: random programs without loops
 * and branches, and for each the outcomes that axioms.c finds by trying everything.
 *
 * Goal:   every outcome that is allowed is seen, and none that is not; a data race
 *         is reported where there is one, and nowhere else.
 * Method: the two know nothing of each other. One walks through executions, with
 *         views and a reduction; the other looks at graphs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "axioms.h"
#include "litmus.h"

enum {
    PROGRAMS = 1200,
    DEEP_PROGRAMS = 40000,
    NAME_SIZE = 24,
    TRIES_MAX = 50,
};

static atomic_int words[AX_WORDS_MAX];
static int plain;
static int results[AX_THREADS_MAX][AX_OPS_MAX];

static int weak_cas(atomic_int *word, int desired)
{
    int expected = 0;
    bool done = atomic_compare_exchange_weak_explicit(word, &expected, desired,
                                                      memory_order_acq_rel, memory_order_acquire);
    return 2 * expected + done;
}

static int run_op(const struct ax_op *op)
{
    atomic_int *word = &words[op->word];
    switch (op->kind) {
    case AX_LOAD:
        return load(word, op->order);
    case AX_STORE:
        store(word, op->value, op->order);
        return 0;
    case AX_EXCHANGE:
        return exchange(word, op->value, op->order);
    case AX_ADD:
        return fetch_add(word, 16, op->order);
    case AX_CAS:
        return cas(word, 0, op->value, op->order);
    case AX_WEAK:
        return weak_cas(word, op->value);
    case AX_FENCE:
        fence(op->order);
        return 0;
    case AX_READ:
        (void)*(volatile int *)&plain;
        return 0;
    case AX_WRITE:
        *(volatile int *)&plain = 1;
        return 0;
    }
    return 0;
}

static void run_thread(void *arg)
{
    unsigned index = (unsigned)(uintptr_t)arg;
    const struct ax_program *program = mc_arg();
    for (unsigned i = 0; i < program->ops; i++) {
        /* Or loads that read the same would be taken for a loop that waits. */
        (void)mc_choose(1);
        results[index][i] = run_op(&program->op[index][i]);
    }
}

static void run_program(void)
{
    const struct ax_program *program = mc_arg();
    for (unsigned i = 0; i < program->threads; i++) {
        mc_go(run_thread, (void *)(uintptr_t)i);
    }
    mc_join();
    int last[AX_WORDS_MAX];
    for (unsigned i = 0; i < AX_WORDS_MAX; i++) {
        last[i] = load(&words[i], RLX);
    }
    mc_note(ax_outcome(program, results, last));
}

/* --- Programs by chance ------------------------------------------------------------------- */

static uint64_t random_state;

static unsigned random_below(unsigned count)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % count;
}

static int random_order(enum ax_kind kind, unsigned sc_percent)
{
    static const int orders[][4] = {
        [AX_LOAD] = { RLX, ACQ, RLX, ACQ },    [AX_STORE] = { RLX, REL, RLX, REL },
        [AX_EXCHANGE] = { RLX, ACQ, REL, AR }, [AX_ADD] = { RLX, ACQ, REL, AR },
        [AX_CAS] = { RLX, ACQ, REL, AR },      [AX_FENCE] = { ACQ, REL, AR, SC },
    };
    if (kind == AX_READ || kind == AX_WRITE) {
        return RLX;
    }
    if (kind == AX_WEAK) {
        return AR;
    }
    if (random_below(100) < sc_percent) {
        return SC;
    }
    return orders[kind][random_below(4)];
}

static void make_program(struct ax_program *program, unsigned number)
{
    static const enum ax_kind kinds[] = { AX_LOAD,  AX_LOAD,  AX_LOAD,  AX_LOAD,     AX_STORE,
                                          AX_STORE, AX_STORE, AX_STORE, AX_EXCHANGE, AX_ADD,
                                          AX_CAS,   AX_WEAK,  AX_FENCE, AX_FENCE,    AX_FENCE,
                                          AX_READ,  AX_WRITE };
    /* Threads and operations of each, so that most can be solved. */
    static const unsigned sizes[][2] = { { 2, 3 }, { 2, 4 }, { 3, 2 }, { 3, 3 }, { 4, 2 } };
    unsigned size = random_below(5);
    bool is_plain = number % 5 == 0;
    unsigned kind_count = sizeof kinds / sizeof kinds[0] - (is_plain ? 0 : 2);
    /* Some with loads, stores and fences only, and mostly of two words, since it is
     * there that the orders matter. */
    bool has_updates = number % 4 != 1;
    static const unsigned word_counts[] = { 1, 2, 2, 2, 3 };
    bool has_sc_accesses = number % 3 == 0;
    *program = (struct ax_program){
        .threads = sizes[size][0],
        .ops = sizes[size][1],
        .words = word_counts[random_below(5)],
        .early_stores = number % 2 == 0,
    };
    for (unsigned i = 0; i < program->threads; i++) {
        for (unsigned j = 0; j < program->ops; j++) {
            enum ax_kind kind = kinds[random_below(kind_count)];
            if (!has_updates && kind >= AX_EXCHANGE && kind <= AX_WEAK) {
                kind = AX_FENCE;
            }
            int order = random_order(kind, has_sc_accesses || kind == AX_FENCE ? 50 : 0);
            program->op[i][j] = (struct ax_op){
                .kind = kind,
                .word = (int)random_below(program->words),
                .order = order,
                .fail_order = order == AR    ? ACQ
                              : order == REL ? RLX
                                             : order,
                .value = (int)(1 + i * AX_OPS_MAX + j),
            };
        }
    }
}

static void make_test(struct mc_test *test, unsigned number)
{
    struct ax_program *program = calloc(1, sizeof *program);
    struct ax_result *result = calloc(1, sizeof *result);
    char *name = calloc(1, NAME_SIZE);
    random_state = (number + 1) * 0x9e3779b97f4a7c15u;
    unsigned tries = 0;
    do {
        make_program(program, number);
    } while (!ax_solve(program, result) && ++tries < TRIES_MAX);
    result->outcomes[result->count] = MC_END;
    (void)snprintf(name, NAME_SIZE, "program_%u%s", number, result->is_strict ? "_strict" : "");
    *test = (struct mc_test){
        .name = name,
        .run = run_program,
        .arg = program,
        .seen = result->outcomes,
        .seen_only = !result->is_racy,
        .expect = result->is_racy ? MC_RACE : MC_NONE,
        .early_stores = program->early_stores,
        .spurious_cas = AX_OPS_MAX,
    };
}

int main(int argc, char **argv)
{
    const char *deep = getenv("DEEP");
    unsigned count = deep != NULL && deep[0] == '1' ? DEEP_PROGRAMS : PROGRAMS;
    struct mc_test *tests = calloc(count, sizeof *tests);
    for (unsigned i = 0; i < count; i++) {
        make_test(&tests[i], i);
    }
    /* The tests end with the process, and what they point to. */
    return mc_run_all(tests, count, argc, argv);
}
