/* SPDX-License-Identifier: MIT */
/*
 * block.h - data of a bulk transfer and its checksum.
 *
 * The stream is a sequence of blocks. All have the same bytes except for the first word, which
 * is the block's number, so a lost, duplicated or reordered block changes the checksum. The
 * sender computes no checksum: the expected one follows from the number of bytes.
 */
#ifndef ECHO_BLOCK_H
#define ECHO_BLOCK_H

#include <stddef.h>
#include <stdint.h>

enum {
    BLOCK_SIZE = 65536, /* also the size of each read and write */
};

/* A sink's answer at the end of the stream. Sent in host byte order: both are on one machine. */
struct block_reply {
    uint64_t size;
    uint64_t sum;
};

struct block_sum {
    uint64_t size;    /* bytes so far */
    uint64_t current; /* checksum of the incomplete block */
    uint64_t total;   /* checksum of the complete blocks */
};

/* Writes block 0. */
void block_fill(unsigned char *block);
/* Changes the number of a block. */
void block_set_number(unsigned char *block, uint64_t number);

void block_sum_add(struct block_sum *sum, const void *data, size_t size);
struct block_reply block_sum_reply(const struct block_sum *sum);

/* Returns the checksum of the first `size` bytes of the stream. */
uint64_t block_expected_sum(uint64_t size);

#endif
