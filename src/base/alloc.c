/* SPDX-License-Identifier: MIT */
/*
 * alloc.c - memory allocation through the runtime's allocator.
 */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/callout.h"

#ifdef WF_DEBUG
bool (*wf_alloc_hook)(void);
#endif

static bool is_refused(void)
{
#ifdef WF_DEBUG
    return wf_alloc_hook != NULL && !wf_alloc_hook();
#else
    return false;
#endif
}

static void *libc_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    if (is_refused()) {
        return NULL;
    }
    if (align <= _Alignof(max_align_t)) {
        return malloc(size);
    }
    /* aligned_alloc() requires a size that is a multiple of the alignment. */
    size_t rounded = (size + align - 1) & ~(align - 1);
    return rounded < size ? NULL : aligned_alloc(align, rounded);
}

static void libc_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    free(ptr);
}

const weft_allocator wf_alloc_default = { .alloc = libc_alloc, .free = libc_free };

void *wf_alloc(const weft_allocator *allocator, size_t size, size_t align)
{
    WF_ASSERT(size > 0);
    WF_ASSERT(align > 0);
    WF_ASSERT((align & (align - 1)) == 0);
    WF_CALLOUT_BEGIN();
    void *ptr = allocator->alloc(allocator->ctx, size, align);
    WF_CALLOUT_END();
    return ptr;
}

void *wf_alloc_zeroed(const weft_allocator *allocator, size_t size, size_t align)
{
    void *ptr = wf_alloc(allocator, size, align);
    if (ptr != NULL) {
        memset(ptr, 0, size);
    }
    return ptr;
}

void wf_free(const weft_allocator *allocator, void *ptr, size_t size, size_t align)
{
    if (ptr != NULL) {
        WF_CALLOUT_BEGIN();
        allocator->free(allocator->ctx, ptr, size, align);
        WF_CALLOUT_END();
    }
}
