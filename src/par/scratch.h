/* SPDX-License-Identifier: MIT */
/*
 * scratch.h - scratch memory of an algorithm, from the caller or allocated.
 */
#ifndef WF_PAR_SCRATCH_H
#define WF_PAR_SCRATCH_H

#include <stddef.h>

#include <weft/sort.h>

/* Alignment of each block. It suffices for any element that malloc() could hold. */
#define WF_SCRATCH_ALIGN 64

struct wf_scratch {
    char *next;  /* the rest */
    void *owned; /* to be freed, or NULL */
    size_t size;
    size_t align;
};

/*
 * Adds the size of a block of count elements of size bytes each to a sum of sizes. Returns
 * SIZE_MAX on overflow, also of earlier sums.
 */
size_t wf_scratch_add(size_t sum, size_t count, size_t size);

/* Returns the size that the caller must provide for blocks of this sum, at any address. */
size_t wf_scratch_with_slack(size_t sum);

/* Obtains memory for blocks of this sum. Returns 0, -ENOMEM, or -EINVAL if the caller's scratch
 * is too small. */
int wf_scratch_init(struct wf_scratch *scratch, size_t sum, const weft_par_options *options);
void wf_scratch_fini(struct wf_scratch *scratch);

/*
 * Makes the kernel provide the pages of a large block that is still empty, in parallel and with
 * safe points. For a block whose elements are written in scattered order: each write could be
 * the first to its page, and a loop that counts elements would not know how long they take.
 */
void wf_scratch_touch(void *piece, size_t bytes);

/* Returns the next block, whose size has been added with wf_scratch_add(). */
void *wf_scratch_take(struct wf_scratch *scratch, size_t count, size_t size);

#endif
