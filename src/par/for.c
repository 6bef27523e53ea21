/* SPDX-License-Identifier: MIT */
/*
 * for.c - a loop over a range.
 *
 * At first the range is divided among as many as there are workers, or some more. Then who
 * runs a part of it works through it piece by piece, and looks between two pieces whether
 * somebody asks for work (job.h): if so, it forks the upper half of what is left, and goes
 * on with the lower one. So a loop is divided as often as there is somebody to take a
 * half, and no more; and each time after a piece that was worth it, however many ask.
 *
 * Pieces begin with one number and double until they take 10 us: then the look at the
 * clock and at who asks costs nothing beside them. What one part has learned of that
 * the others know. But numbers may be light there and heavy here, and a piece that has
 * begun is not divided any more: so a part begins with a quarter of itself at most.
 *
 * The first forks are offered silently: if the loop is over in 20 us, nobody was woken for
 * it, and if its first piece takes a second, the watch has found a worker for the rest.
 */
#include <weft/loop.h>
#include <weft/par.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "par/stop.h"
#include "sched/job.h"

enum {
    PIECE_NS = 10 * 1000,
};

struct loop {
    weft_range_fn body;
    void *arg;
    size_t piece;            /* given, or 0 */
    _Atomic(size_t) learned; /* the longest piece so far; any part writes it */
    struct wf_stopper stopper;
};

/* A part of it. */
struct part {
    struct loop *loop;
    size_t first;
    size_t end;
    size_t piece;
    unsigned splits; /* that it may still do */
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
    part->piece *= 2;
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
    int64_t start = loop->piece == 0 ? wf_clock_real() : 0;
    int err = loop->body(part->first, end, loop->arg);
    if (err != 0) {
        wf_stopper_fail(&loop->stopper, err);
    }
    part->first = end;
    if (loop->piece == 0) {
        learn(part, wf_clock_real() - start);
    } else {
        part->splits = 1;
    }
    wf_job_speak_up();
}

/* How long the first piece of a part should be, by what was learned elsewhere. */
static size_t first_piece(const struct part *part)
{
    if (part->loop->piece != 0) {
        return part->loop->piece;
    }
    /* relaxed: a guess; a wrong one is learned again. */
    size_t learned = wf_load_relaxed(&part->loop->learned);
    size_t guess = learned > part->piece ? learned : part->piece;
    size_t most = (part->end - part->first) / 4;
    return guess <= most ? guess : most > 0 ? most : 1;
}

static void run_part(void *arg)
{
    struct part *part = arg;
    part->piece = first_piece(part);
    while (part->first < part->end && !wf_stopper_is_set(&part->loop->stopper)) {
        size_t left = part->end - part->first;
        if (left > part->piece && part->splits > 0 && wf_job_is_wanted()) {
            part->splits--;
            struct part upper = *part;
            upper.first += left / 2;
            part->end = upper.first;
            weft_join2(run_part, part, run_part, &upper);
            return;
        }
        run_piece(part);
    }
}

int weft_for(size_t first, size_t end, weft_range_fn body, void *arg,
             const weft_par_options *options)
{
    struct loop loop = { .body = body, .arg = arg };
    if (options != NULL) {
        loop.piece = options->piece;
        loop.stopper.stop = options->stop;
    }
    bool silent = wf_job_begin_silently();
    struct part part = {
        .loop = &loop, .first = first, .end = end, .piece = 1, .splits = wf_job_eager_forks()
    };
    run_part(&part);
    wf_job_end_silently(silent);
    return wf_stopper_result(&loop.stopper);
}
