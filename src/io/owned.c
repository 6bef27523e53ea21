/* SPDX-License-Identifier: MIT */
/*
 * owned.c - set of the descriptors that streams, listeners and sockets of weft own.
 *
 * One bit per descriptor, in pages that are allocated when they are first needed and never freed.
 * Descriptors beyond the last page, or in a page that could not be allocated, never count as
 * owned. A mistake of the program then goes unnoticed, but nothing else happens.
 *
 * Edges.
 * [OW1] the thread that allocates a page releases it, a thread that finds it acquires it: it is
 *       zeroed.
 */
#include "io/owned.h"

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/atomic.h"

enum {
    WORD_BITS = 64,
    PAGE_WORDS = 512,
    PAGE_BITS = PAGE_WORDS * WORD_BITS,
    PAGES = 4096, /* for 2^27 descriptors */
};

struct page {
    _Atomic(uint64_t) words[PAGE_WORDS];
};

static _Atomic(struct page *) pages[PAGES];

/* Returns the page of a descriptor, or NULL. */
static struct page *page_of(int fd, bool may_allocate)
{
    if (fd < 0 || fd / PAGE_BITS >= PAGES) {
        return NULL;
    }
    /* acquire [OW1]: the page is zeroed. */
    struct page *page = wf_load_acquire(&pages[fd / PAGE_BITS]);
    if (page != NULL || !may_allocate) {
        return page;
    }
    struct page *fresh = wf_alloc_zeroed(&wf_alloc_default, sizeof *fresh, _Alignof(struct page));
    if (fresh == NULL) {
        return NULL;
    }
    /* acq_rel [OW1]: the page is zeroed, this one or that of another thread. */
    if (!wf_cas_acq_rel(&pages[fd / PAGE_BITS], &page, fresh)) {
        wf_free(&wf_alloc_default, fresh, sizeof *fresh, _Alignof(struct page));
        return page;
    }
    return fresh;
}

static _Atomic(uint64_t) *word_of(struct page *page, int fd)
{
    return &page->words[fd % PAGE_BITS / WORD_BITS];
}

static uint64_t bit_of(int fd)
{
    return UINT64_C(1) << (fd % WORD_BITS);
}

bool wf_owned_claim(int fd)
{
    struct page *page = page_of(fd, true);
    /* relaxed: a single bit, which publishes nothing else. */
    return page == NULL || (wf_fetch_or_relaxed(word_of(page, fd), bit_of(fd)) & bit_of(fd)) == 0;
}

void wf_owned_release(int fd)
{
    struct page *page = page_of(fd, false);
    if (page != NULL) {
        /* relaxed: as above. The caller closes the descriptor after this. */
        (void)wf_fetch_and_relaxed(word_of(page, fd), ~bit_of(fd));
    }
}
