/* SPDX-License-Identifier: MIT */
/*
 * token.c - cancel tokens: cancellation that propagates down a tree.
 *
 * A tree has one latch, in its root. The latch guards the shape of the tree, the waiters, and
 * the registered callbacks. A canceler marks the token and all its descendants, and claims all
 * their waiters, in one critical section. So a token that is added at the same time is either
 * marked by the canceler or finds its parent marked.
 *
 * Callbacks run without the latch. In the same critical section they move from their tokens to a
 * list of the canceler, which runs them one by one:
 *
 *   Canceler                               Remover
 *   C1  latch: pop the first callback;     D1  latch: if it is in a list, unlink it;
 *       link the call to the root              it is not called
 *   C2  call it                            D2  if its call is linked to the root, wait for
 *   C3  latch: unlink the call                 C4, unless that wait would never end
 *   C4  end the removers' waits            D3  the registration may be freed
 *
 * C4 and the wait of D2 follow the protocol of sched/callback.c. The wait would never end if the
 * remover is called by the callback itself, or by another callback that this one waits for. Such
 * a remover returns while the callback runs, and the registration may be freed or reused. So
 * after C1 the canceler does not touch the registration: the record of the call keeps its
 * address, by which any other remover finds that the callback still runs.
 *
 * Edges.
 * [TK2] cancel releases the mark, a reader acquires it: the reader sees what was written before
 *      the cancel. A waiter sees it through the latch and the end of its wait.
 *
 * Checked by tests/model/token_model.c.
 */
#include <weft/token.h>

#include <weft/select.h>

#include "base/assert.h"
#include "sched/callback.h"
#include "sched/op.h"

struct wf_token {
    _Atomic(uint32_t) stop;  /* the mark; a weft_stop */
    _Atomic(uint32_t) word;  /* the latch of the tree, in its root */
    struct wf_token *root;   /* constant; NULL in a root */
    struct wf_token *parent; /* constant; the token itself once it is finalized */
    struct wf_list children; /* under the latch, like all fields below */
    struct wf_list sibling;
    struct wf_waitq waiters;
    struct wf_list functions;
    struct call *calls; /* in a root: callbacks of its tree that are running */
};

_Static_assert(sizeof(struct wf_token) <= sizeof(weft_token), "weft_token is too small");
_Static_assert(offsetof(struct wf_token, stop) == offsetof(weft_token, stop), "");

struct wf_on_cancel;

/* A running callback; lives in the frame of its caller. */
struct call {
    struct wf_callback callback;
    const struct wf_on_cancel *of; /* constant: only compared, since it may be freed */
    struct call *next;             /* under the latch */
};

struct wf_on_cancel {
    struct wf_list link;
    struct wf_token *root;
    void (*function)(void *arg);
    void *arg;
    bool is_waiting; /* under the latch: registered and not yet called */
};

_Static_assert(sizeof(struct wf_on_cancel) <= sizeof(weft_on_cancel), "weft_on_cancel is small");

static struct wf_token *root_of(struct wf_token *token)
{
    return token->root != NULL ? token->root : token;
}

/* A zero-initialized token has uninitialized lists. */
static void init_lists(struct wf_token *token)
{
    if (token->children.next == NULL) {
        wf_list_init(&token->children);
        wf_list_init(&token->functions);
    }
}

static bool is_marked(const struct wf_token *token)
{
    /* acquire [TK2]: sees what was written before the cancel. */
    return wf_load_acquire(&token->stop) != 0;
}

/* --- Trees ------------------------------------------------------------------------------------ */

void weft_token_init(weft_token *token, weft_token *parent)
{
    struct wf_token *self = (struct wf_token *)token;
    *self = (struct wf_token){ .parent = (struct wf_token *)parent };
    wf_list_init(&self->children);
    wf_list_init(&self->functions);
    wf_list_init(&self->sibling);
    if (self->parent == NULL) {
        return;
    }
    self->root = root_of(self->parent);
    (void)wf_latch_lock(&self->root->word);
    init_lists(self->parent);
    wf_list_push_back(&self->parent->children, &self->sibling);
    /* relaxed: no other thread has seen the token. */
    wf_store_relaxed(&self->stop, is_marked(self->parent) ? 1u : 0u);
    wf_latch_unlock(&self->root->word, 0);
}

void weft_token_fini(weft_token *token)
{
    struct wf_token *self = (struct wf_token *)token;
    if (wf_unlikely(self->parent == self)) {
        wf_fatal("weft_token_fini: this token was ended before");
    }
    struct wf_token *root = root_of(self);
    (void)wf_latch_lock(&root->word);
    init_lists(self);
    if (wf_unlikely(!wf_list_is_empty(&self->children))) {
        wf_fatal("weft_token_fini: the token has children; end them before");
    }
    if (wf_unlikely(!wf_waitq_is_empty(&self->waiters))) {
        wf_fatal("weft_token_fini: somebody waits for the token");
    }
    if (wf_unlikely(!wf_list_is_empty(&self->functions))) {
        wf_fatal("weft_token_fini: the token has functions; weft_on_cancel_remove() them before");
    }
    if (self->parent != NULL) {
        wf_list_remove(&self->sibling);
    }
    wf_latch_unlock(&root->word, 0);
    self->root = NULL;
    self->parent = self;
}

/* Returns the next token in a pre-order walk of the tree below top, or NULL. */
static struct wf_token *next_below(struct wf_token *token, const struct wf_token *top)
{
    if (!wf_list_is_empty(&token->children)) {
        return wf_container_of(token->children.next, struct wf_token, sibling);
    }
    while (token != top && token->sibling.next == &token->parent->children) {
        token = token->parent;
    }
    return token == top ? NULL : wf_container_of(token->sibling.next, struct wf_token, sibling);
}

/* --- Canceling -------------------------------------------------------------------------------- */

static void mark(struct wf_token *token, struct wf_turn *turn, struct wf_list *functions)
{
    init_lists(token);
    /* release [TK2]: a reader of the mark sees what was written before. */
    wf_store_release(&token->stop, 1u);
    wf_turn_claim_all(turn, &token->waiters, 0);
    struct wf_list *link;
    while ((link = wf_list_pop_front(&token->functions)) != NULL) {
        wf_list_push_back(functions, link);
    }
}

/* C1, under the latch. */
static void begin_call(struct wf_on_cancel *self, struct call *call)
{
    wf_callback_begin(&call->callback);
    self->is_waiting = false;
    call->of = self;
    call->next = self->root->calls;
    self->root->calls = call;
}

/* Under the latch: returns the link to the running call of a registration, or to NULL. */
static struct call **find_call(struct wf_token *root, const struct wf_on_cancel *of)
{
    struct call **at = &root->calls;
    while (*at != NULL && (*at)->of != of) {
        at = &(*at)->next;
    }
    return at;
}

/* Under the latch. Several calls may have the same registration address. */
static void unlink_call(struct wf_token *root, const struct call *call)
{
    struct call **at = &root->calls;
    while (*at != call) {
        at = &(*at)->next;
    }
    *at = call->next;
}

/* C2 to C4. */
static void carry_out(const struct wf_on_cancel *self, struct call *call)
{
    struct wf_token *root = self->root;
    self->function(self->arg);
    (void)wf_latch_lock(&root->word);
    unlink_call(root, call);
    wf_latch_unlock(&root->word, 0);
    wf_callback_end(&call->callback);
}

/* Runs the next callback. Returns false if none is left. */
static bool call_next(struct wf_token *root, struct wf_list *functions)
{
    struct call call;
    struct wf_on_cancel *next = NULL;
    (void)wf_latch_lock(&root->word);
    struct wf_list *link = wf_list_pop_front(functions);
    if (link != NULL) {
        next = wf_container_of(link, struct wf_on_cancel, link);
        begin_call(next, &call);
    }
    wf_latch_unlock(&root->word, 0);
    if (next != NULL) {
        carry_out(next, &call);
    }
    return next != NULL;
}

void weft_token_cancel(weft_token *token)
{
    struct wf_token *self = (struct wf_token *)token;
    struct wf_token *root = root_of(self);
    struct wf_turn turn;
    struct wf_list functions;
    wf_list_init(&functions);
    wf_turn_begin(&turn, &root->word);
    if (!is_marked(self)) {
        for (struct wf_token *next = self; next != NULL; next = next_below(next, self)) {
            mark(next, &turn, &functions);
        }
    }
    bool has_functions = !wf_list_is_empty(&functions);
    wf_turn_end(&turn);
    while (has_functions) {
        has_functions = call_next(root, &functions);
    }
}

bool weft_token_is_cancelled(const weft_token *token)
{
    return is_marked((const struct wf_token *)token);
}

/* --- Waiting ---------------------------------------------------------------------------------- */

/* The operation's object is the latch; its data is the token. */
static int wait_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    return is_marked(op->data) ? 0 : WEFT_PENDING;
}

static void wait_enlist(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    struct wf_token *token = op->data;
    wf_op_enlist(op, &token->waiters);
}

static const struct wf_op_ops wait_ops = { .future = WF_OP_FUTURE,
                                           .take = wait_take,
                                           .enlist = wait_enlist };

void weft_token_wait_init(weft_op *op, weft_token *token)
{
    struct wf_token *self = (struct wf_token *)token;
    struct wf_op *wait = wf_op_init(op, &wait_ops, &root_of(self)->word);
    wait->data = self;
}

int weft_token_wait(weft_token *token, weft_time deadline)
{
    int err = wf_op_enter(&deadline, "weft_token_wait");
    if (wf_unlikely(err != 0)) {
        return err;
    }
    if (weft_token_is_cancelled(token)) {
        return 0;
    }
    weft_op op;
    weft_token_wait_init(&op, token);
    return wf_op_await_slowly(&op, deadline);
}

int weft_token_await(weft_token *token, weft_future *future, weft_time deadline)
{
    weft_op cancelled;
    weft_token_wait_init(&cancelled, token);
    weft_branch branches[] = { { .future = &cancelled.future }, { .future = future } };
    weft_select_future select;
    weft_select_init(&select, branches, 2, WEFT_SELECT_ORDERED);
    int winner = wf_await(&select.future, deadline, "weft_token_await",
                          "in a body, await a weft_select_future with a weft_token_wait_init() "
                          "as its first branch");
    if (winner == 1) {
        return branches[1].result;
    }
    return winner == 0 ? WEFT_ECANCELED : winner;
}

/* --- Callbacks -------------------------------------------------------------------------------- */

void weft_on_cancel_add(weft_on_cancel *on_cancel, weft_token *token, void (*function)(void *arg),
                        void *arg)
{
    struct wf_on_cancel *self = (struct wf_on_cancel *)on_cancel;
    struct wf_token *of = (struct wf_token *)token;
    *self = (struct wf_on_cancel){ .root = root_of(of), .function = function, .arg = arg };
    wf_list_init(&self->link);
    (void)wf_latch_lock(&self->root->word);
    init_lists(of);
    struct call call;
    bool is_late = is_marked(of);
    if (is_late) {
        begin_call(self, &call);
    } else {
        self->is_waiting = true;
        wf_list_push_back(&of->functions, &self->link);
    }
    wf_latch_unlock(&self->root->word, 0);
    if (is_late) {
        carry_out(self, &call);
    }
}

static void cancel_task(void *task)
{
    weft_cancel(task);
}

void weft_on_cancel_add_task(weft_on_cancel *on_cancel, weft_token *token, weft_task *task)
{
    weft_on_cancel_add(on_cancel, token, cancel_task, task);
}

bool weft_on_cancel_remove(weft_on_cancel *on_cancel)
{
    struct wf_on_cancel *self = (struct wf_on_cancel *)on_cancel;
    struct wf_callback_wait wait;
    if (self->root == NULL) {
        return false;
    }
    (void)wf_latch_lock(&self->root->word);
    struct call *call = *find_call(self->root, self);
    bool is_in_time = self->is_waiting;
    bool must_wait = false;
    if (is_in_time) {
        wf_list_remove(&self->link);
        self->is_waiting = false;
    } else if (call != NULL) {
        must_wait = wf_callback_expect(&call->callback, &wait, "weft_on_cancel_remove");
    }
    wf_latch_unlock(&self->root->word, 0);
    if (must_wait) {
        wf_callback_await(&wait);
    }
    return is_in_time;
}
