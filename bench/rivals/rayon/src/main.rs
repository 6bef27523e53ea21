// SPDX-License-Identifier: MIT

//! Rayon's side of the benchmark: the rows of `weft-bench`, the same command line and the
//! same output, which are in `driver.rs`. `rows.rs` is what forks, `loops.rs` the loops and
//! sorts, `work.rs` what all the contenders compute alike.

mod driver;
mod loops;
mod rows;
mod work;

fn main() {
    driver::run(rows::ROWS);
}
