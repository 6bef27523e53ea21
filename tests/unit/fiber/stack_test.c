/* SPDX-License-Identifier: MIT */
/*
 * stack_test.c - who has which stack, and who may have one: classes, promises,
 * caches and the depot, also when no more can be made.
 *
 * What stacks do with memory is tested in stack_memory_test.c, several threads in
 * stack_race_test.c.
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

/* Takes so many, then gives all back to another cache, the first one first. */
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

static void a_size_gets_the_smallest_class_that_holds_it(void)
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

static void guard_is_as_large_as_its_stack_up_to_1_mib(void)
{
    static const size_t kib[WF_STACK_CLASSES] = {
        64, 64, 64, 128, 256, 512, 1024, 1024, 1024, 1024
    };
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        CHECK_EQ(wf_stack_guard_size(class), kib[class] * 1024);
    }
}

static void no_size_gets_the_default_and_too_large_a_size_none(void)
{
    CHECK_EQ(wf_stack_class(0), DEFAULT_CLASS);
    CHECK_EQ(wf_stack_class_size(DEFAULT_CLASS), 256 * 1024);
    CHECK_EQ(wf_stack_class((size_t)WF_STACK_MAX + 1), -EINVAL);
    CHECK_EQ(wf_stack_class((size_t)WF_STACK_MAX * 2), -EINVAL);
    CHECK_EQ(wf_stack_class(SIZE_MAX / 2 + 1), -EINVAL);
    CHECK_EQ(wf_stack_class(SIZE_MAX), -EINVAL);
}

/* --- Where stacks lie ------------------------------------------------------------ */

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

static void stacks_lie_an_odd_number_of_pages_apart(void)
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

static void tops_have_32_colours_within_a_page(void)
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

static void a_first_promise_makes_a_batch(void)
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

static void a_promise_to_an_outsider_makes_one_stack(void)
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
    CHECK_EQ(rig_try_promise_outside(&rig, 2), 0); /* There is one for it already. */
    CHECK_EQ(depot_of(2)->made, 100);
    rig_unpromise_outside(&rig, 2);
    rig_fini(&rig);
}

static void a_promise_too_many_taken_back(void)
{
    wf_stack_unpromise_outside(&rig.stacks, 2);
}

static void taking_back_what_was_not_promised_aborts(void)
{
    rig_init(&rig);
    CHECK_ABORTS(a_promise_too_many_taken_back, "'depot->promises > 0' does not hold");
    rig_fini(&rig);
}

/* Outsiders make the promises, the owner of the cache takes them back. */
static void a_cache_returns_promises_above_two_batches(void)
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

static void take_gets_what_was_given_last(void)
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

static void take_from_an_empty_cache_brings_a_batch(void)
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
    stacks[2 * BATCH] = rig_take(&rig, 1, 0); /* The rest is less than a batch. */
    CHECK_EQ(free_in(1, 0), 4);
    CHECK_EQ(depot_of(0)->made, 2 * BATCH + 5);
    for (int i = 0; i <= 2 * BATCH; i++) {
        rig_end(&rig, 0, stacks[i]);
    }
    rig_fini(&rig);
}

static void a_cache_of_two_batches_returns_one(void)
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
    CHECK_EQ(promises_in(0, 0), BATCH - 1); /* They stay. */
    CHECK_EQ(depot_of(0)->promises, 3 * BATCH);
    rig_fini(&rig);
}

static void take_prefers_stacks_with_memory(void)
{
    rig_init(&rig);
    for (int i = 0; i < 3 * BATCH; i++) {
        CHECK_EQ(rig_try_promise_outside(&rig, 0), 0);
    }
    pass_through(0, 1, 0, 2 * BATCH); /* One batch goes to the depot, as warm ones. */
    CHECK_EQ(depot_of(0)->warm.count, BATCH);
    CHECK_EQ(depot_of(0)->cold.count, BATCH);
    struct wf_stack *first = rig_take(&rig, 2, 0);
    CHECK_EQ(depot_of(0)->warm.count, 0);
    CHECK_EQ(depot_of(0)->cold.count, BATCH);
    rig_give(&rig, 2, first);
    rig_fini(&rig);
}

static void take_makes_one_more_if_the_free_ones_are_elsewhere(void)
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

static void flush_keeps_one_stack_and_a_batch_of_promises(void)
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
    rig_flush(&rig, 1); /* It has nothing. */
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

/* --- No more stacks --------------------------------------------------------------- */

/* All stacks of the class are free and in the cache 0. */
static void hoard(unsigned class)
{
    rig_promise(&rig, 0, class);
    pass_through(0, 0, class, BATCH);
    CHECK_EQ(free_in(0, class), BATCH);
}

static void a_stack_that_is_wanted_is_shared(void)
{
    rig_init(&rig);
    hoard(5);
    hoard(6);
    rig_share(&rig, 0); /* Nobody wants anything. */
    CHECK_EQ(free_in(0, 5), BATCH);

    rig_refuse(&rig);
    CHECK(rig_try_take(&rig, 1, 5) == NULL);
    CHECK_EQ(depot_of(5)->wanted, 1);
    rig_share(&rig, 2); /* It has none. */
    CHECK_EQ(depot_of(5)->wanted, 1);
    rig_share(&rig, 0);
    CHECK_EQ(depot_of(5)->wanted, 0);
    CHECK_EQ(free_in(0, 5), 0);
    CHECK_EQ(free_in(0, 6), BATCH); /* Of these nobody wants any. */
    CHECK_EQ(depot_of(5)->warm.count, BATCH);
    CHECK_EQ(promises_in(0, 5), BATCH - 1);

    struct wf_stack *stack = rig_take(&rig, 1, 5);
    CHECK_EQ(free_in(1, 5), BATCH - 1);
    rig_end(&rig, 1, stack);
    rig_fini(&rig);
}

static void a_promise_without_memory_fails(void)
{
    rig_init(&rig);
    rig_refuse(&rig);
    CHECK_EQ(rig_try_promise(&rig, 0, 0), -ENOMEM);
    rig_refuse(&rig);
    CHECK_EQ(rig_try_promise_outside(&rig, 0), -ENOMEM);
    CHECK_EQ(depot_of(0)->made, 0);
    CHECK_EQ(promises_in(0, 0), 0);
    CHECK_EQ(rig.ledger.bytes, 0);
    rig_promise(&rig, 0, 0); /* There is some again. */
    rig_fini(&rig);
}

static void a_batch_of_promises_may_be_smaller(void)
{
    rig_init(&rig);
    for (int i = 0; i < BATCH - 6; i++) {
        CHECK_EQ(rig_try_promise_outside(&rig, 0), 0);
    }
    rig_refuse(&rig);
    rig_promise(&rig, 0, 0); /* There is room for six more. */
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

static void take_until_refused(unsigned class, uint32_t least, uint32_t most)
{
    uint32_t made = 0;
    while (rig_try_promise_outside(&rig, class) == 0) {
        made++;
        CHECK_LE(made, most);
    }
    CHECK_GE(made, least);
}

/* In a child: 64 MiB have room for seven stacks of 8 MiB with their guards. */
static void run_out_of_address_space(void *arg)
{
    const unsigned class = WF_STACK_CLASSES - 1;
    (void)arg;
    rig_init(&rig);
    limit_address_space(64 << 20);
    take_until_refused(class, 5, 7);
    CHECK_EQ(rig.complaints, 1);
    CHECK_HAS(rig.complaint, "no stack for another fiber");
    CHECK_HAS(rig.complaint, "ulimit -v");
    CHECK_HAS(rig.complaint, " stacks of 8192 KiB exist");
    CHECK_EQ(rig_try_promise(&rig, 0, class), -ENOMEM);
    CHECK_EQ(rig_try_promise(&rig, 0, class - 1), -ENOMEM);
    CHECK_EQ(rig.complaints, 1);
    rig_promise(&rig, 0, 0); /* Small ones still fit. */
    rig_unpromise_outside(&rig, class);
    CHECK_EQ(rig_try_promise_outside(&rig, class), 0); /* The stack is still there. */
    rig_fini(&rig);

    rig_init(&rig);
    rig.stacks.complain = NULL;
    take_until_refused(class, 5, 7);
    rig_fini(&rig);
}

/* In a child: for a chunk as large as all before there is no room, for smaller ones there is. */
static void shrink_chunks(void *arg)
{
    const unsigned class = DEFAULT_CLASS;
    (void)arg;
    rig_init(&rig);
    for (int i = 0; i < 256; i++) {
        CHECK_EQ(rig_try_promise_outside(&rig, class), 0);
    }
    limit_address_space(64 << 20);
    take_until_refused(class, 0, 256 + 127);
    CHECK_GE(depot_of(class)->made, 256 + 110);
    rig_fini(&rig);
}

static void chunks_shrink_where_address_space_ends(void)
{
    if (test_is_sanitized()) {
        test_skip("a sanitizer needs the address space");
        return;
    }
    child_must_succeed(shrink_chunks, NULL);
}

static void read_and_note(void *ctx, const char *text)
{
    struct wf_stack_stats stats;
    wf_stacks_read(&rig.stacks, &stats);
    rig_complain(ctx, text);
}

/* In a child, as above. */
static void complain_to_one_that_reads(void *arg)
{
    (void)arg;
    rig_init(&rig);
    rig.stacks.complain = read_and_note;
    limit_address_space(4 << 20);
    CHECK_EQ(rig_try_promise(&rig, 0, WF_STACK_CLASSES - 1), -ENOMEM);
    CHECK_EQ(rig.complaints, 1);
    CHECK_HAS(rig.complaint, "0 stacks of 8192 KiB exist");
    rig_fini(&rig);
}

static void a_complaint_is_given_without_the_lock(void)
{
    if (test_is_sanitized()) {
        test_skip("a sanitizer needs the address space");
        return;
    }
    child_must_succeed(complain_to_one_that_reads, NULL);
}

static void no_more_address_space_is_told_once(void)
{
    if (test_is_sanitized()) {
        test_skip("a sanitizer needs the address space");
        return;
    }
    child_must_succeed(run_out_of_address_space, NULL);
}

/* --- Any order --------------------------------------------------------------------- */

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
            /* Then one is free all the same. */
            CHECK_LT(0, free_in(0, class) + free_in(1, class) + free_in(2, class));
        }
    }
}

static void walk_on(struct walk *walk)
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
        /* From now on, or never, until this comes by again. */
        rig.ledger.fail_at = choice == 98 ? 0 : rig.ledger.calls + 1;
    }
    if (rig.ledger.fail_at != 0) {
        rig_refuse(&rig);
    }
}

/* Each call checks the books. */
static void the_books_are_right_in_any_order_of_calls(void)
{
    struct walk walk = { .count = 0 };
    wf_rng_seed(&walk.rng, test_seed(), 0);
    for (uint64_t round = 0; round < test_scale(2000); round++) {
        rig_init(&rig);
        for (int i = 0; i < 400; i++) {
            walk_on(&walk);
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
    TEST(a_size_gets_the_smallest_class_that_holds_it),
    TEST(guard_is_as_large_as_its_stack_up_to_1_mib),
    TEST(no_size_gets_the_default_and_too_large_a_size_none),
    TEST(stacks_lie_an_odd_number_of_pages_apart),
    TEST(tops_have_32_colours_within_a_page),
    TEST(a_first_promise_makes_a_batch),
    TEST(a_promise_to_an_outsider_makes_one_stack),
    TEST(taking_back_what_was_not_promised_aborts),
    TEST(a_cache_returns_promises_above_two_batches),
    TEST(take_gets_what_was_given_last),
    TEST(take_from_an_empty_cache_brings_a_batch),
    TEST(a_cache_of_two_batches_returns_one),
    TEST(take_prefers_stacks_with_memory),
    TEST(take_makes_one_more_if_the_free_ones_are_elsewhere),
    TEST(flush_keeps_one_stack_and_a_batch_of_promises),
    TEST(read_adds_up_all_classes),
    TEST(a_stack_that_is_wanted_is_shared),
    TEST(a_promise_without_memory_fails),
    TEST(a_batch_of_promises_may_be_smaller),
    TEST_NATIVE(chunks_shrink_where_address_space_ends, "has no limits of memory"),
    TEST_NATIVE(no_more_address_space_is_told_once, "has no limits of memory"),
    TEST_NATIVE(a_complaint_is_given_without_the_lock, "has no limits of memory"),
    TEST(the_books_are_right_in_any_order_of_calls),
})
