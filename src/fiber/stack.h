/* SPDX-License-Identifier: MIT */
/*
 * stack.h - stack allocator for fibers.
 *
 * Ten classes, 16 KiB to 8 MiB of address space each. Below every stack lies a guard that faults
 * on access. Memory is committed on use, page by page. A runtime has one set of stacks. Each
 * worker has its own cache in front of it, so that a fiber starts and ends without a lock.
 *
 * A guard is as large as its stack, clamped to 64 KiB ... 1 MiB. Code compiled with
 * -fstack-clash-protection touches its frames page by page and cannot jump over any guard. For
 * other code the guard catches every frame up to its own size. A guard costs address space, and
 * page tables: 4 KiB per 2 MiB of it, which is 512 bytes for the guard of a stack of the default
 * size.
 *
 * A fiber takes its stack when it first runs, not when it is spawned: if a thousand fibers are
 * spawned and run one after another, each gets the stack of the one before, still in the
 * processor's cache. To guarantee a stack at that time, the spawn takes a promise: there are
 * never more promises than stacks.
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
    WF_STACK_JOB = WF_STACK_DEFAULT, /* of a stolen fork, which may recurse deeply */
#else
    WF_STACK_DEFAULT = 256 * 1024,
    WF_STACK_JOB = WF_STACK_MAX,
#endif
    WF_STACK_GUARD_MIN = 64 * 1024,
    WF_STACK_GUARD_MAX = 1024 * 1024,
    /* Number of stacks moved between a cache and the depot at a time. */
    WF_STACK_BATCH = 16,
#ifdef WF_MODEL
    WF_STACK_CACHED = 0, /* No caching: all workers share free stacks (tests/model/port/stack.c). */
#else
    WF_STACK_CACHED = 2 * WF_STACK_BATCH - 1, /* Maximum number of stacks in a cache. */
#endif
};

struct wf_stack {
    struct wf_stack *next; /* owner: link in a list of free stacks */
    char *low;             /* constant: lowest address, above the guard */
    uint8_t class;         /* constant */
    uint8_t color;         /* constant: offset of the first frame in the top page */
    unsigned valgrind_id;  /* constant */
};

struct wf_stack_list {
    struct wf_stack *first;
    uint32_t count;
};

struct wf_stack_chunk;

/* The stacks of one class that are in no cache. */
struct wf_stack_depot {
    _Alignas(WF_CACHE_LINE) struct wf_lock lock; /* guards all fields below */
    struct wf_stack_list warm;                   /* free, with committed memory */
    struct wf_stack_list cold;                   /* free, without memory */
    struct wf_stack_chunk *chunks;               /* newest first; only the newest may have space */
    uint32_t made;                               /* stacks in existence */
    uint32_t promises;                           /* issued to caches and not returned */
    uint32_t low_water;                          /* minimum of warm.count since the last trim */
    uint64_t used_max;                           /* bytes, maximum seen by trims */
    _Atomic(uint32_t) wanted;                    /* any thread: a fiber waits for a stack */
};

enum wf_stack_guard {
    WF_GUARD_UNKNOWN,
    WF_GUARD_MADVISE,  /* the kernel supports guards without separate mappings */
    WF_GUARD_MPROTECT, /* two mappings per stack; see vm.max_map_count */
};

struct wf_stacks {
    weft_allocator allocator;                      /* constant: for stack descriptors */
    _Atomic(uint32_t) guard;                       /* any thread: enum wf_stack_guard */
    _Atomic(uint32_t) complained;                  /* any thread: shortage was reported */
    void (*complain)(void *ctx, const char *text); /* constant */
    void *complain_ctx;                            /* constant */
    struct wf_stack_depot depots[WF_STACK_CLASSES];
};

/* One worker's cache; owner only. */
struct wf_stack_cache {
    struct {
        struct wf_stack_list free;
        uint32_t promises;
    } classes[WF_STACK_CLASSES];
};

void wf_stacks_init(struct wf_stacks *stacks, const weft_allocator *allocator,
                    void (*complain)(void *ctx, const char *text), void *complain_ctx);

/* No stack may be in use. */
void wf_stacks_fini(struct wf_stacks *stacks);

/* Returns the class for the given number of bytes (0: the default), or -EINVAL. */
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

/* Returns the size of the guard below a stack of the class. */
static inline size_t wf_stack_guard_size(unsigned class)
{
    size_t size = wf_stack_class_size(class);
    size = size < WF_STACK_GUARD_MIN ? WF_STACK_GUARD_MIN : size;
    return size > WF_STACK_GUARD_MAX ? WF_STACK_GUARD_MAX : size;
}

/* Returns the number of stacks of the class created at a time, at first: up to 16 MiB of address
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

/* Returns the address of the first frame. Stacks of different colors use different lines of the
 * processor's caches, although the low bits of all tops are equal. */
static inline char *wf_stack_top(const struct wf_stack *stack)
{
    return stack->low + wf_stack_size(stack) - (size_t)stack->color * 64;
}

/* Owner only, when the cache has no promise left: gets more. Returns 0 or -ENOMEM. */
int wf_stack_promise_more(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class);

/* Owner only: promises a stack of the class. Returns 0 or -ENOMEM. */
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

/* Same as wf_stack_promise(), for any thread without a cache. */
int wf_stack_promise_outside(struct wf_stacks *stacks, unsigned class);

/* Owner only, when the cache has too many promises: returns some to the depot. */
void wf_stack_promise_less(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class);

/* Owner only: returns the promise of a fiber that no longer needs a stack. */
static inline void wf_stack_unpromise(struct wf_stacks *stacks, struct wf_stack_cache *cache,
                                      unsigned class)
{
    if (wf_unlikely(++cache->classes[class].promises > WF_STACK_CACHED)) {
        wf_stack_promise_less(stacks, cache, class);
    }
}
void wf_stack_unpromise_outside(struct wf_stacks *stacks, unsigned class);

/* Owner only, when the cache is empty: takes a batch. Returns one stack of it, or NULL. */
struct wf_stack *wf_stack_refill(struct wf_stacks *stacks, struct wf_stack_cache *cache,
                                 unsigned class);

/*
 * Owner only: takes a promised stack. Returns NULL if all free stacks are in the caches of other
 * workers: these return them at the end of their tick, and the fiber tries again.
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

/* Owner only, when the cache has too many free stacks: returns a batch to the depot. */
void wf_stack_spill(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class);

/* Owner only: returns a stack. The caller keeps the promise. */
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

/* For any thread without a cache and without a promise: takes a stack, creating one if none is
 * free; returns a stack. One free stack keeps its memory. Returns NULL if there is no memory. */
struct wf_stack *wf_stack_take_outside(struct wf_stacks *stacks, unsigned class);
void wf_stack_give_outside(struct wf_stacks *stacks, struct wf_stack *stack);

/* Owner only, at the end of a tick: returns free stacks that other workers wait for. */
void wf_stack_share(struct wf_stacks *stacks, struct wf_stack_cache *cache);

/* Owner only, before the worker sleeps: returns most of the cache to the depot. */
void wf_stack_flush(struct wf_stacks *stacks, struct wf_stack_cache *cache);

/*
 * Returns memory of free stacks to the system: of stacks that were not needed since the last
 * trim, or, if idle, of all but a few in each class. Runs until done, or until stop(arg) returns
 * true. One thread at a time.
 */
void wf_stacks_trim(struct wf_stacks *stacks, bool idle, bool (*stop)(void *arg), void *arg);

struct wf_stack_stats {
    uint64_t made;     /* number of stacks */
    uint64_t promised; /* promised to fibers or caches */
    uint64_t bytes;    /* of address space */
    uint64_t used_max; /* depth in bytes of the deepest stack seen by a trim */
};

/* Any thread. Reads the statistics. */
void wf_stacks_read(struct wf_stacks *stacks, struct wf_stack_stats *stats);

#endif
