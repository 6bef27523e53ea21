/* SPDX-License-Identifier: MIT */
#include "fiber/segment.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "child.h"
#include "fiber/context.h"
#include "fiber/stack.h"
#include "test.h"

static bool is_on(const struct wf_stack *segment, const void *address)
{
    const char *at = address;
    return at >= segment->low && at < segment->low + wf_stack_size(segment);
}

struct visit {
    const struct wf_stack *segment;
    unsigned depth; /* nested calls still to make */
    unsigned calls;
    bool fills; /* uses most of each segment */
};

static void visit_segment(void *arg)
{
    struct visit *visit = arg;
    const struct wf_stack *own = wf_segment_current();
    volatile char bytes[4096];
    memset((char *)(uintptr_t)bytes, 1, sizeof bytes);
    CHECK(own != NULL);
    CHECK(own != visit->segment);
    CHECK(is_on(own, __builtin_frame_address(0)));
    if (visit->fills) {
        memset(own->low, 0x5A, wf_stack_size(own) - 64 * 1024);
    }
    visit->calls++;
    if (visit->depth > 0) {
        visit->depth--;
        visit->segment = own;
        CHECK(wf_segment_call(visit_segment, visit));
    }
    CHECK(wf_segment_current() == own);
    CHECK_EQ(bytes[17], 1);
}

static void call_runs_on_segment_and_returns(void)
{
    CHECK(wf_segment_current() == NULL);
    for (int i = 0; i < 3; i++) {
        struct visit visit = { .depth = 0 };
        CHECK(wf_segment_call(visit_segment, &visit));
        CHECK_EQ(visit.calls, 1);
        CHECK(wf_segment_current() == NULL);
    }
}

static void nested_calls_use_different_segments(void)
{
    struct visit visit = { .depth = 9 };
    CHECK(wf_segment_call(visit_segment, &visit));
    CHECK_EQ(visit.calls, 10);
}

static void *visit_on_thread(void *arg)
{
    for (uint64_t i = 0; i < test_scale(2000); i++) {
        struct visit visit = { .depth = (unsigned)(i % 3) };
        CHECK(wf_segment_call(visit_segment, &visit));
        CHECK_EQ(visit.calls, i % 3 + 1);
    }
    return arg;
}

static void threads_use_different_segments(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, visit_on_thread, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

static uint32_t control; /* floating-point control word */

static void change_errno(void *arg)
{
    CHECK_EQ(wf_fp_control_read(), control);
    *(int *)arg = errno;
    errno = ERANGE;
}

static void segment_shares_errno_and_rounding_with_caller(void)
{
    int seen = 0;
    uint32_t before = wf_fp_control_read();
#if defined(__x86_64__)
    control = before ^ 0x2000; /* SSE rounding mode */
#else
    control = before ^ 0x400000;
#endif
    wf_fp_control_write(control);
    errno = EDOM;
    CHECK(wf_segment_call(change_errno, &seen));
    CHECK_EQ(seen, EDOM);
    CHECK_EQ(errno, ERANGE);
    CHECK_EQ(wf_fp_control_read(), control);
    wf_fp_control_write(before);
}

static size_t resident_bytes(void)
{
    unsigned long size = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%lu %lu", &size, &resident), 2);
    (void)fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void free_segments_keep_memory_of_one(void)
{
    if (test_is_sanitized()) {
        test_skip("a sanitizer has memory of its own for each page");
        return;
    }
    struct visit visit = { .depth = 7, .fills = true };
    size_t before = resident_bytes();
    CHECK(wf_segment_call(visit_segment, &visit));
    CHECK_EQ(visit.calls, 8);
    CHECK_LT(resident_bytes(), before + 2 * (size_t)WF_STACK_MAX);
}

static void call_without_memory(void *arg)
{
    (void)arg;
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){ 0, 0 }), 0);
    struct visit visit = { .depth = 0 };
    CHECK(!wf_segment_call(visit_segment, &visit));
    CHECK_EQ(visit.calls, 0);
    CHECK(wf_segment_current() == NULL);
}

static void call_without_memory_fails(void)
{
    child_must_succeed(call_without_memory, NULL);
}

TEST_MAIN({
    TEST_NATIVE(call_without_memory_fails, "has no limits of memory"),
    TEST(call_runs_on_segment_and_returns),
    TEST(nested_calls_use_different_segments),
    TEST(threads_use_different_segments),
    TEST(segment_shares_errno_and_rounding_with_caller),
    TEST(free_segments_keep_memory_of_one),
})
