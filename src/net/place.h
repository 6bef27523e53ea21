/* SPDX-License-Identifier: MIT */
/*
 * place.h - parsing of endpoint names: "tcp://host:port", "unix:path" and others.
 */
#ifndef WF_NET_PLACE_H
#define WF_NET_PLACE_H

#include <stdbool.h>
#include <stddef.h>

enum wf_place {
    WF_PLACE_BARE, /* no scheme before "host:port" */
    WF_PLACE_TCP,
    WF_PLACE_UDP,
    WF_PLACE_UNIX,
    WF_PLACE_UNIXGRAM,
};

/* Returns the kind of an endpoint, and advances *place past its scheme. */
enum wf_place wf_place_kind(const char **place);

/* Splits "host:port" or "[host]:port". Fails with -EINVAL. */
int wf_place_split(const char *place, char *host, size_t size, const char **port, bool *is_v6);

#endif
