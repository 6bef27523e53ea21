/* SPDX-License-Identifier: MIT */
#include "algorithms.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

enum {
    BUCKETS = 1000,
};

struct events events;

/* --- Arguments and callbacks ------------------------------------------------------------------ */

static int called(int which, size_t elements)
{
    if (!events.counts) {
        return 0;
    }
    uint64_t call = atomic_fetch_add(&events.calls[which], 1) + 1;
    uint64_t all = atomic_fetch_add(&events.all_calls, 1) + 1;
    if (events.stops_at != 0 && all >= events.stops_at) {
        if (all == events.stops_at) {
            weft_stop_set(&events.stop);
        }
        atomic_fetch_add(&events.calls_after_stop, elements);
    }
    return which == events.fails && call == events.fails_at ? FAILURE : 0;
}

void expect_events(int fails, uint64_t fails_at, uint64_t stops_at)
{
    memset(&events, 0, sizeof events);
    events.fails = fails;
    events.fails_at = fails_at;
    events.stops_at = stops_at;
    events.counts = true;
}

void expect_no_events(void)
{
    memset(&events, 0, sizeof events);
    events.fails = -1;
}

static int compare_records(const void *a, const void *b, void *arg)
{
    const struct record *one = a;
    const struct record *other = b;
    (void)arg;
    (void)called(0, 1);
    return (one->key > other->key) - (one->key < other->key);
}

static int key_of_records(const void *elements, size_t count, uint64_t *keys, void *arg)
{
    const struct record *records = elements;
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        keys[i] = records[i].key;
    }
    return called(0, count);
}

static int bucket_of_records(const void *elements, size_t count, uint64_t *keys, void *arg)
{
    const struct record *records = elements;
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        keys[i] = records[i].key % BUCKETS;
    }
    return called(0, count);
}

static int is_odd(const void *elements, size_t count, bool *answers, void *arg)
{
    const struct record *records = elements;
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        answers[i] = records[i].key % 2 != 0;
    }
    return called(0, count);
}

static int is_impossible(const void *elements, size_t count, bool *answers, void *arg)
{
    (void)elements;
    (void)arg;
    memset(answers, 0, count * sizeof *answers);
    return called(0, count);
}

static int is_certain(const void *elements, size_t count, bool *answers, void *arg)
{
    (void)elements;
    (void)arg;
    memset(answers, 1, count * sizeof *answers);
    return called(0, count);
}

static int map_record(const void *elements, size_t count, void *to, void *arg)
{
    const struct record *records = elements;
    uint64_t *results = to;
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        results[i] = records[i].key * 3;
    }
    return called(0, count);
}

static int map_both(const void *a, const void *b, size_t count, void *to, void *arg)
{
    const struct record *records = a;
    const uint64_t *numbers = b;
    uint64_t *results = to;
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        results[i] = records[i].key + numbers[i];
    }
    return called(0, count);
}

static int run_range(size_t first, size_t end, void *arg)
{
    struct data *data = arg;
    for (size_t i = first; i < end; i++) {
        data->results[i % MANY] = i * i;
    }
    return called(0, end - first);
}

static int run_tile(const weft_tile *tile, void *arg)
{
    struct data *data = arg;
    size_t cells = 0;
    for (size_t plane = tile->first_plane; plane < tile->end_plane; plane++) {
        for (size_t row = tile->first_row; row < tile->end_row; row++) {
            for (size_t column = tile->first_column; column < tile->end_column; column++) {
                /* Two columns, and one plane or one row. */
                data->results[2 * (plane + row) + column] = row ^ column;
                cells++;
            }
        }
    }
    return called(0, cells);
}

static int fold_range(void *value, size_t first, size_t end, void *arg)
{
    const struct data *data = arg;
    uint64_t sum = *(uint64_t *)value;
    for (size_t i = first; i < end; i++) {
        sum += data->numbers[i % MANY];
    }
    *(uint64_t *)value = sum;
    return called(0, end - first);
}

static void combine(void *value, const void *next, void *arg)
{
    (void)arg;
    *(uint64_t *)value += *(const uint64_t *)next;
}

static int scan_range(void *value, size_t first, size_t end, void *arg)
{
    const struct data *data = arg;
    uint64_t sum = *(uint64_t *)value;
    for (size_t i = first; i < end; i++) {
        data->results[i % MANY] = sum += data->numbers[i % MANY];
    }
    *(uint64_t *)value = sum;
    return called(1, end - first);
}

static int fold_records(void *value, const void *elements, size_t count, void *arg)
{
    const struct record *records = elements;
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        *(uint64_t *)value += records[i].index;
    }
    return called(1, count);
}

static int run_piece(void *elements, size_t count, size_t first, void *arg)
{
    struct record *records = elements;
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        records[i].index ^= first;
    }
    return called(0, count);
}

static int run_window(const void *window, size_t first, void *arg)
{
    const struct record *records = window;
    struct data *data = arg;
    data->results[first % MANY] = records[0].key ^ records[1].key;
    return called(0, 1);
}

static int run_line(const char *line, size_t length, void *arg)
{
    uint64_t sum = 0;
    (void)arg;
    for (size_t i = 0; i < length; i++) {
        sum += (unsigned char)line[i];
    }
    __asm__ volatile("" ::"r"(sum)); /* Keeps the compiler from removing the computation. */
    return called(0, 1);
}

/* A binary tree: the children of node i are 2 i and 2 i + 1. */
static int visit(void *node, weft_walk_state *walk, void *arg)
{
    const struct data *data = arg;
    size_t number = (size_t)((char *)node - (char *)data);
    for (size_t child = 2 * number; child <= 2 * number + 1 && child <= data->limit; child++) {
        weft_walk_child(walk, (char *)data + child);
    }
    return called(0, 1);
}

static int make_item(void **item, void *arg)
{
    struct data *data = arg;
    int err = called(0, 1);
    if (err == 0 && data->made < data->limit) {
        *item = &data->numbers[data->made++];
        atomic_fetch_add(&data->under_way, 1);
    }
    return err;
}

static int change_item(void **item, void *arg)
{
    (void)arg;
    *(uint64_t *)*item *= 3;
    return called(1, 1);
}

static int end_item(void **item, void *arg)
{
    struct data *data = arg;
    int err = called(2, 1);
    (void)item;
    if (err == 0) {
        atomic_fetch_sub(&data->under_way, 1);
    }
    return err;
}

static void drop_item(void *item, void *arg)
{
    struct data *data = arg;
    (void)item;
    atomic_fetch_sub(&data->under_way, 1);
}

/* --- The rows --------------------------------------------------------------------------------- */

#define ARGS struct data *data, size_t count, const weft_par_options *options
#define R    data->size

#define LESS(a, b) ((void)called(0, 1), (a)->key < (b)->key)
WEFT_SORT_DEFINE(sort_defined, struct record, LESS)

static int run_WEFT_SORT_DEFINE(ARGS)
{
    return sort_defined(data->records, count, options);
}

static int run_weft_sort(ARGS)
{
    return weft_sort(data->records, count, R, compare_records, NULL, options);
}

static int run_weft_sort_stable(ARGS)
{
    /* Of 24 bytes, so that pointers are sorted. */
    bool is_usual = R == sizeof(struct record);
    return weft_sort_stable(data->records, is_usual ? count / 3 * 2 : count, is_usual ? 24 : R,
                            compare_records, NULL, options);
}

static int run_weft_sort_by_key(ARGS)
{
    return weft_sort_by_key(data->records, count, R, key_of_records, NULL, options);
}

#define SORT_ROW(kind, type)                                                                       \
    static int run_weft_sort_##kind(ARGS)                                                          \
    {                                                                                              \
        return weft_sort_##kind((type *)(void *)data->records, count, options);                    \
    }

SORT_ROW(u32, uint32_t)
SORT_ROW(i32, int32_t)
SORT_ROW(f32, float)
SORT_ROW(u64, uint64_t)
SORT_ROW(i64, int64_t)
SORT_ROW(f64, double)

#define NUMBER_ROWS(kind, type, sum_type, from)                                                    \
    static int run_weft_sum_##kind(ARGS)                                                           \
    {                                                                                              \
        sum_type sum;                                                                              \
        return weft_sum_##kind((const type *)(const void *)data->from, count, &sum, options);      \
    }                                                                                              \
    static int run_weft_least_##kind(ARGS)                                                         \
    {                                                                                              \
        type least;                                                                                \
        return weft_least_##kind((const type *)(const void *)data->from, count, &least, options);  \
    }                                                                                              \
    static int run_weft_greatest_##kind(ARGS)                                                      \
    {                                                                                              \
        type greatest;                                                                             \
        return weft_greatest_##kind((const type *)(const void *)data->from, count, &greatest,      \
                                    options);                                                      \
    }                                                                                              \
    static int run_weft_scan_##kind(ARGS)                                                          \
    {                                                                                              \
        return weft_scan_##kind((const type *)(const void *)data->from, count,                     \
                                (sum_type *)(void *)data->results, options);                       \
    }                                                                                              \
    static int run_weft_scan_exclusive_##kind(ARGS)                                                \
    {                                                                                              \
        return weft_scan_exclusive_##kind((const type *)(const void *)data->from, count,           \
                                          (sum_type *)(void *)data->results, options);             \
    }

NUMBER_ROWS(i32, int32_t, int64_t, numbers)
NUMBER_ROWS(i64, int64_t, int64_t, numbers)
NUMBER_ROWS(u32, uint32_t, uint64_t, numbers)
NUMBER_ROWS(u64, uint64_t, uint64_t, numbers)
NUMBER_ROWS(f32, float, double, floats)
NUMBER_ROWS(f64, double, double, doubles)

static int run_weft_dot_f32(ARGS)
{
    double sum;
    return weft_dot_f32(data->floats, data->floats, count, &sum, options);
}

static int run_weft_dot_f64(ARGS)
{
    double sum;
    return weft_dot_f64(data->doubles, data->doubles, count, &sum, options);
}

static int run_weft_for(ARGS)
{
    return weft_for(0, count, run_range, data, options);
}

static int run_weft_for_2d(ARGS)
{
    return weft_for_2d(count / 2 + count % 2, count > 1 ? 2 : count, run_tile, data, options);
}

static int run_weft_for_3d(ARGS)
{
    return weft_for_3d(count / 2 + count % 2, 1, count > 1 ? 2 : count, run_tile, data, options);
}

static const uint64_t zero;
static const weft_reduction sum_of_numbers = { sizeof zero, &zero, fold_range, combine };

static int run_weft_reduce(ARGS)
{
    weft_reduction how = sum_of_numbers;
    uint64_t sum;
    how.size = R != 0 ? how.size : 0;
    return weft_reduce(0, count, &how, data, &sum, options);
}

static int scan(struct data *data, size_t count, bool is_exact, const weft_par_options *options)
{
    weft_scanner how = { .reduction = sum_of_numbers, .scan = scan_range, .is_exact = is_exact };
    uint64_t total;
    how.reduction.size = R != 0 ? how.reduction.size : 0;
    return weft_scan(0, count, &how, data, &total, options);
}

static int run_weft_scan(ARGS)
{
    return scan(data, count, false, options);
}

static int run_weft_scan_exact(ARGS)
{
    return scan(data, count, true, options);
}

static int run_weft_for_each(ARGS)
{
    return weft_for_each(data->records, count, R, run_piece, NULL, options);
}

static int run_weft_for_chunks(ARGS)
{
    return weft_for_chunks(data->records, count, R, 100, run_piece, NULL, options);
}

static int run_weft_for_windows(ARGS)
{
    return weft_for_windows(data->records, count, R, 2, run_window, data, options);
}

static int run_weft_map(ARGS)
{
    return weft_map(data->records, count, R, map_record, NULL, data->results, 8, options);
}

static int run_weft_map2(ARGS)
{
    return weft_map2(data->records, R, data->numbers, 8, count, map_both, NULL, data->results, 8,
                     options);
}

static int run_weft_fill(ARGS)
{
    return weft_fill(data->others, count, R, data->records, options);
}

static int run_weft_count_if(ARGS)
{
    size_t passed;
    return weft_count_if(data->records, count, R, is_odd, NULL, &passed, options);
}

#define DECISION_ROW(name, test)                                                                   \
    static int run_weft_##name(ARGS)                                                               \
    {                                                                                              \
        bool answer;                                                                               \
        return weft_##name(data->records, count, R, test, NULL, &answer, options);                 \
    }

#define FIND_ROW(name)                                                                             \
    static int run_weft_##name(ARGS)                                                               \
    {                                                                                              \
        size_t index;                                                                              \
        return weft_##name(data->records, count, R, is_impossible, NULL, &index, options);         \
    }

DECISION_ROW(any, is_impossible)
DECISION_ROW(all, is_certain)
DECISION_ROW(none, is_impossible)
FIND_ROW(find_first)
FIND_ROW(find_last)
FIND_ROW(find_any)

static int run_weft_equal(ARGS)
{
    bool answer;
    return weft_equal(data->records, data->records, count, R, compare_records, NULL, &answer,
                      options);
}

static int run_weft_mismatch(ARGS)
{
    size_t index;
    return weft_mismatch(data->records, data->records, count, R, NULL, NULL, &index, options);
}

static int run_weft_filter(ARGS)
{
    size_t kept;
    return weft_filter(data->records, count, R, is_odd, NULL, data->others, &kept, options);
}

static int run_weft_pack(ARGS)
{
    size_t kept;
    return weft_pack(data->records, count, R, data->keep, data->others, &kept, options);
}

static int run_weft_partition(ARGS)
{
    size_t passed;
    return weft_partition(data->records, count, R, is_odd, NULL, &passed, options);
}

static int run_weft_flatten(ARGS)
{
    return weft_flatten(data->slices, count, R, data->others, NULL, options);
}

static int run_weft_gather(ARGS)
{
    return weft_gather(data->records, data->room, R, data->indexes, count, data->others, options);
}

static int run_weft_scatter(ARGS)
{
    return weft_scatter(data->records, count, R, data->indexes, data->others, data->room, options);
}

static int run_weft_reverse(ARGS)
{
    return weft_reverse(data->records, count, R, options);
}

static int run_weft_rotate(ARGS)
{
    return weft_rotate(data->records, count, R, 77, options);
}

static int run_weft_shuffle(ARGS)
{
    return weft_shuffle(data->records, count, R, 5, options);
}

static int run_weft_min(ARGS)
{
    size_t index;
    return weft_min(data->records, count, R, compare_records, NULL, &index, options);
}

static int run_weft_max(ARGS)
{
    size_t index;
    return weft_max(data->records, count, R, compare_records, NULL, &index, options);
}

static int run_weft_min_by_key(ARGS)
{
    size_t index;
    return weft_min_by_key(data->records, count, R, key_of_records, NULL, &index, options);
}

static int run_weft_max_by_key(ARGS)
{
    size_t index;
    return weft_max_by_key(data->records, count, R, key_of_records, NULL, &index, options);
}

static int compare_nothing(const void *a, const void *b, void *arg)
{
    (void)a;
    (void)b;
    (void)arg;
    (void)called(0, 1);
    return 0;
}

static int run_weft_is_sorted(ARGS)
{
    bool answer;
    return weft_is_sorted(data->records, count, R, compare_nothing, NULL, &answer, options);
}

static int run_weft_merge(ARGS)
{
    size_t half = count / 2;
    const char *middle = (const char *)data->records + half % data->room * R;
    return weft_merge(data->records, half, middle, count - half, R, compare_records, NULL,
                      data->others, options);
}

static int run_weft_unique(ARGS)
{
    size_t kept;
    return weft_unique(data->records, count, R, compare_records, NULL, data->others, &kept,
                       options);
}

static int run_weft_nth(ARGS)
{
    return weft_nth(data->records, count, R, count / 2, compare_records, NULL, options);
}

static int run_weft_top_k(ARGS)
{
    size_t found;
    return weft_top_k(data->records, count, R, 100, compare_records, NULL, data->others, &found,
                      options);
}

static int run_weft_top_k_many(ARGS)
{
    size_t found;
    return weft_top_k(data->records, count, R, 5000, compare_records, NULL, data->others, &found,
                      options);
}

static int run_weft_histogram(ARGS)
{
    return weft_histogram(data->records, count, R, bucket_of_records, NULL, BUCKETS, data->results,
                          options);
}

static int run_weft_count_by_key(ARGS)
{
    size_t distinct;
    return weft_count_by_key(data->records, count, R, key_of_records, NULL,
                             (weft_key_count *)(void *)data->others, count, &distinct, options);
}

static int run_weft_group_reduce(ARGS)
{
    static const weft_group_reduction how = { sizeof zero, &zero, fold_records, combine };
    size_t groups;
    return weft_group_reduce(data->records, count, R, bucket_of_records, &how, NULL, data->results,
                             data->others, BUCKETS, &groups, options);
}

static int run_weft_for_lines(ARGS)
{
    return weft_for_lines(data->text, count * LINE, run_line, data, options);
}

static int run_weft_count_lines(ARGS)
{
    size_t lines;
    return weft_count_lines(data->text, count * LINE, &lines, options);
}

static int run_weft_lines(ARGS)
{
    size_t found;
    return weft_lines(data->text, count * LINE, data->lines, MANY + 1, &found, options);
}

/* One line without an end. */
static int run_weft_lines_long(ARGS)
{
    size_t found;
    return weft_lines((const char *)data->keep, count, data->lines, MANY + 1, &found, options);
}

static int run_weft_walk(ARGS)
{
    data->limit = count;
    return weft_walk(count > 0 ? (char *)data + 1 : NULL, visit, data, options);
}

static int run_weft_pipeline(ARGS)
{
    static const weft_stage stages[] = { { WEFT_STAGE_IN_ORDER, make_item },
                                         { WEFT_STAGE_PARALLEL, change_item },
                                         { WEFT_STAGE_IN_ORDER, end_item } };
    data->made = 0;
    data->limit = count;
    int err = weft_pipeline(stages, 3, 0, drop_item, data, options);
    CHECK_EQ(atomic_load(&data->under_way), 0);
    return err;
}

/* Forks, which take no options. */
struct part {
    struct data *data;
    size_t first;
    size_t count;
};

static void run_leaf(const struct part *part)
{
    for (size_t i = 0; i < part->count; i++) {
        part->data->results[part->first + i] = i * part->first;
    }
}

static void join_halves(void *arg)
{
    struct part *part = arg;
    if (part->count <= 1000) {
        run_leaf(part);
        return;
    }
    struct part left = { part->data, part->first, part->count / 2 };
    struct part right = { part->data, part->first + left.count, part->count - left.count };
    weft_join2(join_halves, &left, join_halves, &right);
}

static int run_weft_join2(ARGS)
{
    (void)options;
    join_halves(&(struct part){ data, 0, count });
    return 0;
}

static void fork_halves(void *arg)
{
    struct part *part = arg;
    if (part->count <= 1000) {
        run_leaf(part);
        return;
    }
    struct part left = { part->data, part->first, part->count / 2 };
    struct part right = { part->data, part->first + left.count, part->count - left.count };
    weft_forked forked;
    weft_fork(&forked, fork_halves, &right);
    fork_halves(&left);
    weft_fork_join(&forked);
}

static int run_weft_fork(ARGS)
{
    (void)options;
    fork_halves(&(struct part){ data, 0, count });
    return 0;
}

static int run_weft_join_n(ARGS)
{
    enum {
        CALLS = 8
    };
    struct part parts[CALLS];
    weft_call calls[CALLS];
    (void)options;
    for (size_t i = 0; i < CALLS; i++) {
        parts[i] = (struct part){ data, i * (count / CALLS), count / CALLS };
        calls[i] = (weft_call){ join_halves, &parts[i] };
    }
    weft_join_n(calls, CALLS);
    return 0;
}

WEFT_PARALLEL(uint64_t, tree_sum, struct data *, data, size_t, first, size_t, count)
{
    if (count <= 1000) {
        uint64_t sum = 0;
        for (size_t i = first; i < first + count; i++) {
            sum += data->numbers[i];
        }
        return sum;
    }
    uint64_t left;
    uint64_t right;
    tree_sum_both(&left, data, first, count / 2, &right, data, first + count / 2,
                  count - count / 2);
    return left + right;
}

static int run_WEFT_PARALLEL(ARGS)
{
    (void)options;
    data->results[0] = tree_sum(data, 0, count);
    return 0;
}

static int run_spawned(void *arg)
{
    run_leaf(arg);
    return called(0, 1);
}

static int run_weft_par_spawn(ARGS)
{
    enum {
        SPAWNS = 64
    };
    struct part parts[SPAWNS];
    weft_par_scope scope;
    weft_par_scope_begin(&scope, options != NULL ? options->stop : NULL);
    for (size_t i = 0; i < SPAWNS; i++) {
        parts[i] = (struct part){ data, i * (count / SPAWNS), count / SPAWNS };
        weft_par_spawn(&scope, run_spawned, &parts[i]);
    }
    return weft_par_scope_end(&scope);
}

static int run_nothing(void *arg)
{
    (void)arg;
    return called(0, 1);
}

/* Many spawns in a long run, else a few: each needs memory. */
static int run_weft_par_spawn_many(ARGS)
{
    size_t spawns = count < MANY ? count / 1000 : count / 8;
    weft_par_scope scope;
    (void)data;
    weft_par_scope_begin(&scope, options != NULL ? options->stop : NULL);
    for (size_t i = 0; i < spawns; i++) {
        weft_par_spawn(&scope, run_nothing, NULL);
    }
    return weft_par_scope_end(&scope);
}

/* The external thread of weft_par_run() and the fibers of weft_par_broadcast() call what the
 * other rows call. */
static int sum_here(void *arg)
{
    struct data *data = arg;
    uint64_t sum;
    return weft_sum_u64(data->numbers, data->limit, &sum, NULL);
}

weft_runtime *algorithms_runtime;

static int run_weft_par_run(ARGS)
{
    (void)options;
    data->limit = count;
    return algorithms_runtime != NULL ? weft_par_run(algorithms_runtime, sum_here, data) : 0;
}

static int run_weft_par_broadcast(ARGS)
{
    (void)options;
    data->limit = count;
    return algorithms_runtime != NULL ? weft_par_broadcast(algorithms_runtime, sum_here, data) : 0;
}

#define ROW(name, callbacks, flags)                                                                \
    {                                                                                              \
#name, run_##name, callbacks, flags                                                        \
    }

const struct row rows[] = {
    ROW(weft_for, 1, NO_HUGE),
    ROW(weft_for_2d, 1, NO_HUGE),
    ROW(weft_for_3d, 1, NO_HUGE),
    ROW(weft_reduce, 1, NO_HUGE | SIZED),
    ROW(weft_scan, 2, NO_HUGE | SIZED),
    ROW(weft_scan_exact, 2, NO_HUGE | SIZED),
    ROW(weft_sort, 1, COMPARES | CHANGES | SIZED),
    ROW(weft_sort_stable, 1, COMPARES | CHANGES | SIZED),
    ROW(weft_sort_by_key, 1, CHANGES | SIZED),
    ROW(weft_sort_u32, 0, PRESET_STOP | CHANGES),
    ROW(weft_sort_i32, 0, PRESET_STOP | CHANGES),
    ROW(weft_sort_f32, 0, PRESET_STOP | CHANGES),
    ROW(weft_sort_u64, 0, PRESET_STOP | CHANGES),
    ROW(weft_sort_i64, 0, PRESET_STOP | CHANGES),
    ROW(weft_sort_f64, 0, PRESET_STOP | CHANGES),
    ROW(WEFT_SORT_DEFINE, 1, COMPARES | CHANGES),
    ROW(weft_for_each, 1, CHANGES | SIZED),
    ROW(weft_for_chunks, 1, CHANGES | SIZED),
    ROW(weft_for_windows, 1, SIZED),
    ROW(weft_map, 1, SIZED),
    ROW(weft_map2, 1, SIZED),
    ROW(weft_fill, 0, PRESET_STOP | SIZED),
    ROW(weft_count_if, 1, SIZED),
    ROW(weft_any, 1, SIZED),
    ROW(weft_all, 1, SIZED),
    ROW(weft_none, 1, SIZED),
    ROW(weft_find_first, 1, SIZED),
    ROW(weft_find_last, 1, SIZED),
    ROW(weft_find_any, 1, SIZED),
    ROW(weft_equal, 1, COMPARES | SIZED),
    ROW(weft_mismatch, 0, PRESET_STOP | SIZED),
    ROW(weft_filter, 1, SIZED),
    ROW(weft_pack, 0, PRESET_STOP | SIZED),
    ROW(weft_partition, 1, CHANGES | SIZED),
    ROW(weft_flatten, 0, PRESET_STOP | SIZED),
    ROW(weft_gather, 0, PRESET_STOP | SIZED),
    ROW(weft_scatter, 0, PRESET_STOP | SIZED),
    ROW(weft_reverse, 0, PRESET_STOP | CHANGES | SIZED),
    ROW(weft_rotate, 0, PRESET_STOP | CHANGES | SIZED),
    ROW(weft_shuffle, 0, PRESET_STOP | CHANGES | SIZED),
    ROW(weft_min, 1, COMPARES | SIZED),
    ROW(weft_max, 1, COMPARES | SIZED),
    ROW(weft_min_by_key, 1, SIZED),
    ROW(weft_max_by_key, 1, SIZED),
    ROW(weft_is_sorted, 1, COMPARES | SIZED),
    ROW(weft_merge, 1, COMPARES | SIZED),
    ROW(weft_unique, 1, COMPARES | SIZED),
    ROW(weft_nth, 1, COMPARES | NOT_EMPTY | CHANGES | SIZED),
    ROW(weft_top_k, 1, COMPARES | SIZED),
    ROW(weft_top_k_many, 1, COMPARES | SIZED),
    ROW(weft_histogram, 1, SIZED),
    ROW(weft_count_by_key, 1, SIZED),
    ROW(weft_group_reduce, 2, SIZED),
    ROW(weft_for_lines, 1, NO_HUGE),
    ROW(weft_count_lines, 0, NO_HUGE | PRESET_STOP),
    ROW(weft_lines, 0, NO_HUGE | PRESET_STOP),
    ROW(weft_lines_long, 0, NO_HUGE | PRESET_STOP),
    ROW(weft_walk, 1, NO_HUGE),
    ROW(weft_pipeline, 3, NO_HUGE),
    ROW(weft_join2, 0, NO_STOP | NO_HUGE | FORKS | NO_CALL),
    ROW(weft_fork, 0, NO_STOP | NO_HUGE | FORKS | NO_CALL),
    ROW(weft_join_n, 0, NO_STOP | NO_HUGE | FORKS),
    ROW(WEFT_PARALLEL, 0, NO_STOP | NO_HUGE | FORKS | NO_CALL),
    ROW(weft_par_spawn, 1, NO_HUGE),
    ROW(weft_par_spawn_many, 1, NO_HUGE),
    ROW(weft_par_run, 0, NO_STOP | NO_HUGE),
    ROW(weft_par_broadcast, 0, NO_STOP | NO_HUGE),
    ROW(weft_dot_f32, 0, PRESET_STOP),
    ROW(weft_dot_f64, 0, PRESET_STOP),
    ROW(weft_sum_i32, 0, PRESET_STOP),
    ROW(weft_sum_i64, 0, PRESET_STOP),
    ROW(weft_sum_u32, 0, PRESET_STOP),
    ROW(weft_sum_u64, 0, PRESET_STOP),
    ROW(weft_sum_f32, 0, PRESET_STOP),
    ROW(weft_sum_f64, 0, PRESET_STOP),
    ROW(weft_least_i32, 0, PRESET_STOP | NOT_EMPTY),
    ROW(weft_least_i64, 0, PRESET_STOP | NOT_EMPTY),
    ROW(weft_least_u32, 0, PRESET_STOP | NOT_EMPTY),
    ROW(weft_least_u64, 0, PRESET_STOP | NOT_EMPTY),
    ROW(weft_least_f32, 0, PRESET_STOP | NOT_EMPTY),
    ROW(weft_least_f64, 0, PRESET_STOP | NOT_EMPTY),
    ROW(weft_greatest_i32, 0, PRESET_STOP | NOT_EMPTY),
    ROW(weft_greatest_i64, 0, PRESET_STOP | NOT_EMPTY),
    ROW(weft_greatest_u32, 0, PRESET_STOP | NOT_EMPTY),
    ROW(weft_greatest_u64, 0, PRESET_STOP | NOT_EMPTY),
    ROW(weft_greatest_f32, 0, PRESET_STOP | NOT_EMPTY),
    ROW(weft_greatest_f64, 0, PRESET_STOP | NOT_EMPTY),
    ROW(weft_scan_i32, 0, PRESET_STOP),
    ROW(weft_scan_i64, 0, PRESET_STOP),
    ROW(weft_scan_u32, 0, PRESET_STOP),
    ROW(weft_scan_u64, 0, PRESET_STOP),
    ROW(weft_scan_f32, 0, PRESET_STOP),
    ROW(weft_scan_f64, 0, PRESET_STOP),
    ROW(weft_scan_exclusive_i32, 0, PRESET_STOP),
    ROW(weft_scan_exclusive_i64, 0, PRESET_STOP),
    ROW(weft_scan_exclusive_u32, 0, PRESET_STOP),
    ROW(weft_scan_exclusive_u64, 0, PRESET_STOP),
    ROW(weft_scan_exclusive_f32, 0, PRESET_STOP),
    ROW(weft_scan_exclusive_f64, 0, PRESET_STOP),
};

const size_t rows_count = sizeof rows / sizeof rows[0];
