/* SPDX-License-Identifier: MIT */
/*
 * coroutine.c - threads of the test as coroutines of one OS thread.
 *
 * The program believes in threads, so what is per thread is swapped: its stack,
 * and its thread-locals, which lie in one block below the thread pointer.
 *
 * Every execution begins with the same globals: the writable segment of the
 * program is copied at the start and put back. The checker is a shared library,
 * so its own variables are elsewhere and stay.
 */
#include "coroutine.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "report.h"

#if !defined(__x86_64__)
#error "the model checker runs on x86-64"
#endif

enum {
    SAVED_REGISTERS = 6
};

void mc_switch(void **save, void *to);

struct area {
    char *at;
    char *copy;
    size_t size;
};

static struct area globals;
static struct area locals;
static void *scheduler_stack_pointer;
static const struct mc_thread *locals_owner; /* whose values are in place */

/* The program is the first object that is listed. */
static int find_areas(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    uintptr_t constant_end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_GNU_RELRO) {
            constant_end = info->dlpi_addr + header->p_vaddr + header->p_memsz;
        }
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t first = info->dlpi_addr + header->p_vaddr;
        uintptr_t end = first + header->p_memsz;
        if (header->p_type == PT_LOAD && (header->p_flags & PF_W) != 0) {
            first = constant_end > first && constant_end <= end ? constant_end : first;
            globals = (struct area){ .at = (char *)first, .size = end - first };
        } else if (header->p_type == PT_TLS) {
            locals = (struct area){ .at = info->dlpi_tls_data, .size = header->p_memsz };
        }
    }
    return 1;
}

static void save(struct area *area)
{
    area->copy = malloc(area->size + 1);
    if (area->copy == NULL) {
        mc_report_limit("out of memory");
    }
    if (area->size > 0) {
        memcpy(area->copy, area->at, area->size);
    }
}

void mc_coroutine_start(void)
{
    (void)dl_iterate_phdr(find_areas, NULL);
    save(&globals);
    save(&locals);
}

void mc_coroutine_restore(void)
{
    if (globals.size > 0) {
        memcpy(globals.at, globals.copy, globals.size);
    }
    locals_owner = NULL;
}

void mc_coroutine_globals(uintptr_t *first, uintptr_t *end)
{
    *first = (uintptr_t)globals.at;
    *end = *first + globals.size;
}

bool mc_coroutine_is_local(uintptr_t addr)
{
    return addr - (uintptr_t)locals.at < locals.size;
}

static void swap_locals(struct mc_thread *thread)
{
    if (locals.size == 0 || locals_owner == thread) {
        return;
    }
    if (locals_owner != NULL) {
        memcpy(locals_owner->tls, locals.at, locals.size);
    }
    memcpy(locals.at, thread->tls, locals.size);
    locals_owner = thread;
}

void mc_coroutine_make(struct mc_thread *thread, void (*entry)(void))
{
    if (thread->tls == NULL) {
        thread->tls = malloc(locals.size + 1);
    }
    if (thread->tls == NULL) {
        mc_report_limit("out of memory");
    }
    memcpy(thread->tls, locals.copy, locals.size);
    /* What mc_switch() pops: the registers, and where it returns to. Above it a
     * zero, where backtraces end. */
    uintptr_t *top = (uintptr_t *)(void *)mc_heap_stack(thread->index) - 1;
    *top = 0;
    *--top = (uintptr_t)entry;
    for (int i = 0; i < SAVED_REGISTERS; i++) {
        *--top = 0;
    }
    thread->stack_pointer = top;
}

void mc_coroutine_resume(struct mc_thread *thread)
{
    swap_locals(thread);
    mc_switch(&scheduler_stack_pointer, thread->stack_pointer);
}

void mc_coroutine_yield(struct mc_thread *thread)
{
    mc_switch(&thread->stack_pointer, scheduler_stack_pointer);
}
