/* SPDX-License-Identifier: MIT */
#include "mess.h"

#include <errno.h>

#include "test.h"

int test_leave_a_mess(void *arg)
{
    (void)arg;
    CHECK_EQ(errno, 0);
    CHECK_EQ(wf_fp_control_read() & TEST_ROUNDING, 0);
    errno = 99;
    wf_fp_control_write(wf_fp_control_read() | TEST_ROUNDING);
    return 0;
}
