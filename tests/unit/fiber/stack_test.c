/* SPDX-License-Identifier: MIT */
/*
 * stack_test.c - bookkeeping of fiber stacks: classes, promises, caches and the depot, also
 * when no more stacks can be made.
 *
 * The memory of stacks is tested in stack_memory_test.c, concurrent use in stack_race_test.c.
 */
#include "fiber/stack.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "base/rng.h"
#include "child.h"
#include "stack_rig.h"
#include "test.h"

static struct rig rig;

static struct wf_stack_depot *depot_of(unsigned class)
{
    return &rig.stacks.depots[class];
}

static uint32_t free_in(int cache, unsigned class)
{
    return rig.caches[cache].classes[class].free.count;
}

static uint32_t promises_in(int cache, unsigned class)
{
    return rig.caches[cache].classes[class].promises;
}

/* Takes `count` stacks, then gives all of them to another cache, first taken first. */
static void pass_through(int from, int to, unsigned class, size_t count)
{
    struct wf_stack *stacks[4 * BATCH];
    CHECK_LE(count, 4 * BATCH);
    for (size_t i = 0; i < count; i++) {
        stacks[i] = rig_take(&rig, from, class);
    }
    for (size_t i = 0; i < count; i++) {
        rig_give(&rig, to, stacks[i]);
    }
}

/* --- Classes ------------------------------------------------------------------ */

static void classes_double_from_16_kib_to_8_mib(void)
{
    CHECK_EQ(wf_stack_class_size(0), 16 * 1024);
    for (unsigned class = 1; class < WF_STACK_CLASSES; class ++) {
        CHECK_EQ(wf_stack_class_size(class), 2 * wf_stack_class_size(class - 1));
    }
    CHECK_EQ(wf_stack_class_size(WF_STACK_CLASSES - 1), 8 * 1024 * 1024);
    CHECK_EQ(WF_STACK_MAX, 8 * 1024 * 1024);
}

static void size_gets_smallest_class_that_holds_it(void)
{
    CHECK_EQ(wf_stack_class(1), 0);
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        size_t size = wf_stack_class_size(class);
        CHECK_EQ(wf_stack_class(size - 1), class);
        CHECK_EQ(wf_stack_class(size), class);
        CHECK_EQ(wf_stack_class(size / 2 + 1), class);
        if (class + 1 < WF_STACK_CLASSES) {
            CHECK_EQ(wf_stack_class(size + 1), class + 1);
        }
    }
}

static void guard_is_as_large_as_stack_within_64_kib_and_1_mib(void)
{
    static const size_t kib[WF_STACK_CLASSES] = {
        64, 64, 64, 128, 256, 512, 1024, 1024, 1024, 1024
    };
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        CHECK_EQ(wf_stack_guard_size(class), kib[class] * 1024);
    }
}

static void size_0_gets_default_class_and_too_large_is_einval(void)
{
    CHECK_EQ(wf_stack_class(0), DEFAULT_CLASS);
    CHECK_EQ(wf_stack_class_size(DEFAULT_CLASS), 256 * 1024);
    CHECK_EQ(wf_stack_class((size_t)WF_STACK_MAX + 1), -EINVAL);
    CHECK_EQ(wf_stack_class((size_t)WF_STACK_MAX * 2), -EINVAL);
    CHECK_EQ(wf_stack_class(SIZE_MAX / 2 + 1), -EINVAL);
    CHECK_EQ(wf_stack_class(SIZE_MAX), -EINVAL);
}

/* --- Placement ------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const struct wf_stack *const *left = a;
    const struct wf_stack *const *right = b;
    return (*left)->low < (*right)->low ? -1 : (*left)->low > (*right)->low;
}

static void take_in_order(struct wf_stack **stacks, size_t count, unsigned class)
{
    for (size_t i = 0; i < count; i++) {
        stacks[i] = rig_begin(&rig, 0, class);
    }
    qsort(stacks, count, sizeof stacks[0], by_address);
}

static void end_all(struct wf_stack **stacks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rig_end(&rig, 0, stacks[i]);
    }
}

static void stacks_are_odd_number_of_pages_apart(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        struct wf_stack *stacks[BATCH];
        struct wf_stack_stats stats;
        size_t count = wf_stack_batch(class); /* one chunk */
        rig_init(&rig);
        take_in_order(stacks, count, class);
        wf_stacks_read(&rig.stacks, &stats);
        size_t stride = stats.bytes / stats.made;
        CHECK_GE(stride, wf_stack_class_size(class) + wf_stack_guard_size(class));
        CHECK_EQ(stride % page, 0);
        CHECK_EQ(stride / page % 2, 1);
        for (size_t i = 0; i < count; i++) {
            CHECK_EQ((uintptr_t)stacks[i]->low % page, 0);
            CHECK_EQ(wf_stack_size(stacks[i]), wf_stack_class_size(class));
            CHECK(i == 0 || stacks[i]->low - stacks[i - 1]->low == (ptrdiff_t)stride);
        }
        end_all(stacks, count);
        rig_fini(&rig);
    }
}

static void stack_tops_have_32_colors_within_page(void)
{
    rig_init(&rig);
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        struct wf_stack *stacks[64];
        uint32_t colors = 0;
        take_in_order(stacks, 64, class);
        for (size_t i = 0; i < 64; i++) {
            char *end = stacks[i]->low + wf_stack_size(stacks[i]);
            size_t below = (size_t)(end - wf_stack_top(stacks[i]));
            CHECK_EQ(below % 64, 0);
            CHECK_LT(below / 64, 32);
            colors |= UINT32_C(1) << below / 64;
        }
        CHECK_EQ(colors, UINT32_MAX);
        end_all(stacks, 64);
    }
    rig_fini(&rig);
}

/* --- Promises ---------------------------------------------------------------------- */

static void first_promise_makes_batch(void)
{
    static const uint32_t batches[WF_STACK_CLASSES] = { 16, 16, 16, 16, 16, 16, 8, 5, 3, 1 };
    rig_init(&rig);
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        uint32_t batch = batches[class];
        rig_promise(&rig, 0, class);
        CHECK_EQ(depot_of(class)->made, batch);
        CHECK_EQ(depot_of(class)->promises, batch);
        CHECK_EQ(promises_in(0, class), batch - 1);
        for (uint32_t i = 1; i < batch; i++) {
            rig_promise(&rig, 0, class);
        }
        CHECK_EQ(depot_of(class)->made, batch);
        rig_promise(&rig, 0, class);
        CHECK_EQ(depot_of(class)->made, 2 * batch);
    }
    rig_fini(&rig);
}

static void promise_outside_makes_one_stack(void)
{
    rig_init(&rig);
    for (uint32_t n = 1; n <= 100; n++) {
        CHECK_EQ(rig_try_promise_outside(&rig, 2), 0);
        CHECK_EQ(depot_of(2)->made, n);
        CHECK_EQ(depot_of(2)->promises, n);
    }
    for (uint32_t n = 100; n > 0; n--) {
        rig_unpromise_outside(&rig, 2);
        CHECK_EQ(depot_of(2)->promises, n - 1);
    }
    CHECK_EQ(depot_of(2)->made, 100);
    CHECK_EQ(rig_try_promise_outside(&rig, 2), 0); /* A stack for it already exists. */
    CHECK_EQ(depot_of(2)->made, 100);
    rig_unpromise_outside(&rig, 2);
    rig_fini(&rig);
}

static void unpromise_too_often(void)
{
    wf_stack_unpromise_outside(&rig.stacks, 2);
}

static void unpromise_without_promise_aborts(void)
{
    rig_init(&rig);
    CHECK_ABORTS(unpromise_too_often, "'depot->promises > 0' does not hold");
    rig_fini(&rig);
}

/* Promises are made outside of the cache and returned to it. */
static void cache_returns_promises_above_two_batches(void)
{
    rig_init(&rig);
    for (int i = 0; i < 3 * BATCH; i++) {
        CHECK_EQ(rig_try_promise_outside(&rig, 1), 0);
    }
    for (uint32_t i = 1; i < 2 * BATCH; i++) {
        rig_unpromise(&rig, 0, 1);
        CHECK_EQ(promises_in(0, 1), i);
        CHECK_EQ(depot_of(1)->promises, 3 * BATCH);
    }
    rig_unpromise(&rig, 0, 1);
    CHECK_EQ(promises_in(0, 1), BATCH);
    CHECK_EQ(depot_of(1)->promises, 2 * BATCH);
    CHECK_EQ(depot_of(1)->made, 3 * BATCH);
    rig_fini(&rig);
}

/* --- Taking and giving --------------------------------------------------------------- */

static void take_returns_stack_given_last(void)
{
    rig_init(&rig);
    struct wf_stack *first = rig_begin(&rig, 0, 3);
    struct wf_stack *second = rig_begin(&rig, 0, 3);
    CHECK(first != second);
    rig_give(&rig, 0, second);
    rig_give(&rig, 0, first);
    CHECK(rig_take(&rig, 0, 3) == first);
    CHECK(rig_take(&rig, 0, 3) == second);
    rig_end(&rig, 0, first);
    rig_end(&rig, 0, second);
    rig_fini(&rig);
}

static void take_from_empty_cache_fetches_batch(void)
{
    rig_init(&rig);
    for (int i = 0; i < 2 * BATCH + 5; i++) {
        CHECK_EQ(rig_try_promise_outside(&rig, 0), 0);
    }
    struct wf_stack *stacks[2 * BATCH + 1];
    stacks[0] = rig_take(&rig, 1, 0);
    CHECK_EQ(free_in(1, 0), BATCH - 1);
    CHECK_EQ(depot_of(0)->cold.count, BATCH + 5);
    for (int i = 1; i < 2 * BATCH; i++) {
        stacks[i] = rig_take(&rig, 1, 0);
    }
    CHECK_EQ(depot_of(0)->cold.count, 5);
    stacks[2 * BATCH] = rig_take(&rig, 1, 0); /* Less than a batch is left. */
    CHECK_EQ(free_in(1, 0), 4);
    CHECK_EQ(depot_of(0)->made, 2 * BATCH + 5);
    for (int i = 0; i <= 2 * BATCH; i++) {
        rig_end(&rig, 0, stacks[i]);
    }
    rig_fini(&rig);
}

static void cache_of_two_batches_returns_one(void)
{
    rig_init(&rig);
    struct wf_stack *stacks[2 * BATCH];
    for (int i = 0; i < 2 * BATCH; i++) {
        stacks[i] = rig_begin(&rig, 1, 0);
    }
    for (uint32_t i = 0; i < 2 * BATCH - 1; i++) {
        rig_give(&rig, 0, stacks[i]);
        CHECK_EQ(free_in(0, 0), i + 1);
    }
    CHECK_EQ(depot_of(0)->warm.count, 0);
    rig_promise(&rig, 0, 0);
    rig_give(&rig, 0, stacks[2 * BATCH - 1]);
    CHECK_EQ(free_in(0, 0), BATCH);
    CHECK_EQ(depot_of(0)->warm.count, BATCH);
    CHECK_EQ(promises_in(0, 0), BATCH - 1); /* The promises stay. */
    CHECK_EQ(depot_of(0)->promises, 3 * BATCH);
    rig_fini(&rig);
}

static void take_prefers_stacks_with_memory(void)
{
    rig_init(&rig);
    for (int i = 0; i < 3 * BATCH; i++) {
        CHECK_EQ(rig_try_promise_outside(&rig, 0), 0);
    }
    pass_through(0, 1, 0, 2 * BATCH); /* One batch moves to the depot, still warm. */
    CHECK_EQ(depot_of(0)->warm.count, BATCH);
    CHECK_EQ(depot_of(0)->cold.count, BATCH);
    struct wf_stack *first = rig_take(&rig, 2, 0);
    CHECK_EQ(depot_of(0)->warm.count, 0);
    CHECK_EQ(depot_of(0)->cold.count, BATCH);
    rig_give(&rig, 2, first);
    rig_fini(&rig);
}

static void take_makes_stack_if_free_ones_are_in_other_cache(void)
{
    rig_init(&rig);
    rig_promise(&rig, 0, 5);
    pass_through(0, 0, 5, BATCH);
    CHECK_EQ(free_in(0, 5), BATCH);
    struct wf_stack *stack = rig_take(&rig, 1, 5);
    CHECK_EQ(depot_of(5)->made, BATCH + 1);
    CHECK_EQ(depot_of(5)->promises, BATCH);
    CHECK_EQ(depot_of(5)->wanted, 0);
    rig_end(&rig, 1, stack);
    rig_fini(&rig);
}

static void flush_keeps_one_stack_and_batch_of_promises(void)
{
    rig_init(&rig);
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        for (int i = 0; i < 2 * BATCH - 1; i++) {
            CHECK_EQ(rig_try_promise_outside(&rig, class), 0);
        }
        pass_through(1, 0, class, 2 * BATCH - 1);
        for (int i = 0; i < 2 * BATCH - 1; i++) {
            rig_unpromise(&rig, 0, class);
        }
    }
    for (int twice = 0; twice < 2; twice++) {
        rig_flush(&rig, 0);
        for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
            CHECK_EQ(free_in(0, class), 1);
            CHECK_EQ(depot_of(class)->warm.count, 2 * BATCH - 2);
            CHECK_EQ(promises_in(0, class), BATCH);
            CHECK_EQ(depot_of(class)->promises, BATCH);
        }
    }
    rig_flush(&rig, 1); /* The cache is empty. */
    rig_fini(&rig);
}

static void read_adds_up_all_classes(void)
{
    struct wf_stack_stats stats;
    rig_init(&rig);
    wf_stacks_read(&rig.stacks, &stats);
    CHECK_EQ(stats.made + stats.promised + stats.bytes + stats.used_max, 0);
    uint64_t bytes = 0;
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        for (unsigned i = 0; i <= class; i++) {
            CHECK_EQ(rig_try_promise_outside(&rig, class), 0);
            bytes += wf_stack_class_size(class) + wf_stack_guard_size(class);
        }
    }
    rig_unpromise_outside(&rig, 7);
    wf_stacks_read(&rig.stacks, &stats);
    CHECK_EQ(stats.made, 55);
    CHECK_EQ(stats.promised, 54);
    CHECK_LE(bytes, stats.bytes);
    CHECK_LE(stats.bytes, bytes + 55 * 64 * 1024);
    rig_fini(&rig);
}

/* --- Out of stacks ---------------------------------------------------------------- */

/* Makes all stacks of the class free and in cache 0. */
static void fill_cache_0(unsigned class)
{
    rig_promise(&rig, 0, class);
    pass_through(0, 0, class, BATCH);
    CHECK_EQ(free_in(0, class), BATCH);
}

static void wanted_stack_is_shared(void)
{
    rig_init(&rig);
    fill_cache_0(5);
    fill_cache_0(6);
    rig_share(&rig, 0); /* No stack is wanted. */
    CHECK_EQ(free_in(0, 5), BATCH);

    rig_refuse(&rig);
    CHECK(rig_try_take(&rig, 1, 5) == NULL);
    CHECK_EQ(depot_of(5)->wanted, 1);
    rig_share(&rig, 2); /* It has none. */
    CHECK_EQ(depot_of(5)->wanted, 1);
    rig_share(&rig, 0);
    CHECK_EQ(depot_of(5)->wanted, 0);
    CHECK_EQ(free_in(0, 5), 0);
    CHECK_EQ(free_in(0, 6), BATCH); /* None of these is wanted. */
    CHECK_EQ(depot_of(5)->warm.count, BATCH);
    CHECK_EQ(promises_in(0, 5), BATCH - 1);

    struct wf_stack *stack = rig_take(&rig, 1, 5);
    CHECK_EQ(free_in(1, 5), BATCH - 1);
    rig_end(&rig, 1, stack);
    rig_fini(&rig);
}

static void promise_without_memory_returns_enomem(void)
{
    rig_init(&rig);
    rig_refuse(&rig);
    CHECK_EQ(rig_try_promise(&rig, 0, 0), -ENOMEM);
    rig_refuse(&rig);
    CHECK_EQ(rig_try_promise_outside(&rig, 0), -ENOMEM);
    CHECK_EQ(depot_of(0)->made, 0);
    CHECK_EQ(promises_in(0, 0), 0);
    CHECK_EQ(rig.ledger.bytes, 0);
    rig_promise(&rig, 0, 0); /* Memory is available again. */
    rig_fini(&rig);
}

static void batch_of_promises_may_be_partial(void)
{
    rig_init(&rig);
    for (int i = 0; i < BATCH - 6; i++) {
        CHECK_EQ(rig_try_promise_outside(&rig, 0), 0);
    }
    rig_refuse(&rig);
    rig_promise(&rig, 0, 0); /* Stacks for six more exist. */
    CHECK_EQ(promises_in(0, 0), 5);
    CHECK_EQ(depot_of(0)->made, BATCH);
    for (int i = 0; i < 5; i++) {
        rig_promise(&rig, 0, 0);
    }
    rig_refuse(&rig);
    CHECK_EQ(rig_try_promise(&rig, 0, 0), -ENOMEM);
    rig_fini(&rig);
}

static void limit_address_space(size_t more)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%lu", &pages), 1);
    (void)fclose(file);
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = pages * (size_t)sysconf(_SC_PAGESIZE) + more;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

static void promise_until_refused(unsigned class, uint32_t least, uint32_t most)
{
    uint32_t made = 0;
    while (rig_try_promise_outside(&rig, class) == 0) {
        made++;
        CHECK_LE(made, most);
    }
    CHECK_GE(made, least);
}

/* Runs in a child: 64 MiB hold seven stacks of 8 MiB with their guards. */
static void run_out_of_address_space(void *arg)
{
    const unsigned class = WF_STACK_CLASSES - 1;
    (void)arg;
    rig_init(&rig);
    limit_address_space(64 << 20);
    promise_until_refused(class, 5, 7);
    CHECK_EQ(rig.complaints, 1);
    CHECK_HAS(rig.complaint, "no stack for another fiber");
    CHECK_HAS(rig.complaint, "ulimit -v");
    CHECK_HAS(rig.complaint, " stacks of 8192 KiB exist");
    CHECK_EQ(rig_try_promise(&rig, 0, class), -ENOMEM);
    CHECK_EQ(rig_try_promise(&rig, 0, class - 1), -ENOMEM);
    CHECK_EQ(rig.complaints, 1);
    rig_promise(&rig, 0, 0); /* Small ones still fit. */
    rig_unpromise_outside(&rig, class);
    CHECK_EQ(rig_try_promise_outside(&rig, class), 0); /* The stack still exists. */
    rig_fini(&rig);

    rig_init(&rig);
    rig.stacks.complain = NULL;
    promise_until_refused(class, 5, 7);
    rig_fini(&rig);
}

/* Runs in a child: the address space is too small for a chunk as large as all previous ones
 * together, but has space for smaller chunks. */
static void shrink_chunks(void *arg)
{
    const unsigned class = DEFAULT_CLASS;
    (void)arg;
    rig_init(&rig);
    for (int i = 0; i < 256; i++) {
        CHECK_EQ(rig_try_promise_outside(&rig, class), 0);
    }
    limit_address_space(64 << 20);
    promise_until_refused(class, 0, 256 + 127);
    CHECK_GE(depot_of(class)->made, 256 + 110);
    rig_fini(&rig);
}

static void chunks_shrink_when_address_space_is_short(void)
{
    if (test_is_sanitized()) {
        test_skip("a sanitizer needs the address space");
        return;
    }
    child_must_succeed(shrink_chunks, NULL);
}

static void read_stats_and_complain(void *ctx, const char *text)
{
    struct wf_stack_stats stats;
    wf_stacks_read(&rig.stacks, &stats);
    rig_complain(ctx, text);
}

/* Runs in a child. */
static void complain_to_reader_of_stats(void *arg)
{
    (void)arg;
    rig_init(&rig);
    rig.stacks.complain = read_stats_and_complain;
    limit_address_space(4 << 20);
    CHECK_EQ(rig_try_promise(&rig, 0, WF_STACK_CLASSES - 1), -ENOMEM);
    CHECK_EQ(rig.complaints, 1);
    CHECK_HAS(rig.complaint, "0 stacks of 8192 KiB exist");
    rig_fini(&rig);
}

static void complaint_is_made_without_lock(void)
{
    if (test_is_sanitized()) {
        test_skip("a sanitizer needs the address space");
        return;
    }
    child_must_succeed(complain_to_reader_of_stats, NULL);
}

static void address_space_exhaustion_is_reported_once(void)
{
    if (test_is_sanitized()) {
        test_skip("a sanitizer needs the address space");
        return;
    }
    child_must_succeed(run_out_of_address_space, NULL);
}

/* --- Random order ------------------------------------------------------------------ */

enum {
    WALK_CLASSES = 3,
    WALK_HELD = 64,
};

struct walk {
    struct wf_rng rng;
    struct wf_stack *held[WALK_HELD];
    uint32_t count;
    uint64_t refused;
};

static void walk_promises(struct walk *walk, int cache, unsigned class)
{
    uint32_t choice = wf_rng_below(&walk->rng, 5);
    if (choice < 2 && rig.promised[class] < 60) {
        int err = rig_try_promise(&rig, cache, class);
        walk->refused += err == -ENOMEM;
        CHECK(err == 0 || err == -ENOMEM);
    } else if (choice == 2 && rig.promised[class] < 60) {
        (void)rig_try_promise_outside(&rig, class);
    } else if (rig.promised[class] > rig.held[class]) {
        if (choice == 3) {
            rig_unpromise(&rig, cache, class);
        } else if (choice == 4) {
            rig_unpromise_outside(&rig, class);
        }
    }
}

static void walk_stacks(struct walk *walk, int cache, unsigned class)
{
    bool give = wf_rng_below(&walk->rng, 2) == 0;
    if (give && walk->count > 0) {
        uint32_t i = wf_rng_below(&walk->rng, walk->count);
        rig_give(&rig, cache, walk->held[i]);
        walk->held[i] = walk->held[--walk->count];
    } else if (!give && rig.promised[class] > rig.held[class] && walk->count < WALK_HELD) {
        struct wf_stack *stack = rig_try_take(&rig, cache, class);
        if (stack != NULL) {
            walk->held[walk->count++] = stack;
        } else {
            /* A free stack exists all the same. */
            CHECK_LT(0, free_in(0, class) + free_in(1, class) + free_in(2, class));
        }
    }
}

static void walk_step(struct walk *walk)
{
    int cache = (int)wf_rng_below(&walk->rng, RIG_CACHES);
    unsigned class = wf_rng_below(&walk->rng, WALK_CLASSES);
    uint32_t choice = wf_rng_below(&walk->rng, 100);
    if (choice < 40) {
        walk_promises(walk, cache, class);
    } else if (choice < 90) {
        walk_stacks(walk, cache, class);
    } else if (choice < 94) {
        rig_share(&rig, cache);
    } else if (choice < 96) {
        rig_flush(&rig, cache);
    } else if (choice < 98) {
        rig_trim(&rig, choice == 97);
    } else {
        /* Allocations fail from now on, or never, until the next choice of this kind. */
        rig.ledger.fail_at = choice == 98 ? 0 : rig.ledger.calls + 1;
    }
    if (rig.ledger.fail_at != 0) {
        rig_refuse(&rig);
    }
}

/* Each call checks the record. */
static void random_calls_keep_record_consistent(void)
{
    struct walk walk = { .count = 0 };
    wf_rng_seed(&walk.rng, test_seed(), 0);
    for (uint64_t round = 0; round < test_scale(2000); round++) {
        rig_init(&rig);
        for (int i = 0; i < 400; i++) {
            walk_step(&walk);
        }
        while (walk.count > 0) {
            rig_give(&rig, 0, walk.held[--walk.count]);
        }
        rig_fini(&rig);
    }
    (void)printf("%llu promises refused\n", (unsigned long long)walk.refused);
    CHECK_LT(0, walk.refused);
}

TEST_MAIN({
    TEST(classes_double_from_16_kib_to_8_mib),
    TEST(size_gets_smallest_class_that_holds_it),
    TEST(guard_is_as_large_as_stack_within_64_kib_and_1_mib),
    TEST(size_0_gets_default_class_and_too_large_is_einval),
    TEST(stacks_are_odd_number_of_pages_apart),
    TEST(stack_tops_have_32_colors_within_page),
    TEST(first_promise_makes_batch),
    TEST(promise_outside_makes_one_stack),
    TEST(unpromise_without_promise_aborts),
    TEST(cache_returns_promises_above_two_batches),
    TEST(take_returns_stack_given_last),
    TEST(take_from_empty_cache_fetches_batch),
    TEST(cache_of_two_batches_returns_one),
    TEST(take_prefers_stacks_with_memory),
    TEST(take_makes_stack_if_free_ones_are_in_other_cache),
    TEST(flush_keeps_one_stack_and_batch_of_promises),
    TEST(read_adds_up_all_classes),
    TEST(wanted_stack_is_shared),
    TEST(promise_without_memory_returns_enomem),
    TEST(batch_of_promises_may_be_partial),
    TEST_NATIVE(chunks_shrink_when_address_space_is_short, "has no limits of memory"),
    TEST_NATIVE(address_space_exhaustion_is_reported_once, "has no limits of memory"),
    TEST_NATIVE(complaint_is_made_without_lock, "has no limits of memory"),
    TEST(random_calls_keep_record_consistent),
})
