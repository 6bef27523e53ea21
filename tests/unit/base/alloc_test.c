/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"

#include <string.h>

#include "test.h"

/* Sanitizer allocators abort on a huge request by default. These options make them return NULL,
 * as libc does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* An allocator that records its arguments. */
struct recorder {
    void *memory; /* what alloc returns */
    int allocs;
    int frees;
    void *freed;
    size_t size;
    size_t align;
};

static void *recorder_alloc(void *ctx, size_t size, size_t align)
{
    struct recorder *recorder = ctx;
    recorder->allocs++;
    recorder->size = size;
    recorder->align = align;
    return recorder->memory;
}

static void recorder_free(void *ctx, void *ptr, size_t size, size_t align)
{
    struct recorder *recorder = ctx;
    recorder->frees++;
    recorder->freed = ptr;
    recorder->size = size;
    recorder->align = align;
}

static weft_allocator recorder_allocator(struct recorder *recorder)
{
    return (weft_allocator){ .alloc = recorder_alloc, .free = recorder_free, .ctx = recorder };
}

static void default_allocator_returns_aligned_writable_memory(void)
{
    static const size_t sizes[] = { 1, 7, 64, 100, 4096, 5000 };
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            unsigned char *ptr = wf_alloc(&wf_alloc_default, sizes[i], align);
            CHECK(ptr != NULL);
            CHECK_EQ((uintptr_t)ptr % align, 0);
            memset(ptr, 0xA5, sizes[i]);
            wf_free(&wf_alloc_default, ptr, sizes[i], align);
        }
    }
}

static void alloc_zeroed_clears_reused_memory(void)
{
    static const unsigned char zeros[1000];
    for (size_t align = 1; align <= 4096; align *= 64) {
        for (int round = 0; round < 4; round++) {
            void *ptr = wf_alloc_zeroed(&wf_alloc_default, sizeof zeros, align);
            CHECK(ptr != NULL);
            CHECK_EQ((uintptr_t)ptr % align, 0);
            CHECK_EQ(memcmp(ptr, zeros, sizeof zeros), 0);
            memset(ptr, 0xA5, sizeof zeros);
            wf_free(&wf_alloc_default, ptr, sizeof zeros, align);
        }
    }
}

static void huge_size_returns_null(void)
{
    static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 4095, SIZE_MAX - 4096,
                                    SIZE_MAX / 2 + 1 };
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            CHECK(wf_alloc(&wf_alloc_default, sizes[i], align) == NULL);
            CHECK(wf_alloc_zeroed(&wf_alloc_default, sizes[i], align) == NULL);
        }
    }
}

static void custom_allocator_gets_context_size_and_alignment(void)
{
    char memory[24];
    struct recorder recorder = { .memory = memory };
    weft_allocator allocator = recorder_allocator(&recorder);

    CHECK(wf_alloc(&allocator, 24, 8) == memory);
    CHECK_EQ(recorder.allocs, 1);
    CHECK_EQ(recorder.size, 24);
    CHECK_EQ(recorder.align, 8);

    recorder.size = 0;
    recorder.align = 0;
    wf_free(&allocator, memory, 24, 8);
    CHECK_EQ(recorder.frees, 1);
    CHECK(recorder.freed == memory);
    CHECK_EQ(recorder.size, 24);
    CHECK_EQ(recorder.align, 8);
}

static void alloc_zeroed_clears_requested_size_only(void)
{
    char memory[32];
    memset(memory, 'x', sizeof memory);
    struct recorder recorder = { .memory = memory };
    weft_allocator allocator = recorder_allocator(&recorder);

    CHECK(wf_alloc_zeroed(&allocator, 24, 8) == memory);
    for (size_t i = 0; i < sizeof memory; i++) {
        CHECK_EQ(memory[i], i < 24 ? 0 : 'x');
    }
}

static void failing_allocator_returns_null(void)
{
    struct recorder recorder = { .memory = NULL };
    weft_allocator allocator = recorder_allocator(&recorder);
    CHECK(wf_alloc(&allocator, 24, 8) == NULL);
    CHECK(wf_alloc_zeroed(&allocator, 24, 8) == NULL);
    CHECK_EQ(recorder.allocs, 2);
}

static void free_of_null_does_not_call_allocator(void)
{
    struct recorder recorder = { .memory = NULL };
    weft_allocator allocator = recorder_allocator(&recorder);
    wf_free(&allocator, NULL, 24, 8);
    CHECK_EQ(recorder.frees, 0);
    wf_free(&wf_alloc_default, NULL, 24, 8);
}

static void allocate_size_zero(void)
{
    (void)wf_alloc(&wf_alloc_default, 0, 8);
}

static void size_zero_aborts(void)
{
    CHECK_ABORTS(allocate_size_zero, "'size > 0' does not hold");
}

static void allocate_with_alignment_three(void)
{
    (void)wf_alloc(&wf_alloc_default, 8, 3);
}

static void alignment_not_power_of_two_aborts(void)
{
    CHECK_ABORTS(allocate_with_alignment_three, "does not hold");
}

TEST_MAIN({ TEST(default_allocator_returns_aligned_writable_memory),
            TEST(alloc_zeroed_clears_reused_memory), TEST(huge_size_returns_null),
            TEST(custom_allocator_gets_context_size_and_alignment),
            TEST(alloc_zeroed_clears_requested_size_only), TEST(failing_allocator_returns_null),
            TEST(free_of_null_does_not_call_allocator), TEST(size_zero_aborts),
            TEST(alignment_not_power_of_two_aborts) })
