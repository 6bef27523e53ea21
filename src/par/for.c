/* SPDX-License-Identifier: MIT */
/*
 * for.c - a loop over a range.
 *
 * At first the range is divided among as many as there are workers, or some more; a long
 * one just once, and further after 5 us, since many loops are over then. Then who runs a part
 * of it works through it piece by piece, and looks between two pieces whether somebody asks
 * for work (job.h): if so, it forks the upper half of what is left, and goes on with the
 * lower one. So a loop is divided as often as there is somebody to take a half, and no more;
 * and each time after a piece that was worth it, however many ask.
 *
 * Pieces begin with one number and grow until they take 10 us: then the look at the
 * clock and at who asks costs nothing beside them. What one part has learned of that
 * the others know. But numbers may be light there and heavy here, and a piece that has
 * begun is not divided any more: so a piece is a quarter of its part at most.
 *
 * The end of a piece is a safe point (sched/job.c): the loop lets other tasks of its worker
 * run, if they have waited for long.
 *
 * The first forks are offered silently: if the loop is over in 20 us, nobody was woken for
 * it, and if its first piece takes a second, the watch has found a worker for the rest.
 */
#include <weft/loop.h>
#include <weft/par.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "par/pause.h"
#include "par/stop.h"
#include "sched/job.h"

enum {
    PIECE_NS = 10 * 1000,
    ALONE_NS = 5 * 1000,
    LONG = 256, /* numbers for each who could run some */
};

struct loop {
    weft_range_fn body;
    void *arg;
    size_t piece;            /* given, or 0 */
    int64_t divided_at;      /* from then on as often as may be; until then: */
    unsigned splits_later;   /* a part that may be divided so often is not */
    _Atomic(size_t) learned; /* the longest piece so far; any part writes it */
    struct wf_stopper stopper;
};

/* A part of it. */
struct part {
    struct loop *loop;
    size_t first;
    size_t end;
    size_t piece;
    size_t most;     /* of a piece */
    unsigned splits; /* that it may still do */
    int64_t since;   /* when its next piece begins */
};

/* After a piece that took so long: how long should the next one be? */
static void learn(struct part *part, int64_t elapsed)
{
    if (elapsed >= PIECE_NS / 2) {
        part->splits = 1;
        if (elapsed > 2 * PIECE_NS && part->piece > 1) {
            part->piece /= 2;
        }
        return;
    }
    /* One that was very short says little: 8 times as much will not be long. */
    size_t times = elapsed < PIECE_NS / 16 ? 8 : 2;
    part->piece = part->piece < part->most / times ? part->piece * times : part->most;
    /* relaxed: a guess for others. */
    if (part->piece > wf_load_relaxed(&part->loop->learned)) {
        /* relaxed: a guess; one that is lost is learned again. */
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

/* How long its pieces may be, and the first one should be, by what was learned elsewhere. */
static void begin_part(struct part *part)
{
    if (part->loop->piece != 0) {
        part->piece = part->loop->piece;
        return;
    }
    size_t most = (part->end - part->first) / 4;
    part->most = most > 0 ? most : 1;
    /* relaxed: a guess; a wrong one is learned again. */
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

/* One that begins later. */
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
    run_part(&part);
    wf_job_end_silently(silent);
    return wf_stopper_result(&loop.stopper);
}
