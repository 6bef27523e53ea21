// SPDX-License-Identifier: MIT

//! The work that is the same for all contenders: `bench/work.c`, linked, and a copy of the
//! small part that is inline in `bench/work.h`. The constants and their meaning are those of
//! `work.h`.

use crate::driver::fail;
use std::time::Duration;

pub const FIB_EXTRA: u32 = 32;
pub const FIB_EXTRA_RESULT: u64 = 2178309;
pub const FIB_EXTRA_FORKS: u64 = 3524577;
pub const FIB_EXTRA_PAIRS: usize = 5;
pub const FIB: u32 = 40;
pub const FIB_RESULT: u64 = 102334155;
pub const FIB_FORKS: u64 = 165580140;
const QUEENS: u32 = 13;
pub const QUEENS_ALL: u32 = (1 << QUEENS) - 1;
pub const QUEENS_RESULT: u64 = 73712;
pub const UTS_RESULT: u64 = 4130071;
pub const SKYNET_LEAVES: u64 = 1000000;
pub const SKYNET_WAYS: u64 = 10;
pub const SKYNET_RESULT: u64 = 499999500000;
pub const OUTSIDE_CALLS: u64 = 100000;
pub const PROBES: usize = 500;
pub const PROBE_EVERY: Duration = Duration::from_millis(1);
pub const JOBS: usize = 100 + 100 + 200 + 350;
pub const JOB_NS: i64 = 1_000_000;
pub const SECOND_NS: i64 = 1_000_000_000;
pub const ITEMS: usize = 10_000_000;
pub const SUM_RESULT: u64 = 49999995000000;
pub const SMALL_ITEMS: usize = 10000;
pub const SMALL_LOOPS: usize = 1000;
pub const UNITS: usize = 100_000;
pub const UNIT_ROUNDS: u32 = 500;
pub const EVEN_RESULT: u64 = 17466567470417942265;
pub const UNEVEN_RESULT: u64 = 13637984852746796132;

/// Exits unless the result is right.
pub fn check(is_right: bool, what: &str) {
    if !is_right {
        fail(&format!("wrong: {what}"));
    }
}

#[derive(Clone, Copy)]
pub struct Board {
    pub columns: u32,
    left: u32,
    right: u32,
}

impl Board {
    pub const EMPTY: Board = Board { columns: 0, left: 0, right: 0 };

    pub fn free(self) -> u32 {
        QUEENS_ALL & !(self.columns | self.left | self.right)
    }

    pub fn place(self, bit: u32) -> Board {
        Board {
            columns: self.columns | bit,
            left: (self.left | bit) << 1,
            right: (self.right | bit) >> 1,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Node {
    hash: [u32; 5],
    depth: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Record {
    pub key: u64,
    value: u64,
}

#[link(name = "work", kind = "static")]
extern "C" {
    fn work_busy(ns: i64);
    fn work_uts_root() -> Node;
    fn work_uts_children(node: *const Node) -> u32;
    fn work_uts_child(parent: *const Node, number: u32) -> Node;
    fn work_fill_numbers(items: *mut u64, n: usize);
    fn work_fill_small(items: *mut u64, n: usize);
    fn work_is_scan(sums: *const u64, n: usize) -> bool;
    fn work_is_small_result(items: *const u64) -> bool;
    fn work_unit(number: u64, rounds: u32) -> u64;
    fn work_sum_units(results: *const u64) -> u64;
    fn work_fill_u32(items: *mut u32, n: usize);
    fn work_fill_u64(items: *mut u64, n: usize);
    fn work_fill_f64(items: *mut f64, n: usize);
    fn work_fill_records(items: *mut Record, n: usize);
    fn work_is_sorted_u32(items: *const u32, n: usize) -> bool;
    fn work_is_sorted_u64(items: *const u64, n: usize) -> bool;
    fn work_is_sorted_f64(items: *const f64, n: usize) -> bool;
    fn work_is_sorted_records(items: *const Record, n: usize) -> bool;
}

// SAFETY, for all calls below: the C side accesses only the memory whose address and length it
// is given, and keeps no pointer.

pub fn busy(ns: i64) {
    unsafe { work_busy(ns) }
}

impl Node {
    pub fn root() -> Node {
        unsafe { work_uts_root() }
    }

    pub fn children(&self) -> u32 {
        unsafe { work_uts_children(self) }
    }

    pub fn child(&self, number: u32) -> Node {
        unsafe { work_uts_child(self, number) }
    }
}

pub fn numbers() -> Vec<u64> {
    let mut items = vec![0; ITEMS];
    unsafe { work_fill_numbers(items.as_mut_ptr(), items.len()) };
    items
}

pub fn small_numbers() -> Vec<u64> {
    let mut items = vec![0; ITEMS];
    unsafe { work_fill_small(items.as_mut_ptr(), items.len()) };
    items
}

pub fn is_scan(sums: &[u64]) -> bool {
    unsafe { work_is_scan(sums.as_ptr(), sums.len()) }
}

pub fn is_small_result(items: &[u64; SMALL_ITEMS]) -> bool {
    unsafe { work_is_small_result(items.as_ptr()) }
}

pub fn unit(number: u64, rounds: u32) -> u64 {
    unsafe { work_unit(number, rounds) }
}

pub fn uneven_rounds(number: u64) -> u32 {
    (2 * u64::from(UNIT_ROUNDS) * number / UNITS as u64) as u32
}

pub fn sum_units(results: &[u64]) -> u64 {
    assert!(results.len() == UNITS);
    unsafe { work_sum_units(results.as_ptr()) }
}

/// An item type that the sort rows support.
pub trait Item: Clone + Default + Send {
    fn fill(items: &mut [Self]);
    fn is_sorted(items: &[Self]) -> bool;
}

impl Item for u32 {
    fn fill(items: &mut [u32]) {
        unsafe { work_fill_u32(items.as_mut_ptr(), items.len()) }
    }

    fn is_sorted(items: &[u32]) -> bool {
        unsafe { work_is_sorted_u32(items.as_ptr(), items.len()) }
    }
}

impl Item for u64 {
    fn fill(items: &mut [u64]) {
        unsafe { work_fill_u64(items.as_mut_ptr(), items.len()) }
    }

    fn is_sorted(items: &[u64]) -> bool {
        unsafe { work_is_sorted_u64(items.as_ptr(), items.len()) }
    }
}

impl Item for f64 {
    fn fill(items: &mut [f64]) {
        unsafe { work_fill_f64(items.as_mut_ptr(), items.len()) }
    }

    fn is_sorted(items: &[f64]) -> bool {
        unsafe { work_is_sorted_f64(items.as_ptr(), items.len()) }
    }
}

impl Item for Record {
    fn fill(items: &mut [Record]) {
        unsafe { work_fill_records(items.as_mut_ptr(), items.len()) }
    }

    fn is_sorted(items: &[Record]) -> bool {
        unsafe { work_is_sorted_records(items.as_ptr(), items.len()) }
    }
}
