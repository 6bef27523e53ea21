/* SPDX-License-Identifier: MIT */
/*
 * scan_model.c - src/par/scan.c, with a loop of two threads: in every order, each block is
 * scanned once, after it was folded, from the value of all before it.
 */
#include <string.h>

#include <weft/fork.h>
#include <weft/loop.h>

#include "mc.h"
#include "par/pause.h"
#include "par/range.h"

enum {
    NUMBERS_MAX = 4,
};

static int numbers[NUMBERS_MAX];
static int scanned[NUMBERS_MAX];

/* --- The loop: one thread has the first number, and the caller all others ------------------ */

struct turn {
    weft_range_fn body;
    size_t first;
    void *arg;
};

static void run_turn(void *arg)
{
    const struct turn *turn = arg;
    mc_assert(turn->body(turn->first, turn->first + 1, turn->arg) == 0);
}

int weft_for(size_t first, size_t end, weft_range_fn body, void *arg,
             const weft_par_options *options)
{
    (void)options;
    struct turn turns[NUMBERS_MAX];
    for (size_t i = first; i < end; i++) {
        turns[i - first] = (struct turn){ body, i, arg };
        if (i == first && i + 1 < end) {
            mc_go(run_turn, &turns[0]);
        } else {
            run_turn(&turns[i - first]);
        }
    }
    mc_join();
    return 0;
}

/* Safe points: nobody waits for a worker here. */
static weft_jobs no_jobs;
__thread weft_jobs *weft_jobs_of_thread = &no_jobs;

void wf_pause_now(size_t steps)
{
    (void)steps;
}

void wf_pause_large(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
}

/* For a stack that is nearly used up, which there is none of. */
void wf_job_call_deep(void (*function)(void *arg), void *arg)
{
    (void)function;
    (void)arg;
    mc_assert(false);
}

/* For large scratch, which there is none of. */
void wf_range_each(size_t count, size_t grain, wf_range_fn body, void *arg)
{
    (void)count;
    (void)grain;
    (void)body;
    (void)arg;
    mc_assert(false);
}

/* --- Sums ------------------------------------------------------------------------------------ */

static int fold(void *value, size_t first, size_t end, void *arg)
{
    (void)arg;
    for (size_t i = first; i < end; i++) {
        *(int *)value = *(int *)value * 10 + numbers[i];
    }
    return 0;
}

/* The digits of the next one behind those of this one: it does not commute. */
static void combine(void *value, const void *next, void *arg)
{
    (void)arg;
    int digits = *(const int *)next;
    for (int rest = digits; rest > 0; rest /= 10) {
        *(int *)value *= 10;
    }
    *(int *)value += digits;
}

/* In place, as a scan may: a fold that came later would be a race, or see it. */
static int scan(void *value, size_t first, size_t end, void *arg)
{
    (void)arg;
    for (size_t i = first; i < end; i++) {
        *(int *)value = *(int *)value * 10 + numbers[i];
        numbers[i] = *(int *)value;
        scanned[i]++;
    }
    return 0;
}

/*
 * Goal:   running totals, whoever folds, adds up and scans which block.
 * Method: as many blocks as there are numbers, each of which is a digit of the totals.
 */
struct question {
    int count;
    bool is_exact; /* so some blocks are not folded */
};

static void scan_numbers(void)
{
    static const int identity = 0;
    const struct question *asked = mc_arg();
    const weft_scanner how = {
        .reduction = { .size = sizeof identity,
                       .identity = &identity,
                       .fold = fold,
                       .combine = combine },
        .scan = scan,
        .is_exact = asked->is_exact,
    };
    static const weft_par_options options = { .piece = 1 };
    int count = asked->count;
    for (int i = 0; i < count; i++) {
        numbers[i] = i + 1;
    }
    int total = -1;
    mc_assert(weft_scan(0, (size_t)count, &how, NULL, &total, &options) == 0);
    int wanted = 0;
    for (int i = 0; i < count; i++) {
        wanted = wanted * 10 + i + 1;
        mc_assert(numbers[i] == wanted);
        mc_assert(scanned[i] == 1);
    }
    mc_assert(total == wanted);
}

static const struct question two = { 2, false };
static const struct question three = { 3, false };
static const struct question two_exact = { 2, true };
static const struct question three_exact = { 3, true };

static const struct mc_test tests[] = {
    { .name = "two_blocks", .run = scan_numbers, .arg = &two },
    { .name = "three_blocks", .run = scan_numbers, .arg = &three },
    { .name = "two_blocks_that_may_lead", .run = scan_numbers, .arg = &two_exact },
    { .name = "three_blocks_that_may_lead", .run = scan_numbers, .arg = &three_exact },
};

MC_MAIN(tests)
