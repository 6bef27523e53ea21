#!/bin/sh
# SPDX-License-Identifier: MIT
# A fiber keeps its errno and finds its worker after it has moved to another thread, regardless
# of how the program, and with it the library, is optimized. Without weft's errno the test
# program fails.
# Usage: errno.sh SOURCE_DIR STATIC_LIBRARY SHARED_LIBRARY [LIBRARY...]
set -eu
source=$1
static=$2
shared=$3
shift 3
libraries=$*
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=c11 -D_GNU_SOURCE -Wall -Wextra -I$source/include"

# build CC FLAGS LIBRARIES: builds the program as $work/program
build() {
    # shellcheck disable=SC2086
    "$1" $flags $2 "$source/tests/programs/errno.c" -o "$work/program" $3 -pthread $libraries
}

must_succeed() {
    build "$@"
    if ! "$work/program"; then
        echo "failed: $1 $2"
        exit 1
    fi
    echo "ok: $1 $2"
}

# The program must exit with 1 and blame errno.
must_fail() {
    build "$@"
    status=0
    output=$("$work/program" 2>&1) || status=$?
    case "$status $output" in
    "1 errno: errno after"*) echo "ok: $1 $2 fails" ;;
    *)
        echo "must fail, and did not: $1 $2: status $status: $output"
        exit 1
        ;;
    esac
}

can_link_time_optimise() {
    echo 'int main(void) { return 0; }' >"$work/empty.c"
    "$1" -flto "$work/empty.c" -o "$work/empty" 2>/dev/null
}

# Optimizes the library's own sources together with the program, except for the algorithms,
# which it does not use.
check_link_time() {
    rm -rf "$work/objects"
    mkdir "$work/objects"
    # shellcheck disable=SC2016,SC2086
    find "$source/src" -name '*.[cS]' ! -path '*/par/*' -print | xargs -P 2 -I FILE sh -c '
        name=$(echo "$3" | tr / _)
        cc=$1 to=$2 file=$3
        shift 3
        "$cc" "$@" -c "$file" -o "$to/$name.o"
    ' compile "$1" "$work/objects" FILE $flags "-I$source/src" "$2" -flto -fvisibility=hidden
    must_succeed "$1" "$2 -flto" "$(echo "$work"/objects/*.o)"
}

for cc in gcc clang; do
    if ! command -v "$cc" >/dev/null; then
        echo "skip: no $cc here"
        continue
    fi
    for level in -O0 -O1 -O2 -O3; do
        must_succeed "$cc" "$level" "$static"
        must_succeed "$cc" "$level -fPIC -pie" "$shared -Wl,-rpath,$(dirname "$shared")"
    done
    must_fail "$cc" "-O2 -DWEFT_NO_ERRNO" "$static"
    if can_link_time_optimise "$cc"; then
        check_link_time "$cc" -O2
        check_link_time "$cc" -O3
    else
        echo "skip: $cc cannot optimise at link time here"
    fi
done
