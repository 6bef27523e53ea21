/* SPDX-License-Identifier: MIT */
/*
 * pipeline.c - items that go through stages.
 *
 * An item under way is a token. A runner goes with one from stage to stage. At a stage that
 * takes one at a time it may find that somebody is inside, or that an earlier item has not
 * come yet: then it leaves the token in the stage's queue, and looks for another one.
 *
 *   leave a stage    the first in its queue, if its turn has come, may enter: it is ready
 *   enter a stage    if nobody is inside and its turn has come; else it waits in the queue
 *   look for work    a token that is ready; else a new one, if the first stage is free
 *
 * One lock guards all that, and is held for a few instructions only, once for each stage
 * that an item passes.
 *
 * Who runs. The caller is a runner, and ends when it finds no work. So that others can help,
 * and so that a stage which waits does not stop the rest, there is a standby as long as there
 * is work that nobody has: another runner, spawned, which an idle worker takes. It calls for
 * the next standby when it begins. While nobody is idle it is not taken, and costs nothing.
 *
 * Why nothing is forgotten. Work comes up when a runner leaves a stage; under the same lock
 * it takes that itself, or there is a standby.
 *
 * The end. After an error or a stop each runner drops its token and ends. Those in queues
 * are dropped by the caller, when all runners have ended.
 *
 * Edge: lock.h's [L1]: who takes a token from a list sees what was done with its item.
 */
#include <weft/pipeline.h>

#include <weft/par.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/lock.h"
#include "par/pause.h"
#include "par/stop.h"
#include "sched/job.h"

enum {
    STAGES_HERE = 16,
    TOKENS_LOG_MIN = 2,
};

struct token {
    void *item;
    uint64_t number; /* of the item, as it was made */
    size_t stage;    /* where it is, or waits */
    struct token *next;
    struct token *previous; /* in the queue of a stage */
};

/* The way into a stage that takes one at a time. */
struct gate {
    bool busy;
    uint64_t turn;       /* the next number, if items pass in order */
    struct token *first; /* who waits, by number */
    struct token *last;
};

struct pipeline {
    const weft_stage *stages;
    size_t count;
    weft_drop_fn drop;
    void *arg;
    bool may_spawn;
    struct wf_stopper stopper;
    weft_par_scope scope; /* of the runners; it is never stopped */

    struct wf_lock lock;  /* guards what follows, and the gates */
    struct gate *gates;   /* one for each stage */
    struct token *ready;  /* may enter where they are */
    struct token *unused; /* to take again */
    size_t under_way;
    size_t tokens;     /* so many at most */
    uint64_t made;     /* items */
    bool is_exhausted; /* the first stage has said so */
    bool has_standby;
    struct token first; /* enough for who has no memory */
};

/* --- Under the lock ---------------------------------------------------------------------- */

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

/* Behind those with smaller numbers, which most often are all. */
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

/* Takes the first one off its queue. */
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

/* Out of a stage, and perhaps another one into it. */
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

/* Into a stage. False: it waits there. */
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

/* A token that is in the first stage. NULL: there is no memory. */
static struct token *begin(struct pipeline *pipe)
{
    struct token *token = pipe->unused;
    if (token != NULL) {
        pipe->unused = token->next;
    } else {
        token = wf_alloc(&wf_alloc_default, sizeof *token, _Alignof(struct token));
        if (token == NULL) {
            pipe->tokens = pipe->under_way; /* at least the first one is */
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

/* From one stage to the next. Returns the token if it has entered that; NULL: it waits
 * there, or is no more. */
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

/* Must who has taken this work call for a standby? */
static bool wants_standby(struct pipeline *pipe, const struct token *taken)
{
    bool wants = taken != NULL && pipe->may_spawn && !pipe->has_standby &&
                 (pipe->ready != NULL || may_begin(pipe));
    pipe->has_standby = pipe->has_standby || wants;
    return wants;
}

/* --- Runners ------------------------------------------------------------------------------ */

/* Calls the stage for the token that is in it. False: the pipeline is over, and the token
 * is not. */
static bool call_stage(struct pipeline *pipe, struct token *token)
{
    if (wf_stopper_is_set(&pipe->stopper)) {
        return false;
    }
    if (token->item == NULL && token->stage > 0) {
        return true; /* It is gone, but keeps its place among the others. */
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

/* Moves a token on, if there is one. Returns what to do next, or NULL: there is nothing. */
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

/* The token whose pipeline is over. */
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

/* --- From the beginning to the end --------------------------------------------------------- */

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

/* A power of two, about four per worker. */
static size_t default_tokens(void)
{
    unsigned forks = wf_job_eager_forks();
    return (size_t)1 << (forks > TOKENS_LOG_MIN ? forks : TOKENS_LOG_MIN);
}

static int run_all(struct pipeline *pipe)
{
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
    WF_ASSERT(pipe->ready == NULL); /* There was a standby for each. */
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
    int err = run_all(&pipe);
    if (pipe.gates != here) {
        wf_free(&wf_alloc_default, pipe.gates, count * sizeof here[0], _Alignof(struct gate));
    }
    return err;
}
