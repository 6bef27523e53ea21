/* SPDX-License-Identifier: MIT */
#include "par/runs.h"

#include "inputs.h"

/* Keys in runs of length equal ones, alone or each followed by another word. */
static void find_one(size_t count, size_t length, size_t words)
{
    struct guarded array = guarded_create(count * words * sizeof(uint64_t), 0);
    struct guarded found = guarded_create((count + 1) * sizeof(size_t), 0);
    uint64_t *keys = (uint64_t *)(void *)array.at;
    size_t *begins = (size_t *)(void *)found.at;
    for (size_t i = 0; i < count * words; i++) {
        keys[i] = i % words == 0 ? i / words / length : i;
    }
    struct wf_runs_keys sorted = { keys, words * sizeof(uint64_t), count };
    size_t runs = 77;
    CHECK_EQ(wf_runs_find(&sorted, begins, &runs, NULL), 0);
    CHECK_EQ(runs, (count + length - 1) / length);
    for (size_t i = 0; i < runs; i++) {
        CHECK_EQ(begins[i], i * length);
    }
    CHECK_EQ(begins[runs], count);
    guarded_destroy(&found);
    guarded_destroy(&array);
}

static int find_all(void *arg)
{
    (void)arg;
    static const size_t counts[] = { 0, 1, 2, 100, 1023, 1024, 1025, 50000 };
    for (size_t i = 0; i < 8; i++) {
        for (size_t length = 1; length < 3000; length = length * 3 + 1) {
            find_one(counts[i], length, 1);
            find_one(counts[i], length, 2);
        }
        find_one(counts[i], 1000000, 2);
    }
    return 0;
}

static void runs_of_any_length_are_found(void)
{
    test_run_everywhere(find_all, NULL);
}

static void cancel_flag_ends_call(void)
{
    uint64_t keys[2] = { 1, 2 };
    size_t begins[3];
    size_t runs;
    weft_stop stop = { 0 };
    weft_stop_set(&stop);
    struct wf_runs_keys sorted = { keys, sizeof *keys, 2 };
    CHECK_EQ(wf_runs_find(&sorted, begins, &runs, &stop), WEFT_ECANCELED);
}

TEST_MAIN({
    TEST(runs_of_any_length_are_found),
    TEST(cancel_flag_ends_call),
})
