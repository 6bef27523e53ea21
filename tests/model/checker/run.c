/* SPDX-License-Identifier: MIT */
/*
 * run.c - one execution: threads take steps in turn until all have ended.
 *
 * At each point the strategy picks one of the threads that are ready. Steps that
 * nobody else can notice (a thread's first one, the end of a join, of a sleep
 * that was woken) are taken at once, without asking.
 *
 * If no thread is ready but some have not ended: a deadline fires if the test
 * has .timeouts; else a spinning thread must show that its loop ends; else it
 * is a deadlock, which in a program that sleeps on futexes is a lost wake-up.
 */
#include "run.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "coroutine.h"
#include "explore.h"
#include "heap.h"
#include "location.h"
#include "memory.h"
#include "report.h"
#include "shadow.h"
#include "sleep.h"
#include "spin.h"
#include "threads.h"

enum {
    STEPS_MAX = 5000,
    SIGNAL_STACK_BYTES = 64 << 10,
    HASH_START = 0x71,
    HASH_JOIN = 0x72,
};

struct mc_exec mc_exec;
struct mc_thread *mc_self;

static _Alignas(16) char signal_stack[SIGNAL_STACK_BYTES];
static _Alignas(16) char crash_stack[SIGNAL_STACK_BYTES];
static int crash_signal;
static const void *crash_pc;

/* --- From within a thread --------------------------------------------------- */

/* Breakpoints for replays in a debugger, see docs/model.md. */
MC_API void mc_step(unsigned step, unsigned thread);
MC_API void mc_failed(void);

__attribute__((noinline)) void mc_step(unsigned step, unsigned thread)
{
    __asm__ volatile("" : : "r"(step), "r"(thread));
}

__attribute__((noinline)) void mc_failed(void)
{
    __asm__ volatile("");
}

void mc_point(const struct mc_op *op)
{
    struct mc_thread *self = mc_self;
    self->op = *op;
    mc_coroutine_yield(self);
    self->op.kind = MC_OP_NONE;
    self->op_count++;
    if (mc_explore.strategy == &mc_strategy_replay) {
        mc_step(mc_exec.step, self->index);
    }
}

void mc_done(uint64_t what)
{
    struct mc_thread *self = mc_self;
    self->hash = mc_mix(self->hash, what);
    self->current[self->index]++;
}

_Noreturn void mc_run_leave(void)
{
    mc_coroutine_yield(mc_self);
    __builtin_unreachable();
}

_Noreturn void mc_run_cut(void)
{
    mc_exec.cut = true;
    mc_run_leave();
}

_Noreturn void mc_fail(enum mc_fault fault, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (mc_self == NULL) {
        (void)fprintf(stderr, "outside of an execution: %s\n", text);
        exit(1);
    }
    mc_report_fail(fault, "%s", text);
    mc_failed();
    mc_run_leave();
}

/* --- Threads ---------------------------------------------------------------- */

_Noreturn void mc_run_exit(void *result)
{
    struct mc_thread *self = mc_self;
    mc_threads_run_destructors();
    mc_spin_effect();
    self->result = result;
    self->life = MC_LIFE_DONE;
    mc_run_leave();
}

static void thread_entry(void)
{
    mc_self->op.kind = MC_OP_NONE;
    if (mc_self->index > 0) {
        mc_did_follow(mc_self->woken_step);
    }
    mc_done(HASH_START);
    mc_run_exit(mc_self->function(mc_self->arg));
}

static void init_thread(struct mc_thread *thread, unsigned index)
{
    char *tls = thread->tls;
    memset(thread, 0, offsetof(struct mc_thread, current));
    thread->tls = tls;
    thread->index = index;
    thread->op.kind = MC_OP_START;
    thread->timeouts = mc_exec.test->timeouts;
    thread->spurious_wakes = mc_exec.test->spurious_wakes;
    thread->spurious_cas = mc_exec.test->spurious_cas;
}

unsigned mc_run_spawn(void *(*function)(void *arg), void *arg)
{
    if (mc_exec.thread_count == MC_THREADS_MAX) {
        mc_report_limit("an execution has more threads than MC_THREADS_MAX of model.h");
    }
    unsigned index = mc_exec.thread_count++;
    struct mc_thread *thread = &mc_exec.threads[index];
    init_thread(thread, index);
    thread->function = function;
    thread->arg = arg;
    if (mc_self != NULL) {
        mc_spin_effect();
        memcpy(thread->current, mc_self->current, mc_view_size() * sizeof(uint32_t));
        thread->parent = mc_self->index;
        thread->clock_ns = mc_self->clock_ns;
        thread->clock_floor_ns = mc_self->clock_floor_ns;
        thread->woken_step = mc_exec.step;
        mc_done(mc_mix(MC_OP_CREATE, index));
    }
    thread->current[index] = 1;
    mc_coroutine_make(thread, thread_entry);
    return index;
}

void mc_run_join(unsigned target, const void *pc)
{
    struct mc_thread *self = mc_self;
    const struct mc_thread *other = &mc_exec.threads[target];
    mc_spin_effect();
    if (other->life != MC_LIFE_DONE) {
        mc_point(&(struct mc_op){ .kind = MC_OP_JOIN, .target = target, .pc = pc });
    }
    mc_did_follow(other->step_last);
    mc_view_join(self->current, other->current, mc_view_size());
    (void)mc_report_event(&(struct mc_event){
        .kind = MC_OP_JOIN, .order = MC_NO_ORDER, .from = UINT32_MAX, .read = target, .pc = pc });
    mc_done(mc_mix(HASH_JOIN, target));
}

/* --- Crashes ---------------------------------------------------------------- */

/* On a stack that is whole, since the thread's may not be. */
static void crash_landing(void)
{
    char where[256];
    mc_report_where((const char *)crash_pc + 1, where, sizeof where);
    mc_fail(MC_CRASH, "T%u: %s at %s", mc_self->index, strsignal(crash_signal), where);
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    (void)info;
    struct ucontext_t *at = context;
    if (mc_self == NULL) {
        struct sigaction action = { .sa_handler = SIG_DFL };
        (void)sigaction(number, &action, NULL);
        return;
    }
    crash_signal = number;
    crash_pc = (const void *)at->uc_mcontext.gregs[REG_RIP];
    at->uc_mcontext.gregs[REG_RIP] = (greg_t)crash_landing;
    at->uc_mcontext.gregs[REG_RSP] = (greg_t)(crash_stack + sizeof crash_stack - 8);
}

void mc_run_start(void)
{
    mc_coroutine_start();
    mc_heap_start();
    uintptr_t first;
    uintptr_t end;
    mc_coroutine_globals(&first, &end);
    mc_shadow_start(first, end);

    stack_t stack = { .ss_sp = signal_stack, .ss_size = sizeof signal_stack };
    (void)sigaltstack(&stack, NULL);
    struct sigaction action = { .sa_sigaction = on_crash, .sa_flags = SA_ONSTACK | SA_SIGINFO };
    static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)sigaction(signals[i], &action, NULL);
    }
}

/* --- The scheduler ---------------------------------------------------------- */

static bool can_end_sleep_alone(const struct mc_thread *thread)
{
    return (thread->timeouts > 0 && thread->deadline != INT64_MAX) || thread->spurious_wakes > 0;
}

static bool is_ready(const struct mc_thread *thread)
{
    if (thread->life == MC_LIFE_DONE) {
        return false;
    }
    switch (thread->op.kind) {
    case MC_OP_JOIN:
        return mc_exec.threads[thread->op.target].life == MC_LIFE_DONE;
    case MC_OP_SLEEP:
        return thread->woken || can_end_sleep_alone(thread);
    case MC_OP_AWAIT:
        return mc_memory_holds(thread->op.addr, thread->op.expected);
    case MC_OP_SPIN:
        return mc_spin_can_go(thread);
    default:
        return true;
    }
}

/* Does its next step disturb nobody? */
static bool is_local(const struct mc_thread *thread)
{
    return thread->op.kind == MC_OP_START || thread->op.kind == MC_OP_JOIN ||
           (thread->op.kind == MC_OP_SLEEP && thread->woken);
}

static uint32_t find_ready(int *local)
{
    uint32_t ready = 0;
    *local = -1;
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        if (is_ready(&mc_exec.threads[i])) {
            ready |= 1u << i;
            *local = *local < 0 && is_local(&mc_exec.threads[i]) ? (int)i : *local;
        }
    }
    return ready;
}

static bool all_ended(void)
{
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        if (mc_exec.threads[i].life == MC_LIFE_LIVE) {
            return false;
        }
    }
    return true;
}

static bool fire_first_deadline(void)
{
    struct mc_thread *first = NULL;
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        struct mc_thread *thread = &mc_exec.threads[i];
        if (thread->life == MC_LIFE_LIVE && thread->op.kind == MC_OP_SLEEP &&
            thread->deadline != INT64_MAX &&
            (first == NULL || thread->deadline < first->deadline)) {
            first = thread;
        }
    }
    if (first == NULL || mc_exec.test->timeouts == 0) {
        return false;
    }
    first->timeouts = 1;
    return true;
}

static bool force_spinner(void)
{
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        struct mc_thread *thread = &mc_exec.threads[i];
        if (thread->life == MC_LIFE_LIVE && thread->op.kind == MC_OP_SPIN) {
            mc_spin_force(thread);
            return true;
        }
    }
    return false;
}

static void report_deadlock(void)
{
    char text[2048];
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < mc_exec.thread_count && length < sizeof text - 512; i++) {
        const struct mc_thread *thread = &mc_exec.threads[i];
        if (thread->life == MC_LIFE_DONE) {
            continue;
        }
        char what[512];
        char where[256];
        mc_report_address(thread->op.addr, what, sizeof what);
        mc_report_where(thread->op.pc, where, sizeof where);
        if (thread->op.kind == MC_OP_JOIN) {
            (void)snprintf(what, sizeof what, "the end of T%u", thread->op.target);
        }
        length += (size_t)snprintf(text + length, sizeof text - length, "%sT%u waits for %s at %s",
                                   length > 0 ? "; " : "", i, what, where);
    }
    mc_report_fail(MC_DEADLOCK, "%s", text);
    mc_failed();
}

static void resume(unsigned index)
{
    struct mc_thread *thread = &mc_exec.threads[index];
    mc_explore_log_pick(index);
    thread->step_last = mc_exec.step;
    mc_self = thread;
    mc_coroutine_resume(thread);
    mc_self = NULL;
}

/* Returns false at the end of the execution. */
static bool take_step(unsigned *last)
{
    int local;
    uint32_t ready = find_ready(&local);
    while (ready == 0) {
        if (all_ended()) {
            return false;
        }
        if (!fire_first_deadline() && !force_spinner()) {
            report_deadlock();
            return false;
        }
        ready = find_ready(&local);
    }
    const struct mc_strategy *strategy = mc_explore.strategy;
    int next = local;
    if (next >= 0) {
        if (strategy->stepping_local != NULL) {
            strategy->stepping_local((unsigned)next);
        }
    } else {
        next = strategy->pick(ready, *last);
    }
    if (next == MC_PICK_NONE) {
        mc_exec.cut = true;
        return false;
    }
    /* That another thread could take a local step does not interrupt the last. */
    *last = local >= 0 ? *last : (unsigned)next;
    resume((unsigned)next);
    if (mc_report_fault() != MC_NONE || mc_exec.cut) {
        return false;
    }
    if (strategy->stepped != NULL) {
        strategy->stepped();
    }
    return true;
}

static void *run_test(void *arg)
{
    (void)arg;
    mc_exec.test->run();
    return NULL;
}

/* Entries beyond the size of a view are always 0. */
static void clear_views(void)
{
    size_t bytes = mc_view_size() * sizeof(uint32_t);
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        struct mc_thread *thread = &mc_exec.threads[i];
        memset(thread->current, 0, bytes);
        memset(thread->acquire, 0, bytes);
        memset(thread->release, 0, bytes);
    }
    memset(mc_exec.sc_view, 0, mc_exec.location_count * sizeof mc_exec.sc_view[0]);
}

static void reset(const struct mc_test *test)
{
    clear_views();
    mc_exec.test = test;
    mc_exec.generation++;
    mc_exec.thread_count = 0;
    mc_exec.step = 0;
    mc_exec.cut = false;
    mc_coroutine_restore();
    mc_location_reset();
    mc_heap_reset();
    mc_report_reset();
    mc_threads_reset();
    mc_sleep_reset();
    mc_explore_log_reset();
}

void mc_run_once(const struct mc_test *test)
{
    reset(test);
    mc_explore.strategy->begin();
    uint32_t steps_max = test->steps_max != 0 ? test->steps_max : STEPS_MAX;
    unsigned last = mc_run_spawn(run_test, NULL);
    while (take_step(&last)) {
        if (++mc_exec.step == steps_max) {
            mc_report_fail(MC_LIVELOCK, "no end after %u steps", steps_max);
            mc_failed();
            break;
        }
    }
    if (test->leaks && !mc_exec.cut && mc_report_fault() == MC_NONE) {
        mc_heap_check_leaks();
    }
    mc_explore.executions++;
    mc_explore.cuts += mc_exec.cut;
}
