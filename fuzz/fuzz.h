/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - checks and split inputs for the fuzz targets.
 *
 * A target is one function. libFuzzer calls it with generated inputs, the tests call it with
 * those in corpus/. It aborts when a property does not hold.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/*
 * Returns a copy without slack, so that a sanitizer detects reads past its end. At least one
 * byte.
 */
static inline char *fuzz_copy(const void *data, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    FUZZ_CHECK(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

/* The sizes of parts, chosen by a number: 1 and up; long inputs have larger parts. */
struct fuzz_parts {
    uint32_t state;
    size_t most;
};

static inline struct fuzz_parts fuzz_parts_of(uint8_t choice, size_t size)
{
    return (struct fuzz_parts){ choice * 2654435761u + 1, choice % 4 * 7 + 1 + size / 64 };
}

static inline size_t fuzz_next_part(struct fuzz_parts *parts)
{
    parts->state = parts->state * 1664525u + 1013904223u;
    return (parts->state >> 16) % parts->most + 1;
}

#endif
