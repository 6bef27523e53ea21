/* SPDX-License-Identifier: MIT */
/*
 * resolve.h - name resolution of endpoints.
 */
#ifndef WF_NET_RESOLVE_H
#define WF_NET_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>

#include <weft/net.h>

/* Same as weft_resolve(), for the call of the given name. is_passive: the addresses are to be
 * bound. Numeric addresses and paths do not wait. */
int wf_resolve(weft_address *addresses, size_t most, const char *place, bool is_passive,
               weft_time deadline, const char *call);

#endif
