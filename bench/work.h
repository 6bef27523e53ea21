/* SPDX-License-Identifier: MIT */
/*
 * work.h - the work of the par rows: what weft-bench and its rivals compute alike, and the
 * test of known results.
 *
 * It is compiled by itself, so that the rivals, in whatever language, call the same code;
 * only the board, which is smaller than a call, is inline, and rewritten where C is not
 * at hand.
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
    WORK_FIB_EXTRA = 32, /* of par.fork_extra, and its result */
    WORK_FIB_EXTRA_RESULT = 2178309,
    WORK_FIB_EXTRA_FORKS = 3524577,
    WORK_FIB_EXTRA_PAIRS = 5, /* measurements, with forks and without in turn */
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
    WORK_JOBS = 100 + 100 + 200 + 350, /* of par.imbalance */
    WORK_ITEMS = 10000000,             /* of par.sum, par.scan and the sorts */
    WORK_SMALL_ITEMS = 10000,
    WORK_SMALL_LOOPS = 1000,
    WORK_UNITS = 100000, /* of par.even and par.uneven */
    WORK_UNIT_ROUNDS = 500,
};

#define WORK_SKYNET_RESULT  UINT64_C(499999500000)
#define WORK_SUM_RESULT     UINT64_C(49999995000000)
#define WORK_EVEN_RESULT    UINT64_C(17466567470417942265)
#define WORK_UNEVEN_RESULT  UINT64_C(13637984852746796132)
#define WORK_SECOND_NS      INT64_C(1000000000)
#define WORK_JOB_NS         INT64_C(1000000)
#define WORK_PROBE_EVERY_NS INT64_C(1000000)

/* Monotonic. */
int64_t work_now_ns(void);

/* Keeps this thread busy until it has used so much of a CPU. */
void work_busy(int64_t ns);

/*
 * The queens on the rows so far, as the columns and diagonals that they attack. Functions
 * that recurse take the three numbers: gcc puts a struct of them together in memory for
 * each call, and waits for it.
 */
struct work_board {
    uint32_t columns;
    uint32_t left;
    uint32_t right;
};

/* The columns of the next row that no queen attacks, one bit each; of all that there are. */
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
 * The unbalanced tree search. A node is a SHA-1 hash of its parent's and its own number,
 * and says how many children it has; the root of a binomial tree may have any number, and
 * all other nodes up to WORK_UTS_CHILDREN_MAX.
 */
struct work_node {
    uint32_t hash[5];
    uint32_t depth;
};

enum work_tree_kind {
    WORK_TREE_LINEAR,   /* geometric, with less and less children from level to level; */
    WORK_TREE_CYCLIC,   /* with more and less in turn; */
    WORK_TREE_FIXED,    /* with the same, as far as there are levels */
    WORK_TREE_BINOMIAL, /* none, or so many */
};

struct work_tree {
    enum work_tree_kind kind;
    uint32_t root;
    double branches; /* on average; of the root only, if binomial */
    unsigned levels;
    unsigned children; /* if binomial, with this chance: */
    double chance;
};

struct work_node work_tree_root(const struct work_tree *tree);
unsigned work_tree_children(const struct work_tree *tree, const struct work_node *node);

/* Tree T1: fixed, b = 4, 10 levels, root 19. */
struct work_node work_uts_root(void);
unsigned work_uts_children(const struct work_node *node);

/* In any tree. */
struct work_node work_uts_child(const struct work_node *parent, unsigned number);

/* Input of the loops and its check: item i is i, or i % 1000. */
void work_fill_numbers(uint64_t *items, size_t n);
void work_fill_small(uint64_t *items, size_t n);
bool work_is_scan(const uint64_t *sums, size_t n);
bool work_is_small_result(const uint64_t *items);

/* A unit of work of so many rounds, of about 1 ns each. Uneven ones are the longer the
 * greater their number. */
uint64_t work_unit(uint64_t number, unsigned rounds);
static inline unsigned work_uneven_rounds(uint64_t number)
{
    return (unsigned)(2 * WORK_UNIT_ROUNDS * number / WORK_UNITS);
}
uint64_t work_sum_units(const uint64_t *results);

/* Input of the sorts: the same random items each time. */
struct work_record {
    uint64_t key;
    uint64_t value; /* ~key */
};
void work_fill_u32(uint32_t *items, size_t n);
void work_fill_u64(uint64_t *items, size_t n);
void work_fill_f64(double *items, size_t n);
void work_fill_records(struct work_record *items, size_t n);

/* Are they sorted, and still what work_fill_...() makes? */
bool work_is_sorted_u32(const uint32_t *items, size_t n);
bool work_is_sorted_u64(const uint64_t *items, size_t n);
bool work_is_sorted_f64(const double *items, size_t n);
bool work_is_sorted_records(const struct work_record *items, size_t n);

/* The 99th percentile; sorts them. */
double work_p99(double *values, size_t n);

#ifdef __cplusplus
}
#endif

#endif
