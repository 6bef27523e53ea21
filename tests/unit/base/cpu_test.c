/* SPDX-License-Identifier: MIT */
#include "base/cpu.h"

#include <sched.h>

#include "test.h"

static void cpu_max_rounds_up_to_whole_cpus(void)
{
    CHECK_EQ(wf_cpu_parse_max("150000 100000"), 2);
    CHECK_EQ(wf_cpu_parse_max("100000 100000"), 1);
    CHECK_EQ(wf_cpu_parse_max("100001 100000"), 2);
    CHECK_EQ(wf_cpu_parse_max("99999 100000"), 1);
    CHECK_EQ(wf_cpu_parse_max("1 1000000"), 1);
    CHECK_EQ(wf_cpu_parse_max("400000 100000\n"), 4);
}

static void cpu_max_without_limit_returns_zero(void)
{
    CHECK_EQ(wf_cpu_parse_max("max 100000"), 0);
    CHECK_EQ(wf_cpu_parse_max("max 100000\n"), 0);
    CHECK_EQ(wf_cpu_parse_max("max"), 0);
}

static void malformed_cpu_max_returns_zero(void)
{
    static const char *const texts[] = {
        "",
        " ",
        "\n",
        "garbage",
        "garbage 100000",
        "100000",
        "100000 ",
        "100000 garbage",
        "100000 0",
        "100000 -100000",
        "0 100000",
        "-1 100000",
        "-100000 -100000",
        "100000max 100000",
        "100000.5 100000",
        "0x10000 100000",
        "-99999999999999999999999 100000",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK_EQ(wf_cpu_parse_max(texts[i]), 0);
    }
}

static void huge_cpu_max_is_clamped(void)
{
    CHECK_EQ(wf_cpu_parse_max("65535 1"), 65535);
    CHECK_EQ(wf_cpu_parse_max("65536 1"), 65535);
    CHECK_EQ(wf_cpu_parse_max("4294967296 1"), 65535);
    CHECK_EQ(wf_cpu_parse_max("9223372036854775807 1"), 65535);
    CHECK_EQ(wf_cpu_parse_max("9223372036854775807 9223372036854775807"), 1);
    CHECK_EQ(wf_cpu_parse_max("99999999999999999999999 100000"), 65535);
    CHECK_EQ(wf_cpu_parse_max("100000 99999999999999999999999"), 1);
}

static void quota_rounds_up_to_whole_cpus(void)
{
    CHECK_EQ(wf_cpu_parse_quota("150000\n", "100000\n"), 2);
    CHECK_EQ(wf_cpu_parse_quota("100000\n", "100000\n"), 1);
    CHECK_EQ(wf_cpu_parse_quota("100001", "100000"), 2);
    CHECK_EQ(wf_cpu_parse_quota("1000", "100000"), 1);
}

static void quota_without_limit_returns_zero(void)
{
    CHECK_EQ(wf_cpu_parse_quota("-1\n", "100000\n"), 0);
}

static void malformed_quota_returns_zero(void)
{
    CHECK_EQ(wf_cpu_parse_quota("", ""), 0);
    CHECK_EQ(wf_cpu_parse_quota("", "100000"), 0);
    CHECK_EQ(wf_cpu_parse_quota("100000", ""), 0);
    CHECK_EQ(wf_cpu_parse_quota("garbage", "100000"), 0);
    CHECK_EQ(wf_cpu_parse_quota("100000", "garbage"), 0);
    CHECK_EQ(wf_cpu_parse_quota("max", "100000"), 0);
    CHECK_EQ(wf_cpu_parse_quota("0", "100000"), 0);
    CHECK_EQ(wf_cpu_parse_quota("100000", "0"), 0);
    CHECK_EQ(wf_cpu_parse_quota("100000", "-1"), 0);
    CHECK_EQ(wf_cpu_parse_quota("-100000", "-1"), 0);
}

static void huge_quota_is_clamped(void)
{
    CHECK_EQ(wf_cpu_parse_quota("9223372036854775807", "1"), 65535);
    CHECK_EQ(wf_cpu_parse_quota("99999999999999999999999", "1"), 65535);
    CHECK_EQ(wf_cpu_parse_quota("1", "99999999999999999999999"), 1);
}

static void count_is_between_one_and_affinity_mask_size(void)
{
    cpu_set_t mask;
    CHECK_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    CHECK_GE(wf_cpu_count(), 1);
    CHECK_LE(wf_cpu_count(), CPU_COUNT(&mask));
}

static void count_follows_affinity_mask(void)
{
    cpu_set_t before;
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    unsigned all = wf_cpu_count();

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &before)) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
            CHECK_EQ(wf_cpu_count(), 1);
        }
    }

    CHECK_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    CHECK_EQ(wf_cpu_count(), all);
}

TEST_MAIN({ TEST(cpu_max_rounds_up_to_whole_cpus), TEST(cpu_max_without_limit_returns_zero),
            TEST(malformed_cpu_max_returns_zero), TEST(huge_cpu_max_is_clamped),
            TEST(quota_rounds_up_to_whole_cpus), TEST(quota_without_limit_returns_zero),
            TEST(malformed_quota_returns_zero), TEST(huge_quota_is_clamped),
            TEST(count_is_between_one_and_affinity_mask_size), TEST(count_follows_affinity_mask) })
