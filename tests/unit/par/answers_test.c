/* SPDX-License-Identifier: MIT */
#include "par/answers.h"

#include "inputs.h"

enum {
    COUNT_MAX = 5000,
};

static void check_count(const unsigned char *answers, size_t count)
{
    size_t yes = 0;
    for (size_t i = 0; i < count; i++) {
        yes += answers[i] != 0;
    }
    CHECK_EQ(wf_answers_count(answers, count), yes);
}

static void check_ends(const unsigned char *answers, size_t count, bool wanted)
{
    size_t first = count;
    size_t last = count;
    for (size_t i = 0; i < count; i++) {
        if ((answers[i] != 0) == wanted) {
            first = first == count ? i : first;
            last = i;
        }
    }
    CHECK_EQ(wf_answers_first(answers, count, wanted), first);
    CHECK_EQ(wf_answers_last(answers, count, wanted), last);
}

/* Any nonzero byte is a yes. */
static void fill(unsigned char *answers, size_t count, unsigned yes_of_100, struct wf_rng *rng)
{
    static const unsigned char yes[] = { 1, 1, 1, 1, 1, 2, 0x80, 0xFF };
    for (size_t i = 0; i < count; i++) {
        bool is_yes = wf_rng_below(rng, 100) < yes_of_100;
        answers[i] = is_yes ? yes[wf_rng_below(rng, 8)] : 0;
    }
}

static void answers_are_counted_and_found(void)
{
    static const unsigned shares[] = { 0, 1, 50, 99, 100 };
    static const size_t counts[] = { 100, 2039, 2040, 2041, 4080, COUNT_MAX };
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    struct guarded memory = guarded_create(COUNT_MAX, 3);
    for (unsigned k = 0; k < 5; k++) {
        fill(memory.at, COUNT_MAX, shares[k], &rng);
        for (size_t i = 0; i < 106; i++) {
            size_t count = i < 100 ? i : counts[i - 100];
            check_count(memory.at + COUNT_MAX - count, count);
            check_ends(memory.at + COUNT_MAX - count, count, true);
            check_ends(memory.at, count, false);
        }
    }
    guarded_destroy(&memory);
}

static void single_answer_is_found_at_any_position(void)
{
    unsigned char answers[100];
    for (unsigned k = 0; k < 2; k++) {
        for (size_t i = 0; i < 100; i++) {
            memset(answers, k == 0, sizeof answers);
            answers[i] = (unsigned char)k;
            check_ends(answers, 100, k == 1);
        }
    }
}

TEST_MAIN({
    TEST(answers_are_counted_and_found),
    TEST(single_answer_is_found_at_any_position),
})
