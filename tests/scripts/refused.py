#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Checks that mistakes do not compile.

Each file of tests/refused must fail to compile, as C11 and as C++17, with each compiler that is
installed, and the compiler's output must contain the text after "refused:" in the file. With
-DREFUSED_CONTROL, which a file may use to leave the mistake out, it must compile.

Usage: refused.py SOURCE_DIR
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

LANGUAGES = [("c", "-std=c11"), ("c++", "-std=c++17")]
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]


def compile_file(compiler, language, path, include, extra=()):
    kind, standard = language
    command = [compiler, "-x", kind, standard, "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra",
               "-Werror", "-Wno-unused-function", f"-I{include}", *extra, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def check(source, path):
    text = path.read_text(encoding="utf-8")
    wanted = re.search(r"refused: (.*?)\s*\*/", text)
    if wanted is None:
        return [f"{path}: no line 'refused: TEXT'"]
    problems = []
    for compiler in COMPILERS:
        for language in LANGUAGES:
            name = f"{path.name} by {compiler} as {language[0]}"
            result = compile_file(compiler, language, path, source / "include")
            if result.returncode == 0:
                problems.append(f"{name}: compiles")
            elif wanted.group(1) not in result.stderr:
                problems.append(f"{name}: fails without '{wanted.group(1)}':\n{result.stderr}")
            if "REFUSED_CONTROL" in text:
                control = compile_file(compiler, language, path, source / "include",
                                       ["-DREFUSED_CONTROL"])
                if control.returncode != 0:
                    problems.append(f"{name}: fails without the mistake:\n{control.stderr}")
    return problems


def main():
    source = Path(sys.argv[1])
    files = sorted((source / "tests/refused").glob("*.c"))
    problems = [problem for path in files for problem in check(source, path)]
    for problem in problems:
        print(problem)
    checked = len(files) * len(COMPILERS) * len(LANGUAGES)
    print(f"{checked} compilations, {len(problems)} problems")
    sys.exit(1 if problems or checked == 0 else 0)


if __name__ == "__main__":
    main()
