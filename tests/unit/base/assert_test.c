/* SPDX-License-Identifier: MIT */
#include "base/assert.h"

#include <string.h>

#include "test.h"

static void fatal_with_number(void)
{
    wf_fatal("weft_call: %d is %s", 17, "too many");
}

static void fatal_prints_one_line_and_aborts(void)
{
    CHECK_ABORTS(fatal_with_number, "weft: weft_call: 17 is too many\n");
}

static void fatal_with_percent_sign(void)
{
    wf_fatal("%s", "100%s of %n");
}

static void fatal_does_not_expand_percent_in_arguments(void)
{
    CHECK_ABORTS(fatal_with_percent_sign, "weft: 100%s of %n\n");
}

static void fatal_with_long_text(void)
{
    char text[4000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    wf_fatal("%s", text);
}

static void fatal_ends_truncated_text_with_newline(void)
{
    CHECK_ABORTS(fatal_with_long_text, "xxx\n");
}

static void fail_assertion(void)
{
    int workers = 0;
    WF_ASSERT(workers > 0);
}

static void failed_assertion_names_file_and_expression(void)
{
    CHECK_ABORTS(fail_assertion, "assert_test.c:");
    CHECK_ABORTS(fail_assertion, "'workers > 0' does not hold");
}

static void fail_debug_assertion(void)
{
    WF_DEBUG_ASSERT(1 > 2);
}

static void debug_assertion_is_checked_in_test_builds(void)
{
    CHECK_ABORTS(fail_debug_assertion, "'1 > 2' does not hold");
}

static int calls;

static bool count_call(void)
{
    calls++;
    return true;
}

static void true_assertion_is_evaluated_once(void)
{
    calls = 0;
    WF_ASSERT(count_call());
    CHECK_EQ(calls, 1);
#ifdef WF_DEBUG
    WF_DEBUG_ASSERT(count_call());
    CHECK_EQ(calls, 2);
#else
    WF_DEBUG_ASSERT(count_call());
    CHECK_EQ(calls, 1);
#endif
}

static void assertion_accepts_any_scalar(void)
{
    const char *text = "text";
    WF_ASSERT(text);
    WF_ASSERT(0x100000000);
    WF_DEBUG_ASSERT(-1);
}

static void likely_and_unlikely_return_truth_of_argument(void)
{
    CHECK_EQ(wf_likely(0x100000000), 1);
    CHECK_EQ(wf_likely(0), 0);
    CHECK_EQ(wf_unlikely(0x100000000), 1);
    CHECK_EQ(wf_unlikely(0), 0);
}

TEST_MAIN({ TEST(fatal_prints_one_line_and_aborts),
            TEST(fatal_does_not_expand_percent_in_arguments),
            TEST(fatal_ends_truncated_text_with_newline),
            TEST(failed_assertion_names_file_and_expression),
            TEST_DEBUG(debug_assertion_is_checked_in_test_builds),
            TEST(true_assertion_is_evaluated_once), TEST(assertion_accepts_any_scalar),
            TEST(likely_and_unlikely_return_truth_of_argument) })
