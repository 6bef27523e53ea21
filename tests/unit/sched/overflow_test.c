/* SPDX-License-Identifier: MIT */
/*
 * overflow_test.c - fault reports of fibers, and the handler that gets each fault. Each fault
 * happens in a child process, which starts with the default signal actions, also under a
 * sanitizer.
 */
#include "sched/overflow.h"

#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weft.h>

#include "../fiber/child.h"
#include "fiber/segment.h"
#include "rt.h"
#include "sched/fiber.h"
#include "test.h"

enum {
    KIB = 1024,
    /* A child that has not ended by then hangs. */
    CHILD_SECONDS = 20
};

/* A fault and its context. */
struct fault {
    int (*function)(void *arg); /* commits the fault */
    size_t stack_size;
    const char *name;
    bool in_place; /* on a pool thread */
};

static const struct fault *current;

static int commit(void *arg)
{
    (void)fprintf(stderr, "id %llu\n", (unsigned long long)weft_task_id(weft_task_current()));
    return current->function(arg);
}

static int commit_somewhere(void *arg)
{
    return current->in_place ? weft_block_in_place(commit, arg, WEFT_NEVER) : commit(arg);
}

/* Runs in the child: a fiber commits the fault. An earlier runtime was already destroyed. */
static void commit_on_fiber(void *arg)
{
    current = arg;
    (void)alarm(CHILD_SECONDS);
    weft_runtime_destroy(test_start(1));
    weft_runtime *rt = test_start(2);
    weft_fiber_spec spec = { .function = commit_somewhere,
                             .stack_size = current->stack_size,
                             .name = current->name };
    weft_task *task;
    CHECK_EQ(weft_runtime_go(rt, &task, &spec), 0);
    (void)test_join(task);
    weft_runtime_destroy(rt);
}

/* --- Faults --------------------------------------------------------------------- */

static volatile bool is_enough; /* never set */

/* The addition after the call prevents a tail call. */
static int recurse(void *arg)
{
    volatile char frame[512];
    frame[0] = 1;
    int below = is_enough ? 0 : recurse(arg);
    return below + frame[0];
}

/* In the first page, but not NULL, which a sanitizer would report. */
static char *volatile near_null = (char *)8;

static int touch_null(void *arg)
{
    (void)arg;
    *(volatile char *)near_null = 1;
    return 0;
}

static char *own_low(void)
{
    const struct wf_fiber *self = wf_fiber_of((struct wf_task *)weft_task_current());
    return self->stack->low;
}

static int touch_guard_top(void *arg)
{
    (void)arg;
    ((volatile char *)own_low())[-1] = 1;
    return 0;
}

static int touch_guard_bottom(void *arg)
{
    (void)arg;
    ((volatile char *)own_low())[-WF_STACK_GUARD_MIN] = 1;
    return 0;
}

/* Writes the far end of a 340 KiB frame, like code without stack probes. */
static int touch_340_kib_below(void *arg)
{
    volatile char *here = __builtin_frame_address(0);
    (void)arg;
    here[-340 * KIB] = 1;
    return 0;
}

/* Compiled with -fstack-clash-protection. */
static int alloca_600_kib(void *arg)
{
    volatile char *bytes = alloca(600 * KIB);
    (void)arg;
    /* Makes the array escape. Otherwise clang keeps only the byte that is used. */
    __asm__ volatile("" : : "r"(bytes) : "memory");
    bytes[0] = 1;
    return bytes[0];
}

static char *other_low;

static int report_low(void *arg)
{
    (void)arg;
    other_low = own_low();
    return weft_sleep_until(WEFT_NEVER);
}

static int touch_guard_of_other(void *arg)
{
    (void)arg;
    CHECK_EQ(weft_go(NULL, report_low, NULL), 0);
    while (*(char *volatile *)&other_low == NULL) {
        (void)weft_yield();
    }
    CHECK(other_low != own_low());
    ((volatile char *)other_low)[-1] = 1;
    return 0;
}

/* --- The report ------------------------------------------------------------------ */

static const char said[] = "weft: stack overflow in fiber";

/* Checks that the fault kills a child, after this message. */
static void check_report(const struct fault *fault, const char *sentence)
{
    struct child child;
    char expected[256];
    child_run(&child, commit_on_fiber, (void *)fault);
    const char *id = strstr(child.text, "id ");
    CHECK(id != NULL);
    (void)snprintf(expected, sizeof expected, sentence, strtoull(id + 3, NULL, 10));
    CHECK_HAS(child.text, expected);
    CHECK(strstr(strstr(child.text, said) + 1, said) == NULL);
    CHECK_EQ(child.signal, SIGSEGV);
}

static void stack_overflow_is_reported_and_ends_process(void)
{
    check_report(
        &(struct fault){ recurse, 64 * KIB, "deep", false },
        "weft: stack overflow in fiber 'deep' (#%llu): its 64 KiB are used up; give it more "
        "with weft_fiber_spec.stack_size (up to 8 MiB), or keep large arrays out of its "
        "frames\n");
}

static void report_names_size_of_stack(void)
{
    check_report(&(struct fault){ recurse, 0, "usual", false },
                 "fiber 'usual' (#%llu): its 256 KiB are used up");
    check_report(&(struct fault){ recurse, 16 * KIB + 1, "odd", false },
                 "fiber 'odd' (#%llu): its 32 KiB are used up");
    check_report(&(struct fault){ recurse, 8192 * KIB, "large", false },
                 "fiber 'large' (#%llu): its 8192 KiB are used up; no stack is larger: make its "
                 "recursion less deep, or keep large arrays out of its frames\n");
    check_report(&(struct fault){ recurse, 4096 * KIB, "half", false },
                 "fiber 'half' (#%llu): its 4096 KiB are used up; give it more with "
                 "weft_fiber_spec.stack_size (up to 8 MiB)");
}

static void report_of_unnamed_fiber_has_task_id(void)
{
    check_report(&(struct fault){ recurse, 64 * KIB, NULL, false },
                 "in fiber '' (#%llu): its 64 KiB are used up");
}

static void long_fiber_name_is_truncated_in_report(void)
{
    char name[2000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct child child;
    child_run(&child, commit_on_fiber, &(struct fault){ recurse, 64 * KIB, name, false });
    CHECK_HAS(child.text, "weft: stack overflow in fiber 'xxxxxxxx");
    CHECK_EQ(child.signal, SIGSEGV);
}

static void stack_overflow_on_pool_thread_is_reported(void)
{
    check_report(&(struct fault){ recurse, 64 * KIB, "deep", true },
                 "weft: stack overflow in fiber 'deep' (#%llu): its 64 KiB are used up;");
}

static void access_anywhere_in_guard_is_reported(void)
{
    check_report(&(struct fault){ touch_guard_top, 16 * KIB, "top", false },
                 "fiber 'top' (#%llu): its 16 KiB are used up");
    check_report(&(struct fault){ touch_guard_bottom, 16 * KIB, "bottom", false },
                 "fiber 'bottom' (#%llu): its 16 KiB are used up");
}

static void frame_larger_than_stack_is_reported(void)
{
    check_report(&(struct fault){ touch_340_kib_below, 256 * KIB, "jumps", false },
                 "fiber 'jumps' (#%llu): its 256 KiB are used up");
    check_report(&(struct fault){ alloca_600_kib, 256 * KIB, "probes", false },
                 "fiber 'probes' (#%llu): its 256 KiB are used up");
    check_report(&(struct fault){ alloca_600_kib, 16 * KIB, "probes", true },
                 "fiber 'probes' (#%llu): its 16 KiB are used up");
}

/* Recurses between two forks of a recursion that has left its own stack. */
static void fork_until_on_segment(void *arg)
{
    if (wf_segment_current() != NULL) {
        (void)recurse(arg);
    }
    weft_join2(fork_until_on_segment, arg, fork_until_on_segment, arg);
}

static int overflow_segment(void *arg)
{
    fork_until_on_segment(arg);
    return 0;
}

static void overflow_of_segment_is_reported(void)
{
    struct child child;
    child_run(&child, commit_on_fiber, &(struct fault){ overflow_segment, 64 * KIB, "deep", true });
    CHECK_HAS(child.text, "weft: stack overflow in a recursion that forks: the last 8192 KiB of "
                          "its stack are used up between two forks");
    CHECK_EQ(child.signal, SIGSEGV);
}

static void check_silent(const struct fault *fault)
{
    struct child child;
    child_run(&child, commit_on_fiber, (void *)fault);
    CHECK_HAS(child.text, "id ");
    CHECK(strstr(child.text, said) == NULL);
    CHECK_EQ(child.signal, SIGSEGV);
}

static void other_fault_is_not_reported_as_overflow(void)
{
    check_silent(&(struct fault){ .function = touch_null, .name = "null" });
    check_silent(&(struct fault){ .function = touch_null, .name = "null", .in_place = true });
    check_silent(&(struct fault){ .function = touch_guard_of_other, .name = "wild" });
}

/* --- Handlers installed before the runtime ---------------------------------------- */

static sigjmp_buf before_fault;

static void write_text(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static void plain_handler(int number)
{
    write_text(number == SIGSEGV ? "handler of SIGSEGV\n" : "handler of SIGBUS\n");
    _exit(7);
}

static void info_handler(int number, siginfo_t *info, void *context)
{
    write_text(number == SIGSEGV && info->si_signo == SIGSEGV && context != NULL ? "info\n" : "?");
    write_text(info->si_code > 0 && info->si_addr == near_null ? "address\n" : "?");
    _exit(8);
}

static void jump_handler(int number)
{
    (void)number;
    siglongjmp(before_fault, 1);
}

static void jump_info_handler(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    siglongjmp(before_fault, info->si_addr == near_null ? 1 : 2);
}

static void set_handler(int number, void (*handler)(int number), int flags)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
    CHECK_EQ(sigaction(number, &action, NULL), 0);
}

static void set_info_handler(void (*handler)(int number, siginfo_t *info, void *context))
{
    struct sigaction action = { .sa_flags = SA_SIGINFO };
    action.sa_sigaction = handler;
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
}

static void fault_with_plain_handler(void *arg)
{
    set_handler(SIGSEGV, plain_handler, 0);
    set_handler(SIGBUS, plain_handler, 0);
    commit_on_fiber(arg);
}

static void fault_with_info_handler(void *arg)
{
    set_info_handler(info_handler);
    commit_on_fiber(arg);
}

static void older_handler_gets_other_faults(void)
{
    struct child child;
    child_run(&child, fault_with_plain_handler, &(struct fault){ .function = touch_null });
    CHECK_EQ(child.code, 7);
    CHECK_HAS(child.text, "handler of SIGSEGV\n");
    CHECK(strstr(child.text, said) == NULL);

    child_run(&child, fault_with_info_handler, &(struct fault){ .function = touch_null });
    CHECK_EQ(child.code, 8);
    CHECK_HAS(child.text, "info\naddress\n");
    CHECK(strstr(child.text, said) == NULL);
}

static void older_handler_gets_overflow_after_report(void)
{
    struct child child;
    struct fault fault = { recurse, 64 * KIB, "deep", false };
    child_run(&child, fault_with_plain_handler, &fault);
    CHECK_EQ(child.code, 7);
    const char *report = strstr(child.text, said);
    CHECK(report != NULL);
    CHECK_HAS(report, "frames\nhandler of SIGSEGV\n");

    child_run(&child, fault_with_info_handler, &fault);
    CHECK_EQ(child.code, 8);
    CHECK_HAS(child.text, "frames\ninfo\n");
}

/* Touches a page of a file that was truncated. */
static int touch_missing_page(void *arg)
{
    (void)arg;
    int fd = memfd_create("short", 0);
    CHECK_GE(fd, 0);
    CHECK_EQ(ftruncate(fd, 4096), 0);
    volatile char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(page != MAP_FAILED);
    CHECK_EQ(ftruncate(fd, 0), 0);
    page[0] = 1;
    return 0;
}

static void bus_error_goes_to_its_own_handler(void)
{
    struct child child;
    child_run(&child, fault_with_plain_handler, &(struct fault){ .function = touch_missing_page });
    CHECK_EQ(child.code, 7);
    CHECK_HAS(child.text, "handler of SIGBUS\n");
    child_run(&child, commit_on_fiber, &(struct fault){ .function = touch_missing_page });
    CHECK_EQ(child.signal, SIGBUS);
    CHECK(strstr(child.text, said) == NULL);
}

static int keeps_mask; /* whether the jump restores the signal mask */

/* The handler jumps back into the fiber several times, and the fiber yields after each. */
static int recover(void *arg)
{
    for (volatile int i = 0; i < 5; i++) {
        if (sigsetjmp(before_fault, keeps_mask) == 0) {
            (void)touch_null(arg);
            CHECK(false);
        }
        CHECK_EQ(weft_yield(), 0);
    }
    return 0;
}

static void recover_with_plain_handler(void *arg)
{
    set_handler(SIGSEGV, jump_handler, SA_NODEFER);
    keeps_mask = test_is_sanitized(); /* ThreadSanitizer blocks it anyway. */
    commit_on_fiber(arg);
}

static void recover_with_info_handler(void *arg)
{
    set_info_handler(jump_info_handler);
    keeps_mask = 1;
    commit_on_fiber(arg);
}

static void older_handler_can_recover_by_jump(void)
{
    struct fault on_worker = { .function = recover };
    struct fault on_pool = { .function = recover, .in_place = true };
    child_must_succeed(recover_with_plain_handler, &on_worker);
    child_must_succeed(recover_with_info_handler, &on_worker);
    child_must_succeed(recover_with_plain_handler, &on_pool);
    child_must_succeed(recover_with_info_handler, &on_pool);
}

static char *mended; /* a handler makes it writable */

static bool is_blocked(int number)
{
    sigset_t mask;
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
    return sigismember(&mask, number) == 1;
}

static void mending_handler(int number)
{
    CHECK(is_blocked(number));
    CHECK(is_blocked(SIGFPE));
    CHECK_EQ(mprotect(mended, 4096, PROT_READ | PROT_WRITE), 0);
}

static int write_page(void *arg)
{
    (void)arg;
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(mprotect(mended, 4096, PROT_READ), 0);
        *(volatile char *)mended = (char)i;
        CHECK_EQ(*mended, i);
        CHECK(!is_blocked(SIGSEGV));
        CHECK(!is_blocked(SIGFPE));
        CHECK_EQ(weft_yield(), 0);
    }
    return 0;
}

static void mend_in_handler(void *arg)
{
    mended = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mended != MAP_FAILED);
    struct sigaction action = { .sa_handler = mending_handler };
    CHECK_EQ(sigaddset(&action.sa_mask, SIGFPE), 0);
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    commit_on_fiber(arg);
}

static void older_handler_can_repair_fault(void)
{
    child_must_succeed(mend_in_handler, &(struct fault){ .function = write_page });
    child_must_succeed(mend_in_handler,
                       &(struct fault){ .function = write_page, .in_place = true });
}

static void returning_handler(int number)
{
    (void)number;
    (void)!write(STDERR_FILENO, "returns\n", 8);
}

static void overflow_with_returning_handler(void *arg)
{
    set_handler(SIGSEGV, returning_handler, 0);
    commit_on_fiber(arg);
}

/* It would be called over and over. */
static void overflow_ends_process_if_older_handler_returns(void)
{
    static const struct fault faults[] = {
        { touch_guard_top, 64 * KIB, "returned to", false },
        { touch_guard_top, 64 * KIB, "returned to", true },
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct child child;
        child_run(&child, overflow_with_returning_handler, (void *)(uintptr_t)&faults[i]);
        CHECK_EQ(child.signal, SIGSEGV);
        const char *report = strstr(child.text, said);
        CHECK(report != NULL);
        CHECK(strstr(report + 1, said) == NULL);
        const char *call = strstr(child.text, "returns\n");
        CHECK(call != NULL);
        CHECK(strstr(call + 1, "returns\n") == NULL);
    }
}

static void fault_where_it_is_ignored(void *arg)
{
    set_handler(SIGSEGV, SIG_IGN, 0);
    commit_on_fiber(arg);
}

static void fault_cannot_be_ignored(void)
{
    struct child child;
    child_run(&child, fault_where_it_is_ignored, &(struct fault){ .function = touch_null });
    CHECK_EQ(child.signal, SIGSEGV);
}

static int handled;

/* Like a crash reporter: prints its report and lets the fault happen again. */
static void once_handler(int number)
{
    (void)number;
    handled++;
    write_text("once\n");
    if (handled > 1) {
        _exit(9);
    }
}

static void fault_with_once_handler(void *arg)
{
    set_handler(SIGSEGV, once_handler, (int)SA_RESETHAND);
    commit_on_fiber(arg);
}

static void resethand_handler_is_called_once(void)
{
    struct child child;
    child_run(&child, fault_with_once_handler, &(struct fault){ .function = touch_null });
    CHECK_HAS(child.text, "once\n");
    CHECK(strstr(strstr(child.text, "once\n") + 1, "once\n") == NULL);
    CHECK_EQ(child.signal, SIGSEGV);
}

/* The second fault happens while the signal is blocked. */
static void faulting_handler(int number)
{
    write_text("faulting\n");
    (void)touch_null(&number);
}

static void fault_with_faulting_handler(void *arg)
{
    set_handler(SIGSEGV, faulting_handler, 0);
    commit_on_fiber(arg);
}

static void fault_in_handler_ends_process(void)
{
    struct child child;
    child_run(&child, fault_with_faulting_handler, &(struct fault){ .function = touch_null });
    CHECK_HAS(child.text, "faulting\n");
    CHECK_EQ(child.signal, SIGSEGV);
}

/* --- Signals that are not faults --------------------------------------------------- */

static void raise_one(void *arg)
{
    weft_runtime *rt = test_start(1);
    (void)raise(*(int *)arg);
    weft_runtime_destroy(rt);
}

static void raise_one_ignored(void *arg)
{
    set_handler(*(int *)arg, SIG_IGN, 0);
    weft_runtime *rt = test_start(1);
    (void)raise(*(int *)arg);
    (void)raise(*(int *)arg);
    weft_runtime_destroy(rt);
}

/* Sent by kill() or raise(): no instruction is retried when the handler returns. */
static void sent_signal_keeps_its_action(void)
{
    static int numbers[] = { SIGSEGV, SIGBUS };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct child child;
        child_run(&child, raise_one, &numbers[i]);
        CHECK_EQ(child.signal, numbers[i]);
        child_must_succeed(raise_one_ignored, &numbers[i]);
    }
}

/* --- Installing and restoring ------------------------------------------------------- */

static struct sigaction handler_of(int number)
{
    struct sigaction action;
    CHECK_EQ(sigaction(number, NULL, &action), 0);
    return action;
}

static void *refuse(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    return NULL;
}

static void refuse_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    CHECK(ptr == NULL);
}

static void restore_with_last_runtime(void *arg)
{
    (void)arg;
    set_handler(SIGSEGV, plain_handler, SA_NODEFER);
    set_handler(SIGBUS, SIG_IGN, 0);
    for (int round = 0; round < 2; round++) {
        weft_runtime *first = test_start(1);
        weft_runtime *second = test_start(1);
        CHECK(handler_of(SIGSEGV).sa_handler != plain_handler);
        weft_runtime_destroy(first);
        CHECK(handler_of(SIGSEGV).sa_handler != plain_handler);
        CHECK(handler_of(SIGBUS).sa_handler != SIG_IGN);
        weft_runtime_destroy(second);
        CHECK(handler_of(SIGSEGV).sa_handler == plain_handler);
        CHECK_EQ(handler_of(SIGSEGV).sa_flags & SA_NODEFER, SA_NODEFER);
        CHECK(handler_of(SIGBUS).sa_handler == SIG_IGN);
    }
    weft_config without_memory = WEFT_CONFIG_INIT;
    without_memory.allocator = &(weft_allocator){ .alloc = refuse, .free = refuse_free };
    weft_runtime *none;
    CHECK_EQ(weft_runtime_create(&none, &without_memory), -ENOMEM);
    CHECK(handler_of(SIGSEGV).sa_handler == plain_handler);
}

static void last_runtime_restores_handlers(void)
{
    child_must_succeed(restore_with_last_runtime, NULL);
}

static struct sigaction chained;

static void chain_handler(int number, siginfo_t *info, void *context)
{
    write_text("chained\n");
    chained.sa_sigaction(number, info, context);
}

static void chain_on_top(void)
{
    struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK };
    action.sa_sigaction = chain_handler;
    struct sigaction below;
    CHECK_EQ(sigaction(SIGSEGV, &action, &below), 0);
    if (below.sa_sigaction != chain_handler) {
        chained = below;
    }
}

/* The program installs its handler on top of the library's and leaves it installed. */
static void fault_with_chained_handler(void *arg)
{
    weft_runtime *rt = test_start(1);
    chain_on_top();
    weft_runtime_destroy(rt);
    CHECK(handler_of(SIGSEGV).sa_sigaction == chain_handler);
    commit_on_fiber(arg);
}

/* The same, again and again, while a runtime exists. */
static void fault_with_handler_chained_often(void *arg)
{
    weft_runtime *rt = test_start(1);
    for (int i = 0; i < 20; i++) {
        chain_on_top();
        weft_runtime_destroy(test_start(1));
    }
    commit_on_fiber(arg);
    weft_runtime_destroy(rt);
}

static void check_chained(void (*function)(void *arg))
{
    struct child child;
    child_run(&child, function, &(struct fault){ recurse, 64 * KIB, "deep", false });
    CHECK_HAS(child.text, "weft: stack overflow in fiber 'deep'");
    CHECK(strstr(strstr(child.text, said) + 1, said) == NULL);
    CHECK_HAS(child.text, "frames\nchained\n");
    CHECK(strstr(strstr(child.text, "chained\n") + 1, "chained\n") == NULL);
    CHECK_EQ(child.signal, SIGSEGV);
}

/* It passes faults on to the library's handler, which the next runtime installs on top of it. */
static void handlers_that_chain_to_each_other_are_called_once(void)
{
    check_chained(fault_with_chained_handler);
    check_chained(fault_with_handler_chained_often);
}

static void restore_chained_handler(void *arg)
{
    (void)arg;
    set_handler(SIGSEGV, plain_handler, 0);
    for (int round = 0; round < 3; round++) {
        weft_runtime *first = test_start(1);
        chain_on_top();
        weft_runtime *second = test_start(1);
        CHECK(handler_of(SIGSEGV).sa_sigaction != chain_handler);
        weft_runtime_destroy(first);
        weft_runtime_destroy(second);
        CHECK(handler_of(SIGSEGV).sa_sigaction == chain_handler);
    }
    (void)touch_null(NULL); /* "chained", then the library, then plain_handler(). */
}

static void handler_restored_by_last_runtime_can_chain(void)
{
    struct child child;
    child_run(&child, restore_chained_handler, NULL);
    CHECK_EQ(child.code, 7);
    CHECK_HAS(child.text, "chained\nhandler of SIGSEGV\n");
}

/* The program replaces the library's handler while a runtime exists. */
static void fault_with_replaced_handler(void *arg)
{
    weft_runtime *rt = test_start(1);
    fault_with_plain_handler(arg);
    weft_runtime_destroy(rt);
}

static void reset_handler_and_fault(void *arg)
{
    set_handler(SIGSEGV, plain_handler, 0);
    weft_runtime *rt = test_start(1);
    set_handler(SIGSEGV, SIG_DFL, 0);
    commit_on_fiber(arg);
    weft_runtime_destroy(rt);
}

static void next_runtime_reports_overflow_after_handler_was_replaced(void)
{
    struct child child;
    struct fault fault = { recurse, 64 * KIB, "deep", false };
    child_run(&child, fault_with_replaced_handler, &fault);
    CHECK_EQ(child.code, 7);
    CHECK_HAS(child.text, said);
    CHECK_HAS(child.text, "frames\nhandler of SIGSEGV\n");

    child_run(&child, reset_handler_and_fault, &fault);
    CHECK_EQ(child.signal, SIGSEGV);
    CHECK_HAS(child.text, said);

    child_run(&child, fault_with_replaced_handler,
              &(struct fault){ .function = touch_missing_page });
    CHECK_EQ(child.code, 7);
    CHECK_HAS(child.text, "handler of SIGBUS\n");
}

static void recover_with_replaced_handler(void *arg)
{
    weft_runtime *rt = test_start(1);
    recover_with_info_handler(arg);
    weft_runtime_destroy(rt);
}

static void handler_that_replaced_ours_can_recover_by_jump(void)
{
    child_must_succeed(recover_with_replaced_handler, &(struct fault){ .function = recover });
    child_must_succeed(recover_with_replaced_handler,
                       &(struct fault){ .function = recover, .in_place = true });
}

/* --- Signal stacks ------------------------------------------------------------------ */

static stack_t own_signal_stack(void)
{
    stack_t stack;
    CHECK_EQ(sigaltstack(NULL, &stack), 0);
    return stack;
}

static int report_signal_stack(void *arg)
{
    *(stack_t *)arg = own_signal_stack();
    return 0;
}

static int report_signal_stack_of_pool(void *arg)
{
    return weft_block_in_place(report_signal_stack, arg, WEFT_NEVER);
}

static void check_large_enough(const stack_t *stack)
{
    CHECK_EQ(stack->ss_flags & SS_DISABLE, 0);
    CHECK_GE(stack->ss_size, 16 * KIB);
}

static void threads_that_run_fibers_have_signal_stack(void)
{
    weft_runtime *rt = test_start(2);
    stack_t stacks[3];
    for (int i = 0; i < 2; i++) {
        weft_task *task;
        weft_fiber_spec spec = { .function = report_signal_stack,
                                 .arg = &stacks[i],
                                 .pinned = WEFT_PINNED_TO(i) };
        CHECK_EQ(weft_runtime_go(rt, &task, &spec), 0);
        CHECK_EQ(test_join_soon(task), 0);
    }
    CHECK_EQ(test_run(rt, report_signal_stack_of_pool, &stacks[2]), 0);
    for (int i = 0; i < 3; i++) {
        check_large_enough(&stacks[i]);
        CHECK(stacks[i].ss_sp != stacks[(i + 1) % 3].ss_sp);
    }
    weft_runtime_destroy(rt);
}

static bool is_mapped(void *page)
{
    unsigned char resident;
    return mincore(page, 4096, &resident) == 0;
}

static void thread_without_signal_stack_gets_temporary_one(void)
{
    stack_t before = own_signal_stack(); /* Possibly a sanitizer's. */
    stack_t none = { .ss_flags = SS_DISABLE };
    CHECK_EQ(sigaltstack(&none, NULL), 0);
    struct wf_signal_stack stack;
    wf_signal_stack_init(&stack);
    CHECK(stack.map != NULL);
    stack_t own = own_signal_stack();
    check_large_enough(&own);
    CHECK(own.ss_sp == stack.map);
    void *map = stack.map;
    CHECK(is_mapped(map));
    wf_signal_stack_fini(&stack);
    CHECK(stack.map == NULL);
    CHECK_NE(own_signal_stack().ss_flags & SS_DISABLE, 0);
    CHECK(!is_mapped(map));
    wf_signal_stack_fini(&stack);
    CHECK_EQ(sigaltstack(&before, NULL), 0);
}

static void thread_with_signal_stack_keeps_it(void)
{
    static char bytes[64 * KIB];
    stack_t before = own_signal_stack();
    stack_t mine = { .ss_sp = bytes, .ss_size = sizeof bytes };
    CHECK_EQ(sigaltstack(&mine, NULL), 0);
    struct wf_signal_stack stack;
    wf_signal_stack_init(&stack);
    CHECK(stack.map == NULL);
    CHECK(own_signal_stack().ss_sp == bytes);
    wf_signal_stack_fini(&stack);
    CHECK(own_signal_stack().ss_sp == bytes);
    CHECK_EQ(own_signal_stack().ss_flags & SS_DISABLE, 0);
    CHECK_EQ(sigaltstack(&before, NULL), 0);
}

static void init_without_memory(void *arg)
{
    (void)arg;
    stack_t none = { .ss_flags = SS_DISABLE };
    CHECK_EQ(sigaltstack(&none, NULL), 0);
    struct rlimit nothing = { 0, 0 };
    CHECK_EQ(setrlimit(RLIMIT_AS, &nothing), 0);
    struct wf_signal_stack stack;
    wf_signal_stack_init(&stack);
    CHECK(stack.map == NULL);
    CHECK_NE(own_signal_stack().ss_flags & SS_DISABLE, 0);
    wf_signal_stack_fini(&stack);
}

static void out_of_memory_leaves_thread_without_signal_stack(void)
{
    child_must_succeed(init_without_memory, NULL);
}

TEST_MAIN({
    TEST(stack_overflow_is_reported_and_ends_process),
    TEST(report_names_size_of_stack),
    TEST(report_of_unnamed_fiber_has_task_id),
    TEST(long_fiber_name_is_truncated_in_report),
    TEST(stack_overflow_on_pool_thread_is_reported),
    TEST(access_anywhere_in_guard_is_reported),
    TEST(frame_larger_than_stack_is_reported),
    TEST(overflow_of_segment_is_reported),
    TEST(other_fault_is_not_reported_as_overflow),
    TEST(older_handler_gets_other_faults),
    TEST(older_handler_gets_overflow_after_report),
    TEST(bus_error_goes_to_its_own_handler),
    TEST(older_handler_can_recover_by_jump),
    TEST(older_handler_can_repair_fault),
    TEST(fault_cannot_be_ignored),
    TEST(resethand_handler_is_called_once),
    TEST(fault_in_handler_ends_process),
    TEST(sent_signal_keeps_its_action),
    TEST(last_runtime_restores_handlers),
    TEST(handlers_that_chain_to_each_other_are_called_once),
    TEST(handler_restored_by_last_runtime_can_chain),
    TEST(next_runtime_reports_overflow_after_handler_was_replaced),
    TEST(handler_that_replaced_ours_can_recover_by_jump),
    TEST(overflow_ends_process_if_older_handler_returns),
    TEST(threads_that_run_fibers_have_signal_stack),
    TEST(thread_without_signal_stack_gets_temporary_one),
    TEST(thread_with_signal_stack_keeps_it),
    TEST_NATIVE(out_of_memory_leaves_thread_without_signal_stack, "has no limits of memory"),
})
