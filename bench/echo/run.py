#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Runs echo servers of weft and of others under one load, and prints the ratios.

The servers take turns, as the contenders of bench/rivals do: in each round every server is
started, measured once and stopped, and the order rotates from round to round. A figure is the
median over the rounds; its range is printed with it.

A server whose library or toolchain is not at hand, or that says that this machine has not what it
needs, is left out, with a line that says so. Anything else that goes wrong ends the run: a wrong
byte, a lost connection, a server that does not end when its stdin does.
"""

import argparse
import importlib.util
import json
import math
import os
import resource
import select
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, NamedTuple

HERE = Path(__file__).resolve().parent


def load_rivals():
    """bench/rivals/run.py, which has the same name as this file."""
    path = HERE.parent / "rivals" / "run.py"
    spec = importlib.util.spec_from_file_location("rivals", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rivals = load_rivals()
Failure = rivals.Failure
LeftOut = rivals.LeftOut


class Case(NamedTuple):
    """What is run; its rows are figures of one and the same run."""
    mode: str
    connections: int
    pinned: bool  # the server to one core, the load to another

    @property
    def workers(self):
        return 1 if self.pinned else 2


class Row(NamedTuple):
    unit: str
    case: Case
    figure: str


FREE_64 = Case("echo", 64, pinned=False)
FREE_1000 = Case("echo", 1000, pinned=False)
PINNED_64 = Case("echo", 64, pinned=True)
PINNED_1000 = Case("echo", 1000, pinned=True)
BULK = Case("bulk", 1, pinned=True)
SORTING_PINNED = Case("sorting", 8, pinned=True)
SORTING_FREE = Case("sorting", 8, pinned=False)

# In the order in which they run.
ROWS = {
    "io.echo_64": Row("1/s", FREE_64, "rps"),
    "io.echo_1000": Row("1/s", FREE_1000, "rps"),
    "io.echo_64_cpu": Row("us", PINNED_64, "cpu_us"),
    "io.echo_1000_cpu": Row("us", PINNED_1000, "cpu_us"),
    "io.echo_1000_p99": Row("us", PINNED_1000, "p99_us"),
    "io.bulk": Row("MB/s", BULK, "both"),
    "io.bulk_sink": Row("MB/s", BULK, "sink"),
    "io.bulk_source": Row("MB/s", BULK, "source"),
    "io.echo_p99_while_sorting": Row("us", SORTING_PINNED, "sorting"),
    "io.echo_p99_idle": Row("us", SORTING_PINNED, "idle"),
    "io.echo_p99_while_sorting_2": Row("us", SORTING_FREE, "sorting"),
    "io.echo_p99_idle_2": Row("us", SORTING_FREE, "idle"),
}
# Whom the ratios are to: no runtime, only the system calls.
BASES = {"echo": "epoll", "bulk": "bulk", "sorting": None}

MESSAGE_SIZE = 64
SECONDS = 2.0
SECONDS_QUICK = 0.4
WARM_UP_SHARE = 0.25
START_TIMEOUT_S = 10
END_TIMEOUT_S = 10
LOAD_GRACE_S = 90
EXIT_REFUSED = 77


class Server(NamedTuple):
    rows: dict  # of ROWS, those it has, each with the name under which it is reported
    find: Callable  # gives the program and its version
    arguments: tuple = ()
    io: str = ""  # WEFT_IO


class Contender(NamedTuple):
    """A server that can run here."""
    name: str
    program: Path
    version: str
    rows: dict
    arguments: tuple
    io: str


class Setup(NamedTuple):
    load: Path
    cores: tuple  # of the server and of the load, where they are pinned
    seconds: float


def rows_of_mode(*modes):
    return {row: row for row in ROWS if ROWS[row].case.mode in modes}


def floors_of_mode(mode, prefix):
    """A floor is a row that no runtime is in: io.echo_64 is floor.epoll_echo_64."""
    return {row: row.replace("io.", prefix, 1) for row in rows_of_mode(mode)}


# --- the contenders ------------------------------------------------------------


def built(bench, name, package=None):
    """A program that CMake has built, if it has."""
    program = bench / f"echo-{name}"
    if not os.access(program, os.X_OK):
        if package:
            raise LeftOut(f"it was not built; install {package} and build again")
        raise Failure(f"{program} is not a program")
    return program


def version_of(package):
    version = rivals.output_of("pkg-config", "--modversion", package) or "of an unknown version"
    return f"{package} {version}"


def find_weft(bench, _):
    version = rivals.output_of(bench / "weft-bench", "--version") or "version not known"
    return built(bench, "weft"), version


def find_sorting(bench, _):
    return built(bench, "sorting"), "weft, and a sort on its workers"


def find_epoll(bench, _):
    return built(bench, "epoll"), "a bare loop, one thread"


def find_uring(bench, _):
    program = built(bench, "uring", "liburing-dev")
    return program, f"a bare loop, one thread, {version_of('liburing')}"


def find_libuv(bench, _):
    return built(bench, "libuv", "libuv1-dev"), f"{version_of('libuv')}, one thread"


def find_tokio(_, directory):
    rival = rivals.build_cargo(directory, "tokio", "tokio", program="rival-tokio-echo")
    return rival.program, rival.version


def find_go(_, directory):
    rival = rivals.build_go(directory, "./echo", "rival-go-echo")
    return rival.program, rival.version


def find_bulk(bench, _):
    return built(bench, "bulk"), "blocking calls, one thread for each connection"


ECHO = rows_of_mode("echo")
SERVERS = {
    "weft-epoll": Server(rows_of_mode("echo", "bulk"), find_weft, io="epoll"),
    "weft-uring": Server(rows_of_mode("echo", "bulk"), find_weft, io="uring"),
    "sorting-epoll": Server(rows_of_mode("sorting"), find_sorting, io="epoll"),
    "sorting-uring": Server(rows_of_mode("sorting"), find_sorting, io="uring"),
    "weft-stackless": Server(ECHO, find_weft, arguments=("--stackless",), io="epoll"),
    "tokio": Server(ECHO, find_tokio),
    "go": Server(ECHO, find_go),
    "libuv": Server(ECHO, find_libuv),
    "epoll": Server(floors_of_mode("echo", "floor.epoll_"), find_epoll),
    "uring": Server(floors_of_mode("echo", "floor.uring_"), find_uring),
    "bulk": Server(floors_of_mode("bulk", "floor."), find_bulk),
}


def gather(bench, directory, rows):
    """Every contender that can run here and has one of the rows."""
    directory.mkdir(parents=True, exist_ok=True)
    contenders = []
    for name, server in SERVERS.items():
        if not server.rows.keys() & set(rows):
            continue
        print(f"preparing {name}", file=sys.stderr)
        try:
            program, version = server.find(bench, directory.resolve())
            version = ", ".join([version, *server.arguments, *([server.io] if server.io else [])])
            contender = Contender(name, program, version, server.rows, server.arguments, server.io)
            try_to_start(contender)
            contenders.append(contender)
        except LeftOut as reason:
            print(f"{name}: left out: {reason}")
    return contenders


def try_to_start(contender):
    """It may refuse: LeftOut then."""
    extra = ("--bulk", "sink") if contender.name == "bulk" else ()
    with serving(contender, workers=1, extra=extra):
        pass


# --- running -------------------------------------------------------------------


def pinned_to(core):
    return [] if core is None else ["taskset", "-c", str(core)]


def text_of(file):
    file.seek(0)
    return file.read().strip()


def read_port(process, shown, errors):
    """The port that a server prints when it is ready."""
    ready, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
    words = process.stdout.readline().split() if ready else []
    if len(words) == 2 and words[0] == "port":
        return words[1]
    if process.poll() is None and not ready:
        raise Failure(f"{shown}: no port after {START_TIMEOUT_S} s")
    if process.wait(END_TIMEOUT_S) == EXIT_REFUSED:
        raise LeftOut(text_of(errors).removeprefix("echo: "))
    raise Failure(f"{shown}: exit status {process.returncode}\n{text_of(errors)}")


def end(process, shown, errors):
    """The end of its stdin is what a server ends for."""
    process.stdin.close()
    try:
        status = process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Failure(f"{shown}: has not ended {END_TIMEOUT_S} s after its stdin") from None
    if status != 0:
        raise Failure(f"{shown}: exit status {status}\n{text_of(errors)}")


class Running(NamedTuple):
    port: str
    pid: int
    last_words: list  # what it has printed at its end, once that has come


@contextmanager
def serving(contender, workers, extra=(), core=None):
    """A server that runs. taskset becomes the server: same id."""
    command = [*pinned_to(core), str(contender.program), *contender.arguments]
    command += ["--workers", str(workers), *extra]
    shown = f"{contender.name}: {' '.join(command)}"
    environment = dict(os.environ)
    environment.pop("WEFT_IO", None)
    if contender.io:
        environment["WEFT_IO"] = contender.io
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=errors, text=True, env=environment)
        try:
            running = Running(read_port(process, shown, errors), process.pid, [])
            yield running
            end(process, shown, errors)
            running.last_words.append(process.stdout.read())
        finally:
            process.stdin.close()
            process.stdout.close()
            if process.poll() is None:
                process.kill()
                process.wait()


def run_load(setup, contender, core, *arguments):
    """What the load prints."""
    command = [*pinned_to(core), str(setup.load), "--json", "--seconds", str(setup.seconds)]
    command += ["--warm-up", str(setup.seconds * WARM_UP_SHARE), *arguments]
    shown = f"{contender.name}: {' '.join(command)}"
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=2 * setup.seconds + LOAD_GRACE_S)
    except subprocess.TimeoutExpired:
        raise Failure(f"{shown}: still running") from None
    if done.returncode != 0:
        raise Failure(f"{shown}: exit status {done.returncode}\n{done.stderr.strip()}")
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise Failure(f"{shown}: {error}\n{done.stdout}") from None


def measure_echo(setup, contender, case, cores):
    with serving(contender, case.workers, core=cores[0]) as server:
        return load_echo(setup, contender, case, cores, server)


def load_echo(setup, contender, case, cores, server):
    return run_load(setup, contender, cores[1], "--port", server.port,
                    "--server-pid", str(server.pid), "--connections", str(case.connections),
                    "--size", str(MESSAGE_SIZE))


def p99_inside(contender, server):
    """What the server itself has measured."""
    try:
        said = json.loads(server.last_words[0])
    except ValueError as error:
        raise Failure(f"{contender.name}: {error}\n{server.last_words[0]}") from None
    if said["requests"] == 0:
        raise Failure(f"{contender.name}: it knows no times of the kernel's")
    return said["p99_us"]


def measure_sorting(setup, contender, case, cores):
    """The p99 while the workers sort, and while they do not. With one worker the load has a core of
    its own, and measures; else it shares those of the server, which measures itself."""
    figures = {}
    for name, extra in (("idle", ("--idle",)), ("sorting", ())):
        with serving(contender, case.workers, extra=extra, core=cores[0]) as server:
            result = load_echo(setup, contender, case, cores, server)
        figures[name] = result["p99_us"] if case.pinned else p99_inside(contender, server)
    return figures


def measure_bulk(setup, contender, case, cores):
    """Both directions, and both together: the rate of a byte there and a byte back."""
    rates = {}
    for bulk in ("sink", "source"):
        extra = ("--bulk", bulk)
        with serving(contender, case.workers, extra=extra, core=cores[0]) as server:
            result = run_load(setup, contender, cores[1], "--port", server.port, "--mode", "bulk",
                              *extra)
            rates[bulk] = result["mb_s"]
    return {**rates, "both": 2 / (1 / rates["sink"] + 1 / rates["source"])}


def measure(setup, contender, case, rows):
    """The figures of one run, by row."""
    cores = setup.cores if case.pinned else (None, None)
    do = {"echo": measure_echo, "bulk": measure_bulk, "sorting": measure_sorting}
    result = do[case.mode](setup, contender, case, cores)
    figures = {row: result[ROWS[row].figure] for row in rows}
    for row, value in figures.items():
        if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
            raise Failure(f"{contender.name}: {row} is {value!r}, which is no figure")
    return figures


def run_case(setup, contenders, case, rows, rounds):
    """For each of the rows the figures of every contender that has it, by its name."""
    active = [contender for contender in contenders if rows[0] in contender.rows]
    results = {(row, case.workers): defaultdict(list) for row in rows}
    for contender in rivals.turns(active, rounds):
        for row, value in measure(setup, contender, case, rows).items():
            results[row, case.workers][contender.name].append(value)
    return results


# --- reporting -----------------------------------------------------------------


def print_table(contenders, results):
    table = [["row", "workers", "unit", "contender", "median [min-max]", "of the floor"]]
    for (row, workers), figures in results.items():
        base = BASES[ROWS[row].case.mode]
        for contender in contenders:
            if figures[contender.name]:
                value = base and rivals.ratio(figures, base, of=contender.name)
                table.append([row, str(workers), ROWS[row].unit, contender.name,
                              rivals.cell(figures[contender.name]),
                              "-" if value is None else f"{value:.2f}"])
    rivals.print_columns(table)
    print("\nThe floor is epoll, and for bulk the blocking calls. Of us less is better, of 1/s and "
          "MB/s more.")


# --- command line --------------------------------------------------------------


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--weft", type=Path, metavar="DIR", required=True,
                        help="where weft-load and the servers in C were built: BUILD/bench")
    parser.add_argument("--seconds", type=float, metavar="S",
                        help=f"of each measured run, {SECONDS} by default")
    options = rivals.parse_common(parser, arguments)
    if options.seconds is None:
        options.seconds = SECONDS_QUICK if options.quick else SECONDS
    return options


def prepare(options):
    """What every run needs of this machine."""
    rivals.need_tool("taskset", "--version")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise Failure("a core for the server and another one for the load are needed")
    load = options.weft.resolve() / "weft-load"
    if not os.access(load, os.X_OK):
        raise Failure(f"{load} is not a program")
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # inherited by all
    return Setup(load, tuple(cores[:2]), options.seconds)


def names_of(row):
    """Under which names a row can be asked for."""
    return {server.rows[row] for server in SERVERS.values() if row in server.rows}


def main(arguments):
    options = parse_arguments(arguments)
    rows = rivals.select_rows(options.filter, {row: names_of(row) for row in ROWS})
    setup = prepare(options)
    contenders = gather(options.weft.resolve(), options.build, rows)
    rivals.print_machine(contenders)
    results = {}
    for case in dict.fromkeys(ROWS[row].case for row in rows):
        of_case = [row for row in rows if ROWS[row].case == case]
        print(f"running {', '.join(of_case)}", file=sys.stderr)
        results.update(run_case(setup, contenders, case, of_case, options.rounds))
    print_table(contenders, results)
    if options.csv:
        rivals.write_csv(options.csv, contenders, results, ROWS, weft="weft-epoll")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (Failure, LeftOut) as failure:
        sys.exit(f"run.py: {failure}")
