/* SPDX-License-Identifier: MIT */
/*
 * cpu.h - CPU time of another process, per thread.
 */
#ifndef ECHO_CPU_H
#define ECHO_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    CPU_THREADS_MAX = 4096
};

struct cpu_thread {
    pid_t id;
    int64_t ns;
};

struct cpu_usage {
    struct cpu_thread threads[CPU_THREADS_MAX];
    size_t count;
};

/* Returns false if the process does not exist or has too many threads. */
bool cpu_read(struct cpu_usage *usage, pid_t process);

/*
 * Returns the CPU time used in between. A thread that has exited in between does not count: its
 * time is no longer known.
 */
int64_t cpu_between(const struct cpu_usage *before, const struct cpu_usage *after);

#endif
