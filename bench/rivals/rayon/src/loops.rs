// SPDX-License-Identifier: MIT

//! The rows for loops and sorts.

use crate::rows::{repeat, Sampling};
use crate::work::{self, check, Item, Record};
use rayon::prelude::*;
use std::cmp::Ordering;
use std::time::Instant;

pub fn sum(workers: usize, reps: usize) -> Vec<f64> {
    let items = work::numbers();
    repeat(workers, reps, Sampling { warmups: 2, reps_max: 0 }, || {
        let start = Instant::now();
        let total: u64 = items.par_iter().sum();
        let ms = start.elapsed().as_secs_f64() * 1e3;
        check(total == work::SUM_RESULT, "the sum");
        ms
    })
}

/// Two passes with one part per thread: the sum of the part, then its scan starting at the sum
/// of the parts before it. Rayon has no scan.
fn scan_items(items: &[u64], sums: &mut [u64]) {
    let part = items.len().div_ceil(rayon::current_num_threads());
    let mut before = 0;
    let totals: Vec<u64> = if part == items.len() {
        vec![0]
    } else {
        items.par_chunks(part).map(|chunk| chunk.iter().sum()).collect()
    };
    let starts: Vec<u64> = totals
        .iter()
        .map(|total| {
            before += total;
            before - total
        })
        .collect();
    let parts = items.par_chunks(part).zip(sums.par_chunks_mut(part)).zip(starts);
    parts.for_each(|((items, sums), start)| {
        let mut total = start;
        for (item, sum) in items.iter().zip(sums) {
            total += item;
            *sum = total;
        }
    });
}

pub fn scan(workers: usize, reps: usize) -> Vec<f64> {
    let items = work::small_numbers();
    let mut sums = items.clone(); // faults its pages in before the clock starts
    repeat(workers, reps, Sampling { warmups: 2, reps_max: 0 }, move || {
        let start = Instant::now();
        scan_items(&items, &mut sums);
        let ms = start.elapsed().as_secs_f64() * 1e3;
        check(work::is_scan(&sums), "the scan");
        ms
    })
}

pub fn for_small(workers: usize, reps: usize) -> Vec<f64> {
    repeat(workers, reps, Sampling { warmups: 2, reps_max: 0 }, || {
        let mut items = [0u64; work::SMALL_ITEMS];
        let start = Instant::now();
        for _ in 0..work::SMALL_LOOPS {
            items.par_iter_mut().enumerate().for_each(|(i, item)| *item += i as u64);
        }
        let us = start.elapsed().as_secs_f64() * 1e6;
        check(work::is_small_result(&items), "the array");
        us / work::SMALL_LOOPS as f64
    })
}

fn units(workers: usize, reps: usize, wanted: u64, unit: fn(u64) -> u64) -> Vec<f64> {
    repeat(workers, reps, Sampling { warmups: 1, reps_max: 0 }, || {
        let mut results = vec![0; work::UNITS];
        let start = Instant::now();
        results.par_iter_mut().enumerate().for_each(|(i, result)| *result = unit(i as u64));
        let ms = start.elapsed().as_secs_f64() * 1e3;
        check(work::sum_units(&results) == wanted, "the sum of all units");
        ms
    })
}

pub fn even(workers: usize, reps: usize) -> Vec<f64> {
    units(workers, reps, work::EVEN_RESULT, |i| work::unit(i, work::UNIT_ROUNDS))
}

pub fn uneven(workers: usize, reps: usize) -> Vec<f64> {
    units(workers, reps, work::UNEVEN_RESULT, |i| work::unit(i, work::uneven_rounds(i)))
}

fn sort<T: Item>(workers: usize, reps: usize, order: fn(&mut [T])) -> Vec<f64> {
    repeat(workers, reps, Sampling { warmups: 1, reps_max: 0 }, || {
        let mut items = vec![T::default(); work::ITEMS];
        T::fill(&mut items);
        let start = Instant::now();
        order(&mut items);
        let ms = start.elapsed().as_secs_f64() * 1e3;
        check(T::is_sorted(&items), "the order");
        ms
    })
}

pub fn sort_u32(workers: usize, reps: usize) -> Vec<f64> {
    sort::<u32>(workers, reps, |items| items.par_sort_unstable())
}

pub fn sort_u64(workers: usize, reps: usize) -> Vec<f64> {
    sort::<u64>(workers, reps, |items| items.par_sort_unstable())
}

pub fn sort_f64(workers: usize, reps: usize) -> Vec<f64> {
    // No item is NaN; total_cmp() would take longer.
    sort::<f64>(workers, reps, |items| {
        items.par_sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    })
}

pub fn sort_cmp(workers: usize, reps: usize) -> Vec<f64> {
    sort::<Record>(workers, reps, |items| {
        items.par_sort_unstable_by(|a, b| a.key.cmp(&b.key));
    })
}
