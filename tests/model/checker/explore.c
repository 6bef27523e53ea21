/* SPDX-License-Identifier: MIT */
/*
 * explore.c - decisions: asked for, logged, replayed.
 *
 * The log as text: a letter for each step, a for T0, b for T1; after it a digit
 * for each choice within the step, or a number in brackets; "a{3}" for "aaa".
 */
#include "explore.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum {
    PICK = 1 << 16, /* a decision that is a thread, not a choice */
};

struct mc_explore mc_explore;

static struct {
    uint32_t *decisions;
    size_t count;
    size_t capacity;
    char *text;
} history;

void mc_explore_log_reset(void)
{
    history.count = 0;
}

static void log_decision(uint32_t decision)
{
    MC_GROW(history.decisions, history.count, history.capacity);
    history.decisions[history.count++] = decision;
}

void mc_explore_log_pick(unsigned thread)
{
    log_decision(PICK | thread);
}

unsigned mc_explore_choose(unsigned count)
{
    if (count == 1) {
        return 0;
    }
    unsigned taken = mc_explore.strategy->choose(count);
    log_decision(taken);
    return taken;
}

uint32_t mc_explore_choose_from(uint32_t total, const uint32_t *open, uint32_t open_count)
{
    if (open_count == 0) {
        mc_report_limit("internal error: nothing is left to choose from");
    }
    uint32_t taken = open[open_count == 1 ? 0 : mc_explore.strategy->choose(open_count)];
    if (total > 1) {
        log_decision(taken);
    }
    return taken;
}

const char *mc_explore_log_text(void)
{
    enum {
        TOKEN_MAX = 12
    };
    free(history.text);
    history.text = malloc(history.count * TOKEN_MAX + 1);
    if (history.text == NULL) {
        mc_report_limit("out of memory");
    }
    char *at = history.text;
    for (size_t i = 0; i < history.count;) {
        uint32_t decision = history.decisions[i];
        size_t repeats = 1;
        if ((decision & PICK) == 0) {
            at += snprintf(at, TOKEN_MAX, decision < 10 ? "%u" : "(%u)", decision);
        } else {
            while (i + repeats < history.count && history.decisions[i + repeats] == decision) {
                repeats++;
            }
            at += snprintf(at, TOKEN_MAX, "%c", 'a' + (int)(decision & ~(uint32_t)PICK));
            if (repeats > 1) {
                at += snprintf(at, TOKEN_MAX, "{%zu}", repeats);
            }
        }
        i += repeats;
    }
    *at = '\0';
    return history.text;
}

/* --- Replay ----------------------------------------------------------------- */

static struct {
    uint32_t *decisions;
    size_t count;
    size_t at;
} script;

static _Noreturn void mismatch(void)
{
    mc_report_limit("the replay does not fit the program: was it built from other sources?");
}

static uint32_t parse_number(const char **at)
{
    char *end;
    unsigned long number = strtoul(*at, &end, 10);
    if (end == *at || number > MC_MESSAGES_MAX) {
        mismatch();
    }
    *at = end;
    return (uint32_t)number;
}

/* Reads one decision, and how often it is repeated. */
static uint32_t parse_decision(const char **at, uint32_t *repeats)
{
    *repeats = 1;
    char c = *(*at)++;
    if (isdigit((unsigned char)c)) {
        return (uint32_t)(c - '0');
    }
    if (c == '(') {
        uint32_t number = parse_number(at);
        if (*(*at)++ != ')') {
            mismatch();
        }
        return number;
    }
    if (c < 'a' || c >= 'a' + MC_THREADS_MAX) {
        mismatch();
    }
    if (**at == '{') {
        ++*at;
        *repeats = parse_number(at);
        if (*(*at)++ != '}') {
            mismatch();
        }
    }
    return PICK | (uint32_t)(c - 'a');
}

void mc_explore_replay(const char *text)
{
    mc_explore_log_reset();
    while (*text != '\0') {
        uint32_t repeats;
        uint32_t decision = parse_decision(&text, &repeats);
        for (uint32_t i = 0; i < repeats; i++) {
            log_decision(decision);
        }
    }
    script.count = history.count;
    script.decisions = malloc(script.count * sizeof *script.decisions + 1);
    if (script.decisions == NULL) {
        mc_report_limit("out of memory");
    }
    memcpy(script.decisions, history.decisions, script.count * sizeof *script.decisions);
}

static void replay_start(void)
{
}

static void replay_begin(void)
{
    script.at = 0;
}

/* The next decision, or a default beyond the end. */
static uint32_t next_decision(uint32_t otherwise)
{
    return script.at < script.count ? script.decisions[script.at++] : otherwise;
}

static int replay_pick(uint32_t ready, unsigned last)
{
    unsigned otherwise = ready & 1u << last ? last : (unsigned)__builtin_ctz(ready);
    uint32_t decision = next_decision(PICK | otherwise);
    if ((decision & PICK) == 0 || (ready & 1u << (decision & ~(uint32_t)PICK)) == 0) {
        mismatch();
    }
    return (int)(decision & ~(uint32_t)PICK);
}

static void replay_local(unsigned thread)
{
    if (next_decision(PICK | thread) != (PICK | thread)) {
        mismatch();
    }
}

static unsigned replay_choose(unsigned count)
{
    uint32_t decision = next_decision(0);
    if (decision >= count) {
        mismatch();
    }
    return decision;
}

static bool replay_next(void)
{
    return false;
}

const struct mc_strategy mc_strategy_replay = {
    .name = "replay",
    .start = replay_start,
    .begin = replay_begin,
    .pick = replay_pick,
    .choose = replay_choose,
    .stepping_local = replay_local,
    .next = replay_next,
};
