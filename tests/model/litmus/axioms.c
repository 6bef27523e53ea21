/* SPDX-License-Identifier: MIT */
/*
 * axioms.c - which outcomes of a small program do the axioms allow?
 *
 * Tries everything: from which store each load reads (rf), and in which order the
 * stores of a word come (mo). What is left after the axioms is allowed. Relations
 * are rows of bits.
 *
 *   coherence   hb ; eco is irreflexive, where eco is (rf | mo | fr)+
 *   atomicity   an RMW comes directly after what it reads, in mo
 *   order       there is one order of execution that has sb, rf, what seq_cst asks
 *               for, and without .early_stores also mo
 *
 * hb as in RC11 ("Repairing Sequential Consistency in C/C++11", Lahav and others,
 * PLDI 2017), but a release sequence is continued by RMWs only, as in C++20. What
 * seq_cst asks for: with b eco e, and X, Y fences,
 *
 *   b before e   both seq_cst, and e a store
 *   b before X   b seq_cst, e hb X
 *   Y before e   Y hb b, e seq_cst, and a store
 *   Y before X   Y hb b, e hb X
 *
 * The last line is RC11's rule for fences. RC11 does not ask for one order of all
 * that, together with sb and rf, so it allows more: is_strict says that this
 * program is such a one. It is asked only of programs whose seq_cst operations are
 * all fences.
 */
#include "axioms.h"

#include <stdatomic.h>
#include <string.h>

enum {
    EVENTS_MAX = AX_WORDS_MAX + AX_THREADS_MAX * AX_OPS_MAX,
    CHECKS_MAX = 12000,
    NONE = -1,
};

typedef uint32_t row;

struct event {
    const struct ax_op *op; /* NULL for the initial store of a word */
    int word;
    int order;
    int thread;
    bool reads;
    bool writes;
    bool is_plain;
    bool gives_up; /* AX_WEAK: fails for no reason */
    int rf;
    int read;
    int written;
};

static struct {
    const struct ax_program *program;
    struct ax_result *result;
    struct event events[EVENTS_MAX];
    int count;
    int mo[AX_WORDS_MAX][EVENTS_MAX]; /* the stores of a word in their order */
    int mo_count[AX_WORDS_MAX];
    unsigned checks;
    row sb[EVENTS_MAX];
    row rf[EVENTS_MAX];
    row mo_rows[EVENTS_MAX];
    row hb[EVENTS_MAX];
    row eco[EVENTS_MAX];
} ax;

static bool has(const row *relation, int from, int to)
{
    return (relation[from] >> to & 1) != 0;
}

static void close_over(row *relation)
{
    for (int middle = 0; middle < ax.count; middle++) {
        for (int from = 0; from < ax.count; from++) {
            if (has(relation, from, middle)) {
                relation[from] |= relation[middle];
            }
        }
    }
}

static bool is_irreflexive(const row *relation)
{
    for (int i = 0; i < ax.count; i++) {
        if (has(relation, i, i)) {
            return false;
        }
    }
    return true;
}

static bool acquires(const struct event *event)
{
    return event->order == memory_order_acquire || event->order == memory_order_acq_rel ||
           event->order == memory_order_seq_cst;
}

static bool releases(const struct event *event)
{
    return event->order == memory_order_release || event->order == memory_order_acq_rel ||
           event->order == memory_order_seq_cst;
}

static bool is_fence(const struct event *event)
{
    return event->op != NULL && event->op->kind == AX_FENCE;
}

static bool is_sc(const struct event *event)
{
    return event->order == memory_order_seq_cst;
}

/* --- Relations ------------------------------------------------------------------------- */

/* Whoever has read this store, or one that continues its release sequence, and has
 * acquired, knows what from knows. */
static void add_synchronised(int from, int store)
{
    for (int i = 0; i < ax.count; i++) {
        const struct event *event = &ax.events[i];
        if (!event->reads || event->is_plain || event->rf != store) {
            continue;
        }
        if (acquires(event)) {
            ax.hb[from] |= (row)1 << i;
        }
        for (int j = 0; j < ax.count; j++) {
            if (is_fence(&ax.events[j]) && acquires(&ax.events[j]) && has(ax.sb, i, j)) {
                ax.hb[from] |= (row)1 << j;
            }
        }
        if (event->writes) {
            add_synchronised(from, i);
        }
    }
}

static void find_hb(void)
{
    memcpy(ax.hb, ax.sb, sizeof ax.hb);
    for (int i = 0; i < ax.count; i++) {
        const struct event *event = &ax.events[i];
        if (!event->writes || event->is_plain) {
            continue;
        }
        if (releases(event)) {
            add_synchronised(i, i);
        }
        for (int j = 0; j < ax.count; j++) {
            if (is_fence(&ax.events[j]) && releases(&ax.events[j]) && has(ax.sb, j, i)) {
                add_synchronised(j, i);
            }
        }
    }
    close_over(ax.hb);
}

static void find_eco(void)
{
    memset(ax.mo_rows, 0, sizeof ax.mo_rows);
    memset(ax.eco, 0, sizeof ax.eco);
    for (unsigned word = 0; word < ax.program->words; word++) {
        for (int i = 0; i < ax.mo_count[word]; i++) {
            for (int j = i + 1; j < ax.mo_count[word]; j++) {
                ax.mo_rows[ax.mo[word][i]] |= (row)1 << ax.mo[word][j];
            }
        }
    }
    for (int i = 0; i < ax.count; i++) {
        const struct event *event = &ax.events[i];
        ax.eco[i] |= ax.mo_rows[i] | ax.rf[i];
        if (event->reads && !event->is_plain) {
            ax.eco[i] |= ax.mo_rows[event->rf] & ~((row)1 << i);
        }
    }
    close_over(ax.eco);
}

static bool is_coherent(void)
{
    for (int i = 0; i < ax.count; i++) {
        for (int j = 0; j < ax.count; j++) {
            if (has(ax.hb, i, j) && has(ax.eco, j, i)) {
                return false;
            }
        }
    }
    return is_irreflexive(ax.hb);
}

/* --- The order of seq_cst operations ------------------------------------------------------ */

static bool is_sc_fence(int i)
{
    return is_fence(&ax.events[i]) && is_sc(&ax.events[i]);
}

/* b eco e: adds what must be in order because of that. */
static void add_sc_edges(row *order, int b, int e)
{
    row before = is_sc(&ax.events[b]) ? (row)1 << b : 0;
    row after = is_sc(&ax.events[e]) && ax.events[e].writes ? (row)1 << e : 0;
    for (int i = 0; i < ax.count; i++) {
        if (is_sc_fence(i)) {
            before |= has(ax.hb, i, b) ? (row)1 << i : 0;
            after |= has(ax.hb, e, i) ? (row)1 << i : 0;
        }
    }
    for (int i = 0; i < ax.count; i++) {
        order[i] |= before >> i & 1 ? after : 0;
    }
}

static bool has_one_order(void)
{
    row order[EVENTS_MAX];
    for (int i = 0; i < ax.count; i++) {
        order[i] = ax.sb[i] | ax.rf[i] | (ax.program->early_stores ? 0 : ax.mo_rows[i]);
    }
    for (int b = 0; b < ax.count; b++) {
        for (int e = 0; e < ax.count; e++) {
            if (has(ax.eco, b, e)) {
                add_sc_edges(order, b, e);
            }
        }
    }
    close_over(order);
    return is_irreflexive(order);
}

/* RC11's psc, if all seq_cst operations are fences. */
static bool is_right_in_rc11(void)
{
    row psc[EVENTS_MAX] = { 0 };
    for (int x = 0; x < ax.count; x++) {
        for (int y = 0; y < ax.count; y++) {
            if (!is_sc_fence(x) || !is_sc_fence(y)) {
                continue;
            }
            bool is_before = has(ax.hb, x, y);
            for (int i = 0; i < ax.count; i++) {
                for (int j = 0; j < ax.count; j++) {
                    is_before =
                        is_before || (has(ax.hb, x, i) && has(ax.eco, i, j) && has(ax.hb, j, y));
                }
            }
            psc[x] |= (row)is_before << y;
        }
    }
    close_over(psc);
    return is_irreflexive(psc);
}

static bool has_sc_access(void)
{
    for (int i = 0; i < ax.count; i++) {
        if (is_sc(&ax.events[i]) && !is_fence(&ax.events[i])) {
            return true;
        }
    }
    return false;
}

/* --- One candidate ------------------------------------------------------------------------- */

static void note_races(void)
{
    for (int i = 0; i < ax.count; i++) {
        for (int j = 0; j < i; j++) {
            const struct event *a = &ax.events[i];
            const struct event *b = &ax.events[j];
            bool is_conflict = a->is_plain && b->is_plain && (a->writes || b->writes);
            if (is_conflict && !has(ax.hb, i, j) && !has(ax.hb, j, i)) {
                ax.result->is_racy = true;
            }
        }
    }
}

static void note_outcome(void)
{
    int results[AX_THREADS_MAX][AX_OPS_MAX] = { 0 };
    int last[AX_WORDS_MAX] = { 0 };
    for (int i = 0; i < ax.count; i++) {
        const struct event *event = &ax.events[i];
        if (event->reads && !event->is_plain) {
            int number = (int)(event->op - ax.program->op[event->thread]);
            bool is_weak = event->op->kind == AX_WEAK;
            results[event->thread][number] =
                is_weak ? 2 * event->read + event->writes : event->read;
        }
    }
    for (unsigned word = 0; word < ax.program->words; word++) {
        last[word] = ax.events[ax.mo[word][ax.mo_count[word] - 1]].written;
    }
    int outcome = ax_outcome(ax.program, results, last);
    struct ax_result *result = ax.result;
    for (unsigned i = 0; i < result->count; i++) {
        if (result->outcomes[i] == outcome) {
            return;
        }
    }
    if (result->count < AX_OUTCOMES_MAX) {
        result->outcomes[result->count++] = outcome;
    } else {
        ax.checks = CHECKS_MAX;
    }
}

static void check(void)
{
    ax.checks++;
    find_hb();
    find_eco();
    if (!is_coherent()) {
        return;
    }
    bool is_right = has_one_order();
    if (ax.program->early_stores && !has_sc_access()) {
        bool is_rc11 = is_right_in_rc11();
        ax.result->is_strict |= is_rc11 && !is_right;
        if (is_right && !is_rc11) {
            ax.checks = CHECKS_MAX + 1; /* the checker would allow too much */
            return;
        }
    }
    if (is_right) {
        note_races();
        note_outcome();
    }
}

/* --- All candidates -------------------------------------------------------------------------- */

/* Puts the stores of a word in every order, then those of the next word. */
static void order_stores(unsigned word, row placed)
{
    if (ax.checks >= CHECKS_MAX) {
        return;
    }
    if (word == ax.program->words) {
        check();
        return;
    }
    row left = 0;
    for (int i = 0; i < ax.count; i++) {
        const struct event *event = &ax.events[i];
        if (event->writes && !event->is_plain && event->word == (int)word && !(placed >> i & 1)) {
            left |= (row)1 << i;
        }
    }
    if (left == 0) {
        order_stores(word + 1, placed);
        return;
    }
    int *count = &ax.mo_count[word];
    for (int i = 0; i < ax.count; i++) {
        bool is_first = true;
        for (int j = 0; j < ax.count; j++) {
            is_first = is_first && !((left >> j & 1) && has(ax.sb, j, i));
        }
        bool fits =
            !ax.events[i].reads || (*count > 0 && ax.mo[word][*count - 1] == ax.events[i].rf);
        if ((left >> i & 1) && is_first && fits) {
            ax.mo[word][(*count)++] = i;
            order_stores(word, placed | (row)1 << i);
            --*count;
        }
    }
}

/* Follows what is read through the program. Returns false if that is not possible:
 * in a circle, or from a CAS that does not store. */
static bool find_values(void)
{
    row order[EVENTS_MAX];
    memset(ax.rf, 0, sizeof ax.rf);
    for (int i = 0; i < ax.count; i++) {
        if (ax.events[i].reads && !ax.events[i].is_plain) {
            ax.rf[ax.events[i].rf] |= (row)1 << i;
        }
    }
    for (int i = 0; i < ax.count; i++) {
        order[i] = ax.sb[i] | ax.rf[i];
    }
    close_over(order);
    if (!is_irreflexive(order)) {
        return false;
    }
    /* Often enough for the longest chain. */
    for (int round = 0; round < ax.count; round++) {
        for (int i = 0; i < ax.count; i++) {
            struct event *event = &ax.events[i];
            if (!event->reads || event->is_plain) {
                continue;
            }
            event->read = ax.events[event->rf].written;
            if (event->op->kind == AX_ADD) {
                event->written = event->read + 16;
            } else if (event->op->kind == AX_CAS || event->op->kind == AX_WEAK) {
                event->writes = event->read == 0 && !event->gives_up;
                event->order = event->writes ? event->op->order : event->op->fail_order;
            }
        }
    }
    for (int i = 0; i < ax.count; i++) {
        const struct event *event = &ax.events[i];
        if (event->reads && !event->is_plain && !ax.events[event->rf].writes) {
            return false;
        }
    }
    return true;
}

static bool can_write(const struct event *event)
{
    return event->op == NULL || (event->op->kind >= AX_STORE && event->op->kind <= AX_WEAK);
}

static void choose_reads(int at)
{
    if (ax.checks >= CHECKS_MAX) {
        return;
    }
    if (at == ax.count) {
        if (find_values()) {
            memset(ax.mo_count, 0, sizeof ax.mo_count);
            order_stores(0, 0);
        }
        return;
    }
    struct event *event = &ax.events[at];
    if (!event->reads || event->is_plain) {
        choose_reads(at + 1);
        return;
    }
    for (int from = 0; from < ax.count; from++) {
        const struct event *store = &ax.events[from];
        if (from != at && can_write(store) && store->word == event->word && !has(ax.sb, at, from)) {
            event->rf = from;
            event->gives_up = false;
            choose_reads(at + 1);
            if (event->op->kind == AX_WEAK) {
                event->gives_up = true;
                choose_reads(at + 1);
            }
        }
    }
}

static void add_event(const struct ax_op *op, int thread, int word)
{
    struct event *event = &ax.events[ax.count++];
    *event = (struct event){ .op = op, .thread = thread, .word = word, .rf = NONE };
    if (op == NULL) {
        event->writes = true;
        return;
    }
    event->order = op->order;
    event->written = op->value;
    event->is_plain = op->kind == AX_READ || op->kind == AX_WRITE;
    event->word = op->kind == AX_FENCE || event->is_plain ? NONE : op->word;
    event->reads = op->kind != AX_STORE && op->kind != AX_FENCE && op->kind != AX_WRITE;
    event->writes = op->kind != AX_LOAD && op->kind != AX_FENCE && op->kind != AX_READ;
}

bool ax_solve(const struct ax_program *program, struct ax_result *result)
{
    memset(&ax, 0, sizeof ax);
    ax.program = program;
    ax.result = result;
    *result = (struct ax_result){ 0 };
    for (unsigned i = 0; i < program->words; i++) {
        add_event(NULL, NONE, (int)i);
    }
    for (unsigned i = 0; i < program->threads; i++) {
        for (unsigned j = 0; j < program->ops; j++) {
            add_event(&program->op[i][j], (int)i, program->op[i][j].word);
        }
    }
    for (int i = 0; i < ax.count; i++) {
        for (int j = 0; j < ax.count; j++) {
            bool is_initial = ax.events[i].op == NULL && ax.events[j].op != NULL;
            bool is_same = ax.events[i].thread == ax.events[j].thread && ax.events[i].op != NULL;
            if (is_initial || (is_same && i < j)) {
                ax.sb[i] |= (row)1 << j;
            }
        }
    }
    choose_reads(0);
    return ax.checks < CHECKS_MAX;
}
