/* SPDX-License-Identifier: MIT */
/*
 * block.h - the bytes of a bulk transfer, and their checksum.
 *
 * The stream is a row of blocks. All have the same bytes, but for their first word, which is
 * the number of the block: a block that is lost, doubled or out of order changes the checksum.
 * Who sends does not sum up: what the checksum of so many bytes must be is known.
 */
#ifndef ECHO_BLOCK_H
#define ECHO_BLOCK_H

#include <stddef.h>
#include <stdint.h>

enum {
    BLOCK_SIZE = 65536, /* and of each read and write */
};

/* What a sink sends back when the stream has ended; both are on one machine. */
struct block_reply {
    uint64_t size;
    uint64_t sum;
};

struct block_sum {
    uint64_t size;    /* bytes so far */
    uint64_t current; /* of the block that is not complete */
    uint64_t total;   /* of those that are */
};

/* Writes block 0. */
void block_fill(unsigned char *block);
/* Makes another block of one. */
void block_set_number(unsigned char *block, uint64_t number);

void block_sum_add(struct block_sum *sum, const void *data, size_t size);
struct block_reply block_sum_reply(const struct block_sum *sum);

/* The checksum of the first bytes of the stream. */
uint64_t block_expected_sum(uint64_t size);

#endif
