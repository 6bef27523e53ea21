/* SPDX-License-Identifier: MIT */
/*
 * overflow.c - naming the fiber whose stack is used up.
 *
 * A fiber that runs into the guard below its stack gets SIGSEGV. The handler runs on
 * a stack of its own, since there is none left, and says which fiber it was and what
 * to change; then the fault takes its course, with the old handler in place: the
 * process ends, or does what it did before about faults. Any other fault goes to the
 * handler that was there before.
 *
 * Only what is allowed in a signal handler: the text is put together by hand.
 */
#include "sched/overflow.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fiber/stack.h"
#include "sched/fiber.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    SIGNAL_STACK_BYTES = 64 * 1024,
    TEXT_MAX = 512,
};

static const int signals[] = { SIGSEGV, SIGBUS };
static struct sigaction before[sizeof signals / sizeof signals[0]];
static pthread_once_t once = PTHREAD_ONCE_INIT;

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

/* The fiber whose guard this address is in, if it is the one that runs here. */
static const struct wf_fiber *overflown_fiber(const char *address)
{
    const struct wf_fiber *fiber = wf_fiber_of(wf_thread_running());
    if (fiber == NULL || fiber->stack == NULL) {
        return NULL;
    }
    const char *low = fiber->stack->low;
    return address < low && address >= low - WF_STACK_GUARD ? fiber : NULL;
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
    add(&text, " KiB are used up; give it more with weft_fiber_spec.stack_size (up to 8 MiB), or "
               "keep large arrays out of its frames\n");
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

static void pass_to_old(int number, siginfo_t *info, void *context)
{
    struct sigaction *place = number == signals[0] ? &before[0] : &before[1];
    struct sigaction old = *place;
    bool is_default = (old.sa_flags & SA_SIGINFO) == 0 &&
                      (old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN);
    if ((old.sa_flags & (int)SA_RESETHAND) != 0) {
        *place = (struct sigaction){ .sa_handler = SIG_DFL };
    }
    bool was_sent = info->si_code <= 0; /* by kill() and its like: no fault */
    if (!is_default) {
        call_old(&old, number, info, context);
    } else if (!was_sent || old.sa_handler == SIG_DFL) {
        struct sigaction action = { .sa_handler = SIG_DFL };
        (void)sigaction(number, &action, NULL);
        if (was_sent) {
            (void)raise(number);
        }
        /* Else the instruction is tried again, and ends the process. */
    }
}

static void handle_fault(int number, siginfo_t *info, void *context)
{
    const struct wf_fiber *fiber = overflown_fiber(info->si_addr);
    if (fiber != NULL) {
        report(fiber);
    }
    pass_to_old(number, info, context);
}

static void install(void)
{
    struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
    action.sa_sigaction = handle_fault;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)sigaction(signals[i], &action, &before[i]);
    }
}

void wf_overflow_watch(void)
{
    (void)pthread_once(&once, install);
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
