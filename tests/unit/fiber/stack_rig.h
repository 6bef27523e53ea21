/* SPDX-License-Identifier: MIT */
/*
 * stack_rig.h - stacks with several caches, and a record of all holders.
 *
 * Each call checks that it succeeds and that the record is consistent afterward: in every
 * class, each stack that was made is in exactly one place, and so is each promise.
 */
#ifndef STACK_RIG_H
#define STACK_RIG_H

#include "fiber/stack.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger.h"
#include "test.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

enum {
    RIG_CACHES = 3,
    DEFAULT_CLASS = 4, /* 256 KiB */
    KEEP_IDLE = 64,    /* as in stack.c */
    BATCH = WF_STACK_BATCH,
};

struct rig {
    struct ledger ledger;
    struct wf_stacks stacks;
    struct wf_stack_cache caches[RIG_CACHES];
    uint32_t held[WF_STACK_CLASSES];     /* stacks that the test holds */
    uint32_t promised[WF_STACK_CLASSES]; /* promises that the test holds */
    unsigned complaints;
    char complaint[256];
};

static inline void rig_complain(void *ctx, const char *text)
{
    struct rig *rig = ctx;
    rig->complaints++;
    (void)snprintf(rig->complaint, sizeof rig->complaint, "%s", text);
}

static inline void rig_init(struct rig *rig)
{
    *rig = (struct rig){ .complaints = 0 };
    weft_allocator allocator = ledger_allocator(&rig->ledger);
    wf_stacks_init(&rig->stacks, &allocator, rig_complain, rig);
}

static inline uint32_t rig_length(const struct wf_stack_list *list, unsigned class)
{
    uint32_t length = 0;
    for (const struct wf_stack *stack = list->first; stack != NULL; stack = stack->next) {
        CHECK_EQ(stack->class, class);
        length++;
        CHECK_LE(length, list->count);
    }
    CHECK_EQ(list->count, length);
    return length;
}

static inline void rig_check_class(const struct rig *rig, unsigned class)
{
    const struct wf_stack_depot *depot = &rig->stacks.depots[class];
    uint32_t stacks = rig_length(&depot->warm, class) + rig_length(&depot->cold, class);
    uint32_t promises = 0;
    for (int i = 0; i < RIG_CACHES; i++) {
        stacks += rig_length(&rig->caches[i].classes[class].free, class);
        promises += rig->caches[i].classes[class].promises;
        CHECK_LT(rig->caches[i].classes[class].free.count, 2 * BATCH);
        CHECK_LT(rig->caches[i].classes[class].promises, 2 * BATCH);
    }
    CHECK_EQ(stacks + rig->held[class], depot->made);
    CHECK_EQ(promises + rig->promised[class], depot->promises);
    CHECK_GE(depot->made, depot->promises);
}

/* All stacks must be back in caches and depots. */
static inline void rig_fini(struct rig *rig)
{
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        CHECK_EQ(rig->held[class], 0);
        rig_check_class(rig, class);
    }
    rig->ledger.fail_at = 0;
    wf_stacks_fini(&rig->stacks);
    CHECK_EQ(rig->ledger.bytes, 0);
}

/* Makes the next allocation fail. */
static inline void rig_refuse(struct rig *rig)
{
    rig->ledger.fail_at = rig->ledger.calls + 1;
}

static inline int rig_try_promise(struct rig *rig, int cache, unsigned class)
{
    int err = wf_stack_promise(&rig->stacks, &rig->caches[cache], class);
    rig->promised[class] += err == 0;
    rig_check_class(rig, class);
    return err;
}

static inline void rig_promise(struct rig *rig, int cache, unsigned class)
{
    CHECK_EQ(rig_try_promise(rig, cache, class), 0);
}

static inline int rig_try_promise_outside(struct rig *rig, unsigned class)
{
    int err = wf_stack_promise_outside(&rig->stacks, class);
    rig->promised[class] += err == 0;
    rig_check_class(rig, class);
    return err;
}

static inline void rig_unpromise(struct rig *rig, int cache, unsigned class)
{
    wf_stack_unpromise(&rig->stacks, &rig->caches[cache], class);
    rig->promised[class]--;
    rig_check_class(rig, class);
}

static inline void rig_unpromise_outside(struct rig *rig, unsigned class)
{
    wf_stack_unpromise_outside(&rig->stacks, class);
    rig->promised[class]--;
    rig_check_class(rig, class);
}

static inline struct wf_stack *rig_try_take(struct rig *rig, int cache, unsigned class)
{
    struct wf_stack *stack = wf_stack_take(&rig->stacks, &rig->caches[cache], class);
    rig->held[class] += stack != NULL;
    rig_check_class(rig, class);
    return stack;
}

static inline struct wf_stack *rig_take(struct rig *rig, int cache, unsigned class)
{
    struct wf_stack *stack = rig_try_take(rig, cache, class);
    CHECK(stack != NULL);
    CHECK_EQ(stack->class, class);
    return stack;
}

static inline void rig_give(struct rig *rig, int cache, struct wf_stack *stack)
{
    unsigned class = stack->class;
    wf_stack_give(&rig->stacks, &rig->caches[cache], stack);
    rig->held[class]--;
    rig_check_class(rig, class);
}

static inline void rig_share(struct rig *rig, int cache)
{
    wf_stack_share(&rig->stacks, &rig->caches[cache]);
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        rig_check_class(rig, class);
    }
}

static inline void rig_flush(struct rig *rig, int cache)
{
    wf_stack_flush(&rig->stacks, &rig->caches[cache]);
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        rig_check_class(rig, class);
    }
}

static inline bool rig_go_on(void *arg)
{
    (void)arg;
    return false;
}

static inline void rig_trim(struct rig *rig, bool idle)
{
    wf_stacks_trim(&rig->stacks, idle, rig_go_on, NULL);
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        rig_check_class(rig, class);
    }
}

/* rig_begin() promises and takes a stack, rig_end() gives both back. */
static inline struct wf_stack *rig_begin(struct rig *rig, int cache, unsigned class)
{
    rig_promise(rig, cache, class);
    return rig_take(rig, cache, class);
}

static inline void rig_end(struct rig *rig, int cache, struct wf_stack *stack)
{
    unsigned class = stack->class;
    rig_give(rig, cache, stack);
    rig_unpromise(rig, cache, class);
}

/* Returns whether the kernel supports guards without mappings. */
static inline bool rig_has_guard_install(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED);
    bool has = madvise(map, page, MADV_GUARD_INSTALL) == 0;
    CHECK_EQ(munmap(map, page), 0);
    return has;
}

#endif
