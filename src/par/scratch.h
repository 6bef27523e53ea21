/* SPDX-License-Identifier: MIT */
/*
 * scratch.h - memory that an algorithm needs while it runs: the caller's, or its own.
 */
#ifndef WF_PAR_SCRATCH_H
#define WF_PAR_SCRATCH_H

#include <stddef.h>

#include <weft/sort.h>

/* What it hands out is aligned to this: any element is, that malloc could hold. */
#define WF_SCRATCH_ALIGN 64

struct wf_scratch {
    char *next;  /* what is left of it */
    void *owned; /* what is to be freed, or NULL */
    size_t size;
    size_t align;
};

/*
 * Sizes that may be too large to be true: the sum of all pieces, of count elements of
 * size bytes each. SIZE_MAX stands for all that do not fit.
 */
size_t wf_scratch_add(size_t sum, size_t count, size_t size);

/* What the caller has to give so that pieces of this sum fit, wherever it begins. */
size_t wf_scratch_with_slack(size_t sum);

/* Takes memory for pieces of this sum. 0, -ENOMEM, or -EINVAL: the caller's is too small. */
int wf_scratch_init(struct wf_scratch *scratch, size_t sum, const weft_par_options *options);
void wf_scratch_fini(struct wf_scratch *scratch);

/*
 * Makes the kernel provide the pages of a large piece, which holds nothing yet, with safe points
 * and in parallel. For a piece whose elements are written here and there: each could be the first
 * one of its page, and a loop that counts elements would not know how long they take.
 */
void wf_scratch_touch(void *piece, size_t bytes);

/* The next piece, as it was added. */
void *wf_scratch_take(struct wf_scratch *scratch, size_t count, size_t size);

#endif
