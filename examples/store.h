/* SPDX-License-Identifier: MIT */
/*
 * store.h - concurrent key-value store.
 */
#ifndef EXAMPLES_STORE_H
#define EXAMPLES_STORE_H

#include <stddef.h>
#include <stdint.h>

#include <weft.h>

enum {
    STORE_SHARDS = 64,
    STORE_VALUE_MAX = 16384,          /* bytes */
    STORE_SHARD_BYTES_MAX = 16 << 20, /* memory limit per shard */
};

/* A zero-initialized shard is empty. */
struct store_shard {
    weft_mutex mutex;
    struct store_entry **buckets;
    size_t bucket_count; /* a power of two, or 0 */
    size_t entry_count;
    size_t bytes; /* memory of all entries */
};

struct store {
    struct store_shard shards[STORE_SHARDS];
};

/* Frees the contents. No other fiber may use the store any more. */
void store_fini(struct store *store);

/* Copies a value into a buffer of STORE_VALUE_MAX bytes. Returns its size or -ENOENT. */
ssize_t store_get(struct store *store, weft_text key, char *value);

/* Sets a value. Returns 0, -ENOMEM or -ENOSPC (the store is full); on an error nothing changes. */
int store_set(struct store *store, weft_text key, weft_text value);

/* Removes a value. Returns 1, or 0 if there was none. */
int store_remove(struct store *store, weft_text key);

/*
 * Adds 1 to a value that is a decimal number. An absent value counts as 0. Returns -EINVAL if
 * the value is not a number, -ERANGE if it is the largest one, otherwise the same as
 * store_set().
 */
int store_increment(struct store *store, weft_text key, int64_t *value);

#endif
