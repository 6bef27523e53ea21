/* SPDX-License-Identifier: MIT */
/*
 * replay.c - runs a fuzz target on each file of a directory, without a fuzzer, so that past
 * findings stay fixed.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

enum {
    INPUT_MAX = 1 << 20
};

static void replay(const char *path)
{
    static uint8_t input[INPUT_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        (void)fprintf(stderr, "replay: cannot open %s\n", path);
        exit(1);
    }
    size_t size = fread(input, 1, sizeof input, file);
    (void)fclose(file);
    (void)printf("%s\n", path);
    (void)fflush(stdout); /* So that the path is visible if the target aborts. */
    char *copy = fuzz_copy(input, size);
    (void)LLVMFuzzerTestOneInput((const uint8_t *)copy, size);
    free(copy);
}

int main(int argc, char **argv)
{
    size_t count = 0;
    DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;
    if (directory == NULL) {
        (void)fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[4096];
        if (entry->d_name[0] == '.') {
            continue;
        }
        int length = snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        FUZZ_CHECK(length > 0 && (size_t)length < sizeof path);
        replay(path);
        count++;
    }
    (void)closedir(directory);
    (void)printf("%zu inputs\n", count);
    return count > 0 ? 0 : 1;
}
