/* SPDX-License-Identifier: MIT */
/*
 * asleep.h - waiting until another thread is asleep, without sleeping.
 *
 * Reads the thread's state from /proc/self/task/<tid>/stat: "tid (name) S ...".
 */
#ifndef ASLEEP_H
#define ASLEEP_H

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

static inline uint64_t own_tid(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

/* Returns the kernel's state letter: 'S' for sleeping, 'R' for running. 'X': the thread has
 * ended. */
static inline char state_of(uint64_t tid)
{
    char path[64];
    char text[256];
    (void)snprintf(path, sizeof path, "/proc/self/task/%llu/stat", (unsigned long long)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 'X';
    }
    ssize_t length = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (length <= 0) {
        return 'X';
    }
    text[length] = '\0';
    const char *name_end = strrchr(text, ')');
    CHECK(name_end != NULL);
    return name_end[2];
}

/* Fails the test if the thread ends instead. */
static inline void wait_until_asleep(uint64_t tid)
{
    char state;
    while ((state = state_of(tid)) != 'S') {
        CHECK_NE(state, 'X');
        (void)sched_yield();
    }
}

#endif
