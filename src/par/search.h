/* SPDX-License-Identifier: MIT */
/*
 * search.h - parallel search for a matching index.
 */
#ifndef WF_PAR_SEARCH_H
#define WF_PAR_SEARCH_H

#include <stddef.h>

#include <weft/loop.h>

/* Searches the indexes from first to before end, at most WEFT_ELEMENTS_MAX of them. Sets *match
 * to the first one that matches, or leaves it unchanged if none does. Returns 0 or an error. */
typedef int (*wf_search_fn)(size_t first, size_t end, size_t *match, void *arg);

/* Finds the first index below count that matches. Sets *index to count if none does. */
int wf_search_first(size_t count, wf_search_fn look, void *arg, size_t *index,
                    const weft_par_options *options);

/* Finds any index below count that matches. Sets *index to count if none does. */
int wf_search_any(size_t count, wf_search_fn look, void *arg, size_t *index,
                  const weft_par_options *options);

#endif
