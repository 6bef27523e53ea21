#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Makes the n-th system call of each kind fail, with each error that can really occur.

    faults.py PROGRAM [--backend epoll --backend uring] [--runs N | --all] [--seed N]
    faults.py PROGRAM --repeat 'epoll 2 recvfrom:error=EINTR:when=3'

PROGRAM is integration_io_faults, which checks that nothing is lost or leaked and that no task
waits forever. A first run without faults counts how often it makes each call. Then there is one
run for each backend, number of workers, call, error and n, or for the requested number of them,
with some n of each error. Some runs have a burst of failures from the n-th call on.

strace counts calls per thread: the n-th call of each thread fails. It is attached after the
program has been loaded, so that the loader's calls do not count.
"""

import argparse
import collections
import concurrent.futures
import os
import random
import re
import subprocess
import sys
import tempfile
import time

JOBS_MAX = 2
PATIENCE = int(os.environ.get("WEFT_TEST_TIMEOUT", "60"))  # seconds until a run counts as hung
BURST = 5
WORKERS = (1, 2)

# Passed to the program: its calls may fail; or none may, since the library can handle the fault.
VISIBLE = "visible"
HIDDEN = "hidden"

# Errors of single calls, by whether the program can see them. Left out on purpose:
#   close     an injected error replaces the call, so the descriptor would stay open; the kernel's
#             close always closes it, whatever it returns
#   munmap    the same: the memory would stay mapped
#   futex     the kernel never skips a wake, and strace cannot tell a wake from a wait
#   write     only to an eventfd, which fails when it is full: after 2**64 wakes
#   EAGAIN    of calls that move data: it promises an event, which would not come
SINGLE = {
    HIDDEN: {
        "accept4": "EINTR ECONNABORTED EPROTO EMFILE ENFILE ENOBUFS ENOMEM EPERM",
        "connect": "EINTR EAGAIN",
        "epoll_pwait2": "EINTR",
        "epoll_wait": "EINTR",
        "io_uring_enter": "EINTR EAGAIN EBUSY",
        "poll": "EINTR",
        "readv": "EINTR",
        "recvfrom": "EINTR",
        "recvmmsg": "EINTR",
        "recvmsg": "EINTR",
        "sendmmsg": "EINTR",
        "sendmsg": "EINTR",
        "sendto": "EINTR",
        "writev": "EINTR",
    },
    VISIBLE: {
        "bind": "EACCES EADDRINUSE EADDRNOTAVAIL ENOMEM",
        "clone3": "EAGAIN ENOMEM",
        "connect": "ECONNREFUSED EADDRNOTAVAIL ENETUNREACH ENOBUFS ETIMEDOUT",
        "epoll_create1": "EMFILE ENFILE ENOMEM",
        "epoll_ctl": "ENOMEM ENOSPC",
        "eventfd2": "EMFILE ENFILE ENOMEM",
        "fcntl": "EPERM",
        "getsockname": "ENOBUFS",
        "getsockopt": "ENOBUFS EPERM",
        "io_uring_setup": "EMFILE ENFILE ENOMEM",
        "listen": "EADDRINUSE",
        "madvise": "ENOMEM",
        "membarrier": "ENOMEM",
        "mmap": "ENOMEM",
        "mprotect": "ENOMEM",
        "pipe2": "EMFILE ENFILE",
        "poll": "ENOMEM",
        "readv": "EIO ENOMEM",
        "recvfrom": "ECONNRESET ENOMEM ETIMEDOUT",
        "recvmmsg": "ECONNREFUSED ENOMEM",
        "recvmsg": "ECONNRESET ENOMEM ETIMEDOUT",
        "sendmmsg": "ECONNREFUSED ENOBUFS",
        "sendmsg": "ECONNRESET ENOBUFS ENOMEM EPIPE",
        "sendto": "ECONNRESET ENOBUFS ENOMEM EPIPE",
        "setsockopt": "ENOBUFS EPERM",
        "shutdown": "ENOTCONN",
        "socket": "EACCES EMFILE ENFILE ENOBUFS ENOMEM",
        "socketpair": "EMFILE ENFILE ENOMEM",
        "writev": "EIO ENOMEM EPIPE",
    },
}

# Errors that persist: a feature that a kernel or a sandbox lacks stays missing.
ALWAYS = {
    HIDDEN: {
        "epoll_pwait2": "ENOSYS EPERM",
        "madvise": "EINVAL",
    },
    VISIBLE: {
        "io_uring_setup": "ENOSYS EPERM",
        "membarrier": "ENOSYS EPERM",
    },
}

CALLS = sorted({call for table in (SINGLE, ALWAYS) for calls in table.values() for call in calls})


class Fault(collections.namedtuple("Fault", "backend workers call error when")):
    """One run."""

    def __str__(self):
        return f"{self.backend} {self.workers} {self.call}:error={self.error}:when={self.when}"

    def seen(self):
        """Returns whether the program may see an error."""
        table = ALWAYS if self.when == "1+" else SINGLE
        hidden = self.error in table[HIDDEN].get(self.call, "").split()
        return HIDDEN if hidden else VISIBLE

    @staticmethod
    def parse(text):
        match = re.fullmatch(r"(\w+) (\d+) (\w+):error=(\w+):when=(\S+)", text)
        if not match:
            sys.exit(f"no such fault: {text}")
        return Fault(match[1], int(match[2]), *match.groups()[2:])


class Ended(Exception):
    """A failed run, with the reason."""


def read_until_attached(strace):
    for line in strace.stderr:
        if "attached" in line:
            return
    raise Ended("strace cannot attach to the program")


def run(program, backend, workers, seen, arguments):
    """Runs the program under strace and returns the trace."""
    environment = dict(os.environ, WEFT_IO=backend, WEFT_TEST_WORKERS=str(workers),
                       WEFT_TEST_SEED="1", WEFT_TEST_FAULTS=seen)
    with tempfile.NamedTemporaryFile("r") as trace, \
            subprocess.Popen([program], env=environment, stdin=subprocess.PIPE, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        strace = subprocess.Popen(["strace", "-f", "-o", trace.name, *arguments,
                                   "-p", str(process.pid)], text=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            read_until_attached(strace)
            output = process.communicate("x", timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired as error:
            raise Ended(f"hangs: {(error.output or b'').decode()}") from None
        finally:
            process.kill()
            strace.communicate()
        if process.returncode != 0:
            raise Ended(f"{output}ended with {process.returncode}")
        return trace.read()


def count_calls(program, backend, workers):
    """Returns the maximum number of times that one thread makes each call."""
    trace = run(program, backend, workers, HIDDEN, ["-e", "trace=" + ",".join(f"?{call}"
                                                                             for call in CALLS)])
    by_thread = collections.Counter(re.findall(r"^(\d+) +(\w+)\(", trace, re.MULTILINE))
    most = collections.Counter()
    for (_, call), count in by_thread.items():
        most[call] = max(most[call], count)
    return most


def try_fault(program, fault):
    """Returns the fault, whether a call has failed, and why the run failed, if it did."""
    spec = f"{fault.call}:error={fault.error}:when={fault.when}"
    try:
        trace = run(program, fault.backend, fault.workers, fault.seen(),
                    ["-e", f"trace={fault.call}", "-e", f"inject={spec}"])
    except Ended as error:
        return fault, True, str(error)
    return fault, "(INJECTED)" in trace, None


def errors_of(table, call):
    return " ".join(calls.get(call, "") for calls in table.values()).split()


def plan(counts, everything, runs, chance):
    """Returns the faults to try: all of them, or the given number, with each error about
    equally often."""
    groups = []
    for (backend, workers), most in counts.items():
        for call in sorted(most):
            for error in errors_of(ALWAYS, call):
                groups.append([Fault(backend, workers, call, error, "1+")])
            for error in errors_of(SINGLE, call):
                group = [Fault(backend, workers, call, error,
                               str(n) if n % 2 else f"{n}..{n + BURST - 1}")
                         for n in range(1, most[call] + 1)]
                chance.shuffle(group)
                groups.append(group)
    chosen = []
    while any(groups) and (everything or len(chosen) < runs):
        chance.shuffle(groups)
        chosen += [group.pop() for group in groups if group]
    return chosen if everything else chosen[:max(runs, len(groups))]


def report(fault, why):
    print(f"failed: {fault}\n{why}\n"
          f"repeat: python3 {sys.argv[0]} {sys.argv[1]} --repeat '{fault}'", flush=True)


def sweep(program, faults):
    """Tries all faults; returns the number of failed runs, and how often each call has failed."""
    failures = 0
    hits = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(JOBS_MAX) as pool:
        tries = [pool.submit(try_fault, program, fault) for fault in faults]
        for done in concurrent.futures.as_completed(tries):
            fault, is_hit, why = done.result()
            hits[fault.backend, fault.call] += is_hit
            if why:
                failures += 1
                report(fault, why)
    return failures, hits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--backend", action="append", choices=("epoll", "uring"))
    parser.add_argument("--runs", type=int, default=0, help="at least one for each error")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=Fault.parse)
    options = parser.parse_args()
    began = time.monotonic()
    if options.repeat:
        faults = [options.repeat]
    else:
        counts = {(backend, workers): count_calls(options.program, backend, workers)
                  for backend in options.backend or ["epoll"] for workers in WORKERS}
        faults = plan(counts, options.all, options.runs, random.Random(options.seed))
    failures, hits = sweep(options.program, faults)
    missed = [" ".join(key) for key in hits if hits[key] == 0]
    if missed:
        print("never failed:", ", ".join(missed))
    print(f"{len(faults)} runs, {sum(hits.values())} of them with a fault, {failures} failed, "
          f"in {time.monotonic() - began:.1f} s (seed {options.seed})")
    sys.exit(failures > 0 or bool(missed))


main()
