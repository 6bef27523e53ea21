/* SPDX-License-Identifier: MIT */
/*
 * memory.c - atomic operations as C11 defines them, not as the machine does.
 *
 * A view machine. Each atomic word has its messages in modification order, each
 * thread a view: for every word the oldest message that it may still read. A
 * load picks any message from there on. A store is a new message, the newest
 * one, or with .early_stores at any place after what the thread has seen. A
 * read-modify-write reads the message directly before its own.
 *
 *   release   the message carries the thread's view
 *   acquire   the reader's view grows by that of the message
 *   relaxed   the message carries the view of the last release fence; the
 *             reader keeps the message's view for its next acquire fence
 *   RMW       the message also carries the view of the one that it read: the
 *             release sequence, which a plain store breaks (as in C17 and C++20
 *             but for stores of the releasing thread itself, which C++20 dropped)
 *   seq_cst   one view for all, sc_view. A fence joins it and is joined to it; a
 *             store raises its entry; a load reads no message below its entry
 *
 * Loads never read from stores that come later in the run, so load buffering is
 * not shown. An SC load that reads a relaxed store is not ordered by it against
 * other SC loads (as in C11; C++20 is stricter).
 *
 * See "A Promising Semantics for Relaxed-Memory Concurrency" (Kang and others,
 * POPL 2017), without its promises.
 */
#include "memory.h"

#include <string.h>

#include "explore.h"
#include "location.h"
#include "report.h"
#include "run.h"
#include "shadow.h"
#include "spin.h"

enum {
    /* Marks in a thread's history. */
    HASH_STORE = 0x51,
    HASH_FAILED = 0x52,
    HASH_SPURIOUS = 0x53,
    HASH_FENCE = 0x54,
};

enum {
    NO_REASON = 1 << 30, /* with a position: a weak CAS fails, though the value fits */
};

/* The messages a choice is made from, the newest first, and which of them are
 * open: numbers in the former. */
static uint32_t positions[2 * MC_MESSAGES_MAX];
static uint32_t open_choices[2 * MC_MESSAGES_MAX];

static uint32_t *entry_of(uint32_t *view, const struct mc_location *location)
{
    return &view[MC_THREADS_MAX + location->index];
}

static void raise(uint32_t *entry, uint32_t timestamp)
{
    *entry = timestamp > *entry ? timestamp : *entry;
}

static uint64_t mask_of(unsigned size)
{
    return size == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * size) - 1;
}

static uint64_t raw_read(uintptr_t addr, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)addr, size);
    return value;
}

static void raw_write(uintptr_t addr, unsigned size, uint64_t value)
{
    memcpy((void *)addr, &value, size);
}

/* The position of the oldest message that the thread may read. */
static uint32_t floor_of(struct mc_thread *thread, const struct mc_location *location,
                         enum mc_order order)
{
    uint32_t timestamp = *entry_of(thread->current, location);
    if (order == MC_SEQ_CST) {
        raise(&timestamp, mc_exec.sc_view[location->index]);
    }
    return mc_location_floor(location, timestamp);
}

/* The same, if it must be newer than all it has seen, and there is such a one. */
static uint32_t newer_floor_of(struct mc_thread *thread, const struct mc_location *location,
                               enum mc_order order)
{
    uint32_t seen = floor_of(thread, location, MC_RELAXED);
    uint32_t low = floor_of(thread, location, order);
    return low == seen && seen + 1 < location->count ? seen + 1 : low;
}

static bool is_early(void)
{
    return mc_exec.test->early_stores;
}

/* May a message be inserted here? Not between an RMW and what it has read. */
static bool can_insert(const struct mc_location *location, uint32_t position)
{
    return position == location->count || !location->messages[position].is_rmw;
}

/* Where a load may read. */
static uint32_t load_positions(const struct mc_location *location, uint32_t low)
{
    uint32_t count = 0;
    for (uint32_t at = location->count; at > low; at--) {
        positions[count++] = at - 1;
    }
    return count;
}

/* Where an RMW may read: it stores directly after. */
static uint32_t update_positions(const struct mc_location *location, uint32_t low)
{
    uint32_t count = 0;
    for (uint32_t at = location->count; at > low; at--) {
        bool is_newest = at == location->count;
        if (is_newest || (is_early() && can_insert(location, at))) {
            positions[count++] = at - 1;
        }
    }
    return count;
}

/* Where a CAS may read: to succeed, like an RMW; to fail, like a load, but only
 * another value, unless it is weak. */
static uint32_t cas_positions(const struct mc_thread *thread, const struct mc_location *location,
                              const struct mc_op *op, uint32_t low, uint32_t fail_low)
{
    uint32_t count = 0;
    for (uint32_t at = location->count; at > 0; at--) {
        uint32_t position = at - 1;
        bool is_newest = at == location->count;
        bool is_expected = location->messages[position].value == op->expected;
        bool can_succeed = is_newest || (is_early() && position >= low && can_insert(location, at));
        bool can_fail = is_newest || position >= fail_low;
        if (is_expected ? can_succeed : can_fail) {
            positions[count++] = position;
        }
        if (is_expected && can_fail && op->is_weak && thread->spurious_cas > 0) {
            positions[count++] = position | NO_REASON;
        }
    }
    return count;
}

/* Those of the positions that no earlier run has tried in this place. */
static uint32_t find_open(const struct mc_location *location, uint32_t count, uint32_t read_before)
{
    uint32_t open_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t position = positions[i] & ~(uint32_t)NO_REASON;
        if (location->messages[position].born >= read_before) {
            open_choices[open_count++] = i;
        }
    }
    return open_count;
}

static uint32_t choose_position(const struct mc_location *location, uint32_t count)
{
    uint32_t open_count = find_open(location, count, mc_self->read_before);
    return positions[mc_explore_choose_from(count, open_choices, open_count)];
}

static void read_effect(struct mc_thread *self, const struct mc_location *location,
                        const struct mc_message *message, enum mc_order order)
{
    raise(entry_of(self->current, location), message->timestamp);
    if (message->view_size > 0) {
        mc_view_join(self->acquire, message->view, message->view_size);
        if (mc_order_acquires(order)) {
            mc_view_join(self->current, message->view, message->view_size);
        }
    }
    mc_did_follow(message->step);
}

/* What a message carries: the writer's view, or that of its last release fence,
 * and that of the message which an RMW has read. */
static void give_view(struct mc_thread *self, struct mc_message *message, enum mc_order order,
                      const struct mc_message *from)
{
    const uint32_t *own = NULL;
    if (mc_order_releases(order)) {
        own = self->current;
    } else if (self->has_release) {
        own = self->release;
    }
    uint32_t size = mc_view_size();
    if (own == NULL) {
        message->view = from != NULL ? from->view : NULL;
        message->view_size = from != NULL ? from->view_size : 0;
        return;
    }
    message->view = mc_scratch(size * sizeof *message->view);
    message->view_size = size;
    memcpy(message->view, own, size * sizeof *message->view);
    if (from != NULL && from->view_size > 0) {
        mc_view_join(message->view, from->view, from->view_size);
    }
}

static uint64_t hash_order(const struct mc_location *location)
{
    uint64_t hash = location->base;
    for (uint32_t i = 0; i < location->count; i++) {
        hash = mc_mix(hash, location->messages[i].id);
    }
    return hash;
}

/* Stores a message. from is the position that an RMW has read, or UINT32_MAX. */
static void write_effect(struct mc_thread *self, struct mc_location *location, uint32_t position,
                         uint64_t value, enum mc_order order, uint32_t from)
{
    bool is_rmw = from != UINT32_MAX;
    bool is_newest = position == location->count;
    struct mc_message *message = mc_location_insert(location, position, value);
    message->id = (uint64_t)self->index << 32 | self->op_count;
    message->step = mc_exec.step;
    message->event = mc_report_event_count();
    message->is_rmw = is_rmw;
    raise(entry_of(self->current, location), message->timestamp);
    give_view(self, message, order, is_rmw ? &location->messages[from] : NULL);
    if (order == MC_SEQ_CST) {
        raise(&mc_exec.sc_view[location->index], message->timestamp);
    }
    if (is_newest) {
        raw_write(location->addr, location->size, value);
        location->hash = mc_mix(location->hash, message->id);
    } else {
        location->hash = hash_order(location);
    }
}

/* Tells the reduction about an access. Only if it could have read or stored
 * nothing but the newest message does it matter that a store came before it. */
static void tell(struct mc_location *location, unsigned flags, enum mc_order order)
{
    unsigned sc = order == MC_SEQ_CST ? MC_DID_SC : 0;
    if (is_early() && (flags & MC_DID_AWAIT) == 0) {
        flags &= ~(unsigned)MC_DID_NEWEST;
    }
    mc_did_access(location, flags | sc);
    if (sc != 0) {
        unsigned write = flags & (MC_DID_WRITE | MC_DID_FAIL) ? MC_DID_WRITE : 0;
        mc_did_sc(MC_DID_READ | write);
    }
}

/* The same for a repeated read in a spin loop, of which only the place in the
 * order of seq_cst operations is new. */
static void tell_sc(struct mc_location *location, unsigned flags, enum mc_order order)
{
    if (order == MC_SEQ_CST) {
        tell(location, flags, order);
    }
}

static struct mc_event event_of(const struct mc_location *location, enum mc_kind kind,
                                enum mc_order order, const void *pc)
{
    return (struct mc_event){
        .kind = kind,
        .order = order,
        .addr = location->addr,
        .size = (uint8_t)location->size,
        .from = UINT32_MAX,
        .pc = pc,
    };
}

static void record_read(struct mc_event event, const struct mc_location *location,
                        uint32_t position)
{
    event.has_read = true;
    event.read = location->messages[position].value;
    event.from = location->messages[position].event;
    event.is_older = position + 1 < location->count;
    (void)mc_report_event(&event);
}

/* --- Load ------------------------------------------------------------------- */

uint64_t mc_memory_load(uintptr_t addr, unsigned size, enum mc_order order, const void *pc)
{
    if (mc_self == NULL) {
        return raw_read(addr, size);
    }
    struct mc_thread *self = mc_self;
    enum mc_spin_verdict verdict = mc_spin_before(pc, addr);
    if (verdict == MC_SPIN_READ_FREELY) {
        mc_point(&(struct mc_op){ .kind = MC_OP_LOAD, .order = order, .addr = addr, .pc = pc });
    }
    mc_shadow_atomic(addr, size, false, pc);
    struct mc_location *location = mc_location_at(addr, size);
    uint32_t low = floor_of(self, location, order);
    if (verdict == MC_SPIN_READ_SAME) {
        if (location->messages[low].value == mc_spin_expected()) {
            tell_sc(location, MC_DID_READ, order);
            mc_report_again();
            mc_spin_after(pc, addr, location->messages[low].value);
            return location->messages[low].value;
        }
        mc_spin_effect();
        mc_point(&(struct mc_op){ .kind = MC_OP_LOAD, .order = order, .addr = addr, .pc = pc });
        low = floor_of(self, location, order);
    }
    if (verdict == MC_SPIN_READ_NEWER) {
        low = newer_floor_of(self, location, order);
    }
    uint32_t position = choose_position(location, load_positions(location, low));
    const struct mc_message *message = &location->messages[position];
    uint64_t value = message->value;
    record_read(event_of(location, MC_OP_LOAD, order, pc), location, position);
    read_effect(self, location, message, order);
    tell(location, MC_DID_READ, order);
    mc_done(mc_mix(message->id, addr));
    mc_spin_after(pc, addr, value);
    return value;
}

/* --- Store ------------------------------------------------------------------ */

void mc_memory_store(uintptr_t addr, unsigned size, uint64_t value, enum mc_order order,
                     const void *pc)
{
    if (mc_self == NULL) {
        raw_write(addr, size, value);
        return;
    }
    struct mc_thread *self = mc_self;
    mc_spin_effect();
    mc_point(&(struct mc_op){ .kind = MC_OP_STORE, .order = order, .addr = addr, .pc = pc });
    mc_shadow_atomic(addr, size, true, pc);
    struct mc_location *location = mc_location_at(addr, size);
    uint32_t position = location->count;
    if (is_early()) {
        /* Directly after what an RMW could read. */
        uint32_t count = update_positions(location, floor_of(self, location, order));
        position = positions[mc_explore_choose(count)] + 1;
    }
    struct mc_event event = event_of(location, MC_OP_STORE, order, pc);
    event.has_written = true;
    event.written = value;
    event.text = position < location->count ? "before newer ones" : NULL;
    write_effect(self, location, position, value, order, UINT32_MAX);
    (void)mc_report_event(&event);
    tell(location, MC_DID_WRITE, order);
    mc_done(mc_mix(HASH_STORE, mc_mix(addr, value)));
}

/* --- Read-modify-write ------------------------------------------------------ */

/* Reads the message at position and stores value directly after it. */
static void exchange(struct mc_location *location, uint32_t position, uint64_t value,
                     struct mc_event event)
{
    struct mc_thread *self = mc_self;
    mc_shadow_atomic(location->addr, location->size, true, event.pc);
    const struct mc_message *message = &location->messages[position];
    uint64_t id = message->id;
    event.has_read = true;
    event.read = message->value;
    event.from = message->event;
    event.has_written = true;
    event.written = value;
    event.text = position + 1 < location->count ? "before newer ones" : NULL;
    read_effect(self, location, message, event.order);
    write_effect(self, location, position + 1, value, event.order, position);
    (void)mc_report_event(&event);
    unsigned await = event.kind == MC_OP_AWAIT ? MC_DID_AWAIT : 0;
    tell(location, await | MC_DID_READ | MC_DID_WRITE | MC_DID_NEWEST, event.order);
    mc_done(mc_mix(id, value));
}

/* In a spin loop: an RMW that finds and leaves what it found before. */
static bool update_is_same(uintptr_t addr, mc_update_fn *update, uint64_t operand, uint64_t mask)
{
    uint64_t value = mc_spin_expected();
    return mc_memory_holds(addr, value) && (update(value, operand) & mask) == value;
}

uint64_t mc_memory_update(uintptr_t addr, unsigned size, mc_update_fn *update, uint64_t operand,
                          enum mc_order order, const void *pc)
{
    uint64_t mask = mask_of(size);
    if (mc_self == NULL) {
        uint64_t old = raw_read(addr, size);
        raw_write(addr, size, update(old, operand) & mask);
        return old;
    }
    struct mc_thread *self = mc_self;
    struct mc_op op = { .kind = MC_OP_RMW, .order = order, .addr = addr, .pc = pc };
    enum mc_spin_verdict verdict = mc_spin_before(pc, addr);
    if (verdict == MC_SPIN_READ_SAME && !update_is_same(addr, update, operand, mask)) {
        mc_spin_effect();
        verdict = MC_SPIN_READ_FREELY;
    }
    if (verdict == MC_SPIN_READ_FREELY) {
        mc_point(&op);
    }
    mc_shadow_atomic(addr, size, false, pc);
    struct mc_location *location = mc_location_at(addr, size);
    uint32_t count = update_positions(location, floor_of(self, location, order));
    uint32_t position = choose_position(location, count);
    uint64_t old = location->messages[position].value;
    uint64_t value = update(old, operand) & mask;
    exchange(location, position, value, event_of(location, MC_OP_RMW, order, pc));
    if (value == old) {
        mc_spin_after(pc, addr, value);
    } else {
        mc_spin_effect();
    }
    return old;
}

/* --- Compare and exchange --------------------------------------------------- */

static bool raw_cas(uintptr_t addr, unsigned size, struct mc_cas *cas)
{
    uint64_t found = raw_read(addr, size);
    if (found != cas->expected) {
        cas->expected = found;
        return false;
    }
    raw_write(addr, size, cas->desired);
    return true;
}

static bool cas_at(struct mc_location *location, uint32_t choice, struct mc_cas *cas,
                   const void *pc)
{
    struct mc_thread *self = mc_self;
    uint32_t position = choice & ~(uint32_t)NO_REASON;
    const struct mc_message *message = &location->messages[position];
    if (message->value == cas->expected && choice == position) {
        exchange(location, position, cas->desired, event_of(location, MC_OP_CAS, cas->order, pc));
        mc_spin_effect();
        return true;
    }
    struct mc_event event = event_of(location, MC_OP_CAS, cas->fail_order, pc);
    event.text = choice != position ? "weak, failed for no reason" : NULL;
    record_read(event, location, position);
    read_effect(self, location, message, cas->fail_order);
    tell(location, MC_DID_READ | MC_DID_NEWEST | MC_DID_FAIL, cas->order);
    cas->expected = message->value;
    if (choice != position) {
        self->spurious_cas--;
        mc_done(mc_mix(HASH_SPURIOUS, message->id));
        mc_spin_effect();
    } else {
        mc_done(mc_mix(HASH_FAILED, message->id));
        mc_spin_after(pc, location->addr, cas->expected);
    }
    return false;
}

bool mc_memory_cas(uintptr_t addr, unsigned size, struct mc_cas *cas, const void *pc)
{
    if (mc_self == NULL) {
        return raw_cas(addr, size, cas);
    }
    struct mc_thread *self = mc_self;
    enum mc_spin_verdict verdict = mc_spin_before(pc, addr);
    struct mc_op op = { .kind = MC_OP_CAS,
                        .order = cas->order,
                        .fail_order = cas->fail_order,
                        .is_weak = cas->is_weak,
                        .addr = addr,
                        .expected = cas->expected,
                        .pc = pc };
    if (verdict == MC_SPIN_READ_FREELY) {
        mc_point(&op);
    }
    mc_shadow_atomic(addr, size, false, pc);
    struct mc_location *location = mc_location_at(addr, size);
    uint32_t fail_low = floor_of(self, location, cas->fail_order);
    if (verdict == MC_SPIN_READ_SAME) {
        uint64_t value = location->messages[fail_low].value;
        if (value == mc_spin_expected() && value != cas->expected) {
            cas->expected = value;
            tell_sc(location, MC_DID_READ | MC_DID_NEWEST | MC_DID_FAIL, cas->order);
            mc_report_again();
            mc_spin_after(pc, addr, value);
            return false;
        }
        mc_spin_effect();
        mc_point(&op);
        fail_low = floor_of(self, location, cas->fail_order);
    }
    if (verdict == MC_SPIN_READ_NEWER) {
        fail_low = newer_floor_of(self, location, cas->fail_order);
    }
    uint32_t low = floor_of(self, location, cas->order);
    uint32_t count = cas_positions(self, location, &op, low, fail_low);
    return cas_at(location, choose_position(location, count), cas, pc);
}

/* --- Fence, await, futex ---------------------------------------------------- */

/* Returns whether the thread knows something that it has not yet told by a fence
 * of its own. (Whether others have told it is not asked: it depends on the order.) */
static bool join_sc_view(struct mc_thread *self)
{
    uint32_t *known = &self->current[MC_THREADS_MAX];
    uint64_t sum = 0;
    uint64_t sum_after = 0;
    for (unsigned i = 0; i < mc_exec.location_count; i++) {
        sum += known[i];
        raise(&known[i], mc_exec.sc_view[i]);
        mc_exec.sc_view[i] = known[i];
        sum_after += known[i];
    }
    /* Views only grow, so equal sums are equal views. */
    bool has_news = sum != self->told_sum;
    self->told_sum = sum_after;
    return has_news;
}

/* What the fence has let the thread know depends on the order of the fences,
 * which the rest of its history does not say. */
static uint64_t hash_view(const struct mc_thread *self)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < mc_exec.location_count; i++) {
        if (self->current[MC_THREADS_MAX + i] != 0) {
            sum += mc_mix(mc_location_get(i)->addr, self->current[MC_THREADS_MAX + i]);
        }
    }
    return sum;
}

void mc_memory_fence(enum mc_order order, const void *pc)
{
    struct mc_thread *self = mc_self;
    if (self == NULL) {
        return;
    }
    if (order == MC_SEQ_CST) {
        /* Others notice only this kind. In a spin loop it is like a yield. */
        if (mc_spin_before(pc, 0) == MC_SPIN_READ_FREELY) {
            mc_point(&(struct mc_op){ .kind = MC_OP_FENCE, .order = order, .pc = pc });
        }
        mc_spin_after(pc, 0, 0);
    }
    uint32_t size = mc_view_size();
    if (mc_order_acquires(order)) {
        mc_view_join(self->current, self->acquire, size);
    }
    uint64_t what = HASH_FENCE + order;
    if (order == MC_SEQ_CST) {
        bool has_news = join_sc_view(self);
        mc_did_sc(MC_DID_FENCE | MC_DID_READ | (has_news ? MC_DID_WRITE : 0));
        what = mc_mix(what, hash_view(self));
    }
    if (mc_order_releases(order)) {
        memcpy(self->release, self->current, size * sizeof *self->release);
        self->has_release = true;
    }
    (void)mc_report_event(
        &(struct mc_event){ .kind = MC_OP_FENCE, .order = order, .from = UINT32_MAX, .pc = pc });
    mc_done(what);
}

void mc_memory_await(uintptr_t addr, unsigned size, uint64_t expected, uint64_t desired,
                     const void *pc)
{
    mc_spin_effect();
    (void)mc_location_at(addr, size);
    mc_point(&(struct mc_op){
        .kind = MC_OP_AWAIT, .order = MC_ACQUIRE, .addr = addr, .expected = expected, .pc = pc });
    mc_shadow_atomic(addr, size, false, pc);
    struct mc_location *location = mc_location_at(addr, size);
    exchange(location, location->count - 1, desired,
             event_of(location, MC_OP_AWAIT, MC_ACQUIRE, pc));
}

bool mc_memory_holds(uintptr_t addr, uint64_t value)
{
    const struct mc_location *location = mc_location_find(addr);
    return location != NULL && mc_location_newest(location)->value == value;
}

bool mc_memory_futex_equals(uintptr_t addr, uint32_t expected, const void *pc)
{
    struct mc_thread *self = mc_self;
    mc_shadow_atomic(addr, sizeof(uint32_t), false, pc);
    struct mc_location *location = mc_location_at(addr, sizeof(uint32_t));
    uint32_t timestamp = *entry_of(self->current, location);
    raise(&timestamp, location->woken);
    /* The oldest of each kind tells the thread least. */
    uint32_t oldest[2] = { UINT32_MAX, UINT32_MAX };
    for (uint32_t at = location->count; at > mc_location_floor(location, timestamp); at--) {
        oldest[location->messages[at - 1].value != expected] = at - 1;
    }
    unsigned which = oldest[0] == UINT32_MAX ? 1 : 0;
    if (oldest[0] != UINT32_MAX && oldest[1] != UINT32_MAX) {
        which = mc_explore_choose(2);
    }
    const struct mc_message *message = &location->messages[oldest[which]];
    record_read(event_of(location, MC_OP_WAIT, MC_NO_ORDER, pc), location, oldest[which]);
    read_effect(self, location, message, MC_RELAXED);
    tell(location, MC_DID_READ | MC_DID_WAIT, MC_RELAXED);
    mc_done(mc_mix(message->id, addr));
    return which == 0;
}

bool mc_memory_has_newer(const struct mc_thread *thread, uintptr_t addr)
{
    const struct mc_location *location = mc_location_find(addr);
    return location != NULL && mc_location_newest(location)->timestamp >
                                   thread->current[MC_THREADS_MAX + location->index];
}

bool mc_memory_can_read_new(struct mc_thread *thread, uint32_t read_before)
{
    const struct mc_op *op = &thread->op;
    const struct mc_location *location = mc_location_find(op->addr);
    if (location == NULL) {
        return true;
    }
    uint32_t low = floor_of(thread, location, op->order);
    uint32_t count;
    if (op->kind == MC_OP_LOAD) {
        count = load_positions(location, low);
    } else if (op->kind == MC_OP_RMW) {
        count = update_positions(location, low);
    } else {
        uint32_t fail_low = floor_of(thread, location, op->fail_order);
        count = cas_positions(thread, location, op, low, fail_low);
    }
    return find_open(location, count, read_before) > 0;
}
