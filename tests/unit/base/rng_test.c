/* SPDX-License-Identifier: MIT */
/*
 * rng_test.c - the random number generator against known outputs.
 *
 * The expected numbers were computed with an independent implementation in another language,
 * from the description in rng.h. Those of the mixer are published splitmix64 outputs.
 */
#include "base/rng.h"

#include "test.h"

/* Added to the seed once per stream, before mixing. */
#define STREAM_STEP UINT64_C(0x9E3779B97F4A7C15)

static void check_outputs(uint64_t seed, uint64_t stream, const uint32_t *outputs, size_t count)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, seed, stream);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(wf_rng_next(&rng), outputs[i]);
    }
}

static void seed_42_gives_known_outputs(void)
{
    static const uint32_t stream_0[] = { 0x0CCA95DF, 0xE5CE8CC1, 0xB52507B5, 0xF9555E6B,
                                         0x5469DD63, 0xD6C0135F, 0xFC53537F, 0x477A3BAA };
    static const uint32_t stream_1[] = { 0xA11FDE70, 0x0FAB6F24, 0xAFAE283E, 0x809969BC,
                                         0x808205A1, 0x32CDF464, 0xBE53CC2E, 0x958812CD };
    static const uint32_t stream_7[] = { 0xD999B0D1, 0xB76A92A8, 0xFD1724D9, 0x2867DFC2,
                                         0x7517CC65, 0x8C521BFA, 0x6D6A3798, 0xA8B7349F };
    check_outputs(42, 0, stream_0, 8);
    check_outputs(42, 1, stream_1, 8);
    check_outputs(42, 7, stream_7, 8);
}

static void mixer_matches_splitmix64(void)
{
    CHECK(wf_rng_mix(0) == 0);
    CHECK(wf_rng_mix(1) == UINT64_C(0x5692161D100B05E5));
    CHECK(wf_rng_mix(STREAM_STEP) == UINT64_C(0xE220A8397B1DCDAF));
}

static void seed_mixing_to_zero_gives_known_outputs(void)
{
    static const uint32_t outputs[] = { 0x00020401, 0x00040804, 0x0814040B, 0x08180419,
                                        0x081A0430, 0x08344431, 0x083A543F, 0x892864DA };
    check_outputs(0 - STREAM_STEP, 0, outputs, 8);
    check_outputs(0 - 5 * STREAM_STEP, 4, outputs, 8);
}

static void state_is_never_zero(void)
{
    for (uint64_t stream = 0; stream < 1000; stream++) {
        struct wf_rng rng;
        wf_rng_seed(&rng, 0 - (stream + 1) * STREAM_STEP, stream);
        for (int i = 0; i < 100; i++) {
            CHECK((rng.one | rng.two) != 0);
            (void)wf_rng_next(&rng);
        }
    }
}

static void same_seed_and_stream_give_same_outputs(void)
{
    struct wf_rng one;
    struct wf_rng two;
    wf_rng_seed(&one, test_seed(), 3);
    wf_rng_seed(&two, test_seed(), 3);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(wf_rng_next(&one), wf_rng_next(&two));
    }
}

/* Returns how many of the first 1000 outputs of two generators are equal at the same position. */
static int count_equal(uint64_t seed_one, uint64_t stream_one, uint64_t seed_two,
                       uint64_t stream_two)
{
    struct wf_rng one;
    struct wf_rng two;
    wf_rng_seed(&one, seed_one, stream_one);
    wf_rng_seed(&two, seed_two, stream_two);
    int equal = 0;
    for (int i = 0; i < 1000; i++) {
        equal += wf_rng_next(&one) == wf_rng_next(&two);
    }
    return equal;
}

static void neighboring_streams_and_seeds_differ(void)
{
    for (uint64_t i = 0; i < 64; i++) {
        CHECK_LE(count_equal(test_seed(), i, test_seed(), i + 1), 2);
        CHECK_LE(count_equal(i, 0, i + 1, 0), 2);
    }
}

static void below_one_returns_zero(void)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(wf_rng_below(&rng, 1), 0);
    }
}

static void below_stays_in_range(void)
{
    static const uint32_t limits[] = { 2, 3, 200, 0x7FFFFFFF, 0x80000001, UINT32_MAX };
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        for (int n = 0; n < 10000; n++) {
            CHECK_LT(wf_rng_below(&rng, limits[i]), limits[i]);
        }
    }
}

static void below_covers_wide_range(void)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    uint32_t lowest = UINT32_MAX;
    uint32_t highest = 0;
    for (int i = 0; i < 10000; i++) {
        uint32_t number = wf_rng_below(&rng, UINT32_MAX);
        lowest = number < lowest ? number : lowest;
        highest = number > highest ? number : highest;
    }
    CHECK_LT(lowest, UINT32_MAX / 100);
    CHECK_LT(UINT32_MAX - UINT32_MAX / 100, highest);
}

/* With 10000 expected hits per value the standard deviation is 100, so a tolerance of one tenth
 * is ten standard deviations. */
static void below_is_uniform(void)
{
    enum {
        VALUES_MAX = 16,
        EXPECTED = 10000
    };
    for (uint32_t values = 2; values <= VALUES_MAX; values++) {
        uint32_t hits[VALUES_MAX] = { 0 };
        struct wf_rng rng;
        wf_rng_seed(&rng, test_seed(), values);
        for (uint32_t i = 0; i < values * EXPECTED; i++) {
            hits[wf_rng_below(&rng, values)]++;
        }
        for (uint32_t value = 0; value < values; value++) {
            CHECK_LT(EXPECTED - EXPECTED / 10, hits[value]);
            CHECK_LT(hits[value], EXPECTED + EXPECTED / 10);
        }
    }
}

TEST_MAIN({ TEST(seed_42_gives_known_outputs), TEST(mixer_matches_splitmix64),
            TEST(seed_mixing_to_zero_gives_known_outputs), TEST(state_is_never_zero),
            TEST(same_seed_and_stream_give_same_outputs),
            TEST(neighboring_streams_and_seeds_differ), TEST(below_one_returns_zero),
            TEST(below_stays_in_range), TEST(below_covers_wide_range), TEST(below_is_uniform) })
