/* SPDX-License-Identifier: MIT */
/*
 * heap.c - the memory of the test: allocations and stacks.
 *
 * One range at a fixed address, so that addresses are the same in each run of
 * the program: code that hashes pointers behaves the same in a replay.
 *
 *   arena of T0 | arena of T1 | ... | guard, stack of T0 | guard, stack of T1 | ...
 */
#include "heap.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "report.h"
#include "shadow.h"

#define BASE ((uintptr_t)0x200000000000)

enum {
    PAGE = 4096,
    REDZONE = 32,
    BLOCKS_MAX = 4096, /* of one thread */
    FILL_FRESH = 0xa5,
    ARENAS_BYTES = MC_THREADS_MAX * MC_ARENA_BYTES,
    ALL_BYTES = ARENAS_BYTES + MC_THREADS_MAX * MC_STACK_BYTES,
};

struct block {
    uintptr_t addr;
    size_t size;
    uint32_t clock; /* of the allocating thread */
    unsigned freed_by;
    bool is_freed;
    const void *alloc_pc;
    const void *free_pc;
};

struct arena {
    size_t used;
    unsigned count;
    struct block blocks[BLOCKS_MAX];
};

static struct arena arenas[MC_THREADS_MAX];

void mc_heap_start(void)
{
    void *memory = mmap((void *)BASE, ALL_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != (void *)BASE) {
        mc_report_limit("the address range of heap.c is taken");
    }
    for (unsigned i = 0; i < MC_THREADS_MAX; i++) {
        (void)mprotect(mc_heap_stack(i) - MC_STACK_BYTES, PAGE, PROT_NONE);
    }
}

void mc_heap_reset(void)
{
    for (unsigned i = 0; i < MC_THREADS_MAX; i++) {
        arenas[i].used = 0;
        arenas[i].count = 0;
    }
}

uintptr_t mc_heap_first(void)
{
    return BASE;
}

uintptr_t mc_heap_end(void)
{
    return BASE + ALL_BYTES;
}

/* The end of the stack, since it grows down. */
char *mc_heap_stack(unsigned thread)
{
    return (char *)BASE + ARENAS_BYTES + (size_t)(thread + 1) * MC_STACK_BYTES;
}

bool mc_heap_owns(const void *memory)
{
    return (uintptr_t)memory >= BASE && (uintptr_t)memory < BASE + ARENAS_BYTES;
}

static unsigned arena_of(uintptr_t addr)
{
    return (unsigned)((addr - BASE) / MC_ARENA_BYTES);
}

void *mc_heap_alloc(size_t size, size_t align, const void *pc)
{
    struct arena *arena = &arenas[mc_self->index];
    uintptr_t base = BASE + (uintptr_t)mc_self->index * MC_ARENA_BYTES;
    align = align < 16 ? 16 : align;
    uintptr_t addr = (base + arena->used + REDZONE + align - 1) & ~(uintptr_t)(align - 1);
    if (size > MC_ARENA_BYTES || addr + size > base + MC_ARENA_BYTES) {
        mc_report_limit("a thread allocates more than MC_ARENA_BYTES of heap.h");
    }
    if (arena->count == BLOCKS_MAX) {
        mc_report_limit("a thread allocates more often than BLOCKS_MAX of heap.c");
    }
    arena->used = addr + size - base;
    arena->blocks[arena->count++] = (struct block){
        .addr = addr,
        .size = size,
        .clock = mc_self->current[mc_self->index],
        .alloc_pc = pc,
    };
    memset((void *)addr, FILL_FRESH, size);
    return (void *)addr;
}

/* The last block that begins at or before this address, or NULL. */
static struct block *find(uintptr_t addr)
{
    struct arena *arena = &arenas[arena_of(addr)];
    unsigned first = 0;
    unsigned end = arena->count;
    while (first < end) {
        unsigned middle = first + (end - first) / 2;
        if (arena->blocks[middle].addr <= addr) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first == 0 ? NULL : &arena->blocks[first - 1];
}

/* An address one past the end still belongs to the block, for a free. */
static struct block *find_block(uintptr_t addr)
{
    struct block *block = find(addr);
    bool is_inside = block != NULL && (addr < block->addr + block->size || addr == block->addr);
    return is_inside ? block : NULL;
}

size_t mc_heap_size(const void *memory)
{
    const struct block *block = find_block((uintptr_t)memory);
    return block == NULL ? 0 : block->size;
}

bool mc_heap_is_live(uintptr_t addr)
{
    if (!mc_heap_owns((const void *)addr)) {
        return true;
    }
    const struct block *block = find_block(addr);
    return block != NULL && !block->is_freed;
}

void mc_heap_free(void *memory, const void *pc)
{
    char where[256];
    uintptr_t addr = (uintptr_t)memory;
    struct block *block = find_block(addr);
    if (block == NULL || block->addr != addr) {
        mc_report_where(pc, where, sizeof where);
        mc_fail(MC_BAD_FREE, "T%u frees memory at %s that was not allocated", mc_self->index,
                where);
    }
    if (block->is_freed) {
        char before[256];
        mc_report_where(pc, where, sizeof where);
        mc_report_where(block->free_pc, before, sizeof before);
        mc_fail(MC_BAD_FREE, "T%u frees memory at %s that T%u has freed at %s", mc_self->index,
                where, block->freed_by, before);
    }
    mc_heap_check(addr, block->size, pc);
    /* Whoever has used it must be done. */
    mc_shadow_free(addr, block->size, pc);
    block->is_freed = true;
    block->freed_by = mc_self->index;
    block->free_pc = pc;
}

static _Noreturn void fail_access(uintptr_t addr, const struct block *block, const void *pc)
{
    char where[256];
    char what[512];
    mc_report_where(pc, where, sizeof where);
    if (block == NULL) {
        mc_fail(MC_USE_AFTER_FREE, "T%u accesses unallocated heap memory %#lx at %s",
                mc_self->index, (unsigned long)addr, where);
    }
    mc_report_address(addr, what, sizeof what);
    mc_fail(MC_USE_AFTER_FREE, "T%u accesses %s at %s", mc_self->index, what, where);
}

void mc_heap_check(uintptr_t addr, size_t size, const void *pc)
{
    if (!mc_heap_owns((const void *)addr)) {
        return;
    }
    const struct block *block = find_block(addr);
    if (block == NULL || block->is_freed || addr + size > block->addr + block->size) {
        fail_access(addr, block, pc);
    }
    unsigned owner = arena_of(addr);
    if (owner != mc_self->index && block->clock > mc_self->current[owner]) {
        char where[256];
        char what[512];
        mc_report_where(pc, where, sizeof where);
        mc_report_address(addr, what, sizeof what);
        mc_fail(MC_RACE, "T%u accesses %s at %s, and is not ordered after the allocation",
                mc_self->index, what, where);
    }
}

void mc_heap_check_leaks(void)
{
    for (unsigned i = 0; i < MC_THREADS_MAX; i++) {
        for (unsigned j = 0; j < arenas[i].count; j++) {
            const struct block *block = &arenas[i].blocks[j];
            if (!block->is_freed) {
                char where[256];
                mc_report_where(block->alloc_pc, where, sizeof where);
                mc_report_fail(MC_LEAK, "%zu bytes that T%u has allocated at %s are never freed",
                               block->size, i, where);
                return;
            }
        }
    }
}

bool mc_heap_describe(uintptr_t addr, char *text, size_t size)
{
    if (addr < BASE || addr >= BASE + ALL_BYTES) {
        return false;
    }
    if (addr >= BASE + ARENAS_BYTES) {
        size_t thread = (addr - BASE - ARENAS_BYTES) / MC_STACK_BYTES;
        size_t below = (size_t)(mc_heap_stack((unsigned)thread) - (char *)addr);
        (void)snprintf(text, size, "stack of T%zu -%#zx", thread, below);
        return true;
    }
    const struct block *block = find(addr);
    if (block == NULL) {
        return false;
    }
    const struct arena *arena = &arenas[arena_of(addr)];
    (void)snprintf(text, size, "block %u of T%u +%#lx%s%s", (unsigned)(block - arena->blocks),
                   arena_of(addr), (unsigned long)(addr - block->addr),
                   addr >= block->addr + block->size ? ", past its end" : "",
                   block->is_freed ? ", freed" : "");
    return true;
}
