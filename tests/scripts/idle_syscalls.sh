#!/bin/sh
# SPDX-License-Identifier: MIT
# An idle runtime makes no system call.
# Usage: idle_syscalls.sh PROGRAM SECONDS
set -eu
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for workers in 1 2 8; do
    strace -f -o "$log" "$1" "$2" "$workers" 2>/dev/null
    # Calls made between the marks, except for the main thread's own wait.
    calls=$(sed -n '/"BEGIN/,/"END/p' "$log" | sed '1d;$d' | grep -v clock_nanosleep || true)
    begun=$(grep -c '"BEGIN' "$log")
    if [ "$begun" != 1 ] || [ -n "$calls" ]; then
        echo "idle runtime with $workers workers made system calls in $2 s:"
        echo "$calls" | head -20
        exit 1
    fi
    echo "ok: $workers workers, $2 s, no system call"
done
