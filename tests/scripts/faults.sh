#!/bin/sh
# SPDX-License-Identifier: MIT
# A program does the same when system calls fail in ways that can be made good.
# Usage: faults.sh PROGRAM BACKEND...
set -eu
program=$1
shift
backends=$*
log=$(mktemp)
trap 'rm -f "$log"' EXIT
while read -r backend fault; do
    case " $backends " in *" $backend "*) ;; *) continue ;; esac
    call=${fault%%:*}
    if ! WEFT_IO=$backend timeout 60 strace -f -qq -o /dev/null -e "trace=$call" \
        -e "inject=$fault" "$program" >"$log" 2>&1 </dev/null; then
        cat "$log"
        echo "repeat: WEFT_IO=$backend strace -f -e trace=$call -e inject=$fault $program"
        exit 1
    fi
    echo "ok: $backend $fault"
done <<END
epoll epoll_pwait2:error=ENOSYS
epoll epoll_pwait2:error=EPERM
epoll connect:error=EINTR:when=1
epoll connect:error=EINTR:when=2+3
epoll accept4:error=EINTR:when=1+2
epoll accept4:error=ECONNABORTED:when=1+2
epoll accept4:error=EMFILE:when=1+2
epoll recvfrom:error=EINTR:when=1+3
epoll sendto:error=EINTR:when=1+3
epoll epoll_wait:error=EINTR:when=1+2
uring connect:error=EINTR:when=1+2
uring io_uring_enter:error=EINTR:when=1+3
uring io_uring_enter:error=EAGAIN:when=1+3
uring io_uring_enter:error=EBUSY:when=1+3
uring membarrier:error=EPERM:when=2+1
END
