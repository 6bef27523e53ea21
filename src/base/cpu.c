/* SPDX-License-Identifier: MIT */
/*
 * cpu.c - number of CPUs that this process may use.
 *
 * In a container not all CPUs of the machine are available. The affinity mask limits where the
 * process runs, and the cgroup quota limits how much. A pool larger than the quota is
 * throttled, and its latency then comes in steps of the throttling period.
 */
#include "base/cpu.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TEXT_MAX = 4096,
    PATH_MAX_HERE = 4352
};

static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, size - 1);
    (void)close(fd);
    if (n < 0) {
        return false;
    }
    text[n] = '\0';
    return true;
}

static unsigned quota_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) {
        return 0;
    }
    long long cpus = quota / period + (quota % period != 0);
    return cpus > 65535 ? 65535 : (unsigned)cpus;
}

/* Parses a number and the blanks after it. Returns where they end, or NULL. */
static const char *parse_number(const char *text, long long *value)
{
    char *end;
    *value = strtoll(text, &end, 10);
    size_t blanks = strspn(end, " \n");
    return end != text && (blanks > 0 || *end == '\0') ? end + blanks : NULL;
}

unsigned wf_cpu_parse_quota(const char *quota_us, const char *period_us)
{
    long long quota;
    long long period;
    const char *quota_end = parse_number(quota_us, &quota);
    const char *period_end = parse_number(period_us, &period);
    if (quota_end == NULL || *quota_end != '\0' || period_end == NULL || *period_end != '\0') {
        return 0;
    }
    return quota_cpus(quota, period);
}

unsigned wf_cpu_parse_max(const char *cpu_max)
{
    /* "max 100000" or "150000 100000" */
    long long quota;
    long long period;
    const char *rest = parse_number(cpu_max, &quota);
    const char *end = rest != NULL ? parse_number(rest, &period) : NULL;
    return end != NULL && *end == '\0' ? quota_cpus(quota, period) : 0;
}

/* Returns whether a comma-separated list of controllers contains cpu. */
static bool has_cpu(const char *controllers)
{
    for (const char *at = controllers; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == '\0' || at[3] == ',')) {
            return true;
        }
    }
    return false;
}

/* Returns the quota of one cgroup directory of either version; 0 if it has none. */
static unsigned folder_quota(const char *mount, const char *folder)
{
    char path[PATH_MAX_HERE];
    char text[TEXT_MAX];
    char period[TEXT_MAX];
    (void)snprintf(path, sizeof path, "%s%s/cpu.max", mount, folder);
    if (read_text(path, text, sizeof text)) {
        return wf_cpu_parse_max(text);
    }
    (void)snprintf(path, sizeof path, "%s%s/cpu.cfs_quota_us", mount, folder);
    if (!read_text(path, text, sizeof text)) {
        return 0;
    }
    (void)snprintf(path, sizeof path, "%s%s/cpu.cfs_period_us", mount, folder);
    return read_text(path, period, sizeof period) ? wf_cpu_parse_quota(text, period) : 0;
}

/* Returns the tightest quota from this directory up to the root: each level limits the process. */
static unsigned path_quota(const char *mount, char *folder)
{
    unsigned tightest = 0;
    for (;;) {
        unsigned quota = folder_quota(mount, folder);
        if (quota != 0 && (tightest == 0 || quota < tightest)) {
            tightest = quota;
        }
        char *slash = strrchr(folder, '/');
        if (slash == NULL) {
            return tightest;
        }
        *slash = '\0';
    }
}

static unsigned cgroup_quota(void)
{
    char text[TEXT_MAX];
    if (!read_text("/proc/self/cgroup", text, sizeof text)) {
        return 0;
    }
    unsigned tightest = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        /* "0::/path" in version 2, "4:cpu,cpuacct:/path" in version 1 */
        char *controllers = strchr(line, ':');
        char *folder = controllers ? strchr(controllers + 1, ':') : NULL;
        if (folder == NULL) {
            continue;
        }
        *folder++ = '\0';
        bool v2 = controllers[1] == '\0';
        bool v1 = has_cpu(controllers + 1);
        if (!v2 && !v1) {
            continue;
        }
        unsigned quota = path_quota(v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu", folder);
        if (quota != 0 && (tightest == 0 || quota < tightest)) {
            tightest = quota;
        }
    }
    return tightest;
}

/* The mask is larger than cpu_set_t on a machine with more than 1024 CPUs. */
static unsigned affinity_count(void)
{
    for (int cpus = 1024; cpus <= 1024 * 64; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (set == NULL) {
            break;
        }
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0) {
            return (unsigned)count;
        }
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

unsigned wf_cpu_count(void)
{
    unsigned cpus = affinity_count();
    unsigned quota = cgroup_quota();
    return quota != 0 && quota < cpus ? quota : cpus;
}
