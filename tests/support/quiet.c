/* SPDX-License-Identifier: MIT */
/*
 * quiet.c - context switches and CPU time of the threads of runtimes.
 *
 * These threads have names of their own. Threads started by a test or a sanitizer have the name
 * of the program.
 */
#include "quiet.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <weft/clock.h>

#include "test.h"
#include "timing.h"

enum {
    ROUNDS_MAX = 300,
};

struct quiet_count {
    uint64_t switches; /* a thread went to sleep, or was preempted */
    int64_t cpu_ns;
};

static bool read_line(const char *id, const char *file_name, const char *begin, char line[256])
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/%s", id, file_name);
    FILE *file = fopen(path, "r");
    bool found = false;
    while (file != NULL && !found && fgets(line, 256, file) != NULL) {
        found = strncmp(line, begin, strlen(begin)) == 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

static uint64_t read_number(const char *id, const char *begin)
{
    char line[256];
    return read_line(id, "status", begin, line) ? strtoull(line + strlen(begin), NULL, 10) : 0;
}

static bool is_of_runtime(const char *id)
{
    char own[256];
    char main_name[256];
    char main_id[16];
    (void)snprintf(main_id, sizeof main_id, "%d", (int)getpid());
    return atoi(id) != (int)gettid() && read_line(id, "comm", "", own) &&
           read_line(main_id, "comm", "", main_name) && strcmp(own, main_name) != 0;
}

/* The kernel's CPU clock of a thread, as pthread_getcpuclockid() returns it. */
static int64_t cpu_of(const char *id)
{
    struct timespec time = { 0 };
    clockid_t clock = (clockid_t)(~(unsigned)atoi(id) << 3 | 6);
    (void)clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static struct quiet_count look_at_runtimes(void)
{
    struct quiet_count count = { 0 };
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder != NULL);
    unsigned threads = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const char *id = entry->d_name;
        if (id[0] != '.' && is_of_runtime(id)) {
            count.switches += read_number(id, "voluntary_ctxt_switches:");
            count.switches += read_number(id, "nonvoluntary_ctxt_switches:");
            count.cpu_ns += cpu_of(id);
            threads++;
        }
    }
    (void)closedir(folder);
    CHECK_GE(threads, 1);
    return count;
}

static struct quiet_count look_at_process(void)
{
    struct rusage usage;
    CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    return (struct quiet_count){ .switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw,
                                 .cpu_ns = test_cpu_ns() };
}

void quiet_must_come(int64_t ns)
{
    struct quiet_count before;
    struct quiet_count after = look_at_runtimes();
    int round = 0;
    do {
        CHECK_LT(round++, ROUNDS_MAX);
        before = after;
        test_wait_ns(ns);
        after = look_at_runtimes();
    } while (after.switches != before.switches || after.cpu_ns != before.cpu_ns);
}

void quiet_must_be_near(int64_t ns, void (*pass)(int64_t ns))
{
    const uint64_t switches_max = (uint64_t)(ns / (WEFT_MS / 2));
    struct quiet_count before;
    struct quiet_count after = look_at_process();
    int round = 0;
    do {
        CHECK_LT(round++, ROUNDS_MAX);
        before = after;
        pass(ns);
        after = look_at_process();
    } while (after.switches - before.switches > switches_max ||
             after.cpu_ns - before.cpu_ns > ns / 10);
}
