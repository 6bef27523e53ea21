/* SPDX-License-Identifier: MIT */
/*
 * Goal:   every awaiting call keeps the order of precedence - canceled, the object's answer, the
 *         deadline, a wait - in every context, loses nothing, and does not starve its worker.
 * Method: a table of all awaiting calls (support/calls.h) times contexts times conditions. After
 *         a call has failed, the same call on the same object must succeed: nothing that it was
 *         to get is lost. A sample of the table under a sanitizer; WEFT_TEST_SCALE above 1 runs
 *         all of it.
 */
#include <weft.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "rt.h"
#include "test.h"

static const struct call_group *const groups[] = { &calls_sync, &calls_chan, &calls_flow,
                                                   &calls_time, &calls_io,   &calls_net,
                                                   &calls_early };

enum {
    GROUPS = sizeof groups / sizeof groups[0],
};

enum context {
    FIBER,
    STACKLESS,
    THREAD,
    BLOCKING_JOB,
    IN_PLACE, /* a fiber in weft_block_in_place() */
    PARALLEL, /* a stolen fork of a fiber */
    CONTEXTS,
};

static const char *const context_names[] = { "fiber",        "stackless task", "thread",
                                             "blocking job", "block in place", "parallel body" };

/* What holds when the call begins, and what happens while it waits. */
enum {
    IS_READY = 1,
    IS_CLOSED = 2,
    IS_CANCELED = 4,
    IS_SHIELDED = 8,
    IS_LATE = 16,
    GETS_READY = 32,
    GETS_CLOSED = 64,
    GETS_CANCELED = 128,
    GETS_LATE = 256,
};

static const struct condition {
    const char *name;
    unsigned bits;
} conditions[] = {
    { "ready", IS_READY },
    { "ready and late", IS_READY | IS_LATE },
    { "ready and canceled", IS_READY | IS_CANCELED },
    { "ready, canceled and late", IS_READY | IS_CANCELED | IS_LATE },
    { "ready, canceled and shielded", IS_READY | IS_CANCELED | IS_SHIELDED },
    { "made ready while it waits", GETS_READY },
    { "made ready while it waits shielded", GETS_READY | IS_CANCELED | IS_SHIELDED },
    { "late", IS_LATE },
    { "late while it waits", GETS_LATE },
    { "canceled", IS_CANCELED },
    { "canceled and late", IS_CANCELED | IS_LATE },
    { "canceled while it waits", GETS_CANCELED },
    { "shielded and late while it waits", IS_CANCELED | IS_SHIELDED | GETS_LATE },
    { "closed", IS_CLOSED },
    { "closed and late", IS_CLOSED | IS_LATE },
    { "closed and canceled", IS_CLOSED | IS_CANCELED },
    { "closed while it waits", GETS_CLOSED },
};

enum {
    CONDITIONS = sizeof conditions / sizeof conditions[0],
};

struct trial {
    const struct call *call;
    void *state;
    enum context context;
    unsigned bits;
    int64_t result;
    weft_event stolen;     /* a fork that makes the call runs on its own fiber */
    bool is_refused;       /* canceled before it made the call */
    atomic_bool has_begun; /* of a blocking job that is shut down */
};

static _Noreturn void fail(const struct trial *trial, const char *what)
{
    const char *condition = "";
    for (unsigned i = 0; i < CONDITIONS; i++) {
        if (conditions[i].bits == trial->bits) {
            condition = conditions[i].name;
        }
    }
    test_fail(__FILE__, __LINE__, "%s in a %s, %s: result %lld; %s", trial->call->name,
              context_names[trial->context], condition, (long long)trial->result, what);
}

static bool is_success(const struct call *call, int64_t result)
{
    return result == call->ready || (call->also != 0 && result == call->also);
}

/* --- Which trials exist --------------------------------------------------------------- */

static bool may_be_called(const struct call *call, enum context context)
{
    switch (context) {
    case STACKLESS:
        return call->prep != NULL;
    case THREAD:
        return call->call != NULL && (call->flags & (CALL_FIBERS_ONLY | CALL_TASKS_ONLY)) == 0;
    case BLOCKING_JOB:
    case IN_PLACE:
        return call->call != NULL && (call->flags & CALL_FIBERS_ONLY) == 0;
    default:
        return call->call != NULL;
    }
}

static bool makes_sense(const struct call *call, enum context context, unsigned bits)
{
    unsigned flags = call->flags;
    bool waits = (bits & (IS_READY | IS_CLOSED)) == 0;
    if ((flags & CALL_WAITS_FOR_THREAD) != 0 && (bits & IS_LATE) != 0) {
        return false;
    }
    if (((flags & CALL_NEVER_WAITS) != 0 && waits) ||
        ((flags & CALL_NEVER_READY) != 0 && (bits & IS_READY) != 0) ||
        ((flags & CALL_READY_BEFORE) != 0 && (bits & GETS_READY) != 0) ||
        ((flags & CALL_NO_DEADLINE) != 0 && (bits & (IS_LATE | GETS_LATE)) != 0)) {
        return false;
    }
    if (call->close == NULL && (bits & (IS_CLOSED | GETS_CLOSED)) != 0) {
        return false;
    }
    /* It would wait until it is made ready. */
    if ((flags & CALL_NEVER_CANCELED) != 0 && waits &&
        (bits & (IS_CANCELED | GETS_CANCELED)) != 0 && (bits & GETS_READY) == 0) {
        return false;
    }
    /* A thread is not a task. */
    bool is_about_cancel = (bits & (IS_CANCELED | GETS_CANCELED)) != 0;
    return !(is_about_cancel && context == THREAD);
}

/* The order of precedence. */
static int64_t expected(const struct call *call, unsigned bits)
{
    bool is_canceled = (bits & IS_CANCELED) != 0 && (bits & IS_SHIELDED) == 0 &&
                       (call->flags & CALL_NEVER_CANCELED) == 0;
    if (is_canceled) {
        return WEFT_ECANCELED;
    }
    if ((bits & (IS_CLOSED | GETS_CLOSED)) != 0) {
        return call->closed;
    }
    if ((bits & IS_LATE) != 0 && (call->flags & CALL_STARTS_TASKS) != 0) {
        return WEFT_ETIMEDOUT;
    }
    if ((bits & (IS_READY | GETS_READY)) != 0) {
        return call->ready;
    }
    return (bits & GETS_CANCELED) != 0 ? WEFT_ECANCELED : WEFT_ETIMEDOUT;
}

static bool is_expected(const struct call *call, unsigned bits, int64_t result)
{
    int64_t wanted = expected(call, bits);
    return wanted == call->ready ? is_success(call, result) : result == wanted;
}

/* --- Contexts ------------------------------------------------------------------------- */

static weft_time deadline_of(const struct trial *trial)
{
    if ((trial->bits & GETS_LATE) != 0) {
        return weft_after(WEFT_MS);
    }
    return (trial->bits & IS_LATE) != 0 ? weft_now() - 1 : WEFT_NEVER;
}

static void enter(const struct trial *trial)
{
    if ((trial->bits & IS_CANCELED) != 0) {
        weft_cancel(weft_task_current());
    }
    if ((trial->bits & IS_SHIELDED) != 0) {
        weft_shield_enter();
    }
}

static void leave(const struct trial *trial)
{
    if ((trial->bits & IS_SHIELDED) != 0) {
        weft_shield_leave();
    }
}

static int call_it(void *arg)
{
    struct trial *trial = arg;
    enter(trial);
    trial->result = trial->call->call(trial->state, deadline_of(trial));
    leave(trial);
    return 0;
}

static void *call_on_thread(void *arg)
{
    (void)call_it(arg);
    return NULL;
}

static int call_in_place(void *arg)
{
    return weft_block_in_place(call_it, arg, WEFT_NEVER);
}

/* The owner of the parallel body lets another fiber run it. */
static void wait_for_thief(void *arg)
{
    struct trial *trial = arg;
    weft_shield_enter();
    CHECK_EQ(weft_event_wait(&trial->stolen, WEFT_NEVER), 0);
    weft_shield_leave();
}

/* The owner is canceled, and cancels its forks when it waits for them. */
static void call_in_fork(void *arg)
{
    struct trial *trial = arg;
    weft_event_set(&trial->stolen);
    while ((trial->bits & IS_CANCELED) != 0 && (trial->bits & IS_SHIELDED) == 0 &&
           !weft_cancelled()) {
        (void)weft_yield();
    }
    trial->result = trial->call->call(trial->state, deadline_of(trial));
}

static int call_in_parallel(void *arg)
{
    struct trial *trial = arg;
    enter(trial);
    weft_join2(wait_for_thief, trial, call_in_fork, trial);
    leave(trial);
    return 0;
}

struct awaiting {
    struct trial *trial;
    weft_timeout_future timeout;
    weft_future *future;
};

static int await_it(weft_co *co, void *state)
{
    struct awaiting *self = state;
    int result;
    WEFT_BEGIN(co);
    enter(self->trial);
    self->future = self->trial->call->prep(self->trial->state);
    if (deadline_of(self->trial) != WEFT_NEVER) {
        weft_timeout_init(&self->timeout, self->future, deadline_of(self->trial));
        self->future = &self->timeout.future;
    }
    WEFT_AWAIT(co, result, self->future);
    self->trial->result = result;
    leave(self->trial);
    WEFT_END(co, 0);
}

static weft_task *start(struct trial *trial)
{
    weft_task *task = NULL;
    struct awaiting awaiting = { .trial = trial };
    weft_spec spec = { .body = await_it, .state = &awaiting, .state_size = sizeof awaiting };
    switch (trial->context) {
    case STACKLESS:
        CHECK_EQ(weft_runtime_spawn(calls_runtime, &task, &spec), 0);
        return task;
    case BLOCKING_JOB:
        CHECK_EQ(weft_runtime_spawn_blocking(calls_runtime, &task, call_it, trial), 0);
        return task;
    case IN_PLACE:
        return calls_go(call_in_place, trial);
    case PARALLEL:
        return calls_go(call_in_parallel, trial);
    default:
        return calls_go(call_it, trial);
    }
}

/* --- Trials ---------------------------------------------------------------------------- */

struct on_fiber {
    void (*function)(void *state);
    void *state;
};

static int run_on_fiber(void *arg)
{
    struct on_fiber *self = arg;
    self->function(self->state);
    return 0;
}

static void on_fiber(void (*function)(void *state), void *state)
{
    struct on_fiber self = { function, state };
    if (function != NULL) {
        CHECK_EQ(test_run(calls_runtime, run_on_fiber, &self), 0);
    }
}

/* Intervenes while the call waits. The result is the same if it does not wait yet. */
static void intervene(const struct trial *trial, weft_task *task)
{
    test_wait_until_asleep(calls_runtime);
    if ((trial->bits & GETS_READY) != 0) {
        trial->call->make_ready(trial->state);
    }
    if ((trial->bits & GETS_CLOSED) != 0) {
        trial->call->close(trial->state);
    }
    if ((trial->bits & GETS_CANCELED) != 0) {
        weft_cancel(task);
    }
}

static void run_subject(struct trial *trial)
{
    bool is_waited_for = (trial->bits & (GETS_READY | GETS_CLOSED | GETS_CANCELED)) != 0;
    if (trial->context == THREAD) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, call_on_thread, trial), 0);
        if (is_waited_for) {
            intervene(trial, NULL);
        }
        CHECK_EQ(pthread_join(thread, NULL), 0);
        return;
    }
    weft_task *task = start(trial);
    if (is_waited_for) {
        intervene(trial, task);
    }
    int result = test_join_soon(task);
    /* Canceled before it had a thread: no call was made. */
    bool may_be_refused = trial->context == IN_PLACE || trial->context == BLOCKING_JOB;
    CHECK(result == 0 || (result == WEFT_ECANCELED && may_be_refused));
    if (result != 0) {
        trial->result = result;
        trial->is_refused = true;
    }
}

/* The call has failed: it can be repeated, and gets what the first call did not. */
static void run_again(const struct trial *first)
{
    bool is_ready = (first->bits & (IS_READY | GETS_READY)) != 0;
    bool must_wait = (first->call->flags & CALL_NEVER_READY) != 0;
    struct trial trial = { .call = first->call,
                           .state = first->state,
                           .context = first->call->call != NULL ? FIBER : STACKLESS,
                           .bits = must_wait ? GETS_READY : IS_READY,
                           .result = -1 };
    if (!is_ready && !must_wait) {
        trial.call->make_ready(trial.state);
    }
    run_subject(&trial);
    if (!is_success(trial.call, trial.result)) {
        fail(first, "the next call did not succeed");
    }
}

static void make_ready(const struct call *call, void *of)
{
    call->make_ready(of);
    if (call->prefetch != NULL) {
        call->prefetch(of);
    }
}

static void run_trial(struct trial *trial)
{
    const struct call *call = trial->call;
    memset(trial->state, 0, CALL_STATE_SIZE);
    trial->result = -1;
    memset(&trial->stolen, 0, sizeof trial->stolen);
    on_fiber(call->setup, trial->state);
    if ((trial->bits & IS_READY) != 0) {
        make_ready(call, trial->state);
    }
    if ((trial->bits & IS_CLOSED) != 0) {
        call->close(trial->state);
    }
    run_subject(trial);
    if (!is_expected(call, trial->bits, trial->result)) {
        fail(trial, "not what the order of precedence says");
    }
    bool is_closed = (trial->bits & (IS_CLOSED | GETS_CLOSED)) != 0;
    bool has_ended = (call->flags & CALL_ENDS) != 0 && !trial->is_refused;
    if (!is_closed && !is_success(call, trial->result) && !has_ended) {
        run_again(trial);
    }
    if (!is_closed && (is_success(call, trial->result) || !has_ended) && call->undo != NULL) {
        call->undo(trial->state);
    }
    on_fiber(call->teardown, trial->state);
}

/* --- The table ------------------------------------------------------------------------- */

static _Alignas(64) char state[CALL_STATE_SIZE];

static bool is_chosen(const struct call *call)
{
    const char *only = getenv("WEFT_CALL");
    return only == NULL || strcmp(only, call->name) == 0;
}

/* Under a sanitizer, a part of the table, a different one for each seed. */
static bool is_sampled(unsigned number)
{
    unsigned one_of = TEST_IS_TSAN ? 12 : 3;
    return !test_is_sanitized() || test_scale(20) > 1 || (number + test_seed()) % one_of == 0;
}

static void run_group(const struct call_group *group, enum context context)
{
    static unsigned number;
    for (size_t i = 0; i < group->count; i++) {
        const struct call *call = &group->calls[i];
        for (unsigned j = 0; j < CONDITIONS; j++) {
            struct trial trial = {
                .call = call, .state = state, .context = context, .bits = conditions[j].bits
            };
            if (may_be_called(call, context) && makes_sense(call, context, trial.bits) &&
                is_chosen(call) && is_sampled(number++)) {
                run_trial(&trial);
            }
        }
    }
}

static void run_context(enum context context)
{
    calls_runtime = test_start(test_workers(2) < 32 ? test_workers(2) : 32);
    for (unsigned i = 0; i < GROUPS; i++) {
        run_group(groups[i], context);
    }
    weft_runtime_destroy(calls_runtime);
}

static void calls_in_fiber_keep_precedence(void)
{
    run_context(FIBER);
}

static void calls_in_stackless_task_keep_precedence(void)
{
    run_context(STACKLESS);
}

static void calls_on_thread_keep_precedence(void)
{
    run_context(THREAD);
}

static void calls_in_blocking_job_keep_precedence(void)
{
    run_context(BLOCKING_JOB);
}

static void calls_in_block_in_place_keep_precedence(void)
{
    run_context(IN_PLACE);
}

static void calls_in_parallel_body_keep_precedence(void)
{
    run_context(PARALLEL);
}

/* --- Budget ---------------------------------------------------------------------------- */

enum {
    MANY = 150, /* more than the poll budget */
};

struct many {
    const struct call *call;
    enum context context;
    unsigned bits; /* IS_READY, IS_CLOSED or IS_LATE */
    char (*states)[CALL_STATE_SIZE];
    unsigned made;
    weft_future *future;
    weft_timeout_future timeout;
    unsigned turns; /* of the other fiber: at the first call, then the difference */
};

static atomic_uint turns;
static atomic_bool has_ended;

static int count_turns(void *arg)
{
    (void)arg;
    while (!atomic_load(&has_ended)) {
        atomic_fetch_add(&turns, 1);
        CHECK_EQ(weft_yield(), 0);
    }
    return 0;
}

static void end_of_many(struct many *many)
{
    many->turns = atomic_load(&turns) - many->turns;
    atomic_store(&has_ended, true);
}

static weft_time deadline_of_many(const struct many *many)
{
    return (many->bits & IS_LATE) != 0 ? weft_now() - 1 : WEFT_NEVER;
}

static void check_made(const struct many *many, int64_t result)
{
    if (!is_expected(many->call, many->bits, result)) {
        test_fail(__FILE__, __LINE__, "%s: call %u of many gave %lld", many->call->name, many->made,
                  (long long)result);
    }
}

static int call_many(void *arg)
{
    struct many *many = arg;
    many->turns = atomic_load(&turns);
    for (; many->made < MANY; many->made++) {
        check_made(many, many->call->call(many->states[many->made], deadline_of_many(many)));
    }
    end_of_many(many);
    return 0;
}

static int await_many(weft_co *co, void *arg)
{
    struct many *many = *(struct many **)arg;
    int result;
    WEFT_BEGIN(co);
    many->turns = atomic_load(&turns);
    for (; many->made < MANY; many->made++) {
        many->future = many->call->prep(many->states[many->made]);
        if ((many->bits & IS_LATE) != 0) {
            weft_timeout_init(&many->timeout, many->future, deadline_of_many(many));
            many->future = &many->timeout.future;
        }
        WEFT_AWAIT(co, result, many->future);
        check_made(many, result);
    }
    end_of_many(many);
    WEFT_END(co, 0);
}

static void set_up_many(struct many *many)
{
    const struct call *call = many->call;
    many->states = aligned_alloc(64, MANY * sizeof *many->states);
    memset(many->states, 0, MANY * sizeof *many->states);
    for (unsigned i = 0; i < MANY; i++) {
        on_fiber(call->setup, many->states[i]);
        if ((many->bits & IS_READY) != 0) {
            make_ready(call, many->states[i]);
        }
        if ((many->bits & IS_CLOSED) != 0) {
            call->close(many->states[i]);
        }
    }
}

static void tear_down_many(const struct many *many)
{
    for (unsigned i = 0; i < MANY; i++) {
        if ((many->bits & IS_READY) != 0 && many->call->undo != NULL) {
            many->call->undo(many->states[i]);
        }
        on_fiber(many->call->teardown, many->states[i]);
    }
    free(many->states);
}

static void run_many(const struct call *call, enum context context, unsigned bits)
{
    struct many many = { .call = call, .context = context, .bits = bits };
    struct many *self = &many;
    set_up_many(&many);
    atomic_store(&has_ended, false);
    weft_task *other = calls_go(count_turns, NULL);
    weft_spec spec = { .body = await_many, .state = &self, .state_size = sizeof self };
    weft_task *task = NULL;
    if (context == FIBER) {
        task = calls_go(call_many, &many);
    } else {
        CHECK_EQ(weft_runtime_spawn(calls_runtime, &task, &spec), 0);
    }
    CHECK_EQ(test_join_soon(task), 0);
    CHECK_EQ(test_join_soon(other), 0);
    if (many.turns == 0) {
        test_fail(__FILE__, __LINE__, "%s in a %s: %u %s calls let no other task run", call->name,
                  context_names[context], (unsigned)MANY,
                  bits == IS_READY  ? "ready"
                  : bits == IS_LATE ? "late"
                                    : "closed");
    }
    tear_down_many(&many);
}

/* The call returns immediately: the object is ready or closed, or the deadline has passed. */
static void run_many_of_all(enum context context, unsigned bits)
{
    unsigned number = 0;
    calls_runtime = test_start(1);
    for (unsigned i = 0; i < GROUPS; i++) {
        for (size_t j = 0; j < groups[i]->count; j++) {
            const struct call *call = &groups[i]->calls[j];
            if (may_be_called(call, context) && makes_sense(call, context, bits) &&
                is_chosen(call) && is_sampled(number++)) {
                run_many(call, context, bits);
            }
        }
    }
    weft_runtime_destroy(calls_runtime);
}

static void ready_calls_of_fiber_yield_to_other_tasks(void)
{
    run_many_of_all(FIBER, IS_READY);
}

static void ready_calls_of_stackless_task_yield_to_other_tasks(void)
{
    run_many_of_all(STACKLESS, IS_READY);
}

static void calls_on_closed_objects_yield_to_other_tasks(void)
{
    run_many_of_all(FIBER, IS_CLOSED);
    run_many_of_all(STACKLESS, IS_CLOSED);
}

static void calls_past_deadline_yield_to_other_tasks(void)
{
    run_many_of_all(FIBER, IS_LATE);
    run_many_of_all(STACKLESS, IS_LATE);
}

/* --- Shutdown -------------------------------------------------------------------------- */

/* The runtime shuts down while the call waits: the call is canceled and cleans up. */
static int call_until_shutdown(void *arg)
{
    struct trial *trial = arg;
    atomic_store(&trial->has_begun, true);
    trial->result = trial->call->call(trial->state, WEFT_NEVER);
    weft_shield_enter();
    if (is_success(trial->call, trial->result) && trial->call->undo != NULL) {
        trial->call->undo(trial->state);
    }
    if (trial->call->teardown != NULL) {
        trial->call->teardown(trial->state);
    }
    weft_shield_leave();
    return 0;
}

static int call_until_shutdown_in_place(void *arg)
{
    return weft_block_in_place(call_until_shutdown, arg, WEFT_NEVER);
}

static void shut_down(const struct call *call, enum context context)
{
    struct trial trial = {
        .call = call, .state = state, .context = context, .bits = GETS_CANCELED
    };
    weft_task *task = NULL;
    memset(state, 0, sizeof state);
    calls_runtime = test_start(2);
    on_fiber(call->setup, state);
    if (context == BLOCKING_JOB) {
        CHECK_EQ(weft_runtime_spawn_blocking(calls_runtime, &task, call_until_shutdown, &trial), 0);
    } else {
        task = calls_go(context == IN_PLACE ? call_until_shutdown_in_place : call_until_shutdown,
                        &trial);
    }
    calls_wait_until(atomic_load(&trial.has_begun));
    test_wait_until_asleep(calls_runtime);
    weft_detach(task);
    weft_runtime_destroy(calls_runtime);
    /* The tasks that it waits for are canceled, too. */
    if (trial.result != WEFT_ECANCELED && trial.result != WEFT_ESHUTDOWN &&
        !is_success(call, trial.result)) {
        fail(&trial, "the shutdown did not cancel it");
    }
}

static void shutdown_cancels_waiting_calls(void)
{
    static const enum context contexts[] = { FIBER, BLOCKING_JOB, IN_PLACE };
    for (unsigned i = 0; i < GROUPS; i++) {
        for (size_t j = 0; j < groups[i]->count; j++) {
            for (unsigned k = 0; k < 3; k++) {
                const struct call *call = &groups[i]->calls[j];
                unsigned excluded = CALL_NEVER_WAITS | CALL_NEVER_CANCELED | CALL_ENDS;
                if ((call->flags & excluded) == 0 && may_be_called(call, contexts[k]) &&
                    is_chosen(call)) {
                    shut_down(call, contexts[k]);
                }
            }
        }
    }
}

/* --- Where no call may wait ------------------------------------------------------------- */

static const struct call *forbidden;

static void call_in_callback(void *arg)
{
    (void)arg;
    (void)forbidden->call(state, WEFT_NEVER);
}

static int start_timer(void *arg)
{
    static weft_timer timer;
    weft_timer_start(&timer, weft_now(), 0, call_in_callback, arg);
    return weft_sleep(WEFT_S);
}

static void call_in_timer(void)
{
    calls_runtime = test_start(1);
    memset(state, 0, sizeof state);
    on_fiber(forbidden->setup, state);
    make_ready(forbidden, state);
    (void)test_run(calls_runtime, start_timer, NULL);
}

static int end_at_once(weft_co *co, void *arg)
{
    (void)co;
    (void)arg;
    return 0;
}

static void call_in_drop(void)
{
    calls_runtime = test_start(1);
    memset(state, 0, sizeof state);
    on_fiber(forbidden->setup, state);
    make_ready(forbidden, state);
    weft_task *task;
    weft_spec spec = {
        .body = end_at_once, .drop = call_in_callback, .state = &task, .state_size = sizeof task
    };
    CHECK_EQ(weft_runtime_spawn(calls_runtime, &task, &spec), 0);
    (void)test_join_soon(task);
}

static int call_in_body(weft_co *co, void *arg)
{
    (void)co;
    (void)arg;
    (void)forbidden->call(state, WEFT_NEVER);
    return 0;
}

static void call_in_stackless(void)
{
    calls_runtime = test_start(1);
    memset(state, 0, sizeof state);
    on_fiber(forbidden->setup, state);
    make_ready(forbidden, state);
    (void)test_join_soon(test_spawn(calls_runtime, call_in_body, NULL));
}

static int poll_and_call(weft_future *future)
{
    (void)future;
    (void)forbidden->call(state, WEFT_NEVER);
    return 0;
}

static int await_poll(void *arg)
{
    static const weft_future_ops ops = { .poll = poll_and_call };
    weft_future future = { &ops };
    (void)arg;
    return weft_await(&future, WEFT_NEVER);
}

static void call_in_poll(void)
{
    calls_runtime = test_start(1);
    memset(state, 0, sizeof state);
    on_fiber(forbidden->setup, state);
    make_ready(forbidden, state);
    (void)test_run(calls_runtime, await_poll, NULL);
}

/* The message names the call that the program made, not an internal one. */
static void check_sentence(void (*place)(void), const char *what)
{
    char sentence[128];
    (void)snprintf(sentence, sizeof sentence, "weft: %s: called %s", forbidden->name, what);
    CHECK_ABORTS(place, sentence);
}

/* Also if the object is ready: what works in a test must not abort in production. */
static void ready_calls_without_suspendable_stack_abort(void)
{
    for (unsigned i = 0; i < GROUPS; i++) {
        for (size_t j = 0; j < groups[i]->count; j++) {
            forbidden = &groups[i]->calls[j];
            if (forbidden->call == NULL || !is_chosen(forbidden) ||
                (forbidden->flags & (CALL_NEVER_READY | CALL_ALSO_IN_BODY)) != 0) {
                continue;
            }
            check_sentence(call_in_stackless, "on a worker outside of a fiber");
            check_sentence(call_in_timer, "on a worker outside of a fiber");
            check_sentence(call_in_drop, "on a worker outside of a fiber");
            check_sentence(call_in_poll, "from the poll of a future");
        }
    }
}

TEST_MAIN({ TEST(calls_in_fiber_keep_precedence), TEST(calls_in_stackless_task_keep_precedence),
            TEST(calls_on_thread_keep_precedence), TEST(calls_in_blocking_job_keep_precedence),
            TEST(calls_in_block_in_place_keep_precedence),
            TEST(calls_in_parallel_body_keep_precedence),
            TEST(ready_calls_of_fiber_yield_to_other_tasks),
            TEST(ready_calls_of_stackless_task_yield_to_other_tasks),
            TEST(calls_on_closed_objects_yield_to_other_tasks),
            TEST(calls_past_deadline_yield_to_other_tasks), TEST(shutdown_cancels_waiting_calls),
            TEST(ready_calls_without_suspendable_stack_abort) })
