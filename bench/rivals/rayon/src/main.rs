// SPDX-License-Identifier: MIT

//! Rayon's side of the benchmark: the rows of `weft-bench` with the same command line and the
//! same output, which are in `driver.rs`. `rows.rs` has the fork rows, `loops.rs` the loops and
//! sorts, `work.rs` the work that is the same for all contenders.

mod driver;
mod loops;
mod rows;
mod work;

fn main() {
    driver::run(rows::ROWS);
}
