/* SPDX-License-Identifier: MIT */
/*
 * proxy.h - a descriptor that the kernel watches in place of a source's.
 */
#ifndef WF_IO_PROXY_H
#define WF_IO_PROXY_H

#include <stdbool.h>

#include "io/source.h"

/*
 * Under the latch: returns what to poll for this direction (0: reading, 1: writing) of a source
 * that has wants_proxy: an epoll instance, which is readable if the source's descriptor has one of
 * these events of poll(2); or, without room for one more descriptor, the descriptor itself. -EPERM:
 * the descriptor cannot be waited for; -ENOSPC, -ENOMEM.
 */
int wf_proxy_open(struct wf_source *source, unsigned direction, unsigned events);

/* Under the latch: is there a proxy for this direction? */
static inline bool wf_proxy_is_open(const struct wf_source *source, unsigned direction)
{
    return source->proxies[direction] != 0;
}

/* Under the latch: the proxy of this direction, or the descriptor itself. */
static inline int wf_proxy_fd(const struct wf_source *source, unsigned direction)
{
    return wf_proxy_is_open(source, direction) ? source->proxies[direction] - 1 : source->fd;
}

/* Under the latch: returns a duplicate of the descriptor, the proxy of the first direction. */
int wf_proxy_duplicate(struct wf_source *source);

/* Under the latch. Does nothing if there is no proxy. */
void wf_proxy_close(struct wf_source *source, unsigned direction);

/* At the end of the runtime: those of sources that were never closed. */
void wf_proxy_close_all(struct wf_io *io);

#endif
