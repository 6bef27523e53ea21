/* SPDX-License-Identifier: MIT */
/*
 * store.h - values by their names, for many fibers at once.
 */
#ifndef EXAMPLES_STORE_H
#define EXAMPLES_STORE_H

#include <stddef.h>
#include <stdint.h>

#include <weft.h>

enum {
    STORE_SHARDS = 64,
    STORE_VALUE_MAX = 16384,          /* bytes */
    STORE_SHARD_BYTES_MAX = 16 << 20, /* of memory, for each shard */
};

/* All zeros is an empty one. */
struct store_shard {
    weft_mutex mutex;
    struct store_entry **buckets;
    size_t bucket_count; /* a power of two, or 0 */
    size_t entry_count;
    size_t bytes; /* of entries */
};

struct store {
    struct store_shard shards[STORE_SHARDS];
};

/* Frees all that is in it. Nobody uses it any more. */
void store_fini(struct store *store);

/* Copies a value into room for STORE_VALUE_MAX bytes. Returns its size, or -ENOENT. */
ssize_t store_get(struct store *store, weft_text key, char *value);

/* Sets a value: -ENOMEM, -ENOSPC (the store is full); then it is what it was. */
int store_set(struct store *store, weft_text key, weft_text value);

/* Removes a value: 1, or 0: there was none. */
int store_remove(struct store *store, weft_text key);

/* Adds 1 to a value that is a decimal number, or absent, as 0. -EINVAL: it is no number; -ERANGE:
 * there is no larger one; else as store_set(). */
int store_increment(struct store *store, weft_text key, int64_t *value);

#endif
