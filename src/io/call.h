/* SPDX-License-Identifier: MIT */
/*
 * call.h - system calls that are made for each message or each wake.
 *
 * The functions of the C library are cancellation points (pthread_cancel), but a worker is
 * never canceled that way. In a process with more than one thread this costs two atomic
 * exchanges and thirty instructions per call. Under a sanitizer the library's functions are
 * used, since the sanitizer intercepts them: it learns from them which memory was written, and
 * the order of events.
 */
#ifndef WF_IO_CALL_H
#define WF_IO_CALL_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "fiber/sanitizer.h"

#if defined(SYS_recvfrom) && defined(SYS_sendto) && !defined(WF_TSAN) && !defined(WF_ASAN)
#define WF_CALL_IS_PLAIN 1
#else
#define WF_CALL_IS_PLAIN 0
#endif

static inline ssize_t wf_call_recv(int fd, void *buffer, size_t size, int flags)
{
#if WF_CALL_IS_PLAIN
    return syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
#else
    return recv(fd, buffer, size, flags);
#endif
}

static inline ssize_t wf_call_send(int fd, const void *data, size_t size, int flags)
{
#if WF_CALL_IS_PLAIN
    return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
#else
    return send(fd, data, size, flags);
#endif
}

/* Adds one to an eventfd. The counter cannot overflow: it holds more than all wakes there will
 * ever be. */
static inline void wf_call_count_up(int fd)
{
    int saved = errno;
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one);
    WF_ASSERT(written == sizeof one);
    errno = saved;
}

#endif
