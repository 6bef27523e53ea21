/* SPDX-License-Identifier: MIT */
/*
 * calls.c - waits until calls are in progress on a handle (links.h, ports.h). Separate from the
 * rest of those, which needs no internal names: tests of the installed library use it.
 */
#include <sched.h>
#include <stdatomic.h>

#include <weft.h>

#include "io/source.h"
#include "links.h"
#include "ports.h"
#include "test.h"
#include "timing.h"

void source_wait_for_calls(const struct wf_source *source, uint32_t count)
{
    while ((atomic_load(&source->users) & WF_SOURCE_USERS_MAX) != count + 1) {
        CHECK_EQ(weft_yield(), 0);
    }
}

void link_wait_for_calls(const weft_stream *stream, uint32_t count)
{
    source_wait_for_calls(wf_source_of(stream), count);
}

void port_wait_for_users(const void *handle, unsigned count)
{
    const struct wf_source *source = wf_source_of(handle);
    weft_time deadline = test_deadline();
    /* The owner counts, too. */
    while ((atomic_load(&source->users) & WF_SOURCE_USERS_MAX) < count + 1) {
        CHECK_LT(weft_now(), deadline);
        (void)sched_yield();
    }
}
