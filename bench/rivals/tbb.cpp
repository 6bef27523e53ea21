/* SPDX-License-Identifier: MIT */
/*
 * tbb.cpp - the work of the par rows with oneTBB.
 *
 * The main thread is one of the workers, as in every program that uses oneTBB.
 */
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>
#include <tbb/parallel_reduce.h>
#include <tbb/parallel_scan.h>
#include <tbb/parallel_sort.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "../work.h"
#include "driver.h"

namespace
{

/* Smaller than the 40 of the other rivals, which would take a minute. The figure is per fork. */
constexpr int FIB = 32;
constexpr long FIB_RESULT = 2178309;
constexpr long FIB_FORKS = 3524577;

using Range = tbb::blocked_range<size_t>;

/* Lasts until the process exits: each row has its own process. */
void set_workers(unsigned workers)
{
    static tbb::global_control control(tbb::global_control::max_allowed_parallelism, workers);
}

/* One context for all groups of a row: creating one costs more than a task. */
tbb::task_group_context &context()
{
    static tbb::task_group_context shared;
    return shared;
}

long fib_direct(int n)
{
    if (n < 2) {
        return n;
    }
    return fib_direct(n - 1) + fib_direct(n - 2);
}

long fib(int n)
{
    if (n < 2) {
        return n;
    }
    long first;
    long second;
    tbb::parallel_invoke([&first, n] { first = fib(n - 1); }, [&second, n] { second = fib(n - 2); },
                         context());
    return first + second;
}

double fork_extra(unsigned workers)
{
    set_workers(workers);
    return driver_fork_extra(fib_direct, fib);
}

double fib_forks(unsigned workers)
{
    set_workers(workers);
    int64_t start = work_now_ns();
    long result = fib(FIB);
    double ns = double(work_now_ns() - start);
    DRIVER_CHECK(result == FIB_RESULT);
    return ns / FIB_FORKS;
}

long queens(uint32_t columns, uint32_t left, uint32_t right)
{
    work_board board = { columns, left, right };
    if (columns == WORK_QUEENS_ALL) {
        return 1;
    }
    uint32_t open = work_board_free(board);
    if (open == 0) {
        return 0;
    }
    if ((open & (open - 1)) == 0) {
        work_board only = work_board_place(board, open);
        return queens(only.columns, only.left, only.right);
    }
    long parts[WORK_QUEENS];
    int count = 0;
    tbb::task_group group(context());
    while ((open & (open - 1)) != 0) {
        work_board next = work_board_place(board, open & -open);
        long *part = &parts[count++];
        group.run([next, part] { *part = queens(next.columns, next.left, next.right); });
        open &= open - 1;
    }
    work_board last = work_board_place(board, open);
    long found = queens(last.columns, last.left, last.right);
    group.wait();
    while (count > 0) {
        found += parts[--count];
    }
    return found;
}

double nqueens(unsigned workers)
{
    set_workers(workers);
    int64_t start = work_now_ns();
    long found = queens(0, 0, 0);
    double ms = driver_ms_since(start);
    DRIVER_CHECK(found == WORK_QUEENS_RESULT);
    return ms;
}

long visit(const work_node &node)
{
    unsigned children = work_uts_children(&node);
    if (children == 0) {
        return 1;
    }
    if (children == 1) {
        return 1 + visit(work_uts_child(&node, 0));
    }
    long parts[WORK_UTS_CHILDREN_MAX];
    tbb::task_group group(context());
    for (unsigned i = 0; i + 1 < children; i++) {
        work_node child = work_uts_child(&node, i);
        long *part = &parts[i];
        group.run([child, part] { *part = visit(child); });
    }
    long nodes = 1 + visit(work_uts_child(&node, children - 1));
    group.wait();
    for (unsigned i = 0; i + 1 < children; i++) {
        nodes += parts[i];
    }
    return nodes;
}

double uts_t1(unsigned workers)
{
    set_workers(workers);
    int64_t start = work_now_ns();
    long nodes = visit(work_uts_root());
    double ms = driver_ms_since(start);
    DRIVER_CHECK(nodes == WORK_UTS_RESULT);
    return ms;
}

uint64_t skynet(uint64_t number, uint64_t leaves)
{
    if (leaves == 1) {
        return number;
    }
    uint64_t parts[WORK_SKYNET_WAYS - 1];
    uint64_t part = leaves / WORK_SKYNET_WAYS;
    tbb::task_group group(context());
    for (unsigned i = 0; i < WORK_SKYNET_WAYS - 1; i++) {
        uint64_t *into = &parts[i];
        group.run([=] { *into = skynet(number + i * part, part); });
    }
    uint64_t sum = skynet(number + (WORK_SKYNET_WAYS - 1) * part, part);
    group.wait();
    for (uint64_t value : parts) {
        sum += value;
    }
    return sum;
}

double skynet_tree(unsigned workers)
{
    set_workers(workers);
    int64_t start = work_now_ns();
    uint64_t sum = skynet(0, WORK_SKYNET_LEAVES);
    double ms = driver_ms_since(start);
    DRIVER_CHECK(sum == WORK_SKYNET_RESULT);
    return ms;
}

double two_seconds(unsigned workers)
{
    set_workers(workers);
    bool done[2] = { false, false };
    auto one_second = [](bool *into) {
        work_busy(WORK_SECOND_NS);
        *into = true;
    };
    int64_t start = work_now_ns();
    tbb::parallel_invoke([&] { one_second(&done[0]); }, [&] { one_second(&done[1]); });
    double ms = driver_ms_since(start);
    DRIVER_CHECK(done[0] && done[1]);
    return ms;
}

struct addition {
    uint64_t to;
    uint64_t number;
};

__attribute__((noinline)) void add(addition *addition)
{
    addition->to += addition->number;
}

double outside_call(unsigned workers)
{
    set_workers(workers);
    addition first = { 0, 1 };
    addition second = { 0, 2 };
    int64_t start = work_now_ns();
    for (int i = 0; i < WORK_OUTSIDE_CALLS; i++) {
        add(&first);
        add(&second);
    }
    int64_t direct = work_now_ns() - start;
    start = work_now_ns();
    for (int i = 0; i < WORK_OUTSIDE_CALLS; i++) {
        tbb::parallel_invoke([&first] { add(&first); }, [&second] { add(&second); }, context());
    }
    int64_t joined = work_now_ns() - start;
    DRIVER_CHECK(first.to == UINT64_C(2) * WORK_OUTSIDE_CALLS);
    DRIVER_CHECK(second.to == UINT64_C(4) * WORK_OUTSIDE_CALLS);
    return double(joined - direct) / WORK_OUTSIDE_CALLS;
}

/*
 * par.task_wait_p99: an arena without a slot for the main thread, which only spawns. A round is
 * about 100 ms of work.
 */
constexpr int ROUND_FIB = 30;
constexpr long ROUND_FIB_RESULT = 832040;

struct probe {
    int64_t spawned;
    int64_t started;
};

void spawn_probes(tbb::task_arena &arena, std::vector<probe> &probes)
{
    std::atomic<unsigned> done{ 0 };
    auto next = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    for (probe &each : probes) {
        std::this_thread::sleep_until(next);
        next += std::chrono::nanoseconds(WORK_PROBE_EVERY_NS);
        each.spawned = work_now_ns();
        arena.enqueue([&each, &done] {
            each.started = work_now_ns();
            done.fetch_add(1, std::memory_order_release);
        });
    }
    while (done.load(std::memory_order_acquire) < probes.size()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

double task_wait_p99(unsigned workers)
{
    set_workers(workers + 1);
    tbb::task_arena arena(int(workers), 0);
    std::atomic<bool> over{ false };
    std::atomic<bool> ended{ false };
    std::function<void()> round = [&] {
        DRIVER_CHECK(fib(ROUND_FIB) == ROUND_FIB_RESULT);
        if (over.load(std::memory_order_relaxed)) {
            ended.store(true, std::memory_order_release);
        } else {
            arena.enqueue([&round] { round(); });
        }
    };
    arena.enqueue([&round] { round(); });
    std::vector<probe> probes(WORK_PROBES);
    spawn_probes(arena, probes);
    over.store(true, std::memory_order_relaxed);
    while (!ended.load(std::memory_order_acquire)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::vector<double> waits;
    for (const probe &each : probes) {
        DRIVER_CHECK(each.started >= each.spawned);
        waits.push_back(double(each.started - each.spawned));
    }
    return work_p99(waits.data(), waits.size());
}

double imbalance(unsigned workers)
{
    set_workers(workers);
    char done[WORK_JOBS] = {};
    int64_t start = work_now_ns();
    tbb::task_group group;
    for (char &each : done) {
        group.run([&each] {
            work_busy(WORK_JOB_NS);
            each = 1;
        });
    }
    group.wait();
    double ms = driver_ms_since(start);
    for (char each : done) {
        DRIVER_CHECK(each == 1);
    }
    return ms;
}

double sum(unsigned workers)
{
    set_workers(workers);
    static std::vector<uint64_t> items;
    if (items.empty()) {
        items.resize(WORK_ITEMS);
        work_fill_numbers(items.data(), items.size());
    }
    auto add_range = [](const Range &range, uint64_t total) {
        for (size_t i = range.begin(); i < range.end(); i++) {
            total += items[i];
        }
        return total;
    };
    int64_t start = work_now_ns();
    uint64_t total =
        tbb::parallel_reduce(Range(0, items.size()), uint64_t(0), add_range, std::plus<uint64_t>());
    double ms = driver_ms_since(start);
    DRIVER_CHECK(total == WORK_SUM_RESULT);
    return ms;
}

double scan(unsigned workers)
{
    set_workers(workers);
    static std::vector<uint64_t> items;
    static std::vector<uint64_t> sums(WORK_ITEMS);
    if (items.empty()) {
        items.resize(WORK_ITEMS);
        work_fill_small(items.data(), items.size());
    }
    auto scan_range = [](const Range &range, uint64_t total, bool is_final) {
        for (size_t i = range.begin(); i < range.end(); i++) {
            total += items[i];
            if (is_final) {
                sums[i] = total;
            }
        }
        return total;
    };
    int64_t start = work_now_ns();
    tbb::parallel_scan(Range(0, items.size()), uint64_t(0), scan_range, std::plus<uint64_t>());
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_is_scan(sums.data(), sums.size()));
    return ms;
}

double for_small(unsigned workers)
{
    set_workers(workers);
    std::vector<uint64_t> items(WORK_SMALL_ITEMS);
    uint64_t *at = items.data();
    int64_t start = work_now_ns();
    for (int loop = 0; loop < WORK_SMALL_LOOPS; loop++) {
        tbb::parallel_for(Range(0, WORK_SMALL_ITEMS), [at](const Range &range) {
            for (size_t i = range.begin(); i < range.end(); i++) {
                at[i] += i;
            }
        });
    }
    double us = double(work_now_ns() - start) / 1e3;
    DRIVER_CHECK(work_is_small_result(items.data()));
    return us / WORK_SMALL_LOOPS;
}

template <typename Unit> double units(unsigned workers, uint64_t wanted, Unit unit)
{
    set_workers(workers);
    static uint64_t results[WORK_UNITS];
    int64_t start = work_now_ns();
    tbb::parallel_for(Range(0, WORK_UNITS), [unit](const Range &range) {
        for (size_t i = range.begin(); i < range.end(); i++) {
            results[i] = unit(i);
        }
    });
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_sum_units(results) == wanted);
    return ms;
}

double even(unsigned workers)
{
    return units(workers, WORK_EVEN_RESULT,
                 [](size_t i) { return work_unit(i, WORK_UNIT_ROUNDS); });
}

double uneven(unsigned workers)
{
    return units(workers, WORK_UNEVEN_RESULT,
                 [](size_t i) { return work_unit(i, work_uneven_rounds(i)); });
}

double sort_u32(unsigned workers)
{
    set_workers(workers);
    std::vector<uint32_t> items(WORK_ITEMS);
    work_fill_u32(items.data(), items.size());
    int64_t start = work_now_ns();
    tbb::parallel_sort(items.begin(), items.end());
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_is_sorted_u32(items.data(), items.size()));
    return ms;
}

double sort_u64(unsigned workers)
{
    set_workers(workers);
    std::vector<uint64_t> items(WORK_ITEMS);
    work_fill_u64(items.data(), items.size());
    int64_t start = work_now_ns();
    tbb::parallel_sort(items.begin(), items.end());
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_is_sorted_u64(items.data(), items.size()));
    return ms;
}

double sort_f64(unsigned workers)
{
    set_workers(workers);
    std::vector<double> items(WORK_ITEMS);
    work_fill_f64(items.data(), items.size());
    int64_t start = work_now_ns();
    tbb::parallel_sort(items.begin(), items.end());
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_is_sorted_f64(items.data(), items.size()));
    return ms;
}

double sort_cmp(unsigned workers)
{
    set_workers(workers);
    std::vector<work_record> items(WORK_ITEMS);
    work_fill_records(items.data(), items.size());
    auto less = [](const work_record &a, const work_record &b) { return a.key < b.key; };
    int64_t start = work_now_ns();
    tbb::parallel_sort(items.begin(), items.end(), less);
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_is_sorted_records(items.data(), items.size()));
    return ms;
}

const driver_row rows[] = {
    { "par.fork_extra", "ns", fork_extra, 0, 0 },
    { "par.fork_extra2", "ns", fork_extra, 0, 0 },
    { "par.fib", "ns", fib_forks, 1, 0 },
    { "par.nqueens", "ms", nqueens, 1, 0 },
    { "par.uts_t1", "ms", uts_t1, 1, 0 },
    { "par.skynet", "ms", skynet_tree, 2, 0 },
    { "par.two_seconds", "ms", two_seconds, 0, 3 },
    { "par.outside_call", "ns", outside_call, 1, 0 },
    { "par.task_wait_p99", "ns", task_wait_p99, 0, 5 },
    { "par.imbalance", "ms", imbalance, 0, 5 },
    { "par.sum", "ms", sum, 2, 0 },
    { "par.scan", "ms", scan, 2, 0 },
    { "par.for_small", "us", for_small, 2, 0 },
    { "par.even", "ms", even, 1, 0 },
    { "par.uneven", "ms", uneven, 1, 0 },
    { "par.sort_u32", "ms", sort_u32, 1, 0 },
    { "par.sort_u64", "ms", sort_u64, 1, 0 },
    { "par.sort_f64", "ms", sort_f64, 1, 0 },
    { "par.sort_cmp", "ms", sort_cmp, 1, 0 },
    { nullptr, nullptr, nullptr, 0, 0 },
};

} // namespace

int main(int argc, char **argv)
{
    driver driver = { "rival-tbb", rows, 1000 };
    return driver_main(&driver, argc, argv);
}
