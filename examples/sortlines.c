/* SPDX-License-Identifier: MIT */
/*
 * sortlines.c - prints the unique lines of a file in byte order, like LC_ALL=C sort -u.
 *
 *     sortlines [FILE]
 *
 * Without a file it sorts its own source.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft.h>

struct text {
    const char *at;
    size_t length;
};

static int compare(const weft_line *a, const weft_line *b)
{
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->at, b->at, shorter);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

#define COMES_BEFORE(a, b) (compare(a, b) < 0)
WEFT_SORT_DEFINE(sort_lines, weft_line, COMES_BEFORE)

static int compare_lines(const void *a, const void *b, void *arg)
{
    (void)arg;
    return compare(a, b);
}

/* Finds the lines, sorts them and drops duplicates. */
static int sort_text(const struct text *text, weft_line **sorted, size_t *count)
{
    size_t found;
    int err = weft_count_lines(text->at, text->length, &found, NULL);
    if (err != 0) {
        return err;
    }
    weft_line *lines = malloc((found + 1) * sizeof *lines);
    weft_line *once = malloc((found + 1) * sizeof *once);
    err = lines != NULL && once != NULL ? 0 : -ENOMEM;
    if (err == 0) {
        err = weft_lines(text->at, text->length, lines, found, &found, NULL);
    }
    if (err == 0) {
        err = sort_lines(lines, found, NULL);
    }
    if (err == 0) {
        err = weft_unique(lines, found, sizeof *lines, compare_lines, NULL, once, count, NULL);
    }
    free(lines);
    *sorted = once;
    return err;
}

static int app(void *arg)
{
    weft_line *lines = NULL;
    size_t count = 0;
    int err = sort_text(arg, &lines, &count);
    for (size_t i = 0; err == 0 && i < count; i++) {
        (void)fwrite(lines[i].at, 1, lines[i].length, stdout);
        (void)putchar('\n');
    }
    free(lines);
    return err != 0 ? err : fflush(stdout) != 0 ? -errno : 0;
}

static int map_file(const char *path, struct text *text)
{
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    int err = fstat(fd, &file) != 0 ? -errno : 0;
    if (err == 0) {
        text->length = (size_t)file.st_size;
        text->at = text->length == 0 ? "" : mmap(NULL, text->length, PROT_READ, MAP_PRIVATE, fd, 0);
        err = text->at == MAP_FAILED ? -errno : 0;
    }
    (void)close(fd);
    return err;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : __FILE__;
    struct text text;
    int err = map_file(path, &text);
    if (err == 0) {
        err = weft_run(NULL, app, &text);
    }
    if (err != 0) {
        fprintf(stderr, "sortlines: %s: %s\n", path, weft_strerror(err));
    }
    return err != 0;
}
