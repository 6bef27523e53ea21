/* SPDX-License-Identifier: MIT */
/*
 * udp_echo.c - UDP echo server that receives and sends datagrams in batches.
 *
 *     udp_echo udp://127.0.0.1:7000      serves until SIGINT or SIGTERM
 *     udp_echo                           runs a self-test
 */
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "server.h"

enum {
    BATCH = 32,
    MESSAGE_MAX = 2048,           /* longer datagrams are dropped: a truncated echo is none */
    PORTS_OF_SERVICES_MAX = 1023, /* well-known ports get no answer: two echo servers would loop */
};

struct batch {
    weft_packet packets[BATCH];
    char data[BATCH][MESSAGE_MAX];
};

static void prepare(struct batch *batch)
{
    for (size_t i = 0; i < BATCH; i++) {
        batch->packets[i] = (weft_packet){ .data = batch->data[i], .size = MESSAGE_MAX };
    }
}

/* Moves the datagrams to be answered to the front and returns their number. */
static size_t choose(struct batch *batch, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        weft_packet packet = batch->packets[i];
        if (packet.received > MESSAGE_MAX ||
            weft_address_port(&packet.address) <= PORTS_OF_SERVICES_MAX) {
            continue;
        }
        packet.size = packet.received;
        batch->packets[kept++] = packet;
    }
    return kept;
}

/* Sends all datagrams. Skips one that cannot be sent, as if the network had lost it. */
static int send_all(weft_datagram *socket, weft_packet *packets, size_t count)
{
    while (count > 0) {
        int sent = weft_datagram_send_many(socket, packets, count, WEFT_NEVER);
        if (sent == WEFT_ECANCELED || sent == WEFT_ECLOSED) {
            return sent;
        }
        size_t done = sent > 0 ? (size_t)sent : 1;
        packets += done;
        count -= done;
    }
    return 0;
}

static int echo(void *arg)
{
    weft_datagram *socket = arg;
    struct batch batch;
    int err = 0;
    while (err == 0) {
        prepare(&batch);
        int count = weft_datagram_receive_many(socket, batch.packets, BATCH, WEFT_NEVER);
        if (count >= 0) {
            err = send_all(socket, batch.packets, choose(&batch, (size_t)count));
        } else if (count != -ECONNREFUSED) { /* Reports on a datagram sent earlier. */
            err = count;
        }
    }
    return err;
}

/* --- Self-test -------------------------------------------------------------------------------- */

static int exchange(weft_datagram *client, const weft_address *server)
{
    static const char *const messages[] = { "one", "", "three" };
    char back[16];
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        size_t size = strlen(messages[i]);
        ssize_t n = weft_datagram_send_to(client, messages[i], size, server, weft_after(WEFT_S));
        if (n >= 0) {
            n = weft_datagram_receive(client, back, sizeof back, weft_after(5 * WEFT_S));
        }
        if (n < 0) {
            return (int)n;
        }
        (void)printf("\"%.*s\" came back\n", (int)n, back);
        if ((size_t)n != size || memcmp(back, messages[i], size) != 0) {
            return 1;
        }
    }
    return 0;
}

static int try_it(const weft_address *server)
{
    weft_datagram *client;
    int err = weft_datagram_open(&client, "udp://127.0.0.1:0", NULL);
    if (err == 0) {
        err = exchange(client, server);
        weft_datagram_close(client);
    }
    return err;
}

/* --- Program ---------------------------------------------------------------------------------- */

static int run(void *arg)
{
    const char *place = arg;
    weft_datagram *socket;
    weft_address address;
    int err = weft_datagram_open(&socket, place != NULL ? place : "udp://127.0.0.1:0", NULL);
    if (err != 0) {
        return err;
    }
    err = weft_datagram_address(socket, &address);
    if (err == 0) {
        WEFT_SCOPE(scope, NULL, &err)
        {
            err = weft_scope_go(scope, echo, socket);
            if (err == 0 && place != NULL) {
                server_announce("udp_echo", "udp://", &address);
                err = server_wait_for_signal(weft_scope_token(scope));
            } else if (err == 0) {
                err = try_it(&address);
            }
            weft_scope_cancel(scope);
        }
    }
    weft_datagram_close(socket);
    return err == WEFT_ECANCELED ? 0 : err;
}

int main(int argc, char **argv)
{
    char *place = argc > 1 ? argv[1] : NULL;
    int err = place != NULL ? server_block_signals() : 0;
    if (err == 0) {
        err = weft_run(NULL, run, place);
    }
    if (err != 0) {
        (void)fprintf(stderr, "udp_echo: %s\n",
                      err < 0 ? weft_strerror(err) : "an answer was wrong");
    }
    return err != 0;
}
