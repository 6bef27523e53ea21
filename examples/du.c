/* SPDX-License-Identifier: MIT */
/*
 * du.c - counts the files and bytes below a directory.
 *
 *     du [DIRECTORY]
 *
 * It walks a tree whose shape is discovered on the way: each visit reads one directory and adds
 * its subdirectories to the walk. System calls that may block run in place on the blocking
 * pool, so a slow disk blocks no worker.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weft.h>

struct totals {
    _Atomic(unsigned long long) files;
    _Atomic(unsigned long long) bytes;
    _Atomic(unsigned long long) failures; /* directories that could not be read */
};

struct visit {
    const char *path;
    weft_walk_state *walk;
    struct totals *totals;
};

static char *join_path(const char *directory, const char *name)
{
    size_t length = strlen(directory) + strlen(name) + 2;
    char *path = malloc(length);
    if (path != NULL) {
        (void)snprintf(path, length, "%s/%s", directory, name);
    }
    return path;
}

/* Handles one directory entry: counts a file, schedules a visit of a directory. */
static int look_at(const struct visit *visit, DIR *directory, const char *name)
{
    struct stat entry;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        fstatat(dirfd(directory), name, &entry, AT_SYMLINK_NOFOLLOW) != 0) {
        return 0;
    }
    if (!S_ISDIR(entry.st_mode)) {
        atomic_fetch_add_explicit(&visit->totals->files, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&visit->totals->bytes, (unsigned long long)entry.st_size,
                                  memory_order_relaxed);
        return 0;
    }
    char *path = join_path(visit->path, name);
    if (path == NULL) {
        return -ENOMEM;
    }
    weft_walk_child(visit->walk, path);
    return 0;
}

/* May block, so it is called through weft_block_in_place(), see below. */
static int read_directory(void *arg)
{
    const struct visit *visit = arg;
    DIR *directory = opendir(visit->path);
    if (directory == NULL) {
        fprintf(stderr, "du: %s: %s\n", visit->path, strerror(errno));
        atomic_fetch_add_explicit(&visit->totals->failures, 1, memory_order_relaxed);
        return 0;
    }
    int err = 0;
    const struct dirent *entry;
    while (err == 0 && (entry = readdir(directory)) != NULL) {
        err = look_at(visit, directory, entry->d_name);
    }
    (void)closedir(directory);
    return err;
}

static int visit_directory(void *node, weft_walk_state *walk, void *arg)
{
    struct visit visit = { node, walk, arg };
    int err = weft_block_in_place(read_directory, &visit, WEFT_NEVER);
    free(node);
    return err;
}

struct job {
    const char *path;
    struct totals totals;
};

static int app(void *arg)
{
    struct job *job = arg;
    char *root = strdup(job->path);
    return root != NULL ? weft_walk(root, visit_directory, &job->totals, NULL) : -ENOMEM;
}

int main(int argc, char **argv)
{
    struct job job = { .path = argc > 1 ? argv[1] : "." };
    int err = weft_run(NULL, app, &job);
    if (err != 0) {
        fprintf(stderr, "du: %s\n", weft_strerror(err));
        return 1;
    }
    printf("%llu files, %llu bytes\n", atomic_load(&job.totals.files),
           atomic_load(&job.totals.bytes));
    if (fflush(stdout) != 0) {
        perror("du");
        return 1;
    }
    return atomic_load(&job.totals.failures) != 0;
}
