/* SPDX-License-Identifier: MIT */
/*
 * alloc.h - memory through the runtime's allocator.
 */
#ifndef WF_BASE_ALLOC_H
#define WF_BASE_ALLOC_H

#include <stdbool.h>

#include <weft/base.h>

/* libc's aligned_alloc and free. */
extern const weft_allocator wf_alloc_default;

#ifdef WF_DEBUG
/* For tests: what the default allocator asks first, if it is set; false: there is no memory. */
extern bool (*wf_alloc_hook)(void);
#endif

/* align is a power of two. Returns NULL when there is no memory. */
void *wf_alloc(const weft_allocator *allocator, size_t size, size_t align);

/* The same, filled with zeros. */
void *wf_alloc_zeroed(const weft_allocator *allocator, size_t size, size_t align);

/* ptr may be NULL. size and align are those of the allocation. */
void wf_free(const weft_allocator *allocator, void *ptr, size_t size, size_t align);

#endif
