/* SPDX-License-Identifier: MIT */
/*
 * par_known.c - parallel programs with known results, from other projects' benchmarks, or
 * compared with a serial run.
 *
 * Each runs on a fiber of a runtime, and once without a runtime. Long runs are small under a
 * sanitizer, and full size with WEFT_TEST_SCALE of 2 or more.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "rt.h"
#include "test.h"
#include "work.h"

enum size {
    SMALL,
    MEDIUM,
    FULL,
    SIZES,
};

static enum size size_of_run(void)
{
    uint64_t percent = test_scale(100);
    if (percent < 100) {
        return SMALL;
    }
    return percent < 200 ? MEDIUM : FULL;
}

static void *call_program(void *arg)
{
    int (**program)(void *arg) = arg;
    CHECK_EQ((*program)(NULL), 0);
    return NULL;
}

/* Without a runtime its stack cannot be extended, so it is large. */
static void run_without_runtime(int (*program)(void *arg))
{
    enum {
        STACK_SIZE = 256 << 20
    };
    pthread_t thread;
    pthread_attr_t attributes;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, STACK_SIZE), 0);
    CHECK_EQ(pthread_create(&thread, &attributes, call_program, &program), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(pthread_attr_destroy(&attributes), 0);
}

static void run_known(int (*program)(void *arg))
{
    unsigned workers = test_workers(2);
    if (workers == 1) {
        run_without_runtime(program);
    }
    weft_runtime *rt = test_start(workers);
    CHECK_EQ(test_join(test_go(rt, program, NULL)), 0);
    weft_runtime_destroy(rt);
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    CHECK(memory != NULL);
    return memory;
}

/* --- Forks only ------------------------------------------------------------------------------ */

WEFT_PARALLEL(uint64_t, fib, unsigned, n)
{
    if (n < 2) {
        return n;
    }
    uint64_t first;
    uint64_t second;
    fib_both(&first, n - 1, &second, n - 2);
    return first + second;
}

static int fib_is_known(void *arg)
{
    static const struct {
        unsigned n;
        uint64_t result;
    } known[SIZES] = { { 20, 6765 }, { 27, 196418 }, { 42, 267914296 } };
    (void)arg;
    CHECK_EQ(fib(known[size_of_run()].n), known[size_of_run()].result);
    return 0;
}

static void fib_returns_known_numbers(void)
{
    run_known(fib_is_known);
}

struct fork_tree {
    unsigned depth;
    uint64_t leaves;
};

static void count_leaves(void *arg)
{
    struct fork_tree *tree = arg;
    tree->leaves = 1;
    if (tree->depth > 0) {
        struct fork_tree left = { tree->depth - 1, 0 };
        struct fork_tree right = left;
        weft_join2(count_leaves, &left, count_leaves, &right);
        tree->leaves = left.leaves + right.leaves;
    }
}

static int leaves_are_known(void *arg)
{
    static const unsigned depths[SIZES] = { 10, 15, 20 };
    (void)arg;
    for (unsigned depth = 0; depth <= depths[size_of_run()]; depth++) {
        struct fork_tree tree = { depth, 0 };
        count_leaves(&tree);
        CHECK_EQ(tree.leaves, UINT64_C(1) << depth);
    }
    return 0;
}

static void fork_trees_have_known_leaf_counts(void)
{
    run_known(leaves_are_known);
}

WEFT_PARALLEL(uint64_t, skynet, uint64_t, number, uint64_t, leaves)
{
    if (leaves == 1) {
        return number;
    }
    skynet_forked forked[WORK_SKYNET_WAYS - 1];
    uint64_t part = leaves / WORK_SKYNET_WAYS;
    for (unsigned i = 0; i < WORK_SKYNET_WAYS - 1; i++) {
        skynet_fork(&forked[i], number + i * part, part);
    }
    uint64_t sum = skynet(number + (WORK_SKYNET_WAYS - 1) * part, part);
    for (unsigned i = WORK_SKYNET_WAYS - 1; i > 0; i--) {
        sum += skynet_join(&forked[i - 1]);
    }
    return sum;
}

static int skynet_is_known(void *arg)
{
    static const uint64_t leaves[SIZES] = { 10000, WORK_SKYNET_LEAVES, 100000000 };
    static const uint64_t sums[SIZES] = { 49995000, WORK_SKYNET_RESULT,
                                          UINT64_C(4999999950000000) };
    (void)arg;
    CHECK_EQ(skynet(0, leaves[size_of_run()]), sums[size_of_run()]);
    return 0;
}

static void skynet_returns_known_sum(void)
{
    run_known(skynet_is_known);
}

/* --- Searches ------------------------------------------------------------------------------- */

WEFT_PARALLEL(uint64_t, queens, struct work_board, board, uint32_t, all)
{
    enum {
        QUEENS_MAX = 14
    };
    if (board.columns == all) {
        return 1;
    }
    queens_forked forked[QUEENS_MAX];
    unsigned count = 0;
    for (uint32_t open = work_board_free_of(board, all); open != 0; open &= open - 1) {
        queens_fork(&forked[count++], work_board_place(board, open & -open), all);
    }
    uint64_t found = 0;
    while (count > 0) {
        found += queens_join(&forked[--count]);
    }
    return found;
}

static int queens_are_known(void *arg)
{
    static const uint64_t known[] = { 92, 352, 724, 2680, 14200, 73712, 365596 };
    static const unsigned most[SIZES] = { 8, 11, 14 };
    (void)arg;
    for (unsigned n = 8; n <= most[size_of_run()]; n++) {
        CHECK_EQ(queens((struct work_board){ 0, 0, 0 }, (1u << n) - 1), known[n - 8]);
    }
    return 0;
}

static void queens_have_known_solution_counts(void)
{
    run_known(queens_are_known);
}

struct found {
    uint64_t nodes;
    uint64_t leaves;
    uint64_t depth;
};

static struct found add_found(struct found a, struct found b)
{
    return (struct found){ a.nodes + b.nodes, a.leaves + b.leaves,
                           a.depth > b.depth ? a.depth : b.depth };
}

/* The given number of children of a node, from the first one on, and all their descendants. */
struct children {
    struct work_node parent;
    uint32_t first;
    uint32_t count;
};

WEFT_PARALLEL(struct found, search, const struct work_tree *, tree, struct children, part)
{
    if (part.count > 1) {
        struct children left = { part.parent, part.first, part.count / 2 };
        struct children right = { part.parent, part.first + left.count, part.count - left.count };
        struct found found[2];
        search_both(&found[0], tree, left, &found[1], tree, right);
        return add_found(found[0], found[1]);
    }
    struct work_node node = work_uts_child(&part.parent, part.first);
    struct found self = { 1, 0, node.depth };
    struct children below = { node, 0, work_tree_children(tree, &node) };
    if (below.count == 0) {
        self.leaves = 1;
        return self;
    }
    return add_found(self, search(tree, below));
}

static struct found search_tree(const struct work_tree *tree)
{
    struct children all = { work_tree_root(tree), 0, 0 };
    all.count = work_tree_children(tree, &all.parent);
    struct found found = search(tree, all);
    found.nodes++;
    return found;
}

/* T1, T2, T3 and T5; T1L and T3L. */
static const struct known_tree {
    struct work_tree tree;
    struct found found;
} trees[] = {
    { { WORK_TREE_FIXED, 19, 4, 10, 0, 0 }, { 4130071, 3305118, 10 } },
    { { WORK_TREE_CYCLIC, 502, 6, 16, 0, 0 }, { 4117769, 2342762, 81 } },
    { { WORK_TREE_BINOMIAL, 42, 2000, 0, 8, 0.124875 }, { 4112897, 3599034, 1572 } },
    { { WORK_TREE_LINEAR, 34, 4, 20, 0, 0 }, { 4147582, 2181318, 20 } },
    { { WORK_TREE_FIXED, 29, 4, 13, 0, 0 }, { 102181082, 81746377, 13 } },
    { { WORK_TREE_BINOMIAL, 7, 2000, 0, 5, 0.200014 }, { 111345631, 89076904, 17844 } },
};

enum {
    TREES = sizeof trees / sizeof trees[0],
    TREES_SHORT = 4,
};

static void check_tree(const struct known_tree *known)
{
    struct found found = search_tree(&known->tree);
    CHECK_EQ(found.nodes, known->found.nodes);
    CHECK_EQ(found.leaves, known->found.leaves);
    CHECK_EQ(found.depth, known->found.depth);
}

static int trees_are_known(void *arg)
{
    (void)arg;
    switch (size_of_run()) {
    case SMALL:
        break; /* These cannot be made smaller: the next test has one that is. */
    case MEDIUM:
        /* One of them per number of workers: 1, 2, 8 and 200 get different ones. */
        check_tree(&trees[(test_workers(2) + 1) % 5 % TREES_SHORT]);
        break;
    default:
        for (size_t i = 0; i < TREES; i++) {
            check_tree(&trees[i]);
        }
        break;
    }
    return 0;
}

static void unbalanced_trees_have_known_sizes(void)
{
    run_known(trees_are_known);
}

static int deep_tree_is_known(void *arg)
{
    static const struct known_tree deep = { { WORK_TREE_BINOMIAL, 3, 200, 0, 2, 0.4999 },
                                            { 229121, 114660, 1243 } };
    (void)arg;
    check_tree(&deep);
    return 0;
}

/* Of T3's kind, with two children; each level is a call and a fork. */
static void deep_tree_has_known_size(void)
{
    run_known(deep_tree_is_known);
}

/* --- Numbers -------------------------------------------------------------------------------- */

static double curve(double x)
{
    return (x * x + 1.0) * x;
}

#define INTEGRATE_EPSILON 1e-9

/* The area between two points of the curve, refined from that of the trapezoid. */
WEFT_PARALLEL(double, integrate, double, x1, double, x2, double, area)
{
    double middle = (x1 + x2) / 2;
    double y = curve(middle);
    double left = (curve(x1) + y) / 2 * (middle - x1);
    double right = (curve(x2) + y) / 2 * (x2 - middle);
    if (fabs(left + right - area) <= INTEGRATE_EPSILON) {
        return left + right;
    }
    integrate_both(&left, x1, middle, left, &right, middle, x2, right);
    return left + right;
}

static double integrate_serially(double x1, double x2, double area)
{
    double middle = (x1 + x2) / 2;
    double y = curve(middle);
    double left = (curve(x1) + y) / 2 * (middle - x1);
    double right = (curve(x2) + y) / 2 * (x2 - middle);
    if (fabs(left + right - area) <= INTEGRATE_EPSILON) {
        return left + right;
    }
    left = integrate_serially(x1, middle, left);
    return left + integrate_serially(middle, x2, right);
}

static int integral_is_known(void *arg)
{
    static const double ends[SIZES] = { 3, 30, 1000 };
    (void)arg;
    double n = ends[size_of_run()];
    double area = integrate(0, n, curve(n) * n / 2);
    CHECK(area == integrate_serially(0, n, curve(n) * n / 2));
    double known = n * n * (n * n + 2) / 4;
    CHECK(fabs(area - known) < known * 1e-6);
    return 0;
}

static void integral_matches_serial_run(void)
{
    run_known(integral_is_known);
}

static int count_primes(void *value, size_t first, size_t end, void *arg)
{
    (void)arg;
    for (size_t n = first; n < end; n++) {
        bool is_prime = n > 1 && (n == 2 || n % 2 != 0);
        for (size_t factor = 3; is_prime && factor * factor <= n; factor += 2) {
            is_prime = n % factor != 0;
        }
        *(size_t *)value += is_prime;
    }
    return 0;
}

static void add_counts(void *value, const void *next, void *arg)
{
    (void)arg;
    *(size_t *)value += *(const size_t *)next;
}

static int primes_are_known(void *arg)
{
    static const size_t ends[SIZES] = { 10000, 1000000, 10000000 };
    static const size_t known[SIZES] = { 1229, 78498, 664579 };
    static const size_t zero = 0;
    const weft_reduction how = {
        .size = sizeof zero, .identity = &zero, .fold = count_primes, .combine = add_counts
    };
    (void)arg;
    for (size_t piece = 0; piece <= 10; piece += 10) {
        size_t count;
        weft_par_options options = { .piece = piece };
        CHECK_EQ(weft_reduce(0, ends[size_of_run()] + 1, &how, NULL, &count, &options), 0);
        CHECK_EQ(count, known[size_of_run()]);
    }
    return 0;
}

static void prime_counts_are_known(void)
{
    run_known(primes_are_known);
}

/* --- Matrices ------------------------------------------------------------------------------- */

enum {
    LEAF = 32,
};

/* A part of a square matrix whose rows are stride apart. */
struct matrix {
    uint32_t *at;
    size_t stride;
};

static struct matrix quarter(struct matrix matrix, size_t half, size_t row, size_t column)
{
    return (struct matrix){ matrix.at + row * half * matrix.stride + column * half, matrix.stride };
}

static struct matrix nth_quarter(struct matrix matrix, size_t half, uint32_t n)
{
    return quarter(matrix, half, n / 2, n % 2);
}

/* to += a * b, of n rows. */
struct product {
    struct matrix to;
    struct matrix a;
    struct matrix b;
    size_t n;
};

static void multiply_leaf(const struct product *product)
{
    for (size_t i = 0; i < product->n; i++) {
        for (size_t k = 0; k < product->n; k++) {
            uint32_t a = product->a.at[i * product->a.stride + k];
            for (size_t j = 0; j < product->n; j++) {
                product->to.at[i * product->to.stride + j] +=
                    a * product->b.at[k * product->b.stride + j];
            }
        }
    }
}

/* Four products in parallel, and then the other four, which add to the same elements. */
static void multiply(void *arg)
{
    const struct product *all = arg;
    if (all->n <= LEAF) {
        multiply_leaf(all);
        return;
    }
    size_t half = all->n / 2;
    for (size_t k = 0; k < 2; k++) {
        struct product parts[4];
        weft_call calls[4];
        for (size_t i = 0; i < 4; i++) {
            parts[i] = (struct product){ quarter(all->to, half, i / 2, i % 2),
                                         quarter(all->a, half, i / 2, k),
                                         quarter(all->b, half, k, i % 2), half };
            calls[i] = (weft_call){ multiply, &parts[i] };
        }
        weft_join_n(calls, 4);
    }
}

static const size_t matrix_sizes[SIZES] = { 64, 256, 2048 };

static int product_is_known(void *arg)
{
    (void)arg;
    size_t n = matrix_sizes[size_of_run()];
    uint32_t *ones = allocate(n * n, sizeof *ones);
    uint32_t *to = allocate(n * n, sizeof *to);
    for (size_t i = 0; i < n * n; i++) {
        ones[i] = 1;
    }
    multiply(&(struct product){ { to, n }, { ones, n }, { ones, n }, n });
    for (size_t i = 0; i < n * n; i++) {
        CHECK_EQ(to[i], n);
    }
    free(ones);
    free(to);
    return 0;
}

static void matrix_product_is_known(void)
{
    run_known(product_is_known);
}

/* to = a + sign * b, of n rows. */
static struct matrix combine(uint32_t *to, struct matrix a, uint32_t sign, struct matrix b,
                             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            to[i * n + j] = a.at[i * a.stride + j] + sign * b.at[i * b.stride + j];
        }
    }
    return (struct matrix){ to, n };
}

/* to += sign * from. */
static void add_to(struct matrix to, uint32_t sign, const uint32_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            to.at[i * to.stride + j] += sign * from[i * n + j];
        }
    }
}

/* One of the seven products: of (a[0] + a_sign * a[1]) and (b[0] + b_sign * b[1]); a sign of 0
 * drops the second operand. Quarters are 0 to 3. The product is added where to_sign is not 0. */
static const struct recipe {
    uint32_t a[2], a_sign, b[2], b_sign, to_sign[4];
} recipes[7] = {
    { { 0, 3 }, 1, { 0, 3 }, 1, { 1, 0, 0, 1 } },
    { { 2, 3 }, 1, { 0, 0 }, 0, { 0, 0, 1, (uint32_t)-1 } },
    { { 0, 0 }, 0, { 1, 3 }, (uint32_t)-1, { 0, 1, 0, 1 } },
    { { 3, 3 }, 0, { 2, 0 }, (uint32_t)-1, { 1, 0, 1, 0 } },
    { { 0, 1 }, 1, { 3, 3 }, 0, { (uint32_t)-1, 1, 0, 0 } },
    { { 2, 0 }, (uint32_t)-1, { 0, 1 }, 1, { 0, 0, 0, 1 } },
    { { 1, 3 }, (uint32_t)-1, { 2, 3 }, 1, { 1, 0, 0, 0 } },
};

/* Shared by the seven products. */
struct seven {
    const struct product *all;
    uint32_t *memory; /* three matrices for each */
    size_t half;
};

static void strassen(const struct product *all);

/* Computes the operands and the products in this range. */
static int some_of_seven(size_t first, size_t end, void *arg)
{
    const struct seven *seven = arg;
    const struct product *all = seven->all;
    size_t half = seven->half;
    for (size_t i = first; i < end; i++) {
        const struct recipe *recipe = &recipes[i];
        uint32_t *own = seven->memory + i * 3 * half * half;
        struct product product = { .to = { own, half }, .n = half };
        product.a = combine(own + half * half, nth_quarter(all->a, half, recipe->a[0]),
                            recipe->a_sign, nth_quarter(all->a, half, recipe->a[1]), half);
        product.b = combine(own + 2 * half * half, nth_quarter(all->b, half, recipe->b[0]),
                            recipe->b_sign, nth_quarter(all->b, half, recipe->b[1]), half);
        strassen(&product);
    }
    return 0;
}

static void strassen(const struct product *all)
{
    if (all->n <= LEAF) {
        multiply_leaf(all);
        return;
    }
    struct seven seven = { .all = all, .half = all->n / 2 };
    size_t size = seven.half * seven.half;
    seven.memory = allocate(7 * 3 * size, sizeof *seven.memory);
    CHECK_EQ(weft_for(0, 7, some_of_seven, &seven, &(weft_par_options){ .piece = 1 }), 0);
    for (uint32_t i = 0; i < 7 * 4; i++) {
        add_to(nth_quarter(all->to, seven.half, i % 4), recipes[i / 4].to_sign[i % 4],
               seven.memory + i / 4 * 3 * size, seven.half);
    }
    free(seven.memory);
}

static int strassen_is_right(void *arg)
{
    static const size_t sizes[SIZES] = { 64, 256, 1024 };
    (void)arg;
    size_t n = sizes[size_of_run()];
    uint32_t *a = allocate(n * n, sizeof *a);
    uint32_t *b = allocate(n * n, sizeof *b);
    uint32_t *to = allocate(n * n, sizeof *to);
    uint32_t *expected = allocate(n * n, sizeof *expected);
    work_fill_u32(a, n * n);
    work_fill_u32(b, n * n);
    for (size_t i = 0; i < n * n; i++) {
        b[i] = b[i] * 2654435761u + 1;
    }
    strassen(&(struct product){ { to, n }, { a, n }, { b, n }, n });
    multiply_leaf(&(struct product){ { expected, n }, { a, n }, { b, n }, n });
    CHECK_EQ(memcmp(to, expected, n * n * sizeof *to), 0);
    free(a);
    free(b);
    free(to);
    free(expected);
    return 0;
}

static void strassen_matches_plain_product(void)
{
    run_known(strassen_is_right);
}

/* --- Heat ----------------------------------------------------------------------------------- */

#define PI 3.141592653589793

/* A plate of n * n points with cold borders. */
struct plate {
    size_t n;
    const double *from;
    double *to;
    double ratio; /* of a step in time to the square of a step in space */
};

static int heat_rows(size_t first, size_t end, void *arg)
{
    const struct plate *plate = arg;
    size_t n = plate->n;
    for (size_t i = first; i < end; i++) {
        for (size_t j = 1; j + 1 < n; j++) {
            const double *at = plate->from + i * n + j;
            plate->to[i * n + j] =
                at[0] + plate->ratio * (at[-(ptrdiff_t)n] + at[n] + at[-1] + at[1] - 4 * at[0]);
        }
    }
    return 0;
}

static int heat_is_known(void *arg)
{
    static const size_t points[SIZES] = { 33, 129, 1025 };
    (void)arg;
    size_t n = points[size_of_run()];
    size_t steps = 100;
    double space = PI / (double)(n - 1);
    struct plate plate = { .n = n, .ratio = 0.2 };
    double *from = allocate(n * n, sizeof *from);
    double *to = allocate(n * n, sizeof *to);
    for (size_t i = 0; i < n * n; i++) {
        from[i] = sin((double)(i / n) * space) * sin((double)(i % n) * space);
    }
    double *start = from;
    for (size_t step = 0; step < steps; step++) {
        plate.from = from;
        plate.to = to;
        CHECK_EQ(weft_for(1, n - 1, heat_rows, &plate, NULL), 0);
        to = from;
        from = plate.to;
    }
    CHECK(from == start);
    /* With steps of this size, each step keeps the same fraction of a wave, and all of them
     * together about exp(-2 * time) of it. */
    double left = pow(1 - 4 * plate.ratio * (1 - cos(space)), (double)steps);
    double square = space * space;
    CHECK(fabs(left - exp(-2 * plate.ratio * square * (double)steps)) < 20 * square * square);
    for (size_t i = n; i < n * (n - 1); i++) {
        bool is_border = i % n == 0 || i % n == n - 1;
        double known = sin((double)(i / n) * space) * sin((double)(i % n) * space) * left;
        CHECK(is_border || fabs(from[i] - known) < 1e-12);
    }
    free(from);
    free(to);
    return 0;
}

static void heat_diffusion_matches_formula(void)
{
    run_known(heat_is_known);
}

/* --- Sorts ---------------------------------------------------------------------------------- */

static int compare_records(const void *a, const void *b, void *arg)
{
    uint64_t x = ((const struct work_record *)a)->key;
    uint64_t y = ((const struct work_record *)b)->key;
    (void)arg;
    return (x > y) - (x < y);
}

WEFT_KEY(key_of, struct work_record, record, record->key)

static int sorts_are_right(void *arg)
{
    static const size_t counts[SIZES] = { 10000, 200000, 10000000 };
    (void)arg;
    size_t n = counts[size_of_run()];
    struct work_record *records = allocate(n, sizeof *records);
    uint32_t *integers = (uint32_t *)(void *)records;
    double *reals = (double *)(void *)records;
    work_fill_u32(integers, n);
    CHECK_EQ(weft_sort_u32(integers, n, NULL), 0);
    CHECK(work_is_sorted_u32(integers, n));
    work_fill_f64(reals, n);
    CHECK_EQ(weft_sort_f64(reals, n, NULL), 0);
    CHECK(work_is_sorted_f64(reals, n));
    work_fill_records(records, n);
    CHECK_EQ(weft_sort(records, n, sizeof *records, compare_records, NULL, NULL), 0);
    CHECK(work_is_sorted_records(records, n));
    work_fill_records(records, n);
    CHECK_EQ(weft_sort_stable(records, n, sizeof *records, compare_records, NULL, NULL), 0);
    CHECK(work_is_sorted_records(records, n));
    work_fill_records(records, n);
    CHECK_EQ(weft_sort_by_key(records, n, sizeof *records, key_of, NULL, NULL), 0);
    CHECK(work_is_sorted_records(records, n));
    free(records);
    return 0;
}

static void sorts_order_large_arrays(void)
{
    run_known(sorts_are_right);
}

TEST_MAIN({
    TEST(fib_returns_known_numbers),
    TEST(fork_trees_have_known_leaf_counts),
    TEST(skynet_returns_known_sum),
    TEST(queens_have_known_solution_counts),
    TEST(unbalanced_trees_have_known_sizes),
    TEST(deep_tree_has_known_size),
    TEST(integral_matches_serial_run),
    TEST(prime_counts_are_known),
    TEST(matrix_product_is_known),
    TEST(strassen_matches_plain_product),
    TEST(heat_diffusion_matches_formula),
    TEST(sorts_order_large_arrays),
})
