/* SPDX-License-Identifier: MIT */
/*
 * wc.c - counts the lines, words and bytes of files, with one fiber per file.
 *
 *     wc [FILE...]
 *
 * Files are read on threads of the blocking pool, so a slow disk blocks no worker. The counting
 * runs on the workers. Without a file it counts its own executable.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

struct count {
    const char *path;
    size_t lines, words, bytes;
    weft_task *task;
};

struct block {
    FILE *file;
    size_t length;
    char text[16384];
};

/* May block, so it is called through weft_block_in_place(), see below. */
static int read_block(void *arg)
{
    struct block *block = arg;
    errno = 0;
    block->length = fread(block->text, 1, sizeof block->text, block->file);
    return !ferror(block->file) ? 0 : errno != 0 ? -errno : -EIO;
}

static void count_block(struct count *count, const struct block *block, bool *in_word)
{
    for (size_t i = 0; i < block->length; i++) {
        bool space = isspace((unsigned char)block->text[i]) != 0;
        count->words += !space && !*in_word;
        count->lines += block->text[i] == '\n';
        *in_word = !space;
    }
    count->bytes += block->length;
}

/* Runs as a fiber. */
static int count_file(void *arg)
{
    struct count *count = arg;
    struct block block;
    block.file = fopen(count->path, "r");
    if (block.file == NULL) {
        return -errno;
    }
    bool in_word = false;
    int err;
    do {
        err = weft_block_in_place(read_block, &block, WEFT_NEVER);
        if (err == 0) {
            count_block(count, &block, &in_word);
        }
    } while (err == 0 && block.length > 0);
    (void)fclose(block.file);
    return err;
}

static int finish(struct count *count)
{
    int result;
    int err = weft_join(count->task, &result, WEFT_NEVER);
    if (err == 0) {
        err = result;
    }
    if (err == 0) {
        printf("%8zu %8zu %8zu %s\n", count->lines, count->words, count->bytes, count->path);
    } else {
        fprintf(stderr, "wc: %s: %s\n", count->path, weft_strerror(err));
    }
    return err;
}

struct files {
    struct count *counts;
    int length;
};

static int app(void *arg)
{
    const struct files *files = arg;
    int started = 0;
    int err = 0;
    while (started < files->length && err == 0) {
        struct count *count = &files->counts[started];
        err = weft_go(&count->task, count_file, count);
        started += err == 0;
    }
    for (int i = 0; i < started; i++) {
        int own = finish(&files->counts[i]);
        err = err != 0 ? err : own;
    }
    return err;
}

int main(int argc, char **argv)
{
    int length = argc > 1 ? argc - 1 : 1;
    struct files files = { .counts = calloc((size_t)length, sizeof(struct count)),
                           .length = length };
    if (files.counts == NULL) {
        fprintf(stderr, "wc: out of memory\n");
        return 1;
    }
    for (int i = 0; i < length; i++) {
        files.counts[i].path = argc > 1 ? argv[i + 1] : argv[0];
    }
    int err = weft_run(NULL, app, &files);
    free(files.counts);
    if (fflush(stdout) != 0) {
        perror("wc");
        return 1;
    }
    return err != 0;
}
