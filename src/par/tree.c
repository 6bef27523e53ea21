/* SPDX-License-Identifier: MIT */
/*
 * tree.c - parallel tree traversal.
 *
 * Each part of the walk keeps its pending nodes on a stack, so that they stay few. The stack
 * consists of chunks:
 *
 *   oldest -> [ 126 nodes ] -> [ 126 nodes ] -> [ 17 nodes ] <- newest
 *
 * Between visits a part checks for requests for work (sched/job.h). If there is one, it spawns
 * another part, which gets the older half of the chunks, or of the only chunk. A part is split
 * as often as a worker can take a half, each time after some visits that were worth it, and a
 * few times at the start without a request. As in for.c, that is silent: if the walk finishes
 * within 20 us, no worker is woken.
 *
 * Rejected. weft_join2() of two halves: the part that gives away a half has to wait for it, and
 * keeps its stack meanwhile. Along a list in which every node also has another child, this
 * chain becomes as long as the list.
 */
#include <weft/tree.h>

#include <string.h>

#include <weft/par.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "par/deep.h"
#include "par/pause.h"
#include "par/stop.h"
#include "queue/jobs.h"
#include "sched/job.h"

enum {
    PIECE_NS = 10 * 1000,
    CHUNK_NODES = 126, /* 1 KiB in all, a size that malloc() handles fast */
};

struct walk {
    weft_visit_fn visit;
    void *arg;
    size_t piece; /* as given, or 0 */
    struct wf_stopper stopper;
    weft_par_scope scope; /* of the parts; never canceled, since each part frees its chunks */
};

/* Pending nodes. All chunks of a part are full, except the newest. */
struct chunk {
    struct chunk *older;
    struct chunk *newer;
    void *nodes[CHUNK_NODES];
};

/* A part of the walk. */
struct weft_walk_state {
    struct walk *walk;
    struct chunk *oldest;
    struct chunk *newest;
    size_t chunks;
    size_t count;        /* nodes in the newest chunk; 0 only if it is the only one */
    struct chunk *spare; /* an empty chunk or NULL; avoids an allocation at each chunk border */
    size_t piece;        /* visits between two checks for requests */
    unsigned eager;      /* number of splits without a request */
    bool may_split;      /* it has done enough work since the last split */
};

/* --- Pending nodes ---------------------------------------------------------------------- */

static struct chunk *take_chunk(weft_walk_state *part)
{
    struct chunk *chunk = part->spare;
    part->spare = NULL;
    return chunk != NULL ? chunk
                         : wf_alloc(&wf_alloc_default, sizeof *chunk, _Alignof(struct chunk));
}

static void free_chunk(struct chunk *chunk)
{
    wf_free(&wf_alloc_default, chunk, sizeof *chunk, _Alignof(struct chunk));
}

/* Adds a chunk, if the newest is full or there is none. Returns false if memory is exhausted. */
static bool add_chunk(weft_walk_state *part)
{
    struct chunk *chunk = take_chunk(part);
    if (chunk == NULL) {
        return false;
    }
    chunk->older = part->newest;
    chunk->newer = NULL;
    if (part->newest != NULL) {
        part->newest->newer = chunk;
    } else {
        part->oldest = chunk;
    }
    part->newest = chunk;
    part->chunks++;
    part->count = 0;
    return true;
}

/* Removes the newest chunk, which is empty. An older one must exist. */
static void drop_chunk(weft_walk_state *part)
{
    struct chunk *empty = part->newest;
    part->newest = empty->older;
    part->newest->newer = NULL;
    part->chunks--;
    part->count = CHUNK_NODES;
    free_chunk(part->spare);
    part->spare = empty;
}

/* Makes space when the newest chunk is full. Returns false if memory is exhausted or the walk
 * has ended anyway. */
static bool make_room(weft_walk_state *part)
{
    struct wf_stopper *stopper = &part->walk->stopper;
    /* A visit with many children does not retry a failed allocation for each. */
    if (wf_stopper_is_set(stopper)) {
        return false;
    }
    if (!add_chunk(part)) {
        wf_stopper_fail(stopper, -ENOMEM);
        return false;
    }
    return true;
}

void weft_walk_child(weft_walk_state *part, void *child)
{
    if (child == NULL || (wf_unlikely(part->count == CHUNK_NODES) && !make_room(part))) {
        return;
    }
    part->newest->nodes[part->count++] = child;
}

static void *take_node(weft_walk_state *part)
{
    void *node = part->newest->nodes[--part->count];
    if (wf_unlikely(part->count == 0) && part->chunks > 1) {
        drop_chunk(part);
    }
    return node;
}

/* Reverses the nodes of the newest chunk, from this one on. */
static void reverse(weft_walk_state *part, size_t first)
{
    void **nodes = part->newest->nodes;
    for (size_t last = part->count; first + 1 < last; first++) {
        last--;
        void *node = nodes[first];
        nodes[first] = nodes[last];
        nodes[last] = node;
    }
}

/* Visits the next node. Its first child is visited next, unless it has many children, since
 * that child is likely to be near in memory. */
static int visit_next(weft_walk_state *part)
{
    void *node = take_node(part);
    const struct chunk *chunk = part->newest;
    size_t count = part->count;
    int err = part->walk->visit(node, part, part->walk->arg);
    if (part->newest == chunk) {
        reverse(part, count);
    }
    return err;
}

static void free_chunks(weft_walk_state *part)
{
    free_chunk(part->spare);
    for (struct chunk *chunk = part->oldest; chunk != NULL;) {
        struct chunk *newer = chunk->newer;
        free_chunk(chunk);
        chunk = newer;
    }
}

/* --- Parts ------------------------------------------------------------------------------ */

/* Gives the older half of the chunks to the other part. */
static void give_chunks(weft_walk_state *part, weft_walk_state *other)
{
    other->chunks = part->chunks / 2;
    other->count = CHUNK_NODES;
    other->oldest = part->oldest;
    other->newest = part->oldest;
    for (size_t i = 1; i < other->chunks; i++) {
        other->newest = other->newest->newer;
    }
    part->chunks -= other->chunks;
    part->oldest = other->newest->newer;
    part->oldest->older = NULL;
    other->newest->newer = NULL;
}

/* Gives the older half of the nodes of the only chunk. */
static void give_nodes(weft_walk_state *part, weft_walk_state *other)
{
    size_t half = part->count / 2;
    void **nodes = part->oldest->nodes;
    memcpy(other->oldest->nodes, nodes, half * sizeof *nodes);
    memmove(nodes, nodes + half, (part->count - half) * sizeof *nodes);
    other->count = half;
    part->count -= half;
}

/* Returns a part with the older half of the pending nodes, or NULL if there are too few nodes
 * or memory is exhausted. */
static weft_walk_state *halve(weft_walk_state *part)
{
    if (part->chunks == 1 && part->count < 2) {
        return NULL;
    }
    weft_walk_state *other = wf_alloc(&wf_alloc_default, sizeof *other, _Alignof(weft_walk_state));
    if (other == NULL) {
        return NULL;
    }
    *other = (weft_walk_state){ .walk = part->walk, .piece = part->piece, .eager = part->eager };
    if (part->chunks > 1) {
        give_chunks(part, other);
    } else if (add_chunk(other)) {
        give_nodes(part, other);
    } else {
        wf_free(&wf_alloc_default, other, sizeof *other, _Alignof(weft_walk_state));
        return NULL;
    }
    return other;
}

static int run_other(void *arg);

/* Returns whether a request is pending, as from a worker that has found no work.
 * wf_job_is_wanted() does not fit: it also returns true while there are only a few forks, and a
 * walk has none. */
static bool is_asked(weft_jobs *own)
{
    /* relaxed: a request seen late is handled at the next check. */
    return own->head != NULL && wf_load_relaxed(&wf_jobs_of(own)->reasons) != 0;
}

static void split(weft_walk_state *part)
{
    weft_jobs *own = weft_jobs_here();
    bool asked = part->may_split && is_asked(own);
    if (asked) {
        weft_jobs_answer(own); /* before the spawn: a later request is for another part */
    }
    weft_walk_state *other = part->eager > 0 || asked ? halve(part) : NULL;
    if (other == NULL) {
        return;
    }
    part->may_split = false;
    if (part->eager > 0) {
        part->eager--;
        other->eager--;
    }
    weft_par_spawn(&part->walk->scope, run_other, other);
}

/* Adapts the number of visits, after a batch that took this long. As in for.c. */
static void learn(weft_walk_state *part, int64_t elapsed)
{
    if (elapsed < PIECE_NS / 2) {
        part->piece *= 2;
        return;
    }
    part->may_split = true;
    if (elapsed > 2 * PIECE_NS && part->piece > 1) {
        part->piece /= 2;
    }
}

/* Returns whether there are nodes to split off without a request. */
static bool is_eager(const weft_walk_state *part)
{
    return part->eager > 0 && (part->count > 1 || part->chunks > 1);
}

static void visit_piece(weft_walk_state *part)
{
    struct walk *walk = part->walk;
    int64_t start = walk->piece == 0 ? wf_clock_real() : 0;
    size_t left = part->piece;
    int err;
    do {
        err = visit_next(part);
    } while (err == 0 && --left > 0 && part->count > 0 && !is_eager(part));
    if (err != 0) {
        wf_stopper_fail(&walk->stopper, err);
    }
    int64_t now = walk->piece == 0 ? wf_clock_real() : 0;
    if (walk->piece == 0) {
        learn(part, now - start);
        wf_job_speak_up_at(now);
        (void)wf_pause_at(now);
    } else {
        part->may_split = true;
        wf_job_speak_up();
        wf_pause(part->piece - left);
    }
}

static void run_part(weft_walk_state *part)
{
    while (part->count > 0 && !wf_stopper_is_set(&part->walk->stopper)) {
        split(part);
        visit_piece(part);
    }
    free_chunks(part);
}

static int run_other(void *arg)
{
    weft_walk_state *part = arg;
    run_part(part);
    wf_free(&wf_alloc_default, part, sizeof *part, _Alignof(weft_walk_state));
    return 0;
}

/* The scope begins and ends on the stack where the parts run, which may be a fresh one. */
static void run_all(void *arg)
{
    weft_walk_state *all = arg;
    struct walk *walk = all->walk;
    bool silent = wf_job_begin_silently();
    all->eager = wf_job_eager_forks();
    weft_par_scope_begin(&walk->scope, NULL);
    run_part(all);
    int err = weft_par_scope_end(&walk->scope);
    wf_job_end_silently(silent);
    WF_ASSERT(err == 0);
}

int weft_walk(void *root, weft_visit_fn visit, void *arg, const weft_par_options *options)
{
    wf_pause_call();
    struct walk walk = { .visit = visit, .arg = arg, .stopper.stop = wf_stop_of(options) };
    walk.piece = options != NULL ? options->piece : 0;
    weft_walk_state all = { .walk = &walk, .piece = walk.piece != 0 ? walk.piece : 1 };
    if (root == NULL) {
        return wf_stopper_result(&walk.stopper);
    }
    if (!add_chunk(&all)) {
        return -ENOMEM;
    }
    weft_walk_child(&all, root);
    wf_deep_run(run_all, &all);
    return wf_stopper_result(&walk.stopper);
}
