/* SPDX-License-Identifier: MIT */
/*
 * location.h - an atomic word and the messages that were stored in it.
 *
 * The messages are kept in modification order. Each has a timestamp that grows
 * along it, with room between two for a store that comes late (.early_stores),
 * so that a view can name a place in the order by a number that stays right.
 */
#ifndef MC_LOCATION_H
#define MC_LOCATION_H

#include "model.h"

enum {
    MC_MESSAGES_MAX = 1 << 14, /* of one word in one execution */
};

struct mc_message {
    uint64_t value;
    uint64_t id;        /* thread and operation: the same in all runs */
    uint32_t timestamp; /* grows along the modification order */
    uint32_t born;      /* how many messages there were before it */
    uint32_t step;      /* that stored it */
    uint32_t event;     /* that stored it, in the trace */
    uint32_t view_size; /* 0 if it releases nothing */
    uint32_t *view;     /* what a reader with acquire order learns */
    bool is_rmw;        /* it follows directly on the message that it read */
};

struct mc_location {
    uintptr_t addr;
    unsigned size;
    unsigned index;
    struct mc_message *messages;
    uint32_t count;
    uint32_t capacity;
    uint32_t born;
    uint32_t base;       /* timestamp of the first message */
    uint32_t woken;      /* timestamp that futex wakes have made known */
    uint64_t hash;       /* of the modification order */
    int32_t last_access; /* for all.c */
    bool is_stale;       /* a plain write has gone over it */
};

/* Forgets the locations of the last execution. */
void mc_location_reset(void);

/* The location of this address; what memory holds becomes its first message. */
struct mc_location *mc_location_at(uintptr_t addr, unsigned size);

/* The same, or NULL if nobody has accessed it. */
struct mc_location *mc_location_find(uintptr_t addr);

struct mc_location *mc_location_get(unsigned index);

/* A plain write goes over these bytes: what is there starts anew. */
void mc_location_forget(uintptr_t addr, size_t size);

/* Inserts a message; it is the newest if position is the count. */
struct mc_message *mc_location_insert(struct mc_location *location, uint32_t position,
                                      uint64_t value);

/* The oldest message that a thread may read whose view has this timestamp. */
uint32_t mc_location_floor(const struct mc_location *location, uint32_t timestamp);

static inline struct mc_message *mc_location_newest(const struct mc_location *location)
{
    return &location->messages[location->count - 1];
}

/* Memory that lasts until the end of the execution. */
void *mc_scratch(size_t size);

#endif
