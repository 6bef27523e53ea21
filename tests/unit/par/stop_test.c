/* SPDX-License-Identifier: MIT */
#include "par/stop.h"

#include "test.h"

static void nothing_stops_at_first(void)
{
    weft_stop stop = { 0 };
    struct wf_stopper stopper = { .stop = &stop };
    CHECK(!wf_stopper_is_set(&stopper));
    CHECK_EQ(wf_stopper_result(&stopper), 0);
    CHECK(!wf_stopper_is_set(&(struct wf_stopper){ .stop = NULL }));
}

static void a_request_stops(void)
{
    weft_stop stop = { 0 };
    struct wf_stopper stopper = { .stop = &stop };
    weft_stop_set(&stop);
    CHECK(wf_stopper_is_set(&stopper));
    CHECK_EQ(wf_stopper_result(&stopper), WEFT_ECANCELED);
}

static void the_first_error_is_the_result(void)
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
    TEST(nothing_stops_at_first),
    TEST(a_request_stops),
    TEST(the_first_error_is_the_result),
})
