/* SPDX-License-Identifier: MIT */
/*
 * alloc.h - memory allocation through the runtime's allocator.
 */
#ifndef WF_BASE_ALLOC_H
#define WF_BASE_ALLOC_H

#include <stdbool.h>

#include <weft/base.h>

/* The default allocator: libc's malloc(), aligned_alloc() and free(). */
extern const weft_allocator wf_alloc_default;

#ifdef WF_DEBUG
/* For tests: if set, the default allocator calls it first, and fails if it returns false. */
extern bool (*wf_alloc_hook)(void);
#endif

/* Allocates size bytes. align is a power of two. Returns NULL when out of memory. */
void *wf_alloc(const weft_allocator *allocator, size_t size, size_t align);

/* Same as wf_alloc(), with the memory set to zero. */
void *wf_alloc_zeroed(const weft_allocator *allocator, size_t size, size_t align);

/* Frees ptr, which may be NULL. size and align must be those of the allocation. */
void wf_free(const weft_allocator *allocator, void *ptr, size_t size, size_t align);

#endif
