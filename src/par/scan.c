/* SPDX-License-Identifier: MIT */
/*
 * scan.c - running totals.
 *
 * The range is cut into blocks (blocks.h), and each is gone through twice: it is folded
 * into a value, and it is scanned, from the value of all blocks before it. The second time
 * follows soon after the first, while the block is in a cache: so memory is read once.
 *
 *   blocks    0  1  2  3  4  5  6  7  8
 *                   |     |  |     +-- folding: the next one that is folded
 *                   |     |  +-------- folded, but what comes before it is not known
 *                   |     +----------- known: the next one whose value is added up
 *                   +----------------- scanning: the next one that is scanned
 *
 * Each turn of a loop over all blocks folds the next of them, adds up as far as there are
 * folded ones without a gap, and scans the next of those that are known. Nobody waits: who
 * folds a block late leaves a gap, and the others go on folding. What has not been scanned
 * when the loop is over is scanned by a second one; mostly that is nothing.
 *
 * Where the operation is exact, and all before the next block that nobody folds are known,
 * that block is scanned at once, and leaves the total behind it. A worker alone goes through
 * all blocks so, and through each of them once.
 *
 * Values are added up in the order of the blocks. So, as in reduce.c, the result does not
 * depend on who ran what.
 *
 * Edges.
 * [G1] who folds a block releases its flag, who adds up acquires it: the value is there.
 * [G2] the lock: those who add up follow each other.
 * [G3] who adds up releases known, who scans acquires it: what comes before is there, and
 *      the block has been folded, so it may be overwritten.
 * What is seen late makes the second loop longer. That one sees everything: a join brings
 * all that was done.
 *
 * Rejected: two loops, one that folds and one that scans, as memory is read twice; waiting
 * for the block before, as GPUs do, since who folds that may be suspended.
 *
 * Checked by tests/model/scan_model.c.
 */
#include <errno.h>

#include <weft/loop.h>
#include <weft/par.h>

#include "base/atomic.h"
#include "par/blocks.h"
#include "par/pause.h"
#include "par/stop.h"

/* What has become of a block. */
enum {
    FOLDED = 1,
    SCANNED = 2, /* without having been folded */
};

struct scan {
    const weft_scanner *how;
    void *arg;
    struct wf_blocks blocks;
    struct wf_values values;      /* of a block: folded, and then what comes before it */
    void *total;                  /* of the blocks before known; who holds the lock writes it */
    void *own;                    /* the holder's, for a value */
    _Atomic(unsigned char) *fate; /* of each block; who folds it sets it, or who leads */
    _Atomic(unsigned char) lock;  /* of known and the total */
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
            /* release [G1]: with the value. */
            wf_store_release(&scan->fate[block], (unsigned char)FOLDED);
        }
    }
    return err;
}

/* Of known ones. */
static int scan_blocks(const struct scan *scan, size_t first, size_t end)
{
    int err = 0;
    for (size_t block = first; err == 0 && block < end; block++) {
        /* relaxed: who scanned it did so before it was known. */
        if (wf_load_relaxed(&scan->fate[block]) == SCANNED) {
            continue;
        }
        err = scan->how->scan(wf_values_at(&scan->values, block),
                              wf_blocks_first(&scan->blocks, block),
                              wf_blocks_end(&scan->blocks, block), scan->arg);
    }
    return err;
}

/* From the values of blocks to those of all before them, up to the first gap. */
static void add_up(struct scan *scan)
{
    /* acquire [G2]: what others have added up. */
    if (wf_xchg_acquire(&scan->lock, 1) != 0) {
        return; /* Another one is at it. */
    }
    const weft_reduction *how = &scan->how->reduction;
    /* relaxed: written under the lock. */
    size_t block = wf_load_relaxed(&scan->known);
    /* acquire [G1]: the value is there. */
    while (block < scan->blocks.count && wf_load_acquire(&scan->fate[block]) != 0) {
        void *value = wf_values_at(&scan->values, block);
        wf_pause_element(scan->own, value, how->size);
        wf_pause_element(value, scan->total, how->size);
        how->combine(scan->total, scan->own, scan->arg);
        block++;
    }
    /* release [G3]: with the values of all before those blocks. */
    wf_store_release(&scan->known, block);
    /* release [G2]: with the total. */
    wf_store_release(&scan->lock, 0);
}

/* Scans the next blocks that are known, so many at most. */
static int scan_next(struct scan *scan, size_t most)
{
    /* relaxed: the exchange sees whether it is true. */
    size_t first = wf_load_relaxed(&scan->scanning);
    size_t end;
    do {
        /* acquire [G3]: the blocks before it are folded, and their values added up. */
        size_t known = wf_load_acquire(&scan->known);
        if (first >= known) {
            return 0;
        }
        end = known - first < most ? known : first + most;
        /* relaxed: it only shares them out. */
    } while (!wf_cas_weak_relaxed(&scan->scanning, &first, end));
    return scan_blocks(scan, first, end);
}

/* Scans the next block that nobody folds, if all before it are known. False: they are not. The
 * lock is held meanwhile; who finds it taken goes on folding. */
static bool lead(struct scan *scan, int *err)
{
    /* acquire [G2]: the total. */
    if (!scan->how->is_exact || wf_xchg_acquire(&scan->lock, 1) != 0) {
        return false;
    }
    /* relaxed: written under the lock. */
    size_t block = wf_load_relaxed(&scan->known);
    size_t next = block;
    /* relaxed: it only shares them out. */
    bool leads = wf_cas_relaxed(&scan->folding, &next, block + 1);
    if (leads) {
        *err = scan->how->scan(scan->total, wf_blocks_first(&scan->blocks, block),
                               wf_blocks_end(&scan->blocks, block), scan->arg);
        /* relaxed: known is released behind it. */
        wf_store_relaxed(&scan->fate[block], (unsigned char)SCANNED);
        /* relaxed: it only shares them out. */
        next = block;
        (void)wf_cas_relaxed(&scan->scanning, &next, block + 1);
        /* release [G3]: as in add_up(). */
        wf_store_release(&scan->known, block + 1);
    }
    /* release [G2]: with the total. */
    wf_store_release(&scan->lock, 0);
    return leads;
}

/* Twice as many are scanned as are folded: so one who comes late catches up. */
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
    /* relaxed: it only shares them out. */
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

static int run(struct scan *scan, const weft_par_options *options)
{
    weft_par_options loop = { .stop = wf_stop_of(options) };
    wf_pause_element(scan->total, scan->how->reduction.identity, scan->how->reduction.size);
    wf_pause_clear((void *)scan->fate, scan->blocks.count);
    int err = weft_for(0, scan->blocks.count, take_turn, scan, &loop);
    if (err == 0) {
        add_up(scan);
        /* relaxed: all turns have been joined. */
        err =
            weft_for(wf_load_relaxed(&scan->scanning), scan->blocks.count, scan_rest, scan, &loop);
    }
    return err;
}

int weft_scan(size_t first, size_t end, const weft_scanner *how, void *arg, void *total,
              const weft_par_options *options)
{
    struct scan scan = { .how = how, .arg = arg };
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
    err = run(&scan, options);
    if (err == 0 && total != NULL) {
        wf_pause_element(total, scan.total, size);
    }
    wf_values_fini(&scan.values);
    return err;
}
