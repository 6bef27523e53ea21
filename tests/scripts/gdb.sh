#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/weft-gdb.py finds every fiber and its frames: in a process, in core files, and in
# damaged memory. It reports what is missing if there is nothing to find.
# Usage: gdb.sh PROGRAM LIBRARY SOURCE_DIR
# PROGRAM is tests/programs/fibers_gdb.c, linked with the shared LIBRARY.
set -eu
program=$1
library=$2
script=$3/tools/weft-gdb.py
source=$3/tests/programs/fibers_gdb.c
[ -x "$program" ]
[ -r "$library" ]
unset WEFT_WORKERS

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
    echo "skipped: $1"
    exit 77
}

# The exit code of gdb only says whether the last command failed.
gdb() {
    command gdb -nx --batch -iex 'set debuginfod enabled off' \
        -iex 'set disable-randomization off' -x "$script" "$@" </dev/null || true
}

gdb -ex 'python import gdb.unwinder; print("has", "python")' 2>&1 | grep -q 'has python' ||
    skip "this gdb has no Python"
readelf -S "$library" | grep -q debug_info || skip "$library was built without -g"
gdb -ex starti -ex 'info inferiors' "$program" 2>&1 | grep -q 'process [0-9]' ||
    skip "no process can be traced here"

# expect FILE REGEX: checks that a line of the file matches.
expect() {
    if ! grep -Eq -e "$2" "$1"; then
        echo "no line of ${1#"$work"/} matches: $2"
        cat "$1"
        exit 1
    fi
}

expect_not() {
    if grep -Eq -e "$2" "$1"; then
        echo "a line of ${1#"$work"/} matches: $2"
        cat "$1"
        exit 1
    fi
}

# Prints the number of the source line with this comment.
line() {
    grep -n "/\* $1 \*/" "$source" | cut -d: -f1
}

# Runs every command and writes the output to files in the folder $out.
cat >"$work/look.py" <<'PYTHON'
import os
import re
import gdb

out = str(gdb.convenience_variable("out").string())
os.makedirs(out, exist_ok=True)


def save(name, command):
    with open(f"{out}/{name}", "w") as file:
        file.write(gdb.execute(command, to_string=True))


def selection():
    return gdb.selected_thread().num, gdb.selected_frame().level(), gdb.selected_frame().name()


before = selection()
save("fibers", "weft fibers")
save("tasks", "weft tasks")
for id, name in re.findall(r"^(\d+) +(\w+) ", open(f"{out}/fibers").read(), re.MULTILINE):
    save(f"bt.{name}", f"weft bt {id}")
with open(f"{out}/selection", "w") as file:
    print("kept" if selection() == before else f"{before} became {selection()}", file=file)
PYTHON

check_frames() { # FILE: frames are numbered from 0, and the last one is the bottom of a stack
    awk '/^#/ { if ($1 != "#" n + 0) bad = 1; n++ } END { exit bad || n < 3 }' "$1" || expect "$1" "#0 to the end"
    tail -1 "$1" >"$1.last"
    expect "$1.last" 'in wf_context_entry \(\)'
}

check_nested() { # FILE DEPTH LABEL
    fiber=$(sed -n 's/^Fiber .*(\(0x[0-9a-f]*\)).*/\1/p' "$1")
    expect "$1" "leave \(.*self=(self@entry=)?(<optimized out>|$fiber)[,)]"
    expect "$1" "in level_two \(depth=(depth@entry=)?$2, label=(label@entry=)?0x[0-9a-f]+ \"$3\"\) at .*fibers_gdb\.c:$(line 'level_two waits here')$"
    expect "$1" "in level_one \(depth=(depth@entry=)?$(($2 - 1))\) at .*fibers_gdb\.c:$(line 'level_one calls here')$"
    expect "$1" "in nested \(arg="
    check_frames "$1"
}

check() { # FOLDER
    use='[0-9]+ of 256K'
    waits="nested +level_two at fibers_gdb\.c:$(line 'level_two waits here'), in weft_await$"
    expect "$1/fibers" "^[0-9]+ +nested +suspended +$use +$waits"
    expect "$1/fibers" "^[0-9]+ +large +suspended +[0-9]+ of 16K +$waits"
    expect "$1/fibers" "^[0-9]+ +elsewhere +suspended +$use +$waits"
    expect "$1/fibers" "^[0-9]+ +- +suspended +$use +napper +napper at fibers_gdb\.c:$(line 'napper sleeps here'), in weft_sleep"
    expect "$1/fibers" "^[0-9]+ +yielder +queued +$use +yielder +yielder at fibers_gdb\.c:$(line 'yielder yields here'), in weft_yield$"
    expect "$1/fibers" "^[0-9]+ +busy +running on worker 0 +$use +busy +busy at fibers_gdb\.c:[0-9]+$"
    expect "$1/fibers" "^[0-9]+ +fresh +queued +- +fresh +not begun$"
    expect "$1/fibers" "^[0-9]+ +last +running on worker 1 +$use +last +everything_in_place at "
    sed -n 's/.* \([0-9]* of\) .* level_two at.*/\1/p' "$1/fibers" | sort | uniq -c >"$1/uses"
    expect "$1/uses" '^ *3 ' # the same frames use the same amount of each of the three stacks
    grep -c '^[0-9]' "$1/fibers" >"$1/count"
    expect "$1/count" '^8$'
    expect "$1/fibers" '^Runtime 0x[0-9a-f]+, 2 workers$'
    expect "$1/fibers" '^Runtime 0x[0-9a-f]+, 1 worker$'
    expect_not "$1/fibers" 'warning|rror|cannot'

    expect "$1/tasks" "^[0-9]+ +task +stackless +suspended +stackless at fibers_gdb\.c:$(line 'stackless waits here')$"
    expect "$1/tasks" '^[0-9]+ +fiber +nested +suspended +nested$'

    check_nested "$1/bt.nested" 7 seven
    check_nested "$1/bt.large" 61 some
    check_nested "$1/bt.elsewhere" 41 some
    expect "$1/bt.yielder" "in yielder \(arg=.*:$(line 'yielder yields here')$"
    check_frames "$1/bt.yielder"
    expect "$1/bt.busy" '^Fiber .*"busy".* running on worker 0'
    expect "$1/bt.busy" '^Thread [0-9]+ .*is on its stack'
    expect "$1/bt.busy" '^#0 .*busy \(arg='
    check_frames "$1/bt.busy"
    expect "$1/bt.fresh" '^No backtrace: not begun\.$'
    expect "$1/selection" '^kept$'
}

# A process: from a fiber's thread, from the main thread with a frame selected, and from main(),
# beyond which gdb does not unwind. The process then continues undisturbed.
gdb -ex 'break everything_in_place' -ex run \
    -ex "set \$out = \"$work/live\"" -ex "source $work/look.py" \
    -ex "weft gcore $work/core" -ex "generate-core-file $work/plain" \
    -ex 'weft bt 999999' -ex 'weft bt 0x10' -ex 'weft bt' -ex 'weft bt no_such_name' \
    -ex 'thread 1' -ex 'up 2' -ex "set \$out = \"$work/main\"" -ex "source $work/look.py" \
    -ex 'set backtrace limit 3' -ex 'weft fibers' -ex 'set backtrace limit unlimited' \
    -ex "tbreak fibers_gdb.c:$(line 'main cancels here')" -ex continue \
    -ex "set \$out = \"$work/in_main\"" -ex "source $work/look.py" \
    -ex continue -ex 'weft fibers' "$program" >"$work/log" 2>&1
check "$work/live"
check "$work/main"
check_nested "$work/in_main/bt.nested" 7 seven
expect "$work/log" '^No task has the id 999999\. It may have ended'
expect "$work/log" '^There is no task at 0x10\. It may have ended'
expect "$work/log" '^Which fiber\?'
expect "$work/log" 'No symbol "no_such_name"'
expect "$work/log" "nested +suspended.*level_two at" # with a limit of 3 frames
expect "$work/log" 'exited normally'
expect "$work/log" '^There is no process: run the program'
expect_not "$work/log" 'Python Exception'
echo "ok: a process"

# Core files: ours has the stacks of fibers, gdb's own may lack them.
gdb -ex "set \$out = \"$work/core.d\"" -ex "source $work/look.py" "$program" "$work/core" \
    >"$work/core.log" 2>&1
check "$work/core.d"
gdb -ex 'weft fibers' "$program" "$work/plain" >"$work/plain.log" 2>&1
expect "$work/plain.log" 'nested +(level_two at|its stack is not in this core file$)'
echo "ok: a core file"

# Damaged memory affects only the output about it.
cat >"$work/damage.py" <<'PYTHON'
import re
import gdb


def damage(name, member, value):
    id = re.search(rf"^(\d+) +{name} ", gdb.execute("weft fibers", to_string=True), re.MULTILINE)[1]
    title = gdb.execute(f"weft bt {id}", to_string=True)
    fiber = re.search(r"\((0x[0-9a-f]+)\)", title)[1]
    gdb.execute(f"set var ((struct wf_fiber *){fiber})->{member} = (void *){value}")
    return fiber


heap = damage("nested", "context.sp", 1)
damage("large", "stack", 8)
damage("yielder", "task.name", 8)
damage("last", "task.ops", 8)
gdb.execute(f"set var $slab = &((struct wf_task *){heap})->heap->slabs[2]")
for command in (
    "weft fibers",
    "weft tasks",
    "weft bt all",
    "set var $slab->chunks->next = $slab->chunks",
    "weft fibers",
    "set var $slab->chunks = (struct wf_chunk *)8",
    "weft fibers",
    "set var wf_runtimes.next->next = (void *)8",
    "weft fibers",
    "set var wf_runtimes.next = (void *)8",
    "weft fibers",
    "kill",
):
    print("==", command)
    print(gdb.execute(command, to_string=True))
PYTHON
gdb -ex 'break everything_in_place' -ex run -ex "source $work/damage.py" "$program" \
    >"$work/damage" 2>&1
expect "$work/damage" '^[0-9]+ +nested .*its saved stack pointer 0x1 is not in its stack'
expect "$work/damage" '^[0-9]+ +large .*its stack is unknown: Cannot access memory at address 0x8'
expect "$work/damage" '^[0-9]+ +<error: Cannot access memory at address 0x8> +queued .* yielder at'
expect "$work/damage" '^[0-9]+ +last .*corrupt \(Cannot access memory at address 0x8\)'
expect "$work/damage" '^[0-9]+ +busy +running on worker 0'
expect "$work/damage" '^warning: slab 2: it goes round in a circle'
expect "$work/damage" '^warning: slab 2, the chunk|^warning: slab 2: Cannot access memory at address 0x8'
expect "$work/damage" '^warning: the runtimes: Cannot access memory at address 0x8'
expect "$work/damage" '^warning: memory is corrupt'
expect_not "$work/damage" 'Python Exception|Traceback'
sed -n '/chunks = (struct/,$p' "$work/damage" >"$work/damage.end"
expect "$work/damage.end" '^[0-9]+ +elsewhere +suspended .* level_two at'
expect "$work/damage.end" '^== kill'
echo "ok: damaged memory"

# Nothing to find: reports why, and what to do.
soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
mkdir "$work/stripped"
strip -g -o "$work/stripped/$soname" "$library"
gdb -ex "set environment LD_LIBRARY_PATH $work/stripped" -ex 'break main' -ex run \
    -ex 'weft fibers' -ex 'weft bt 1' -ex kill "$program" >"$work/stripped.log" 2>&1
expect "$work/stripped.log" '^weft is here, but without debug information\. Install'
gdb -ex 'weft fibers' -ex 'break main' -ex run -ex 'weft fibers' -ex kill "$program" \
    >"$work/early.log" 2>&1
expect "$work/early.log" '^There is no process: run the program'
expect "$work/early.log" '^There is no runtime: none was created yet'
gdb -ex starti -ex 'weft fibers' -ex kill /bin/true >"$work/true.log" 2>&1
expect "$work/true.log" '^This program has no weft in it'
for log in stripped early true; do
    expect_not "$work/$log.log" 'Python Exception'
done
echo "ok: nothing to find"
