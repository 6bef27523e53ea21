/* SPDX-License-Identifier: MIT */
/*
 * table.c - process-wide table of sources, whose memory is never freed.
 *
 * A handle names a source by its index in this table and by a generation (source.c). The handle
 * may be looked up at any time: after it was closed, after another source took its slot, and
 * after its runtime was destroyed. So the table belongs to the process, does not use the
 * allocator of a runtime, and the memory of a source always remains that of a source.
 *
 * The table grows by chunks, so that a source never moves and is found by one load. The memory
 * of a chunk comes from the kernel, which supplies a page when it is first used. Runtimes claim
 * blocks of sources, and give them back when they end. So runtimes share neither lists of free
 * sources nor the locks of these, and can iterate over their own sources.
 */
#include "io/table.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "base/lock.h"
#include "io/source.h"

enum {
    CHUNK = 1 << WF_SOURCE_CHUNK_BITS,
};

_Static_assert(CHUNK % WF_SOURCE_BLOCK == 0, "a block is in one chunk");

_Atomic(struct wf_source *) wf_source_chunks[WF_SOURCE_CHUNKS_MAX];

/* Guards the variables below, and writes of wf_source_chunks. */
static struct wf_lock table_lock = WF_LOCK_INIT(WF_RANK_TABLE);
static struct wf_source *free_blocks; /* list */
static uint32_t made;                 /* number of sources so far */

/* Under the lock. */
static bool make_chunk(uint32_t chunk)
{
    void *sources = mmap(NULL, CHUNK * sizeof(struct wf_source), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sources == MAP_FAILED) {
        return false;
    }
    /* relaxed: a thread that learns of a source sees it, see wf_source_at(). */
    wf_store_relaxed(&wf_source_chunks[chunk], (struct wf_source *)sources);
    return true;
}

/* Returns a block that no runtime has had yet, or NULL. The caller holds the lock. */
static struct wf_source *make_block(void)
{
    uint32_t chunk = made / CHUNK;
    if (chunk == WF_SOURCE_CHUNKS_MAX || (made % CHUNK == 0 && !make_chunk(chunk))) {
        return NULL;
    }
    struct wf_source *block = wf_source_at(made);
    for (uint32_t i = 0; i < WF_SOURCE_BLOCK; i++) {
        block[i].index = made++;
    }
    return block;
}

struct wf_source *wf_table_take(struct wf_io *io)
{
    wf_lock(&table_lock);
    struct wf_source *block = free_blocks;
    if (block != NULL) {
        free_blocks = block->next_block;
    } else {
        block = make_block();
    }
    wf_unlock(&table_lock);
    for (uint32_t i = 0; block != NULL && i < WF_SOURCE_BLOCK; i++) {
        block[i].io = io;
    }
    return block;
}

void wf_table_give_back(struct wf_source *blocks)
{
    wf_lock(&table_lock);
    while (blocks != NULL) {
        struct wf_source *next = blocks->next_block;
        blocks->next_block = free_blocks;
        free_blocks = blocks;
        blocks = next;
    }
    wf_unlock(&table_lock);
}
