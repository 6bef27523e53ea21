/* SPDX-License-Identifier: MIT */
/*
 * table.h - process-wide table of sources, whose memory is never freed.
 */
#ifndef WF_IO_TABLE_H
#define WF_IO_TABLE_H

struct wf_io;
struct wf_source;

/*
 * Claims a block of WF_SOURCE_BLOCK sources for this runtime. None of them is open. Returns the
 * first, or NULL if the system is out of memory or the table is full.
 */
struct wf_source *wf_table_take(struct wf_io *io);

/* Gives a list of blocks (next_block) back, for other runtimes. No source may be open or in
 * use. */
void wf_table_give_back(struct wf_source *blocks);

#endif
