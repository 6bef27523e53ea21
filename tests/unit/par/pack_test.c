/* SPDX-License-Identifier: MIT */
#include "par/pack.h"

#include "elements.h"

/* Any nonzero byte is a yes, not only 1. */
static unsigned char *create_answers(size_t count, unsigned share, unsigned yes)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), share);
    unsigned char *answers = malloc(count + 1);
    CHECK(answers != NULL);
    for (size_t i = 0; i < count; i++) {
        answers[i] = (unsigned char)(wf_rng_below(&rng, 100) < share ? yes : 0);
    }
    return answers;
}

/* Puts the kept elements first, then the others. Returns the number that are kept. */
static size_t pack_alone(const struct elements *from, const unsigned char *keep, char *to)
{
    size_t kept = 0;
    for (unsigned others = 0; others < 2; others++) {
        for (size_t i = 0; i < from->count; i++) {
            if ((keep[i] == 0) == others) {
                memcpy(to, element_at(from, i), from->size);
                to += from->size;
                kept += !others;
            }
        }
    }
    return kept;
}

/* The guards are behind all elements if with_others is true, else behind the kept ones. */
static void check_pack(const struct elements *from, const unsigned char *keep, bool with_others)
{
    struct elements wanted = elements_copy(from);
    size_t count = pack_alone(from, keep, (char *)wanted.array.at);
    struct guarded to = guarded_create((with_others ? from->count : count) * from->size, 5);
    size_t kept = 1000;
    struct wf_pack pack = { .from = (const char *)from->array.at,
                            .count = from->count,
                            .size = from->size,
                            .keep = keep,
                            .to = (char *)to.at,
                            .with_others = with_others };
    CHECK_EQ(wf_pack(&pack, &kept, NULL), 0);
    CHECK_EQ(kept, 1000 + count);
    CHECK_EQ(memcmp(to.at, wanted.array.at, to.size), 0);
    guarded_check(&to);
    if (!with_others) {
        memset(to.at, 0, to.size);
        CHECK_EQ(wf_pack_alone(&pack), count);
        CHECK_EQ(memcmp(to.at, wanted.array.at, to.size), 0);
    }
    guarded_destroy(&to);
    elements_destroy(&wanted);
}

static void check_input(enum pattern pattern, size_t count, size_t size)
{
    static const unsigned shares[] = { 0, 2, 50, 99, 100 };
    struct elements from = elements_create(pattern, count, size);
    for (unsigned i = 0; i < 5; i += 1 + (count > 100)) {
        unsigned share = shares[(i + pattern) % 5];
        unsigned char *keep = create_answers(count, share, pattern % 2 == 0 ? 1 : 0x40);
        check_pack(&from, keep, false);
        check_pack(&from, keep, true);
        free(keep);
    }
    elements_destroy(&from);
}

static int check_inputs(void *arg)
{
    (void)arg;
    for_some_inputs(check_input);
    return 0;
}

static void pack_keeps_order_of_kept_and_other_elements(void)
{
    test_run_everywhere(check_inputs, NULL);
}

/* --- weft_pack() --------------------------------------------------------------------------- */

static int pack_many(void *arg)
{
    (void)arg;
    size_t count = test_scale(1000000);
    struct elements from = elements_create(SORTED, count, 4);
    bool *keep = malloc(count * sizeof *keep);
    CHECK(keep != NULL);
    for (size_t i = 0; i < count; i++) {
        keep[i] = i % 3 == 1;
    }
    size_t kept = 77;
    struct guarded to = guarded_create((count + 1) / 3 * 4, 0);
    CHECK_EQ(weft_pack(from.array.at, count, 4, keep, to.at, &kept, NULL), 0);
    CHECK_EQ(kept, (count + 1) / 3);
    for (size_t i = 0; i < kept; i++) {
        CHECK_EQ(memcmp(to.at + 4 * i, element_at(&from, 3 * i + 1), 4), 0);
    }
    guarded_destroy(&to);
    free(keep);
    elements_destroy(&from);
    return 0;
}

static void many_elements_are_packed(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, pack_many, NULL), 0);
    CHECK_EQ(weft_par_run(rt, pack_many, NULL), 0);
    weft_runtime_destroy(rt);
}

static int stop_before(void *arg)
{
    static const bool keep[10000] = { true };
    (void)arg;
    weft_stop stop = { 0 };
    weft_stop_set(&stop);
    weft_par_options options = { .stop = &stop };
    static int from[10000];
    static int to[10000];
    for (size_t count = 10; count <= 10000; count += 9990) {
        size_t kept = 77;
        CHECK_EQ(weft_pack(from, count, 4, keep, to, &kept, &options), WEFT_ECANCELED);
        CHECK_EQ(kept, 77);
    }
    return 0;
}

static void cancel_flag_ends_call(void)
{
    test_run_everywhere(stop_before, NULL);
}

static void invalid_arguments_are_rejected(void)
{
    size_t kept = 77;
    CHECK_EQ(weft_pack(NULL, 0, 0, NULL, NULL, &kept, NULL), -EINVAL);
    CHECK_EQ(weft_pack(NULL, SIZE_MAX / 2, 4, NULL, NULL, &kept, NULL), -EINVAL);
    CHECK_EQ(kept, 77);
    CHECK_EQ(weft_pack(NULL, 0, 4, NULL, NULL, &kept, NULL), 0);
    CHECK_EQ(kept, 0);
}

TEST_MAIN({
    TEST(pack_keeps_order_of_kept_and_other_elements),
    TEST(many_elements_are_packed),
    TEST(cancel_flag_ends_call),
    TEST(invalid_arguments_are_rejected),
})
