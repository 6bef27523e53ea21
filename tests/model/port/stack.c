/* SPDX-License-Identifier: MIT */
/*
 * stack.c - fiber/stack.h in the model: stacks from the checker's heap.
 *
 * No caches: a stack that is given back can be had by every worker at once, so
 * whoever gives it back too early is found. Its memory is watched like any other.
 */
#include "fiber/stack.h"

#include <stdlib.h>

#include "base/assert.h"

void wf_stacks_init(struct wf_stacks *stacks, const weft_allocator *allocator,
                    void (*complain)(void *ctx, const char *text), void *complain_ctx)
{
    (void)complain;
    (void)complain_ctx;
    stacks->allocator = *allocator;
    wf_lock_init(&stacks->depots[0].lock, WF_RANK_STACK);
}

void wf_stacks_fini(struct wf_stacks *stacks)
{
    struct wf_stack *stack = stacks->depots[0].warm.first;
    while (stack != NULL) {
        struct wf_stack *next = stack->next;
        free(stack->low);
        free(stack);
        stack = next;
    }
}

int wf_stack_promise_more(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class)
{
    (void)stacks;
    cache->classes[class].promises = 1;
    return 0;
}

int wf_stack_promise_outside(struct wf_stacks *stacks, unsigned class)
{
    (void)stacks;
    (void)class;
    return 0;
}

void wf_stack_promise_less(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class)
{
    (void)stacks;
    cache->classes[class].promises = 0;
}

void wf_stack_unpromise_outside(struct wf_stacks *stacks, unsigned class)
{
    (void)stacks;
    (void)class;
}

struct wf_stack *wf_stack_refill(struct wf_stacks *stacks, struct wf_stack_cache *cache,
                                 unsigned class)
{
    (void)cache;
    struct wf_stack_depot *depot = &stacks->depots[0];
    wf_lock(&depot->lock);
    struct wf_stack *stack = depot->warm.first;
    if (stack != NULL) {
        depot->warm.first = stack->next;
    }
    wf_unlock(&depot->lock);
    if (stack == NULL) {
        stack = calloc(1, sizeof *stack);
        stack->low = aligned_alloc(64, WF_STACK_DEFAULT);
        stack->class = (uint8_t) class;
    }
    WF_ASSERT(wf_stack_size(stack) == WF_STACK_DEFAULT);
    return stack;
}

void wf_stack_spill(struct wf_stacks *stacks, struct wf_stack_cache *cache, unsigned class)
{
    struct wf_stack_list *free = &cache->classes[class].free;
    struct wf_stack *stack = free->first;
    *free = (struct wf_stack_list){ 0 };
    struct wf_stack_depot *depot = &stacks->depots[0];
    wf_lock(&depot->lock);
    stack->next = depot->warm.first;
    depot->warm.first = stack;
    wf_unlock(&depot->lock);
}

void wf_stack_share(struct wf_stacks *stacks, struct wf_stack_cache *cache)
{
    (void)stacks;
    (void)cache;
}

void wf_stack_flush(struct wf_stacks *stacks, struct wf_stack_cache *cache)
{
    (void)stacks;
    (void)cache;
}

void wf_stacks_trim(struct wf_stacks *stacks, bool idle, bool (*stop)(void *arg), void *arg)
{
    (void)stacks;
    (void)idle;
    (void)stop;
    (void)arg;
}

void wf_stacks_read(struct wf_stacks *stacks, struct wf_stack_stats *stats)
{
    (void)stacks;
    *stats = (struct wf_stack_stats){ 0 };
}
