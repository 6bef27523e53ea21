#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Tests of tools/tidy. Each rule is shown trees that it must pass and trees with a
planted fault that it must find, in the right file and line.

Run: python3 tests/tools/tidy_test.py
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "tidy"


def load_tidy():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("tidy", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", loader))
    sys.modules["tidy"] = module
    loader.exec_module(module)
    return module


tidy = load_tidy()

# Under a git hook these would send git to the outer repository.
for variable in [name for name in os.environ if name.startswith("GIT_")]:
    del os.environ[variable]


class Case(unittest.TestCase):
    """A temporary tree, and what one rule says about it."""

    rule = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tidy_test_")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, files):
        for path, text in files.items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)

    def run_tidy(self, *arguments):
        """The exit code and the lines printed."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = tidy.main(["--root", str(self.root), *arguments])
        return code, output.getvalue().splitlines()

    def findings(self, files, *arguments):
        self.write(files)
        code, lines = self.run_tidy(*arguments, self.rule)
        *findings, summary = lines
        self.assertRegex(summary, rf"^tidy: \d+ files, 1 rules, {len(findings)} findings$")
        self.assertEqual(code, 1 if findings else 0)
        return findings

    def assert_clean(self, files, *arguments):
        self.assertEqual(self.findings(files, *arguments), [])

    def assert_finds(self, files, *expected):
        """Exactly one finding for each (place, words in the message)."""
        findings = self.findings(files)
        self.assertEqual(len(findings), len(expected), findings)
        for finding, (place, words) in zip(findings, expected):
            self.assertTrue(finding.startswith(f"{place}: {self.rule}: "), finding)
            self.assertIn(words, finding)


class Ranks(Case):
    rule = "ranks"

    def test_own_lower_public_and_system_headers_pass(self):
        self.assert_clean(
            {
                "src/sched/worker.c": '#include "sched/worker.h"\n#include "queue/ring.h"\n'
                '#include "base/atomic.h"\n#include <weft/task.h>\n#include "weft.h"\n'
                '#include <stdio.h>\n/* #include "rt/x.h" */\n',
                "include/weft.h": '#include <weft/task.h>\n#include "weft/time.h"\n',
                "include/weft/task.h": '#include <stddef.h>\n#include "time.h"\n',
                "include/weft/time.h": "",
            }
        )

    def test_higher_rank_is_found(self):
        self.assert_finds(
            {"src/queue/ring.c": '#include "queue/ring.h"\n#include "sched/task.h"\n'},
            ("src/queue/ring.c:2", "queue (rank 1) may not include sched (rank 2)"),
        )

    def test_same_rank_is_found(self):
        self.assert_finds(
            {"src/queue/ring.h": '#  include "fiber/stack.h"\n'},
            ("src/queue/ring.h:1", "fiber"),
        )

    def test_header_in_angle_brackets_is_found(self):
        self.assert_finds(
            {"src/base/lock.c": "#include <rt/builder.h>\n", "src/rt/builder.h": ""},
            ("src/base/lock.c:1", "rt (rank 6)"),
        )

    def test_unknown_folders_are_found(self):
        self.assert_finds(
            {
                "src/flat.c": "",
                "src/rt/builder.c": '#include "util/list.h"\n#include "builder.h"\n',
                "src/util/list.h": "",
            },
            ("src/flat.c:1", "rank"),
            ("src/rt/builder.c:1", "util/list.h"),
            ("src/rt/builder.c:2", '"rt/builder.h"'),
            ("src/util/list.h:1", "rank"),
        )

    def test_internal_header_in_public_one_is_found(self):
        self.assert_finds(
            {
                "include/weft/task.h": '#include "base/atomic.h"\n#include <base/list.h>\n',
                "src/base/list.h": "",
            },
            ("include/weft/task.h:1", "base/atomic.h"),
            ("include/weft/task.h:2", "base/list.h"),
        )

    def test_included_c_file_is_found(self):
        self.assert_finds(
            {
                "src/queue/ring.c": '#include "queue/deque.c"\n',
                "tests/unit/queue/ring_test.c": '#include "queue/ring.c"\n',
            },
            ("src/queue/ring.c:1", "by itself"),
            ("tests/unit/queue/ring_test.c:1", "by itself"),
        )


def function_of(lines, name="wf_long"):
    """A function whose body, braces included, has this many lines."""
    return f"int {name}(void)\n{{\n" + "    work();\n" * (lines - 2) + "}\n"


class Sizes(Case):
    rule = "sizes"

    def test_the_limits_themselves_pass(self):
        self.assert_clean(
            {
                "src/base/a.c": "\n" * 1000,
                "tests/unit/base/a_test.c": function_of(70) + "\n" * 2000,
                "include/weft/a.h": "/*" + "x" * 96 + "*/\n",
            }
        )

    def test_long_files_are_found(self):
        self.assert_finds(
            {"src/base/a.c": "\n" * 1001, "src/base/b.h": "\n" * 1002},
            ("src/base/a.c:1001", "1001 lines"),
            ("src/base/b.h:1001", "1002 lines"),
        )

    def test_long_functions_are_found(self):
        short = "static int short_one(void)\n{\n    return 0;\n}\n\n"
        self.assert_finds(
            {
                "bench/micro/b.c": function_of(71, "main"),
                "src/base/a.c": short + function_of(71) + short,
            },
            ("bench/micro/b.c:2", "main has 71 lines"),
            ("src/base/a.c:7", "wf_long has 71 lines"),
        )

    def test_braces_in_text_do_not_end_a_function(self):
        body = function_of(70).replace("    work();\n", '    puts("\\"}");\n/*\n}\n*/\n', 1)
        self.assert_finds({"src/base/a.c": body}, ("src/base/a.c:2", "73 lines"))

    def test_long_line_is_found(self):
        self.assert_finds(
            {"examples/a.c": "\n/*" + "x" * 97 + "*/\n"}, ("examples/a.c:2", "101 columns")
        )


def body(*lines):
    """A source file with these lines in a function; the first is line 3."""
    return "void wf_f(void)\n{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


class Atomics(Case):
    rule = "atomics"

    def assert_covered(self, *lines):
        self.assert_clean({"src/queue/a.c": body(*lines)})

    def assert_uncovered(self, line, words, *lines):
        self.assert_finds({"src/queue/a.c": body(*lines)}, (f"src/queue/a.c:{line}", words))

    def test_comment_above_covers(self):
        self.assert_covered("/* acquire [R1]: the slot is filled. */", "x = wf_load_acquire(&a);")

    def test_comment_at_the_end_covers(self):
        self.assert_covered("x = wf_load_acquire(&a); /* acquire [R1]: filled. */")

    def test_long_comment_covers(self):
        self.assert_covered(
            "/* relaxed: published by the release below,", " * so nobody", " * sees it. */",
            "wf_store_relaxed(&a, 1);",
        )

    def test_statement_over_several_lines_is_covered(self):
        self.assert_covered(
            "/* acq_rel [R1]: both ways. */", "if (ready &&", "    !wf_cas_weak_acq_rel(&a,",
            "                         &b, c)) {", "}",
        )

    def test_for_with_semicolons_on_lines_of_their_own_is_covered(self):
        self.assert_covered(
            "/* acquire [R1]: filled. */", "for (x = first(list);", "     x != NULL;",
            "     x = wf_load_acquire(&x->next)) {", "}",
        )

    def test_comment_covers_consecutive_statements_whose_orders_it_names(self):
        self.assert_covered(
            "/* relaxed: only we write it. acquire [R1]: the slot is filled. */",
            "tail = wf_load_relaxed(&a);", "mask = 7;", "head = wf_load_acquire(&b);",
        )

    def test_initialiser_is_part_of_its_statement(self):
        self.assert_covered(
            "/* relaxed: a snapshot for people. */", "struct wf_s s = {",
            "    .a = wf_load_relaxed(&a),", "};", "",
            "/* relaxed: a snapshot for people. */", "return (struct wf_s){",
            "    .a = wf_load_relaxed(&a),", "};",
        )

    def test_comment_inside_a_statement_covers(self):
        self.assert_covered(
            "if (ready &&", "    /* acquire [R1]: filled. */", "    wf_load_acquire(&a)) {", "}"
        )

    def test_comment_after_a_label_covers(self):
        self.assert_covered(
            "switch (x) {", "case 1:", "    /* acquire [R1]: filled. */",
            "    y = wf_load_acquire(&a);", "}",
        )

    def test_end_of_do_loop_is_covered_from_above_or_inside(self):
        self.assert_covered(
            "/* release [R1]: the slot is filled. */", "do {", "    next();",
            "} while (!wf_cas_weak_release(&a, &b, c));", "",
            "do {", "    next();", "    /* release [R1]: the slot is filled. */",
            "} while (!wf_cas_weak_release(&a, &b, c));", "",
            "do {", "    next();", "} /* release [R1]: the slot is filled. */",
            "while (!wf_cas_weak_release(&a, &b, c));",
        )

    def test_else_if_is_covered_from_above_the_if(self):
        self.assert_covered(
            "/* acquire [R1]: the slot is filled. */", "if (x) {", "    y();",
            "} else if (wf_load_acquire(&a)) {", "}",
        )

    def test_macro_is_covered(self):
        self.assert_clean(
            {
                "src/queue/a.h": "/* acquire [R1]: the slot is filled. */\n"
                "#define WF_HEAD(p) wf_load_acquire(&(p)->head)\n\n"
                "#define WF_PUT(p, v) \\\n    do { \\\n        /* release [R1]: it is filled, \\\n"
                "         * at last. */ \\\n        wf_store_release(p, v); \\\n    } while (0)\n"
            }
        )

    def test_fence_is_covered_by_its_word_and_edge(self):
        self.assert_covered("/* full fence [I1]: store before load. */", "wf_fence_full();")

    def test_functions_with_similar_names_need_no_comment(self):
        self.assert_covered("wf_task_release(t);", "wf_lock_acquire(lock);", "wf_fence_word = 1;")

    def test_accesses_in_strings_and_comments_need_none(self):
        self.assert_covered('puts("wf_load_acquire(&a)");', "/* wf_load_acquire(&a) */")

    def test_missing_comment_is_found(self):
        self.assert_uncovered(3, "its order", "x = wf_load_acquire(&a);")

    def test_comment_behind_a_blank_line_is_found(self):
        self.assert_uncovered(
            5, "its order", "/* acquire [R1]: filled. */", "", "x = wf_load_acquire(&a);"
        )

    def test_comment_does_not_reach_over_a_blank_line(self):
        self.assert_uncovered(
            6, "its order", "/* relaxed: a mere hint here. */", "x = wf_load_relaxed(&a);", "",
            "y = wf_load_relaxed(&b);",
        )

    def test_comment_outside_the_braces_is_found(self):
        self.assert_uncovered(
            5, "its order", "/* acquire [R1]: filled. */", "if (y) {",
            "    x = wf_load_acquire(&a);", "}",
        )

    def test_comment_of_another_case_is_found(self):
        self.assert_uncovered(
            7, "its order", "/* relaxed: a mere hint here. */", "x = wf_load_relaxed(&a);",
            "break;", "case 2:", "y = wf_load_relaxed(&a);",
        )

    def test_wrong_order_is_found(self):
        self.assert_uncovered(
            4, '"acquire"', "/* release [R1]: filled. */", "x = wf_load_acquire(&a);"
        )

    def test_order_that_a_shared_comment_leaves_out_is_found(self):
        self.assert_uncovered(
            5, '"acquire"', "/* relaxed: the owner is the only writer. */",
            "x = wf_load_relaxed(&a);", "y = wf_load_acquire(&b);",
        )

    def test_nearer_comment_hides_the_one_above_it(self):
        self.assert_uncovered(
            6, '"acquire"', "/* acquire [R1]: filled. */", "x = wf_load_acquire(&a);",
            "/* Then the other one. */", "y = wf_load_acquire(&b);",
        )

    def test_missing_edge_is_found(self):
        self.assert_uncovered(
            4, "edge", "/* release: the slot is filled. */", "wf_store_release(&a, 1);"
        )
        self.assert_uncovered(4, "edge", "/* A fence that says nothing. */", "wf_fence_full();")

    def test_relaxed_without_reason_is_found(self):
        self.assert_uncovered(
            4, "why relaxed", "/* relaxed: no matter. */", "x = wf_load_relaxed(&a);"
        )

    def test_line_comment_does_not_count(self):
        self.assert_uncovered(
            4, "its order", "// acquire [R1]: filled.", "x = wf_load_acquire(&a);"
        )

    def test_raw_atomics_are_found(self):
        self.assert_finds(
            {
                "src/base/atomic.h": "#include <stdatomic.h>\n"
                "#define wf_load_relaxed(p) atomic_load_explicit(p, memory_order_relaxed)\n",
                "src/queue/a.c": "#include <stdatomic.h>\nstatic _Atomic int n;\n"
                + body("atomic_fetch_add(&n, 1);", "__atomic_load_n(p);", "__sync_synchronize();"),
            },
            ("src/queue/a.c:1", "base/atomic.h"),
            ("src/queue/a.c:5", "atomic_fetch_add"),
            ("src/queue/a.c:6", "__atomic_load_n"),
            ("src/queue/a.c:7", "__sync_synchronize"),
        )

    def test_accessor_that_would_go_unchecked_is_found(self):
        self.assert_finds(
            {"src/base/atomic.h": "#define wf_get_acquire(p) x\n#define wf_cas_acq_rel(p) y\n"},
            ("src/base/atomic.h:1", "wf_get_acquire"),
        )

    def test_builtins_in_public_headers_need_comments(self):
        load = "x = __atomic_load_n(&a, __ATOMIC_ACQUIRE);"
        self.assert_clean({"include/weft/par.h": body("/* acquire [J1]: seen whole. */", load)})
        self.assert_finds({"include/weft/par.h": body(load)}, ("include/weft/par.h:3", "its order"))


def edge_user(order, tag, call):
    return f"    /* {order} {tag}: it is seen. */\n    {call};\n\n"


RELEASE = edge_user("release", "[R1]", "wf_store_release(&a, 1)")
ACQUIRE = edge_user("acquire", "[R1]", "x = wf_load_acquire(&a)")


def edge_file(opening, *users):
    return f"/* SPDX-License-Identifier: MIT */\n/* {opening} */\nvoid wf_f(void)\n{{\n" + "".join(
        users
    ) + "}\n"


class Edges(Case):
    rule = "edges"

    def test_listed_edge_with_both_sides_passes(self):
        self.assert_clean({"src/queue/a.c": edge_file("[R1] the slot.", RELEASE, ACQUIRE)})

    def test_edge_listed_in_the_header_passes(self):
        self.assert_clean(
            {
                "src/queue/a.c": edge_file("Edge [R1], see a.h.", RELEASE, ACQUIRE),
                "src/queue/a.h": "/* SPDX */\n#ifndef A_H\n#define A_H\n/* [R1] the slot. */\n",
            }
        )

    def test_edge_between_files_of_a_folder_passes(self):
        self.assert_clean(
            {
                "src/queue/a.c": edge_file("[R1] the slot.", RELEASE),
                "src/queue/b.c": edge_file("The taker.", ACQUIRE),
            }
        )

    def test_edge_of_an_included_header_passes(self):
        self.assert_clean(
            {
                "src/sched/driver.h": "/* [R1] the slot. */\n",
                "src/sched/park.c": edge_file("Sleep.", RELEASE),
                "src/io/epoll.c": '#include "sched/driver.h"\n' + edge_file("Polls.", ACQUIRE),
            }
        )

    def test_pointer_to_another_file_is_no_listing(self):
        self.assert_clean(
            {
                "src/queue/a.c": edge_file("[R1] the slot.", RELEASE, ACQUIRE),
                "src/sched/b.c": edge_file("See a.c's [R1]; [R1] of queue/a.c."),
            }
        )

    def test_fence_is_both_sides(self):
        fence = edge_user("full fence", "[I1]", "wf_fence_full()")
        self.assert_clean({"src/sched/a.c": edge_file("[I1] no lost wake.", fence, fence)})

    def test_unlisted_tag_is_found_at_each_access(self):
        self.assert_finds(
            {"src/queue/a.c": edge_file("Nothing.", RELEASE, ACQUIRE)},
            ("src/queue/a.c:6", "explain [R1]"),
            ("src/queue/a.c:9", "explain [R1]"),
        )

    def test_listing_in_a_folder_that_is_not_included_is_found(self):
        self.assert_finds(
            {
                "src/queue/a.c": edge_file("[R1] the slot.", RELEASE),
                "src/sched/b.c": edge_file("The taker.", ACQUIRE),
            },
            ("src/sched/b.c:6", "explain [R1]"),
        )

    def test_lonely_edge_is_found(self):
        self.assert_finds(
            {"src/queue/a.c": edge_file("[R1] the slot.", RELEASE)},
            ("src/queue/a.c:2", "one access only"),
        )

    def test_relaxed_access_is_no_side(self):
        relaxed = edge_user("relaxed", "published by [R1]", "wf_store_relaxed(&b, 1)")
        self.assert_finds(
            {"src/queue/a.c": edge_file("[R1] the slot.", RELEASE, relaxed)},
            ("src/queue/a.c:2", "one access only"),
        )

    def test_order_takes_the_tags_that_follow_it(self):
        both = (
            "    /* acquire [R2]: free. release [R1]: filled. */\n"
            "    x = wf_load_acquire(&b);\n    wf_store_release(&a, 1);\n\n"
        )
        self.assert_finds(
            {"src/queue/a.c": edge_file("[R1] filled. [R2] free.", both)},
            ("src/queue/a.c:2", "[R1] is used by one access only"),
            ("src/queue/a.c:2", "[R2] is used by one access only"),
        )

    def test_one_sided_edges_are_found(self):
        self.assert_finds(
            {"src/queue/a.c": edge_file("[R1] the slot.", RELEASE, RELEASE)},
            ("src/queue/a.c:2", "no acquire side"),
        )
        self.assert_finds(
            {"src/queue/a.c": edge_file("[R1] the slot.", ACQUIRE, ACQUIRE)},
            ("src/queue/a.c:2", "no release side"),
        )

    def test_unused_listing_is_found(self):
        self.assert_finds(
            {"src/queue/a.c": "/*\n * a.c\n * [R1] the slot.\n */\n"},
            ("src/queue/a.c:3", "no access"),
        )

    def test_tag_listed_by_two_files_is_found(self):
        self.assert_finds(
            {
                "src/queue/a.c": edge_file("[R1] the slot.", RELEASE, ACQUIRE),
                "src/queue/b.c": edge_file("[R1] another slot.", RELEASE, ACQUIRE),
            },
            ("src/queue/b.c:2", "src/queue/a.c"),
        )


class Tests(Case):
    rule = "tests"

    def test_tested_files_pass(self):
        self.assert_clean(
            {
                "src/queue/ring.c": function_of(3),
                "src/queue/ring.h": "static inline " + function_of(3),
                "src/queue/node.h": "struct wf_node {\n    int x;\n};\nvoid wf_node_init(void);\n",
                "tests/unit/queue/ring_test.c": "",
            }
        )

    def test_untested_files_are_found(self):
        self.assert_finds(
            {
                "src/base/list.h": "static inline " + function_of(3),
                "src/queue/ring.c": "",
                "tests/unit/ring_test.c": "",
            },
            ("src/base/list.h:1", "tests/unit/base/list_test.c"),
            ("src/queue/ring.c:1", "tests/unit/queue/ring_test.c"),
        )


class Exports(Case):
    rule = "exports"

    def library(self, text):
        self.write({"lib.c": text})
        lib = self.root / "libweft.so"
        command = ["cc", "-shared", "-fPIC", "-o", lib, self.root / "lib.c"]
        subprocess.run(command, check=True)
        return str(lib)

    def test_prefixed_symbols_pass(self):
        lib = self.library("int weft_run(void) { return 0; }\nstatic int x; int *weft_x = &x;\n")
        self.assert_clean({}, "--lib", lib)

    def test_other_symbols_are_found(self):
        lib = self.library("int weft_run(void) { return 0; }\nint wf_hidden;\n")
        (finding,) = self.findings({}, "--lib", lib)
        self.assertEqual(finding, f"{lib}:1: exports: hide wf_hidden, or name it weft_...")

    def test_missing_library_is_found(self):
        (finding,) = self.findings({}, "--lib", str(self.root / "no.so"))
        self.assertIn("nm cannot read it", finding)

    def test_rule_without_library_is_a_usage_error(self):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            self.run_tidy("exports")


class Algorithms(Case):
    rule = "algorithms"

    LOOP = (
        "WEFT_API int weft_for(size_t end, weft_range_fn body,\n"
        "                      const weft_par_options *options);\n"
    )

    def test_algorithms_with_rows_pass(self):
        self.assert_clean(
            {
                "include/weft/loop.h": self.LOOP + "WEFT_API size_t weft_scratch(size_t count);\n",
                "tests/support/algorithms.c": "const struct row rows[] = {\n"
                "    ROW(weft_for, 1, 0),\n};\n",
            }
        )

    def test_algorithm_without_row_is_found(self):
        (finding,) = self.findings(
            {
                "include/weft/loop.h": self.LOOP,
                "tests/support/algorithms.c": "    ROW(weft_for_2d, 1, 0),\n",
            }
        )
        self.assertIn("add a row for weft_for to tests/support/algorithms.c", finding)

    def test_missing_table_is_found(self):
        (finding,) = self.findings({"include/weft/loop.h": self.LOOP})
        self.assertIn("add a row for weft_for", finding)


class Calls(Case):
    rule = "calls"

    HEADER = (
        "WEFT_API int weft_lock(weft_mutex *mutex, weft_time deadline);\n"
        "WEFT_API void weft_lock_init(weft_op *op, weft_mutex *mutex);\n"
        "/*\n * Ends it.\n *\n * Suspends: until it has ended.\n */\n"
        "WEFT_API int weft_end(weft_scope *scope);\n"
        "/*\n * Stops it.\n *\n * Suspends: never.\n */\n"
        "WEFT_API bool weft_stop(weft_timer *timer);\n"
    )

    def test_calls_with_rows_pass(self):
        self.assert_clean(
            {
                "include/weft/a.h": self.HEADER,
                "tests/support/calls_a.c": '{ .name = "weft_lock" }, { .name = "weft_end" }\n',
            }
        )

    def test_calls_without_rows_are_found(self):
        found = self.findings(
            {
                "include/weft/a.h": self.HEADER,
                "tests/support/calls_a.c": '{ .name = "weft_unlock" }\n',
            }
        )
        self.assertEqual(len(found), 3)
        for name in ("weft_lock", "weft_lock_init", "weft_end"):
            self.assertTrue(any(f"add a row for {name} to" in finding for finding in found))


class Headers(Case):
    rule = "headers"

    def test_standalone_headers_pass(self):
        self.assert_clean(
            {
                "include/weft.h": "#pragma once\n#include <weft/base.h>\n",
                "include/weft/base.h": "#ifndef B\n#define B\n#include <stddef.h>\n"
                "size_t weft_size(void);\nstruct weft_s { int x; };\n#endif\n",
            }
        )

    def test_headers_that_do_not_stand_alone_are_found(self):
        self.assert_finds(
            {
                "include/weft.h": "#pragma once\n#include <weft/missing.h>\n",
                "include/weft/cxx.h": "#pragma once\nint weft_new(int new);\n",
                "include/weft/guard.h": "struct weft_s { int x; };\n",
                "include/weft/needs.h": "#pragma once\n\nsize_t weft_size(void);\n",
            },
            ("include/weft.h:2", "C++17: weft/missing.h"),
            ("include/weft.h:2", "C11: weft/missing.h"),
            ("include/weft/cxx.h:2", "C++17"),
            ("include/weft/guard.h:1", "C++17: redefinition"),
            ("include/weft/guard.h:1", "C11: redefinition"),
            ("include/weft/needs.h:3", "C++17"),
            ("include/weft/needs.h:3", "C11: unknown type name"),
        )

    def test_missing_compiler_is_found(self):
        self.write({"include/weft.h": ""})
        (finding,) = self.findings({}, "--cc", "no-such-compiler")
        self.assertIn("C11", finding)


class Docs(Case):
    rule = "docs"

    def test_documented_declarations_pass(self):
        self.assert_clean(
            {
                "include/weft/a.h": "#define WEFT_API\nWEFT_EXTERN_C_BEGIN\n\n"
                "/* Runs it. */\nWEFT_API int weft_run(void);\n\n"
                "/*\n * Stops it.\n */\nWEFT_NODISCARD\nWEFT_API int weft_stop(\n    void);\n"
                "/* Mentions WEFT_API. */\nint weft_x;\n\nWEFT_EXTERN_C_END\n"
            }
        )

    def test_bare_declarations_are_found(self):
        self.assert_finds(
            {
                "include/weft/a.h": "/* Runs it. */\nWEFT_API int weft_run(void);\n"
                "WEFT_API int weft_stop(void);\n\n/* Far away. */\n\nWEFT_API int weft_go(void);\n"
            },
            ("include/weft/a.h:3", "weft_stop"),
            ("include/weft/a.h:7", "weft_go"),
        )


class Handles(Case):
    rule = "handles"
    declarations = (
        "WEFT_API int weft_read(weft_stream *stream, void *buffer);\n"
        "WEFT_API int weft_open(weft_stream **stream);\n"
        "WEFT_API void weft_accept_init(weft_io *io,\n"
        "                               weft_listener *listener);\n"
        "typedef struct weft_writer { weft_stream *stream; } weft_writer;\n"
    )

    def test_functions_that_are_tried_pass(self):
        self.assert_clean(
            {
                "include/weft/io.h": self.declarations,
                "tests/unit/net/handle_test.c": "RUN(weft_read(h))\nRUN(weft_accept_init(io, h))\n",
            }
        )

    def test_functions_that_are_not_tried_are_found(self):
        self.assert_finds(
            {
                "include/weft/io.h": self.declarations,
                "tests/unit/net/handle_test.c": "RUN(weft_accept(io, h))\nRUN(weft_open(&h))\n",
            },
            ("include/weft/io.h:1", "weft_read"),
            ("include/weft/io.h:3", "weft_accept_init"),
        )

    def test_without_the_test_all_are_found(self):
        self.assert_finds(
            {"include/weft/io.h": "WEFT_API int weft_read(weft_stream *stream);\n"},
            ("include/weft/io.h:1", "handle_test.c"),
        )


class Forbidden(Case):
    rule = "forbidden"

    def test_names_that_merely_look_like_it_pass(self):
        self.assert_clean(
            {
                "src/base/a.c": "#include <signal.h>\n"
                + body(
                    "wf_free(x);", "alloc->free(x);", "alloc.free(x);", "wf_sleep(1);",
                    "static_assert(1, \"\");", "WF_ASSERT(x);", "snprintf(b, n, \"malloc(1)\");",
                    "syscall(SYS_futex);", "mkstemp(\"XXXXXX\");", "void (*free)(void *);",
                    "/* TODO(#12): see http://example.org, and do not sleep() */",
                ),
                "src/base/alloc.c": body("free(malloc(1));"),
                "src/io/uring.c": body("syscall(SYS_io_uring_enter);"),
                "bench/micro/a.c": body("printf(\"%d\", x);", "free(x);"),
                "tests/unit/a_test.c": body("weft_sleep(1);", "free(x);", "assert(x);"),
            }
        )

    def test_each_function_is_found(self):
        names = (
            "strcpy strcat sprintf gets vsprintf strtok atoi atol rand srand "
            "sleep usleep nanosleep signal alloca setjmp longjmp assert "
            "pthread_mutex_lock pthread_cond_wait malloc calloc realloc free syscall printf puts"
        ).split()
        self.assert_finds(
            {"src/net/a.c": body(*(f"{name}(x);" for name in names))},
            *((f"src/net/a.c:{line}", name) for line, name in enumerate(names, 3)),
        )

    def test_sleep_in_a_test_is_found(self):
        self.assert_finds(
            {"tests/stress/a.c": body("usleep(10);")}, ("tests/stress/a.c:3", "wait for the event")
        )

    def test_assert_header_and_stdout_are_found(self):
        self.assert_finds(
            {"src/rt/a.c": "#include <assert.h>\n" + body("fprintf(stdout, x);")},
            ("src/rt/a.c:1", "WF_ASSERT"),
            ("src/rt/a.c:4", "stdout"),
        )

    def test_text_faults_are_found(self):
        self.assert_finds(
            {
                "src/base/a.c": "/* TODO: later */\n/* FIXME(me) */\nint x; // why\n\tint y;\n"
                "int z; \n/* XXX */\nint w;\r\n"
            },
            ("src/base/a.c:1", "TODO"),
            ("src/base/a.c:2", "FIXME"),
            ("src/base/a.c:3", "//"),
            ("src/base/a.c:4", "tab"),
            ("src/base/a.c:5", "trailing space"),
            ("src/base/a.c:6", "XXX"),
            ("src/base/a.c:7", "carriage return"),
        )


class Spdx(Case):
    rule = "spdx"

    def test_marked_files_and_other_kinds_pass(self):
        line = "SPDX-License-Identifier: MIT"
        self.assert_clean(
            {
                "src/a/a.c": f"/* {line} */\n",
                "tools/check": f"#!/bin/sh\n#\n# {line}\n",
                "CMakeLists.txt": f"# {line}\n",
                "README.md": "# weft\n",
                "LICENSE": "",
            }
        )

    def test_unmarked_files_are_found(self):
        paths = (
            "CMakeLists.txt", "Makefile", "cmake/a.cmake", "include/a.h", "src/a/a.S", "src/a/a.c",
            "tests/a.py", "tools/check", "tools/run.sh",
        )
        late = "\n\n\n/* SPDX-License-Identifier: MIT */\n"
        self.assert_finds({path: late for path in paths}, *((f"{p}:1", "SPDX") for p in paths))


class Names(Case):
    rule = "names"

    def test_prefixed_names_pass(self):
        self.assert_clean(
            {
                "include/weft/a.h": "#define WEFT_X 1\n#define errno (*weft_errno())\n"
                'extern "C" {\nWEFT_API WEFT_NODISCARD int weft_run(int (*fn)(void *arg));\n}\n'
                "typedef int (*weft_fn)(void *);\nstatic inline int weft_two(void)\n{\n"
                "    return two(1);\n}\n__attribute__((noinline)) void *weft_x(void);\n",
                "src/base/a.c": "_Static_assert(1 && sizeof(int) == 4, \"\");\n"
                "static int helper(void)\n{\n    return call(1);\n}\n"
                "WF_PRINTF(1, 2) void wf_print(const char *format)\n{\n}\n"
                "extern _Atomic(int) word;\nextern int (*hook)(void);\n"
                "static const int table[] = { SIZE(1), size(2) };\n#define anything(x) x\n"
                "int weft_run(void)\n{\n    if (x) {\n    }\n    return 0;\n}\n",
                "src/fiber/switch.S": ".globl wf_switch\n.global weft_entry\n",
            }
        )

    def test_branches_that_open_a_block_twice_do_not_hide_the_rest(self):
        self.assert_finds(
            {
                "src/base/a.c": "static int f(void)\n{\n#ifdef A\n    if (a) {\n#else\n    if (b) {"
                "\n#endif\n    }\n    return 0;\n}\n\nint g(int x)\n{\n    return h(x);\n}\n"
            },
            ("src/base/a.c:12", "name g "),
        )

    def test_bare_names_are_found(self):
        self.assert_finds(
            {
                "include/weft/a.h": "#define SPAWN(x) x\nint wf_inner(void);\n"
                "static inline int two(void)\n{\n    return 2;\n}\n",
                "src/base/a.c": "int helper(int x,\n           int y)\n{\n    return 0;\n}\n",
                "src/base/a.h": "void init_all(void);\n",
                "src/fiber/switch.S": "\n    .globl switch_stack\n",
            },
            ("include/weft/a.h:1", "SPAWN"),
            ("include/weft/a.h:2", "wf_inner"),
            ("include/weft/a.h:3", "two"),
            ("src/base/a.c:2", "helper"),
            ("src/base/a.h:1", "init_all"),
            ("src/fiber/switch.S:2", "switch_stack"),
        )


class CommandLine(Case):
    def test_runs_all_rules_but_exports_and_passes_an_empty_tree(self):
        result = subprocess.run(
            [SCRIPT, "--root", self.root], capture_output=True, text=True, check=False
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, "tidy: 0 files, 13 rules, 0 findings\n")

    def test_fails_on_a_finding(self):
        self.write({"src/base/a.h": ""})
        code, lines = self.run_tidy("spdx", "names")
        self.assertEqual(code, 1)
        self.assertEqual(
            lines,
            [
                "src/base/a.h:1: spdx: add a comment line with SPDX-License-Identifier: MIT",
                "tidy: 1 files, 2 rules, 1 findings",
            ],
        )

    def test_unknown_rule_is_a_usage_error(self):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            self.run_tidy("no-such-rule")

    def test_sees_untracked_files_but_no_ignored_or_deleted_ones(self):
        self.write({".gitignore": "/out/\n", "out/a.c": "", "new.c": "", "old.c": ""})
        for command in (["init", "-q"], ["add", "old.c"]):
            subprocess.run(["git", "-C", self.root, *command], check=True)
        (self.root / "old.c").unlink()
        _, lines = self.run_tidy("spdx")
        self.assertEqual([line.split(":")[0] for line in lines], ["new.c", "tidy"])

    def test_broken_code_does_not_stop_it(self):
        self.write({"src/base/a.c": "#define A (\n#if (\nint f(\n{{ } ) } }\n\"\n'\n/* open"})
        self.run_tidy()

    def test_is_fast(self):
        text = "/* SPDX-License-Identifier: MIT */\n" + 12 * body(
            "/* acquire [R1]: the slot is filled. */", "x = wf_load_acquire(&a);", "",
            *(f"call({i}, \"text\"); /* note */" for i in range(50)),
        )
        count = 30000 // text.count("\n") + 1
        self.write({f"src/base/f{i}.c": text for i in range(count)})
        start = sum(os.times()[:4])  # CPU time, so that other load does not matter
        self.run_tidy()
        self.assertLess(sum(os.times()[:4]) - start, 10)


if __name__ == "__main__":
    unittest.main()
