/* SPDX-License-Identifier: MIT */
/*
 * report.h - what is recorded of an execution, and printed of a failed one.
 */
#ifndef MC_REPORT_H
#define MC_REPORT_H

#include "model.h"

/* One operation, as it took effect. */
struct mc_event {
    enum mc_kind kind;
    enum mc_order order;
    uint8_t thread;
    uint8_t size;
    bool has_read;
    bool has_written;
    bool is_older;  /* a newer message was there to be read */
    uint32_t step;  /* in which it happened */
    uint32_t from;  /* the event that stored what was read, UINT32_MAX if none */
    uint32_t again; /* how often it was repeated by a spin loop */
    uintptr_t addr;
    uint64_t read;
    uint64_t written;
    const void *pc;
    const char *text; /* what else there is to say, or NULL */
};

void mc_report_reset(void);

/* Records an event. Returns its number. */
uint32_t mc_report_event(const struct mc_event *event);

/* Counts a repetition of the last event of this thread. */
void mc_report_again(void);

/* The number that the next event gets. */
uint32_t mc_report_event_count(void);

/* The failure of this execution; the first one counts. */
void mc_report_fail(enum mc_fault fault, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum mc_fault mc_report_fault(void);
const char *mc_report_text(void);
const char *mc_report_fault_name(enum mc_fault fault);
const char *mc_report_kind_name(enum mc_kind kind);
const char *mc_report_order_name(enum mc_order order);

/* Prints the failure, the schedule, and how to replay it. */
void mc_report_print(const char *replay);

/* The checker itself cannot go on: says which constant to raise, and exits. */
_Noreturn void mc_report_limit(const char *problem);

/* Makes room for one more in an array. */
#define MC_GROW(array, count, capacity)                                                            \
    do {                                                                                           \
        if ((count) == (capacity)) {                                                               \
            (capacity) = (capacity) == 0 ? 64 : 2 * (capacity);                                    \
            (array) = realloc((array), (capacity) * sizeof *(array));                              \
            if ((array) == NULL) {                                                                 \
                mc_report_limit("out of memory");                                                  \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* Writes "file:line (function)" of code, or what is known of an address. */
void mc_report_where(const void *pc, char *text, size_t size);
void mc_report_address(uintptr_t addr, char *text, size_t size);

#endif
