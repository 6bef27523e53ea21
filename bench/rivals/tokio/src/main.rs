// SPDX-License-Identifier: MIT

//! Tokio's side of the benchmark: the rows of `weft-bench` with the same command line and the
//! same output, which are in `driver.rs`. `rows.rs` has the work, `time.rs` the rows with
//! timers, `wait.rs` the locks and channels.

mod driver;
mod rows;
mod time;
mod wait;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    driver::run(rows::ROWS);
}
