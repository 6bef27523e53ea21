/* SPDX-License-Identifier: MIT */
/*
 * scope.c - structured concurrency: a scope waits for its tasks before it ends.
 *
 * A scope counts its children, from just before a child is started until its function has
 * returned. The owner needs no handles: a running child keeps a record in its own frame and
 * links it into the scope's list, so that it can be canceled.
 *
 *   Child                                  Canceler
 *   C1  latch: link into the list;         X1  latch: mark the scope canceled;
 *       is the scope canceled?                 no new child is admitted
 *   C2  if so, cancel itself               X2  latch: retain a batch of listed children
 *   C3  run the function                   X3  cancel the batch; repeat X2 until every
 *   C4  on failure, cancel the scope           child is notified
 *   C5  latch: unlink, decrement the
 *       count; the last child wakes
 *       the owner
 *
 * C1 and X1 run with the same latch held: either the canceler finds the child in the list, or
 * the child finds the scope canceled. Unlocking the latch in C5 is the child's last access to
 * the scope, because the owner may leave its frame then.
 *
 * The scope is canceled through its cancel token, which has the canceler as its callback. So a
 * failed child, a passed deadline and the cancellation of a parent token all take the same path.
 *
 * Edges: latch.h's [E1]: a waiter sees everything that the children did.
 *
 * Checked by tests/model/scope_model.c.
 */
#include "flow/scope.h"

#include <sched.h>

#include <weft/time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/latch.h"
#include "sched/frame.h"
#include "sched/op.h"
#include "sched/sched.h"
#include "time/timer.h"

enum {
#ifdef WF_MODEL
    TOLD_AT_ONCE = 1,
#else
    TOLD_AT_ONCE = 32,
#endif
};

struct scope {
    _Atomic(uint32_t) word; /* latch only */
    bool is_supervised;     /* constant */
    bool has_timer;         /* owner only */
    bool is_cancelled;      /* under the latch, like all fields below */
    bool is_late;
    bool is_over; /* owner only: the scope has ended */
    int error;    /* the first error of a child */
    size_t live;
    struct wf_list children; /* running children */
    struct wf_waitq room;    /* waiters that want to start a child */
    struct wf_waitq ended;   /* waiters for the last child */
    size_t limit;            /* constant */
    weft_runtime *runtime;   /* constant */
    weft_time deadline;      /* constant */
    _Atomic(uint32_t) *open; /* constant: counter of open scopes (sched/frame.h), or NULL */
    weft_token token;
    weft_on_cancel on_cancel;
    weft_timer timer;
};

_Static_assert(sizeof(struct scope) <= sizeof(weft_scope), "weft_scope is too small");

/* A running child; lives in the child's own frame. */
struct child {
    struct wf_list link;
    weft_task *task;
    bool is_told;
};

static struct scope *scope_of(weft_scope *scope)
{
    return (struct scope *)scope;
}

/* --- Canceling -------------------------------------------------------------------------------- */

/* X2: marks a batch of children as notified and retains them. Returns the batch size. */
static size_t pick(struct scope *scope, weft_task **tasks)
{
    size_t count = 0;
    (void)wf_latch_lock(&scope->word);
    for (struct wf_list *link = scope->children.next;
         link != &scope->children && count < TOLD_AT_ONCE; link = link->next) {
        struct child *child = wf_container_of(link, struct child, link);
        if (!child->is_told) {
            child->is_told = true;
            tasks[count++] = weft_task_retain(child->task);
        }
    }
    wf_latch_unlock(&scope->word, 0);
    return count;
}

/* The callback of the cancel token: X1 to X3. */
static void cancel_children(void *arg)
{
    struct scope *scope = arg;
    struct wf_turn turn;
    wf_turn_begin(&turn, scope);
    scope->is_cancelled = true;
    wf_turn_claim_all(&turn, &scope->room, WEFT_ECANCELED);
    wf_turn_end(&turn);
    weft_task *tasks[TOLD_AT_ONCE];
    size_t count;
    while ((count = pick(scope, tasks)) > 0) {
        for (size_t i = 0; i < count; i++) {
            weft_cancel(tasks[i]);
            weft_detach(tasks[i]);
        }
    }
}

static void be_late(struct scope *scope)
{
    (void)wf_latch_lock(&scope->word);
    scope->is_late = true;
    wf_latch_unlock(&scope->word, 0);
    weft_token_cancel(&scope->token);
}

static void timer_fired(void *arg)
{
    be_late(arg);
}

void weft_scope_cancel(weft_scope *scope)
{
    weft_token_cancel(&scope_of(scope)->token);
}

weft_token *weft_scope_token(weft_scope *scope)
{
    return &scope_of(scope)->token;
}

/* --- Children --------------------------------------------------------------------------------- */

/* C1 and C2. */
static void child_begin(struct scope *scope, struct child *child)
{
    *child = (struct child){ .task = weft_task_current() };
    (void)wf_latch_lock(&scope->word);
    wf_list_push_back(&scope->children, &child->link);
    child->is_told = scope->is_cancelled;
    bool is_cancelled = scope->is_cancelled;
    wf_latch_unlock(&scope->word, 0);
    if (is_cancelled) {
        weft_cancel(child->task);
    }
}

/* Removes one child: admits the next waiter, or wakes the waiters for the end of the scope. */
static void count_down(struct scope *scope, struct wf_turn *turn)
{
    scope->live--;
    if (wf_turn_claim(turn, &scope->room) != NULL) {
        scope->live++;
    }
    if (scope->live == 0) {
        wf_turn_claim_all(turn, &scope->ended, 0);
    }
}

/* C4: records the first error. Returns whether the caller must cancel the other children. */
static bool note_result(struct scope *scope, int result)
{
    (void)wf_latch_lock(&scope->word);
    bool has_failed = result < 0 && !(result == WEFT_ECANCELED && scope->is_cancelled);
    if (has_failed && scope->error == 0) {
        scope->error = result;
    }
    wf_latch_unlock(&scope->word, 0);
    return has_failed && !scope->is_supervised;
}

/* C4 and C5. */
static void child_end(struct scope *scope, struct child *child, int result)
{
    if (result < 0 && note_result(scope, result)) {
        weft_token_cancel(&scope->token);
    }
    struct wf_turn turn;
    wf_turn_begin(&turn, scope);
    wf_list_remove(&child->link);
    count_down(scope, &turn);
    wf_turn_end(&turn);
}

/* Undoes the count of a child that could not be started. */
static void child_fail(struct scope *scope)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, scope);
    count_down(scope, &turn);
    wf_turn_end(&turn);
}

/* Start record of a fiber, which gets a copy of it. */
struct start {
    struct scope *scope;
    int (*function)(void *arg);
    void *arg;
    struct wf_scope_report report;
};

static int fiber_child(void *arg)
{
    const struct start *start = arg;
    struct child child;
    child_begin(start->scope, &child);
    int result = start->function(start->arg);
    if (start->report.report != NULL) {
        start->report.report(start->report.to, start->arg, result);
    }
    child_end(start->scope, &child, start->report.report != NULL ? 0 : result);
    return result;
}

/* State of a stackless child, which gets a copy of it. */
struct body_child {
    struct scope *scope;
    struct child child;
    weft_co_future body;
    bool is_begun;
};

/* Like any stackless task, the child is polled at least once, even if it was canceled before. */
static int body_child_poll(weft_co *co, void *state)
{
    struct body_child *self = state;
    if (!self->is_begun) {
        self->is_begun = true;
        child_begin(self->scope, &self->child);
    }
    weft_future *body = &self->body.future;
    int result = body->ops->poll(body);
    co->waiting = result == WEFT_PENDING ? body : NULL;
    if (result != WEFT_PENDING) {
        child_end(self->scope, &self->child, result);
    }
    return result;
}

/* --- Starting --------------------------------------------------------------------------------- */

static int room_of(const struct scope *scope)
{
    if (scope->is_cancelled) {
        return WEFT_ECANCELED;
    }
    return scope->limit == 0 || scope->live < scope->limit ? 0 : WEFT_PENDING;
}

/* With the flag set, the operation takes a slot and counts the child. */
static int room_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    struct scope *scope = op->object;
    int result = room_of(scope);
    if (result == 0 && op->flag) {
        scope->live++;
    }
    return result == WEFT_ECANCELED && !op->flag ? 0 : result;
}

/* An operation without the flag only waits, so it returns the slot that it was granted. */
static int room_end(struct wf_op *op)
{
    if (op->flag) {
        return op->result;
    }
    if (op->result == 0) {
        child_fail(op->object);
    }
    return 0;
}

static const struct wf_op_ops room_ops = { .future = WF_OP_FUTURE,
                                           .take = room_take,
                                           .queue = offsetof(struct scope, room),
                                           .end = room_end };

void weft_scope_room_init(weft_op *op, weft_scope *scope)
{
    (void)wf_op_init(op, &room_ops, scope);
}

/* The timer can fire late if its worker is busy. */
static void look_at_clock(struct scope *scope)
{
    if (scope->deadline == WEFT_NEVER || wf_clock_now() < scope->deadline) {
        return;
    }
    (void)wf_latch_lock(&scope->word);
    bool is_open = !scope->is_cancelled;
    wf_latch_unlock(&scope->word, 0);
    if (is_open) {
        be_late(scope);
    }
}

/* Returns the deadline of a wait by the caller. A plain thread ends its wait itself, even if all
 * workers are busy. A task would need a second timer for that. */
static weft_time wait_deadline(const struct scope *scope)
{
    return weft_task_current() != NULL ? WEFT_NEVER : scope->deadline;
}

/* Suspends while the scope is at its limit. The caller has passed wf_op_enter(). */
static int await_room(struct scope *scope)
{
    weft_op op;
    look_at_clock(scope);
    wf_op_init(&op, &room_ops, scope)->flag = true;
    weft_time deadline = wait_deadline(scope);
    int result = wf_op_await_slowly(&op, deadline);
    if (result != WEFT_ETIMEDOUT || deadline == WEFT_NEVER) {
        return result;
    }
    be_late(scope);
    return WEFT_ECANCELED;
}

/* Same as await_room(), but returns -EAGAIN instead of suspending. */
static int take_room(struct scope *scope)
{
    if (weft_cancelled()) {
        return WEFT_ECANCELED;
    }
    look_at_clock(scope);
    (void)wf_latch_lock(&scope->word);
    int result = room_of(scope);
    scope->live += result == 0;
    wf_latch_unlock(&scope->word, 0);
    return result == WEFT_PENDING ? -EAGAIN : result;
}

/* Starts a fiber. The child is already counted. */
static int start_fiber(struct scope *scope, const weft_fiber_spec *spec,
                       const struct wf_scope_report *report)
{
    struct start start = { .scope = scope, .function = spec->function, .arg = spec->arg };
    if (report != NULL) {
        start.report = *report;
    }
    weft_fiber_spec own = *spec;
    own.function = fiber_child;
    own.arg = &start;
    own.arg_size = sizeof start;
    int err = scope->runtime != NULL ? weft_runtime_go(scope->runtime, NULL, &own)
                                     : weft_go_with(NULL, &own);
    if (err != 0) {
        child_fail(scope);
    }
    return err;
}

int wf_scope_go(weft_scope *scope, const weft_fiber_spec *spec,
                const struct wf_scope_report *report, const char *call)
{
    weft_time never = WEFT_NEVER;
    int result =
        wf_await_begin(&never, call, "in a body, call weft_scope_try_go() or weft_scope_spawn()");
    if (result == 0) {
        bool is_valid = spec->function != NULL && spec->arg_size == 0;
        result = is_valid ? await_room(scope_of(scope)) : -EINVAL;
    }
    return result == 0 ? start_fiber(scope_of(scope), spec, report) : result;
}

int weft_scope_go_with(weft_scope *scope, const weft_fiber_spec *spec)
{
    return wf_scope_go(scope, spec, NULL, "weft_scope_go_with");
}

int weft_scope_go(weft_scope *scope, int (*function)(void *arg), void *arg)
{
    weft_fiber_spec spec = { .function = function, .arg = arg };
    return wf_scope_go(scope, &spec, NULL, "weft_scope_go");
}

int weft_scope_try_go(weft_scope *scope, int (*function)(void *arg), void *arg)
{
    weft_fiber_spec spec = { .function = function, .arg = arg };
    if (function == NULL) {
        return -EINVAL;
    }
    int result = take_room(scope_of(scope));
    return result == 0 ? start_fiber(scope_of(scope), &spec, NULL) : result;
}

int weft_scope_spawn(weft_scope *scope, weft_body_fn body, void *state)
{
    struct scope *self = scope_of(scope);
    if (body == NULL) {
        return -EINVAL;
    }
    int result = take_room(self);
    if (result != 0) {
        return result;
    }
    struct body_child child = { .scope = self };
    weft_co_init(&child.body, body, state);
    weft_spec spec = { .body = body_child_poll, .state = &child, .state_size = sizeof child };
    int err = self->runtime != NULL ? weft_runtime_spawn(self->runtime, NULL, &spec)
                                    : weft_spawn(NULL, &spec);
    if (err != 0) {
        child_fail(self);
    }
    return err;
}

static size_t live_children(struct scope *scope)
{
    (void)wf_latch_lock(&scope->word);
    size_t live = scope->live;
    wf_latch_unlock(&scope->word, 0);
    return live;
}

size_t weft_scope_children(weft_scope *scope)
{
    return live_children(scope_of(scope));
}

/* --- The block -------------------------------------------------------------------------------- */

/* A task uses a timer of its own worker. A plain thread uses one of the children's runtime. */
static void start_timer(struct scope *self)
{
    self->has_timer = true;
    if (weft_task_current() != NULL) {
        weft_timer_start(&self->timer, self->deadline, 0, timer_fired, self);
    } else if (self->runtime != NULL) {
        struct wf_sched *sched = wf_sched_of_runtime(self->runtime, "weft_scope_begin");
        wf_timer_start(sched, &self->timer, self->deadline, 0, timer_fired, self);
    } else {
        self->has_timer = false; /* No child can be started. */
    }
}

void weft_scope_begin(weft_scope *scope, const weft_scope_options *options)
{
    static const weft_scope_options none;
    struct scope *self = scope_of(scope);
    options = options != NULL ? options : &none;
    *self = (struct scope){ .is_supervised = options->is_supervised,
                            .limit = options->limit,
                            .runtime = options->runtime,
                            .deadline = options->deadline != 0 ? options->deadline : WEFT_NEVER };
    wf_list_init(&self->children);
    self->open = wf_frame_begin(self);
    weft_token_init(&self->token, options->token);
    weft_on_cancel_add(&self->on_cancel, &self->token, cancel_children, self);
    if (self->deadline != WEFT_NEVER) {
        start_timer(self);
    }
}

static int ended_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    const struct scope *scope = op->object;
    return scope->live == 0 ? 0 : WEFT_PENDING;
}

static const struct wf_op_ops ended_ops = { .future = WF_OP_FUTURE,
                                            .take = ended_take,
                                            .queue = offsetof(struct scope, ended) };

/* Aborts if the scope has already ended. Its memory belongs to the caller and may still be
 * valid. */
static void must_be_open(const struct scope *scope, const char *call)
{
    if (wf_unlikely(scope->is_over)) {
        wf_fatal("%s: this scope was ended before", call);
    }
}

/* All children have ended. A scope whose owner is canceled counts as canceled even if it had no
 * children, so that a loop over scopes ends. */
static int finish(struct scope *scope)
{
    scope->is_over = true;
    wf_frame_end(scope->open);
    if (scope->has_timer) {
        (void)weft_timer_stop(&scope->timer);
    }
    (void)weft_on_cancel_remove(&scope->on_cancel);
    weft_token_fini(&scope->token);
    if (scope->error != 0) {
        return scope->error;
    }
    if (scope->is_late) {
        return WEFT_ETIMEDOUT;
    }
    return scope->is_cancelled || weft_cancelled() ? WEFT_ECANCELED : 0;
}

/* The caller has passed wf_op_enter(), or is shielded. */
static int await_ended(struct scope *scope, weft_time deadline)
{
    weft_op op;
    (void)wf_op_init(&op, &ended_ops, scope);
    return wf_op_await_slowly(&op, deadline);
}

/* Waits for the last child, even if the waiter is canceled. */
static void await_ended_shielded(struct scope *scope)
{
    bool is_task = weft_task_current() != NULL;
    if (is_task) {
        weft_shield_enter();
    }
    while (await_ended(scope, WEFT_NEVER) != 0) {
        (void)sched_yield(); /* The thread has no memory for a wait: retry. */
    }
    if (is_task) {
        weft_shield_leave();
    }
}

/* Takes the result of the first wait, which is 0 if all children have ended. Otherwise cancels
 * the remaining children and waits for them. */
static void await_rest(struct scope *self, int result)
{
    if (result == WEFT_ETIMEDOUT) {
        be_late(self);
    } else if (result == WEFT_ECANCELED) {
        weft_token_cancel(&self->token);
    }
    if (result != 0) {
        await_ended_shielded(self);
    }
}

static int end_until(struct scope *self, weft_time deadline, const char *call)
{
    int result = wf_await_begin(&deadline, call,
                                "in a body, prepare a weft_scope_future with "
                                "weft_scope_end_init() and await it");
    must_be_open(self, call);
    if (live_children(self) > 0) {
        await_rest(self, result == 0 ? await_ended(self, deadline) : result);
    }
    return finish(self);
}

int weft_scope_drain(weft_scope *scope, weft_time deadline)
{
    return end_until(scope_of(scope), deadline, "weft_scope_drain");
}

int wf_scope_end(weft_scope *scope, const char *call)
{
    struct scope *self = scope_of(scope);
    return end_until(self, wait_deadline(self), call);
}

int weft_scope_end(weft_scope *scope)
{
    return wf_scope_end(scope, "weft_scope_end");
}

static bool look_whether_over(weft_scope_future *self)
{
    if (!self->is_over) {
        self->is_over = wf_op_poll(&self->ended.future) != WEFT_PENDING;
    }
    return self->is_over;
}

static int end_poll(weft_future *future)
{
    weft_scope_future *self = (weft_scope_future *)future;
    return look_whether_over(self) ? finish(scope_of(self->scope)) : WEFT_PENDING;
}

/* Cancels the children. The future completes only when they have ended. */
static bool end_cancel(weft_future *future)
{
    weft_scope_future *self = (weft_scope_future *)future;
    if (!self->is_over) {
        weft_scope_cancel(self->scope);
    }
    return look_whether_over(self);
}

static const weft_future_ops end_ops = { .poll = end_poll,
                                         .cancel = end_cancel,
                                         .flags =
                                             WEFT_FUTURE_ALWAYS_STARTS | WF_FUTURE_CANCELS_FIRST };

void weft_scope_end_init(weft_scope_future *future, weft_scope *scope)
{
    must_be_open(scope_of(scope), "weft_scope_end_init");
    *future = (weft_scope_future){ .future.ops = &end_ops, .scope = scope };
    (void)wf_op_init(&future->ended, &ended_ops, scope);
}

static const char in_a_body[] = "in a body, call weft_scope_begin() and await the future of "
                                "weft_scope_end_init()";

/* The result is that of the block, or 0. */
static int leave_with(weft_scope *scope, int result, const char *call)
{
    if (result < 0) {
        weft_scope_cancel(scope);
    }
    int end = wf_scope_end(scope, call);
    /* The block may have failed because of a child's error, which then takes precedence. */
    bool is_first = result < 0 && (end == 0 || end == WEFT_ECANCELED || result != WEFT_ECANCELED);
    return is_first ? result : end;
}

int weft_scope_run(int (*body)(weft_scope *scope, void *arg), void *arg,
                   const weft_scope_options *options)
{
    weft_scope scope;
    wf_await_must_suspend("weft_scope_run", in_a_body);
    weft_scope_begin(&scope, options);
    return leave_with(&scope, body(&scope, arg), "weft_scope_run");
}

bool weft_scope_block_enter(weft_scope_block *block)
{
    if (block->stage != 0) {
        return false;
    }
    block->stage = 1;
    wf_await_must_suspend("WEFT_SCOPE", in_a_body);
    weft_scope_begin(&block->scope, block->options);
    return true;
}

void weft_scope_block_leave(weft_scope_block *block)
{
    if (block->stage == 1) {
        block->stage = 2;
        *block->result = leave_with(&block->scope, *block->result, "WEFT_SCOPE");
    }
}
