/* SPDX-License-Identifier: MIT */
/*
 * shadow.c - finds data races: who has accessed each byte, and when.
 *
 * For each byte the last plain write, and who has since read it plainly, accessed
 * it atomically, or stored to it atomically. Two accesses race if neither is
 * ordered before the other by the threads' vector clocks, one of them writes, and
 * one of them is plain. This finds a race in whatever order the two come, so plain
 * accesses need no scheduling.
 *
 * The bytes of a word are usually accessed together, so eight of them share one
 * record as long as all accesses cover the same ones; after that each has its own.
 *
 * The tables mirror two ranges: heap.c's, and the globals of the program. They are
 * never cleared: a cell is valid if it has the generation of this execution.
 */
#include "shadow.h"

#include <string.h>
#include <sys/mman.h>

#include "heap.h"
#include "location.h"
#include "report.h"

enum {
    NOBODY = 0xff,
    MANY = 0xfe,
    GRAIN = 8,
    PAGE_GRAINS = 512, /* grains of 4096 bytes */
};

/* An access of one thread. */
struct visit {
    uint32_t clock;
    const void *pc;
};

/* Who has accessed it: nobody, one thread, or with an entry for each, many. */
struct who {
    uint8_t thread;
    struct visit visit;
    struct visit *visits;
};

struct record {
    struct who write;        /* the last plain write */
    struct who read;         /* plain reads since */
    struct who atomic;       /* atomic accesses since */
    struct who atomic_write; /* those of them that write */
};

struct cell {
    uint64_t generation;
    uint8_t mask;         /* the bytes that record stands for */
    struct record *bytes; /* once they differ, GRAIN records */
    struct record record;
};

struct range {
    uintptr_t first;
    uintptr_t end;
    struct cell *cells;
    uint64_t *pages; /* the generation in which a page was last touched */
};

static struct range ranges[2];

static const struct record nothing = {
    .write = { .thread = NOBODY },
    .read = { .thread = NOBODY },
    .atomic = { .thread = NOBODY },
    .atomic_write = { .thread = NOBODY },
};

static void *reserve(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        mc_report_limit("no address space for the shadow memory");
    }
    return memory;
}

static struct range make_range(uintptr_t first, uintptr_t end)
{
    uintptr_t aligned = first & ~(uintptr_t)(GRAIN - 1);
    size_t grains = (end - aligned + GRAIN - 1) / GRAIN;
    return (struct range){
        .first = aligned,
        .end = end,
        .cells = reserve(grains * sizeof(struct cell)),
        .pages = reserve((grains / PAGE_GRAINS + 1) * sizeof(uint64_t)),
    };
}

void mc_shadow_start(uintptr_t first, uintptr_t end)
{
    ranges[0] = make_range(mc_heap_first(), mc_heap_end());
    ranges[1] = make_range(first, end);
}

static struct range *range_of(uintptr_t addr)
{
    for (unsigned i = 0; i < 2; i++) {
        if (addr >= ranges[i].first && addr < ranges[i].end) {
            return &ranges[i];
        }
    }
    return NULL;
}

/* --- Sets of threads -------------------------------------------------------- */

/* Returns an access that is not ordered before this thread, or NULL. */
static const struct visit *find_unordered(const struct who *who, unsigned *thread)
{
    const uint32_t *known = mc_self->current;
    if (who->thread == NOBODY) {
        return NULL;
    }
    if (who->thread != MANY) {
        *thread = who->thread;
        bool is_ordered = who->thread == mc_self->index || who->visit.clock <= known[who->thread];
        return is_ordered ? NULL : &who->visit;
    }
    for (unsigned i = 0; i < mc_exec.thread_count; i++) {
        if (i != mc_self->index && who->visits[i].clock > known[i]) {
            *thread = i;
            return &who->visits[i];
        }
    }
    return NULL;
}

static void add(struct who *who, const void *pc)
{
    unsigned self = mc_self->index;
    struct visit visit = { .clock = mc_self->current[self], .pc = pc };
    unsigned other;
    if (who->thread == MANY) {
        who->visits[self] = visit;
    } else if (find_unordered(who, &other) == NULL) {
        /* Whoever is ordered after this access is ordered after the old one. */
        who->thread = (uint8_t)self;
        who->visit = visit;
    } else {
        who->visits = mc_scratch(MC_THREADS_MAX * sizeof *who->visits);
        memset(who->visits, 0, MC_THREADS_MAX * sizeof *who->visits);
        who->visits[who->thread] = who->visit;
        who->visits[self] = visit;
        who->thread = MANY;
    }
}

/* --- Checks ----------------------------------------------------------------- */

enum access {
    PLAIN_READ,
    PLAIN_WRITE,
    ATOMIC_READ,
    ATOMIC_WRITE,
    FREE,
};

static const char *const access_names[] = {
    [PLAIN_READ] = "reads",
    [PLAIN_WRITE] = "writes",
    [ATOMIC_READ] = "atomically reads",
    [ATOMIC_WRITE] = "atomically writes",
    [FREE] = "frees",
};

static void must_be_ordered(const struct who *who, const char *did, enum access access,
                            uintptr_t addr, const void *pc)
{
    unsigned other = 0;
    const struct visit *visit = find_unordered(who, &other);
    if (visit == NULL) {
        return;
    }
    char what[512];
    char here[256];
    char there[256];
    mc_report_address(addr, what, sizeof what);
    mc_report_where(pc, here, sizeof here);
    mc_report_where(visit->pc, there, sizeof there);
    mc_fail(access == FREE ? MC_USE_AFTER_FREE : MC_RACE,
            "T%u %s %s at %s; T%u %s it at %s, and nothing orders the two", mc_self->index,
            access_names[access], what, here, other, did, there);
}

/* Checks an access against the record of these bytes, and adds it. */
static void apply(struct record *record, enum access access, uintptr_t addr, size_t size,
                  const void *pc)
{
    must_be_ordered(&record->write, "has written", access, addr, pc);
    switch (access) {
    case PLAIN_READ:
        must_be_ordered(&record->atomic_write, "has atomically written", access, addr, pc);
        add(&record->read, pc);
        break;
    case FREE:
        must_be_ordered(&record->read, "has read", access, addr, pc);
        must_be_ordered(&record->atomic, "has atomically accessed", access, addr, pc);
        break;
    case PLAIN_WRITE:
        must_be_ordered(&record->read, "has read", access, addr, pc);
        must_be_ordered(&record->atomic, "has atomically accessed", access, addr, pc);
        if (record->atomic.thread != NOBODY) {
            mc_location_forget(addr, size);
        }
        *record = nothing;
        add(&record->write, pc);
        break;
    case ATOMIC_WRITE:
        must_be_ordered(&record->read, "has read", access, addr, pc);
        add(&record->atomic_write, pc);
        add(&record->atomic, pc);
        break;
    case ATOMIC_READ:
        add(&record->atomic, pc);
        break;
    }
}

static void copy_visits(struct who *who)
{
    if (who->thread == MANY) {
        const struct visit *visits = who->visits;
        who->visits = mc_scratch(MC_THREADS_MAX * sizeof *visits);
        memcpy(who->visits, visits, MC_THREADS_MAX * sizeof *visits);
    }
}

static void split(struct cell *cell)
{
    cell->bytes = mc_scratch(GRAIN * sizeof *cell->bytes);
    for (unsigned i = 0; i < GRAIN; i++) {
        struct record *byte = &cell->bytes[i];
        *byte = cell->mask & 1u << i ? cell->record : nothing;
        copy_visits(&byte->write);
        copy_visits(&byte->read);
        copy_visits(&byte->atomic);
        copy_visits(&byte->atomic_write);
    }
}

/* Some bytes of one grain. */
static void access_grain(struct range *range, uintptr_t addr, size_t size, enum access access,
                         const void *pc)
{
    size_t grain = (addr - range->first) / GRAIN;
    unsigned shift = addr % GRAIN;
    uint8_t mask = (uint8_t)(((1u << size) - 1) << shift);
    struct cell *cell = &range->cells[grain];
    if (cell->generation != mc_exec.generation) {
        cell->generation = mc_exec.generation;
        cell->mask = mask;
        cell->bytes = NULL;
        cell->record = nothing;
        range->pages[grain / PAGE_GRAINS] = mc_exec.generation;
    }
    if (cell->mask == mask && cell->bytes == NULL) {
        apply(&cell->record, access, addr, size, pc);
        return;
    }
    if (cell->bytes == NULL) {
        split(cell);
    }
    for (unsigned i = 0; i < GRAIN; i++) {
        if (mask & 1u << i) {
            apply(&cell->bytes[i], access, addr - shift + i, 1, pc);
        }
    }
}

static void access_all(uintptr_t addr, size_t size, enum access access, const void *pc)
{
    struct range *range = range_of(addr);
    if (range == NULL) {
        return;
    }
    while (size > 0) {
        size_t here = GRAIN - addr % GRAIN;
        here = here < size ? here : size;
        access_grain(range, addr, here, access, pc);
        addr += here;
        size -= here;
    }
}

void mc_shadow_plain(uintptr_t addr, size_t size, bool is_write, const void *pc)
{
    mc_heap_check(addr, size, pc);
    access_all(addr, size, is_write ? PLAIN_WRITE : PLAIN_READ, pc);
}

void mc_shadow_atomic(uintptr_t addr, size_t size, bool is_write, const void *pc)
{
    mc_heap_check(addr, size, pc);
    access_all(addr, size, is_write ? ATOMIC_WRITE : ATOMIC_READ, pc);
}

static void free_grain(const struct range *range, size_t grain, const void *pc)
{
    struct cell *cell = &range->cells[grain];
    uintptr_t addr = range->first + grain * GRAIN;
    if (cell->generation != mc_exec.generation) {
        return;
    }
    if (cell->bytes == NULL) {
        apply(&cell->record, FREE, addr, GRAIN, pc);
        return;
    }
    for (unsigned i = 0; i < GRAIN; i++) {
        apply(&cell->bytes[i], FREE, addr + i, 1, pc);
    }
}

void mc_shadow_free(uintptr_t addr, size_t size, const void *pc)
{
    struct range *range = range_of(addr);
    for (uintptr_t at = addr; at < addr + size; at += GRAIN) {
        size_t grain = (at - range->first) / GRAIN;
        if (range->pages[grain / PAGE_GRAINS] != mc_exec.generation) {
            /* Nobody has touched this page: on to the next. */
            at = (at | (PAGE_GRAINS * GRAIN - 1)) + 1 - GRAIN;
            continue;
        }
        free_grain(range, grain, pc);
    }
}
