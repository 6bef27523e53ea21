/* SPDX-License-Identifier: MIT */
/*
 * location.c - an atomic word and the messages that were stored in it.
 */
#include "location.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

enum {
    TABLE_SIZE = 4 * MC_LOCATIONS_MAX,
    TIMESTAMP_GAP = 1 << 14,
    WORD_MAX = 8, /* bytes */
    SCRATCH_BYTES = 64 << 20,
};

struct slot {
    uint64_t generation;
    uintptr_t addr;
    unsigned index;
};

static struct mc_location locations[MC_LOCATIONS_MAX];
static struct slot table[TABLE_SIZE];

static char *scratch;
static size_t scratch_used;

void *mc_scratch(size_t size)
{
    if (scratch == NULL) {
        scratch = malloc(SCRATCH_BYTES);
    }
    size_t at = scratch_used;
    scratch_used += (size + 15) & ~(size_t)15;
    if (scratch == NULL || scratch_used > SCRATCH_BYTES) {
        mc_report_limit("an execution needs more memory than SCRATCH_BYTES of location.c");
    }
    return scratch + at;
}

void mc_location_reset(void)
{
    mc_exec.location_count = 0;
    scratch_used = 0;
}

static struct slot *slot_of(uintptr_t addr)
{
    size_t at = mc_mix(0, addr) % TABLE_SIZE;
    while (table[at].generation == mc_exec.generation && table[at].addr != addr) {
        at = (at + 1) % TABLE_SIZE;
    }
    return &table[at];
}

static uint64_t read_memory(const struct mc_location *location)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)location->addr, location->size);
    return value;
}

/* What plain code has left in memory is the first message. It carries no view:
 * whoever gets here without being ordered after that code has a data race. */
static void begin(struct mc_location *location)
{
    location->count = 0;
    location->is_stale = false;
    struct mc_message *message = mc_location_insert(location, 0, read_memory(location));
    message->timestamp = location->base;
    message->id = UINT64_MAX;
    message->step = 0;
    message->event = UINT32_MAX;
}

static struct mc_location *add(struct slot *slot, uintptr_t addr, unsigned size)
{
    if (mc_exec.location_count == MC_LOCATIONS_MAX) {
        mc_report_limit("an execution has more atomic words than MC_LOCATIONS_MAX of model.h");
    }
    unsigned index = mc_exec.location_count++;
    *slot = (struct slot){ mc_exec.generation, addr, index };
    struct mc_location *location = &locations[index];
    *location = (struct mc_location){
        .addr = addr,
        .size = size,
        .index = index,
        .messages = location->messages,
        .capacity = location->capacity,
        .last_access = -1,
    };
    begin(location);
    return location;
}

struct mc_location *mc_location_at(uintptr_t addr, unsigned size)
{
    struct slot *slot = slot_of(addr);
    if (slot->generation != mc_exec.generation) {
        return add(slot, addr, size);
    }
    struct mc_location *location = &locations[slot->index];
    if (location->size != size) {
        mc_report_limit("an atomic word is accessed in two sizes");
    }
    if (location->is_stale) {
        begin(location);
    }
    return location;
}

struct mc_location *mc_location_find(uintptr_t addr)
{
    const struct slot *slot = slot_of(addr);
    if (slot->generation != mc_exec.generation) {
        return NULL;
    }
    struct mc_location *location = &locations[slot->index];
    if (location->is_stale) {
        begin(location);
    }
    return location;
}

struct mc_location *mc_location_get(unsigned index)
{
    return &locations[index];
}

void mc_location_forget(uintptr_t addr, size_t size)
{
    for (uintptr_t at = addr - (WORD_MAX - 1); at < addr + size; at++) {
        const struct slot *slot = slot_of(at);
        if (slot->generation != mc_exec.generation) {
            continue;
        }
        struct mc_location *location = &locations[slot->index];
        if (!location->is_stale && location->addr + location->size > addr) {
            location->is_stale = true;
            /* Above every view that a thread can have of it. */
            location->base = mc_location_newest(location)->timestamp + TIMESTAMP_GAP;
            location->hash = mc_mix(location->hash, location->base);
        }
    }
}

static uint32_t timestamp_for(const struct mc_location *location, uint32_t position)
{
    if (position == 0) {
        return location->base;
    }
    uint32_t before = location->messages[position - 1].timestamp;
    if (position == location->count) {
        return before + TIMESTAMP_GAP;
    }
    uint32_t after = location->messages[position].timestamp;
    if (after - before < 2) {
        mc_report_limit("too many stores have gone before newer ones");
    }
    return before + (after - before) / 2;
}

struct mc_message *mc_location_insert(struct mc_location *location, uint32_t position,
                                      uint64_t value)
{
    if (location->count == MC_MESSAGES_MAX) {
        mc_report_limit("an atomic word has more stores than MC_MESSAGES_MAX of location.h");
    }
    MC_GROW(location->messages, location->count, location->capacity);
    uint32_t timestamp = timestamp_for(location, position);
    struct mc_message *message = &location->messages[position];
    memmove(message + 1, message, (location->count - position) * sizeof *message);
    *message =
        (struct mc_message){ .value = value, .timestamp = timestamp, .born = location->born++ };
    location->count++;
    return message;
}

uint32_t mc_location_floor(const struct mc_location *location, uint32_t timestamp)
{
    uint32_t position = location->count - 1;
    while (position > 0 && location->messages[position].timestamp > timestamp) {
        position--;
    }
    return position;
}
