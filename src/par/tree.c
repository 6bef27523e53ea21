/* SPDX-License-Identifier: MIT */
/*
 * tree.c - a walk over a tree.
 *
 * Who walks a part of it keeps the nodes that wait for their visit, and takes the last one
 * first, so that there are few. They are in chunks:
 *
 *   oldest -> [ 126 nodes ] -> [ 126 nodes ] -> [ 17 nodes ] <- newest
 *
 * Between visits it looks whether somebody asks for work (sched/job.h): if so, it spawns
 * another part, which gets the older half of the chunks, or of the only one. A part is
 * divided as often as somebody can take a half, and each time after some visits that were
 * worth it; and a few times in the beginning, without being asked. As in for.c that is
 * silent: if the walk is over in 20 us, nobody is woken.
 *
 * Rejected. weft_join2() of two halves: each half that is given away has to be waited for
 * by who gave it, with its stack; along a list whose every node has another child as well
 * that becomes as long as the list.
 */
#include <weft/tree.h>

#include <string.h>

#include <weft/par.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "par/pause.h"
#include "par/stop.h"
#include "queue/jobs.h"
#include "sched/job.h"

enum {
    PIECE_NS = 10 * 1000,
    CHUNK_NODES = 126, /* 1 KiB in all, which malloc is quick with */
};

struct walk {
    weft_visit_fn visit;
    void *arg;
    size_t piece; /* given, or 0 */
    struct wf_stopper stopper;
    weft_par_scope scope; /* of the parts; it is never stopped: each frees its chunks */
};

/* Nodes that wait. The chunks of a part are full, but for the newest. */
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
    size_t count;        /* of nodes in the newest; 0 only if it is the last one */
    struct chunk *spare; /* empty, or NULL: else each step across a border would allocate */
    size_t piece;        /* visits before it looks around */
    unsigned eager;      /* splits that it does without being asked */
    bool may_split;      /* it has done enough since the last time */
};

/* --- Nodes that wait -------------------------------------------------------------------- */

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

/* The newest chunk is full, or there is none. False: no memory. */
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

/* The newest chunk is empty, and there is an older one. */
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

/* The newest chunk is full. False: there is no memory, or the walk is over anyway. */
static bool make_room(weft_walk_state *part)
{
    struct wf_stopper *stopper = &part->walk->stopper;
    /* A visit with many children does not ask for memory again and again. */
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

/* From this one on, in the newest chunk. */
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

/* Visits the node that is next. Of its children the first one is the next, if they are few:
 * it is likely to be near in memory. */
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

/* The older half of the chunks becomes the other part's. */
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

/* The older half of the nodes in the only chunk. */
static void give_nodes(weft_walk_state *part, weft_walk_state *other)
{
    size_t half = part->count / 2;
    void **nodes = part->oldest->nodes;
    memcpy(other->oldest->nodes, nodes, half * sizeof *nodes);
    memmove(nodes, nodes + half, (part->count - half) * sizeof *nodes);
    other->count = half;
    part->count -= half;
}

/* A part that has the older half of what waits; NULL: there is too little, or no memory. */
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

/* Does somebody search in vain? Not wf_job_is_wanted(), which takes few forks for too few,
 * and here there are none. */
static bool is_asked(weft_jobs *own)
{
    /* relaxed: a look; who asks is patient. */
    return own->head != NULL && wf_load_relaxed(&wf_jobs_of(own)->reasons) != 0;
}

static void split(weft_walk_state *part)
{
    weft_jobs *own = weft_jobs_here();
    bool asked = part->may_split && is_asked(own);
    if (asked) {
        weft_jobs_answer(own); /* before the spawn: who asks after it wants another one */
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

/* After a piece that took so long: how long should the next one be? As in for.c. */
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

/* Is there something to split off for others, who need not ask? */
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
    bool silent = wf_job_begin_silently();
    all.eager = wf_job_eager_forks();
    weft_par_scope_begin(&walk.scope, NULL);
    run_part(&all);
    int err = weft_par_scope_end(&walk.scope);
    wf_job_end_silently(silent);
    WF_ASSERT(err == 0);
    return wf_stopper_result(&walk.stopper);
}
