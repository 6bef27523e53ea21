/* SPDX-License-Identifier: MIT */
/*
 * proxy.c - proxy descriptors, which the kernel watches in place of a source's descriptor.
 *
 * With io_uring: epoll instances. A poll in a ring holds a reference to its file. When a
 * process ends without closing its descriptors, for example by SIGKILL, the kernel cancels the
 * polls of its rings later, in a kernel worker, when the parent may already know of the end.
 * Until then a listener still listens, and a restarted program cannot bind the address again.
 * So the ring does not poll a socket that has an address of its own. It polls an epoll instance
 * that contains the socket, since an epoll instance holds no reference. The socket is closed
 * with the process, as it is without io_uring.
 *
 * The same applies to descriptors of other libraries, which may be listeners, too.
 *
 * With epoll: a duplicate, for the second source of one descriptor.
 *
 * Rejected. Polling only on demand, and canceling when no task waits: a server waits for
 * connections all the time. One instance for all sockets, whose events the ring fetches: a
 * second path from the kernel to the tasks, with losses and wakes of its own. The proxies leave
 * the protocol of the ring as it is.
 */
#include "io/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "io/io.h"

static bool is_out_of_descriptors(int error)
{
    return error == EMFILE || error == ENFILE;
}

/* proxies[] holds the descriptor plus 1; 0 means none. */
int wf_proxy_open(struct wf_source *source, unsigned direction, unsigned events)
{
    if (source->proxies[direction] != 0) {
        return source->proxies[direction] - 1;
    }
    int saved = errno;
    struct epoll_event event = { .events = events };
    int proxy = epoll_create1(EPOLL_CLOEXEC);
    int result = proxy >= 0 ? proxy : is_out_of_descriptors(errno) ? source->fd : -errno;
    if (proxy >= 0 && epoll_ctl(proxy, EPOLL_CTL_ADD, source->fd, &event) != 0) {
        result = -errno;
        (void)close(proxy);
    } else if (proxy >= 0) {
        source->proxies[direction] = proxy + 1;
    }
    errno = saved;
    return result;
}

void wf_proxy_close(struct wf_source *source, unsigned direction)
{
    if (source->proxies[direction] != 0) {
        int saved = errno;
        (void)close(source->proxies[direction] - 1);
        source->proxies[direction] = 0;
        errno = saved;
    }
}

int wf_proxy_duplicate(struct wf_source *source)
{
    int fd = fcntl(source->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    source->proxies[0] = fd + 1;
    return fd;
}

void wf_proxy_close_all(struct wf_io *io)
{
    for (struct wf_source *block = io->blocks; block != NULL; block = block->next_block) {
        for (uint32_t i = 0; i < WF_SOURCE_BLOCK; i++) {
            wf_proxy_close(&block[i], 0);
            wf_proxy_close(&block[i], 1);
        }
    }
}
