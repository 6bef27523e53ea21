/* SPDX-License-Identifier: MIT */
/*
 * report.c - what is recorded of an execution, and printed of a failed one.
 */
#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "heap.h"
#include "symbol.h"

enum {
    NAMES_MAX = 256,
    LINES_SHORT = 25, /* a schedule that is seen at one glance */
};

static const char *const kind_names[] = {
    [MC_OP_NONE] = "",       [MC_OP_START] = "start",   [MC_OP_LOAD] = "load",
    [MC_OP_STORE] = "store", [MC_OP_RMW] = "rmw",       [MC_OP_CAS] = "cas",
    [MC_OP_FENCE] = "fence", [MC_OP_CREATE] = "create", [MC_OP_JOIN] = "join",
    [MC_OP_WAIT] = "wait",   [MC_OP_SLEEP] = "sleep",   [MC_OP_WAKE] = "wake",
    [MC_OP_AWAIT] = "await", [MC_OP_SPIN] = "spin",
};

static const char *const order_names[] = {
    [MC_RELAXED] = "relaxed", [MC_CONSUME] = "consume", [MC_ACQUIRE] = "acquire",
    [MC_RELEASE] = "release", [MC_ACQ_REL] = "acq_rel", [MC_SEQ_CST] = "seq_cst",
    [MC_NO_ORDER] = "",
};

static const char *const fault_names[] = {
    [MC_NONE] = "no fault",     [MC_ASSERTION] = "assertion failed",
    [MC_RACE] = "data race",    [MC_DEADLOCK] = "deadlock: a lost wake-up, or a circle",
    [MC_LIVELOCK] = "livelock", [MC_USE_AFTER_FREE] = "use after free",
    [MC_BAD_FREE] = "bad free", [MC_LEAK] = "leak",
    [MC_CRASH] = "crash",       [MC_ANY] = "anything",
};

struct name {
    uintptr_t addr;
    size_t size;
    const char *text;
};

static struct {
    struct mc_event *events;
    uint32_t count;
    uint32_t capacity;
} trace;

static struct name names[NAMES_MAX];
static unsigned name_count;

static enum mc_fault fault;
static char fault_text[4096];

void mc_report_reset(void)
{
    trace.count = 0;
    name_count = 0;
    fault = MC_NONE;
    fault_text[0] = '\0';
}

uint32_t mc_report_event_count(void)
{
    return trace.count;
}

uint32_t mc_report_event(const struct mc_event *event)
{
    MC_GROW(trace.events, trace.count, trace.capacity);
    trace.events[trace.count] = *event;
    trace.events[trace.count].thread = (uint8_t)mc_self->index;
    trace.events[trace.count].step = mc_exec.step;
    return trace.count++;
}

void mc_report_again(void)
{
    for (uint32_t i = trace.count; i > 0; i--) {
        struct mc_event *event = &trace.events[i - 1];
        if (event->thread == mc_self->index) {
            event->again++;
            return;
        }
    }
}

void mc_name(const volatile void *memory, size_t size, const char *name)
{
    if (name_count < NAMES_MAX) {
        names[name_count++] = (struct name){ (uintptr_t)memory, size, name };
    }
}

void mc_report_fail(enum mc_fault found, const char *format, ...)
{
    if (fault != MC_NONE) {
        return;
    }
    fault = found;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(fault_text, sizeof fault_text, format, args);
    va_end(args);
}

enum mc_fault mc_report_fault(void)
{
    return fault;
}

const char *mc_report_text(void)
{
    return fault_text;
}

const char *mc_report_fault_name(enum mc_fault which)
{
    return fault_names[which];
}

const char *mc_report_kind_name(enum mc_kind kind)
{
    return kind_names[kind];
}

const char *mc_report_order_name(enum mc_order order)
{
    return order_names[order];
}

_Noreturn void mc_report_limit(const char *problem)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "model checker: %s: %s\n", mc_exec.test != NULL ? mc_exec.test->name : "",
                  problem);
    _Exit(3);
}

/* --- Names ------------------------------------------------------------------ */

void mc_report_where(const void *pc, char *text, size_t size)
{
    mc_symbol_code(pc, text, size);
}

void mc_report_address(uintptr_t addr, char *text, size_t size)
{
    for (unsigned i = 0; i < name_count; i++) {
        const struct name *name = &names[i];
        if (addr - name->addr < name->size) {
            unsigned long offset = addr - name->addr;
            (void)snprintf(text, size, offset == 0 ? "%s" : "%s+%#lx", name->text, offset);
            return;
        }
    }
    if (!mc_symbol_data(addr, text, size) && !mc_heap_describe(addr, text, size)) {
        (void)snprintf(text, size, "%#lx", (unsigned long)addr);
    }
}

/* --- Printing --------------------------------------------------------------- */

/* Small numbers in decimal; pointers and packed words in hexadecimal. */
static int print_value(char *text, size_t size, uint64_t value)
{
    return snprintf(text, size, value < 4096 ? "%lu" : "%#lx", (unsigned long)value);
}

static void describe(const struct mc_event *event, char *text, size_t size)
{
    char address[256] = "";
    char read[32];
    char written[32];
    (void)print_value(read, sizeof read, event->read);
    (void)print_value(written, sizeof written, event->written);
    if (event->addr != 0) {
        mc_report_address(event->addr, address, sizeof address);
    }
    if (event->kind == MC_OP_CREATE || event->kind == MC_OP_JOIN) {
        (void)snprintf(text, size, "T%s", read);
    } else if (event->kind == MC_OP_WAKE) {
        (void)snprintf(text, size, "%s: %s woken", address, read);
    } else if (event->has_read && event->has_written) {
        (void)snprintf(text, size, "%s: %s -> %s", address, read, written);
    } else if (event->has_read) {
        (void)snprintf(text, size, "%s = %s", address, read);
    } else if (event->has_written) {
        (void)snprintf(text, size, "%s := %s", address, written);
    } else {
        (void)snprintf(text, size, "%s", address);
    }
}

static void describe_source(const struct mc_event *event, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    if (event->has_read && event->from < trace.count) {
        const struct mc_event *from = &trace.events[event->from];
        length = (size_t)snprintf(text, size, "from #%u T%u%s", from->step, from->thread,
                                  event->is_older ? ", not the newest" : "");
    } else if (event->has_read) {
        length = (size_t)snprintf(text, size, "the initial value%s",
                                  event->is_older ? ", not the newest" : "");
    }
    if (event->text != NULL && length < size) {
        length += (size_t)snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "",
                                   event->text);
    }
    if (event->again > 0 && length < size) {
        (void)snprintf(text + length, size - length, ", %u times more", event->again);
    }
}

static void print_event(const struct mc_event *event)
{
    char operation[32];
    char what[512];
    char source[256];
    char where[512];
    (void)snprintf(operation, sizeof operation, "%s%s",
                   event->kind == MC_OP_CAS && !event->has_written ? "failed " : "",
                   kind_names[event->kind]);
    describe(event, what, sizeof what);
    describe_source(event, source, sizeof source);
    mc_report_where(event->pc, where, sizeof where);
    (void)printf("    #%-4u T%u  %-10s %-8s %-34s %-30s %s\n", event->step, event->thread,
                 operation, order_names[event->order], what, source, where);
}

void mc_report_print(const char *replay)
{
    (void)printf("  %s: %s\n", fault_names[fault], fault_text);
    (void)printf("  schedule: step, thread, operation, value, where the value came from, source\n");
    for (uint32_t i = 0; i < trace.count; i++) {
        print_event(&trace.events[i]);
    }
    if (fault != MC_NONE && trace.count > LINES_SHORT) {
        (void)printf("  here: %s: %s\n", fault_names[fault], fault_text);
    }
    (void)printf("  replay: MC_REPLAY='%s:%s' %s\n", mc_exec.test->name, replay,
                 program_invocation_name);
    (void)fflush(stdout);
}
