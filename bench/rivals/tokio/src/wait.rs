// SPDX-License-Identifier: MIT

//! The rows for locks and channels, under the rules of `rows.rs`, and those that blitz-io and
//! volt publish. Where tasks share the work, the time is measured from the first spawn to the
//! last join.
//!
//! A channel with several receivers is `async-channel`'s, since Tokio has none. Messages are
//! received one by one, as by the other contenders, not with `recv_many`.

use crate::driver::fail;
use crate::rows::{join_all, measure, measure_task, runtime, spawn_all, yield_in_turn, DONE};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore};
use tokio::task::spawn_blocking;

/// Runs one step after the other and counts the correct ones. The time is that of the whole
/// loop. It is a macro because a step may await.
macro_rules! repeat {
    ($ops:expr, $i:pat => $step:expr) => {{
        let mut right = 0;
        let start = Instant::now();
        for $i in 0..$ops {
            right += u64::from($step);
        }
        let time = start.elapsed();
        DONE.set(right);
        time
    }};
}

// --- channels ----------------------------------------------------------------

/// Count and sum of the messages that a receiver got.
#[derive(Default)]
struct Received {
    count: u64,
    sum: u64,
}

impl Received {
    fn add(&mut self, message: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(message);
    }
}

/// Checks the sum. Leaves checking the count to the row.
fn check_received(all: impl IntoIterator<Item = Received>, messages: impl Iterator<Item = u64>) {
    let (mut count, mut sum) = (0, 0_u64);
    for received in all {
        count += received.count;
        sum = sum.wrapping_add(received.sum);
    }
    DONE.set(count);
    let expected = messages.fold(0, u64::wrapping_add);
    if sum != expected {
        fail(&format!("the messages add up to {sum}, not to {expected}"));
    }
}

async fn produce(channel: mpsc::Sender<u64>, first: u64, count: u64) {
    for message in first..first + count {
        channel.send(message).await.unwrap();
    }
}

async fn consume(mut channel: mpsc::Receiver<u64>) -> Received {
    let mut received = Received::default();
    while let Some(message) = channel.recv().await {
        received.add(message);
    }
    received
}

async fn many_to_one(capacity: usize, producers: u64, messages: u64) -> Duration {
    let share = messages / producers;
    let start = Instant::now();
    let (sender, receiver) = mpsc::channel(capacity);
    let consumer = tokio::spawn(consume(receiver));
    let producers = spawn_all(producers, |i| produce(sender.clone(), i * share, share));
    drop(sender);
    join_all(producers).await;
    let received = consumer.await.unwrap();
    let time = start.elapsed();
    check_received([received], 0..messages);
    time
}

async fn many_to_many(capacity: usize, pairs: u64, messages: u64) -> Duration {
    async fn produce(channel: async_channel::Sender<u64>, first: u64, count: u64) {
        for message in first..first + count {
            channel.send(message).await.unwrap();
        }
    }
    async fn consume(channel: async_channel::Receiver<u64>) -> Received {
        let mut received = Received::default();
        while let Ok(message) = channel.recv().await {
            received.add(message);
        }
        received
    }
    let share = messages / pairs;
    let start = Instant::now();
    let (sender, receiver) = async_channel::bounded(capacity);
    let consumers = spawn_all(pairs, |_| consume(receiver.clone()));
    let producers = spawn_all(pairs, |i| produce(sender.clone(), i * share, share));
    drop(sender);
    join_all(producers).await;
    let received = join_all(consumers).await;
    let time = start.elapsed();
    check_received(received, 0..messages);
    time
}

pub fn chan_pingpong(workers: usize, reps: usize) -> Vec<f64> {
    const ROUNDS: u64 = 100_000;
    async fn answer(mut pings: mpsc::Receiver<u64>, pong: mpsc::Sender<u64>) {
        while let Some(message) = pings.recv().await {
            pong.send(message + 1).await.unwrap();
        }
    }
    measure_task(runtime(workers), reps, ROUNDS, || async {
        let (ping, pings) = mpsc::channel(1);
        let (pong, mut pongs) = mpsc::channel(1);
        let answers = tokio::spawn(answer(pings, pong));
        let time = repeat!(ROUNDS, i => {
            ping.send(i).await.unwrap();
            pongs.recv().await == Some(i + 1)
        });
        drop(ping);
        answers.await.unwrap();
        time
    })
}

const MESSAGES: u64 = 1_000_000;

pub fn chan_1_1(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, MESSAGES, || many_to_one(1024, 1, MESSAGES))
}

pub fn chan_4_1(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, MESSAGES, || many_to_one(1024, 4, MESSAGES))
}

pub fn chan_4_4(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, MESSAGES, || many_to_many(1024, 4, MESSAGES))
}

pub fn chan_oneshot(workers: usize, reps: usize) -> Vec<f64> {
    const CHANNELS: u64 = 100_000;
    measure_task(runtime(workers), reps, CHANNELS, || async {
        repeat!(CHANNELS, i => {
            let (sender, receiver) = oneshot::channel();
            sender.send(i).unwrap();
            receiver.await == Ok(i)
        })
    })
}

pub fn chan_watch(workers: usize, reps: usize) -> Vec<f64> {
    const MESSAGES: u64 = 100_000;
    measure_task(runtime(workers), reps, MESSAGES, || async {
        let (sender, receiver) = watch::channel(u64::MAX);
        repeat!(MESSAGES, i => sender.send(i).is_ok() && *receiver.borrow() == i)
    })
}

/// No receiver lags: after each burst, which fits into the channel, all tasks meet at a barrier.
pub fn chan_broadcast(workers: usize, reps: usize) -> Vec<f64> {
    const MESSAGES: u64 = 100_000;
    const RECEIVERS: u64 = 4;
    const BURST: u64 = 512;
    fn ends_burst(count: u64) -> bool {
        count % BURST == 0 || count == MESSAGES
    }
    async fn receive(mut channel: broadcast::Receiver<u64>, barrier: Arc<Barrier>) -> Received {
        let mut received = Received::default();
        while received.count < MESSAGES {
            received.add(channel.recv().await.unwrap());
            if ends_burst(received.count) {
                barrier.wait().await;
            }
        }
        received
    }
    let samples = measure_task(runtime(workers), reps, MESSAGES * RECEIVERS, || async {
        let (sender, _) = broadcast::channel(1024);
        let barrier = Arc::new(Barrier::new(RECEIVERS as usize + 1));
        let start = Instant::now();
        let receivers = spawn_all(RECEIVERS, |_| receive(sender.subscribe(), barrier.clone()));
        for message in 0..MESSAGES {
            sender.send(message).unwrap();
            if ends_burst(message + 1) {
                barrier.wait().await;
            }
        }
        let received = join_all(receivers).await;
        let time = start.elapsed();
        check_received(received, (0..MESSAGES).map(|message| message * RECEIVERS));
        time
    });
    // One message is received four times but counts once.
    samples.iter().map(|sample| sample * RECEIVERS as f64).collect()
}

/// Not `biased`: the channel that is checked first is chosen at random, as in Go.
pub fn select_2(workers: usize, reps: usize) -> Vec<f64> {
    const SHARE: u64 = MESSAGES / 2;
    async fn consume(mut first: mpsc::Receiver<u64>, mut second: mpsc::Receiver<u64>) -> Received {
        let mut received = Received::default();
        loop {
            tokio::select! {
                Some(message) = first.recv() => received.add(message),
                Some(message) = second.recv() => received.add(message),
                else => return received,
            }
        }
    }
    measure_task(runtime(workers), reps, MESSAGES, || async {
        let (first_sender, first) = mpsc::channel(64);
        let (second_sender, second) = mpsc::channel(64);
        let start = Instant::now();
        let consumer = tokio::spawn(consume(first, second));
        let producers = vec![
            tokio::spawn(produce(first_sender, 0, SHARE)),
            tokio::spawn(produce(second_sender, SHARE, SHARE)),
        ];
        join_all(producers).await;
        let received = consumer.await.unwrap();
        let time = start.elapsed();
        check_received([received], 0..MESSAGES);
        time
    })
}

// --- locks -------------------------------------------------------------------

async fn count_with_mutex(tasks: u64, rounds: u64) -> Duration {
    async fn add(count: Arc<Mutex<u64>>, rounds: u64) {
        for _ in 0..rounds {
            *count.lock().await += 1;
        }
    }
    let count = Arc::new(Mutex::new(0));
    let start = Instant::now();
    join_all(spawn_all(tasks, |_| add(count.clone(), rounds))).await;
    let time = start.elapsed();
    DONE.set(*count.lock().await);
    time
}

const READERS: u64 = 4;
const WRITERS: u64 = 2;

async fn count_with_rwlock(rounds: u64) -> Duration {
    async fn read(count: Arc<RwLock<u64>>, rounds: u64) -> u64 {
        let mut reads = 0;
        for _ in 0..rounds {
            black_box(*count.read().await);
            reads += 1;
        }
        reads
    }
    async fn write(count: Arc<RwLock<u64>>, rounds: u64) {
        for _ in 0..rounds {
            *count.write().await += 1;
        }
    }
    let count = Arc::new(RwLock::new(0));
    let start = Instant::now();
    let readers = spawn_all(READERS, |_| read(count.clone(), rounds));
    let writers = spawn_all(WRITERS, |_| write(count.clone(), rounds));
    let reads: u64 = join_all(readers).await.iter().sum();
    join_all(writers).await;
    let time = start.elapsed();
    DONE.set(reads + *count.read().await);
    time
}

/// Two tasks hold a permit at a time, so they count in an atomic.
async fn count_with_semaphore(tasks: u64, rounds: u64) -> Duration {
    async fn add(semaphore: Arc<Semaphore>, rounds: u64) {
        for _ in 0..rounds {
            let _permit = semaphore.acquire().await.unwrap();
            DONE.add();
        }
    }
    let semaphore = Arc::new(Semaphore::new(2));
    let start = Instant::now();
    join_all(spawn_all(tasks, |_| add(semaphore.clone(), rounds))).await;
    start.elapsed()
}

pub fn sync_mutex(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, 4 * 250_000, || count_with_mutex(4, 250_000))
}

pub fn sync_mutex_64(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, 64 * 20_000, || count_with_mutex(64, 20_000))
}

pub fn sync_rwlock_4r2w(workers: usize, reps: usize) -> Vec<f64> {
    const ROUNDS: u64 = 50_000;
    let ops = (READERS + WRITERS) * ROUNDS;
    measure_task(runtime(workers), reps, ops, || count_with_rwlock(ROUNDS))
}

pub fn sync_semaphore_8_2(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, 8 * 25_000, || count_with_semaphore(8, 25_000))
}

pub fn sync_notify(workers: usize, reps: usize) -> Vec<f64> {
    const ROUNDS: u64 = 100_000;
    async fn answer(both: Arc<[Notify; 2]>) -> u64 {
        let mut rounds = 0;
        while rounds < ROUNDS {
            both[0].notified().await;
            rounds += 1;
            both[1].notify_one();
        }
        rounds
    }
    measure_task(runtime(workers), reps, ROUNDS, || async {
        let both = Arc::new([Notify::new(), Notify::new()]);
        let start = Instant::now();
        let answers = tokio::spawn(answer(both.clone()));
        for _ in 0..ROUNDS {
            both[0].notify_one();
            both[1].notified().await;
        }
        let rounds = answers.await.unwrap();
        let time = start.elapsed();
        DONE.set(rounds);
        time
    })
}

/// Each round has one leader, which counts it.
pub fn sync_barrier(workers: usize, reps: usize) -> Vec<f64> {
    const TASKS: u64 = 4;
    const ROUNDS: u64 = 50_000;
    async fn meet(barrier: Arc<Barrier>) -> u64 {
        let mut led = 0;
        for _ in 0..ROUNDS {
            led += u64::from(barrier.wait().await.is_leader());
        }
        led
    }
    measure_task(runtime(workers), reps, ROUNDS, || async {
        let barrier = Arc::new(Barrier::new(TASKS as usize));
        let start = Instant::now();
        let led = join_all(spawn_all(TASKS, |_| meet(barrier.clone()))).await;
        let time = start.elapsed();
        DONE.set(led.iter().sum());
        time
    })
}

// --- blitz-io ----------------------------------------------------------------

const LOCKS: u64 = 1_000_000;
const SENDS: u64 = 100_000;

pub fn blitz_mutex(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, LOCKS, || async {
        let mutex = Mutex::new(());
        repeat!(LOCKS, _ => mutex.try_lock().is_ok())
    })
}

pub fn blitz_rwlock_read(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, LOCKS, || async {
        let lock = RwLock::new(());
        repeat!(LOCKS, _ => lock.try_read().is_ok())
    })
}

pub fn blitz_rwlock_write(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, LOCKS, || async {
        let lock = RwLock::new(());
        repeat!(LOCKS, _ => lock.try_write().is_ok())
    })
}

pub fn blitz_semaphore(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, LOCKS, || async {
        let semaphore = Semaphore::new(10);
        repeat!(LOCKS, _ => semaphore.try_acquire().is_ok())
    })
}

pub fn blitz_oncecell_get(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, LOCKS, || async {
        let cell = OnceCell::new_with(Some(1_u64));
        repeat!(LOCKS, _ => black_box(cell.get()).is_some())
    })
}

pub fn blitz_oncecell_set(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, LOCKS, || async {
        repeat!(LOCKS, i => black_box(&OnceCell::new()).set(i).is_ok())
    })
}

pub fn blitz_notify(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, LOCKS, || async {
        repeat!(LOCKS, _ => {
            let notify = Notify::new();
            notify.notify_one();
            notify.notified().await;
            true
        })
    })
}

pub fn blitz_notify_reuse(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, LOCKS, || async {
        let notify = Notify::new();
        repeat!(LOCKS, _ => {
            notify.notify_one();
            notify.notified().await;
            true
        })
    })
}

pub fn blitz_barrier(workers: usize, reps: usize) -> Vec<f64> {
    const BARRIERS: u64 = 100_000;
    measure_task(runtime(workers), reps, BARRIERS, || async {
        repeat!(BARRIERS, _ => Barrier::new(1).wait().await.is_leader())
    })
}

pub fn blitz_barrier_reuse(workers: usize, reps: usize) -> Vec<f64> {
    const ROUNDS: u64 = 100_000;
    measure_task(runtime(workers), reps, ROUNDS, || async {
        let barrier = Barrier::new(1);
        repeat!(ROUNDS, _ => barrier.wait().await.is_leader())
    })
}

pub fn blitz_channel_send(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, SENDS, || async {
        let (sender, _receiver) = mpsc::channel(SENDS as usize);
        repeat!(SENDS, i => sender.try_send(i).is_ok())
    })
}

pub fn blitz_channel_recv(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, SENDS, || async {
        let (sender, mut receiver) = mpsc::channel(SENDS as usize);
        for i in 0..SENDS {
            sender.try_send(i).unwrap();
        }
        repeat!(SENDS, i => receiver.try_recv() == Ok(i))
    })
}

pub fn blitz_channel_roundtrip(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, SENDS, || async {
        let (sender, mut receiver) = mpsc::channel(1);
        repeat!(SENDS, i => sender.try_send(i).is_ok() && receiver.try_recv() == Ok(i))
    })
}

pub fn blitz_oneshot(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, SENDS, || async {
        repeat!(SENDS, i => {
            let (sender, mut receiver) = oneshot::channel();
            sender.send(i).is_ok() && receiver.try_recv() == Ok(i)
        })
    })
}

pub fn blitz_broadcast(workers: usize, reps: usize) -> Vec<f64> {
    const RECEIVERS: usize = 4;
    measure_task(runtime(workers), reps, SENDS, || async {
        let (sender, _) = broadcast::channel(SENDS as usize);
        let mut receivers = [(); RECEIVERS].map(|_| sender.subscribe());
        let sending = repeat!(SENDS, i => sender.send(i).is_ok());
        let receiving = receivers.iter_mut().map(|receiver| {
            DONE.check(SENDS);
            repeat!(SENDS, i => receiver.try_recv() == Ok(i))
        });
        sending + receiving.sum::<Duration>()
    })
}

pub fn blitz_channel_mpmc(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, 10_000, || many_to_many(1000, 4, 10_000))
}

pub fn blitz_mutex_contended(workers: usize, reps: usize) -> Vec<f64> {
    const TASKS: u64 = 4;
    const ROUNDS: u64 = 2500;
    async fn add(mutex: Arc<Mutex<()>>) {
        for _ in 0..ROUNDS {
            let _guard = mutex.lock().await;
            DONE.add();
        }
    }
    measure_task(runtime(workers), reps, TASKS * ROUNDS, || async {
        let mutex = Arc::new(Mutex::new(()));
        let start = Instant::now();
        join_all(spawn_all(TASKS, |_| add(mutex.clone()))).await;
        start.elapsed()
    })
}

pub fn blitz_rwlock_contended(workers: usize, reps: usize) -> Vec<f64> {
    const ROUNDS: u64 = 1666;
    let ops = (READERS + WRITERS) * ROUNDS;
    measure_task(runtime(workers), reps, ops, || count_with_rwlock(ROUNDS))
}

pub fn blitz_semaphore_contended(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, 8 * 1250, || count_with_semaphore(8, 1250))
}

const SPAWNS: u64 = 10_000;

pub fn blitz_task_spawn(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, SPAWNS, || async {
        repeat!(SPAWNS, _ => tokio::spawn(async {}).await.is_ok())
    })
}

pub fn blitz_task_spawn_batch(workers: usize, reps: usize) -> Vec<f64> {
    const BATCH: u64 = 100;
    measure_task(runtime(workers), reps, SPAWNS, || async {
        let mut handles = Vec::with_capacity(BATCH as usize);
        let mut joined = 0;
        let start = Instant::now();
        for _ in 0..SPAWNS / BATCH {
            handles.extend((0..BATCH).map(|_| tokio::spawn(async {})));
            for handle in handles.drain(..) {
                handle.await.unwrap();
                joined += 1;
            }
        }
        let time = start.elapsed();
        DONE.set(joined);
        time
    })
}

pub fn blitz_blocking_spawn(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, SPAWNS, || async {
        repeat!(SPAWNS, _ => spawn_blocking(|| ()).await.is_ok())
    })
}

// --- volt --------------------------------------------------------------------

pub fn volt_yield(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, 2 * 100_000, || yield_in_turn(2, 100_000))
}

pub fn volt_spsc(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, 100_000, || many_to_one(16, 1, 100_000))
}

const MPMC: u64 = 200_000;

pub fn volt_mpmc_1(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, MPMC, || many_to_many(64, 1, MPMC))
}

pub fn volt_mpmc_2(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, MPMC, || many_to_many(64, 2, MPMC))
}

pub fn volt_mpmc_4(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, MPMC, || many_to_many(64, 4, MPMC))
}

pub fn volt_pipeline(workers: usize, reps: usize) -> Vec<f64> {
    const MESSAGES: u64 = 50_000;
    fn mix(mut hash: u64) -> u64 {
        hash ^= hash >> 13;
        hash = hash.wrapping_mul(0x100000001b3);
        hash ^ hash >> 23
    }
    async fn stage(mut input: mpsc::Receiver<u64>, output: mpsc::Sender<u64>) {
        while let Some(message) = input.recv().await {
            output.send(mix(message)).await.unwrap();
        }
    }
    measure_task(runtime(workers), reps, MESSAGES, || async {
        let start = Instant::now();
        let (source, input) = mpsc::channel(64);
        let (output, sink) = mpsc::channel(64);
        let consumer = tokio::spawn(consume(sink));
        let stage = tokio::spawn(stage(input, output));
        let producer = tokio::spawn(produce(source, 0, MESSAGES));
        producer.await.unwrap();
        stage.await.unwrap();
        let received = consumer.await.unwrap();
        let time = start.elapsed();
        check_received([received], (0..MESSAGES).map(mix));
        time
    })
}

pub fn volt_mutex(workers: usize, reps: usize) -> Vec<f64> {
    measure_task(runtime(workers), reps, 8 * 50_000, || count_with_mutex(8, 50_000))
}

/// The last task of a batch signals; none is joined.
pub fn volt_spawn_hot(workers: usize, reps: usize) -> Vec<f64> {
    const BATCHES: u64 = 20;
    const TASKS: u64 = 1000;
    static ALL: Notify = Notify::const_new();
    measure_task(runtime(workers), reps, BATCHES * TASKS, || async {
        let start = Instant::now();
        for _ in 0..BATCHES {
            for _ in 0..TASKS {
                tokio::spawn(async {
                    if DONE.add() % TASKS == 0 {
                        ALL.notify_one();
                    }
                });
            }
            ALL.notified().await;
        }
        start.elapsed()
    })
}

pub fn volt_parallel(workers: usize, reps: usize) -> Vec<f64> {
    const TASKS: u64 = 256;
    fn xorshift(task: u64) -> u64 {
        let mut x = task + 1;
        for _ in 0..50_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        x
    }
    let expected = (0..TASKS).map(xorshift).fold(0, |all, x| all ^ x);
    let rt = runtime(workers);
    measure(reps, || {
        let driver = rt.spawn(async {
            let start = Instant::now();
            let results = join_all(spawn_all(TASKS, async |task| xorshift(task))).await;
            (start.elapsed(), results.iter().fold(0, |all, x| all ^ x))
        });
        let (time, found) = rt.block_on(driver).unwrap();
        if found != expected {
            fail(&format!("the results are {found}, not {expected}"));
        }
        time.as_secs_f64() * 1e3
    })
}
