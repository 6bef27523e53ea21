/* SPDX-License-Identifier: MIT */
/*
 * scan.c - parallel prefix sums.
 *
 * The range is divided into blocks (blocks.h), and each block is processed twice: it is folded
 * into a value, and it is scanned, starting from the total of all blocks before it. The scan
 * follows soon after the fold, while the block is in a cache, so memory is read only once.
 *
 *   blocks    0  1  2  3  4  5  6  7  8
 *                   |     |  |     +-- folding: the next block to be folded
 *                   |     |  +-------- folded, but the total before it is not known
 *                   |     +----------- known: the next block whose value is added up
 *                   +----------------- scanning: the next block to be scanned
 *
 * Each iteration of a loop over all blocks folds the next block, adds up the folded blocks as
 * far as there is no gap, and scans the next of the known blocks. No worker waits: a worker
 * that is late with its fold leaves a gap, and the others continue folding. A second loop scans
 * the blocks that are left when the first loop has ended. Mostly there are none.
 *
 * If the operation is exact, and the totals of all blocks before the next unclaimed block are
 * known, that block is scanned immediately, and the scan leaves the total after it. A single
 * worker processes all blocks this way, each of them once.
 *
 * Values are added up in the order of the blocks. So, as in reduce.c, the result does not
 * depend on which worker ran which block.
 *
 * Edges.
 * [G1] the worker that folds a block releases its fate, the worker that adds up acquires it:
 *      the value is visible.
 * [G2] the lock: workers that add up follow each other.
 * [G3] the worker that adds up or leads releases known, the worker that scans acquires it: the
 *      total before the block is visible, and the block has been folded, so it may be
 *      overwritten.
 *
 * A stale value only makes the second loop longer. The second loop sees everything, since the
 * join of the first loop precedes it.
 *
 * Rejected. Two loops, one that folds and one that scans: memory is read twice. Waiting for the
 * block before, as GPUs do: the worker that folds it may be suspended.
 *
 * Checked by tests/model/scan_model.c.
 */
#include <errno.h>

#include <weft/loop.h>
#include <weft/par.h>

#include "base/atomic.h"
#include "par/blocks.h"
#include "par/deep.h"
#include "par/pause.h"
#include "par/stop.h"

/* State of a block. */
enum {
    FOLDED = 1,
    SCANNED = 2, /* without having been folded */
};

struct scan {
    const weft_scanner *how;
    void *arg;
    const weft_stop *stop;
    struct wf_blocks blocks;
    struct wf_values values;      /* per block: its own value, later the total before it */
    void *total;                  /* of the blocks before known; written with the lock held */
    void *own;                    /* temporary value of the lock holder */
    _Atomic(unsigned char) *fate; /* per block; set by the worker that folds it, or leads */
    _Atomic(unsigned char) lock;  /* protects known and the total */
    _Atomic(size_t) folding;
    _Atomic(size_t) known;
    _Atomic(size_t) scanning;
};

static int fold_blocks(struct scan *scan, size_t first, size_t end)
{
    const weft_reduction *how = &scan->how->reduction;
    int err = 0;
    for (size_t block = first; err == 0 && block < end; block++) {
        void *value = wf_values_at(&scan->values, block);
        wf_pause_element(value, how->identity, how->size);
        err = how->fold(value, wf_blocks_first(&scan->blocks, block),
                        wf_blocks_end(&scan->blocks, block), scan->arg);
        if (err == 0) {
            /* release [G1]: publishes the value. */
            wf_store_release(&scan->fate[block], (unsigned char)FOLDED);
        }
    }
    return err;
}

/* Scans blocks whose totals are known. */
static int scan_blocks(const struct scan *scan, size_t first, size_t end)
{
    int err = 0;
    for (size_t block = first; err == 0 && block < end; block++) {
        /* relaxed: its leader marked it before known moved past it. */
        if (wf_load_relaxed(&scan->fate[block]) == SCANNED) {
            continue;
        }
        err = scan->how->scan(wf_values_at(&scan->values, block),
                              wf_blocks_first(&scan->blocks, block),
                              wf_blocks_end(&scan->blocks, block), scan->arg);
    }
    return err;
}

/* Turns the values of folded blocks into the totals before them, up to the first gap. */
static void add_up(struct scan *scan)
{
    /* acquire [G2]: the totals that other workers have added up. */
    if (wf_xchg_acquire(&scan->lock, 1) != 0) {
        return; /* Another worker is adding up. */
    }
    const weft_reduction *how = &scan->how->reduction;
    /* relaxed: written with the lock held. */
    size_t block = wf_load_relaxed(&scan->known);
    /* acquire [G1]: the value is visible. */
    while (block < scan->blocks.count && wf_load_acquire(&scan->fate[block]) != 0) {
        void *value = wf_values_at(&scan->values, block);
        wf_pause_element(scan->own, value, how->size);
        wf_pause_element(value, scan->total, how->size);
        how->combine(scan->total, scan->own, scan->arg);
        block++;
    }
    /* release [G3]: publishes the totals before these blocks. */
    wf_store_release(&scan->known, block);
    /* release [G2]: publishes the total. */
    wf_store_release(&scan->lock, 0);
}

/* Scans the next known blocks, at most the given number. */
static int scan_next(struct scan *scan, size_t most)
{
    /* relaxed: the CAS below verifies it. */
    size_t first = wf_load_relaxed(&scan->scanning);
    size_t end;
    do {
        /* acquire [G3]: these blocks are folded, and the totals before them are visible. */
        size_t known = wf_load_acquire(&scan->known);
        if (first >= known) {
            return 0;
        }
        end = known - first < most ? known : first + most;
        /* relaxed: only distributes the blocks. */
    } while (!wf_cas_weak_relaxed(&scan->scanning, &first, end));
    return scan_blocks(scan, first, end);
}

/* Scans the next unclaimed block if the totals of all blocks before it are known. Returns false
 * if they are not, if the operation is not exact, or if the lock is taken. Holds the lock
 * meanwhile; a worker that finds it taken continues folding. */
static bool lead(struct scan *scan, int *err)
{
    /* acquire [G2]: the total is visible. */
    if (!scan->how->is_exact || wf_xchg_acquire(&scan->lock, 1) != 0) {
        return false;
    }
    /* relaxed: written with the lock held. */
    size_t block = wf_load_relaxed(&scan->known);
    size_t next = block;
    /* relaxed: only distributes the blocks. */
    bool leads = wf_cas_relaxed(&scan->folding, &next, block + 1);
    if (leads) {
        *err = scan->how->scan(scan->total, wf_blocks_first(&scan->blocks, block),
                               wf_blocks_end(&scan->blocks, block), scan->arg);
        /* relaxed: the release of known publishes it. */
        wf_store_relaxed(&scan->fate[block], (unsigned char)SCANNED);
        /* relaxed: only distributes the blocks. */
        next = block;
        (void)wf_cas_relaxed(&scan->scanning, &next, block + 1);
        /* release [G3]: as in add_up(). */
        wf_store_release(&scan->known, block + 1);
    }
    /* release [G2]: publishes the total. */
    wf_store_release(&scan->lock, 0);
    return leads;
}

/* Processes end - first blocks. Scans up to twice as many blocks as it folds, so that scanning
 * catches up after a delay. */
static int take_turn(size_t first, size_t end, void *arg)
{
    struct scan *scan = arg;
    size_t count = end - first;
    int err = 0;
    while (err == 0 && count > 0 && lead(scan, &err)) {
        count--;
    }
    if (err != 0 || count == 0) {
        return err;
    }
    /* relaxed: only distributes the blocks. */
    size_t block = wf_fetch_add_relaxed(&scan->folding, count);
    err = fold_blocks(scan, block, block + count);
    if (err == 0) {
        add_up(scan);
        err = scan_next(scan, 2 * count);
    }
    return err;
}

static int scan_rest(size_t first, size_t end, void *arg)
{
    return scan_blocks(arg, first, end);
}

static int run(void *arg)
{
    struct scan *scan = arg;
    weft_par_options loop = { .stop = scan->stop };
    wf_pause_element(scan->total, scan->how->reduction.identity, scan->how->reduction.size);
    wf_pause_clear((void *)scan->fate, scan->blocks.count);
    int err = weft_for(0, scan->blocks.count, take_turn, scan, &loop);
    if (err == 0) {
        add_up(scan);
        /* relaxed: all iterations have been joined. */
        err =
            weft_for(wf_load_relaxed(&scan->scanning), scan->blocks.count, scan_rest, scan, &loop);
    }
    return err;
}

int weft_scan(size_t first, size_t end, const weft_scanner *how, void *arg, void *total,
              const weft_par_options *options)
{
    struct scan scan = { .how = how, .arg = arg, .stop = wf_stop_of(options) };
    size_t size = how->reduction.size;
    wf_pause_call();
    if (size == 0) {
        return -EINVAL;
    }
    scan.blocks = wf_blocks_of(first, end, options);
    size_t count = scan.blocks.count;
    int err = wf_values_init(&scan.values, count + WF_VALUES_MORE, size, count, options);
    if (err != 0) {
        return err;
    }
    scan.total = wf_values_at(&scan.values, count);
    scan.own = wf_values_at(&scan.values, count + 1);
    scan.fate = scan.values.beside;
    err = wf_deep_call(run, &scan);
    if (err == 0 && total != NULL) {
        wf_pause_element(total, scan.total, size);
    }
    wf_values_fini(&scan.values);
    return err;
}
