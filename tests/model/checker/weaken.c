/* SPDX-License-Identifier: MIT */
/*
 * weaken.c - mutants: one operation of the program with a weaker order.
 *
 * The compiler hands the order of each atomic operation to tsan.c, together with
 * the place that it was called from. So an order can be weakened for one line of
 * the source without compiling anything. A test that still passes then does not
 * need that order; if no test needs it, either it can be weakened in the source,
 * or a test is missing.
 *
 *   ring_model sites                     lists the lines that tests have reached
 *   ring_model weaken=ring.c:57:relaxed  stops at the first test that fails
 */
#include "weaken.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "symbol.h"

enum {
    SITES_MAX = 4096, /* a power of two */
    LINE_BYTES = 96,
};

struct site {
    const void *pc; /* NULL: a free place */
    enum mc_kind kind;
    enum mc_order order;
    bool is_target;
    char line[LINE_BYTES];
};

static struct site sites[SITES_MAX];
static unsigned site_count;
static bool is_on;
static char target[LINE_BYTES];
static enum mc_order target_order;

static bool parse_order(const char *text, enum mc_order *order)
{
    for (unsigned i = MC_RELAXED; i <= MC_SEQ_CST; i++) {
        if (strcmp(text, mc_report_order_name((enum mc_order)i)) == 0) {
            *order = (enum mc_order)i;
            return true;
        }
    }
    return false;
}

bool mc_weaken_start(const char *text)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || (size_t)(colon - text) >= sizeof target ||
        !parse_order(colon + 1, &target_order)) {
        return false;
    }
    memcpy(target, text, (size_t)(colon - text));
    target[colon - text] = '\0';
    is_on = true;
    return true;
}

void mc_weaken_note_sites(void)
{
    is_on = true;
}

static struct site *find_site(enum mc_kind kind, enum mc_order order, const void *pc)
{
    size_t at = mc_mix(0, (uintptr_t)pc) % SITES_MAX;
    while (sites[at].pc != NULL && sites[at].pc != pc) {
        at = (at + 1) % SITES_MAX;
    }
    struct site *site = &sites[at];
    if (site->pc == NULL) {
        if (++site_count == SITES_MAX) {
            mc_report_limit("a program has more atomic operations than SITES_MAX of weaken.c");
        }
        *site = (struct site){ .pc = pc, .kind = kind, .order = order };
        char where[256];
        mc_symbol_code(pc, where, sizeof where);
        where[strcspn(where, " ")] = '\0';
        (void)snprintf(site->line, sizeof site->line, "%.*s", LINE_BYTES - 1, where);
        site->is_target = strcmp(site->line, target) == 0;
    }
    return site;
}

enum mc_order mc_weaken_order(enum mc_kind kind, enum mc_order order, const void *pc)
{
    if (mc_self == NULL || order == MC_RELAXED) {
        return order;
    }
    if (is_on && find_site(kind, order, pc)->is_target) {
        order = target_order;
    }
    bool is_too_strong = order == MC_SEQ_CST && kind != MC_OP_FENCE;
    return is_too_strong && mc_exec.test->weak_seq_cst ? MC_ACQ_REL : order;
}

enum mc_order mc_weaken_fail_order(enum mc_order fail_order, enum mc_order order)
{
    if (!mc_order_acquires(order)) {
        return MC_RELAXED;
    }
    return fail_order == MC_SEQ_CST && order != MC_SEQ_CST ? MC_ACQUIRE : fail_order;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct site *)a)->line, ((const struct site *)b)->line);
}

/* An operation on one line may have been compiled to several places. */
void mc_weaken_print_sites(void)
{
    qsort(sites, SITES_MAX, sizeof sites[0], compare);
    const char *last = "";
    for (unsigned i = 0; i < SITES_MAX; i++) {
        if (sites[i].pc != NULL && strcmp(sites[i].line, last) != 0) {
            last = sites[i].line;
            (void)printf("site %s %s %s\n", last, mc_report_kind_name(sites[i].kind),
                         mc_report_order_name(sites[i].order));
        }
    }
}
