/* SPDX-License-Identifier: MIT */
/*
 * sanitizer_test.c - sanitizers follow contexts: what is right raises no report, and
 * what is wrong raises the right one. In other builds none of it costs anything.
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
/* Asked by AddressSanitizer at the start: locals live in fake stacks, as they do by
 * default from clang 15 on. */
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
    struct wf_context *back; /* where it goes from here */
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

static void *go_home_and_back(struct strand *to, void *carried)
{
    wf_context_init_thread(&home);
    return go(&home, to, carried);
}

static void end(struct strand *strand)
{
    (void)go_home_and_back(strand, NULL);
    wf_context_fini(&strand->context);
}

/* --- Without sanitizers ---------------------------------------------------------- */

static void only_thread_sanitizer_has_a_name_for_each_context(void)
{
#if defined(WF_TSAN)
    CHECK_EQ(WF_FIBER_REUSES_CONTEXT, 0);
#else
    CHECK_EQ(WF_FIBER_REUSES_CONTEXT, 1);
#endif
}

static void in_plain_builds_nothing_is_kept(void)
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

/* --- What is right ----------------------------------------------------------------- */

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

static void the_stack_of_a_thread_is_known(void)
{
#if defined(WF_ASAN)
    pthread_t thread;
    (void)check_own_stack(NULL);
    CHECK_EQ(pthread_create(&thread, NULL, check_own_stack, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
#endif
}

/* Lends its locals to whoever switches to it, until it gets NULL. */
WF_NO_TSAN static void lend_main(void *carried)
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

static void a_local_of_a_suspended_context_can_be_used(void)
{
    start(one, lend_main);
    start(two, lend_main);
    int *first = go_home_and_back(one, one);
    int *second = go_home_and_back(two, two);
    for (int turn = 0; turn < 100; turn++) {
        add_to_each(first);
        add_to_each(second);
        CHECK(go_home_and_back(one, one) == first);
        CHECK(go_home_and_back(two, two) == second);
    }
    end(one);
    end(two);
}

/* Borrows the locals of the other one, without a detour by the thread. */
WF_NO_TSAN static void borrow_main(void *carried)
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

static void a_context_can_use_the_locals_of_another(void)
{
    start(one, lend_main);
    start(two, borrow_main);
    (void)go_home_and_back(two, two);
    wf_context_fini(&two->context);
    end(one);
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
    copies[0] = *left; /* The frame is still there while the next one runs. */
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

/* The first one leaves from the depth; its frames are never popped. */
static void a_stack_is_clean_for_its_next_context(void)
{
    for (int i = 0; i < 10; i++) {
        start(one, dirty_main);
        (void)go_home_and_back(one, &home);
        wf_context_fini(&one->context);
        start(one, clean_main);
        (void)go_home_and_back(one, &home);
        wf_context_fini(&one->context);
    }
}

/* It may be unmapped, and what comes there next is not a stack. */
static void a_context_leaves_a_stack_that_is_plain_memory(void)
{
    start(one, dirty_main);
    (void)go_home_and_back(one, &home);
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
 * Goal:   a switch is order enough for what is handed over by it: no report.
 * Method: a context and its thread count one plain variable; then another thread
 *         goes on with the context.
 */
static void a_switch_hands_over_what_was_written(void)
{
    pthread_t thread;
    handed_over = 0;
    start(one, count_main);
    (void)count_on_this_thread(NULL);
    CHECK_EQ(pthread_create(&thread, NULL, count_on_this_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(handed_over, 400);
    end(one);
}

/* What ThreadSanitizer takes for the context that runs. */
static void *who_runs(void)
{
#if defined(WF_TSAN)
    return __tsan_get_current_fiber();
#else
    return NULL;
#endif
}

WF_NO_TSAN static void tell_main(void *carried)
{
    struct strand *self = carried;
    wf_context_begin(&self->context);
    while (carried != NULL) {
        carried = wf_context_switch(&self->context, self->back, who_runs());
    }
    wf_context_leave(self->back, NULL);
}

static void each_context_runs_under_its_own_name(void)
{
    start(one, tell_main);
    start(two, tell_main);
    for (int i = 0; i < 3; i++) {
        void *first = go_home_and_back(one, one);
        void *second = go_home_and_back(two, two);
#if defined(WF_TSAN)
        CHECK(first == one->context.sanitizer.fiber);
        CHECK(second == two->context.sanitizer.fiber);
        CHECK(who_runs() == home.sanitizer.fiber);
        CHECK(first != second);
        CHECK(first != who_runs());
        CHECK(second != who_runs());
#else
        CHECK(first == NULL);
        CHECK(second == NULL);
#endif
    }
    end(one);
    end(two);
}

/* --- What is wrong ----------------------------------------------------------------- */

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
    (void)go_home_and_back(one, arg);
}

static void run_overflow(void *arg)
{
    start(one, overflow_main);
    (void)go_home_and_back(one, arg);
}

#endif

static void an_error_on_a_stack_is_reported_with_its_frame(void)
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
    /* Where the report decides how a program ends that calls exit(). */
    exit(0);
}

#endif

static void a_race_of_two_contexts_is_reported(void)
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
    TEST(only_thread_sanitizer_has_a_name_for_each_context),
    TEST(in_plain_builds_nothing_is_kept),
    TEST(the_stack_of_a_thread_is_known),
    TEST(a_local_of_a_suspended_context_can_be_used),
    TEST(a_context_can_use_the_locals_of_another),
    TEST(a_stack_is_clean_for_its_next_context),
    TEST(a_context_leaves_a_stack_that_is_plain_memory),
    TEST(a_switch_hands_over_what_was_written),
    TEST(each_context_runs_under_its_own_name),
    TEST(an_error_on_a_stack_is_reported_with_its_frame),
    TEST(a_race_of_two_contexts_is_reported),
})
