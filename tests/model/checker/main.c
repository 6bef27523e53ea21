/* SPDX-License-Identifier: MIT */
/*
 * main.c - runs a table of tests and says what came out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "explore.h"
#include "mc.h"
#include "report.h"
#include "run.h"
#include "spin.h"
#include "weaken.h"

enum {
    RUNS = 10000,
    CHANGES = 3,
    SECONDS_MAX = 120,
    DEEP_FACTOR = 20,
    OUTCOMES_MAX = 1 << 14, /* a power of two */
};

struct outcome {
    int value;
    uint64_t count;
};

struct options {
    const struct mc_strategy *strategy; /* NULL: the test's own */
    unsigned preemptions;
    bool has_preemptions;
    uint64_t runs;
    uint64_t seed;
    unsigned seconds;
    bool is_deep;
    bool is_verbose;
    bool is_quiet;
    bool is_listing;
    bool has_sites;
    bool is_mutant;
    bool must_list;
    const char *replay_name;
    const char *replay;
    const char *filters[16];
    unsigned filter_count;
};

static struct options options = { .seed = 1 };
/* An open hash table; a count of 0 is a free place. */
struct outcomes {
    struct outcome table[OUTCOMES_MAX];
    unsigned count;
};

static struct outcomes outcomes;
static struct outcomes outcomes_before; /* of the other mode */

/* --- For the code of a test ------------------------------------------------- */

const void *mc_arg(void)
{
    return mc_exec.test->arg;
}

bool mc_is_deep(void)
{
    return options.is_deep;
}

unsigned mc_choose(unsigned count)
{
    mc_spin_effect();
    unsigned taken = mc_explore_choose(count);
    mc_done(mc_mix(count, taken));
    return taken;
}

static bool is_listed(const int *list, int outcome)
{
    for (; list != NULL && *list != MC_END; list++) {
        if (*list == outcome) {
            return true;
        }
    }
    return false;
}

static struct outcome *find_outcome(struct outcomes *set, int value)
{
    size_t at = mc_mix(0, (uint64_t)value) % OUTCOMES_MAX;
    while (set->table[at].count != 0 && set->table[at].value != value) {
        at = (at + 1) % OUTCOMES_MAX;
    }
    return &set->table[at];
}

void mc_note(int outcome)
{
    const struct mc_test *test = mc_exec.test;
    if (is_listed(test->never, outcome) || (test->seen_only && !is_listed(test->seen, outcome))) {
        mc_fail(MC_ASSERTION, "the outcome %d is forbidden", outcome);
    }
    struct outcome *place = find_outcome(&outcomes, outcome);
    if (place->count == 0 && ++outcomes.count == OUTCOMES_MAX) {
        mc_report_limit("a test has more outcomes than OUTCOMES_MAX of main.c");
    }
    place->value = outcome;
    place->count++;
}

/* --- One test --------------------------------------------------------------- */

/* CPU time: the limits of tests must not depend on what else the machine does. */
static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static const struct mc_strategy *strategy_of(const struct mc_test *test, unsigned preemptions)
{
    static const struct mc_strategy *const strategies[] = {
        [MC_ALL] = &mc_strategy_all,
        [MC_STATES] = &mc_strategy_states,
        [MC_RANDOM] = &mc_strategy_random,
        [MC_PCT] = &mc_strategy_pct,
    };
    if (options.replay != NULL) {
        return &mc_strategy_replay;
    }
    if (options.strategy != NULL) {
        return options.strategy;
    }
    if (preemptions != 0 && test->mode == MC_ALL) {
        return &mc_strategy_states;
    }
    return strategies[test->mode];
}

static void prepare(const struct mc_test *test, const struct mc_strategy *strategy)
{
    unsigned preemptions = options.is_deep ? test->deep_preemptions : test->preemptions;
    uint64_t runs = test->runs != 0 ? test->runs : RUNS;
    if (options.has_preemptions) {
        preemptions = options.preemptions;
    }
    mc_explore = (struct mc_explore){
        .strategy = strategy != NULL ? strategy : strategy_of(test, preemptions),
        .limits = {
            .preemptions = preemptions != 0 ? preemptions : UINT32_MAX,
            .changes = test->changes != 0 ? test->changes : CHANGES,
            .runs = options.runs != 0 ? options.runs : options.is_deep ? runs * DEEP_FACTOR : runs,
            .seed = options.seed,
        },
    };
    memset(&outcomes, 0, sizeof outcomes);
    mc_explore.strategy->start();
}

enum verdict {
    EXHAUSTED, /* or all runs are done */
    FAULTY,
    OUT_OF_TIME,
};

static enum verdict explore(const struct mc_test *test, double started)
{
    unsigned seconds = test->seconds_max != 0 ? test->seconds_max : SECONDS_MAX;
    seconds = options.is_deep ? seconds * DEEP_FACTOR : seconds;
    seconds = options.seconds != 0 ? options.seconds : seconds;
    do {
        mc_run_once(test);
        if (mc_explore.is_unfit) {
            prepare(test, &mc_strategy_states);
            mc_run_once(test);
        }
        if (mc_report_fault() != MC_NONE) {
            return FAULTY;
        }
        if (mc_explore.executions % 256 == 0 && now() - started > seconds) {
            return OUT_OF_TIME;
        }
    } while (mc_explore.strategy->next());
    return EXHAUSTED;
}

/* Runs the test once more in the other mode. */
static bool is_cross_checked(const struct mc_test *test, enum verdict verdict_before, char *text,
                             size_t size)
{
    struct mc_explore first = mc_explore;
    memcpy(&outcomes_before, &outcomes, sizeof outcomes);
    bool was_all = first.strategy == &mc_strategy_all;
    prepare(test, was_all ? &mc_strategy_states : &mc_strategy_all);
    enum verdict verdict = explore(test, now());
    unsigned common = 0;
    for (unsigned i = 0; i < OUTCOMES_MAX; i++) {
        const struct outcome *outcome = &outcomes_before.table[i];
        common += outcome->count != 0 && find_outcome(&outcomes, outcome->value)->count != 0;
    }
    first.executions += mc_explore.executions;
    mc_explore = first;
    bool is_same = common == outcomes.count && common == outcomes_before.count;
    if (verdict == verdict_before && (verdict == FAULTY || is_same)) {
        return true;
    }
    if (verdict == FAULTY || verdict_before == FAULTY) {
        (void)snprintf(text, size, "only one mode finds a fault");
        return false;
    }
    (void)snprintf(text, size, "%u outcomes in one mode, %u in the other, %u common%s",
                   outcomes_before.count, outcomes.count, common,
                   verdict == EXHAUSTED ? "" : "; the other one did not come to its end");
    return false;
}

static bool has_all_outcomes(const struct mc_test *test, char *text, size_t size)
{
    for (const int *wanted = test->seen; wanted != NULL && *wanted != MC_END; wanted++) {
        if (find_outcome(&outcomes, *wanted)->count == 0) {
            (void)snprintf(text, size, "the outcome %d never came up", *wanted);
            return false;
        }
    }
    return true;
}

/* An outcome that .seen does not list could vanish without notice. */
static bool lists_all_outcomes(const struct mc_test *test, char *text, size_t size)
{
    for (unsigned i = 0; i < OUTCOMES_MAX; i++) {
        const struct outcome *outcome = &outcomes.table[i];
        if (outcome->count != 0 && !is_listed(test->seen, outcome->value)) {
            (void)snprintf(text, size, "the outcome %d came up, but .seen does not list it",
                           outcome->value);
            return false;
        }
    }
    return true;
}

static void print_outcomes(void)
{
    for (unsigned i = 0; i < OUTCOMES_MAX; i++) {
        if (outcomes.table[i].count != 0) {
            (void)printf("  outcome %d: %lu times\n", outcomes.table[i].value,
                         (unsigned long)outcomes.table[i].count);
        }
    }
}

static void print_line(const char *word, const struct mc_test *test, double seconds)
{
    (void)printf("%-4s %-44s %-7s %9lu executions %9lu cut %8.2f s\n", word, test->name,
                 mc_explore.strategy->name, (unsigned long)mc_explore.executions,
                 (unsigned long)mc_explore.cuts, seconds);
}

/* Returns whether it has passed. */
static bool run_test(const struct mc_test *test)
{
    double started = now();
    prepare(test, NULL);
    enum verdict verdict = explore(test, started);
    double seconds = now() - started;
    char problem[256] = "";
    bool is_replay = mc_explore.strategy == &mc_strategy_replay;
    bool passed = mc_report_fault() == test->expect || test->expect == MC_ANY;
    if (verdict == OUT_OF_TIME && mc_explore.strategy->is_exhaustive) {
        (void)snprintf(problem, sizeof problem, "not exhausted; raise seconds_max");
        passed = false;
    } else if (passed && (test->expect == MC_NONE || test->expect == MC_ANY) &&
               mc_explore.strategy->is_exhaustive) {
        passed = has_all_outcomes(test, problem, sizeof problem) &&
                 (!options.must_list || lists_all_outcomes(test, problem, sizeof problem)) &&
                 (!test->cross_check || is_cross_checked(test, verdict, problem, sizeof problem));
    } else if (passed && test->expect == MC_NONE && options.must_list &&
               options.strategy == NULL) { /* By chance, but always by the same seed. */
        passed = has_all_outcomes(test, problem, sizeof problem) &&
                 (test->seen != NULL || lists_all_outcomes(test, problem, sizeof problem));
    } else if (!passed && verdict != FAULTY) {
        (void)snprintf(problem, sizeof problem, "expected, but not found: %s",
                       mc_report_fault_name(test->expect));
    }
    print_line(passed ? "ok" : "FAIL", test, seconds);
    if (problem[0] != '\0') {
        (void)printf("  %s\n", problem);
    }
    if (options.is_verbose || (!passed && verdict != FAULTY)) {
        print_outcomes();
    }
    if ((verdict == FAULTY && !options.is_quiet && (!passed || options.is_verbose)) || is_replay) {
        mc_report_print(mc_explore_log_text());
    }
    (void)fflush(stdout);
    return passed;
}

/* Runs a test of a mutant. Returns whether it has caught it. */
static bool run_mutant(const struct mc_test *test)
{
    if (test->expect != MC_NONE) {
        return false;
    }
    double started = now();
    prepare(test, NULL);
    if (explore(test, started) != FAULTY) {
        return false;
    }
    (void)printf("caught %s %.2f s %s: %s\n", test->name, now() - started,
                 mc_report_fault_name(mc_report_fault()), mc_report_text());
    if (options.is_verbose) {
        mc_report_print(mc_explore_log_text());
    }
    return true;
}

/* --- Options ---------------------------------------------------------------- */

static const char usage[] =
    "usage: %s [option | part of a test's name] ...\n"
    "  all, states, random, pct   how to explore, instead of what the tests say\n"
    "  preemptions=N              bound them, 0 for no bound\n"
    "  runs=N  seed=N             of random and pct\n"
    "  seconds=N                  limit for each test\n"
    "  deep                       larger tests and bounds; the same as DEEP=1\n"
    "  verbose  quiet  list\n"
    "  sites                      lists the operations that have an order\n"
    "  listed                     each outcome that comes up must be in .seen\n"
    "  mutant                     stops at the first failure, and succeeds if there is one\n"
    "  weaken=FILE:LINE:ORDER     the same, with another order on this line\n"
    "MC_REPLAY='name:decisions' runs that one execution. MC_OPTIONS holds options, too.\n";

static bool parse_number(const char *word, const char *name, uint64_t *number)
{
    size_t length = strlen(name);
    if (strncmp(word, name, length) != 0 || word[length] != '=') {
        return false;
    }
    *number = strtoull(word + length + 1, NULL, 10);
    return true;
}

static bool parse_strategy(const char *word)
{
    static const struct mc_strategy *const strategies[] = {
        &mc_strategy_all,
        &mc_strategy_states,
        &mc_strategy_random,
        &mc_strategy_pct,
    };
    for (unsigned i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        if (strcmp(word, strategies[i]->name) == 0) {
            options.strategy = strategies[i];
            return true;
        }
    }
    return false;
}

static bool parse_flag(const char *word)
{
    if (strcmp(word, "deep") == 0) {
        options.is_deep = true;
    } else if (strcmp(word, "verbose") == 0) {
        options.is_verbose = true;
    } else if (strcmp(word, "quiet") == 0) {
        options.is_quiet = true;
    } else if (strcmp(word, "list") == 0) {
        options.is_listing = true;
    } else if (strcmp(word, "mutant") == 0) {
        options.is_mutant = true;
    } else if (strcmp(word, "listed") == 0) {
        options.must_list = true;
    } else if (strcmp(word, "sites") == 0) {
        options.has_sites = true;
        mc_weaken_note_sites();
    } else {
        return false;
    }
    return true;
}

/* Returns false if there is no such option. */
static bool parse_known(const char *word)
{
    uint64_t number;
    if (parse_strategy(word) || parse_flag(word) || parse_number(word, "runs", &options.runs) ||
        parse_number(word, "seed", &options.seed)) {
        return true;
    }
    if (parse_number(word, "seconds", &number)) {
        options.seconds = (unsigned)number;
        return true;
    }
    if (parse_number(word, "preemptions", &number)) {
        options.preemptions = (unsigned)number;
        options.has_preemptions = true;
        return true;
    }
    if (strncmp(word, "weaken=", strlen("weaken=")) == 0) {
        options.is_mutant = true;
        return mc_weaken_start(word + strlen("weaken="));
    }
    if (strchr(word, '=') != NULL || word[0] == '-' ||
        options.filter_count == sizeof options.filters / sizeof options.filters[0]) {
        return false;
    }
    options.filters[options.filter_count++] = word;
    return true;
}

static bool parse_word(const char *word)
{
    bool is_known = parse_known(word);
    if (!is_known) {
        (void)fprintf(stderr, "model checker: cannot understand '%s'\n", word);
    }
    return is_known;
}

static bool parse_environment(void)
{
    const char *deep = getenv("DEEP");
    options.is_deep = deep != NULL && strcmp(deep, "") != 0 && strcmp(deep, "0") != 0;
    const char *replay = getenv("MC_REPLAY");
    if (replay != NULL && strchr(replay, ':') == NULL) {
        (void)fprintf(stderr, "model checker: MC_REPLAY wants name:decisions, as a failure prints "
                              "them\n");
        return false;
    }
    if (replay != NULL) {
        size_t length = (size_t)(strchr(replay, ':') - replay);
        options.replay_name = strndup(replay, length);
        options.replay = replay + length + 1;
        mc_explore_replay(options.replay);
    }
    const char *words = getenv("MC_OPTIONS");
    char *copy = words != NULL ? strdup(words) : NULL;
    char *rest = copy;
    bool is_right = true;
    for (char *word; copy != NULL && (word = strtok_r(rest, " ,", &rest)) != NULL;) {
        is_right = is_right && parse_word(word);
    }
    /* The words stay in use as filters. */
    return is_right;
}

static bool is_wanted(const struct mc_test *test)
{
    if (options.replay != NULL) {
        return strcmp(test->name, options.replay_name) == 0;
    }
    bool is_wanted = options.filter_count == 0;
    for (unsigned i = 0; i < options.filter_count; i++) {
        is_wanted = is_wanted || strstr(test->name, options.filters[i]) != NULL;
    }
    return is_wanted;
}

int mc_run_all(const struct mc_test *tests, size_t count, int argc, char **argv)
{
    bool is_right = parse_environment();
    for (int i = 1; i < argc; i++) {
        is_right = is_right && parse_word(argv[i]);
    }
    if (!is_right) {
        (void)fprintf(stderr, usage, argv[0]);
        return 2;
    }
    mc_run_start();
    unsigned passed = 0;
    unsigned failed = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(&tests[i])) {
            continue;
        }
        if (options.is_listing) {
            (void)printf("%s\n", tests[i].name);
        } else if (options.is_mutant) {
            if (run_mutant(&tests[i])) {
                return 0;
            }
        } else if (run_test(&tests[i])) {
            passed++;
        } else {
            failed++;
        }
    }
    if (options.has_sites) {
        mc_weaken_print_sites();
    }
    if (options.is_mutant) {
        (void)printf("survived\n");
        return 1;
    }
    if (options.is_listing) {
        return 0;
    }
    (void)printf("%u passed, %u failed\n", passed, failed);
    if (passed + failed == 0) {
        (void)fprintf(stderr, "model checker: no test is named like that; see '%s list'\n",
                      argv[0]);
    }
    return failed > 0 || passed == 0 ? 1 : 0;
}
