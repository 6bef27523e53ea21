/* SPDX-License-Identifier: MIT */
/*
 * futex.c - futex wait and wake.
 */
#include "base/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"

int wf_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline)
{
    struct timespec until;
    struct timespec *timeout = NULL;
    if (deadline != WF_NEVER) {
        /* The kernel rejects a negative time. Any time in the past has the same effect. */
        int64_t at = deadline < 0 ? 0 : deadline;
        until = (struct timespec){ .tv_sec = at / 1000000000, .tv_nsec = at % 1000000000 };
        timeout = &until;
    }
    int saved = errno;
    /* WAIT_BITSET rather than WAIT: its timeout is absolute. */
    long rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, timeout,
                      NULL, FUTEX_BITSET_MATCH_ANY);
    int error = rc < 0 ? errno : 0;
    errno = saved;
    /* EAGAIN and EINTR count as spurious wake-ups: callers loop anyway. */
    WF_ASSERT(error == 0 || error == EAGAIN || error == EINTR || error == ETIMEDOUT);
    return error == ETIMEDOUT ? -ETIMEDOUT : 0;
}

void wf_futex_wake(_Atomic(uint32_t) *word, int count)
{
    int saved = errno;
    (void)syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0);
    errno = saved;
}

const void *wf_futex_robust_list(void)
{
    struct robust_list_head *head = NULL;
    size_t size = 0;
    return syscall(SYS_get_robust_list, 0, &head, &size) == 0 ? head : NULL;
}

bool wf_futex_robust_held(const void *list)
{
    const struct robust_list_head *head = list;
    return head != NULL && head->list.next != &head->list;
}

bool wf_futex_faults(_Atomic(uint32_t) *word)
{
    int saved = errno;
    long rc = syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
    bool faults = rc < 0 && errno == EFAULT;
    errno = saved;
    return faults;
}
