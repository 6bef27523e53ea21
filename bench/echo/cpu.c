/* SPDX-License-Identifier: MIT */
/*
 * cpu.c - CPU time of another process; see cpu.h.
 *
 * The first number in schedstat is the time that a thread has run, in ns. /proc/PID/stat would
 * cover the whole process, but in ticks of 10 ms.
 */
#include "cpu.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool read_thread(const char *folder, const char *name, struct cpu_thread *thread)
{
    char path[128];
    if (snprintf(path, sizeof path, "%s/%s/schedstat", folder, name) >= (int)sizeof path) {
        return false;
    }
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    bool found = fscanf(file, "%" SCNd64, &thread->ns) == 1;
    (void)fclose(file);
    thread->id = (pid_t)strtol(name, NULL, 10);
    return found;
}

bool cpu_read(struct cpu_usage *usage, pid_t process)
{
    char folder[64];
    (void)snprintf(folder, sizeof folder, "/proc/%ld/task", (long)process);
    usage->count = 0;
    DIR *tasks = opendir(folder);
    if (tasks == NULL) {
        return false;
    }
    bool fits = true;
    const struct dirent *entry;
    while (fits && (entry = readdir(tasks)) != NULL) {
        fits = usage->count < CPU_THREADS_MAX;
        /* Skips a thread that has exited since the folder was read. */
        if (fits && entry->d_name[0] != '.' &&
            read_thread(folder, entry->d_name, &usage->threads[usage->count])) {
            usage->count++;
        }
    }
    (void)closedir(tasks);
    return fits && usage->count > 0;
}

static int64_t time_of(const struct cpu_usage *usage, pid_t id)
{
    for (size_t i = 0; i < usage->count; i++) {
        if (usage->threads[i].id == id) {
            return usage->threads[i].ns;
        }
    }
    return 0;
}

int64_t cpu_between(const struct cpu_usage *before, const struct cpu_usage *after)
{
    int64_t sum = 0;
    for (size_t i = 0; i < after->count; i++) {
        int64_t now = after->threads[i].ns;
        int64_t then = time_of(before, after->threads[i].id);
        /* Less than before: another thread has the same id now. */
        sum += now >= then ? now - then : now;
    }
    return sum;
}
