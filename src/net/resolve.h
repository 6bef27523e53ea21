/* SPDX-License-Identifier: MIT */
/*
 * resolve.h - from places to addresses.
 */
#ifndef WF_NET_RESOLVE_H
#define WF_NET_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>

#include <weft/net.h>

/* As weft_resolve(), for the call of that name; passive: to listen there. Numbers and paths
 * do not wait. */
int wf_resolve(weft_address *addresses, size_t most, const char *place, bool is_passive,
               weft_time deadline, const char *call);

#endif
