#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Compiles the code in the documentation: in the comments of include/, in README.md and in docs/.

Each snippet is compiled on its own, as C11 and as C++17, by gcc and by clang where they are
installed, with -Wall -Wextra -Wwrite-strings -Werror. The rules for snippets:

- In a header, a block that follows an empty comment line and is indented by 5 columns after the
  star is code. Tables and other text are indented by 3. In Markdown, code is a block marked
  "c".
- A comment in a header's snippet is a // comment. A line "..." stands for omitted code.
- Paragraphs of a snippet that define something (a function, a structure, a macro, a use of
  WEFT_CHANNEL or a similar macro) are placed at file scope. All others form the body of one
  function that returns err. With WEFT_AWAIT it is the function of a stackless task, whose state
  is self.
- Names that a snippet uses but does not declare come from tests/snippets/common.h and from
  tests/snippets/NAME.h, where NAME is that of the documented file: mutex.h, parallel.md.h.
- A snippet with main() is a whole program. It is linked and run, must exit with 0, and must
  print the contents of tests/snippets/NAME.out.
- main() does not return the result of weft_run(): an exit status has 8 bits, and WEFT_ECANCELED
  would be 0. This is checked in examples and programs, too.

Usage: snippets.py [--only NAME] [--show] SOURCE_DIR LIBRARY [LINK_FLAGS...]
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

# Documents about the internals, whose code is not for users.
LEFT_OUT = {"STYLE.md"}
WARNINGS = ["-Wall", "-Wextra", "-Wwrite-strings", "-Werror",
            "-Wno-unused-function"]  # A function may be shown without its caller.
FILE_SCOPE = re.compile(
    r"""
    \#                                          # a directive
    | typedef\b
    | (?: struct | enum | union ) \s+ \w+ \s* (?: \{ | $ )
    | (?: static | extern ) \b
    | WEFT_[A-Z0-9_]+ \( .* \) \s* (?: /\*.* )? $  # a macro that defines functions
    | [a-z] [\w\s*]* \( [^;]* \) \s* \n \{      # a function
    """,
    re.VERBOSE | re.MULTILINE,
)
MAIN = re.compile(r"\bint main\([^)]*\)\s*\{(?:[^\n]*\}|.*?^\})", re.DOTALL | re.MULTILINE)
RETURNS_RUN = re.compile(r"return\s+weft_run\s*\([^;]*\)\s*;")


class Snippet(NamedTuple):
    path: Path
    line: int
    text: str

    @property
    def name(self):
        return f"{self.path.name}:{self.line}"

    @property
    def is_program(self):
        return re.search(r"\bint main\(", self.text) is not None


# --- Extraction ---------------------------------------------------------------

def snippets_of_header(path):
    """Returns the blocks of code in comments."""
    lines = path.read_text().split("\n")
    found, block, first, previous = [], [], 0, ""
    for number, line in enumerate([*lines, ""], 1):
        is_code = line.startswith(" *     ") and line[7:8] != ""
        if is_code and (block or previous == " *"):
            first = first if block else number
            block.append(line[7:])
        elif block and line == " *":
            block.append("")
        elif block:
            found.append(Snippet(path, first, "\n".join(block).rstrip() + "\n"))
            block = []
        previous = line
    return found


def snippets_of_markdown(path):
    found, block, first = [], None, 0
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if block is None and line == "```c":
            block, first = [], number + 1
        elif block is not None and line == "```":
            found.append(Snippet(path, first, "\n".join(block) + "\n"))
            block = None
        elif block is not None:
            block.append(line)
    return found


def find_snippets(source):
    headers = sorted(source.glob("include/*.h")) + sorted(source.glob("include/weft/*.h"))
    documents = [source / "README.md", *sorted(source.glob("docs/*.md"))]
    found = [s for path in headers for s in snippets_of_header(path)]
    return found + [s for path in documents if path.name not in LEFT_OUT
                    for s in snippets_of_markdown(path)]


# --- Making programs of snippets -----------------------------------------------

def paragraphs(text):
    """Yields (line, text) for the parts between empty lines outside of braces."""
    depth, part, first = 0, [], 0
    for number, line in enumerate(text.split("\n")):
        if line == "" and depth == 0:
            if part:
                yield first, "\n".join(part)
            part = []
            continue
        first = first if part else number
        part.append(line)
        depth += line.count("{") - line.count("}")
    if part:
        yield first, "\n".join(part)


def whole_file(snippet, source):
    """Returns the text to compile: the names that the snippet needs, then its parts where they
    belong."""
    out = ["#include <weft.h>"]
    for prelude in ("common.h", snippet.path.name if snippet.path.suffix == ".h"
                    else snippet.path.name + ".h"):
        if (source / "tests/snippets" / prelude).exists():
            out.append(f'#include "{prelude}"')
    if snippet.is_program:
        return place(snippet, 0) + snippet.text
    body = []
    for line, part in paragraphs(snippet.text):
        part = re.sub(r"^( *)\.\.\.$", r"\1;", part, flags=re.MULTILINE)
        (out if FILE_SCOPE.match(part) else body).append(place(snippet, line) + part)
    if body:
        statements = "\n".join(body)
        is_task = "WEFT_AWAIT(" in statements and "WEFT_BEGIN(" not in statements
        result = "err" if re.search(r"\berr\b", statements) else "0"
        out.append("int snippet(weft_co *co, struct snippet_state *self);\n"
                   "int snippet(weft_co *co, struct snippet_state *self)\n{\n"
                   "(void)co, (void)self;"
                   + ("WEFT_BEGIN(co);" if is_task else ""))
        out.append(statements)
        out.append(f"WEFT_END(co, {result});\n}}" if is_task else f"return {result};\n}}")
    return "\n".join(out) + "\n"


def place(snippet, line):
    return f'#line {snippet.line + line} "{snippet.path}"\n'


# --- Compilation --------------------------------------------------------------

class Compiler(NamedTuple):
    command: str
    language: str
    standard: str

    def __str__(self):
        return f"{self.command} -x {self.language} -std={self.standard}"


def find_compilers():
    wanted = [("gcc", "c", "c11"), ("g++", "c++", "c++17"),
              ("clang", "c", "c11"), ("clang++", "c++", "c++17")]
    return [Compiler(*one) for one in wanted if shutil.which(one[0])]


def is_for(compiler, snippet, source):
    prelude = source / "tests/snippets" / (snippet.path.name + ".h")
    only_c = prelude.exists() and "/* C only" in prelude.read_text()
    return not only_c or compiler.language == "c"


class Run:
    def __init__(self, options, work):
        self.source = Path(options.source).resolve()
        self.library = Path(options.library).resolve()
        self.link_flags = options.link_flags
        self.work = Path(work)
        self.flags = ["-D_GNU_SOURCE", "-pthread", "-I", self.source / "include",
                      "-I", self.source / "tests/snippets", "-I", self.source / "tests/model/checker"]

    def compile(self, job):
        """Returns None or a description of the failure."""
        number, snippet, compiler = job
        file = self.work / f"{number}.{'c' if compiler.language == 'c' else 'cc'}"
        file.write_text(whole_file(snippet, self.source))
        command = [compiler.command, f"-std={compiler.standard}", *WARNINGS, *self.flags, "-O1"]
        program = self.work / f"{number}.{compiler.command}"
        if snippet.is_program:
            command += [file, "-o", program, self.library, f"-Wl,-rpath,{self.library.parent}",
                        *self.link_flags]
        else:
            command += ["-c", file, "-o", "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"{snippet.name}: {compiler}\n{done.stderr}"
        return self.execute(snippet, program) if snippet.is_program else None

    def execute(self, snippet, program):
        wanted = (self.source / "tests/snippets" / (snippet.path.name + ".out")).read_text()
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        if (done.returncode, done.stdout) != (0, wanted):
            return f"{snippet.name}: exit status {done.returncode}, printed:\n{done.stdout}{done.stderr}"
        return None


def check_mains(source):
    """Finds files in which main() returns the result of weft_run()."""
    folders = ("examples", "include", "docs", "tests", "bench")
    files = [source / "README.md"] + [path for folder in folders
                                      for path in sorted((source / folder).rglob("*"))
                                      if path.suffix in {".c", ".cc", ".h", ".md", ".sh"}]
    for path in files:
        text = path.read_text()
        for main_function in MAIN.finditer(text):
            for match in RETURNS_RUN.finditer(main_function[0]):
                if not re.search(r"[!=]= 0", match[0]):
                    line = text.count("\n", 0, main_function.start() + match.start()) + 1
                    yield f"{path}:{line}: main() must not return the result of weft_run()"


def main():
    parser = argparse.ArgumentParser(description="Compiles the code in the documentation.")
    parser.add_argument("--only", help="snippets of this file only")
    parser.add_argument("--show", action="store_true", help="print what would be compiled")
    parser.add_argument("source")
    parser.add_argument("library")
    parser.add_argument("link_flags", nargs="*")
    options = parser.parse_args()
    source = Path(options.source).resolve()
    snippets = [s for s in find_snippets(source) if options.only in (None, s.path.name)]
    if options.show:
        for snippet in snippets:
            print(f"--- {snippet.name}\n{whole_file(snippet, source)}")
        return 0
    compilers = find_compilers()
    pairs = [(s, c) for s in snippets for c in compilers if is_for(c, s, source)]
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(os.cpu_count()) as pool:
        run = Run(options, work)
        wrong = list(pool.map(run.compile, [(n, *pair) for n, pair in enumerate(pairs)]))
    findings = [text for text in wrong if text] + list(check_mains(source))
    print("\n".join(findings), end="\n" if findings else "")
    programs = sum(s.is_program for s in snippets)
    print(f"{len(snippets)} snippets, {programs} of them run; {len(pairs)} compiled, "
          f"{len(findings)} wrong")
    # A rule that matches nothing would pass as well.
    is_enough = options.only is not None or (len(snippets) >= 40 and programs >= 1)
    return 0 if not findings and is_enough and compilers else 1


if __name__ == "__main__":
    sys.exit(main())
