/* SPDX-License-Identifier: MIT */
/*
 * stack.c - stack allocator for fibers.
 *
 *   worker's cache       free stacks and promises, without a lock
 *        | ^               batches of 16
 *        v |
 *   depot of a class     free stacks and promises, under a lock
 *        | ^               created one by one, memory returned page by page
 *        v |
 *   chunks               mappings, each as large as all before; smaller ones where
 *                          address space is limited
 *
 * Promises. In each class
 *
 *   stacks created >= promises issued >= fibers that have or will need a stack
 *
 * since a promise is issued only if a stack exists for it, and a fiber keeps its promise until
 * it has returned its stack. So a fiber that is about to start finds a stack in its worker's
 * cache or in the depot, or else at least one is free in another worker's cache. In the last
 * case the depot creates one more. Only if there is no memory for it does the fiber wait, until
 * the other workers see the flag "wanted" at the end of their tick.
 *
 * Guards. MADV_GUARD_INSTALL marks pages without a mapping of their own, so their number is
 * unlimited. Before Linux 6.13 mprotect() has to do. It splits the mapping at each stack and
 * fails at about 32 000 stacks. Guards survive when memory is returned with MADV_DONTNEED.
 *
 * Huge pages are turned off: the first touch of a stack would commit 2 MiB.
 */
#include "fiber/stack.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/futex.h"
#include "fiber/valgrind.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

enum {
    CHUNK_STACKS_MAX = 4096,
    COLORS = 32, /* Half a page: the other half is enough for most fibers. */
    /* Free stacks that stay committed in an idle class. */
    KEEP_IDLE = 64,
    PAGES_AT_ONCE = 512,
};

struct wf_stack_chunk {
    struct wf_stack_chunk *next;
    char *map;
    size_t map_bytes;
    uint32_t count; /* capacity in stacks */
    uint32_t made;
    struct wf_stack stacks[];
};

/*
 * Distance between stacks: the stack and its guard, rounded up to an odd number of pages.
 * Otherwise all tops would map to a few sets of the TLB, which is indexed by the low bits of the
 * page number, and switching among a hundred stacks would miss it.
 */
static size_t stride(unsigned class)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (wf_stack_class_size(class) + wf_stack_guard_size(class) + page - 1) / page;
    return (pages | 1) * page;
}

static size_t chunk_bytes(uint32_t count)
{
    return sizeof(struct wf_stack_chunk) + count * sizeof(struct wf_stack);
}

static void push(struct wf_stack_list *list, struct wf_stack *stack)
{
    stack->next = list->first;
    list->first = stack;
    list->count++;
}

static struct wf_stack *pop(struct wf_stack_list *list)
{
    struct wf_stack *stack = list->first;
    if (stack != NULL) {
        list->first = stack->next;
        list->count--;
    }
    return stack;
}

static void move(struct wf_stack_list *to, struct wf_stack_list *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        push(to, pop(from));
    }
}

void wf_stacks_init(struct wf_stacks *stacks, const weft_allocator *allocator,
                    void (*complain)(void *ctx, const char *text), void *complain_ctx)
{
    *stacks = (struct wf_stacks){
        .allocator = *allocator,
        .complain = complain,
        .complain_ctx = complain_ctx,
    };
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        wf_lock_init(&stacks->depots[class].lock, WF_RANK_STACK);
    }
}

static void free_chunk(struct wf_stacks *stacks, struct wf_stack_chunk *chunk)
{
    for (uint32_t i = 0; i < chunk->made; i++) {
        wf_valgrind_stack_gone(chunk->stacks[i].valgrind_id);
    }
    (void)munmap(chunk->map, chunk->map_bytes);
    wf_free(&stacks->allocator, chunk, chunk_bytes(chunk->count), _Alignof(struct wf_stack_chunk));
}

void wf_stacks_fini(struct wf_stacks *stacks)
{
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        struct wf_stack_depot *depot = &stacks->depots[class];
        struct wf_stack_chunk *chunk = depot->chunks;
        while (chunk != NULL) {
            struct wf_stack_chunk *next = chunk->next;
            free_chunk(stacks, chunk);
            chunk = next;
        }
        depot->chunks = NULL;
    }
}

/* Reports, once per set of stacks and without the lock, why no stack can be created. */
static void complain(struct wf_stacks *stacks, unsigned class, uint32_t made, const char *why)
{
    if (why == NULL) {
        return;
    }
    /* relaxed: reported once, in any order. */
    if (wf_xchg_relaxed(&stacks->complained, 1u) != 0 || stacks->complain == NULL) {
        return;
    }
    char text[256];
    (void)snprintf(text, sizeof text, "no stack for another fiber: %s (%u stacks of %zu KiB exist)",
                   why, made, wf_stack_class_size(class) / 1024);
    stacks->complain(stacks->complain_ctx, text);
}

/* Maps address space for up to *count stacks, and sets *count to the number that fit. Halves the
 * number until the mapping succeeds, since address space may be limited. Returns NULL if not
 * even one fits. */
static void *map_stacks(unsigned class, uint32_t *count)
{
    for (;;) {
        void *map = mmap(NULL, *count * stride(class), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (map != MAP_FAILED) {
            return map;
        }
        if (*count == 1) {
            return NULL;
        }
        *count /= 2;
    }
}

/* Under the lock. Maps space for as many stacks as exist already, if possible. */
static struct wf_stack_chunk *add_chunk(struct wf_stacks *stacks, unsigned class, const char **why)
{
    struct wf_stack_depot *depot = &stacks->depots[class];
    uint32_t count = depot->made;
    count = count < wf_stack_batch(class) ? wf_stack_batch(class) : count;
    count = count > CHUNK_STACKS_MAX ? CHUNK_STACKS_MAX : count;
    void *map = map_stacks(class, &count);
    if (map == NULL) {
        *why = "the system gives no more address space; see ulimit -v and vm.overcommit_memory";
        return NULL;
    }
    size_t bytes = count * stride(class);
    struct wf_stack_chunk *chunk =
        wf_alloc(&stacks->allocator, chunk_bytes(count), _Alignof(struct wf_stack_chunk));
    if (chunk == NULL) {
        (void)munmap(map, bytes);
        return NULL;
    }
    (void)madvise(map, bytes, MADV_NOHUGEPAGE); /* Fails on a kernel without huge pages. */
    *chunk = (struct wf_stack_chunk){
        .next = depot->chunks, .map = map, .map_bytes = bytes, .count = count
    };
    depot->chunks = chunk;
    return chunk;
}

/* An emulator may accept advice that it does not know: have the kernel read the page. */
static bool faults(char *at)
{
    return wf_futex_faults((void *)at);
}

/* Makes the pages fault. Returns false if that is not possible. */
static bool install_guard(struct wf_stacks *stacks, char *at, size_t size, const char **why)
{
    /* relaxed: every thread that probes gets the same result. */
    uint32_t guard = wf_load_relaxed(&stacks->guard);
    if (guard != WF_GUARD_MPROTECT) {
        bool installed = madvise(at, size, MADV_GUARD_INSTALL) == 0;
        if (installed && (guard == WF_GUARD_MADVISE || faults(at))) {
            /* relaxed: every prober gets the same result, as above. */
            wf_store_relaxed(&stacks->guard, (uint32_t)WF_GUARD_MADVISE);
            return true;
        }
        /* EINVAL: the kernel is too old. Others: a sandbox refuses. ENOMEM: may succeed later. */
        if (installed || errno != ENOMEM) {
            /* relaxed: every prober gets the same result, as above. */
            wf_store_relaxed(&stacks->guard, (uint32_t)WF_GUARD_MPROTECT);
        }
    }
    if (mprotect(at, size, PROT_NONE) == 0) {
        return true;
    }
    *why =
        "each needs two mappings of its own before Linux 6.13, where a sandbox forbids madvise(), "
        "and where the system has no memory for its guard pages; raise vm.max_map_count";
    return false;
}

/* Under the lock. Creates a stack with its guard. Returns NULL if that fails. */
static struct wf_stack *make(struct wf_stacks *stacks, unsigned class, const char **why)
{
    struct wf_stack_depot *depot = &stacks->depots[class];
    struct wf_stack_chunk *chunk = depot->chunks;
    if (chunk == NULL || chunk->made == chunk->count) {
        chunk = add_chunk(stacks, class, why);
    }
    if (chunk == NULL) {
        return NULL;
    }
    char *guard = chunk->map + chunk->made * stride(class);
    size_t guard_size = wf_stack_guard_size(class);
    if (!install_guard(stacks, guard, guard_size, why)) {
        return NULL;
    }
    struct wf_stack *stack = &chunk->stacks[chunk->made++];
    *stack = (struct wf_stack){
        .low = guard + guard_size,
        .class = (uint8_t) class,
        .color = (uint8_t)(depot->made % COLORS),
    };
    stack->valgrind_id = wf_valgrind_stack_made(stack->low, wf_stack_size(stack));
    depot->made++;
    return stack;
}

/* Under the lock. Issues up to count promises and creates stacks for them. Returns their
 * number. */
static uint32_t promise(struct wf_stacks *stacks, unsigned class, uint32_t count, const char **why)
{
    struct wf_stack_depot *depot = &stacks->depots[class];
    uint32_t given = 0;
    while (given < count) {
        if (depot->promises == depot->made) {
            struct wf_stack *stack = make(stacks, class, why);
            if (stack == NULL) {
                break;
            }
            push(&depot->cold, stack);
        }
        depot->promises++;
        given++;
    }
    return given;
}

int wf_stack_promise_more(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class)
{
    struct wf_stack_depot *depot = &stacks->depots[class];
    const char *why = NULL;
    wf_lock(&depot->lock);
    cache->classes[class].promises = promise(stacks, class, wf_stack_batch(class), &why);
    uint32_t made = depot->made;
    wf_unlock(&depot->lock);
    complain(stacks, class, made, why);
    return cache->classes[class].promises > 0 ? 0 : -ENOMEM;
}

int wf_stack_promise_outside(struct wf_stacks *stacks, unsigned class)
{
    struct wf_stack_depot *depot = &stacks->depots[class];
    const char *why = NULL;
    wf_lock(&depot->lock);
    uint32_t given = promise(stacks, class, 1, &why);
    uint32_t made = depot->made;
    wf_unlock(&depot->lock);
    complain(stacks, class, made, why);
    return given == 1 ? 0 : -ENOMEM;
}

void wf_stack_unpromise_outside(struct wf_stacks *stacks, unsigned class)
{
    struct wf_stack_depot *depot = &stacks->depots[class];
    wf_lock(&depot->lock);
    WF_ASSERT(depot->promises > 0);
    depot->promises--;
    wf_unlock(&depot->lock);
}

/* Owner only. Returns count free stacks to the depot, and all promises beyond keep. */
static void give_back(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class,
                      uint32_t count, uint32_t keep)
{
    struct wf_stack_depot *depot = &stacks->depots[class];
    uint32_t promises = cache->classes[class].promises;
    uint32_t surplus = promises > keep ? promises - keep : 0;
    wf_lock(&depot->lock);
    move(&depot->warm, &cache->classes[class].free, count);
    depot->promises -= surplus;
    wf_unlock(&depot->lock);
    cache->classes[class].promises -= surplus;
}

void wf_stack_promise_less(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class)
{
    give_back(stacks, cache, class, 0, WF_STACK_BATCH);
}

/* Under the lock. Takes up to count free stacks, those with memory first. */
static void take_free(struct wf_stack_depot *depot, struct wf_stack_list *to, uint32_t count)
{
    uint32_t warm = depot->warm.count < count ? depot->warm.count : count;
    uint32_t cold = depot->cold.count < count - warm ? depot->cold.count : count - warm;
    move(to, &depot->warm, warm);
    move(to, &depot->cold, cold);
    if (depot->warm.count < depot->low_water) {
        depot->low_water = depot->warm.count;
    }
}

struct wf_stack *wf_stack_refill(struct wf_stacks *stacks, struct wf_stack_cache *cache,
                                 unsigned class)
{
    struct wf_stack_depot *depot = &stacks->depots[class];
    struct wf_stack_list *list = &cache->classes[class].free;
    const char *why = NULL;
    wf_lock(&depot->lock);
    take_free(depot, list, WF_STACK_BATCH);
    struct wf_stack *stack = pop(list);
    if (stack == NULL) {
        stack = make(stacks, class, &why);
    }
    if (stack == NULL) {
        /* relaxed: a request; stacks given in response pass through the lock. */
        wf_store_relaxed(&depot->wanted, 1u);
    }
    uint32_t made = depot->made;
    wf_unlock(&depot->lock);
    complain(stacks, class, made, why);
    return stack;
}

struct wf_stack *wf_stack_take_outside(struct wf_stacks *stacks, unsigned class)
{
    struct wf_stack_depot *depot = &stacks->depots[class];
    struct wf_stack_list list = { 0 };
    const char *why = NULL;
    wf_lock(&depot->lock);
    take_free(depot, &list, 1);
    struct wf_stack *stack = list.first != NULL ? list.first : make(stacks, class, &why);
    uint32_t made = depot->made;
    wf_unlock(&depot->lock);
    complain(stacks, class, made, why);
    return stack;
}

void wf_stack_give_outside(struct wf_stacks *stacks, struct wf_stack *stack)
{
    struct wf_stack_depot *depot = &stacks->depots[stack->class];
    wf_lock(&depot->lock);
    bool is_kept = depot->warm.count == 0;
    if (is_kept) {
        push(&depot->warm, stack);
    }
    wf_unlock(&depot->lock);
    if (!is_kept) {
        (void)madvise(stack->low, wf_stack_size(stack), MADV_DONTNEED);
        wf_lock(&depot->lock);
        push(&depot->cold, stack);
        wf_unlock(&depot->lock);
    }
}

void wf_stack_spill(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class)
{
    give_back(stacks, cache, class, WF_STACK_BATCH, UINT32_MAX);
}

void wf_stack_share(struct wf_stacks *stacks, struct wf_stack_cache *cache)
{
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        struct wf_stack_depot *depot = &stacks->depots[class];
        /* relaxed: a request; stacks given in response pass through the lock. */
        if (wf_unlikely(wf_load_relaxed(&depot->wanted) != 0) &&
            cache->classes[class].free.count > 0) {
            /* relaxed: a worker that still needs a stack sets it again. */
            wf_store_relaxed(&depot->wanted, 0u);
            give_back(stacks, cache, class, cache->classes[class].free.count, UINT32_MAX);
        }
    }
}

void wf_stack_flush(struct wf_stacks *stacks, struct wf_stack_cache *cache)
{
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        uint32_t count = cache->classes[class].free.count;
        if (count > 1 || cache->classes[class].promises > WF_STACK_BATCH) {
            give_back(stacks, cache, class, count > 0 ? count - 1 : 0, WF_STACK_BATCH);
        }
    }
}

/* Returns how deep the pages of a stack are committed, in bytes from its top. */
static size_t used_bytes(const struct wf_stack *stack)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = wf_stack_size(stack) / page;
    unsigned char resident[PAGES_AT_ONCE];
    for (size_t at = 0; at < pages; at += PAGES_AT_ONCE) {
        size_t count = pages - at < PAGES_AT_ONCE ? pages - at : PAGES_AT_ONCE;
        if (mincore(stack->low + at * page, count * page, resident) != 0) {
            return 0;
        }
        for (size_t i = 0; i < count; i++) {
            if ((resident[i] & 1) != 0) {
                return (pages - at - i) * page;
            }
        }
    }
    return 0;
}

/* Returns the memory of up to count warm stacks to the system. */
static void trim(struct wf_stack_depot *depot, uint32_t count)
{
    struct wf_stack_list out = { 0 };
    wf_lock(&depot->lock);
    move(&out, &depot->warm, depot->warm.count < count ? depot->warm.count : count);
    if (depot->warm.count < depot->low_water) {
        depot->low_water = depot->warm.count;
    }
    wf_unlock(&depot->lock);

    size_t used_max = 0;
    for (struct wf_stack *stack = out.first; stack != NULL; stack = stack->next) {
        size_t used = used_bytes(stack);
        used_max = used > used_max ? used : used_max;
        (void)madvise(stack->low, wf_stack_size(stack), MADV_DONTNEED);
    }

    wf_lock(&depot->lock);
    move(&depot->cold, &out, out.count);
    depot->used_max = used_max > depot->used_max ? used_max : depot->used_max;
    wf_unlock(&depot->lock);
}

/* Returns the number of stacks to trim, and starts a new period. */
static uint32_t surplus_of(struct wf_stack_depot *depot, bool idle)
{
    wf_lock(&depot->lock);
    uint32_t warm = depot->warm.count;
    uint32_t surplus = depot->low_water;
    if (idle) {
        surplus = warm > KEEP_IDLE ? warm - KEEP_IDLE : 0;
    }
    depot->low_water = warm;
    wf_unlock(&depot->lock);
    return surplus;
}

void wf_stacks_trim(struct wf_stacks *stacks, bool idle, bool (*stop)(void *arg), void *arg)
{
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        struct wf_stack_depot *depot = &stacks->depots[class];
        uint32_t left = surplus_of(depot, idle);
        while (left > 0 && !stop(arg)) {
            uint32_t count = left < WF_STACK_BATCH ? left : WF_STACK_BATCH;
            trim(depot, count);
            left -= count;
        }
    }
}

void wf_stacks_read(struct wf_stacks *stacks, struct wf_stack_stats *stats)
{
    *stats = (struct wf_stack_stats){ 0 };
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        struct wf_stack_depot *depot = &stacks->depots[class];
        wf_lock(&depot->lock);
        stats->made += depot->made;
        stats->promised += depot->promises;
        stats->bytes += depot->made * stride(class);
        if (depot->used_max > stats->used_max) {
            stats->used_max = depot->used_max;
        }
        wf_unlock(&depot->lock);
    }
}
