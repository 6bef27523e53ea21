/* SPDX-License-Identifier: MIT */
/*
 * table.h - process-wide table of sources, whose memory is never freed.
 */
#ifndef WF_IO_TABLE_H
#define WF_IO_TABLE_H

struct wf_io;
struct wf_source;

/*
 * Takes a block of WF_SOURCE_BLOCK sources, none of which is open, for this runtime. Returns the
 * first; NULL: there is no memory, or the table is full.
 */
struct wf_source *wf_table_take(struct wf_io *io);

/* Gives a list of blocks back (next_block), for other runtimes. No source is open or in use. */
void wf_table_give_back(struct wf_source *blocks);

#endif
