/* SPDX-License-Identifier: MIT */
/*
 * work.c - workloads of the par rows, without any parallelism; see work.h.
 */
#include "work.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum {
    SMALL_MODULUS = 1000,
};

static const struct work_tree t1 = { WORK_TREE_FIXED, .root = 19, .branches = 4, .levels = 10 };

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * WORK_SECOND_NS + now.tv_nsec;
}

int64_t work_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

void work_busy(int64_t ns)
{
    /* CPU time of this thread: time during which other threads have the CPU is not work done. */
    int64_t end = read_clock(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
}

/* --- unbalanced tree search --- */

static uint32_t rotate(uint32_t word, unsigned by)
{
    return word << by | word >> (32 - by);
}

/*
 * SHA-1, unrolled. The schedule is a ring of 16 words. From round to round the names of the
 * five variables rotate, not their values.
 */
#define WORD(i)                                                                                    \
    (words[(i)&15] = rotate(words[((i) + 13) & 15] ^ words[((i) + 8) & 15] ^                       \
                                words[((i) + 2) & 15] ^ words[(i)&15],                             \
                            1))
#define ROUND(a, b, c, d, e, mix, constant, word)                                                  \
    do {                                                                                           \
        (e) += rotate((a), 5) + mix(b, c, d) + (uint32_t)(constant) + (word);                      \
        (b) = rotate((b), 30);                                                                     \
    } while (0)
#define FIVE_ROUNDS(mix, constant, w0, w1, w2, w3, w4)                                             \
    do {                                                                                           \
        ROUND(a, b, c, d, e, mix, constant, w0);                                                   \
        ROUND(e, a, b, c, d, mix, constant, w1);                                                   \
        ROUND(d, e, a, b, c, mix, constant, w2);                                                   \
        ROUND(c, d, e, a, b, mix, constant, w3);                                                   \
        ROUND(b, c, d, e, a, mix, constant, w4);                                                   \
    } while (0)
#define FIVE_LATER(mix, constant, i)                                                               \
    FIVE_ROUNDS(mix, constant, WORD(i), WORD((i) + 1), WORD((i) + 2), WORD((i) + 3), WORD((i) + 4))
#define TWENTY_ROUNDS(mix, constant, i)                                                            \
    do {                                                                                           \
        FIVE_LATER(mix, constant, i);                                                              \
        FIVE_LATER(mix, constant, (i) + 5);                                                        \
        FIVE_LATER(mix, constant, (i) + 10);                                                       \
        FIVE_LATER(mix, constant, (i) + 15);                                                       \
    } while (0)

#define CHOOSE(x, y, z)   ((z) ^ ((x) & ((y) ^ (z))))
#define PARITY(x, y, z)   ((x) ^ (y) ^ (z))
#define MAJORITY(x, y, z) (((x) & (y)) | ((z) & ((x) | (y))))

/* Hashes a message of one block. Its 16 words already include the padding. */
static inline void hash_block(uint32_t hash[5], uint32_t words[16])
{
    uint32_t a = 0x67452301;
    uint32_t b = 0xefcdab89;
    uint32_t c = 0x98badcfe;
    uint32_t d = 0x10325476;
    uint32_t e = 0xc3d2e1f0;
    FIVE_ROUNDS(CHOOSE, 0x5a827999, words[0], words[1], words[2], words[3], words[4]);
    FIVE_ROUNDS(CHOOSE, 0x5a827999, words[5], words[6], words[7], words[8], words[9]);
    FIVE_ROUNDS(CHOOSE, 0x5a827999, words[10], words[11], words[12], words[13], words[14]);
    FIVE_ROUNDS(CHOOSE, 0x5a827999, words[15], WORD(16), WORD(17), WORD(18), WORD(19));
    TWENTY_ROUNDS(PARITY, 0x6ed9eba1, 20);
    TWENTY_ROUNDS(MAJORITY, 0x8f1bbcdc, 40);
    TWENTY_ROUNDS(PARITY, 0xca62c1d6, 60);
    hash[0] = 0x67452301 + a;
    hash[1] = 0xefcdab89 + b;
    hash[2] = 0x98badcfe + c;
    hash[3] = 0x10325476 + d;
    hash[4] = 0xc3d2e1f0 + e;
}

/* The message is 16 zero bytes and the root's number. */
struct work_node work_tree_root(const struct work_tree *tree)
{
    uint32_t words[16] = { 0, 0, 0, 0, tree->root, 0x80000000, [15] = 20 * 8 };
    struct work_node root = { .depth = 0 };
    hash_block(root.hash, words);
    return root;
}

/* The message is the parent's hash and the child's number. */
struct work_node work_uts_child(const struct work_node *parent, unsigned number)
{
    uint32_t words[16] = { parent->hash[0], parent->hash[1], parent->hash[2], parent->hash[3],
                           parent->hash[4], number,          0x80000000,      [15] = 24 * 8 };
    struct work_node child = { .depth = parent->depth + 1 };
    hash_block(child.hash, words);
    return child;
}

/* Maps the node's hash to a number in [0, 1). */
static double chance_of(const struct work_node *node)
{
    return (double)(node->hash[4] & 0x7fffffff) / 2147483648.0;
}

/*
 * Inlined everywhere, so that for T1, the tree that is measured, the compiler folds the
 * constants.
 */
#define FOR_EACH_TREE static inline __attribute__((always_inline))

/* Returns the average number of children at the given depth of a geometric tree. */
FOR_EACH_TREE double branches_at(const struct work_tree *tree, unsigned depth)
{
    if (depth == 0) {
        return tree->branches;
    }
    switch (tree->kind) {
    case WORK_TREE_LINEAR:
        return tree->branches * (1.0 - (double)depth / tree->levels);
    case WORK_TREE_CYCLIC:
        return depth > 5 * tree->levels
                   ? 0
                   : pow(tree->branches, sin(2.0 * 3.141592653589793 * depth / tree->levels));
    default:
        return tree->branches;
    }
}

FOR_EACH_TREE unsigned children_of(const struct work_tree *tree, const struct work_node *node)
{
    if (tree->kind == WORK_TREE_BINOMIAL) {
        if (node->depth == 0) {
            return (unsigned)tree->branches;
        }
        return chance_of(node) < tree->chance ? tree->children : 0;
    }
    if (tree->kind == WORK_TREE_FIXED && node->depth >= tree->levels) {
        return 0;
    }
    double branches = branches_at(tree, node->depth);
    double stop = 1.0 / (1.0 + branches);
    /* If branches is 0, the second logarithm is infinite and the count is 0. */
    unsigned count = (unsigned)floor(log(1.0 - chance_of(node)) / log(1.0 - stop));
    return count < WORK_UTS_CHILDREN_MAX ? count : WORK_UTS_CHILDREN_MAX;
}

unsigned work_tree_children(const struct work_tree *tree, const struct work_node *node)
{
    return children_of(tree, node);
}

struct work_node work_uts_root(void)
{
    return work_tree_root(&t1);
}

unsigned work_uts_children(const struct work_node *node)
{
    return children_of(&t1, node);
}

/* --- loops --- */

void work_fill_numbers(uint64_t *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        items[i] = i;
    }
}

void work_fill_small(uint64_t *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        items[i] = i % SMALL_MODULUS;
    }
}

bool work_is_scan(const uint64_t *sums, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += i % SMALL_MODULUS;
        if (sums[i] != sum) {
            return false;
        }
    }
    return true;
}

bool work_is_small_result(const uint64_t *items)
{
    for (size_t i = 0; i < WORK_SMALL_ITEMS; i++) {
        if (items[i] != i * WORK_SMALL_LOOPS) {
            return false;
        }
    }
    return true;
}

/* --- units --- */

uint64_t work_unit(uint64_t number, unsigned rounds)
{
    uint64_t x = number + 1;
    for (unsigned i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

uint64_t work_sum_units(const uint64_t *results)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < WORK_UNITS; i++) {
        sum += results[i];
    }
    return sum;
}

/* --- sorts --- */

/* Returns the i-th number of a fixed random sequence (splitmix64). */
static uint64_t random_at(size_t i)
{
    uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint32_t random_u32(size_t i)
{
    return (uint32_t)(random_at(i) >> 32);
}

/* Returns a number in [0, 1). */
static double random_f64(size_t i)
{
    return (double)(random_at(i) >> 11) * 0x1p-53;
}

void work_fill_u32(uint32_t *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        items[i] = random_u32(i);
    }
}

void work_fill_u64(uint64_t *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        items[i] = random_at(i);
    }
}

void work_fill_f64(double *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        items[i] = random_f64(i);
    }
}

void work_fill_records(struct work_record *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        items[i].key = random_at(i);
        items[i].value = ~items[i].key;
    }
}

/*
 * A sorted array and the sequence it was made of have the same sum, in any order. A double in
 * [0, 1) with 53 bits is summed as the integer that it came from.
 */

bool work_is_sorted_u32(const uint32_t *items, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && items[i] < items[i - 1]) {
            return false;
        }
        sum += (uint64_t)items[i] - random_u32(i);
    }
    return sum == 0;
}

bool work_is_sorted_u64(const uint64_t *items, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && items[i] < items[i - 1]) {
            return false;
        }
        sum += items[i] - random_at(i);
    }
    return sum == 0;
}

bool work_is_sorted_f64(const double *items, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && items[i] < items[i - 1]) {
            return false;
        }
        sum += (uint64_t)(items[i] * 0x1p53) - (random_at(i) >> 11);
    }
    return sum == 0;
}

bool work_is_sorted_records(const struct work_record *items, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if ((i > 0 && items[i].key < items[i - 1].key) || items[i].value != ~items[i].key) {
            return false;
        }
        sum += items[i].key - random_at(i);
    }
    return sum == 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double work_p99(double *values, size_t n)
{
    qsort(values, n, sizeof values[0], compare);
    return values[n * 99 / 100];
}
