/* SPDX-License-Identifier: MIT */
/*
 * search.h - finding an index in parallel.
 */
#ifndef WF_PAR_SEARCH_H
#define WF_PAR_SEARCH_H

#include <stddef.h>

#include <weft/loop.h>

/* Looks from first to before end, WEFT_ELEMENTS_MAX indexes at most, and says in *match
 * which is the first one that matches. If none does, it leaves it. 0, or an error. */
typedef int (*wf_search_fn)(size_t first, size_t end, size_t *match, void *arg);

/* Finds the first index below count that matches; count, if none does. */
int wf_search_first(size_t count, wf_search_fn look, void *arg, size_t *index,
                    const weft_par_options *options);

/* Finds any. */
int wf_search_any(size_t count, wf_search_fn look, void *arg, size_t *index,
                  const weft_par_options *options);

#endif
