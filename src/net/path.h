/* SPDX-License-Identifier: MIT */
/*
 * path.h - the file of a bound Unix socket.
 */
#ifndef WF_NET_PATH_H
#define WF_NET_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include <weft/net.h>

/* All zeros: no file. */
struct wf_path {
    uint64_t inode;
    uint32_t device;
    char text[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* zero-terminated */
};

/* Returns whether the address names a file. */
bool wf_path_is_named(const weft_address *address);

/* Notes the file that is at this address now, for example after a bind. Notes none if no file
 * is visible there. */
void wf_path_note(struct wf_path *path, const weft_address *address);

/* Removes the file, unless another file has taken its place. */
void wf_path_remove(const struct wf_path *path);

#endif
