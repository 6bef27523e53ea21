// SPDX-License-Identifier: MIT

//! The rows, except those of `time.rs` and `wait.rs`. Each is a function from the number of
//! workers and of repetitions to one sample per repetition. Each creates its runtime before the
//! clock starts, repeats its work `WARMUPS` times unmeasured, and checks after every repetition
//! that all the work was done. A row that takes only one sample documents what it does instead.

use crate::driver::{fail, Row};
use crate::time;
use crate::wait;
use std::future::{poll_fn, Future};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::task::{yield_now, JoinHandle};

/// Tokio has no fibers: the fiber rows are the task rows.
pub const ROWS: &[Row] = &[
    Row { name: "sched.spawn_join", unit: "ns", run: spawn_join },
    Row { name: "sched.spawn_batch", unit: "ns", run: spawn_batch },
    Row { name: "sched.yield", unit: "ns", run: yields },
    Row { name: "sched.self_wake", unit: "ns", run: self_wake },
    Row { name: "sched.cross_wake", unit: "ns", run: cross_wake },
    Row { name: "sched.inject", unit: "ns", run: inject },
    Row { name: "sched.wake_outside", unit: "ns", run: wake_outside },
    Row { name: "sched.task_bytes", unit: "bytes", run: task_bytes },
    Row { name: "sched.idle_cpu", unit: "ns", run: idle_cpu },
    Row { name: "fiber.yield", unit: "ns", run: yields },
    Row { name: "fiber.spawn_join", unit: "ns", run: spawn_join },
    Row { name: "fiber.spawn_batch", unit: "ns", run: spawn_batch },
    Row { name: "fiber.bytes", unit: "bytes", run: task_bytes },
    Row { name: "time.create_cancel", unit: "ns", run: time::create_cancel },
    Row { name: "time.million_sleeps_cpu", unit: "ms", run: time::million_sleeps_cpu },
    Row { name: "time.lateness_p99", unit: "ns", run: time::lateness_p99 },
    Row { name: "chan.pingpong", unit: "ns", run: wait::chan_pingpong },
    Row { name: "chan.1_1", unit: "ns", run: wait::chan_1_1 },
    Row { name: "chan.4_1", unit: "ns", run: wait::chan_4_1 },
    Row { name: "chan.4_4", unit: "ns", run: wait::chan_4_4 },
    Row { name: "chan.oneshot", unit: "ns", run: wait::chan_oneshot },
    Row { name: "chan.watch", unit: "ns", run: wait::chan_watch },
    Row { name: "chan.broadcast", unit: "ns", run: wait::chan_broadcast },
    Row { name: "sync.mutex", unit: "ns", run: wait::sync_mutex },
    Row { name: "sync.mutex_64", unit: "ns", run: wait::sync_mutex_64 },
    Row { name: "sync.rwlock_4r2w", unit: "ns", run: wait::sync_rwlock_4r2w },
    Row { name: "sync.semaphore_8_2", unit: "ns", run: wait::sync_semaphore_8_2 },
    Row { name: "sync.notify", unit: "ns", run: wait::sync_notify },
    Row { name: "sync.barrier", unit: "ns", run: wait::sync_barrier },
    Row { name: "select.2", unit: "ns", run: wait::select_2 },
    Row { name: "blitz-io.mutex", unit: "ns", run: wait::blitz_mutex },
    Row { name: "blitz-io.rwlock_read", unit: "ns", run: wait::blitz_rwlock_read },
    Row { name: "blitz-io.rwlock_write", unit: "ns", run: wait::blitz_rwlock_write },
    Row { name: "blitz-io.semaphore", unit: "ns", run: wait::blitz_semaphore },
    Row { name: "blitz-io.oncecell_get", unit: "ns", run: wait::blitz_oncecell_get },
    Row { name: "blitz-io.oncecell_set", unit: "ns", run: wait::blitz_oncecell_set },
    Row { name: "blitz-io.notify", unit: "ns", run: wait::blitz_notify },
    Row { name: "blitz-io.notify_reuse", unit: "ns", run: wait::blitz_notify_reuse },
    Row { name: "blitz-io.barrier", unit: "ns", run: wait::blitz_barrier },
    Row { name: "blitz-io.barrier_reuse", unit: "ns", run: wait::blitz_barrier_reuse },
    Row { name: "blitz-io.channel_send", unit: "ns", run: wait::blitz_channel_send },
    Row { name: "blitz-io.channel_recv", unit: "ns", run: wait::blitz_channel_recv },
    Row { name: "blitz-io.channel_roundtrip", unit: "ns", run: wait::blitz_channel_roundtrip },
    Row { name: "blitz-io.oneshot", unit: "ns", run: wait::blitz_oneshot },
    Row { name: "blitz-io.broadcast", unit: "ns", run: wait::blitz_broadcast },
    Row { name: "blitz-io.watch", unit: "ns", run: wait::chan_watch },
    Row { name: "blitz-io.channel_mpmc", unit: "ns", run: wait::blitz_channel_mpmc },
    Row { name: "blitz-io.mutex_contended", unit: "ns", run: wait::blitz_mutex_contended },
    Row { name: "blitz-io.rwlock_contended", unit: "ns", run: wait::blitz_rwlock_contended },
    Row { name: "blitz-io.semaphore_contended", unit: "ns", run: wait::blitz_semaphore_contended },
    Row { name: "blitz-io.task_spawn", unit: "ns", run: wait::blitz_task_spawn },
    Row { name: "blitz-io.task_spawn_batch", unit: "ns", run: wait::blitz_task_spawn_batch },
    Row { name: "blitz-io.blocking_spawn", unit: "ns", run: wait::blitz_blocking_spawn },
    Row { name: "volt.yield", unit: "ns", run: wait::volt_yield },
    Row { name: "volt.spsc", unit: "ns", run: wait::volt_spsc },
    Row { name: "volt.mpmc_1", unit: "ns", run: wait::volt_mpmc_1 },
    Row { name: "volt.mpmc_2", unit: "ns", run: wait::volt_mpmc_2 },
    Row { name: "volt.mpmc_4", unit: "ns", run: wait::volt_mpmc_4 },
    Row { name: "volt.pipeline", unit: "ns", run: wait::volt_pipeline },
    Row { name: "volt.mutex", unit: "ns", run: wait::volt_mutex },
    Row { name: "volt.spawn_hot", unit: "ns", run: wait::volt_spawn_hot },
    Row { name: "volt.parallel", unit: "ms", run: wait::volt_parallel },
];

const WARMUPS: usize = 2;

/// Two cache lines, so that neither a neighbor nor the adjacent-line prefetcher disturbs the
/// counter.
#[repr(align(128))]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one and returns the new count.
    pub fn add(&self) -> u64 {
        // relaxed: only the count matters; joins and wakes order the rest.
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn get(&self) -> u64 {
        // relaxed: see add().
        self.0.load(Ordering::Relaxed)
    }

    pub fn set(&self, count: u64) {
        // relaxed: see add().
        self.0.store(count, Ordering::Relaxed);
    }

    /// Checks that all the work was done, and resets the counter.
    pub fn check(&self, expected: u64) {
        // relaxed: see add().
        let found = self.0.swap(0, Ordering::Relaxed);
        if found != expected {
            fail(&format!("{found} steps were counted, not {expected}"));
        }
    }
}

/// The counter that the tasks share.
pub static DONE: Counter = Counter(AtomicU64::new(0));

/// Enables no I/O or timer driver: idle workers then sleep on a futex instead of in epoll, and
/// wake up faster.
pub fn runtime(workers: usize) -> Runtime {
    started(Builder::new_multi_thread().worker_threads(workers))
}

fn runtime_with_io(workers: usize) -> Runtime {
    started(Builder::new_multi_thread().worker_threads(workers).enable_io())
}

pub fn started(builder: &mut Builder) -> Runtime {
    builder.build().unwrap_or_else(|err| fail(&err.to_string()))
}

/// Warms up, then takes `reps` samples.
pub fn measure(reps: usize, mut sample: impl FnMut() -> f64) -> Vec<f64> {
    for _ in 0..WARMUPS {
        sample();
    }
    (0..reps).map(|_| sample()).collect()
}

/// Measures work that runs as a task: it is spawned, not run by `block_on` on the main thread,
/// which is not a worker. The work reads the clock itself.
pub fn measure_task<F>(rt: Runtime, reps: usize, ops: u64, work: fn() -> F) -> Vec<f64>
where
    F: Future<Output = Duration> + Send + 'static,
{
    measure(reps, || {
        let time = rt.block_on(rt.spawn(work())).unwrap();
        DONE.check(ops);
        time.as_nanos() as f64 / ops as f64
    })
}

pub fn spawn_all<F>(tasks: u64, make: impl FnMut(u64) -> F) -> Vec<JoinHandle<F::Output>>
where
    F: Future<Output: Send> + Send + 'static,
{
    (0..tasks).map(make).map(tokio::spawn).collect()
}

pub async fn join_all<T>(handles: Vec<JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::with_capacity(handles.len());
    for handle in handles {
        results.push(handle.await.unwrap());
    }
    results
}

fn spawn_join(workers: usize, reps: usize) -> Vec<f64> {
    const TASKS: u64 = 100_000;
    measure_task(runtime(workers), reps, TASKS, || async {
        let start = Instant::now();
        for _ in 0..TASKS {
            tokio::spawn(async { DONE.add() }).await.unwrap();
        }
        start.elapsed()
    })
}

fn spawn_batch(workers: usize, reps: usize) -> Vec<f64> {
    const BATCHES: u64 = 10;
    const TASKS: u64 = 10_000;
    measure_task(runtime(workers), reps, BATCHES * TASKS, || async {
        let mut handles = Vec::with_capacity(TASKS as usize);
        let start = Instant::now();
        for _ in 0..BATCHES {
            handles.extend((0..TASKS).map(|_| tokio::spawn(async { DONE.add() })));
            for handle in handles.drain(..) {
                handle.await.unwrap();
            }
        }
        start.elapsed()
    })
}

pub async fn yield_in_turn(tasks: u64, yields: u64) -> Duration {
    async fn yielder(yields: u64) -> u64 {
        let mut done = 0;
        while done < yields {
            yield_now().await;
            done += 1;
        }
        done
    }
    let start = Instant::now();
    let done = join_all(spawn_all(tasks, |_| yielder(yields))).await;
    let time = start.elapsed();
    DONE.set(done.iter().sum());
    time
}

fn yields(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, 1000 * 1000, || yield_in_turn(1000, 1000))
}

fn self_wake(workers: usize, reps: usize) -> Vec<f64> {
    const WAKES: u64 = 1_000_000;
    // This is the only row that, with a second worker, is faster with the I/O driver.
    let rt = if workers > 1 { runtime_with_io(workers) } else { runtime(workers) };
    measure_task(rt, reps, WAKES, || async {
        let mut wakes = 0;
        let start = Instant::now();
        poll_fn(|cx| {
            if wakes == WAKES {
                return Poll::Ready(());
            }
            wakes += 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        let time = start.elapsed();
        DONE.set(wakes);
        time
    })
}

/// Two tasks that run alternately: a flag says whose turn it is, and each task wakes the other
/// one through its waker. A task keeps the same waker throughout, so it is registered once.
/// This is what `Notify` does, without its list and its lock.
#[derive(Default)]
struct Court {
    turn: AtomicUsize,
    wakers: [OnceLock<Waker>; 2],
}

impl Court {
    async fn play(self: Arc<Court>, me: usize, rounds: u64) -> u64 {
        poll_fn(|cx| {
            self.wakers[me].get_or_init(|| cx.waker().clone());
            Poll::Ready(())
        })
        .await;
        let other = 1 - me;
        while self.wakers[other].get().is_none() {
            yield_now().await;
        }
        let waker = self.wakers[other].get().unwrap();
        for _ in 0..rounds {
            // acquire: sees everything that the other task did in its turn.
            poll_fn(|_| match self.turn.load(Ordering::Acquire) == me {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            // release: pairs with the acquire above.
            self.turn.store(other, Ordering::Release);
            waker.wake_by_ref();
        }
        rounds
    }
}

fn cross_wake(workers: usize, reps: usize) -> Vec<f64> {
    const ROUNDS: u64 = 100_000;
    measure_task(runtime(workers), reps, ROUNDS, || async {
        let court = Arc::new(Court::default());
        let start = Instant::now();
        let first = tokio::spawn(court.clone().play(0, ROUNDS));
        let second = tokio::spawn(court.play(1, ROUNDS));
        let turns = first.await.unwrap() + second.await.unwrap();
        let time = start.elapsed();
        DONE.set(turns / 2);
        time
    })
}

/// The main thread spawns. It is not a worker and runs no tasks.
fn inject(workers: usize, reps: usize) -> Vec<f64> {
    const TASKS: u64 = 100_000;
    static SPAWNER: OnceLock<thread::Thread> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(thread::current);
    let rt = runtime(workers);
    measure(reps, || {
        let start = Instant::now();
        for _ in 0..TASKS {
            rt.spawn(async {
                if DONE.add() == TASKS {
                    spawner.unpark();
                }
            });
        }
        while DONE.get() < TASKS {
            thread::park();
        }
        let time = start.elapsed();
        DONE.check(TASKS);
        time.as_nanos() as f64 / TASKS as f64
    })
}

/// Long enough for every worker to have gone to sleep.
const PAUSE: Duration = Duration::from_micros(300);

/// The main thread wakes; it is not a worker. The task answers with the time at which it ran,
/// in nanoseconds since `base`.
fn wake_outside(workers: usize, reps: usize) -> Vec<f64> {
    const SAMPLES: usize = 2000;
    let rt = runtime(workers);
    let base = Instant::now();
    let waker = thread::current();
    let wake = Arc::new(Notify::new());
    let ran_at = Arc::new(AtomicU64::new(0));

    let (task_wake, task_ran_at) = (wake.clone(), ran_at.clone());
    rt.spawn(async move {
        loop {
            task_wake.notified().await;
            let now = base.elapsed().as_nanos() as u64;
            // relaxed: only the value itself is passed.
            task_ran_at.store(now, Ordering::Relaxed);
            waker.unpark();
        }
    });

    let latency = || {
        thread::sleep(PAUSE);
        let woken_at = base.elapsed().as_nanos() as u64;
        wake.notify_one();
        loop {
            thread::park();
            // relaxed: see the task.
            match ran_at.swap(0, Ordering::Relaxed) {
                0 => continue, // park() may return spuriously.
                now if now < woken_at => fail("a task ran before its wake-up"),
                now => return now - woken_at,
            }
        }
    };
    measure(reps, || {
        let mut latencies: Vec<u64> = (0..SAMPLES).map(|_| latency()).collect();
        latencies.sort_unstable();
        latencies[SAMPLES / 2] as f64
    })
}

/// The 32 bytes of an idle task. They are counted when they are dropped.
struct State([u8; 32]);

static DROPPED: Counter = Counter(AtomicU64::new(0));

impl Drop for State {
    fn drop(&mut self) {
        if black_box(&self.0).iter().all(|byte| *byte == 1) {
            DROPPED.add();
        }
    }
}

async fn idle_task() {
    let state = State(black_box([1; 32]));
    DONE.add();
    std::future::pending::<()>().await;
    drop(state);
}

fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let Some(Ok(pages)) = statm.split(' ').nth(1).map(str::parse::<u64>) else {
        fail("cannot read /proc/self/statm");
    };
    // SAFETY: sysconf only reads its argument.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages as f64 * page as f64
}

/// Takes one sample, regardless of `reps`: a second one would reuse the memory that the first
/// one freed.
fn task_bytes(workers: usize, _reps: usize) -> Vec<f64> {
    const TASKS: u64 = 1_000_000;
    let rt = runtime(workers);
    let fill = |tasks: u64| {
        let driver = rt.spawn(async move {
            for _ in 0..tasks {
                tokio::spawn(idle_task());
            }
            while DONE.get() < tasks {
                yield_now().await;
            }
        });
        rt.block_on(driver).unwrap();
        DONE.check(tasks);
    };

    const WARMUP_TASKS: u64 = 1000;
    fill(WARMUP_TASKS);
    let before = resident_bytes();
    fill(TASKS);
    let bytes = (resident_bytes() - before) / TASKS as f64;

    drop(rt);
    DROPPED.check(WARMUP_TASKS + TASKS);
    vec![bytes]
}

/// Returns the user and system time of the whole process, in nanoseconds.
pub fn cpu_time() -> f64 {
    // SAFETY: rusage is plain data, for which all zeros is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: usage outlives the call.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } != 0 {
        fail("getrusage failed");
    }
    let nanos = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    nanos(usage.ru_utime) + nanos(usage.ru_stime)
}

fn idle_cpu(workers: usize, reps: usize) -> Vec<f64> {
    const TASKS: u64 = 10_000;
    const SETTLE: Duration = Duration::from_millis(100);
    const WINDOW: Duration = Duration::from_secs(2);
    let rt = runtime(workers);
    let driver = rt.spawn(async {
        let handles: Vec<_> = (0..TASKS).map(|_| tokio::spawn(async { DONE.add() })).collect();
        for handle in handles {
            handle.await.unwrap();
        }
    });
    rt.block_on(driver).unwrap();
    DONE.check(TASKS);
    thread::sleep(SETTLE);

    let window = |_| {
        let before = cpu_time();
        thread::sleep(WINDOW);
        cpu_time() - before
    };
    (0..reps).map(window).collect()
}
