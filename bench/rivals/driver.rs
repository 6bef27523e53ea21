// SPDX-License-Identifier: MIT

//! The command line and the report of a rival in Rust, the same as those of `weft-bench`.
//! `run.py` copies this file to the sources of each rival.

use std::process::{exit, Command};

const NAME: &str = env!("CARGO_PKG_NAME");

pub struct Row {
    pub name: &'static str,
    pub unit: &'static str,
    pub run: fn(workers: usize, reps: usize) -> Vec<f64>,
}

struct Options {
    json: bool,
    workers: usize,
    filter: String,
    reps: usize,
}

/// Exits with an error: a wrong result must never look like a figure.
pub fn fail(message: &str) -> ! {
    eprintln!("{NAME}: {message}");
    exit(1);
}

fn positive(flag: &str, value: &str) -> usize {
    match value.parse() {
        Ok(number) if number > 0 => number,
        _ => fail(&format!("{flag} wants a positive number, not '{value}'")),
    }
}

fn usage() -> ! {
    fail(&format!("usage: {NAME} [--json] [--workers N] [--filter NAME] [--reps R]"))
}

fn parse_options() -> Options {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut options = Options { json: false, workers: cores, filter: String::new(), reps: 7 };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        if flag == "--json" {
            options.json = true;
            continue;
        }
        let Some(value) = args.next() else { usage() };
        match flag.as_str() {
            "--workers" => options.workers = positive(&flag, &value),
            "--filter" => options.filter = value,
            "--reps" => options.reps = positive(&flag, &value),
            _ => usage(),
        }
    }
    options
}

/// Returns the row with exactly this name, or else every row whose name starts with it.
fn select(rows: &'static [Row], filter: &str) -> Vec<&'static Row> {
    if let Some(row) = rows.iter().find(|row| row.name == filter) {
        return vec![row];
    }
    rows.iter().filter(|row| row.name.starts_with(filter)).collect()
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    }
}

fn report(row: &Row, options: &Options, mut samples: Vec<f64>) {
    samples.sort_by(f64::total_cmp);
    let (name, unit, workers, n) = (row.name, row.unit, options.workers, samples.len());
    let (median, min, max) = (median(&samples), samples[0], samples[n - 1]);
    if options.json {
        println!(
            "{{\"bench\":\"{name}\",\"workers\":{workers},\"unit\":\"{unit}\",\
             \"median\":{median:.2},\"min\":{min:.2},\"max\":{max:.2},\"n\":{n}}}"
        );
    } else {
        println!("{name:<24} {workers:>3} {median:>14.2} {unit:<5} [{min:.2} - {max:.2}] n={n}");
    }
}

/// Runs one row in its own process, so that the memory and the threads that a row leaves behind
/// do not affect the next one.
fn run_in_child(row: &Row, options: &Options) {
    let program = std::env::current_exe().unwrap_or_else(|err| fail(&err.to_string()));
    let mut command = Command::new(program);
    command.args(["--filter", row.name]);
    command.args(["--workers", &options.workers.to_string()]);
    command.args(["--reps", &options.reps.to_string()]);
    if options.json {
        command.arg("--json");
    }
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{}: {status}", row.name)),
        Err(err) => fail(&err.to_string()),
    }
}

/// All of `main`.
pub fn run(rows: &'static [Row]) {
    let options = parse_options();
    match select(rows, &options.filter)[..] {
        [] => fail(&format!("no row is named '{}'", options.filter)),
        [row] => report(row, &options, (row.run)(options.workers, options.reps)),
        ref many => many.iter().for_each(|row| run_in_child(row, &options)),
    }
}
