/* SPDX-License-Identifier: MIT */
/*
 * epoll.c - in models of the whole library there is no I/O.
 */
#include <errno.h>

#include "io/io.h"

static int refuse(struct wf_io *io)
{
    (void)io;
    return -ENOSYS;
}

const struct wf_io_backend wf_io_epoll = { .name = "none", .open = refuse };
