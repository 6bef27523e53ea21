/* SPDX-License-Identifier: MIT */
/*
 * stack_memory_test.c - memory of fiber stacks: guards, freeing, and measuring the used depth.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "child.h"
#include "fiber/stack.h"
#include "stack_rig.h"
#include "test.h"

static struct rig rig;

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static char *end_of(const struct wf_stack *stack)
{
    return stack->low + wf_stack_size(stack);
}

/* Writes to the page that is `page` pages below the end, counted from 1. */
static void touch(struct wf_stack *stack, size_t page)
{
    volatile char *at = end_of(stack) - page * page_bytes();
    *at = 77;
}

static bool is_touched(struct wf_stack *stack, size_t page)
{
    const volatile char *at = end_of(stack) - page * page_bytes();
    CHECK(*at == 0 || *at == 77);
    return *at == 77;
}

/* Takes `count` stacks, touches `pages` pages of each, and leaves them free in the depot, with
 * their memory. */
static void use_stacks(struct wf_stack **stacks, size_t count, unsigned class, size_t pages)
{
    for (size_t i = 0; i < count; i++) {
        stacks[i] = rig_begin(&rig, 0, class);
        for (size_t page = 1; page <= pages; page++) {
            touch(stacks[i], page);
        }
    }
    for (size_t i = 0; i < count; i++) {
        rig_end(&rig, 0, stacks[i]);
    }
    rig_flush(&rig, 0);
    if (rig.caches[0].classes[class].free.count > 0) {
        /* Also the one that the cache keeps. */
        wf_store_relaxed(&rig.stacks.depots[class].wanted, 1u);
        rig_share(&rig, 0);
    }
    CHECK_GE(rig.stacks.depots[class].warm.count, count);
}

/* After two trims without any demand, no free stack has memory. */
static void trim_all(unsigned class)
{
    rig_trim(&rig, false);
    rig_trim(&rig, false);
    CHECK_EQ(rig.stacks.depots[class].warm.count, 0);
}

/* --- Guards -------------------------------------------------------------------- */

static void read_byte(void *at)
{
    (void)*(volatile char *)at;
}

static void write_byte(void *at)
{
    *(volatile char *)at = 1;
}

static void check_faults(void (*access)(void *at), char *at)
{
    struct child child;
    child_run(&child, access, at);
    CHECK_EQ(child.signal, SIGSEGV);
}

static void check_guarded(const struct wf_stack *stack)
{
    check_faults(read_byte, stack->low - 1);
    check_faults(write_byte, stack->low - 1);
    check_faults(read_byte, stack->low - wf_stack_guard_size(stack->class));
    child_must_succeed(write_byte, stack->low);
}

/* From the first byte to the last. */
static void check_writable(struct wf_stack *stack)
{
    size_t size = wf_stack_size(stack);
    memset(stack->low, 0x5A, size);
    for (size_t i = 0; i < size; i += page_bytes() / 2) {
        CHECK_EQ(stack->low[i], 0x5A);
    }
    CHECK_EQ(stack->low[size - 1], 0x5A);
}

/* Checks the first and the last stack of a chunk, with memory and without. */
static void check_guards_of_class(unsigned class)
{
    struct wf_stack *stacks[BATCH];
    for (int i = 0; i < BATCH; i++) {
        stacks[i] = rig_begin(&rig, 0, class);
        check_writable(stacks[i]);
    }
    check_guarded(stacks[0]);
    check_guarded(stacks[BATCH - 1]);
    for (int i = 0; i < BATCH; i++) {
        rig_end(&rig, 0, stacks[i]);
    }
    rig_flush(&rig, 0);
    rig_trim(&rig, false);
    rig_trim(&rig, false);
    CHECK_LT(BATCH / 2, rig.stacks.depots[class].cold.count);
    check_guarded(stacks[0]);
    check_guarded(stacks[BATCH - 1]);
}

static void stack_is_writable_and_guarded_below(void)
{
    static const unsigned classes[] = { 0, DEFAULT_CLASS, WF_STACK_CLASSES - 1 };
    static const uint32_t guards[] = { WF_GUARD_UNKNOWN, WF_GUARD_MPROTECT };
    for (size_t i = 0; i < 2; i++) {
        rig_init(&rig);
        wf_store_relaxed(&rig.stacks.guard, guards[i]);
        for (size_t j = 0; j < 3; j++) {
            check_guards_of_class(classes[j]);
        }
        rig_fini(&rig);
    }
}

/* Runs in a child: the kernel refuses MADV_GUARD_INSTALL in locked memory. */
static void guard_locked_memory(void *arg)
{
    (void)arg;
    if (mlockall(MCL_FUTURE | MCL_ONFAULT) != 0) {
        child_skip("mlockall is not allowed");
    }
    rig_init(&rig);
    struct wf_stack *stack = rig_begin(&rig, 0, 0);
    CHECK_EQ(wf_load_relaxed(&rig.stacks.guard), WF_GUARD_MPROTECT);
    check_guarded(stack);
    rig_end(&rig, 0, stack);
    rig_fini(&rig);
}

/* Runs in a child: new stacks still get guards after memory becomes locked. */
static void guard_memory_locked_later(void *arg)
{
    (void)arg;
    rig_init(&rig);
    rig_promise(&rig, 0, 0);
    if (mlockall(MCL_FUTURE | MCL_ONFAULT) != 0) {
        child_skip("mlockall is not allowed");
    }
    struct wf_stack *stacks[2 * BATCH];
    for (int i = 0; i < 2 * BATCH; i++) {
        stacks[i] = rig_begin(&rig, 0, 0);
    }
    check_guarded(stacks[0]);
    check_guarded(stacks[2 * BATCH - 1]);
    for (int i = 0; i < 2 * BATCH; i++) {
        rig_end(&rig, 0, stacks[i]);
    }
    rig_fini(&rig);
}

static void guards_fall_back_to_mprotect(void)
{
    if (test_is_sanitized()) {
        test_skip("sanitizers ignore mlockall");
        return;
    }
    child_must_succeed(guard_locked_memory, NULL);
    child_must_succeed(guard_memory_locked_later, NULL);
}

/* --- Freeing memory -------------------------------------------------------------- */

enum {
    MANY = 500
};

static struct wf_stack *many[MANY];

static size_t count_touched(size_t page)
{
    size_t count = 0;
    for (size_t i = 0; i < MANY; i++) {
        count += is_touched(many[i], page);
    }
    return count;
}

static void idle_trim_keeps_64_stacks_and_frees_rest(void)
{
    const size_t pages = 32;
    rig_init(&rig);
    use_stacks(many, MANY, DEFAULT_CLASS, pages);
    struct wf_stack_depot *depot = &rig.stacks.depots[DEFAULT_CLASS];
    uint32_t free_count = depot->warm.count + depot->cold.count;
    size_t before = test_rss_bytes();
    rig_trim(&rig, true);
    size_t after = test_rss_bytes();
    CHECK_EQ(depot->warm.count, KEEP_IDLE);
    CHECK_EQ(depot->cold.count, free_count - KEEP_IDLE);
    size_t returned = (MANY - KEEP_IDLE) * pages * page_bytes();
    CHECK_GE(before, after);
    CHECK_GE(before - after, returned - returned / 10);

    size_t kept = count_touched(pages);
    CHECK_LE(kept, KEEP_IDLE);
    CHECK_GE(kept, KEEP_IDLE - BATCH); /* A few of the kept stacks were never used. */
    CHECK_EQ(count_touched(1), kept);
    rig_trim(&rig, true);
    CHECK_EQ(depot->warm.count, KEEP_IDLE);
    rig_fini(&rig);
}

static void freed_stack_memory_reads_as_zero(void)
{
    rig_init(&rig);
    for (unsigned class = 0; class < WF_STACK_CLASSES; class += 3) {
        struct wf_stack *stacks[2];
        for (size_t i = 0; i < 2; i++) {
            stacks[i] = rig_begin(&rig, 0, class);
            check_writable(stacks[i]);
        }
        rig_end(&rig, 0, stacks[0]);
        rig_end(&rig, 0, stacks[1]);
        use_stacks(stacks, 2, class, 1);
        trim_all(class);
        struct wf_stack *again = rig_begin(&rig, 0, class);
        for (const char *at = again->low; at < end_of(again); at++) {
            CHECK_EQ(*at, 0);
        }
        check_writable(again);
        rig_end(&rig, 0, again);
    }
    rig_fini(&rig);
}

/* Stacks leave the depot a batch at a time. */
static void trim_frees_stacks_not_needed_since_last_trim(void)
{
    rig_init(&rig);
    use_stacks(many, MANY, 0, 1);
    struct wf_stack_depot *depot = &rig.stacks.depots[0];
    uint32_t warm = depot->warm.count;

    rig_trim(&rig, false); /* All of them were needed until now. */
    CHECK_EQ(depot->warm.count, warm);

    use_stacks(many, 6 * BATCH, 0, 1);
    CHECK_EQ(depot->warm.count, warm);
    rig_trim(&rig, false);
    CHECK_EQ(depot->warm.count, 6 * BATCH);

    use_stacks(many, 2 * BATCH, 0, 1);
    rig_trim(&rig, false);
    CHECK_EQ(depot->warm.count, 2 * BATCH);
    rig_trim(&rig, false);
    CHECK_EQ(depot->warm.count, 0);
    rig_trim(&rig, false);
    CHECK_EQ(depot->cold.count, warm);
    rig_fini(&rig);
}

/* The stacks return to a depot that has just been emptied. */
static void trim_keeps_stacks_in_use_since_last_trim(void)
{
    struct wf_stack_depot *depot = &rig.stacks.depots[0];
    rig_init(&rig);
    use_stacks(many, 8 * BATCH, 0, 1);
    for (size_t i = 0; i < 4 * BATCH; i++) {
        many[i] = rig_begin(&rig, 0, 0);
    }
    trim_all(0);
    for (size_t i = 0; i < 4 * BATCH; i++) {
        rig_end(&rig, 0, many[i]);
    }
    rig_flush(&rig, 0);
    uint32_t warm = depot->warm.count;
    CHECK_LT(3 * BATCH, warm);
    rig_trim(&rig, false);
    CHECK_EQ(depot->warm.count, warm);
    rig_trim(&rig, false);
    CHECK_EQ(depot->warm.count, 0);
    rig_fini(&rig);
}

static bool stop_after(void *arg)
{
    unsigned *left = arg;
    return (*left)-- == 0;
}

static void trim_stops_on_request(void)
{
    rig_init(&rig);
    use_stacks(many, MANY, 0, 1);
    struct wf_stack_depot *depot = &rig.stacks.depots[0];
    uint32_t warm = depot->warm.count;
    unsigned left = 0;
    wf_stacks_trim(&rig.stacks, true, stop_after, &left);
    CHECK_EQ(depot->warm.count, warm);
    left = 3;
    wf_stacks_trim(&rig.stacks, true, stop_after, &left);
    CHECK_EQ(depot->warm.count, warm - 3 * BATCH);
    rig_fini(&rig);
}

static void every_class_is_trimmed(void)
{
    rig_init(&rig);
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        use_stacks(many, 5 * BATCH, class, 1);
    }
    rig_trim(&rig, true);
    for (unsigned class = 0; class < WF_STACK_CLASSES; class ++) {
        CHECK_EQ(rig.stacks.depots[class].warm.count, KEEP_IDLE);
        CHECK_GE(rig.stacks.depots[class].cold.count, 5 * BATCH - KEEP_IDLE);
    }
    rig_fini(&rig);
}

static bool is_mapped(char *at)
{
    unsigned char resident;
    char *page = at - (uintptr_t)at % page_bytes();
    if (mincore(page, 1, &resident) == 0) {
        return true;
    }
    CHECK_EQ(errno, ENOMEM);
    return false;
}

static void fini_unmaps_every_stack(void)
{
    rig_init(&rig);
    for (size_t i = 0; i < MANY; i++) {
        many[i] = rig_begin(&rig, 0, (unsigned)(i % 3));
    }
    char *lows[MANY];
    for (size_t i = 0; i < MANY; i++) {
        lows[i] = many[i]->low;
        CHECK(is_mapped(lows[i]));
    }
    for (size_t i = 0; i < MANY; i++) {
        rig_end(&rig, 0, many[i]);
    }
    rig_fini(&rig);
    for (size_t i = 0; i < MANY; i++) {
        CHECK(!is_mapped(lows[i]));
    }
}

/* --- Used depth --------------------------------------------------------------------- */

static uint64_t used_max(void)
{
    struct wf_stack_stats stats;
    wf_stacks_read(&rig.stacks, &stats);
    return stats.used_max;
}

/* Touches one stack at that depth only. */
static void check_used(unsigned class, size_t pages)
{
    struct wf_stack *stacks[8];
    rig_init(&rig);
    use_stacks(stacks, 8, class, 1);
    touch(stacks[3], pages);
    CHECK_EQ(used_max(), 0); /* Only a trim measures. */
    trim_all(class);
    CHECK_EQ(used_max(), pages * page_bytes());
    rig_fini(&rig);
}

static void trim_measures_deepest_page(void)
{
    const size_t small = wf_stack_class_size(0) / page_bytes();
    const size_t large = wf_stack_class_size(WF_STACK_CLASSES - 1) / page_bytes();
    check_used(0, 1);
    check_used(0, small);
    check_used(DEFAULT_CLASS, 20);
    /* Pages are scanned 512 at a time. */
    check_used(WF_STACK_CLASSES - 1, 1);
    check_used(WF_STACK_CLASSES - 1, 511);
    check_used(WF_STACK_CLASSES - 1, 512);
    check_used(WF_STACK_CLASSES - 1, 513);
    check_used(WF_STACK_CLASSES - 1, large - 1);
    check_used(WF_STACK_CLASSES - 1, large);
}

static void used_max_is_maximum_over_time_and_classes(void)
{
    struct wf_stack *stacks[2];
    rig_init(&rig);
    use_stacks(stacks, 2, DEFAULT_CLASS, 20);
    trim_all(DEFAULT_CLASS);
    CHECK_EQ(used_max(), 20 * page_bytes());
    use_stacks(stacks, 2, DEFAULT_CLASS, 3);
    use_stacks(stacks, 2, DEFAULT_CLASS + 1, 7);
    trim_all(DEFAULT_CLASS);
    CHECK_EQ(used_max(), 20 * page_bytes());
    use_stacks(stacks, 2, DEFAULT_CLASS + 1, 21);
    trim_all(DEFAULT_CLASS + 1);
    CHECK_EQ(used_max(), 21 * page_bytes());
    rig_fini(&rig);
}

/* --- Many stacks ---------------------------------------------------------------------- */

static size_t count_mappings(void)
{
    size_t lines = 0;
    char line[4096];
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        lines++;
    }
    (void)fclose(file);
    return lines;
}

static void guards_of_40000_stacks_need_no_mappings(void)
{
    if (!rig_has_guard_install()) {
        test_skip("this kernel has no MADV_GUARD_INSTALL");
        return;
    }
    const uint64_t count = test_scale(40000);
    rig_init(&rig);
    size_t before = count_mappings();
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQ(wf_stack_promise_outside(&rig.stacks, 0), 0);
        rig.promised[0]++;
    }
    rig_check_class(&rig, 0);
    CHECK_EQ(rig.stacks.depots[0].made, count);
    CHECK_LE(count_mappings(), before + 64);
    for (uint64_t i = 0; i < count; i++) {
        struct wf_stack *stack = wf_stack_take(&rig.stacks, &rig.caches[0], 0);
        CHECK(stack != NULL);
        rig.held[0]++;
        if (i == 0 || i == count - 1) {
            check_guarded(stack);
        }
    }
    rig_check_class(&rig, 0);
    CHECK_EQ(rig.complaints, 0);
    rig.held[0] = 0;
    wf_stacks_fini(&rig.stacks); /* It frees stacks wherever they are. */
    CHECK_EQ(rig.ledger.bytes, 0);
}

/* Runs in a child, which has no mapping left afterward. */
static void run_out_of_mappings(void *arg)
{
    const uint64_t most = *(uint64_t *)arg;
    rig_init(&rig);
    wf_store_relaxed(&rig.stacks.guard, (uint32_t)WF_GUARD_MPROTECT);
    uint64_t made = 0;
    while (made < most && wf_stack_promise_outside(&rig.stacks, 0) == 0) {
        made++;
    }
    rig.promised[0] = (uint32_t)made;
    CHECK_LT(made, most / 2 + 1);
    CHECK_GE(made, most / 2 - 1000);
    CHECK_EQ(rig.complaints, 1);
    CHECK_HAS(rig.complaint, "vm.max_map_count");
    CHECK_HAS(rig.complaint, " stacks of 16 KiB exist");
    CHECK_EQ(rig.stacks.depots[0].made, made);
    CHECK_EQ(rig_try_promise(&rig, 0, 0), -ENOMEM);
    CHECK_EQ(rig.complaints, 1);
    rig_unpromise_outside(&rig, 0);
    rig_promise(&rig, 0, 0); /* A stack exists for one promise. */
    struct wf_stack *stack = rig_take(&rig, 0, 0);
    check_writable(stack);
    rig_give(&rig, 0, stack);
    rig_fini(&rig);
}

static void running_out_of_mappings_is_reported_with_reason(void)
{
    uint64_t most = 0;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%lu", &most), 1);
    (void)fclose(file);
    if (test_is_sanitized() || most > 100000) {
        test_skip("a sanitizer, or %lu mappings", most);
        return;
    }
    child_must_succeed(run_out_of_mappings, &most);
}

TEST_MAIN({
    TEST(stack_is_writable_and_guarded_below),
    TEST(guards_fall_back_to_mprotect),
    TEST(idle_trim_keeps_64_stacks_and_frees_rest),
    TEST(freed_stack_memory_reads_as_zero),
    TEST(trim_frees_stacks_not_needed_since_last_trim),
    TEST(trim_keeps_stacks_in_use_since_last_trim),
    TEST(trim_stops_on_request),
    TEST(every_class_is_trimmed),
    TEST(fini_unmaps_every_stack),
    TEST(trim_measures_deepest_page),
    TEST(used_max_is_maximum_over_time_and_classes),
    TEST_NATIVE(guards_of_40000_stacks_need_no_mappings, "makes each guard a mapping"),
    TEST(running_out_of_mappings_is_reported_with_reason),
})
