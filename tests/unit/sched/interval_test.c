/* SPDX-License-Identifier: MIT */
#include "sched/interval.h"

#include "test.h"

enum {
    US = 1000,
    MS = 1000 * 1000,
    /* Number of ticks after which the last poll of the old duration has no effect any more. After
     * 44 ticks a hundredth of a change remains: 0.9^44 = 0.0097. */
    CONVERGED = 250,
    NEARLY = 44,
};

static struct wf_interval fresh(void)
{
    struct wf_interval interval;
    wf_interval_init(&interval, MS, 8, 255);
    return interval;
}

/* Feeds the given number of ticks of 16 polls each. */
static void feed(struct wf_interval *interval, uint64_t poll_ns, int ticks)
{
    for (int i = 0; i < ticks; i++) {
        wf_interval_sample(interval, 16 * poll_ns, 16);
    }
}

static struct wf_interval converged(uint64_t poll_ns)
{
    struct wf_interval interval = fresh();
    feed(&interval, poll_ns, CONVERGED);
    return interval;
}

static void first_estimate_is_50_us_and_gives_20_polls(void)
{
    struct wf_interval interval = fresh();
    CHECK_EQ(interval.average_ns, 50 * US);
    CHECK_EQ(wf_interval_polls(&interval), 20);
}

static void each_poll_duration_has_its_interval(void)
{
    static const struct {
        uint64_t poll_ns;
        uint32_t polls;
    } rows[] = {
        { 1, 255 },      { 100, 255 },     { 1 * US, 255 },  { 3 * US, 255 },
        { 4 * US, 250 }, { 5 * US, 200 },  { 10 * US, 100 }, { 20 * US, 50 },
        { 50 * US, 20 }, { 100 * US, 10 }, { 120 * US, 8 },  { 125 * US, 8 },
        { 200 * US, 8 }, { 1 * MS, 8 },    { 100 * MS, 8 },  { 1000 * MS, 8 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wf_interval interval = converged(rows[i].poll_ns);
        CHECK_EQ(wf_interval_polls(&interval), rows[i].polls);
    }
}

static void one_sample_moves_average_by_tenth(void)
{
    struct wf_interval interval = fresh();
    wf_interval_sample(&interval, 60 * US, 1);
    CHECK_EQ(interval.average_ns, 51 * US);
    interval = fresh();
    wf_interval_sample(&interval, 10 * 40 * US, 10);
    CHECK_EQ(interval.average_ns, 49 * US);
}

static void tick_is_one_sample_for_any_number_of_polls(void)
{
    struct wf_interval few = fresh();
    struct wf_interval many = fresh();
    wf_interval_sample(&few, 2 * 7 * US, 2);
    wf_interval_sample(&many, UINT64_C(128) * 7 * US, 128);
    CHECK(few.average_ns == many.average_ns);
}

static void one_outlier_moves_interval_by_less_than_half(void)
{
    static const uint64_t poll_ns[] = { 1 * US, 10 * US, 50 * US, 100 * US };
    for (size_t i = 0; i < sizeof poll_ns / sizeof poll_ns[0]; i++) {
        struct wf_interval interval = converged(poll_ns[i]);
        uint32_t before = wf_interval_polls(&interval);
        wf_interval_sample(&interval, 10 * MS, 1);
        uint32_t after = wf_interval_polls(&interval);
        CHECK_LE(after, before);
        CHECK_LT(2 * (before - after), before);
    }
}

static void unbounded_interval_moves_by_less_than_half_per_outlier(void)
{
    static const uint64_t poll_ns[] = { 10, 1 * US, 10 * US, 50 * US, 100 * US };
    for (size_t i = 0; i < sizeof poll_ns / sizeof poll_ns[0]; i++) {
        struct wf_interval interval;
        wf_interval_init(&interval, 1000 * MS, 1, UINT32_MAX);
        feed(&interval, poll_ns[i], CONVERGED);
        uint32_t before = wf_interval_polls(&interval);
        wf_interval_sample(&interval, 10 * MS, 1);
        uint32_t after = wf_interval_polls(&interval);
        CHECK_LT(after, before);
        CHECK_LT(2 * (before - after), before);
    }
}

static void outlier_within_tick_counts_as_its_share(void)
{
    struct wf_interval interval = converged(10 * US);
    wf_interval_sample(&interval, UINT64_C(127) * 10 * US + 1 * MS, 128);
    CHECK_LE(interval.average_ns, 11 * US);
    CHECK_GE(wf_interval_polls(&interval), 92);
}

static void empty_tick_is_not_sample(void)
{
    struct wf_interval interval = converged(10 * US);
    double before = interval.average_ns;
    wf_interval_sample(&interval, 0, 0);
    wf_interval_sample(&interval, 1000 * MS, 0);
    CHECK(interval.average_ns == before);
    CHECK_EQ(wf_interval_polls(&interval), 100);
}

static void average_is_at_least_1_ns(void)
{
    struct wf_interval interval = fresh();
    for (int i = 0; i < 1000; i++) {
        wf_interval_sample(&interval, 0, 128);
        CHECK(interval.average_ns >= 1);
    }
    CHECK(interval.average_ns == 1);
    CHECK_EQ(wf_interval_polls(&interval), 255);
    /* It still recovers from there. */
    feed(&interval, 100 * US, CONVERGED);
    CHECK_EQ(wf_interval_polls(&interval), 10);
}

static void decrease_converges_to_hundredth_within_44_ticks(void)
{
    struct wf_interval interval = converged(1 * MS);
    CHECK_EQ(wf_interval_polls(&interval), 8);
    feed(&interval, 10 * US, NEARLY);
    CHECK(interval.average_ns < 20 * US);
    CHECK_GE(wf_interval_polls(&interval), 50);
    feed(&interval, 10 * US, CONVERGED);
    CHECK_EQ(wf_interval_polls(&interval), 100);
}

static void increase_converges_to_hundredth_within_44_ticks(void)
{
    struct wf_interval interval = converged(50 * US);
    feed(&interval, 100 * US, NEARLY);
    CHECK(interval.average_ns > 99 * US);
    CHECK_EQ(wf_interval_polls(&interval), 10);
}

static void second_outlier_in_row_counts_in_full(void)
{
    struct wf_interval interval = converged(10 * US);
    wf_interval_sample(&interval, 10 * MS, 1);
    CHECK_EQ(interval.average_ns, 17 * US); /* Counted as 80 us. */
    wf_interval_sample(&interval, 10 * MS, 1);
    CHECK_EQ(interval.average_ns / 10, 101530); /* 0.1 * 10 ms + 0.9 * 17 us */
}

static void separate_outliers_are_each_limited(void)
{
    struct wf_interval interval = converged(10 * US);
    for (int i = 0; i < 5; i++) {
        double before = interval.average_ns;
        wf_interval_sample(&interval, 10 * MS, 1);
        CHECK(interval.average_ns < 1.8 * before);
        feed(&interval, 10 * US, NEARLY);
    }
    feed(&interval, 10 * US, CONVERGED);
    CHECK_EQ(wf_interval_polls(&interval), 100);
}

static void thousandfold_increase_converges_within_60_ticks(void)
{
    struct wf_interval interval = converged(1 * US);
    CHECK_EQ(wf_interval_polls(&interval), 255);
    feed(&interval, 1 * MS, 3);
    CHECK_EQ(wf_interval_polls(&interval), 8);
    feed(&interval, 1 * MS, 50);
    CHECK(interval.average_ns > 980 * US);
    CHECK(interval.average_ns <= 1 * MS);
}

static void bounds_and_target_are_configurable(void)
{
    struct wf_interval interval;
    wf_interval_init(&interval, 200 * US, 2, 127);
    CHECK_EQ(wf_interval_polls(&interval), 4);
    feed(&interval, 1 * US, CONVERGED);
    CHECK_EQ(wf_interval_polls(&interval), 127);
    feed(&interval, 10 * US, CONVERGED);
    CHECK_EQ(wf_interval_polls(&interval), 20);
    feed(&interval, 1 * MS, CONVERGED);
    CHECK_EQ(wf_interval_polls(&interval), 2);

    wf_interval_init(&interval, 10 * MS, 61, 61);
    CHECK_EQ(wf_interval_polls(&interval), 61);
    feed(&interval, 1, CONVERGED);
    CHECK_EQ(wf_interval_polls(&interval), 61);

    wf_interval_init(&interval, 1000 * MS, 1, 65535);
    feed(&interval, 100 * US, CONVERGED);
    CHECK_EQ(wf_interval_polls(&interval), 10000);
    feed(&interval, 1, CONVERGED);
    CHECK_EQ(wf_interval_polls(&interval), 65535);
}

TEST_MAIN({
    TEST(first_estimate_is_50_us_and_gives_20_polls),
    TEST(each_poll_duration_has_its_interval),
    TEST(one_sample_moves_average_by_tenth),
    TEST(tick_is_one_sample_for_any_number_of_polls),
    TEST(one_outlier_moves_interval_by_less_than_half),
    TEST(unbounded_interval_moves_by_less_than_half_per_outlier),
    TEST(outlier_within_tick_counts_as_its_share),
    TEST(empty_tick_is_not_sample),
    TEST(average_is_at_least_1_ns),
    TEST(decrease_converges_to_hundredth_within_44_ticks),
    TEST(increase_converges_to_hundredth_within_44_ticks),
    TEST(second_outlier_in_row_counts_in_full),
    TEST(separate_outliers_are_each_limited),
    TEST(thousandfold_increase_converges_within_60_ticks),
    TEST(bounds_and_target_are_configurable),
})
