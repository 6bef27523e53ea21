/* SPDX-License-Identifier: MIT */
/*
 * stack.h - stacks for fibers.
 *
 * Ten classes, 16 KiB to 8 MiB of address space each, and below every stack a guard
 * that faults when it is touched. Memory is committed as it is used, page by page. A
 * runtime has one set of stacks; each worker has a cache of its own in front of it,
 * so that a fiber begins and ends without a lock.
 *
 * A guard is as large as its stack, within 64 KiB and 1 MiB. Code that was compiled
 * with -fstack-clash-protection touches its frames page by page and cannot jump over
 * any guard. For other code the guard catches each frame that is no larger than it.
 * A guard costs address space, and page tables: 4 KiB for 2 MiB of it, which makes
 * 512 bytes for the guard of a stack of the default size.
 *
 * A fiber takes its stack when it first runs, not when it is spawned: of a
 * thousand that are spawned and run one after the other, each finds the stack of
 * the one before, still in the cache of the processor. So that it is sure to get
 * one then, the spawn takes a promise: there are never more promises than stacks.
 */
#ifndef WF_FIBER_STACK_H
#define WF_FIBER_STACK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/base.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/lock.h"

enum {
    WF_STACK_CLASSES = 10,
    WF_STACK_MIN = 16 * 1024,
    WF_STACK_MAX = WF_STACK_MIN << (WF_STACK_CLASSES - 1),
#ifdef WF_MODEL
    WF_STACK_DEFAULT = 32 * 1024,
    WF_STACK_JOB = WF_STACK_DEFAULT, /* of a fork that was stolen: it may go deep */
#else
    WF_STACK_DEFAULT = 256 * 1024,
    WF_STACK_JOB = WF_STACK_MAX,
#endif
    WF_STACK_GUARD_MIN = 64 * 1024,
    WF_STACK_GUARD_MAX = 1024 * 1024,
    /* What moves at a time between a cache and the depot. */
    WF_STACK_BATCH = 16,
#ifdef WF_MODEL
    WF_STACK_CACHED = 0, /* All can have it at once: see tests/model/port/stack.c. */
#else
    WF_STACK_CACHED = 2 * WF_STACK_BATCH - 1, /* The most that a cache holds. */
#endif
};

struct wf_stack {
    struct wf_stack *next; /* whoever has it: in a list of free ones */
    char *low;             /* constant: the guard is below */
    uint8_t class;         /* constant */
    uint8_t color;         /* constant: where in its top page it begins */
    unsigned valgrind_id;  /* constant */
};

struct wf_stack_list {
    struct wf_stack *first;
    uint32_t count;
};

struct wf_stack_chunk;

/* The stacks of one class that no cache holds. */
struct wf_stack_depot {
    _Alignas(WF_CACHE_LINE) struct wf_lock lock; /* guards all of the following */
    struct wf_stack_list warm;                   /* free, with memory */
    struct wf_stack_list cold;                   /* free, without */
    struct wf_stack_chunk *chunks;               /* the newest first; it may have room */
    uint32_t made;                               /* stacks in existence */
    uint32_t promises;                           /* given to caches and not given back */
    uint32_t low_water;                          /* fewest that were warm since the last trim */
    uint64_t used_max;                           /* bytes, as far as trims have seen */
    _Atomic(uint32_t) wanted;                    /* any thread: a fiber waits for a stack */
};

enum wf_stack_guard {
    WF_GUARD_UNKNOWN,
    WF_GUARD_MADVISE,  /* the kernel keeps guards without a mapping of their own */
    WF_GUARD_MPROTECT, /* two mappings a stack; see vm.max_map_count */
};

struct wf_stacks {
    weft_allocator allocator;                      /* constant: for descriptions of stacks */
    _Atomic(uint32_t) guard;                       /* any thread: enum wf_stack_guard */
    _Atomic(uint32_t) complained;                  /* any thread: has told why there is no stack */
    void (*complain)(void *ctx, const char *text); /* constant */
    void *complain_ctx;                            /* constant */
    struct wf_stack_depot depots[WF_STACK_CLASSES];
};

/* One worker's; owner only. */
struct wf_stack_cache {
    struct {
        struct wf_stack_list free;
        uint32_t promises;
    } classes[WF_STACK_CLASSES];
};

void wf_stacks_init(struct wf_stacks *stacks, const weft_allocator *allocator,
                    void (*complain)(void *ctx, const char *text), void *complain_ctx);

/* No stack is in use any more. */
void wf_stacks_fini(struct wf_stacks *stacks);

/* The class for so many bytes, or -EINVAL. 0 bytes: the default. */
static inline int wf_stack_class(size_t bytes)
{
    size_t units = (bytes == 0 ? WF_STACK_DEFAULT : bytes) - 1;
    if (units >= WF_STACK_MAX) {
        return -EINVAL;
    }
    units /= WF_STACK_MIN;
    return units == 0 ? 0 : 64 - __builtin_clzl(units);
}

static inline size_t wf_stack_class_size(unsigned class)
{
    return (size_t)WF_STACK_MIN << class;
}

/* Bytes below a stack of the class that fault. */
static inline size_t wf_stack_guard_size(unsigned class)
{
    size_t size = wf_stack_class_size(class);
    size = size < WF_STACK_GUARD_MIN ? WF_STACK_GUARD_MIN : size;
    return size > WF_STACK_GUARD_MAX ? WF_STACK_GUARD_MAX : size;
}

/* How many stacks of the class are made at a time, at first: up to 16 MiB of address
 * space, since that may be limited, but at least one. */
static inline uint32_t wf_stack_batch(unsigned class)
{
    size_t count = 16 * 1024 * 1024 / (wf_stack_class_size(class) + wf_stack_guard_size(class));
    count = count < 1 ? 1 : count;
    return count > WF_STACK_BATCH ? WF_STACK_BATCH : (uint32_t)count;
}

static inline size_t wf_stack_size(const struct wf_stack *stack)
{
    return wf_stack_class_size(stack->class);
}

/* Where the first frame goes: stacks of different colours use different lines of
 * the processor's caches, though all tops are equal in their low bits. */
static inline char *wf_stack_top(const struct wf_stack *stack)
{
    return stack->low + wf_stack_size(stack) - (size_t)stack->color * 64;
}

/* Owner, without a promise left: more of them for the cache. 0 or -ENOMEM. */
int wf_stack_promise_more(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class);

/* Owner: promises a stack of the class. 0 or -ENOMEM. */
static inline int wf_stack_promise(struct wf_stacks *stacks, struct wf_stack_cache *cache,
                                   unsigned class)
{
    if (wf_unlikely(cache->classes[class].promises == 0) &&
        wf_stack_promise_more(stacks, cache, class) != 0) {
        return -ENOMEM;
    }
    cache->classes[class].promises--;
    return 0;
}

/* Any thread without a cache: the same. */
int wf_stack_promise_outside(struct wf_stacks *stacks, unsigned class);

/* Owner, with more promises than a cache should have: gives some of them back. */
void wf_stack_promise_less(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class);

/* Owner: takes back a promise whose fiber needs no stack any more. */
static inline void wf_stack_unpromise(struct wf_stacks *stacks, struct wf_stack_cache *cache,
                                      unsigned class)
{
    if (wf_unlikely(++cache->classes[class].promises > WF_STACK_CACHED)) {
        wf_stack_promise_less(stacks, cache, class);
    }
}
void wf_stack_unpromise_outside(struct wf_stacks *stacks, unsigned class);

/* Owner, without a free stack: takes a batch, and returns one of it or NULL. */
struct wf_stack *wf_stack_refill(struct wf_stacks *stacks, struct wf_stack_cache *cache,
                                 unsigned class);

/*
 * Owner: takes a stack that was promised. NULL if all that are free are in the
 * caches of others: they give them back at the end of their tick, and the fiber
 * tries again.
 */
static inline struct wf_stack *wf_stack_take(struct wf_stacks *stacks, struct wf_stack_cache *cache,
                                             unsigned class)
{
    struct wf_stack_list *free = &cache->classes[class].free;
    struct wf_stack *stack = free->first;
    if (wf_unlikely(stack == NULL)) {
        return wf_stack_refill(stacks, cache, class);
    }
    free->first = stack->next;
    free->count--;
    return stack;
}

/* Owner, with more free stacks than a cache should have: gives some of them back. */
void wf_stack_spill(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class);

/* Owner: gives back a stack. The promise stays with the caller. */
static inline void wf_stack_give(struct wf_stacks *stacks, struct wf_stack_cache *cache,
                                 struct wf_stack *stack)
{
    struct wf_stack_list *free = &cache->classes[stack->class].free;
    stack->next = free->first;
    free->first = stack;
    if (wf_unlikely(++free->count > WF_STACK_CACHED)) {
        wf_stack_spill(stacks, cache, stack->class);
    }
}

/* Any thread without a cache and without a promise: takes a stack, made now if none is free,
 * and gives it back. One free stack keeps its memory. NULL: no memory. */
struct wf_stack *wf_stack_take_outside(struct wf_stacks *stacks, unsigned class);
void wf_stack_give_outside(struct wf_stacks *stacks, struct wf_stack *stack);

/* Owner, at the end of a tick: gives back what others wait for. */
void wf_stack_share(struct wf_stacks *stacks, struct wf_stack_cache *cache);

/* Owner, before a sleep: gives back all but a few. */
void wf_stack_flush(struct wf_stacks *stacks, struct wf_stack_cache *cache);

/*
 * One thread at a time: returns memory of free stacks to the system. Of those that
 * nobody has needed since the last trim; or, if idle, of all but a few in each
 * class. Goes on until it is done, or stop(arg) says so.
 */
void wf_stacks_trim(struct wf_stacks *stacks, bool idle, bool (*stop)(void *arg), void *arg);

struct wf_stack_stats {
    uint64_t made;     /* stacks in existence */
    uint64_t promised; /* of them: for fibers */
    uint64_t bytes;    /* of address space */
    uint64_t used_max; /* bytes of the deepest that a trim has seen */
};

/* Any thread. */
void wf_stacks_read(struct wf_stacks *stacks, struct wf_stack_stats *stats);

#endif
