#!/bin/sh
# SPDX-License-Identifier: MIT
# ThreadSanitizer works on this kernel and finds a race between two tasks.
# Usage: planted_race.sh PROGRAM
set -eu
if output=$(TSAN_OPTIONS=exitcode=66 setarch -R "$1" 2>&1); then
    echo "ThreadSanitizer did not report the planted race:"
    echo "$output"
    exit 1
fi
case "$output" in
*"data race"*"racer"*) echo "ok: the planted race was reported" ;;
*)
    echo "the program failed for another reason:"
    echo "$output"
    exit 1
    ;;
esac
