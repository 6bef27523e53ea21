/* SPDX-License-Identifier: MIT */
/*
 * overflow.c - stack overflow detection: names the fiber whose stack is used up.
 *
 * A fiber that runs into the guard below its stack gets SIGSEGV. The handler runs on an
 * alternate signal stack and reports which fiber it was and what to change. Then it passes the
 * fault to the handler that was installed before: the process ends, or handles the fault as it
 * did before. All other faults are passed on directly. If that handler returns and the same
 * overflow occurs again, the default action ends the process.
 *
 * The handlers are installed while at least one runtime exists. If the program has installed
 * another handler since, the next runtime installs ours again, and ours passes faults on to that
 * one. The last runtime restores the handler that it finds below ours, unless the program has
 * installed another one on top.
 *
 * A handler P that the program has installed on top of ours may pass faults on to ours, which was
 * there before. When ours is installed again on top of P, the two must not call each other
 * forever. So the handlers found below ours form a stack, and a call of ours from within P, for
 * the same fault, passes it to the handler below P:
 *
 *   kernel -> ours, level 0 -> P -> ours, level 1 -> the handler before P
 *
 * Such a call has the signal context of the outer call, and a frame below the outer one. Both
 * must hold, because P may leave by siglongjmp(). Then the record of the outer call is stale, and
 * the next fault may have its context at the same address, but not with a deeper frame.
 *
 * The handler is async-signal-safe: it formats its text by hand.
 *
 * Edge: fault_chain.h's [OV1].
 */
#include "sched/overflow.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "fiber/segment.h"
#include "fiber/stack.h"
#include "sched/fault_chain.h"
#include "sched/fiber.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    SIGNAL_STACK_BYTES = 64 * 1024,
    TEXT_MAX = 512,
};

static struct wf_fault_chain chains[] = { { .number = SIGSEGV }, { .number = SIGBUS } };
static unsigned runtimes; /* under the lock */
static struct wf_lock lock = WF_LOCK_INIT(WF_RANK_RUNTIME);

/* The call of the handler that is in progress on this thread, or one that has been left by
 * siglongjmp(). */
struct call {
    const void *context; /* NULL: none */
    const char *frame;
    uint32_t level;
};

static WF_TLS_MODEL _Thread_local struct call last_call;

/* Address of this thread's last fault, if it was an overflow whose previous handler has
 * returned. */
static WF_TLS_MODEL _Thread_local const void *returned_from;

struct text {
    char bytes[TEXT_MAX];
    size_t length;
};

static void add(struct text *text, const char *part)
{
    size_t length = strlen(part);
    size_t room = TEXT_MAX - text->length;
    length = length < room ? length : room;
    memcpy(text->bytes + text->length, part, length);
    text->length += length;
}

static void add_number(struct text *text, uint64_t number)
{
    char digits[24];
    char *at = &digits[sizeof digits - 1];
    *at = '\0';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    add(text, at);
}

static bool is_in_guard(const struct wf_stack *stack, const char *address)
{
    return stack != NULL && address < stack->low &&
           address >= stack->low - wf_stack_guard_size(stack->class);
}

static void report(const struct wf_fiber *fiber)
{
    struct text text = { .length = 0 };
    add(&text, "weft: stack overflow in fiber '");
    add(&text, fiber->task.name != NULL ? fiber->task.name : "");
    add(&text, "' (#");
    add_number(&text, fiber->task.id);
    add(&text, "): its ");
    add_number(&text, wf_stack_size(fiber->stack) / 1024);
    add(&text, " KiB are used up; ");
    add(&text, wf_stack_size(fiber->stack) < WF_STACK_MAX
                   ? "give it more with weft_fiber_spec.stack_size (up to 8 MiB), or "
                   : "no stack is larger: make its recursion less deep, or ");
    add(&text, "keep large arrays out of its frames\n");
    (void)!write(STDERR_FILENO, text.bytes, text.length);
}

/* Calls the handler as the kernel would have. */
static void call_old(const struct sigaction *old, int number, siginfo_t *info, void *context)
{
    sigset_t blocked = old->sa_mask;
    sigset_t mask;
    if ((old->sa_flags & SA_NODEFER) == 0) {
        (void)sigaddset(&blocked, number);
    }
    (void)pthread_sigmask(SIG_BLOCK, &blocked, &mask);
    if ((old->sa_flags & SA_SIGINFO) != 0) {
        old->sa_sigaction(number, info, context);
    } else {
        old->sa_handler(number);
    }
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* Passes the fault on to the handler below this level of ours. */
static void pass_to_old(uint32_t level, int number, siginfo_t *info, void *context)
{
    struct sigaction none = { .sa_handler = SIG_DFL };
    struct wf_fault_chain *chain = number == chains[0].number ? &chains[0] : &chains[1];
    struct sigaction *place = wf_fault_chain_at(chain, level);
    place = place != NULL ? place : &none;
    struct sigaction old = *place;
    bool is_default = (old.sa_flags & SA_SIGINFO) == 0 &&
                      (old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN);
    if ((old.sa_flags & (int)SA_RESETHAND) != 0) {
        *place = (struct sigaction){ .sa_handler = SIG_DFL };
    }
    bool was_sent = info->si_code <= 0; /* by kill() or similar: not a fault */
    if (!is_default) {
        call_old(&old, number, info, context);
    } else if (!was_sent || old.sa_handler == SIG_DFL) {
        struct sigaction action = { .sa_handler = SIG_DFL };
        (void)sigaction(number, &action, NULL);
        if (was_sent) {
            (void)raise(number);
        }
        /* Otherwise the instruction is retried, and ends the process. */
    }
}

static void report_segment(const struct wf_stack *segment)
{
    struct text text = { .length = 0 };
    add(&text, "weft: stack overflow in a recursion that forks: the last ");
    add_number(&text, wf_stack_size(segment) / 1024);
    add(&text, " KiB of its stack are used up between two forks; keep large arrays out of its "
               "frames\n");
    (void)!write(STDERR_FILENO, text.bytes, text.length);
}

/* Reports an overflow. Returns false if the fault is a different one. */
static bool report_overflow(const char *address)
{
    const struct wf_fiber *fiber = wf_fiber_of(wf_thread_running());
    const struct wf_stack *segment = wf_segment_current();
    bool is_of_segment = is_in_guard(segment, address);
    bool is_of_fiber = fiber != NULL && is_in_guard(fiber->stack, address);
    if ((is_of_segment || is_of_fiber) && address == returned_from) {
        return true; /* Already reported. */
    }
    if (is_of_segment) {
        report_segment(segment);
    } else if (is_of_fiber) {
        report(fiber);
    }
    return is_of_segment || is_of_fiber;
}

/* Reports an overflow and passes the fault on, at level 0. */
static void handle_first(int number, siginfo_t *info, void *context)
{
    bool is_overflow = report_overflow(info->si_addr);
    if (is_overflow && info->si_addr == returned_from) {
        /* The previous handler has returned without changing anything: it would be called
         * forever. */
        struct sigaction action = { .sa_handler = SIG_DFL };
        (void)sigaction(number, &action, NULL);
        return; /* The instruction is retried, and ends the process. */
    }
    pass_to_old(0, number, info, context);
    returned_from = is_overflow ? info->si_addr : NULL;
}

static void handle_fault(int number, siginfo_t *info, void *context)
{
    struct call outer = last_call;
    const char *frame = __builtin_frame_address(0);
    bool is_nested = context == outer.context && frame < outer.frame;
    uint32_t level = is_nested ? outer.level + 1 : 0;
    last_call = (struct call){ .context = context, .frame = frame, .level = level };
    if (is_nested) {
        pass_to_old(level, number, info, context);
    } else {
        handle_first(number, info, context);
    }
    last_call = outer;
}

static bool is_same(const struct sigaction *a, const struct sigaction *b)
{
    bool has_info = (a->sa_flags & SA_SIGINFO) != 0;
    if (has_info != ((b->sa_flags & SA_SIGINFO) != 0)) {
        return false;
    }
    return has_info ? a->sa_sigaction == b->sa_sigaction : a->sa_handler == b->sa_handler;
}

static struct sigaction our_action(void)
{
    struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
    action.sa_sigaction = handle_fault;
    (void)sigemptyset(&action.sa_mask);
    return action;
}

/* Returns the position of a handler below ours, or count if it is not there. */
static uint32_t position_of(const struct wf_fault_chain *chain, const struct sigaction *action)
{
    uint32_t count = wf_fault_chain_count(chain);
    uint32_t i = 0;
    while (i < count && !is_same(&chain->below[i], action)) {
        i++;
    }
    return i;
}

/* Puts our handler on top of the one that is installed, unless that is ours. A handler that is
 * below ours already was installed again by the program, which has dropped those above it. */
static void install(struct wf_fault_chain *chain)
{
    struct sigaction ours = our_action();
    struct sigaction now;
    if (sigaction(chain->number, NULL, &now) != 0 || is_same(&now, &ours)) {
        return;
    }
    uint32_t position = position_of(chain, &now);
    if (position == WF_FAULT_CHAIN_MAX) {
        return;
    }
    wf_fault_chain_put(chain, position, &now);
    (void)sigaction(chain->number, &ours, NULL);
}

/* Restores the handler below ours, unless the program has installed another one on top. Handlers
 * further below stay known: the restored one may pass faults on to ours. */
static void restore(struct wf_fault_chain *chain)
{
    struct sigaction ours = our_action();
    struct sigaction now;
    uint32_t count = wf_fault_chain_count(chain);
    bool is_ours = sigaction(chain->number, NULL, &now) == 0 && is_same(&now, &ours);
    if (is_ours && count > 0 && sigaction(chain->number, &chain->below[count - 1], NULL) == 0) {
        wf_fault_chain_pop(chain);
    }
}

void wf_overflow_watch(void)
{
    wf_lock(&lock);
    runtimes++;
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        install(&chains[i]);
    }
    wf_unlock(&lock);
}

void wf_overflow_unwatch(void)
{
    wf_lock(&lock);
    runtimes--;
    for (size_t i = 0; runtimes == 0 && i < sizeof chains / sizeof chains[0]; i++) {
        restore(&chains[i]);
    }
    wf_unlock(&lock);
}

void wf_signal_stack_init(struct wf_signal_stack *stack)
{
    stack_t old;
    stack->map = NULL;
    if (sigaltstack(NULL, &old) != 0 || (old.ss_flags & SS_DISABLE) == 0) {
        return;
    }
    void *map = mmap(NULL, SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return;
    }
    stack_t own = { .ss_sp = map, .ss_size = SIGNAL_STACK_BYTES };
    if (sigaltstack(&own, NULL) == 0) {
        stack->map = map;
    } else {
        (void)munmap(map, SIGNAL_STACK_BYTES);
    }
}

void wf_signal_stack_fini(struct wf_signal_stack *stack)
{
    if (stack->map != NULL) {
        stack_t none = { .ss_flags = SS_DISABLE };
        (void)sigaltstack(&none, NULL);
        (void)munmap(stack->map, SIGNAL_STACK_BYTES);
        stack->map = NULL;
    }
}
