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
    FAILURE = -12345,   /* result of a failing callback */
    SCRATCH = 64 << 20, /* bytes: enough for MANY */
    LINE = 40,          /* bytes of text for each element */
};

struct record {
    uint64_t key;
    uint64_t index;
};

/* The data of one run. Each concurrent run has its own. */
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
    size_t size; /* of an element, in SIZED rows */
    size_t room; /* capacity of records and of others, in elements of that size */
    size_t made; /* items of the pipeline */
    size_t limit;
    atomic_size_t under_way;
};

/* Which callback fails and when, and which call sets the cancel flag. */
struct events {
    weft_stop stop;
    int fails;         /* index of the callback, or -1 */
    uint64_t fails_at; /* number of the failing call */
    uint64_t stops_at; /* call of any callback; 0: never */
    _Atomic(uint64_t) calls[CALLBACKS_MAX];
    _Atomic(uint64_t) all_calls;
    _Atomic(uint64_t) calls_after_stop; /* counted in elements, too */
    bool counts;
};

extern struct events events;

/* Starts to count calls. The callback with index fails returns an error at its call number
 * fails_at. Call number stops_at, of any callback, sets the cancel flag. -1 and 0 disable
 * these. */
void expect_events(int fails, uint64_t fails_at, uint64_t stops_at);
void expect_no_events(void);

/* The runtime for weft_par_run() and weft_par_broadcast(). If NULL, they are not called. */
extern weft_runtime *algorithms_runtime;

enum {
    NO_STOP = 1,     /* cannot be canceled */
    NO_HUGE = 2,     /* no count is too large: that many fit into memory, or it is a loop */
    NOT_EMPTY = 4,   /* needs at least one element: -EINVAL */
    PRESET_STOP = 8, /* has no callback: the flag is set before the run */
    COMPARES = 16,   /* its callback cannot fail */
    CHANGES = 32,    /* changes its input */
    FORKS = 64,      /* the caller's own code computes, without safe points between forks */
    SIZED = 128,     /* takes the size of an element or of a value */
    NO_CALL = 256,   /* is inlined into the caller and may run no library code */
};

struct row {
    const char *name;
    int (*run)(struct data *data, size_t count, const weft_par_options *options);
    int callbacks; /* callbacks that can fail or set the cancel flag */
    unsigned flags;
};

/* All rows, and their number. */
extern const struct row rows[];
extern const size_t rows_count;

/* Creates and frees the input, which is always the same. refill() undoes the changes of a run
 * with the given number of elements. */
void data_init(struct data *data);
void data_fini(struct data *data);
void refill(struct data *data, size_t count);

/* Sets the element size of SIZED rows, a power of two or 0, until the next call. */
void set_size(struct data *data, size_t size);

#endif
