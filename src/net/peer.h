/* SPDX-License-Identifier: MIT */
/*
 * peer.h - waiting for space in the queue of a Unix datagram receiver.
 */
#ifndef WF_NET_PEER_H
#define WF_NET_PEER_H

#include <weft/net.h>

struct wf_source;
struct wf_transfer;

/*
 * Prepares to wait until the receiver has space, in an attempt whose send to this address has
 * failed with EAGAIN. Returns the result of the attempt. *list, guarded by the latch of the
 * sending source, holds the probes of all its transfers. Uses room[0] and room[5] of the
 * transfer.
 */
int wf_peer_wait(struct wf_transfer *self, struct wf_source **list, const weft_address *to);

/* Closes the transfer's probe, if any. Called when the transfer ends. */
void wf_peer_leave(struct wf_transfer *self, struct wf_source **list);

/* Closes all probes, after the source was closed: their waiters get WEFT_ECLOSED. The caller is
 * a user of the source. */
void wf_peer_close(struct wf_source *own, struct wf_source **list);

#endif
