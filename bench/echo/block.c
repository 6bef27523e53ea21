/* SPDX-License-Identifier: MIT */
/*
 * block.c - data of a bulk transfer and its checksum; see block.h.
 *
 * The checksum of a block is the sum of its words. The blocks' checksums are combined so that
 * their order matters. A sum is fast enough not to dominate the measurement, and it does not
 * depend on how the stream was split: a byte counts by its position in its word.
 */
#include "block.h"

#include <string.h>

#define FACTOR 0x9e3779b97f4a7c15u /* odd, so that the multiplication loses no earlier block */

void block_fill(unsigned char *block)
{
    uint64_t state = 1;
    for (size_t i = 0; i < BLOCK_SIZE; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        block[i] = (unsigned char)(state >> 56);
    }
    block_set_number(block, 0);
}

void block_set_number(unsigned char *block, uint64_t number)
{
    memcpy(block, &number, sizeof number);
}

/* Sums up to one word of bytes, all in the same word of the stream, at this position in it. */
static uint64_t sum_bytes(const unsigned char *data, size_t size, size_t place)
{
    unsigned char word[sizeof(uint64_t)] = { 0 };
    uint64_t value;
    memcpy(word + place, data, size);
    memcpy(&value, word, sizeof value);
    return value;
}

/* Sums bytes within a block that start at this offset. */
static uint64_t sum_part(const unsigned char *data, size_t size, size_t offset)
{
    uint64_t sum = 0;
    size_t place = offset % sizeof(uint64_t);
    if (place != 0) {
        size_t head = sizeof(uint64_t) - place;
        head = head < size ? head : size;
        sum += sum_bytes(data, head, place);
        data += head;
        size -= head;
    }
    size_t words = size / sizeof(uint64_t);
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, data + i * sizeof word, sizeof word);
        sum += word;
    }
    return sum + sum_bytes(data + words * sizeof(uint64_t), size % sizeof(uint64_t), 0);
}

static uint64_t combine(uint64_t total, uint64_t block)
{
    return total * FACTOR + block;
}

void block_sum_add(struct block_sum *sum, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    while (size > 0) {
        size_t offset = (size_t)(sum->size % BLOCK_SIZE);
        size_t part = BLOCK_SIZE - offset < size ? BLOCK_SIZE - offset : size;
        sum->current += sum_part(bytes, part, offset);
        sum->size += part;
        if (sum->size % BLOCK_SIZE == 0) {
            sum->total = combine(sum->total, sum->current);
            sum->current = 0;
        }
        bytes += part;
        size -= part;
    }
}

struct block_reply block_sum_reply(const struct block_sum *sum)
{
    return (struct block_reply){ .size = sum->size, .sum = combine(sum->total, sum->current) };
}

uint64_t block_expected_sum(uint64_t size)
{
    static unsigned char block[BLOCK_SIZE];
    block_fill(block);
    uint64_t zero_sum = sum_part(block, BLOCK_SIZE, 0); /* of block 0: its number adds nothing */
    uint64_t count = size / BLOCK_SIZE;
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; i++) {
        total = combine(total, zero_sum + i);
    }
    block_set_number(block, count);
    return combine(total, sum_part(block, (size_t)(size % BLOCK_SIZE), 0));
}
