/* SPDX-License-Identifier: MIT */
/*
 * path.c - the file of a bound Unix socket, identified by its inode.
 *
 * The path of a socket may lead to the file of another socket by the time the socket is closed:
 * an operator removes the file and starts a second server, or a server replaces the file of one
 * that still drains. So the name alone does not identify the file. No system call removes a
 * file only if it is a certain one, so a gap of microseconds remains between the check and the
 * removal.
 */
#include "net/path.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool wf_path_is_named(const weft_address *address)
{
    return address->to.any.sa_family == AF_UNIX && address->to.local.sun_path[0] != '\0';
}

/* Returns the device number as the kernel packs it: 12 and 20 bits. */
static uint32_t device_of(const struct stat *status)
{
    return major(status->st_dev) << 20 | minor(status->st_dev);
}

void wf_path_note(struct wf_path *path, const weft_address *address)
{
    struct stat status;
    memset(path, 0, sizeof *path);
    if (!wf_path_is_named(address)) {
        return;
    }
    memcpy(path->text, address->to.local.sun_path, sizeof path->text - 1);
    if (lstat(path->text, &status) != 0) {
        path->text[0] = '\0';
        return;
    }
    path->inode = status.st_ino;
    path->device = device_of(&status);
}

void wf_path_remove(const struct wf_path *path)
{
    struct stat status;
    if (path->text[0] != '\0' && lstat(path->text, &status) == 0 && status.st_ino == path->inode &&
        device_of(&status) == path->device) {
        (void)unlink(path->text);
    }
}
