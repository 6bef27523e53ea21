# SPDX-License-Identifier: MIT
"""How the examples that are not servers fail: with a message and an appropriate exit status."""

import os
import shlex
import subprocess
import sys

import rig
from rig import check, check_equal

# The program with its arguments, its exit status, and its message.
CASES = (
    (("du", "/nowhere"), 1, "du: /nowhere: No such file or directory\n"),
    (("wc", "/nowhere"), 1, "wc: /nowhere: No such file or directory\n"),
    (("wc", "/"), 1, "wc: /: Is a directory\n"),
    (("sortlines", "/nowhere"), 1, "sortlines: /nowhere: No such file or directory\n"),
    (("sortlines", "/"), 1, "sortlines: /: "),
    (("mandelbrot", "0", "1"), 2, "usage: "),
    (("mandelbrot", "a", "b"), 2, "usage: "),
    (("mandelbrot", "1"), 2, "usage: "),
    (("mandelbrot", "999999999999", "999999999999"), 1, "mandelbrot: Cannot allocate memory\n"),
    (("workshop", "-1"), 2, "usage: "),
    (("workshop", "many"), 2, "usage: "),
)
# These print a result that was asked for.
PRINTERS = (("du", os.path.dirname(os.path.abspath(__file__))), ("wc", __file__),
            ("sortlines", __file__), ("mandelbrot", "9", "9"))


def run(words, output):
    launcher = shlex.split(os.environ.get("WEFT_TEST_LAUNCHER", ""))
    program = os.path.join(sys.argv[1], words[0])
    environment = dict(os.environ)
    for name in ("ASAN_OPTIONS", "TSAN_OPTIONS"):
        environment[name] = environment.get(name, "") + ":allocator_may_return_null=1"
    return subprocess.run([*launcher, program, *words[1:]], stdout=output, stderr=subprocess.PIPE,
                          env=environment, text=True, timeout=rig.PATIENCE, check=False)


def each_error_has_its_status_and_a_sentence():
    for words, status, sentence in CASES:
        done = run(words, subprocess.DEVNULL)
        check_equal((words, done.returncode), (words, status))
        # A sanitizer may add its own warning.
        check(sentence in done.stderr, words, done.stderr)


def a_result_that_cannot_be_written_is_an_error():
    for words in PRINTERS:
        check_equal((words, run(words, subprocess.DEVNULL).returncode), (words, 0))
        with open("/dev/full", "w", encoding="ascii") as full:
            done = run(words, full)
        check_equal((words, done.returncode), (words, 1))
        check("No space left" in done.stderr, words, done.stderr)


rig.main((
    each_error_has_its_status_and_a_sentence,
    a_result_that_cannot_be_written_is_an_error,
))
