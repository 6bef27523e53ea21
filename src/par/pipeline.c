/* SPDX-License-Identifier: MIT */
/*
 * pipeline.c - parallel pipeline of stages.
 *
 * A token carries an item in flight. A runner takes a token from stage to stage. At a stage
 * that admits one item at a time it may find another runner inside, or that an earlier item has
 * not arrived yet. Then it leaves the token in the stage's queue and looks for another one.
 *
 *   leave a stage    if the first token in its queue may enter now, it does, and is ready
 *   enter a stage    if no runner is inside and its turn has come; otherwise wait in the queue
 *   look for work    take a ready token; otherwise a new one, if the first stage is free
 *
 * One lock guards all of this. It is held for a few instructions only, once per stage that an
 * item passes.
 *
 * Runners. The caller is a runner, and finishes when it finds no work. As long as there is
 * unclaimed work, there is also a standby: another runner, spawned for an idle worker to steal.
 * So other workers can help, and a stage that waits does not hold up the rest. A standby that
 * starts spawns the next one. While no worker is idle, it is not stolen and costs nothing.
 *
 * Why no work is forgotten. Work appears when a runner leaves a stage. Under the same lock the
 * runner takes that work itself, or a standby exists.
 *
 * The end. After an error or a cancel request each runner drops its token and finishes. The
 * caller drops the tokens in the queues when all runners have finished.
 *
 * Edge: lock.h's [L1]: a runner that takes a token from a list sees everything done with its
 * item.
 */
#include <weft/pipeline.h>

#include <weft/par.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/lock.h"
#include "par/deep.h"
#include "par/pause.h"
#include "par/stop.h"
#include "sched/job.h"

enum {
    STAGES_HERE = 16,
    TOKENS_LOG_MIN = 2,
};

struct token {
    void *item;
    uint64_t number; /* of the item, in order of creation */
    size_t stage;    /* where it is, or waits */
    struct token *next;
    struct token *previous; /* in the queue of a stage */
};

/* The entry to a stage that admits one item at a time. */
struct gate {
    bool busy;
    uint64_t turn;       /* the next number, if items pass in order */
    struct token *first; /* waiting tokens, by number */
    struct token *last;
};

struct pipeline {
    const weft_stage *stages;
    size_t count;
    weft_drop_fn drop;
    void *arg;
    bool may_spawn;
    struct wf_stopper stopper;
    weft_par_scope scope; /* of the runners; never canceled */

    struct wf_lock lock;  /* guards the fields below and the gates */
    struct gate *gates;   /* one per stage */
    struct token *ready;  /* admitted to their stage */
    struct token *unused; /* free list */
    size_t under_way;
    size_t tokens;     /* maximum number in flight */
    uint64_t made;     /* items created */
    bool is_exhausted; /* the first stage has left NULL */
    bool has_standby;
    struct token first; /* embedded: sufficient if memory is exhausted */
};

/* --- With the lock held ------------------------------------------------------------------ */

static bool takes_one(const struct pipeline *pipe, size_t stage)
{
    return pipe->stages[stage].kind != WEFT_STAGE_PARALLEL;
}

static bool may_enter(const struct pipeline *pipe, const struct token *token)
{
    const struct gate *gate = &pipe->gates[token->stage];
    return !gate->busy &&
           (pipe->stages[token->stage].kind != WEFT_STAGE_IN_ORDER || gate->turn == token->number);
}

/* Enqueues the token behind those with smaller numbers, which most often are all. */
static void wait_at(struct gate *gate, struct token *token)
{
    struct token *before = gate->last;
    while (before != NULL && before->number > token->number) {
        before = before->previous;
    }
    token->previous = before;
    token->next = before != NULL ? before->next : gate->first;
    *(token->next != NULL ? &token->next->previous : &gate->last) = token;
    *(before != NULL ? &before->next : &gate->first) = token;
}

/* Removes the first token from the queue. */
static struct token *end_wait(struct gate *gate)
{
    struct token *token = gate->first;
    gate->first = token->next;
    *(token->next != NULL ? &token->next->previous : &gate->last) = NULL;
    return token;
}

static void make_ready(struct pipeline *pipe, struct token *token)
{
    token->next = pipe->ready;
    pipe->ready = token;
}

/* Leaves a stage, and admits the next token in its queue if possible. */
static void leave(struct pipeline *pipe, size_t stage)
{
    struct gate *gate = &pipe->gates[stage];
    gate->busy = false;
    gate->turn++;
    if (gate->first != NULL && may_enter(pipe, gate->first)) {
        gate->busy = true;
        make_ready(pipe, end_wait(gate));
    }
}

/* Enters a stage. Returns false if the token waits in its queue. */
static bool enter(struct pipeline *pipe, struct token *token)
{
    struct gate *gate = &pipe->gates[token->stage];
    if (!may_enter(pipe, token)) {
        wait_at(gate, token);
        return false;
    }
    gate->busy = true;
    return true;
}

static bool may_begin(const struct pipeline *pipe)
{
    return !pipe->is_exhausted && !pipe->gates[0].busy && pipe->under_way < pipe->tokens;
}

static void put_token(struct pipeline *pipe, struct token *token)
{
    token->next = pipe->unused;
    pipe->unused = token;
    pipe->under_way--;
}

/* Returns a token that is in the first stage, or NULL if memory is exhausted. */
static struct token *begin(struct pipeline *pipe)
{
    struct token *token = pipe->unused;
    if (token != NULL) {
        pipe->unused = token->next;
    } else {
        token = wf_alloc(&wf_alloc_default, sizeof *token, _Alignof(struct token));
        if (token == NULL) {
            pipe->tokens = pipe->under_way; /* at least the embedded one is in flight */
            return NULL;
        }
    }
    *token = (struct token){ .number = pipe->made };
    pipe->gates[0].busy = true;
    pipe->under_way++;
    return token;
}

static struct token *find_work(struct pipeline *pipe)
{
    struct token *token = pipe->ready;
    if (token != NULL) {
        pipe->ready = token->next;
        return token;
    }
    return may_begin(pipe) ? begin(pipe) : NULL;
}

/* Moves a token to the next stage. Returns the token if it has entered that stage, or NULL if
 * it waits there or is finished. */
static struct token *move_on(struct pipeline *pipe, struct token *token)
{
    size_t from = token->stage++;
    bool is_over = token->stage == pipe->count;
    if (from == 0 && token->item != NULL) {
        pipe->made++;
    } else if (from == 0) {
        pipe->is_exhausted = true;
        is_over = true;
    }
    if (takes_one(pipe, from)) {
        leave(pipe, from);
    }
    if (is_over) {
        put_token(pipe, token);
        return NULL;
    }
    return !takes_one(pipe, token->stage) || enter(pipe, token) ? token : NULL;
}

/* Returns whether a runner that has taken this work must spawn a standby. */
static bool wants_standby(struct pipeline *pipe, const struct token *taken)
{
    bool wants = taken != NULL && pipe->may_spawn && !pipe->has_standby &&
                 (pipe->ready != NULL || may_begin(pipe));
    pipe->has_standby = pipe->has_standby || wants;
    return wants;
}

/* --- Runners ------------------------------------------------------------------------------ */

/* Calls the function of the token's stage. Returns false if the pipeline has ended early and
 * the token must be dropped. */
static bool call_stage(struct pipeline *pipe, struct token *token)
{
    if (wf_stopper_is_set(&pipe->stopper)) {
        return false;
    }
    if (token->item == NULL && token->stage > 0) {
        return true; /* The item is gone, but the token keeps its position in the order. */
    }
    int err = pipe->stages[token->stage].run(&token->item, pipe->arg);
    if (err != 0) {
        wf_stopper_fail(&pipe->stopper, err);
    }
    wf_job_speak_up();
    wf_pause(1);
    return err == 0;
}

static int run_standby(void *arg);

/* Moves a token on, unless it is NULL. Returns the next token to run, or NULL if there is
 * none. */
static struct token *next_work(struct pipeline *pipe, struct token *token, bool is_standby)
{
    wf_lock(&pipe->lock);
    if (is_standby) {
        pipe->has_standby = false;
    }
    struct token *next = token != NULL ? move_on(pipe, token) : NULL;
    if (next == NULL) {
        next = find_work(pipe);
    }
    bool wants = wants_standby(pipe, next);
    wf_unlock(&pipe->lock);
    if (wants) {
        weft_par_spawn(&pipe->scope, run_standby, pipe);
    }
    return next;
}

static void drop(const struct pipeline *pipe, const struct token *token)
{
    if (token->item != NULL && pipe->drop != NULL) {
        pipe->drop(token->item, pipe->arg);
    }
}

/* Drops the runner's token after the pipeline has ended early. */
static void drop_own(struct pipeline *pipe, struct token *token)
{
    drop(pipe, token);
    wf_lock(&pipe->lock);
    put_token(pipe, token);
    wf_unlock(&pipe->lock);
}

static void run(struct pipeline *pipe, bool is_standby)
{
    struct token *token = next_work(pipe, NULL, is_standby);
    while (token != NULL) {
        if (!call_stage(pipe, token)) {
            drop_own(pipe, token);
            return;
        }
        token = next_work(pipe, token, false);
    }
}

static int run_standby(void *arg)
{
    run(arg, true);
    return 0;
}

/* --- Start and end ------------------------------------------------------------------------- */

static void free_tokens(const struct pipeline *pipe, struct token *first)
{
    while (first != NULL) {
        struct token *next = first->next;
        if (first != &pipe->first) {
            wf_free(&wf_alloc_default, first, sizeof *first, _Alignof(struct token));
        }
        first = next;
    }
}

static void drop_all(const struct pipeline *pipe, struct token *first)
{
    for (const struct token *token = first; token != NULL; token = token->next) {
        drop(pipe, token);
    }
    free_tokens(pipe, first);
}

/* Returns a power of two, about four per worker. */
static size_t default_tokens(void)
{
    unsigned forks = wf_job_eager_forks();
    return (size_t)1 << (forks > TOKENS_LOG_MIN ? forks : TOKENS_LOG_MIN);
}

static int run_all(void *arg)
{
    struct pipeline *pipe = arg;
    wf_lock_init(&pipe->lock, WF_RANK_PIPELINE);
    pipe->unused = &pipe->first;
    bool silent = wf_job_begin_silently();
    pipe->may_spawn = weft_jobs_here()->head != NULL;
    pipe->tokens = pipe->tokens != 0 ? pipe->tokens : default_tokens();
    weft_par_scope_begin(&pipe->scope, NULL);
    run(pipe, false);
    int err = weft_par_scope_end(&pipe->scope);
    wf_job_end_silently(silent);
    WF_ASSERT(err == 0);
    WF_ASSERT(pipe->ready == NULL); /* A standby existed for each. */
    for (size_t i = 0; i < pipe->count; i++) {
        drop_all(pipe, pipe->gates[i].first);
    }
    free_tokens(pipe, pipe->unused);
    return wf_stopper_result(&pipe->stopper);
}

int weft_pipeline(const weft_stage *stages, size_t count, size_t tokens, weft_drop_fn drop_item,
                  void *arg, const weft_par_options *options)
{
    wf_pause_call();
    struct pipeline pipe = { .stages = stages, .count = count, .tokens = tokens, .arg = arg };
    struct gate here[STAGES_HERE] = { { 0 } };
    if (count == 0 || stages[0].kind != WEFT_STAGE_IN_ORDER) {
        return -EINVAL;
    }
    if (count > SIZE_MAX / sizeof(struct gate)) {
        return -ENOMEM;
    }
    pipe.drop = drop_item;
    pipe.stopper.stop = wf_stop_of(options);
    pipe.gates = count <= STAGES_HERE ? here
                                      : wf_alloc_zeroed(&wf_alloc_default, count * sizeof here[0],
                                                        _Alignof(struct gate));
    if (pipe.gates == NULL) {
        return -ENOMEM;
    }
    int err = wf_deep_call(run_all, &pipe);
    if (pipe.gates != here) {
        wf_free(&wf_alloc_default, pipe.gates, count * sizeof here[0], _Alignof(struct gate));
    }
    return err;
}
