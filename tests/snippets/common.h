/* SPDX-License-Identifier: MIT */
/*
 * Names that the snippets in the documentation use and do not declare; see
 * tests/scripts/snippets.py. Nothing here is defined: snippets are not linked.
 */
#ifndef TESTS_SNIPPETS_COMMON_H
#define TESTS_SNIPPETS_COMMON_H

#include <stdio.h>

#include <weft.h>

/* The state of a stackless task. */
struct snippet_state {
    weft_op op;
    weft_cond_future wait;
};

extern int err;
extern int result;
extern size_t count;

extern weft_stream *stream;
extern weft_stream *peer;
extern weft_listener *listener;
extern weft_op stop;

struct page {
    const char *name;
};
extern struct page *pages;
extern int fetch(void *page);

struct person {
    const char *name;
    unsigned age;
};
extern struct person *people;
extern int by_age(const void *one, const void *other, void *arg);

#endif
