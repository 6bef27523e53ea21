/* SPDX-License-Identifier: MIT */
#include "base/assert.h"

#include <string.h>

#include "test.h"

static void fail_with_a_number(void)
{
    wf_fatal("weft_call: %d is %s", 17, "too many");
}

static void fatal_prints_one_sentence_and_aborts(void)
{
    CHECK_ABORTS(fail_with_a_number, "weft: weft_call: 17 is too many\n");
}

static void fail_with_a_percent_sign(void)
{
    wf_fatal("%s", "100%s of %n");
}

static void fatal_does_not_interpret_its_arguments(void)
{
    CHECK_ABORTS(fail_with_a_percent_sign, "weft: 100%s of %n\n");
}

static void fail_with_a_long_text(void)
{
    char text[4000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    wf_fatal("%s", text);
}

static void fatal_ends_its_line_after_any_length(void)
{
    CHECK_ABORTS(fail_with_a_long_text, "xxx\n");
}

static void fail_an_assertion(void)
{
    int workers = 0;
    WF_ASSERT(workers > 0);
}

static void failed_assertion_names_file_and_expression(void)
{
    CHECK_ABORTS(fail_an_assertion, "assert_test.c:");
    CHECK_ABORTS(fail_an_assertion, "'workers > 0' does not hold");
}

static void fail_a_debug_assertion(void)
{
    WF_DEBUG_ASSERT(1 > 2);
}

static void debug_assertion_is_checked_in_test_builds(void)
{
    CHECK_ABORTS(fail_a_debug_assertion, "'1 > 2' does not hold");
}

static int calls;

static bool count_call(void)
{
    calls++;
    return true;
}

static void assertion_that_holds_is_evaluated_once(void)
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

static void assertion_takes_any_scalar(void)
{
    const char *text = "text";
    WF_ASSERT(text);
    WF_ASSERT(0x100000000);
    WF_DEBUG_ASSERT(-1);
}

static void hints_keep_the_truth_of_their_argument(void)
{
    CHECK_EQ(wf_likely(0x100000000), 1);
    CHECK_EQ(wf_likely(0), 0);
    CHECK_EQ(wf_unlikely(0x100000000), 1);
    CHECK_EQ(wf_unlikely(0), 0);
}

TEST_MAIN({ TEST(fatal_prints_one_sentence_and_aborts),
            TEST(fatal_does_not_interpret_its_arguments),
            TEST(fatal_ends_its_line_after_any_length),
            TEST(failed_assertion_names_file_and_expression),
            TEST_DEBUG(debug_assertion_is_checked_in_test_builds),
            TEST(assertion_that_holds_is_evaluated_once), TEST(assertion_takes_any_scalar),
            TEST(hints_keep_the_truth_of_their_argument) })
