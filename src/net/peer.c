/* SPDX-License-Identifier: MIT */
/*
 * peer.c - waiting for space in the queue of a Unix datagram receiver.
 *
 * An unconnected Unix datagram socket is always ready to send, since the kernel does not know the
 * receiver. A send to a receiver whose queue is full fails with EAGAIN, and no event of the socket
 * follows when the queue has space again. But a socket that is connected to the receiver is
 * writable only while the queue has space, and gets an event when it has space again. So the
 * transfer opens a second socket, the probe, connects it to the receiver, and waits until the probe
 * is writable. Then it tries again. The probe sends nothing. It is closed when the transfer ends.
 *
 * EAGAIN may also mean that the buffer of the sending socket is full of messages in the queues of
 * other receivers. Then the probe is writable and the socket is not, and the transfer retries with
 * backoff. It also does so if no descriptor is left for a probe.
 *
 * Close. A transfer that waits for its probe is not in a queue of the socket. So the socket keeps a
 * list of its probes, guarded by the socket's latch, and closes them. A transfer that comes later
 * sees CLOSED under that latch.
 *
 * Rejected. Backoff alone: at least one timer per message, and late by up to one backoff interval.
 * A probe that is kept with the socket: it serves one receiver at a time, and a send that waits
 * costs two context switches anyway.
 */
#include "net/peer.h"

#include <errno.h>
#include <poll.h>

#include "io/io.h"
#include "io/source.h"
#include "io/transfer.h"
#include "net/nap.h"
#include "net/socket.h"

/* In the room of a probe. */
struct probe {
    struct wf_source *next;
};

static struct probe *probe_of(struct wf_source *source)
{
    return (struct probe *)(void *)source->room;
}

/* Returns the slot for the handle of the transfer's probe. It holds NULL if there is none. */
static void **slot_of(struct wf_transfer *self)
{
    return (void **)(void *)&self->room[5];
}

static bool is_writable(const struct wf_source *source)
{
    struct pollfd look = { .fd = source->fd, .events = POLLOUT };
    return poll(&look, 1, 0) != 0;
}

static int open_probe(struct wf_io *io, const weft_address *to, struct wf_source **out)
{
    int fd = wf_socket_new(AF_UNIX, SOCK_DGRAM);
    if (fd < 0) {
        return fd;
    }
    int err = connect(fd, &to->to.any, to->size) == 0 ? 0 : -errno;
    if (err == 0) {
        err = wf_source_open(io, fd, out);
    }
    return err != 0 ? wf_socket_undo(fd, err) : 0;
}

/* Adds a probe to the socket's list. Returns false if the socket is closed. */
static bool enlist(struct wf_source *own, struct wf_source **list, struct wf_source *probe)
{
    uint32_t word = wf_latch_lock(&own->word);
    bool is_open = (word & WF_SOURCE_CLOSED) == 0;
    if (is_open) {
        probe_of(probe)->next = *list;
        *list = probe;
    }
    wf_latch_unlock(&own->word, word);
    return is_open;
}

/* Removes a probe from the list, unless a close has removed it. */
static void take_out(struct wf_source *own, struct wf_source **list, const struct wf_source *probe)
{
    uint32_t word = wf_latch_lock(&own->word);
    struct wf_source **at = list;
    while (*at != NULL && *at != probe) {
        at = &probe_of(*at)->next;
    }
    if (*at != NULL) {
        *at = probe_of(*at)->next;
    }
    wf_latch_unlock(&own->word, word);
}

/* Returns whether the transfer's probe is already writable. Then the receiver's queue is not
 * the reason why the send failed. */
static bool is_probe_writable(const void *probe)
{
    struct wf_source *source;
    if (wf_source_enter(probe, &source) != 0) {
        return false; /* The wait reports that it is closed. */
    }
    bool is = is_writable(source);
    wf_source_leave(source);
    return is;
}

int wf_peer_wait(struct wf_transfer *self, struct wf_source **list, const weft_address *to)
{
    struct wf_source *own = self->source;
    void **slot = slot_of(self);
    if ((wf_source_look(own) & WF_SOURCE_CLOSED) != 0) {
        return WEFT_ECLOSED; /* Checked here since a close does not end a backoff. */
    }
    if (*slot != NULL && is_probe_writable(*slot)) {
        return is_writable(own) ? WF_TRANSFER_MORE : wf_nap_briefly(self, own->io->sched);
    }
    if (*slot == NULL) {
        struct wf_source *probe;
        int err = open_probe(own->io, to, &probe);
        if (err == -ECONNREFUSED || err == -ENOENT) {
            return WF_TRANSFER_MORE; /* The receiver is gone: the next try reports it. */
        }
        if (err == WEFT_ESHUTDOWN) {
            return WEFT_ECLOSED;
        }
        if (err != 0) {
            return wf_nap_briefly(self, own->io->sched);
        }
        if (!enlist(own, list, probe)) {
            wf_source_abandon(probe);
            return WEFT_ECLOSED;
        }
        *slot = wf_source_publish(probe);
    }
    wf_source_ready_init(&self->wait, *slot, WF_SOURCE_WRITABLE);
    self->waits_for = &self->wait.future;
    return WEFT_PENDING;
}

void wf_peer_leave(struct wf_transfer *self, struct wf_source **list)
{
    void **slot = slot_of(self);
    if (*slot != NULL) {
        take_out(self->source, list, wf_source_of(*slot));
        wf_source_close(*slot);
        *slot = NULL;
    }
}

/* Takes the first probe out of the list and returns its handle, or NULL. */
static void *pop(struct wf_source *own, struct wf_source **list)
{
    void *handle = NULL;
    uint32_t word = wf_latch_lock(&own->word);
    if (*list != NULL) {
        handle = wf_source_handle(*list);
        *list = probe_of(*list)->next;
    }
    wf_latch_unlock(&own->word, word);
    return handle;
}

/* A probe's transfer may close it first. */
void wf_peer_close(struct wf_source *own, struct wf_source **list)
{
    const void *probe;
    while ((probe = pop(own, list)) != NULL) {
        wf_source_close(probe);
    }
}
