/* SPDX-License-Identifier: MIT */
/*
 * for.c - parallel loop over an index range.
 *
 * At first the range is split into about as many parts as there are workers, or some more. A
 * long range is initially split only once, and further after 5 us, since many loops have
 * finished by then. Each part is processed chunk by chunk. Between two chunks its runner checks
 * for requests for work (job.h). If there is one, it forks the upper half of what is left and
 * continues with the lower half. So a loop is split as often as a worker can take a half, and
 * no more often. After the initial splits, a part is split again only after a chunk that was
 * worth it, however many workers request work.
 *
 * Chunks start with one iteration and grow until they take 10 us. Then the cost of reading the
 * clock and checking for requests is negligible. The parts share the chunk length that they
 * have learned. But iterations may be cheap in one part and expensive in another, and a chunk
 * that has started is not split any more. Therefore a chunk is at most a quarter of its part.
 *
 * The end of a chunk is a safe point (sched/job.c): the loop lets other tasks of its worker run
 * if they have waited for long.
 *
 * The first forks are silent, that is, they wake no worker. If the loop finishes within 20 us,
 * no worker was woken for it. If its first chunk takes a second, the monitor has found a worker
 * for the rest.
 */
#include <weft/loop.h>
#include <weft/par.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "par/deep.h"
#include "par/pause.h"
#include "par/stop.h"
#include "sched/job.h"

enum {
    PIECE_NS = 10 * 1000,
    ALONE_NS = 5 * 1000,
    LONG = 256, /* iterations per initial part of a long loop */
};

struct loop {
    weft_range_fn body;
    void *arg;
    size_t piece;            /* as given, or 0 */
    int64_t divided_at;      /* until then, a part is split only if it */
    unsigned splits_later;   /* has more splits left than this */
    _Atomic(size_t) learned; /* the longest chunk so far; any part writes it */
    struct wf_stopper stopper;
};

/* A part of the loop. */
struct part {
    struct loop *loop;
    size_t first;
    size_t end;
    size_t piece;
    size_t most;     /* maximum chunk length */
    unsigned splits; /* number of splits left */
    int64_t since;   /* when its next chunk starts */
};

/* Adapts the chunk length, after a chunk that took this long. */
static void learn(struct part *part, int64_t elapsed)
{
    if (elapsed >= PIECE_NS / 2) {
        part->splits = 1;
        if (elapsed > 2 * PIECE_NS && part->piece > 1) {
            part->piece /= 2;
        }
        return;
    }
    /* A very short time says little: 8 times the length will not take long. */
    size_t times = elapsed < PIECE_NS / 16 ? 8 : 2;
    part->piece = part->piece < part->most / times ? part->piece * times : part->most;
    /* relaxed: a hint for other parts. */
    if (part->piece > wf_load_relaxed(&part->loop->learned)) {
        /* relaxed: a hint; a lost update is learned again. */
        wf_store_relaxed(&part->loop->learned, part->piece);
    }
}

static void run_piece(struct part *part)
{
    struct loop *loop = part->loop;
    size_t left = part->end - part->first;
    size_t end = part->first + (left < part->piece ? left : part->piece);
    int64_t start = part->since;
    int err = loop->body(part->first, end, loop->arg);
    if (err != 0) {
        wf_stopper_fail(&loop->stopper, err);
    }
    part->first = end;
    int64_t now = wf_clock_real();
    if (loop->piece == 0) {
        learn(part, now - start);
    } else {
        part->splits = 1;
    }
    wf_job_speak_up_at(now);
    /* The next piece begins after what the safe point took. */
    part->since = wf_pause_at(now) ? wf_clock_real() : now;
}

/* Sets the maximum and the initial chunk length, using what other parts have learned. */
static void begin_part(struct part *part)
{
    if (part->loop->piece != 0) {
        part->piece = part->loop->piece;
        return;
    }
    size_t most = (part->end - part->first) / 4;
    part->most = most > 0 ? most : 1;
    /* relaxed: a hint; a wrong value is corrected later. */
    size_t learned = wf_load_relaxed(&part->loop->learned);
    size_t guess = learned > part->piece ? learned : part->piece;
    part->piece = guess < part->most ? guess : part->most;
}

static bool is_over(const struct part *part)
{
    return part->first == part->end || wf_stopper_is_set(&part->loop->stopper);
}

static bool may_be_divided(const struct part *part)
{
    const struct loop *loop = part->loop;
    return part->splits > 0 && part->end - part->first > part->piece &&
           (part->splits > loop->splits_later || part->since >= loop->divided_at) &&
           wf_pause_attach(part->since) && wf_job_is_wanted();
}

static void run_upper(void *arg);

static void run_part(void *arg)
{
    struct part *part = arg;
    begin_part(part);
    while (!is_over(part)) {
        if (may_be_divided(part)) {
            part->splits--;
            struct part upper = *part;
            upper.first += (part->end - part->first) / 2;
            part->end = upper.first;
            weft_join2(run_part, part, run_upper, &upper);
            return;
        }
        run_piece(part);
    }
}

/* Runs the upper half, which starts later. */
static void run_upper(void *arg)
{
    ((struct part *)arg)->since = wf_clock_real();
    run_part(arg);
}

int weft_for(size_t first, size_t end, weft_range_fn body, void *arg,
             const weft_par_options *options)
{
    wf_pause_call();
    struct loop loop = { .body = body, .arg = arg };
    if (options != NULL) {
        loop.piece = options->piece;
        loop.stopper.stop = options->stop;
    }
    int64_t now = wf_clock_real();
    bool silent = wf_job_begin_silently_at(now);
    struct part part = { .loop = &loop,
                         .first = first,
                         .end = end,
                         .piece = 1,
                         .splits = wf_job_eager_forks(),
                         .since = now };
    if (first >= end) {
        part.end = first;
    } else if (part.splits > 0 && (end - first) >> part.splits >= LONG) {
        loop.splits_later = part.splits - 1;
        loop.divided_at = now + ALONE_NS;
    }
    wf_deep_run(run_part, &part);
    wf_job_end_silently(silent);
    return wf_stopper_result(&loop.stopper);
}
