/* SPDX-License-Identifier: MIT */
/*
 * hog.h - no memory at all, or a little: for what takes small pieces, which the heap has
 * even if it cannot grow.
 *
 * One arena must be all there is, since another one has room for long: hog_prepare() is
 * called before any thread is started. The rest is for result_without_memory().
 */
#ifndef TEST_PAR_HOG_H
#define TEST_PAR_HOG_H

#include <malloc.h>
#include <stdlib.h>

enum {
    HOG_SIZE = 1008,
};

struct hog {
    struct hog *next;
};

static inline void hog_prepare(void)
{
    (void)mallopt(M_ARENA_MAX, 1); /* A sanitizer has its own. */
}

static inline void hogs_free(struct hog *hogs)
{
    while (hogs != NULL) {
        struct hog *next = hogs->next;
        free(hogs);
        hogs = next;
    }
}

/* Takes pieces of this size, as long as there are some. */
static inline struct hog *hogs_add(struct hog *hogs, size_t size)
{
    for (struct hog *hog; (hog = malloc(size)) != NULL; hogs = hog) {
        hog->next = hogs;
    }
    return hogs;
}

/* Takes all memory there is, and gives so many large pieces of it back. */
static inline struct hog *hogs_take(unsigned left)
{
    struct hog *given = NULL;
    struct hog *hogs = hogs_add(NULL, HOG_SIZE);
    for (unsigned i = 0; i < left && hogs != NULL; i++) {
        struct hog *hog = hogs;
        hogs = hog->next;
        hog->next = given;
        given = hog;
    }
    for (size_t size = HOG_SIZE / 2; size >= sizeof *hogs; size /= 2) {
        hogs = hogs_add(hogs, size);
    }
    hogs_free(given);
    return hogs;
}

#endif
