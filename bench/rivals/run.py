#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Runs weft-bench beside the same work in other runtimes, and prints the ratios.

The contenders take turns: for each row and each number of workers, every
contender runs once in each round, and the order rotates from round to round, so
that a slow moment of the machine falls on all alike. A figure is the median over
the rounds; its range is printed with it.

A rival whose toolchain or packages are not at hand is left out, with a line that
says so. Anything else that goes wrong ends the run: a contender that fails, or
that prints a row it was not asked for, gives no figure at all.
"""

import argparse
import csv
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent

TOKIO = ("tokio", "tokio-mi")
TASKS = TOKIO + ("go",)
FORKS = ("rayon", "tbb", "omp-gcc", "omp-clang")
PROGRAMS = FORKS + ("serial",)
BASELINES = ("static", "locked")
SORTS = ("rayon", "tbb", "serial")
POOLS = ("rayon", "tbb")


class Row(NamedTuple):
    unit: str
    rivals: tuple  # who has it; whether weft does, weft-bench says
    workers_max: int = sys.maxsize  # left out with more


# In the order in which they run.
ROWS = {
    "sched.spawn_join": Row("ns", TASKS),
    "sched.spawn_batch": Row("ns", TASKS),
    "sched.yield": Row("ns", TASKS),
    "sched.self_wake": Row("ns", TOKIO),
    "sched.cross_wake": Row("ns", TASKS),
    "sched.inject": Row("ns", TASKS),
    "sched.wake_outside": Row("ns", TASKS + ("futex",)),
    "sched.task_bytes": Row("bytes", TASKS),
    "sched.idle_cpu": Row("ns", TASKS),
    "fiber.yield": Row("ns", TASKS),
    "fiber.spawn_join": Row("ns", TASKS),
    "fiber.spawn_batch": Row("ns", TASKS),
    "fiber.bytes": Row("bytes", TASKS),
    "time.create_cancel": Row("ns", TASKS),
    "time.million_sleeps_cpu": Row("ms", TASKS),
    "time.lateness_p99": Row("ns", TASKS),
    "chan.pingpong": Row("ns", TASKS),
    "chan.1_1": Row("ns", TASKS),
    "chan.4_1": Row("ns", TASKS),
    "chan.4_4": Row("ns", TASKS),
    "chan.oneshot": Row("ns", TASKS),
    "chan.watch": Row("ns", TASKS),
    "chan.broadcast": Row("ns", TASKS),
    "sync.mutex": Row("ns", TASKS),
    "sync.mutex_64": Row("ns", TASKS),
    "sync.rwlock_4r2w": Row("ns", TASKS),
    "sync.semaphore_8_2": Row("ns", TASKS),
    "sync.notify": Row("ns", TASKS),
    "sync.barrier": Row("ns", TASKS),
    "select.2": Row("ns", TASKS),
    "blitz-io.mutex": Row("ns", TASKS),
    "blitz-io.rwlock_read": Row("ns", TASKS),
    "blitz-io.rwlock_write": Row("ns", TASKS),
    "blitz-io.semaphore": Row("ns", TASKS),
    "blitz-io.oncecell_get": Row("ns", TOKIO),
    "blitz-io.oncecell_set": Row("ns", TASKS),
    "blitz-io.notify": Row("ns", TOKIO),
    "blitz-io.notify_reuse": Row("ns", TOKIO),
    "blitz-io.barrier": Row("ns", TOKIO),
    "blitz-io.barrier_reuse": Row("ns", TOKIO),
    "blitz-io.channel_send": Row("ns", TASKS),
    "blitz-io.channel_recv": Row("ns", TASKS),
    "blitz-io.channel_roundtrip": Row("ns", TASKS),
    "blitz-io.oneshot": Row("ns", TASKS),
    "blitz-io.broadcast": Row("ns", TOKIO),
    "blitz-io.watch": Row("ns", TOKIO),
    "blitz-io.channel_mpmc": Row("ns", TASKS),
    "blitz-io.mutex_contended": Row("ns", TASKS),
    "blitz-io.rwlock_contended": Row("ns", TASKS),
    "blitz-io.semaphore_contended": Row("ns", TASKS),
    "blitz-io.task_spawn": Row("ns", TASKS),
    "blitz-io.task_spawn_batch": Row("ns", TASKS),
    "blitz-io.blocking_spawn": Row("ns", TOKIO),
    "volt.yield": Row("ns", TASKS),
    "volt.spsc": Row("ns", TASKS),
    "volt.mpmc_1": Row("ns", TASKS),
    "volt.mpmc_2": Row("ns", TASKS),
    "volt.mpmc_4": Row("ns", TASKS),
    "volt.pipeline": Row("ns", TASKS),
    "volt.mutex": Row("ns", TASKS),
    "volt.spawn_hot": Row("ns", TASKS),
    "volt.parallel": Row("ms", TASKS),
    "par.fork_extra": Row("ns", FORKS, workers_max=1),
    "par.fork_extra2": Row("ns", FORKS, workers_max=1),
    "par.fib": Row("ns", PROGRAMS),
    "par.nqueens": Row("ms", PROGRAMS),
    "par.uts_t1": Row("ms", PROGRAMS),
    "par.skynet": Row("ms", PROGRAMS),
    "par.two_seconds": Row("ms", PROGRAMS),
    "par.outside_call": Row("ns", FORKS),
    "par.task_wait_p99": Row("ns", POOLS),
    "par.imbalance": Row("ms", PROGRAMS),
    "par.sum": Row("ms", PROGRAMS),
    "par.scan": Row("ms", PROGRAMS),
    "par.for_small": Row("us", PROGRAMS),
    "par.even": Row("ms", PROGRAMS + BASELINES),
    "par.uneven": Row("ms", PROGRAMS + BASELINES),
    "par.sort_u32": Row("ms", SORTS),
    "par.sort_u64": Row("ms", SORTS),
    "par.sort_f64": Row("ms", SORTS),
    "par.sort_cmp": Row("ms", SORTS),
}
# What the bare system calls cost: it runs in the same rounds as the row above it.
FLOORS = {"sched.wake_outside": "floor.futex_wake"}
# As weft-bench is compiled, and as a rival's user would; loops the same, wherever they come
# to lie.
LOOP_FLAGS = ("-O3", "-falign-loops=32")
C_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-pthread")
CXX_FLAGS = ("-std=c++17", "-pthread")

ROUNDS_MIN = 7
ROUNDS_QUICK = 2
RUN_TIMEOUT_S = 600
RESULT_KEYS = {"bench", "workers", "unit", "median", "min", "max", "n"}
CSV_COLUMNS = (
    "bench", "workers", "unit", "contender", "median", "min", "max", "rounds", "ratio_of_weft",
)


class Failure(Exception):
    """Something is wrong, and no figure would be worth printing."""


class LeftOut(Exception):
    """A rival cannot be built here, for want of a toolchain or a package."""


class Contender(NamedTuple):
    name: str
    program: Path
    version: str
    rows: dict  # of ROWS, those it has, each with the name it prints
    workers_max: int = sys.maxsize


def rows_of(name):
    """The rows of a rival, under the names that it prints."""
    return {row: row for row in ROWS if name in ROWS[row].rivals}


# --- building ----------------------------------------------------------------


def output_of(*command):
    """The first line that a command prints, or None if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else None


def need_tool(tool, *version_args):
    """The version line of a tool."""
    if not shutil.which(tool):
        raise LeftOut(f"{tool} is not installed")
    version = output_of(tool, *version_args)
    if not version:
        raise LeftOut(f"{tool} does not run")
    return version


def version_number(text):
    return [int(part) for part in text.split(".")[:2]]


def need_version(tool, version_line, manifest, pattern):
    """Checks a tool's version against the oldest that its manifest allows."""
    oldest = re.search(pattern, manifest.read_text(), re.MULTILINE)[1]
    found = re.search(r"\d+\.\d+", version_line)
    if not found or version_number(found[0]) < version_number(oldest):
        raise LeftOut(f"{tool} is too old: {version_line}; {oldest} is needed")


def need_library(command, source, probe, package):
    """Checks that a program compiles with a library, which the last argument names."""
    probe.write_text(source)
    command = [*command[:-1], probe, command[-1], "-o", probe.with_suffix("")]
    if subprocess.run(command, capture_output=True).returncode != 0:
        raise LeftOut(f"{command[0]} does not find its library; install {package}")


def build(command, cwd, log, **variables):
    """Runs a build whose every input is at hand: if it fails, we are wrong."""
    environment = dict(os.environ, GOTOOLCHAIN="local", **variables)
    with log.open("w") as out:
        done = subprocess.run(command, cwd=cwd, env=environment, stdout=out, stderr=out)
    if done.returncode != 0:
        tail = "\n".join(log.read_text().splitlines()[-20:])
        raise Failure(f"{' '.join(map(str, command))} failed:\n{tail}")


def fetch_crates(manifest):
    """Fetches the packages, from those stored here if there is no network."""
    rustc = subprocess.run(["rustc", "-vV"], capture_output=True, text=True)
    host = re.search(r"^host: (\S+)", rustc.stdout, re.MULTILINE)[1]
    fetch = ["cargo", "fetch", "--quiet", "--manifest-path", manifest, "--target", host]
    online = subprocess.run(fetch, capture_output=True, text=True)
    if online.returncode == 0:
        return
    offline = subprocess.run(fetch + ["--offline"], capture_output=True)
    if offline.returncode != 0:
        reason = (online.stderr.strip().splitlines() or ["no reason given"])[-1].strip()
        raise LeftOut(f"its packages cannot be had: {reason}")


def build_cargo(directory, crate, name, allocator=None, program=None, **variables):
    """A copy of the sources is built, so that Cargo.lock stays out of the tree."""
    program = program or f"rival-{crate}"
    manifest = HERE / crate / "Cargo.toml"
    need_tool("cargo", "--version")
    rustc = need_tool("rustc", "--version")
    need_version("rustc", rustc, manifest, r'^rust-version = "([\d.]+)"')

    sources = directory / f"{crate}-src"
    ignore = shutil.ignore_patterns("Cargo.lock", "target")
    shutil.copytree(HERE / crate, sources, ignore=ignore, dirs_exist_ok=True)
    shutil.copy(HERE / "driver.rs", sources / "src")
    copy = sources / "Cargo.toml"
    fetch_crates(copy)

    target = directory / name
    command = ["cargo", "build", "--release", "--manifest-path", copy, "--target-dir", target]
    command += ["--bin", program]
    if allocator:
        command += ["--features", allocator]
    build(command, sources, directory / f"{name}.log", **variables)

    # Its own first, then those of other packages that are built in.
    exact = re.findall(r'^([\w-]+) = .*"=([\d.]+)"(.*)', copy.read_text(), re.M)
    exact.sort(key=lambda package: package[0] != crate)
    used = [f"{package} {version}" for package, version, rest in exact
            if "optional" not in rest or package == allocator]
    version = ", ".join([*used, rustc])
    return Contender(name, target / "release" / program, version, rows_of(name))


def build_tokio(directory):
    return build_cargo(directory, "tokio", "tokio")


def build_tokio_mi(directory):
    """Tokio's tasks are allocated one by one; many of its users replace malloc."""
    return build_cargo(directory, "tokio", "tokio-mi", allocator="mimalloc")


def build_go(directory, package=".", program="rival-go"):
    version = need_tool("go", "version")
    need_version("go", version, HERE / "go" / "go.mod", r"^go ([\d.]+)")
    # Without version control: what it says of the tree is not for a benchmark.
    command = ["go", "build", "-buildvcs=false", "-o", directory / program, package]
    build(command, HERE / "go", directory / f"{program}.log")
    return Contender("go", directory / program, version.removeprefix("go version "), rows_of("go"))


def build_futex(directory):
    version = need_tool("cc", "--version")
    program = directory / "rival-futex"
    command = ["cc", "-std=c11", "-O2", "-pthread", HERE / "futex.c", "-o", program]
    build(command, HERE, directory / "futex.log")
    return Contender("futex", program, version, FLOORS)


def build_shared(directory):
    """The work of the par rows, compiled once and as weft-bench's is, and the command
    line of the rivals in C and C++."""
    need_tool("cc", "--version")
    objects = {"work": HERE.parent / "work.c", "driver": HERE / "driver.c"}
    for name, source in objects.items():
        command = ["cc", *C_FLAGS, "-O2", "-c", source, "-o", directory / f"{name}.o"]
        build(command, HERE, directory / f"{name}.log")
    return [directory / f"{name}.o" for name in objects]


def build_rayon(directory):
    work, _ = build_shared(directory)
    library = directory / "libwork.a"
    build(["ar", "rcs", library, work], HERE, directory / "libwork.log")
    return build_cargo(directory, "rayon", "rayon", RUSTFLAGS=f"-L native={directory}")


def build_tbb(directory):
    version = need_tool("c++", "--version")
    code = "#include <tbb/version.h>\nint main() { return TBB_runtime_interface_version() == 0; }"
    need_library(["c++", *CXX_FLAGS, "-ltbb"], code, directory / "probe-tbb.cpp", "libtbb-dev")
    tbb = output_of("pkg-config", "--modversion", "tbb") or "of an unknown version"
    program = directory / "rival-tbb"
    command = ["c++", *CXX_FLAGS, *LOOP_FLAGS, HERE / "tbb.cpp", *build_shared(directory)]
    build([*command, "-ltbb", "-lm", "-o", program], HERE, directory / "tbb.log")
    return Contender("tbb", program, f"oneTBB {tbb}, {version}", rows_of("tbb"))


def build_omp(directory, name, compiler, package):
    version = need_tool(compiler, "--version")
    code = "#include <omp.h>\nint main(void) { return omp_get_max_threads() == 0; }"
    need_library([compiler, *C_FLAGS, "-fopenmp"], code, directory / f"probe-{name}.c", package)
    program = directory / f"rival-{name}"
    command = [compiler, *C_FLAGS, *LOOP_FLAGS, "-fopenmp", HERE / "omp.c", *build_shared(directory)]
    build([*command, "-lm", "-o", program], HERE, directory / f"{name}.log")
    return Contender(name, program, version, rows_of(name))


def build_omp_gcc(directory):
    return build_omp(directory, "omp-gcc", "gcc", "libgomp1")


def build_omp_clang(directory):
    return build_omp(directory, "omp-clang", "clang", "libomp-dev")


def build_serial(directory):
    version = need_tool("cc", "--version")
    program = directory / "rival-serial"
    command = ["cc", *C_FLAGS, "-O2", HERE / "serial.c", *build_shared(directory)]
    build([*command, "-lm", "-o", program], HERE, directory / "serial.log")
    return Contender("serial", program, version, rows_of("serial"), workers_max=1)


def build_baseline(directory, name, way):
    version = need_tool("cc", "--version")
    program = directory / f"rival-{name}"
    command = ["cc", *C_FLAGS, *LOOP_FLAGS, f"-D{way}", HERE / "baseline.c", *build_shared(directory)]
    build([*command, "-lm", "-o", program], HERE, directory / f"{name}.log")
    return Contender(name, program, version, rows_of(name))


def build_static(directory):
    return build_baseline(directory, "static", "BASELINE_STATIC")


def build_locked(directory):
    return build_baseline(directory, "locked", "BASELINE_LOCKED")


RIVALS = {
    "tokio": build_tokio,
    "tokio-mi": build_tokio_mi,
    "go": build_go,
    "futex": build_futex,
    "rayon": build_rayon,
    "tbb": build_tbb,
    "omp-gcc": build_omp_gcc,
    "omp-clang": build_omp_clang,
    "serial": build_serial,
    "static": build_static,
    "locked": build_locked,
}


def rows_of_weft(program):
    """Those of ROWS that weft-bench has: a rival may be there first."""
    done = subprocess.run([program, "--list"], capture_output=True, text=True, timeout=60)
    listed = set(done.stdout.split())
    return {row: row for row in ROWS if row in listed}


def gather(weft, directory, rows):
    """Every contender that can run here and has one of the rows, weft first."""
    contenders = []
    if weft:
        if not os.access(weft, os.X_OK):
            raise Failure(f"{weft} is not a program")
        version = output_of(weft, "--version") or "version not known"
        contenders.append(Contender("weft", weft.resolve(), version, rows_of_weft(weft.resolve())))
    directory.mkdir(parents=True, exist_ok=True)
    for name, build_rival in RIVALS.items():
        if not any(name in ROWS[row].rivals for row in rows):
            continue
        print(f"building {name}", file=sys.stderr)
        try:
            contenders.append(build_rival(directory.resolve()))
        except LeftOut as reason:
            print(f"{name}: left out: {reason}")
    return contenders


# --- running -----------------------------------------------------------------


def check_result(result, expected):
    """Why a line of output is not the row that was asked for, or None."""
    if not isinstance(result, dict) or result.keys() != RESULT_KEYS:
        return f"its keys are not {', '.join(sorted(RESULT_KEYS))}"
    for key, value in expected.items():
        if result[key] != value:
            return f"{key} is {result[key]!r}, not {value!r}"
    for key in ("median", "min", "max", "n"):
        value = result[key]
        if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
            return f"{key} is {value!r}, which is no figure"
    return None


def run_once(contender, row, workers):
    """One figure of one contender."""
    bench = contender.rows[row]
    command = [str(contender.program), "--json", "--workers", str(workers)]
    command += ["--filter", bench, "--reps", "1"]
    shown = f"{contender.name}: {' '.join(command)}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Failure(f"{shown}: still running after {RUN_TIMEOUT_S} s") from None
    if done.returncode != 0:
        raise Failure(f"{shown}: exit status {done.returncode}\n{done.stderr.strip()}")
    lines = done.stdout.splitlines()
    if len(lines) != 1:
        raise Failure(f"{shown}: printed {len(lines)} lines instead of one\n{done.stdout.strip()}")
    try:
        result = json.loads(lines[0])
    except ValueError as error:
        raise Failure(f"{shown}: {error}\n{lines[0]}") from None
    wrong = check_result(result, {"bench": bench, "workers": workers, "unit": ROWS[row].unit})
    if wrong:
        raise Failure(f"{shown}: {wrong}\n{lines[0]}")
    return result["median"]


def turns(contenders, rounds):
    """Every contender once in each round, in an order that rotates from round to round."""
    for round_number in range(rounds):
        first = round_number % len(contenders) if contenders else 0
        yield from contenders[first:] + contenders[:first]


def run_rounds(contenders, row, workers, rounds):
    """The figures of every contender that has the row, by its name."""
    active = [contender for contender in contenders
              if row in contender.rows and workers <= contender.workers_max]
    figures = defaultdict(list)
    for contender in turns(active, rounds):
        figures[contender.name].append(run_once(contender, row, workers))
    return figures


# --- reporting ---------------------------------------------------------------


def print_machine(contenders):
    cpuinfo = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)", cpuinfo, re.MULTILINE)
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"machine: {model[1] if model else platform.machine()}, {os.cpu_count()} cores, "
          f"{platform.system()} {platform.release()}, load {load}")
    for contender in contenders:
        print(f"{contender.name}: {contender.version}")
    print(flush=True)


def short(value):
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{decimals}f}"


def cell(values):
    if not values:
        return "-"
    return f"{short(statistics.median(values))} [{short(min(values))}-{short(max(values))}]"


def ratio(figures, rival, of="weft"):
    """One's median over a rival's, or None. Of times: less than one means that weft, or
    who else it is of, is faster."""
    if not figures[of] or not figures[rival] or not statistics.median(figures[rival]):
        return None
    return statistics.median(figures[of]) / statistics.median(figures[rival])


def print_columns(table):
    """Lines of texts, the texts of a column below each other."""
    widths = [max(map(len, column)) for column in zip(*table)]
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip())


def print_table(contenders, results):
    names = [contender.name for contender in contenders]
    rivals = [name for name in names if name != "weft"] if "weft" in names else []
    table = [["row", "workers", "unit", *names, *(f"weft/{rival}" for rival in rivals)]]
    for (row, workers), figures in results.items():
        line = [row, str(workers), ROWS[row].unit]
        line += [cell(figures[name]) for name in names]
        ratios = [ratio(figures, rival) for rival in rivals]
        line += ["-" if value is None else f"{value:.2f}" for value in ratios]
        table.append(line)
    print_columns(table)
    for row, floor in FLOORS.items():
        if any(ran == row and figures["futex"] for (ran, _), figures in results.items()):
            print(f"\nfutex beside {row} is {floor}: two plain threads, no runtime.")


def write_csv(path, contenders, results, rows, weft="weft"):
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(CSV_COLUMNS)
        for (row, workers), figures in results.items():
            for contender in contenders:
                values = figures[contender.name]
                if not values:
                    continue
                value = ratio(figures, contender.name, of=weft)
                spread = (statistics.median(values), min(values), max(values))
                out.writerow([contender.rows[row], workers, rows[row].unit, contender.name,
                              *(f"{figure:.2f}" for figure in spread), len(values),
                              "" if value is None else f"{value:.3f}"])


# --- command line ------------------------------------------------------------


def select_rows(text, names):
    """The row of exactly that name, or else those whose name begins so. A row may have
    several names."""
    exact = [row for row in names if text in names[row]]
    rows = exact or [row for row in names if any(name.startswith(text) for name in names[row])]
    if not rows:
        raise Failure(f"no row is named '{text}'; there are {', '.join(names)}")
    return rows


def worker_counts(text):
    counts = [int(part) for part in text.split(",")]
    if min(counts) < 1:
        raise ValueError
    return counts


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--weft", type=Path, metavar="PROGRAM",
                        help="weft-bench; without it only the rivals run")
    parser.add_argument("--workers", type=worker_counts, default=[1, 2], metavar="N,N",
                        help="worker counts, 1,2 by default")
    return parse_common(parser, arguments)


def parse_common(parser, arguments):
    """Adds what every comparison can be told, and parses."""
    parser.add_argument("--build", type=Path, metavar="DIR", required=True,
                        help="where the rivals are built")
    parser.add_argument("--rounds", type=int, metavar="N",
                        help=f"{ROUNDS_MIN} or more, {ROUNDS_MIN} by default")
    parser.add_argument("--filter", default="", metavar="ROW", help="a row, or how it begins")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--quick", action="store_true",
                        help=f"{ROUNDS_QUICK} rounds: to see that all runs, not to compare")
    options = parser.parse_args(arguments)
    if options.rounds is None:
        options.rounds = ROUNDS_QUICK if options.quick else ROUNDS_MIN
    if options.rounds < (1 if options.quick else ROUNDS_MIN):
        parser.error(f"fewer than {ROUNDS_MIN} rounds are only for --quick")
    return options


def main(arguments):
    options = parse_arguments(arguments)
    rows = select_rows(options.filter, {row: (row, FLOORS.get(row, row)) for row in ROWS})
    contenders = gather(options.weft, options.build, rows)
    if not contenders:
        raise Failure("there is no contender to run")
    print_machine(contenders)
    results = {}
    for workers in options.workers:
        for row in rows:
            if workers > ROWS[row].workers_max:
                continue
            print(f"running {row}, {workers} workers", file=sys.stderr)
            results[row, workers] = run_rounds(contenders, row, workers, options.rounds)
    print_table(contenders, results)
    if options.csv:
        write_csv(options.csv, contenders, results, ROWS)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Failure as failure:
        sys.exit(f"run.py: {failure}")
