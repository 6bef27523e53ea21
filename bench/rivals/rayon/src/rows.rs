// SPDX-License-Identifier: MIT

//! The fork rows. Each is a function from the number of workers and of repetitions to one
//! sample per repetition. The timed part runs on a worker of an existing pool, except for calls
//! from outside. Each repetition checks its result.

use crate::driver::{fail, Row};
use crate::loops;
use crate::work::{self, check, Board, Node};
use rayon::{join, ThreadPool, ThreadPoolBuilder};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

pub const ROWS: &[Row] = &[
    Row { name: "par.fork_extra", unit: "ns", run: fork_extra },
    Row { name: "par.fork_extra2", unit: "ns", run: fork_extra },
    Row { name: "par.fib", unit: "ns", run: fib_forks },
    Row { name: "par.nqueens", unit: "ms", run: nqueens },
    Row { name: "par.uts_t1", unit: "ms", run: uts_t1 },
    Row { name: "par.skynet", unit: "ms", run: skynet_tree },
    Row { name: "par.two_seconds", unit: "ms", run: two_seconds },
    Row { name: "par.outside_call", unit: "ns", run: outside_call },
    Row { name: "par.task_wait_p99", unit: "ns", run: task_wait_p99 },
    Row { name: "par.imbalance", unit: "ms", run: imbalance },
    Row { name: "par.sum", unit: "ms", run: loops::sum },
    Row { name: "par.scan", unit: "ms", run: loops::scan },
    Row { name: "par.for_small", unit: "us", run: loops::for_small },
    Row { name: "par.even", unit: "ms", run: loops::even },
    Row { name: "par.uneven", unit: "ms", run: loops::uneven },
    Row { name: "par.sort_u32", unit: "ms", run: loops::sort_u32 },
    Row { name: "par.sort_u64", unit: "ms", run: loops::sort_u64 },
    Row { name: "par.sort_f64", unit: "ms", run: loops::sort_f64 },
    Row { name: "par.sort_cmp", unit: "ms", run: loops::sort_cmp },
];

pub struct Sampling {
    pub warmups: usize,
    pub reps_max: usize, // 0: as requested
}

fn make_pool(workers: usize) -> ThreadPool {
    let pool = ThreadPoolBuilder::new().num_threads(workers).build();
    pool.unwrap_or_else(|err| fail(&err.to_string()))
}

/// Returns the samples of a function, without those of its warm-ups.
fn sample(reps: usize, how: Sampling, mut once: impl FnMut() -> f64) -> Vec<f64> {
    let reps = if how.reps_max == 0 { reps } else { reps.min(how.reps_max) };
    for _ in 0..how.warmups {
        once();
    }
    (0..reps).map(|_| once()).collect()
}

/// Same as `sample`, with each call on a worker.
pub fn repeat(
    workers: usize,
    reps: usize,
    how: Sampling,
    mut once: impl FnMut() -> f64 + Send,
) -> Vec<f64> {
    let pool = make_pool(workers);
    sample(reps, how, || pool.install(&mut once))
}

fn ms_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn fib_direct(n: u32) -> u64 {
    if n < 2 {
        return n as u64;
    }
    fib_direct(n - 1) + fib_direct(n - 2)
}

fn fib(n: u32) -> u64 {
    if n < 2 {
        return n as u64;
    }
    let (first, second) = join(|| fib(n - 1), || fib(n - 2));
    first + second
}

fn time_fib(function: fn(u32) -> u64) -> f64 {
    let start = Instant::now();
    let result = function(black_box(work::FIB_EXTRA));
    let ns = start.elapsed().as_nanos() as f64;
    check(result == work::FIB_EXTRA_RESULT, "fib");
    ns
}

/// Uses the shortest run of each kind: disturbances only make a run longer.
fn fork_extra(workers: usize, reps: usize) -> Vec<f64> {
    repeat(workers, reps, Sampling { warmups: 1, reps_max: 0 }, || {
        let mut direct = f64::INFINITY;
        let mut forked = f64::INFINITY;
        for _ in 0..work::FIB_EXTRA_PAIRS {
            direct = direct.min(time_fib(fib_direct));
            forked = forked.min(time_fib(fib));
        }
        (forked - direct) / work::FIB_EXTRA_FORKS as f64
    })
}

fn fib_forks(workers: usize, reps: usize) -> Vec<f64> {
    repeat(workers, reps, Sampling { warmups: 1, reps_max: 0 }, || {
        let start = Instant::now();
        let result = fib(black_box(work::FIB));
        let ns = start.elapsed().as_nanos() as f64;
        check(result == work::FIB_RESULT, "fib");
        ns / work::FIB_FORKS as f64
    })
}

fn queens(board: Board) -> u64 {
    if board.columns == work::QUEENS_ALL {
        return 1;
    }
    match board.free() {
        0 => 0,
        open => queens_at(board, open),
    }
}

/// Places a queen on each of the open columns, with one join fewer than there are columns.
fn queens_at(board: Board, open: u32) -> u64 {
    let bit = open & open.wrapping_neg();
    let rest = open ^ bit;
    if rest == 0 {
        return queens(board.place(bit));
    }
    let (first, others) = join(|| queens(board.place(bit)), || queens_at(board, rest));
    first + others
}

fn nqueens(workers: usize, reps: usize) -> Vec<f64> {
    repeat(workers, reps, Sampling { warmups: 2, reps_max: 0 }, || {
        let start = Instant::now();
        let found = queens(black_box(Board::EMPTY));
        let ms = ms_since(start);
        check(found == work::QUEENS_RESULT, "the number of solutions");
        ms
    })
}

fn visit(node: Node) -> u64 {
    match node.children() {
        0 => 1,
        children => 1 + visit_children(&node, 0, children),
    }
}

/// Visits the children with these numbers, with one join fewer than there are children.
fn visit_children(parent: &Node, from: u32, to: u32) -> u64 {
    if from + 1 == to {
        return visit(parent.child(from));
    }
    let (first, others) =
        join(|| visit(parent.child(from)), || visit_children(parent, from + 1, to));
    first + others
}

fn uts_t1(workers: usize, reps: usize) -> Vec<f64> {
    repeat(workers, reps, Sampling { warmups: 1, reps_max: 0 }, || {
        let start = Instant::now();
        let nodes = visit(Node::root());
        let ms = ms_since(start);
        check(nodes == work::UTS_RESULT, "the number of nodes");
        ms
    })
}

fn skynet(number: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        return number;
    }
    skynet_ways(number, leaves / work::SKYNET_WAYS, work::SKYNET_WAYS)
}

/// Visits the given number of subtrees of equal size.
fn skynet_ways(number: u64, part: u64, ways: u64) -> u64 {
    if ways == 1 {
        return skynet(number, part);
    }
    let (first, others) =
        join(|| skynet(number, part), || skynet_ways(number + part, part, ways - 1));
    first + others
}

fn skynet_tree(workers: usize, reps: usize) -> Vec<f64> {
    repeat(workers, reps, Sampling { warmups: 2, reps_max: 0 }, || {
        let start = Instant::now();
        let sum = skynet(0, black_box(work::SKYNET_LEAVES));
        let ms = ms_since(start);
        check(sum == work::SKYNET_RESULT, "the sum");
        ms
    })
}

fn two_seconds(workers: usize, reps: usize) -> Vec<f64> {
    repeat(workers, reps, Sampling { warmups: 0, reps_max: 3 }, || {
        let one_second = || {
            work::busy(work::SECOND_NS);
            true
        };
        let start = Instant::now();
        let done = join(one_second, one_second);
        let ms = ms_since(start);
        check(done == (true, true), "the two computations");
        ms
    })
}

#[inline(never)]
fn add(to: &mut u64, number: u64) {
    *to = black_box(*to + number);
}

fn outside_call(workers: usize, reps: usize) -> Vec<f64> {
    let pool = make_pool(workers);
    sample(reps, Sampling { warmups: 1, reps_max: 0 }, || {
        let (mut first, mut second) = (0, 0);
        let start = Instant::now();
        for _ in 0..work::OUTSIDE_CALLS {
            add(&mut first, 1);
            add(&mut second, 2);
        }
        let direct = start.elapsed();
        let start = Instant::now();
        for _ in 0..work::OUTSIDE_CALLS {
            pool.install(|| join(|| add(&mut first, 1), || add(&mut second, 2)));
        }
        let joined = start.elapsed();
        check(first == 2 * work::OUTSIDE_CALLS, "the first number");
        check(second == 4 * work::OUTSIDE_CALLS, "the second number");
        (joined.as_nanos() as f64 - direct.as_nanos() as f64) / work::OUTSIDE_CALLS as f64
    })
}

/// About 100 ms of work.
const ROUND_FIB: u32 = 34;
const ROUND_FIB_RESULT: u64 = 5702887;

/// Runs rounds of computation, each submitted from outside, until `over` is set.
fn compute_rounds(pool: &ThreadPool, over: &AtomicBool) {
    // relaxed: it orders nothing, and one more round does no harm.
    while !over.load(Ordering::Relaxed) {
        check(pool.install(|| fib(black_box(ROUND_FIB))) == ROUND_FIB_RESULT, "fib");
    }
}

fn spawn_probes(pool: &ThreadPool) -> Vec<f64> {
    let epoch = Instant::now();
    let waits: Arc<Vec<AtomicI64>> =
        Arc::new((0..work::PROBES).map(|_| AtomicI64::new(-1)).collect());
    let done = Arc::new(AtomicUsize::new(0));
    let mut next = Duration::from_millis(20); // by then all workers compute
    for i in 0..work::PROBES {
        thread::sleep(next.saturating_sub(epoch.elapsed()));
        next += work::PROBE_EVERY;
        let (waits, done) = (waits.clone(), done.clone());
        let spawned = Instant::now();
        pool.spawn(move || {
            // relaxed: the count publishes it.
            waits[i].store(spawned.elapsed().as_nanos() as i64, Ordering::Relaxed);
            // release: the wait is written.
            done.fetch_add(1, Ordering::Release);
        });
    }
    // acquire: all waits are written.
    while done.load(Ordering::Acquire) < work::PROBES {
        thread::sleep(Duration::from_millis(1));
    }
    // relaxed: ordered by the acquire above.
    waits.iter().map(|wait| wait.load(Ordering::Relaxed) as f64).collect()
}

fn task_wait_p99(workers: usize, reps: usize) -> Vec<f64> {
    let pool = make_pool(workers);
    sample(reps, Sampling { warmups: 0, reps_max: 5 }, || {
        let over = AtomicBool::new(false);
        let mut waits = thread::scope(|scope| {
            scope.spawn(|| compute_rounds(&pool, &over));
            let waits = spawn_probes(&pool);
            // relaxed: see compute_rounds().
            over.store(true, Ordering::Relaxed);
            waits
        });
        waits.sort_by(f64::total_cmp);
        check(waits[0] >= 0.0, "the waits");
        waits[waits.len() * 99 / 100]
    })
}

fn imbalance(workers: usize, reps: usize) -> Vec<f64> {
    repeat(workers, reps, Sampling { warmups: 0, reps_max: 5 }, || {
        let mut done = [false; work::JOBS];
        let start = Instant::now();
        rayon::scope(|scope| {
            for each in &mut done {
                scope.spawn(|_| {
                    work::busy(work::JOB_NS);
                    *each = true;
                });
            }
        });
        let ms = ms_since(start);
        check(done.iter().all(|&each| each), "the jobs");
        ms
    })
}
