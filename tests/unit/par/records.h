/* SPDX-License-Identifier: MIT */
/*
 * records.h - records of any size with a key and their original position, and the expected
 * result of a stable sort.
 */
#ifndef TEST_PAR_RECORDS_H
#define TEST_PAR_RECORDS_H

#include "inputs.h"

/* The key is in the first bytes. The other bytes, if any, differ from record to record. */
static inline size_t key_size(size_t size)
{
    return size < 3 ? 1 : size < 8 ? 2 : 8 < size ? 8 : 4;
}

static inline uint64_t record_key(const void *record, size_t size)
{
    uint64_t key = 0;
    memcpy(&key, record, key_size(size));
    return key;
}

/* Comparison function for sorts. arg points to the record size. */
static inline int compare_records(const void *a, const void *b, void *arg)
{
    size_t size = *(const size_t *)arg;
    uint64_t x = record_key(a, size);
    uint64_t y = record_key(b, size);
    return (x > y) - (x < y);
}

/* An array of records between guards, and its expected contents once it is sorted. */
struct records {
    struct guarded array;
    struct guarded expected;
    size_t count;
    size_t size;
};

struct place {
    uint64_t key;
    size_t index;
};

static inline int compare_places(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return (x->index > y->index) - (x->index < y->index);
}

static inline void records_expect(struct records *records)
{
    size_t size = records->size;
    struct place *places = malloc((records->count + 1) * sizeof *places);
    CHECK(places != NULL);
    for (size_t i = 0; i < records->count; i++) {
        places[i] = (struct place){ record_key(records->array.at + i * size, size), i };
    }
    qsort(places, records->count, sizeof *places, compare_places);
    for (size_t i = 0; i < records->count; i++) {
        memcpy(records->expected.at + i * size, records->array.at + places[i].index * size, size);
    }
    free(places);
}

static inline struct records records_create(enum pattern pattern, size_t count, size_t size,
                                            size_t offset)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), pattern);
    struct records records = { .array = guarded_create(count * size, offset),
                               .expected = guarded_create(count * size, 0),
                               .count = count,
                               .size = size };
    for (size_t i = 0; i < count; i++) {
        unsigned char *record = records.array.at + i * size;
        uint64_t key = input_value(pattern, i, count, &rng);
        uint64_t tag = i * UINT64_C(0x9E3779B97F4A7C15);
        memcpy(record, &key, key_size(size));
        for (size_t k = key_size(size); k < size; k++) {
            record[k] = (unsigned char)(tag >> k % 8 * 8);
        }
    }
    records_expect(&records);
    return records;
}

static inline void records_check(const struct records *records)
{
    guarded_check(&records->array);
    CHECK_EQ(memcmp(records->array.at, records->expected.at, records->array.size), 0);
}

static inline void records_destroy(struct records *records)
{
    guarded_destroy(&records->array);
    guarded_destroy(&records->expected);
}

/* Checks that both arrays have the same records, in any order. Changes both arrays. */
static inline int compare_bytes(const void *a, const void *b, void *arg)
{
    return memcmp(a, b, *(const size_t *)arg);
}

static inline void records_check_all_there(struct records *records)
{
    guarded_check(&records->array);
    qsort_r(records->array.at, records->count, records->size, compare_bytes, &records->size);
    qsort_r(records->expected.at, records->count, records->size, compare_bytes, &records->size);
    CHECK_EQ(memcmp(records->array.at, records->expected.at, records->array.size), 0);
}

#endif
