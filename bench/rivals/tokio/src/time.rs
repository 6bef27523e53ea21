// SPDX-License-Identifier: MIT

//! The rows for timers, under the rules of `rows.rs`.

use crate::driver::fail;
use crate::rows::{cpu_time, measure, measure_task, started, DONE};
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, sleep_until};

/// Enables no I/O driver: a new timer that is the first to fire wakes the driver, which then
/// costs a system call only if a worker sleeps in it.
fn runtime(workers: usize) -> Runtime {
    started(Builder::new_multi_thread().worker_threads(workers).enable_time())
}

/// A timer is registered by its first poll and canceled when it is dropped. A pending poll does
/// not use up the task's budget, so the loop is never cut short.
pub fn create_cancel(workers: usize, reps: usize) -> Vec<f64> {
    const TIMERS: u64 = 1_000_000;
    const DELAY: Duration = Duration::from_secs(1);
    measure_task(runtime(workers), reps, TIMERS, || async {
        let mut cancelled = 0;
        let start = Instant::now();
        poll_fn(|cx| {
            for _ in 0..TIMERS {
                if pin!(sleep(DELAY)).poll(cx).is_pending() {
                    cancelled += 1;
                }
            }
            Poll::Ready(())
        })
        .await;
        let time = start.elapsed();
        DONE.set(cancelled);
        time
    })
}

/// Takes one sample, regardless of `reps`: a second one would reuse the memory that the first
/// one freed.
pub fn million_sleeps_cpu(workers: usize, _reps: usize) -> Vec<f64> {
    const TASKS: u64 = 1_000_000;
    const LONGEST: Duration = Duration::from_millis(1000);
    async fn sleeper(task: u64) {
        sleep(Duration::from_millis(1 + task * 7919 % 1000)).await;
        DONE.add();
    }
    let rt = runtime(workers);
    let driver = rt.spawn(async {
        let (start, before) = (Instant::now(), cpu_time());
        let handles: Vec<_> = (0..TASKS).map(|task| tokio::spawn(sleeper(task))).collect();
        for handle in handles {
            handle.await.unwrap();
        }
        (start.elapsed(), cpu_time() - before)
    });
    let (time, cpu) = rt.block_on(driver).unwrap();
    DONE.check(TASKS);
    if time < LONGEST {
        fail("a sleep was too short");
    }
    vec![cpu / 1e6]
}

pub fn lateness_p99(workers: usize, reps: usize) -> Vec<f64> {
    const TASKS: u64 = 1000;
    const SLEEPS: usize = 10;
    async fn sleeper(task: u64) -> [u64; SLEEPS] {
        let mut lateness = [0; SLEEPS];
        for (step, late) in (0..).zip(&mut lateness) {
            let length = Duration::from_millis(1 + (task + 37 * step) * 7919 % 100);
            let deadline = Instant::now() + length;
            sleep_until(deadline.into()).await;
            match Instant::now().checked_duration_since(deadline) {
                Some(time) => *late = time.as_nanos() as u64,
                None => fail("a sleep was too short"),
            }
            DONE.add();
        }
        lateness
    }
    let rt = runtime(workers);
    measure(reps, || {
        let driver = rt.spawn(async {
            let handles: Vec<_> = (0..TASKS).map(|task| tokio::spawn(sleeper(task))).collect();
            let mut samples = Vec::with_capacity(TASKS as usize * SLEEPS);
            for handle in handles {
                samples.extend(handle.await.unwrap());
            }
            samples
        });
        let mut samples = rt.block_on(driver).unwrap();
        DONE.check(samples.len() as u64);
        samples.sort_unstable();
        samples[samples.len() * 99 / 100] as f64
    })
}
