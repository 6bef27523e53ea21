/* SPDX-License-Identifier: MIT */
/*
 * sanitizer_test.c - sanitizer support for contexts: correct code raises no report, and errors
 * raise the right one. Other builds pay nothing.
 */
#include "fiber/sanitizer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "fiber/context.h"
#include "test.h"

#define WITHOUT_INLINE __attribute__((noinline))

#if defined(WF_ASAN)
/* Read by AddressSanitizer at startup. Locals live in fake stacks, which is the default since
 * clang 15. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_stack_use_after_return=1";
}
#endif

enum {
    STACK_BYTES = 128 * 1024
};

struct strand {
    struct wf_context context;
    struct wf_context *back; /* where its next switch goes */
    _Alignas(16) char stack[STACK_BYTES];
};

static struct strand strands[2];
static struct strand *const one = &strands[0];
static struct strand *const two = &strands[1];
static struct wf_context home;

static void start(struct strand *strand, void (*function)(void *carried))
{
    strand->back = &home;
    wf_context_init(&strand->context, strand->stack, STACK_BYTES, strand->stack + STACK_BYTES,
                    function, wf_fp_control_read());
}

WF_NO_TSAN WITHOUT_INLINE static void *go(struct wf_context *from, struct strand *to, void *carried)
{
    to->back = from;
    return wf_context_switch(from, &to->context, carried);
}

static void *switch_from_thread(struct strand *to, void *carried)
{
    wf_context_init_thread(&home);
    return go(&home, to, carried);
}

static void end_strand(struct strand *strand)
{
    (void)switch_from_thread(strand, NULL);
    wf_context_fini(&strand->context);
}

/* --- Without sanitizers ---------------------------------------------------------- */

static void only_tsan_needs_new_context_per_fiber(void)
{
#if defined(WF_TSAN)
    CHECK_EQ(WF_FIBER_REUSES_CONTEXT, 0);
#else
    CHECK_EQ(WF_FIBER_REUSES_CONTEXT, 1);
#endif
}

static void plain_build_keeps_no_state(void)
{
#if !defined(WF_ASAN) && !defined(WF_TSAN)
    struct wf_sanitizer_context context = { "x" };
    struct wf_sanitizer_context other = { "y" };
    CHECK_EQ(sizeof context, 1);
    wf_sanitizer_init(&context, one->stack, STACK_BYTES);
    wf_sanitizer_leave(&context, &other);
    wf_sanitizer_leave(NULL, &other);
    wf_sanitizer_arrive(&context);
    wf_sanitizer_fini(&context);
    wf_sanitizer_init_thread(&context);
    CHECK_EQ(context.nothing[0], 'x');
    CHECK_EQ(other.nothing[0], 'y');
#endif
}

/* --- Correct code ------------------------------------------------------------------ */

#if defined(WF_ASAN)
static void *check_own_stack(void *arg)
{
    struct wf_sanitizer_context context;
    wf_sanitizer_init_thread(&context);
    const char *frame = __builtin_frame_address(0);
    CHECK((const char *)context.low < frame);
    CHECK(frame < (const char *)context.low + context.size);
    CHECK(context.fake_stack == NULL);
    return arg;
}
#endif

static void stack_bounds_of_thread_are_known(void)
{
#if defined(WF_ASAN)
    pthread_t thread;
    (void)check_own_stack(NULL);
    CHECK_EQ(pthread_create(&thread, NULL, check_own_stack, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
#endif
}

/* Passes its locals to each context that switches to it, until it receives NULL. */
WF_NO_TSAN static void share_locals_main(void *carried)
{
    struct strand *self = carried;
    wf_context_begin(&self->context);
    int numbers[10] = { 0 };
    for (int turn = 1; carried != NULL; turn++) {
        carried = wf_context_switch(&self->context, self->back, numbers);
        for (int i = 0; carried != NULL && i < 10; i++) {
            CHECK_EQ(numbers[i], turn * i);
        }
    }
    wf_context_leave(self->back, NULL);
}

static void add_to_each(int *numbers)
{
    for (int i = 0; i < 10; i++) {
        numbers[i] += i;
    }
}

static void local_of_suspended_context_can_be_used(void)
{
    start(one, share_locals_main);
    start(two, share_locals_main);
    int *first = switch_from_thread(one, one);
    int *second = switch_from_thread(two, two);
    for (int turn = 0; turn < 100; turn++) {
        add_to_each(first);
        add_to_each(second);
        CHECK(switch_from_thread(one, one) == first);
        CHECK(switch_from_thread(two, two) == second);
    }
    end_strand(one);
    end_strand(two);
}

/* Uses the locals of the other context, with direct switches between the two. */
WF_NO_TSAN static void use_locals_main(void *carried)
{
    struct strand *self = carried;
    wf_context_begin(&self->context);
    int turns[4] = { 0 };
    for (int turn = 0; turn < 100; turn++) {
        add_to_each(go(&self->context, one, one));
        turns[turn % 4]++;
    }
    CHECK_EQ(turns[0] + turns[1] + turns[2] + turns[3], 100);
    wf_context_leave(&home, NULL);
}

static void context_can_use_locals_of_another(void)
{
    start(one, share_locals_main);
    start(two, use_locals_main);
    (void)switch_from_thread(two, two);
    wf_context_fini(&two->context);
    end_strand(one);
}

WF_NO_TSAN WITHOUT_INLINE static void leave_for(struct wf_context *next)
{
    if (next != NULL) {
        wf_context_leave(next, NULL);
    }
}

static WITHOUT_INLINE void count_down(volatile int *left, struct wf_context *next)
{
    volatile int copies[4] = { *left, *left, *left, *left };
    *left = copies[*left % 4] - 1;
    if (*left > 0) {
        count_down(left, next);
    } else {
        leave_for(next);
    }
    copies[0] = *left; /* The frame still exists while the next context runs. */
}

WF_NO_TSAN static void dirty_main(void *carried)
{
    wf_context_begin(&one->context);
    volatile int left = 50;
    count_down(&left, carried);
    wf_context_leave(carried, NULL);
}

static WITHOUT_INLINE int fill(char *bytes, size_t size)
{
    int sum = 0;
    memset(bytes, 1, size);
    for (size_t i = 0; i < size; i++) {
        sum += bytes[i];
    }
    return sum;
}

WF_NO_TSAN static void clean_main(void *carried)
{
    wf_context_begin(&one->context);
    char bytes[STACK_BYTES / 4];
    CHECK_EQ(fill(bytes, sizeof bytes), sizeof bytes);
    wf_context_leave(carried, NULL);
}

/* The first context leaves from a nested call, so its frames are never popped. */
static void stack_is_unpoisoned_for_next_context(void)
{
    for (int i = 0; i < 10; i++) {
        start(one, dirty_main);
        (void)switch_from_thread(one, &home);
        wf_context_fini(&one->context);
        start(one, clean_main);
        (void)switch_from_thread(one, &home);
        wf_context_fini(&one->context);
    }
}

/* The stack may be unmapped, and the next mapping there may not be a stack. */
static void ended_context_leaves_stack_as_plain_memory(void)
{
    start(one, dirty_main);
    (void)switch_from_thread(one, &home);
    wf_context_fini(&one->context);
    CHECK_EQ(fill(one->stack, STACK_BYTES), STACK_BYTES);
}

static uint64_t handed_over;

WF_NO_TSAN static void count_main(void *carried)
{
    wf_context_begin(&one->context);
    while (carried != NULL) {
        ++*(uint64_t *)carried;
        carried = wf_context_switch(&one->context, one->back, NULL);
    }
    wf_context_leave(one->back, NULL);
}

static void count_here(void)
{
    handed_over++;
}

static void *count_on_this_thread(void *arg)
{
    struct wf_context here;
    wf_context_init_thread(&here);
    for (int i = 0; i < 100; i++) {
        (void)go(&here, one, &handed_over);
        count_here();
    }
    return arg;
}

/*
 * Goal:   a switch orders the writes before it, so there is no report.
 * Method: a context and its thread increment one plain variable. Then another thread continues
 *         with the context.
 */
static void switch_orders_writes_between_contexts(void)
{
    pthread_t thread;
    handed_over = 0;
    start(one, count_main);
    (void)count_on_this_thread(NULL);
    CHECK_EQ(pthread_create(&thread, NULL, count_on_this_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(handed_over, 400);
    end_strand(one);
}

/* Returns the fiber that ThreadSanitizer considers current. */
static void *current_tsan_fiber(void)
{
#if defined(WF_TSAN)
    return __tsan_get_current_fiber();
#else
    return NULL;
#endif
}

WF_NO_TSAN static void report_fiber_main(void *carried)
{
    struct strand *self = carried;
    wf_context_begin(&self->context);
    while (carried != NULL) {
        carried = wf_context_switch(&self->context, self->back, current_tsan_fiber());
    }
    wf_context_leave(self->back, NULL);
}

static void each_context_runs_as_its_own_tsan_fiber(void)
{
    start(one, report_fiber_main);
    start(two, report_fiber_main);
    for (int i = 0; i < 3; i++) {
        void *first = switch_from_thread(one, one);
        void *second = switch_from_thread(two, two);
#if defined(WF_TSAN)
        CHECK(first == one->context.sanitizer.fiber);
        CHECK(second == two->context.sanitizer.fiber);
        CHECK(current_tsan_fiber() == home.sanitizer.fiber);
        CHECK(first != second);
        CHECK(first != current_tsan_fiber());
        CHECK(second != current_tsan_fiber());
#else
        CHECK(first == NULL);
        CHECK(second == NULL);
#endif
    }
    end_strand(one);
    end_strand(two);
}

/* --- Errors ------------------------------------------------------------------------ */

#if defined(WF_ASAN)

static WITHOUT_INLINE void write_at(volatile char *at)
{
    *at = 1;
}

WF_NO_TSAN static void overflow_main(void *carried)
{
    wf_context_begin(&one->context);
    volatile char eight[8] = { 0 };
    write_at(eight + sizeof eight);
    wf_context_leave(carried, NULL);
}

static WITHOUT_INLINE volatile char *dangle(void)
{
    volatile char local[8] = { 0 };
    volatile char *volatile pointer = local;
    return pointer;
}

WF_NO_TSAN static void use_after_return_main(void *carried)
{
    wf_context_begin(&one->context);
    *dangle() = 1;
    wf_context_leave(carried, NULL);
}

static void run_use_after_return(void *arg)
{
    start(one, use_after_return_main);
    (void)switch_from_thread(one, arg);
}

static void run_overflow(void *arg)
{
    start(one, overflow_main);
    (void)switch_from_thread(one, arg);
}

#endif

static void stack_error_is_reported_with_its_frame(void)
{
#if defined(WF_ASAN)
    struct child child;
    child_run(&child, run_overflow, NULL);
    CHECK_NE(child.code, 0);
    CHECK_HAS(child.text, "stack-buffer-overflow");
    CHECK_HAS(child.text, "is located in stack of thread T0");
    CHECK_HAS(child.text, "in overflow_main");
    child_run(&child, run_use_after_return, NULL);
    CHECK_NE(child.code, 0);
    CHECK_HAS(child.text, "stack-use-after-return");
    CHECK_HAS(child.text, "in dangle");
#endif
}

#if defined(WF_TSAN)

static uint64_t raced_for;

static WITHOUT_INLINE void race_for_it(void)
{
    raced_for++;
}

WF_NO_TSAN static void race_main(void *carried)
{
    struct strand *self = carried;
    wf_context_begin(&self->context);
    race_for_it();
    wf_context_leave(self->back, NULL);
}

static void *race_thread(void *arg)
{
    struct wf_context here;
    wf_context_init_thread(&here);
    (void)go(&here, arg, arg);
    return NULL;
}

static void run_race(void *arg)
{
    pthread_t threads[2];
    (void)arg;
    for (size_t i = 0; i < 2; i++) {
        start(&strands[i], race_main);
        CHECK_EQ(pthread_create(&threads[i], NULL, race_thread, &strands[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    /* ThreadSanitizer sets the exit code in exit(). */
    exit(0);
}

#endif

static void race_between_two_contexts_is_reported(void)
{
#if defined(WF_TSAN)
    struct child child;
    child_run(&child, run_race, NULL);
    CHECK_NE(child.code, 0);
    CHECK_HAS(child.text, "data race");
    CHECK_HAS(child.text, "race_for_it");
    CHECK_HAS(child.text, "race_main");
#endif
}

TEST_MAIN({
    TEST(only_tsan_needs_new_context_per_fiber),
    TEST(plain_build_keeps_no_state),
    TEST(stack_bounds_of_thread_are_known),
    TEST(local_of_suspended_context_can_be_used),
    TEST(context_can_use_locals_of_another),
    TEST(stack_is_unpoisoned_for_next_context),
    TEST(ended_context_leaves_stack_as_plain_memory),
    TEST(switch_orders_writes_between_contexts),
    TEST(each_context_runs_as_its_own_tsan_fiber),
    TEST(stack_error_is_reported_with_its_frame),
    TEST(race_between_two_contexts_is_reported),
})
