/* SPDX-License-Identifier: MIT */
/*
 * peer.h - waiting for room in the queue of a Unix datagram receiver.
 */
#ifndef WF_NET_PEER_H
#define WF_NET_PEER_H

#include <weft/net.h>

struct wf_source;
struct wf_transfer;

/*
 * In an attempt whose send to this address has failed with EAGAIN: prepares to wait until the
 * receiver has room. Returns what the attempt returns. *list, guarded by the latch of the sending
 * source, has the probes of all its transfers. Uses room[0] and room[5] of the transfer.
 */
int wf_peer_wait(struct wf_transfer *self, struct wf_source **list, const weft_address *to);

/* Ends that, when the transfer ends. */
void wf_peer_leave(struct wf_transfer *self, struct wf_source **list);

/* The source is closed: all that wait here get WEFT_ECLOSED. The caller is its user. */
void wf_peer_close(struct wf_source *own, struct wf_source **list);

#endif
