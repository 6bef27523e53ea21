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

/* Zeros: none. */
struct wf_path {
    uint64_t inode;
    uint32_t device;
    char text[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* with a zero at the end */
};

/* Does the address name a file? */
bool wf_path_is_named(const weft_address *address);

/* Remembers the file that is at this address now: the one that a bind has made, say. Remembers
 * none if no file can be seen there. */
void wf_path_note(struct wf_path *path, const weft_address *address);

/* Removes the file, unless another one has taken its place. */
void wf_path_remove(const struct wf_path *path);

#endif
