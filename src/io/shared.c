/* SPDX-License-Identifier: MIT */
/*
 * shared.c - terminals and standard pipes as streams, without making them non-blocking for
 * others.
 *
 * O_NONBLOCK belongs to the open file description. Standard input, output and error of a
 * program on a terminal are one description, which the shell shares, too. With O_NONBLOCK on
 * standard input, printf() fails with EAGAIN when the terminal is slow, and the next program
 * that the shell starts inherits the non-blocking terminal. A pipe that several programs write
 * to is shared in the same way. So the stream gets a description of its own: the adopted
 * descriptor is opened again, through /proc/self/fd.
 *
 * That may fail: without /proc, or if the terminal belongs to another user since a change of
 * user. Then the shared description becomes non-blocking while the stream has it, and blocking
 * again when the stream is closed or released, or when the process calls exit(). A process that
 * is killed leaves it non-blocking.
 *
 * The master of a pseudo terminal cannot be opened again, since that makes a new one. A socket
 * cannot either. They are normally not shared, and become non-blocking.
 */
#include "io/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"

enum {
    BORROWED_MAX = 16,
};

static struct wf_lock lock = WF_LOCK_INIT(WF_RANK_SHARED); /* guards the variables below */
static int borrowed[BORROWED_MAX];                         /* made non-blocking: fd + 1, or 0 */
static bool is_registered;                                 /* with atexit() */

static bool is_master(int fd)
{
    int number;
    return ioctl(fd, TIOCGPTN, &number) == 0;
}

static bool is_kind(int fd, const struct stat *status)
{
    if (S_ISFIFO(status->st_mode)) {
        return fd <= STDERR_FILENO;
    }
    return S_ISCHR(status->st_mode) && isatty(fd) == 1 && !is_master(fd);
}

bool wf_shared_is(int fd)
{
    int saved = errno;
    struct stat status;
    int flags = fcntl(fd, F_GETFL);
    bool is =
        flags >= 0 && (flags & O_NONBLOCK) == 0 && fstat(fd, &status) == 0 && is_kind(fd, &status);
    errno = saved;
    return is;
}

static void set_blocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0) {
        (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    }
}

/* Called at exit. Other threads may still run. */
static void restore_all(void)
{
    wf_lock(&lock);
    for (unsigned i = 0; i < BORROWED_MAX; i++) {
        if (borrowed[i] != 0) {
            set_blocking(borrowed[i] - 1);
        }
    }
    wf_unlock(&lock);
}

/* Notes a descriptor to restore at exit. If the array is full, it is restored only when its
 * stream ends. */
static void note(int fd)
{
    wf_lock(&lock);
    for (unsigned i = 0; i < BORROWED_MAX; i++) {
        if (borrowed[i] == 0) {
            borrowed[i] = fd + 1;
            break;
        }
    }
    bool registers = !is_registered;
    is_registered = true;
    wf_unlock(&lock);
    if (registers) {
        (void)atexit(restore_all);
    }
}

static void forget(int fd)
{
    wf_lock(&lock);
    for (unsigned i = 0; i < BORROWED_MAX; i++) {
        if (borrowed[i] == fd + 1) {
            borrowed[i] = 0;
            break;
        }
    }
    wf_unlock(&lock);
}

/* Returns whether both are the same terminal or pipe. */
static bool is_same(int one, int other)
{
    struct stat a;
    struct stat b;
    return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_rdev == b.st_rdev &&
           a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static int open_again(int fd, int flags)
{
    char path[40];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, (flags & (O_ACCMODE | O_DIRECT)) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (again >= 0 && !is_same(fd, again)) {
        (void)close(again);
        again = -1;
    }
    return again;
}

int wf_shared_open(int fd)
{
    int saved = errno;
    int flags = fcntl(fd, F_GETFL);
    int result = flags >= 0 ? open_again(fd, flags) : -errno;
    if (flags >= 0 && result < 0) {
        result = fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 ? fd : -errno;
        if (result == fd) {
            note(fd);
        }
    }
    errno = saved;
    return result;
}

void wf_shared_restore(int fd)
{
    int saved = errno;
    forget(fd);
    set_blocking(fd);
    errno = saved;
}
