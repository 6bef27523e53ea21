/* SPDX-License-Identifier: MIT */
/*
 * store.c - hash table in shards, each with its own mutex.
 *
 * No fiber waits while it holds a mutex, except for the allocator: a value is copied out of the
 * table before it is written to a client.
 */
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An entry: the key, followed by its value. */
struct store_entry {
    struct store_entry *next;
    uint64_t hash;
    size_t key_size;
    size_t value_size;
    char bytes[];
};

/*
 * FNV-1a. An attacker who chooses the keys can make them collide. A public server needs a keyed
 * hash.
 */
static uint64_t hash_of(weft_text key)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < key.size; i++) {
        hash = (hash ^ (unsigned char)key.at[i]) * 1099511628211u;
    }
    return hash ^ hash >> 32;
}

static struct store_shard *shard_of(struct store *store, uint64_t hash)
{
    return &store->shards[hash % STORE_SHARDS];
}

static size_t bytes_of(const struct store_entry *entry)
{
    return sizeof *entry + entry->key_size + entry->value_size;
}

/* --- One shard, with its mutex held ----------------------------------------------------------- */

static size_t bucket_of(const struct store_shard *shard, uint64_t hash)
{
    return hash / STORE_SHARDS & (shard->bucket_count - 1);
}

/*
 * Returns the link to the entry; the link holds NULL if there is none. Returns NULL if there
 * are no buckets.
 */
static struct store_entry **find(struct store_shard *shard, uint64_t hash, weft_text key)
{
    if (shard->bucket_count == 0) {
        return NULL;
    }
    struct store_entry **link = &shard->buckets[bucket_of(shard, hash)];
    while (*link != NULL && !((*link)->hash == hash && (*link)->key_size == key.size &&
                              memcmp((*link)->bytes, key.at, key.size) == 0)) {
        link = &(*link)->next;
    }
    return link;
}

/* Doubles the number of buckets. If memory is short, keeps the existing ones, if any. */
static int grow(struct store_shard *shard)
{
    struct store_shard old = *shard;
    size_t count = old.bucket_count > 0 ? old.bucket_count * 2 : 16;
    struct store_entry **buckets = calloc(count, sizeof *buckets);
    if (buckets == NULL) {
        return old.bucket_count > 0 ? 0 : -ENOMEM;
    }
    shard->buckets = buckets;
    shard->bucket_count = count;
    for (size_t i = 0; i < old.bucket_count; i++) {
        while (old.buckets[i] != NULL) {
            struct store_entry *entry = old.buckets[i];
            struct store_entry **link = &buckets[bucket_of(shard, entry->hash)];
            old.buckets[i] = entry->next;
            entry->next = *link;
            *link = entry;
        }
    }
    free(old.buckets);
    return 0;
}

static void unlink_entry(struct store_shard *shard, struct store_entry **link)
{
    struct store_entry *entry = *link;
    *link = entry->next;
    shard->bytes -= bytes_of(entry);
    shard->entry_count--;
    free(entry);
}

static int set(struct store_shard *shard, uint64_t hash, weft_text key, weft_text value)
{
    if (shard->entry_count >= shard->bucket_count) {
        int err = grow(shard);
        if (err != 0) {
            return err;
        }
    }
    struct store_entry **link = find(shard, hash, key);
    size_t before = *link != NULL ? bytes_of(*link) : 0;
    size_t bytes = sizeof **link + key.size + value.size;
    if (shard->bytes - before + bytes > STORE_SHARD_BYTES_MAX) {
        return -ENOSPC;
    }
    struct store_entry *entry = malloc(bytes);
    if (entry == NULL) {
        return -ENOMEM;
    }
    entry->hash = hash;
    entry->key_size = key.size;
    entry->value_size = value.size;
    memcpy(entry->bytes, key.at, key.size);
    memcpy(entry->bytes + key.size, value.at, value.size);
    if (*link != NULL) {
        unlink_entry(shard, link);
    }
    entry->next = *link;
    *link = entry;
    shard->bytes += bytes;
    shard->entry_count++;
    return 0;
}

/* Parses a complete decimal number in canonical form. */
static bool parse_number(const char *text, size_t size, int64_t *number)
{
    char copy[24];
    char again[24];
    if (size == 0 || size >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    *number = strtoll(copy, NULL, 10);
    (void)snprintf(again, sizeof again, "%lld", (long long)*number);
    return strlen(copy) == size && strcmp(copy, again) == 0;
}

static int increment(struct store_shard *shard, uint64_t hash, weft_text key, int64_t *value)
{
    struct store_entry **link = find(shard, hash, key);
    char text[24];
    *value = 0;
    if (link != NULL && *link != NULL &&
        !parse_number((*link)->bytes + key.size, (*link)->value_size, value)) {
        return -EINVAL;
    }
    if (*value == INT64_MAX) {
        return -ERANGE;
    }
    int size = snprintf(text, sizeof text, "%lld", (long long)++*value);
    return set(shard, hash, key, (weft_text){ text, (size_t)size });
}

/* --- Interface -------------------------------------------------------------------------------- */

void store_fini(struct store *store)
{
    for (size_t i = 0; i < STORE_SHARDS; i++) {
        struct store_shard *shard = &store->shards[i];
        for (size_t j = 0; j < shard->bucket_count; j++) {
            while (shard->buckets[j] != NULL) {
                unlink_entry(shard, &shard->buckets[j]);
            }
        }
        free(shard->buckets);
    }
}

ssize_t store_get(struct store *store, weft_text key, char *value)
{
    uint64_t hash = hash_of(key);
    struct store_shard *shard = shard_of(store, hash);
    ssize_t size = -ENOENT;
    WEFT_LOCKED(&shard->mutex)
    {
        struct store_entry **link = find(shard, hash, key);
        if (link != NULL && *link != NULL) {
            size = (ssize_t)(*link)->value_size;
            memcpy(value, (*link)->bytes + key.size, (size_t)size);
        }
    }
    return size;
}

int store_set(struct store *store, weft_text key, weft_text value)
{
    uint64_t hash = hash_of(key);
    struct store_shard *shard = shard_of(store, hash);
    int err = 0;
    WEFT_LOCKED(&shard->mutex)
    {
        err = set(shard, hash, key, value);
    }
    return err;
}

int store_remove(struct store *store, weft_text key)
{
    uint64_t hash = hash_of(key);
    struct store_shard *shard = shard_of(store, hash);
    int count = 0;
    WEFT_LOCKED(&shard->mutex)
    {
        struct store_entry **link = find(shard, hash, key);
        if (link != NULL && *link != NULL) {
            unlink_entry(shard, link);
            count = 1;
        }
    }
    return count;
}

int store_increment(struct store *store, weft_text key, int64_t *value)
{
    uint64_t hash = hash_of(key);
    struct store_shard *shard = shard_of(store, hash);
    int err = 0;
    WEFT_LOCKED(&shard->mutex)
    {
        err = increment(shard, hash, key, value);
    }
    return err;
}
