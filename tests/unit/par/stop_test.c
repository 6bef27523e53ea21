/* SPDX-License-Identifier: MIT */
#include "par/stop.h"

#include "test.h"

static void new_stopper_is_not_set(void)
{
    weft_stop stop = { 0 };
    struct wf_stopper stopper = { .stop = &stop };
    CHECK(!wf_stopper_is_set(&stopper));
    CHECK_EQ(wf_stopper_result(&stopper), 0);
    CHECK(!wf_stopper_is_set(&(struct wf_stopper){ .stop = NULL }));
}

static void cancel_flag_sets_stopper(void)
{
    weft_stop stop = { 0 };
    struct wf_stopper stopper = { .stop = &stop };
    weft_stop_set(&stop);
    CHECK(wf_stopper_is_set(&stopper));
    CHECK_EQ(wf_stopper_result(&stopper), WEFT_ECANCELED);
}

static void first_error_is_result(void)
{
    weft_stop stop = { 0 };
    struct wf_stopper stopper = { .stop = &stop };
    wf_stopper_fail(&stopper, -5);
    wf_stopper_fail(&stopper, -6);
    weft_stop_set(&stop);
    CHECK(wf_stopper_is_set(&stopper));
    CHECK_EQ(wf_stopper_result(&stopper), -5);
}

TEST_MAIN({
    TEST(new_stopper_is_not_set),
    TEST(cancel_flag_sets_stopper),
    TEST(first_error_is_result),
})
