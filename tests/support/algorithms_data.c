/* SPDX-License-Identifier: MIT */
/*
 * algorithms_data.c - input data for the table of algorithms.
 */
#include <stdlib.h>
#include <string.h>

#include "algorithms.h"
#include "test.h"

static void *allocate(size_t size)
{
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    CHECK(memory != NULL);
    return memory;
}

/* Returns a pseudo-random number that depends only on i. */
static uint64_t mix(uint64_t i)
{
    i = (i ^ (i >> 31)) * UINT64_C(0x9E3779B97F4A7C15);
    return (i ^ (i >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
}

/* Restores what runs change. */
void refill(struct data *data, size_t count)
{
    bool is_task = weft_task_current() != NULL;
    for (size_t i = 0; i < count; i++) {
        data->records[i] = (struct record){ mix(i), i };
        if (is_task && i % 1024 == 0) {
            (void)weft_yield();
        }
    }
}

void set_size(struct data *data, size_t size)
{
    data->size = size;
    data->room = size > 0 ? MANY * sizeof(struct record) / size : MANY;
    for (size_t i = 0; i < data->room; i++) {
        char *base = (char *)data->records + (i - i % 3) * size;
        data->indexes[i] = i * 77777 % data->room; /* a permutation: the factor is odd */
        data->slices[i] = (weft_slice){ base, i % 3 };
    }
}

void data_init(struct data *data)
{
    memset(data, 0, sizeof *data);
    data->records = allocate((MANY + 2) * sizeof *data->records);
    data->others = allocate((MANY + 2) * sizeof *data->others);
    data->numbers = allocate(MANY * sizeof *data->numbers);
    data->results = allocate(MANY * sizeof *data->results);
    data->doubles = allocate(MANY * sizeof *data->doubles);
    data->floats = allocate(MANY * sizeof *data->floats);
    data->keep = allocate(MANY * sizeof *data->keep);
    data->indexes = allocate(MANY * sizeof *data->indexes);
    data->text = allocate(MANY * LINE);
    data->lines = allocate((MANY + 1) * sizeof *data->lines);
    data->slices = allocate(MANY * sizeof *data->slices);
    data->scratch = allocate(SCRATCH);
    memset(data->scratch, 1, SCRATCH);
    memset(data->text, 'x', MANY * LINE);
    for (size_t i = 0; i < MANY; i++) {
        data->numbers[i] = mix(i);
        data->doubles[i] = (double)(mix(i) % 1000);
        data->floats[i] = (float)(mix(i) % 1000);
        data->keep[i] = mix(i) % 2 != 0;
        data->text[i * LINE + mix(i) % LINE] = '\n';
        data->results[i] = 0;
    }
    refill(data, MANY);
    set_size(data, sizeof(struct record));
}

void data_fini(struct data *data)
{
    free(data->records);
    free(data->others);
    free(data->numbers);
    free(data->results);
    free(data->doubles);
    free(data->floats);
    free(data->keep);
    free(data->indexes);
    free(data->text);
    free(data->lines);
    free(data->slices);
    free(data->scratch);
}
