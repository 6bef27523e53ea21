/* SPDX-License-Identifier: MIT */
/*
 * work.h - workloads of the par rows with their known results, shared by weft-bench and its
 * rivals.
 *
 * They are compiled separately, so that rivals in any language call the same code. Only the
 * board, whose operations are smaller than a call, is inline. Rivals that cannot include C
 * reimplement it.
 */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WORK_FIB_EXTRA = 32, /* par.fork_extra; its result below */
    WORK_FIB_EXTRA_RESULT = 2178309,
    WORK_FIB_EXTRA_FORKS = 3524577,
    WORK_FIB_EXTRA_PAIRS = 5, /* measurements, alternately with and without forks */
    WORK_FIB = 40,
    WORK_FIB_RESULT = 102334155,
    WORK_FIB_FORKS = 165580140,
    WORK_QUEENS = 13,
    WORK_QUEENS_ALL = (1 << WORK_QUEENS) - 1,
    WORK_QUEENS_RESULT = 73712,
    WORK_UTS_RESULT = 4130071,
    WORK_UTS_CHILDREN_MAX = 100,
    WORK_SKYNET_LEAVES = 1000000,
    WORK_SKYNET_WAYS = 10,
    WORK_OUTSIDE_CALLS = 100000,
    WORK_PROBES = 500,
    WORK_JOBS = 100 + 100 + 200 + 350, /* par.imbalance */
    WORK_ITEMS = 10000000,             /* par.sum, par.scan and the sorts */
    WORK_SMALL_ITEMS = 10000,
    WORK_SMALL_LOOPS = 1000,
    WORK_UNITS = 100000, /* par.even and par.uneven */
    WORK_UNIT_ROUNDS = 500,
};

#define WORK_SKYNET_RESULT  UINT64_C(499999500000)
#define WORK_SUM_RESULT     UINT64_C(49999995000000)
#define WORK_EVEN_RESULT    UINT64_C(17466567470417942265)
#define WORK_UNEVEN_RESULT  UINT64_C(13637984852746796132)
#define WORK_SECOND_NS      INT64_C(1000000000)
#define WORK_JOB_NS         INT64_C(1000000)
#define WORK_PROBE_EVERY_NS INT64_C(1000000)

/* Reads the monotonic clock. */
int64_t work_now_ns(void);

/* Spins until this thread has used the given amount of CPU time. */
void work_busy(int64_t ns);

/*
 * The queens placed so far, as the columns and diagonals that they attack. Recursive functions
 * take the three numbers instead of the struct: gcc assembles the struct in memory for each
 * call and then stalls on loading it.
 */
struct work_board {
    uint32_t columns;
    uint32_t left;
    uint32_t right;
};

/* Returns the columns of the next row that no queen attacks, one bit each, out of all columns. */
static inline uint32_t work_board_free_of(struct work_board board, uint32_t all)
{
    return all & ~(board.columns | board.left | board.right);
}

static inline uint32_t work_board_free(struct work_board board)
{
    return work_board_free_of(board, WORK_QUEENS_ALL);
}

static inline struct work_board work_board_place(struct work_board board, uint32_t bit)
{
    struct work_board next = { board.columns | bit, (board.left | bit) << 1,
                               (board.right | bit) >> 1 };
    return next;
}

/*
 * The unbalanced tree search (UTS). A node is the SHA-1 hash of its parent's hash and its own
 * index, and the hash determines how many children it has. The root of a binomial tree may have
 * any number of children, every other node at most WORK_UTS_CHILDREN_MAX.
 */
struct work_node {
    uint32_t hash[5];
    uint32_t depth;
};

enum work_tree_kind {
    WORK_TREE_LINEAR,   /* geometric; the average falls linearly with the depth */
    WORK_TREE_CYCLIC,   /* geometric; the average rises and falls with the depth */
    WORK_TREE_FIXED,    /* geometric; the same average down to the last level */
    WORK_TREE_BINOMIAL, /* either no children or a fixed number */
};

struct work_tree {
    enum work_tree_kind kind;
    uint32_t root;
    double branches; /* average per node; binomial: of the root only */
    unsigned levels;
    unsigned children; /* binomial: a node has this many, with probability: */
    double chance;
};

struct work_node work_tree_root(const struct work_tree *tree);
unsigned work_tree_children(const struct work_tree *tree, const struct work_node *node);

/* Tree T1: fixed, b = 4, 10 levels, root 19. */
struct work_node work_uts_root(void);
unsigned work_uts_children(const struct work_node *node);

/* Returns a child of a node, in any tree. */
struct work_node work_uts_child(const struct work_node *parent, unsigned number);

/* Input of the loops and checks of their results. Item i is i, or i % 1000. */
void work_fill_numbers(uint64_t *items, size_t n);
void work_fill_small(uint64_t *items, size_t n);
bool work_is_scan(const uint64_t *sums, size_t n);
bool work_is_small_result(const uint64_t *items);

/*
 * A unit of work with the given number of rounds of about 1 ns each. Uneven units get longer as
 * their number grows.
 */
uint64_t work_unit(uint64_t number, unsigned rounds);
static inline unsigned work_uneven_rounds(uint64_t number)
{
    return (unsigned)(2 * WORK_UNIT_ROUNDS * number / WORK_UNITS);
}
uint64_t work_sum_units(const uint64_t *results);

/* Input of the sorts: the same random items every time. */
struct work_record {
    uint64_t key;
    uint64_t value; /* ~key */
};
void work_fill_u32(uint32_t *items, size_t n);
void work_fill_u64(uint64_t *items, size_t n);
void work_fill_f64(double *items, size_t n);
void work_fill_records(struct work_record *items, size_t n);

/* Returns whether the items are sorted and still those that work_fill_...() produced. */
bool work_is_sorted_u32(const uint32_t *items, size_t n);
bool work_is_sorted_u64(const uint64_t *items, size_t n);
bool work_is_sorted_f64(const double *items, size_t n);
bool work_is_sorted_records(const struct work_record *items, size_t n);

/* Returns the 99th percentile of n values. Sorts them. */
double work_p99(double *values, size_t n);

#ifdef __cplusplus
}
#endif

#endif
