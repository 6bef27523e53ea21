/* SPDX-License-Identifier: MIT */
/*
 * algorithms.h - table of all parallel algorithms, with data and callbacks to run each.
 */
#ifndef TEST_ALGORITHMS_H
#define TEST_ALGORITHMS_H

#include <stdatomic.h>

#include <weft.h>

enum {
    MANY = 1 << 19,     /* elements of a long run */
    SOME = 40 * 1000,   /* enough for the parallel path of each algorithm */
    CALLBACKS_MAX = 3,  /* of one algorithm */
    FAILURE = -12345,   /* what a callback returns when it fails */
    SCRATCH = 64 << 20, /* bytes: enough for MANY */
    LINE = 40,          /* bytes of text for each element */
};

struct record {
    uint64_t key;
    uint64_t index;
};

/* What one run works on. Each concurrent run has its own. */
struct data {
    struct record *records;
    struct record *others;
    uint64_t *numbers;
    uint64_t *results;
    double *doubles;
    float *floats;
    bool *keep;
    size_t *indexes;
    char *text;
    weft_line *lines;
    weft_slice *slices;
    void *scratch;
    size_t size; /* of an element of rows that are SIZED */
    size_t room; /* elements of that size in records, and in others */
    size_t made; /* items of the pipeline */
    size_t limit;
    atomic_size_t under_way;
};

/* Which callback fails, and when; and when one of them stops the run. */
struct events {
    weft_stop stop;
    int fails;         /* index of the callback, or -1 */
    uint64_t fails_at; /* its call */
    uint64_t stops_at; /* call of any callback; 0: never */
    _Atomic(uint64_t) calls[CALLBACKS_MAX];
    _Atomic(uint64_t) all_calls;
    _Atomic(uint64_t) calls_after_stop; /* elements, too */
    bool counts;
};

extern struct events events;

/* Begins to count calls. The callback with this index fails at this call of it; call number
 * stops_at, of any callback, sets the stop. -1 and 0: none does. */
void expect_events(int fails, uint64_t fails_at, uint64_t stops_at);
void expect_no_events(void);

/* The runtime that weft_par_run() and weft_par_broadcast() are given; NULL: they are not called. */
extern weft_runtime *algorithms_runtime;

enum {
    NO_STOP = 1,     /* it cannot be stopped */
    NO_HUGE = 2,     /* its count cannot be too large: memory has so many, or it is a loop */
    NOT_EMPTY = 4,   /* needs an element: -EINVAL */
    PRESET_STOP = 8, /* has no callback: the stop is set before */
    COMPARES = 16,   /* its callback cannot fail */
    CHANGES = 32,    /* its input */
    FORKS = 64,      /* the caller's own code computes, without safe points between forks */
    SIZED = 128,     /* takes the size of an element, or of a value */
    NO_CALL = 256,   /* is compiled into the caller, who may run no code of the library */
};

struct row {
    const char *name;
    int (*run)(struct data *data, size_t count, const weft_par_options *options);
    int callbacks; /* that can fail or set the stop */
    unsigned flags;
};

/* All rows, and how many there are. */
extern const struct row rows[];
extern const size_t rows_count;

/* The same input each time. Refill undoes the changes of a run of so many elements. */
void data_init(struct data *data);
void data_fini(struct data *data);
void refill(struct data *data, size_t count);

/* Elements of SIZED rows are so large, a power of two or 0, until the next call. */
void set_size(struct data *data, size_t size);

#endif
