# SPDX-License-Identifier: MIT
"""
Helpers for tests with real clients: a running example server, tools, checks.

Each test is a program: python3 tests/peers/NAME.py EXAMPLES, where EXAMPLES is the folder of
the built examples. WEFT_IO selects their I/O backend, and WEFT_TEST_LAUNCHER is the command
that starts them. A missing tool is a failure. Only if all tools are missing is the test
skipped.
"""

import hashlib
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

PACKAGES = {
    "ab": "apache2-utils",
    "curl": "curl",
    "nc": "netcat-openbsd",
    "redis-benchmark": "redis-tools",
    "redis-cli": "redis-tools",
    "socat": "socat",
    "wrk": "wrk",
}
SKIPPED = 77
PATIENCE = int(os.environ.get("WEFT_TEST_TIMEOUT", "60"))  # seconds until something counts as hung


def check(condition, *values):
    if not condition:
        caller = sys._getframe(1)
        sys.exit(f"{caller.f_code.co_filename}:{caller.f_lineno}: " + " ".join(map(repr, values)))


def check_equal(value, wanted):
    if value != wanted:
        caller = sys._getframe(1)
        where = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        sys.exit(f"{where}: {shorten(value)}, wanted {shorten(wanted)}")


def shorten(value):
    text = repr(value)
    return text if len(text) < 400 else text[:400] + "..."


def need(*tools):
    """Fails if one of the tools is missing; skips the test if all of them are."""
    present = [tool for tool in PACKAGES if shutil.which(tool)]
    # curl may be installed for other reasons.
    if not set(present) - {"curl"}:
        print("None of the peers is installed: run tools/deps, where apt-get can reach a mirror.")
        sys.exit(SKIPPED)
    for tool in tools:
        if tool not in present:
            sys.exit(f"{tool} is not installed: run tools/deps, or apt-get install {PACKAGES[tool]}")


def run(*command, data=b""):
    """Returns the output of a command, which must succeed."""
    done = subprocess.run(command, input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=PATIENCE, check=False)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: {done.returncode}\n{done.stderr.decode()}")
    return done.stdout


class Server:
    """A running example server, from its first line of output until it is stopped."""

    def __init__(self, name, *arguments):
        program = os.path.join(sys.argv[1], name)
        launcher = shlex.split(os.environ.get("WEFT_TEST_LAUNCHER", ""))
        self.name = name
        self.process = subprocess.Popen([*launcher, program, *arguments],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        check("listening at" in line, name, line)
        self.place = line.split()[-1]
        port = re.search(r":(\d+)$", self.place)
        self.port = int(port[1]) if port else 0

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if error:
            self.process.kill()
            self.process.wait()
        elif self.process.poll() is None:
            self.stop()

    def signal(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self, wanted=0):
        """Stops it with a signal and returns the rest of its output."""
        if self.process.poll() is None:
            self.signal()
        rest = self.process.communicate(timeout=PATIENCE)[0]
        check_equal((self.name, self.process.returncode), (self.name, wanted))
        return rest

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)


class Talk:
    """A tool with a line-based conversation."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def say(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def hear(self):
        """Returns the next line; None at the end."""
        line = self.process.stdout.readline()
        return line.decode().rstrip("\n") if line else None

    def end(self):
        """Closes its input and waits for it; it may have exited before."""
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.wait(timeout=PATIENCE)


def receive_all(connection):
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def noise(size):
    """Returns pseudo-random bytes, the same for the same size."""
    return random.Random(size).randbytes(size)


def main(tests):
    began = time.monotonic()
    for test in tests:
        print(f"{test.__name__}", flush=True)
        test()
    print(f"{len(tests)} passed in {time.monotonic() - began:.1f} s")
