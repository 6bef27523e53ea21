/* SPDX-License-Identifier: MIT */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "elements.h"
#include "memory.h"
#include "rt.h"

/* Distribution of slice lengths. */
enum shape {
    EMPTY,
    SINGLE,
    UNEVEN,   /* 0 to 100 elements */
    ONE_LONG, /* among many empty or short slices */
    AT_ENDS,  /* all but the first and the last are empty */
    SHAPES,
};

static size_t slice_count(enum shape shape, size_t i, size_t slices)
{
    switch (shape) {
    case EMPTY:
        return 0;
    case SINGLE:
        return 1;
    case UNEVEN:
        return i * 7919 % 101 * (i % 3 != 0);
    case ONE_LONG:
        return i == slices / 2 ? 15000 : i % 2;
    default:
        return i == 0 || i == slices - 1 ? 77 : 0;
    }
}

struct slices {
    struct elements from;
    weft_slice *slices;
    size_t count;
    size_t total;
};

/* Makes slices at positions all over one array. Empty slices have no base. */
static struct slices slices_create(enum shape shape, size_t count, size_t size)
{
    struct slices slices = { elements_create(SORTED, 20000, size), NULL, count, 0 };
    slices.slices = malloc((count + 1) * sizeof *slices.slices);
    CHECK(slices.slices != NULL);
    for (size_t i = 0; i < count; i++) {
        weft_slice *slice = &slices.slices[i];
        slice->count = slice_count(shape, i, count);
        slice->base = slice->count > 0 ? element_at(&slices.from, i * 31 % 5000) : NULL;
        slices.total += slice->count;
    }
    return slices;
}

static void slices_destroy(struct slices *slices)
{
    free(slices->slices);
    elements_destroy(&slices->from);
}

static void check_slices(const struct slices *slices, const weft_par_options *options)
{
    size_t size = slices->from.size;
    struct guarded to = guarded_create(slices->total * size, 3);
    struct guarded offsets = guarded_create((slices->count + 1) * sizeof(size_t), 0);
    for (unsigned with_offsets = 0; with_offsets < 2; with_offsets++) {
        memset(to.at, 0, to.size);
        size_t *at = (size_t *)(void *)offsets.at;
        CHECK_EQ(weft_flatten(slices->slices, slices->count, size, to.at, with_offsets ? at : NULL,
                              options),
                 0);
        size_t offset = 0;
        for (size_t i = 0; i < slices->count; i++) {
            const weft_slice *slice = &slices->slices[i];
            CHECK(slice->count == 0 ||
                  memcmp(to.at + offset * size, slice->base, slice->count * size) == 0);
            CHECK(!with_offsets || at[i] == offset);
            offset += slice->count;
        }
        CHECK(!with_offsets || at[slices->count] == offset);
        guarded_check(&to);
    }
    guarded_destroy(&offsets);
    guarded_destroy(&to);
}

static int check_shapes(void *arg)
{
    size_t size = *(const size_t *)arg;
    static const size_t counts[] = { 0, 1, 2, 127, 128, 500, 3000 };
    for (unsigned shape = 0; shape < SHAPES; shape++) {
        for (size_t k = 0; k < 7; k++) {
            struct slices slices = slices_create((enum shape)shape, counts[k], size);
            size_t scratch_size = weft_array_scratch(counts[k] + 1, sizeof(size_t));
            struct guarded scratch = guarded_create(scratch_size, 7);
            weft_par_options options = { .scratch = scratch.at, .scratch_size = scratch_size };
            check_slices(&slices, k % 2 == 0 ? &options : NULL);
            guarded_destroy(&scratch);
            slices_destroy(&slices);
        }
    }
    return 0;
}

static void flatten_concatenates_slices(void)
{
    for (size_t k = 0; k < ELEMENT_SIZES; k += 3) {
        size_t size = element_sizes[k];
        test_run_everywhere(check_shapes, &size);
    }
}

/* --- Early ends ---------------------------------------------------------------------------- */

static int refuse(void *arg)
{
    (void)arg;
    static const char bytes[4];
    weft_slice slices[300];
    for (size_t i = 0; i < 300; i++) {
        slices[i] = (weft_slice){ bytes, 1 };
    }
    char to[1200];
    char scratch[64];
    weft_stop stop = { 0 };
    weft_stop_set(&stop);
    weft_par_options options = { .scratch = scratch,
                                 .scratch_size = weft_array_scratch(301, sizeof(size_t)) - 1 };
    CHECK_EQ(weft_flatten(slices, 300, 0, to, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_flatten(slices, 300, 4, to, NULL, &options), -EINVAL);
    CHECK_EQ(weft_flatten(slices, SIZE_MAX, 4, to, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_flatten(slices, 300, 4, to, NULL, &(weft_par_options){ .stop = &stop }),
             WEFT_ECANCELED);
    slices[0].count = SIZE_MAX / 2;
    CHECK_EQ(weft_flatten(slices, 300, 4, to, NULL, NULL), -EINVAL);
    slices[299].count = SIZE_MAX / 2;
    slices[150].count = 4;
    CHECK_EQ(weft_flatten(slices, 300, 1, to, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_flatten(NULL, 0, 4, NULL, NULL, NULL), 0);
    return 0;
}

static void invalid_arguments_are_rejected(void)
{
    test_run_everywhere(refuse, NULL);
}

static int flatten(void *arg)
{
    const struct slices *slices = arg;
    char to[1];
    return weft_flatten(slices->slices, slices->count, 1, to, NULL, NULL);
}

static void out_of_memory_returns_enomem(void)
{
    struct slices slices = slices_create(EMPTY, 1000000, 1);
    CHECK_EQ(result_without_memory(flatten, &slices), -ENOMEM);
    slices_destroy(&slices);
}

/* --- Two workers in the same slices ----------------------------------------------------------- */

enum {
    GUARDED = 200 * 1000, /* slices */
};

/* Slices that are unreadable at first, and the first thread that tried to read one. */
static struct {
    weft_slice *slices;
    size_t size;
    _Atomic(int) first_thread;
    _Atomic(bool) is_open;
} guarded;

/*
 * The first thread to read a slice waits here until another thread reads one, too. That thread
 * folds: only one thread at a time scans.
 */
static void wait_for_other_thread(int number, siginfo_t *info, void *context)
{
    (void)context;
    int nobody = 0;
    int self = (int)syscall(SYS_gettid);
    const char *at = info->si_addr;
    const char *begin = (const char *)guarded.slices;
    if (at < begin || at >= begin + guarded.size) {
        (void)signal(number, SIG_DFL); /* A real fault: it happens again and ends the test. */
        return;
    }
    if (!atomic_compare_exchange_strong(&guarded.first_thread, &nobody, self) && nobody != self) {
        (void)mprotect(guarded.slices, guarded.size, PROT_READ);
        atomic_store(&guarded.is_open, true);
    }
    while (!atomic_load(&guarded.is_open)) {
        (void)sched_yield();
    }
}

static int flatten_guarded(void *arg)
{
    size_t *offsets = arg;
    char to[1];
    return weft_flatten(guarded.slices, GUARDED, 1, to, offsets, NULL);
}

/*
 * Goal:   slice offsets are right if some blocks of slices are counted before the total of the
 *         blocks before them is known.
 * Method: the memory of the slices cannot be read until two workers try to.
 */
static void offsets_are_right_if_two_workers_count_slices(void)
{
    static const char byte;
    size_t *offsets = malloc((GUARDED + 1) * sizeof *offsets);
    CHECK(offsets != NULL);
    guarded.size = GUARDED * sizeof(weft_slice);
    guarded.slices =
        mmap(NULL, guarded.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(guarded.slices != MAP_FAILED);
    /* The sum is too large for an array, so nothing is copied. */
    for (size_t i = 0; i < GUARDED; i++) {
        guarded.slices[i] = (weft_slice){ &byte, i * 1000003 + (PTRDIFF_MAX / GUARDED) };
    }
    weft_runtime *rt = test_start(4);
    struct sigaction action = { .sa_sigaction = wait_for_other_thread, .sa_flags = SA_SIGINFO };
    struct sigaction before;
    CHECK_EQ(sigaction(SIGSEGV, &action, &before), 0);
    CHECK_EQ(mprotect(guarded.slices, guarded.size, PROT_NONE), 0);
    CHECK_EQ(test_run(rt, flatten_guarded, offsets), -EINVAL);
    CHECK(atomic_load(&guarded.is_open));
    CHECK_EQ(sigaction(SIGSEGV, &before, NULL), 0);
    weft_runtime_destroy(rt);
    size_t sum = 0;
    for (size_t i = 0; i < GUARDED; i++) {
        CHECK_EQ(offsets[i], sum);
        sum += guarded.slices[i].count;
    }
    CHECK_EQ(offsets[GUARDED], sum);
    CHECK_EQ(munmap(guarded.slices, guarded.size), 0);
    free(offsets);
}

TEST_MAIN({
    TEST_DEBUG(out_of_memory_returns_enomem),
    TEST(flatten_concatenates_slices),
    TEST(invalid_arguments_are_rejected),
    TEST(offsets_are_right_if_two_workers_count_slices),
})
