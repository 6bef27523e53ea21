/* SPDX-License-Identifier: MIT */
/*
 * kernel.c - see kernel.h.
 *
 * One word is all that changes: for each descriptor whether the instance knows it, whether it is
 * readable, and whether there is an event that nobody has fetched. The kernel has locks, so
 * whoever changes the word comes after all who have before. A look that finds nothing may be a
 * late one: only who sleeps is sure to be told.
 */
#include "kernel.h"

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "mc.h"

enum {
    INSTANCE = KERNEL_FIRST_FD + KERNEL_FDS,
    EVENTFD, /* There may be one. */
    FDS_MAX,
    /* In the word, of descriptor 0. */
    KNOWN = 1,
    READABLE = 1 << 10,
    EVENT = 1 << 20,
};

static _Atomic(uint32_t) word;
static uint64_t tags[FDS_MAX]; /* written before it is KNOWN */
static _Atomic(uint32_t) sleepers;
static _Atomic(uint32_t) open_count;

_Static_assert(FDS_MAX <= 10, "");

static void change(int fd, uint32_t set)
{
    uint32_t known = (uint32_t)KNOWN << fd;
    uint32_t readable = (uint32_t)READABLE << fd;
    uint32_t old = wf_load_relaxed(&word);
    uint32_t new;
    do {
        new = old | set << fd;
        if ((new &known) != 0 && (new &readable) != 0) {
            new |= (uint32_t)EVENT << fd;
        }
    } while (!wf_cas_acq_rel(&word, &old, new));
    if ((new &(uint32_t)EVENT << fd) != 0) {
        (void)mc_futex_wake(&word, 1);
    }
}

void kernel_readable(int fd)
{
    change(fd, READABLE);
}

unsigned kernel_open_count(void)
{
    return wf_load_relaxed(&open_count);
}

void kernel_thread_sleeps(bool does)
{
    (void)does;
}

static int open_fd(int fd)
{
    (void)wf_fetch_add_relaxed(&open_count, 1);
    return fd;
}

int epoll_create1(int flags)
{
    (void)flags;
    return open_fd(INSTANCE);
}

int eventfd(unsigned value, int flags)
{
    (void)value;
    (void)flags;
    return open_fd(EVENTFD);
}

int close(int fd)
{
    mc_assert(fd == INSTANCE || fd == EVENTFD);
    (void)wf_fetch_sub_relaxed(&open_count, 1);
    return 0;
}

ssize_t write(int fd, const void *data, size_t size)
{
    (void)data;
    mc_assert(fd == EVENTFD);
    change(fd, READABLE);
    return (ssize_t)size;
}

int epoll_ctl(int instance, int what, int fd, struct epoll_event *event)
{
    mc_assert(instance == INSTANCE);
    if (what == EPOLL_CTL_ADD) {
        tags[fd] = event->data.u64;
        change(fd, KNOWN);
    } else {
        (void)wf_fetch_and_acq_rel(&word, ~((uint32_t)(KNOWN | EVENT) << fd));
    }
    return 0;
}

/* Takes up to max events. */
static int take_events(uint32_t *seen, struct epoll_event *events, int max)
{
    uint32_t left = wf_load_relaxed(&word);
    while (left / EVENT != 0) {
        uint32_t taken = 0;
        int count = 0;
        for (int fd = 0; fd < FDS_MAX && count < max; fd++) {
            if ((left & (uint32_t)EVENT << fd) != 0) {
                taken |= (uint32_t)EVENT << fd;
                events[count].events = EPOLLIN;
                events[count++].data.u64 = (uint64_t)fd;
            }
        }
        if (wf_cas_acq_rel(&word, &left, left & ~taken)) {
            for (int i = 0; i < count; i++) {
                events[i].data.u64 = tags[events[i].data.u64];
            }
            return count;
        }
    }
    *seen = left;
    return 0;
}

int epoll_wait(int instance, struct epoll_event *events, int max, int timeout)
{
    mc_assert(instance == INSTANCE);
    mc_assert(timeout == 0 || timeout == -1);
    uint32_t seen;
    int count = take_events(&seen, events, max);
    if (count > 0 || timeout == 0) {
        return count;
    }
    mc_assert(wf_fetch_add_relaxed(&sleepers, 1) == 0); /* One on the seat. */
    while (count == 0) {
        (void)mc_futex_wait(&word, seen, INT64_MAX);
        count = take_events(&seen, events, max);
    }
    (void)wf_fetch_sub_relaxed(&sleepers, 1);
    return count;
}

/* An old kernel. */
int epoll_pwait2(int instance, struct epoll_event *events, int max, const struct timespec *timeout,
                 const sigset_t *mask)
{
    (void)instance;
    (void)events;
    (void)max;
    (void)timeout;
    (void)mask;
    errno = ENOSYS;
    return -1;
}
