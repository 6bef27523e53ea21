/* SPDX-License-Identifier: MIT */
/*
 * proxy.h - proxy descriptors, which the kernel watches in place of a source's descriptor.
 */
#ifndef WF_IO_PROXY_H
#define WF_IO_PROXY_H

#include <stdbool.h>

#include "io/source.h"

/*
 * Returns the descriptor to poll for one direction (0: reading, 1: writing) of a source that
 * has wants_proxy: an epoll instance, which is readable if the source's descriptor has one of
 * these events of poll(2). If no descriptor is left for it, returns the source's descriptor
 * itself. Fails with -EPERM if the descriptor cannot be waited for, -ENOSPC or -ENOMEM. The
 * caller holds the latch.
 */
int wf_proxy_open(struct wf_source *source, unsigned direction, unsigned events);

/* Returns whether this direction has a proxy. The caller holds the latch. */
static inline bool wf_proxy_is_open(const struct wf_source *source, unsigned direction)
{
    return source->proxies[direction] != 0;
}

/* Returns the proxy of this direction, or the descriptor itself. The caller holds the latch. */
static inline int wf_proxy_fd(const struct wf_source *source, unsigned direction)
{
    return wf_proxy_is_open(source, direction) ? source->proxies[direction] - 1 : source->fd;
}

/* Returns a duplicate of the descriptor, as the proxy of direction 0. The caller holds the
 * latch. */
int wf_proxy_duplicate(struct wf_source *source);

/* Closes the proxy of this direction, if any. The caller holds the latch. */
void wf_proxy_close(struct wf_source *source, unsigned direction);

/* Closes the proxies of sources that were never closed, when the runtime ends. */
void wf_proxy_close_all(struct wf_io *io);

#endif
