/* SPDX-License-Identifier: MIT */
/*
 * io_test.c - the I/O backend that a runtime reports.
 */
#include <weft/io.h>

#include <string.h>

#include "rt.h"
#include "test.h"

static void runtime_reports_io_backend_and_reason(void)
{
    static const weft_io_backend backends[] = { WEFT_IO_AUTO, WEFT_IO_EPOLL };
    for (unsigned i = 0; i < 2; i++) {
        weft_config config = WEFT_CONFIG_INIT;
        weft_io_info info = { 0 };
        config.io = backends[i];
        weft_runtime *rt = test_start_with(&config);
        CHECK_EQ(weft_runtime_io(rt, &info), 0);
        CHECK(strcmp(info.backend, "epoll") == 0 || strcmp(info.backend, "io_uring") == 0);
        CHECK(strlen(info.reason) > 0);
        /* The backend is chosen once. */
        weft_io_info again = { 0 };
        CHECK_EQ(weft_runtime_io(rt, &again), 0);
        CHECK_EQ(strcmp(again.backend, info.backend), 0);
        CHECK_EQ(strcmp(again.reason, info.reason), 0);
        weft_runtime_destroy(rt);
    }
}

TEST_MAIN({ TEST(runtime_reports_io_backend_and_reason) })
