/* SPDX-License-Identifier: MIT */
/*
 * scratch.c - scratch memory of an algorithm, from the caller or allocated.
 */
#include "par/scratch.h"

#include <stdint.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "par/pause.h"
#include "par/range.h"

/*
 * Large scratch uses huge pages. A sort writes to hundreds of positions in turn, each on a page
 * of its own, and the memory is new, so each page costs a fault.
 */
enum {
    HUGE_PAGE = 2 << 20,
    LARGE = 4 * HUGE_PAGE,
    RELEASE_MIN = (32 << 20) + 1, /* malloc() maps every block above 32 MiB separately */
    PAGE = 4096,
    TOUCH_BLOCK = 256 * 1024, /* writing less than this delays no other task for long */
};

/* Returns the size of a block, rounded up to the alignment, or SIZE_MAX on overflow. */
static size_t piece_size(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - WF_SCRATCH_ALIGN) {
        return SIZE_MAX;
    }
    return (bytes + WF_SCRATCH_ALIGN - 1) & ~(size_t)(WF_SCRATCH_ALIGN - 1);
}

size_t wf_scratch_add(size_t sum, size_t count, size_t size)
{
    size_t total;
    return __builtin_add_overflow(sum, piece_size(count, size), &total) ? SIZE_MAX : total;
}

size_t wf_scratch_with_slack(size_t sum)
{
    size_t total;
    return __builtin_add_overflow(sum, WF_SCRATCH_ALIGN - 1, &total) ? SIZE_MAX : total;
}

int wf_scratch_init(struct wf_scratch *scratch, size_t sum, const weft_par_options *options)
{
    *scratch = (struct wf_scratch){ .size = sum };
    if (options != NULL && options->scratch != NULL) {
        if (options->scratch_size < wf_scratch_with_slack(sum)) {
            return -EINVAL;
        }
        uintptr_t at = (uintptr_t)options->scratch;
        scratch->next = (char *)options->scratch + (-at & (WF_SCRATCH_ALIGN - 1));
        return 0;
    }
    /* No allocator has more than PTRDIFF_MAX bytes, and sizes near SIZE_MAX would wrap around
     * there. */
    if (sum > PTRDIFF_MAX) {
        return -ENOMEM;
    }
    scratch->align = sum >= LARGE ? HUGE_PAGE : WF_SCRATCH_ALIGN;
    scratch->owned = wf_alloc(&wf_alloc_default, sum, scratch->align);
    scratch->next = scratch->owned;
    if (scratch->owned == NULL) {
        return -ENOMEM;
    }
    if (sum >= LARGE) {
        /* Only a hint: the memory is usable even if the call fails. */
        (void)madvise(scratch->owned, sum & ~(size_t)(HUGE_PAGE - 1), MADV_HUGEPAGE);
    }
    return 0;
}

/*
 * Releases the pages of very large scratch in steps, with safe points between them, since one
 * munmap() of all pages takes milliseconds. Memory of this size is always mapped separately, so
 * the allocator would not keep the pages for later.
 */
static void release_pages(struct wf_scratch *scratch)
{
    if (scratch->owned == NULL || scratch->size < RELEASE_MIN) {
        return;
    }
    for (size_t at = 0; at + LARGE <= scratch->size; at += LARGE) {
        (void)madvise((char *)scratch->owned + at, LARGE, MADV_DONTNEED);
        wf_pause(LARGE / WF_PAUSE_STEP_BYTES);
    }
}

void wf_scratch_fini(struct wf_scratch *scratch)
{
    release_pages(scratch);
    wf_free(&wf_alloc_default, scratch->owned, scratch->size, scratch->align);
}

/* Writes one byte per PAGE bytes; the pages may be larger. */
static void touch_blocks(size_t begin, size_t end, void *arg)
{
    for (size_t block = begin; block < end; block++) {
        char *at = (char *)arg + block * TOUCH_BLOCK;
        for (size_t step = 0; step < TOUCH_BLOCK; step += WF_PAUSE_BYTES) {
            for (size_t page = 0; page < WF_PAUSE_BYTES; page += PAGE) {
                *(volatile char *)(at + step + page) = 0;
            }
            wf_pause(WF_PAUSE_BYTES / WF_PAUSE_STEP_BYTES);
        }
    }
}

void wf_scratch_touch(void *piece, size_t bytes)
{
    wf_range_each(bytes / TOUCH_BLOCK, 1, touch_blocks, piece);
}

void *wf_scratch_take(struct wf_scratch *scratch, size_t count, size_t size)
{
    void *piece = scratch->next;
    scratch->next += piece_size(count, size);
    WF_ASSERT(((uintptr_t)piece & (WF_SCRATCH_ALIGN - 1)) == 0);
    return piece;
}
