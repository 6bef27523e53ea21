/* SPDX-License-Identifier: MIT */
/*
 * valgrind_test.c - registering fiber stacks with valgrind.
 *
 * If valgrind is installed, the program runs itself once more under it.
 */
#include "fiber/valgrind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weft.h>

#include "child.h"
#include "fiber/context.h"
#include "rt.h"
#include "test.h"

#define INSIDE "WEFT_TEST_INSIDE_VALGRIND"

enum {
    /* Valgrind takes a jump of more than 2 MB for a switch to another stack by itself, and
     * reports it. It takes a shorter jump for a frame of that size. */
    NEAR = 512 * 1024,
    FAR = 32 * 1024 * 1024,
    STACK_BYTES = 128 * 1024,
};

static bool runs_on_valgrind(void)
{
#if defined(RUNNING_ON_VALGRIND)
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
}

static char *map_stacks(void)
{
    char *map = mmap(NULL, FAR + STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(map != MAP_FAILED);
    return map;
}

/* Under valgrind each stack gets a different id. Otherwise all ids are 0. */
static void stack_ids_are_registered_and_released(void)
{
    char *map = map_stacks();
    unsigned first = wf_valgrind_stack_made(map, STACK_BYTES);
    unsigned second = wf_valgrind_stack_made(map + NEAR, STACK_BYTES);
    if (runs_on_valgrind()) {
        CHECK_NE(first, second);
    } else {
        CHECK_EQ(first, 0);
        CHECK_EQ(second, 0);
    }
    wf_valgrind_stack_gone(second);
    wf_valgrind_stack_gone(first);
    unsigned third = wf_valgrind_stack_made(map, STACK_BYTES);
    CHECK_EQ(third != 0, runs_on_valgrind());
    wf_valgrind_stack_gone(third);
    CHECK_EQ(munmap(map, FAR + STACK_BYTES), 0);
}

struct strand {
    struct wf_context context;
    int turns;
};

static struct strand strands[3];
static struct wf_context home;

WF_NO_TSAN static void strand_main(void *carried)
{
    struct strand *self = carried;
    wf_context_begin(&self->context);
    volatile int numbers[64];
    for (int turn = 0; carried != NULL; turn++) {
        for (int i = 0; i < 64; i++) {
            numbers[i] = turn + i;
        }
        carried = wf_context_switch(&self->context, &home, NULL);
        for (int i = 0; i < 64; i++) {
            CHECK_EQ(numbers[i], turn + i); /* Undefined if valgrind took it for a popped frame. */
        }
        self->turns = turn + 1;
    }
    wf_context_leave(&home, NULL);
}

WF_NO_TSAN __attribute__((noinline)) static void go(struct strand *to, void *carried)
{
    (void)wf_context_switch(&home, &to->context, carried);
}

static void contexts_switch_among_registered_stacks(void)
{
    static const size_t at[3] = { 0, NEAR, FAR };
    unsigned ids[3];
    char *map = map_stacks();
    wf_context_init_thread(&home);
    for (int i = 0; i < 3; i++) {
        char *low = map + at[i];
        ids[i] = wf_valgrind_stack_made(low, STACK_BYTES);
        strands[i].turns = 0;
        wf_context_init(&strands[i].context, low, STACK_BYTES, low + STACK_BYTES, strand_main,
                        wf_fp_control_read());
    }
    for (int turn = 0; turn < 10; turn++) {
        for (int i = 0; i < 3; i++) {
            go(&strands[i], turn < 9 ? &strands[i] : NULL);
        }
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(strands[i].turns, 9);
        wf_context_fini(&strands[i].context);
        wf_valgrind_stack_gone(ids[i]);
    }
    CHECK_EQ(munmap(map, FAR + STACK_BYTES), 0);
}

static int yield_and_sleep(void *arg)
{
    CHECK_EQ(weft_yield(), 0);
    CHECK_EQ(weft_sleep(WEFT_MS), 0);
    return *(int *)arg + 1;
}

static int start_and_join(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        weft_task *task;
        int result;
        CHECK_EQ(weft_go(&task, yield_and_sleep, &i), 0);
        CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
        CHECK_EQ(result, i + 1);
    }
    return 0;
}

static void fibers_run(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, start_and_join, NULL), 0);
    weft_runtime_destroy(rt);
}

static int decide_by_chance(void *arg)
{
    const volatile char *memory = arg;
    if (memory[3] == 7) {
        (void)puts("seven");
    }
    return 0;
}

/* Runs code with an error in a fiber, if this run asks for it. */
static void planted_bug_runs(void)
{
    if (getenv(INSIDE) != NULL && strcmp(getenv(INSIDE), "bug") == 0) {
        weft_runtime *rt = test_start(1);
        char *memory = malloc(8);
        CHECK(memory != NULL);
        (void)test_run(rt, decide_by_chance, memory);
        free(memory);
        weft_runtime_destroy(rt);
    }
}

static const char *inside = "1";

static void run_self_under_valgrind(void *arg)
{
    CHECK_EQ(setenv(INSIDE, inside, 1), 0);
    CHECK_EQ(dup2(STDERR_FILENO, STDOUT_FILENO), STDOUT_FILENO);
    (void)execlp("valgrind", "valgrind", "--error-exitcode=9", (char *)arg, (char *)NULL);
    _exit(77);
}

/* Runs this program under valgrind. Returns false if that is not possible. */
static bool run_under_valgrind(struct child *child, const char *value)
{
    if (getenv(INSIDE) != NULL) {
        CHECK(runs_on_valgrind());
        return false;
    }
    if (test_is_sanitized()) {
        test_skip("valgrind cannot run sanitizers");
        return false;
    }
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK_LT(0, length);
    self[length] = '\0';
    inside = value;
    child_run(child, run_self_under_valgrind, self);
    if (child->code == 77 || strstr(child->text, "Valgrind: debuginfo reader") != NULL) {
        test_skip("there is no valgrind that can read this program");
        return false;
    }
    return true;
}

static void valgrind_finds_planted_bug(void)
{
    struct child child;
    if (run_under_valgrind(&child, "bug")) {
        CHECK_EQ(child.code, 9);
        CHECK_HAS(child.text, "depends on uninitialised value");
        CHECK_HAS(child.text, "decide_by_chance");
    }
}

/* Memcheck finds no error and sees no unregistered stack. */
static void valgrind_reports_no_error(void)
{
    struct child child;
    if (!run_under_valgrind(&child, "1")) {
        return;
    }
    if (child.code != 0 || child.signal != 0) {
        test_fail(__FILE__, __LINE__, "valgrind reports: %s", child.text);
    }
    CHECK_HAS(child.text, "ERROR SUMMARY: 0 errors");
    CHECK(strstr(child.text, "switching stacks") == NULL);
}

TEST_MAIN({
    TEST(stack_ids_are_registered_and_released),
    TEST(contexts_switch_among_registered_stacks),
    TEST(fibers_run),
    TEST(planted_bug_runs),
    TEST(valgrind_reports_no_error),
    TEST(valgrind_finds_planted_bug),
})
